"""Options of ``exactrank train NAME``, read off the ranker's settings: one for each that can be written on a command line."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import typer

from exactrank._support.numerals import number, whole_number
from exactrank.cli.help import DATA, TRAINING
from exactrank.cli.names import complete_measure

if TYPE_CHECKING:
    from exactrank._support.settings import Setting
    from exactrank.rankers.base import Ranker

TREES, LAMBDA = "Trees", "Lambda function"
#: Panels, by the class that declares a setting or by its name; all others are in the panel of training.
_PANEL_OF_CLASS = {"BoostedRanker": TREES, "LambdaFunction": LAMBDA}
_PANEL_OF_NAME = {"missing": DATA} | dict.fromkeys(("trees", "learning_rate", "patience"), TRAINING)
_MEASURES = ("measure", "weighted_by")
#: The type of an option, by the form of its values. Of a "word", an "int or word" and a "float or word" the setting names the words.
_TYPES: Mapping[str, Any] = {
    "bool": bool,
    "int": int,
    "float": float,
    "text": str,
    "names": list[str],
    "numbers": list[int],
    "pairs": list[str],
    "groups": list[str],
    "int or word": int,
    "float or word": float,
}
_METAVARS = {"names": "NAME", "pairs": "NAME=VALUE", "groups": "NAME,NAME"}


def parameters(ranker: "type[Ranker]") -> list[inspect.Parameter]:
    """Return a parameter for each setting that words can write: those of ``ranker`` come before those that all rankers have."""
    from exactrank.rankers.base import Ranker

    shared = [name for name in Ranker.settings if name != "measure" and name in ranker.settings]
    names = ["measure", *(name for name in ranker.settings if name not in Ranker.settings), *shared]
    forms = {name: _form(ranker.settings[name]) for name in names}
    return [_parameter(ranker, name, form) for name, form in forms.items() if form is not None]


def _parameter(ranker: "type[Ranker]", name: str, form: str) -> inspect.Parameter:
    setting = ranker.settings[name]
    owner = next(base.__name__ for base in reversed(ranker.__mro__) if name in inspect.get_annotations(base))
    panel = _PANEL_OF_NAME.get(name) or _PANEL_OF_CLASS.get(owner, TRAINING)
    details: dict[str, Any] = {"help": setting.help + _condition(setting, ranker.settings), "rich_help_panel": panel}
    default = setting.default
    kind: Any = _TYPES.get(form)
    if form == "word":
        kind = Literal[setting.choices]
    elif form.endswith(" or word"):
        details |= {"parser": _number_or_word(setting, form), "metavar": "|".join(["NUMBER", *setting.choices])}
    elif get_origin(kind) is list:
        default = list(default or ())
        details |= {"metavar": _METAVARS.get(form)}
    if name in _MEASURES:
        details |= {"autocompletion": complete_measure, "metavar": "MEASURE"}
    flags = ("--measure", "-m") if name == "measure" else ()
    if NoneType in setting.kinds:
        kind = kind | None
    annotation = Annotated[kind, typer.Option(*flags, **details)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _condition(setting: "Setting", settings: "Mapping[str, Setting]") -> str:
    """Return the options under which this one has an effect; nothing if every choice of another option will do."""
    from exactrank._support.settings import SOME, VALID

    options = []
    for name, values in setting.only.items():
        choices = settings[name].choices if name in settings else ()
        words = [] if values is SOME else [str(value) for value in values if not choices or value in choices]
        if name != VALID and _form(settings[name]) and (not words or set(choices) != set(words)):
            options.append(f"--{name.replace('_', '-')} {' or '.join(words)}".rstrip())
    return f" (Only with {' and '.join(options)}.)" if options else ""


def make_ranker(kind: "type[Ranker]", options: Mapping[str, object]) -> "Ranker":
    """Return a ranker with the settings that the options give."""
    settings: dict[str, Any] = {}
    for name, value in options.items():
        setting = kind.settings[name]
        form = _form(setting)
        if isinstance(value, list) and form == "pairs":
            settings[name] = dict(_pair(name, word) for word in value) or setting.default
        elif isinstance(value, list) and form == "groups":
            settings[name] = tuple(tuple(group.split(",")) for group in value)
        else:
            settings[name] = tuple(value) if isinstance(value, list) else value
    return kind(**settings)


def _form(setting: "Setting") -> str | None:
    """Return the form of the setting's values on the command line, a key of `_TYPES` or "word"; None if words cannot write them."""
    if _has_kind(setting, Mapping):
        return "pairs"
    if _has_kind(setting, Sequence, str):
        return "names"
    if _has_kind(setting, Sequence, Sequence[str]):
        return "groups"
    if _has_kind(setting, Sequence, int):
        return "numbers"
    number_type = next((kind.__name__ for kind in (float, int) if kind in setting.kinds), None)
    if setting.choices:
        return "word" if number_type is None else f"{number_type} or word"
    return "bool" if bool in setting.kinds else number_type or ("text" if str in setting.kinds else None)


def _has_kind(setting: "Setting", origin: type, item: object = None) -> bool:
    """Return whether a value may be of the generic type ``origin``, such as a sequence, with items of the type ``item``."""
    generic = [kind for kind in setting.kinds if isinstance(get_origin(kind), type) and get_origin(kind) is not Literal]
    return any(issubclass(get_origin(kind), origin) and (item is None or get_args(kind)[0] == item) for kind in generic)


def _number_or_word(setting: "Setting", form: str) -> Callable[[object], object]:
    """Return the parser of an option that takes a number or a word."""
    parse_number = number if form.startswith("float") else whole_number

    def parse(text: object) -> object:
        if text is None or text in setting.choices or not isinstance(text, str):  # a default is a number already
            return text
        try:
            return parse_number(text)
        except ValueError:
            raise ValueError(f"{text!r} is not a number or {' or '.join(setting.choices)}") from None

    return parse


def _pair(option: str, word: str) -> tuple[str, int]:
    """Parse NAME=VALUE."""
    name, _, value = word.rpartition("=")
    try:
        return name, whole_number(value)
    except ValueError:
        raise typer.BadParameter(f"--{option} {word!r} is not NAME=VALUE, e.g. --{option} price=-1") from None
