"""Options from a ranker's constructor: one for each parameter that can be written as a word, with its help and default."""

import inspect
import re
from collections.abc import Iterator, Sequence
from enum import Enum
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from exactrank.cli.common import Seed, Threads

_SHARED: dict[str, Any] = {"seed": Seed, "threads": Threads}
_SHORT = {"measure": ("--measure", "-m")}
_ENTRY = re.compile(r"^    (?P<name>\w+): (?P<text>.*(?:\n {8,}.*)*)", re.MULTILINE)


def ranker_options(ranker: type) -> list[inspect.Parameter]:
    """The parameters of ``ranker`` as those of a command; one that no word can stand for is left to Python."""
    hints = get_type_hints(ranker.__init__)  # type: ignore[misc]
    documented = dict(_documented(ranker))
    found = []
    for given in list(inspect.signature(ranker).parameters.values()):
        written = _SHARED.get(given.name) or _written(hints.get(given.name), given.name)
        if written is None:
            continue
        if given.name not in _SHARED:
            how = {"help": documented.get(given.name)} | _number_or_word(hints.get(given.name))
            written = Annotated[written, typer.Option(*_SHORT.get(given.name, ()), **how)]
        found.append(inspect.Parameter(given.name, inspect.Parameter.KEYWORD_ONLY, default=given.default, annotation=written))
    return found


def plain_values(options: dict[str, Any]) -> dict[str, Any]:
    """What the constructor takes for what the command line gave."""
    return {name: value.value if isinstance(value, Enum) else value for name, value in options.items()}


def _written(annotation: Any, name: str) -> Any:
    """The type of one word on the command line, or None."""
    if get_origin(annotation) is Literal and all(isinstance(value, str) for value in get_args(annotation)):
        return Enum(name, {value: value for value in get_args(annotation)}, type=str)
    if annotation in (bool, int, float, str):
        return annotation
    if annotation == Sequence[str]:
        return list[str]
    choices = get_args(annotation) if get_origin(annotation) is not None else ()
    words = [word for word in (_written(choice, name) for choice in choices if choice is not NoneType) if word is not None]
    if not words or get_origin(annotation) is tuple:
        return None
    return words[0] | None if NoneType in choices else words[0]


def _number_or_word(annotation: Any) -> dict[str, Any]:
    """How an option is read that takes a number or one of some words, as ``float | Literal["auto"]``."""
    choices = get_args(annotation)
    words = [word for choice in choices if get_origin(choice) is Literal for word in get_args(choice)]
    if float not in choices or not words:
        return {}

    def read(text: Any) -> Any:
        try:
            return text if text in words else float(text)
        except ValueError:
            raise ValueError(f"{text!r} is neither a number nor {' or '.join(words)}") from None

    return {"parser": read, "metavar": "|".join(["FLOAT", *words])}


def _documented(ranker: type) -> Iterator[tuple[str, str]]:
    """Names and texts of the ``Args:`` in the docstrings of ``ranker`` and its bases."""
    for each in reversed(ranker.__mro__):
        arguments = (inspect.cleandoc(each.__doc__ or "")).partition("Args:\n")[2]
        for entry in _ENTRY.finditer(arguments.partition("\n\n")[0]):
            yield entry["name"], " ".join(entry["text"].split())
