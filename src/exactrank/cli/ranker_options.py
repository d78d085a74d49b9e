"""Options of ``exactrank train NAME``, read off the ranker's settings: one for each that can be written on a command line."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

import typer

from exactrank.rankers.base import Ranker
from exactrank.settings import Setting

_SHORT = {"measure": ("--measure", "-m")}
OWN, COMMON = "Settings of the method", "Settings of all rankers"


def ranker_options(ranker: type[Ranker]) -> list[inspect.Parameter]:
    """The settings of ``ranker`` as parameters of a command, its own first; what no word can stand for is left to Python."""
    shared = [name for name in Ranker.settings if name != "measure" and name in ranker.settings]
    found = []
    for name in ["measure", *(name for name in ranker.settings if name not in Ranker.settings), *shared]:
        one = ranker.settings[name]
        written = _written(one)
        if written is None:
            continue
        condition = f" ({one.condition[0].upper()}{one.condition[1:]}.)" if one.condition else ""
        about = (one.help + condition).replace("[", "\\[")
        how: dict[str, Any] = {"help": about, "rich_help_panel": COMMON if name in shared else OWN}
        if one.choices and _is_number(one):
            how |= {"parser": _number_or_word(one), "metavar": "|".join(["NUMBER", *one.choices])}
        if written == list[str]:
            how |= {"metavar": "NAME=VALUE" if _kind(one, Mapping) else "NAME"}
        kind: Any = written | None if NoneType in one.kinds else written
        annotation = Annotated[kind, typer.Option(*_SHORT.get(name, ()), **how)]
        default = list(one.default or ()) if written == list[str] else one.default
        found.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation))
    return found


def given_settings(ranker: type[Ranker], options: Mapping[str, Any]) -> dict[str, Any]:
    """What the constructor takes for what the command line gave."""
    found: dict[str, Any] = {}
    for name, option in options.items():
        one = ranker.settings[name]
        if isinstance(option, list) and _kind(one, Mapping):
            found[name] = dict(_pair(name, word) for word in option) or one.default
        else:
            found[name] = option.value if isinstance(option, Enum) else tuple(option) if isinstance(option, list) else option
    return found


def _written(one: Setting) -> Any:
    """The type of its words on the command line, or None."""
    if _kind(one, Mapping) or _kind(one, Sequence, str):
        return list[str]
    if one.choices and not _is_number(one):
        return Enum(one.name, {word: word for word in one.choices}, type=str)
    return next((kind for kind in (bool, float, int, str) if kind in one.kinds), str if one.choices else None)


def _kind(one: Setting, origin: type, inner: type | None = None) -> bool:
    """May it be of that kind, as a mapping or a list?"""
    own = [kind for kind in one.kinds if isinstance(get_origin(kind), type) and get_origin(kind) is not Literal]
    return any(issubclass(get_origin(kind), origin) and (inner is None or get_args(kind)[0] is inner) for kind in own)


def _is_number(one: Setting) -> bool:
    return int in one.kinds or float in one.kinds


def _number_or_word(one: Setting) -> Callable[[Any], Any]:
    """How an option is read that takes a number or one of some words."""

    def read(text: Any) -> Any:
        if text is None or text in one.choices:
            return text
        try:
            return int(text) if float not in one.kinds else float(text)
        except ValueError:
            raise ValueError(f"{text!r} is not {one.expected}") from None

    return read


def _pair(setting: str, word: str) -> tuple[str, int]:
    name, _, value = word.rpartition("=")
    try:
        return name, int(value)
    except ValueError:
        raise typer.BadParameter(f"--{setting} {word!r} is not NAME=VALUE, e.g. --{setting} price=-1") from None
