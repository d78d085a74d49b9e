"""Options of ``exactrank train NAME``, read off the ranker's settings: one for each that can be written on a command line.

Those of our own rankers come from a file (`exactrank.cli.known`), so that help answers at once.
"""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum, StrEnum
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import typer

from exactrank._support.numerals import number, whole_number
from exactrank.cli.completion import complete_measure
from exactrank.cli.help import DATA, TRAINING
from exactrank.cli.known import first_line, stored
from exactrank.rankers import RANKERS

if TYPE_CHECKING:
    from exactrank._support.settings import Setting
    from exactrank.rankers.base import Ranker

TREES, LAMBDA = "Trees", "Lambda function"
#: Panels, by the class that declares a setting or by its name; all others are in that of training.
_PANEL_OF_CLASS = {"BoostedRanker": TREES, "LambdaFunction": LAMBDA}
_PANEL_OF_NAME = {"missing": DATA} | dict.fromkeys(("trees", "learning_rate", "patience"), TRAINING)
_ENUM: Callable[..., Any] = StrEnum
_MEASURES = ("measure", "weighted_by")
_KINDS: Mapping[str, Any] = {
    "bool": bool,
    "int": int,
    "float": float,
    "text": str,
    "names": list[str],
    "numbers": list[int],
    "pairs": list[str],
    "groups": list[str],
}
_METAVARS = {"names": "NAME", "pairs": "NAME=VALUE", "groups": "NAME,NAME"}


@dataclass(frozen=True)
class Declared:
    """What the command line knows of a setting."""

    name: str
    #: bool, int, float, text, names, numbers, pairs (NAME=VALUE), groups (NAME,NAME), word (one of the choices), or "int or word",
    #: "float or word"
    kind: str
    default: Any
    help: str
    panel: str
    choices: tuple[str, ...] = ()
    optional: bool = False  #: may it be None?


@dataclass(frozen=True)
class RankerCommand:
    """What the command line knows of a ranker: a line about it, and its options."""

    about: str
    options: tuple[Declared, ...]


def command_of(name: str) -> RankerCommand:
    """What is known of the ranker called ``name``: of ours what is stored, of others what they declare."""
    if name in RANKERS.own:
        record = stored()["rankers"][name]
        return RankerCommand(
            record["about"], tuple(Declared(**option | {"choices": tuple(option.get("choices", ()))}) for option in record["options"])
        )
    return declared(RANKERS[name])


def stored_text() -> str:
    """What the file should hold: JSON with one option per line, without the fields in which it does not differ from `Declared`."""
    from exactrank.compare.contenders import CONTENDERS

    def line(option: Declared) -> str:
        return _json({one.name: value for one in fields(option) if (value := getattr(option, one.name)) != one.default})

    commands = {name: declared(RANKERS[name]) for name in RANKERS.own}
    rankers = ",\n".join(
        f'{_json(name)}: {{"about": {_json(command.about)}, "options": [\n ' + ",\n ".join(map(line, command.options)) + "]}"
        for name, command in commands.items()
    )
    peers = _json({name: first_line(CONTENDERS[name]) for name in CONTENDERS.own})
    return f'{{"rankers": {{\n{rankers}}},\n"peers": {peers}}}\n'


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def declared(ranker: "type[Ranker]") -> RankerCommand:
    """What ``ranker`` declares; its own settings come before those that all rankers have. What no word can stand for is left to Python."""
    from exactrank.rankers.base import Ranker

    shared = [name for name in Ranker.settings if name != "measure" and name in ranker.settings]
    found = []
    for name in ["measure", *(name for name in ranker.settings if name not in Ranker.settings), *shared]:
        one = ranker.settings[name]
        kind = _kind_of(one)
        if kind is None:
            continue
        home = next(each.__name__ for each in reversed(ranker.__mro__) if name in inspect.get_annotations(each))
        panel = _PANEL_OF_NAME.get(name) or _PANEL_OF_CLASS.get(home, TRAINING)
        default = list(one.default or ()) if kind in ("names", "numbers", "pairs", "groups") else one.default
        found.append(Declared(name, kind, default, one.help + _condition(one, ranker.settings), panel, one.choices, NoneType in one.kinds))
    return RankerCommand(first_line(ranker), tuple(found))


def _condition(one: "Setting", settings: "Mapping[str, Setting]") -> str:
    """When it has an effect, in the words of the command line; nothing where every choice of another option will do."""
    from exactrank._support.settings import SOME, VALID

    said = []
    for name, values in one.only.items():
        words = [] if values is SOME else [str(each) for each in values if not settings[name].choices or each in settings[name].choices]
        if name != VALID and _kind_of(settings[name]) and (not words or set(settings[name].choices) != set(words)):
            said.append(f"--{name.replace('_', '-')} {' or '.join(words)}".rstrip())
    return f" (Only with {' and '.join(said)}.)" if said else ""


def parameters(options: Sequence[Declared]) -> list[inspect.Parameter]:
    """``options`` as parameters of a command."""
    found = []
    for one in options:
        how: dict[str, Any] = {"help": one.help, "rich_help_panel": one.panel}
        kind: Any = _KINDS.get(one.kind)
        default = one.default
        if one.kind == "word":
            kind = _ENUM(one.name, {word: word for word in one.choices})
            default = None if default is None else kind(default)
        elif one.kind.endswith(" or word"):
            kind = float if one.kind.startswith("float") else int
            read_number = number if kind is float else whole_number
            how |= {"parser": _number_or_word(one, read_number), "metavar": "|".join(["NUMBER", *one.choices])}
        elif one.kind in _METAVARS:
            how |= {"metavar": _METAVARS[one.kind]}
        if one.name in _MEASURES:
            how |= {"autocompletion": complete_measure, "metavar": "MEASURE"}
        names = ("--measure", "-m") if one.name == "measure" else ()
        kind = kind | None if one.optional else kind
        annotation = Annotated[kind, typer.Option(*names, **how)]
        found.append(inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation))
    return found


def given_settings(ranker: "type[Ranker]", options: Mapping[str, Any]) -> dict[str, Any]:
    """What the constructor takes for what the command line gave."""
    found: dict[str, Any] = {}
    for name, option in options.items():
        one = ranker.settings[name]
        if isinstance(option, list) and _is_kind(one, Mapping):
            found[name] = dict(_pair(one, word) for word in option) or one.default
        elif isinstance(option, list) and _kind_of(one) == "groups":
            found[name] = tuple(tuple(group.split(",")) for group in option)
        else:
            found[name] = option.value if isinstance(option, Enum) else tuple(option) if isinstance(option, list) else option
    return found


def _kind_of(one: "Setting") -> str | None:
    """What its words on the command line are, or None."""
    if _is_kind(one, Mapping):
        return "pairs"
    if _is_kind(one, Sequence, str):
        return "names"
    if _is_kind(one, Sequence, Sequence[str]):
        return "groups"
    if _is_kind(one, Sequence, int):
        return "numbers"
    number = next((kind.__name__ for kind in (float, int) if kind in one.kinds), None)
    if one.choices:
        return "word" if number is None else f"{number} or word"
    return "bool" if bool in one.kinds else number or ("text" if str in one.kinds else None)


def _is_kind(one: "Setting", origin: type, inner: Any = None) -> bool:
    """May it be of that kind, as a mapping or a list?"""
    own = [kind for kind in one.kinds if isinstance(get_origin(kind), type) and get_origin(kind) is not Literal]
    return any(issubclass(get_origin(kind), origin) and (inner is None or get_args(kind)[0] == inner) for kind in own)


def _number_or_word(one: Declared, read_number: Callable[[str], float]) -> Callable[[Any], Any]:
    """How an option is read that takes a number or one of some words."""

    def read(text: Any) -> Any:
        if text is None or text in one.choices or not isinstance(text, str):  # a default is a number already
            return text
        try:
            return read_number(text)
        except ValueError:
            raise ValueError(f"{text!r} is not a number or {' or '.join(one.choices)}") from None

    return read


def _pair(one: "Setting", word: str) -> tuple[str, int]:
    """Return the name and the number of ``word``."""
    name, _, value = word.rpartition("=")
    try:
        return name, whole_number(value)
    except ValueError:
        raise typer.BadParameter(f"--{one.name} {word!r} is not NAME=VALUE, e.g. --{one.name} price=-1") from None
