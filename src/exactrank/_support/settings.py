"""Settings: each is declared once, and everything else is derived from the declaration.

    class Ridge(Ranker):
        l2: float = setting(default=1e-3, help="Penalty on a feature's weight, relative to its variance.", above=0)

The annotation is the type, with the choices if there are any. From the declaration come the constructor, the check in ``fit``, the
option of the command line with its help, the table on the method's page, the search space of tuning, and which settings may change when
training is resumed. A constructor only stores values, as scikit-learn requires; ``fit`` calls `check_values` before any work.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from difflib import get_close_matches
from functools import wraps
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Union, dataclass_transform, get_args, get_origin, get_type_hints

import numpy as np

from exactrank._support.numerics import power
from exactrank.errors import SettingError

#: In ``only``: any value except None, 0, False and an empty one.
SOME = object()
#: Our settings by the names that other libraries and earlier versions have for them.
ELSEWHERE = {
    "n_estimators": "trees", "num_trees": "trees", "iterations": "trees", "num_iterations": "trees", "num_boost_round": "trees",
    "num_leaves": "leaves", "max_leaves": "leaves", "max_leaf_nodes": "leaves", "max_depth": "depth",
    "min_data_in_leaf": "min_documents", "min_child_samples": "min_documents", "min_samples_leaf": "min_documents",
    "min_child_weight": "min_curvature", "min_sum_hessian_in_leaf": "min_curvature", "max_bin": "bins",
    "lambda_l1": "l1", "reg_alpha": "l1", "min_gain_to_split": "min_gain", "min_split_gain": "min_gain", "gamma": "min_gain",
    "max_delta_step": "max_step", "path_smooth": "path_smoothing", "feature_fraction_bynode": "node_features",
    "colsample_bynode": "node_features", "random_strength": "split_noise", "interaction_constraints": "interactions",
    "interaction_cst": "interactions", "extra_trees": "extra", "categorical_feature": "categorical", "cat_features": "categorical",
    "lambda_l2": "l2", "reg_lambda": "l2", "l2_leaf_reg": "l2", "lam": "l2", "ridge": "l2", "alpha": "l2", "C": "l2", "weight_decay": "l2",
    "eta": "learning_rate", "rate": "learning_rate", "lr": "learning_rate", "optimizer": "solver", "method": "solver",
    "epochs": "max_iter", "n_iter": "max_iter", "rounds": "max_iter", "steps": "max_iter", "max_rounds": "max_iter", "algorithm": "solver",
    "colsample_bytree": "feature_fraction", "rsm": "feature_fraction", "subsample": "query_fraction", "bagging_fraction": "query_fraction",
    "monotone_constraints": "monotone", "monotonic_cst": "monotone", "early_stopping_rounds": "patience", "random_state": "seed",
    "n_jobs": "threads", "num_threads": "threads", "nthread": "threads", "hidden_layer_sizes": "hidden", "tol": "tolerance",
    "batch": "batch_size", "metric": "measure", "eval_metric": "measure", "n_bags": "bags",
}  # fmt: skip
#: In ``only``, besides settings: validation data, which the caller gives, or the folds of cross-fitting.
VALID = "valid"
_FUNCTION = get_origin(Callable[[], None])
_LARGEST = float(np.finfo(np.float64).max)
_LISTS: Mapping[Any, str] = {
    str: "a list of names",
    float: "a list of numbers",
    int: "a list of whole numbers",
    Sequence[str]: "a list of lists of names",
}
_KINDS = {bool: "True or False", int: "a whole number", float: "a number", str: "text", NoneType: "None", object: "any value"}


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``, drawn on a logarithmic scale if ``log``; if both ends are whole, so are the numbers.

    scikit-learn calls it a distribution: ``RandomizedSearchCV(er.LambdaMART(), dict(er.LambdaMART.space), ...)`` takes it too.
    """

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high or (self.log and self.low <= 0):
            raise ValueError(f"{self} is empty; low must be below high, and above 0 on a logarithmic scale")

    @property
    def whole(self) -> bool:
        """Whole numbers only."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def rvs(self, random_state: np.random.RandomState) -> float:
        """Draw a number; the signature is that of scikit-learn's distributions.

        >>> Range(1, 3).rvs(np.random.RandomState(0)), round(Range(0.01, 1, log=True).rvs(np.random.RandomState(0)), 4)
        (2, 0.1252)
        """
        u, low, high = random_state.uniform(), self.low, self.high + self.whole
        number = low * power(high / low, u) if self.log else low + u * (high - low)
        return min(int(number), int(self.high)) if self.whole else float(number)

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}" + (", logarithmic" if self.log else "")


Space = Mapping[str, Range | Sequence[Any]]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The declaration of one setting."""

    default: Any
    help: str  #: one or two sentences
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None
    only: Mapping[str, Any] = field(default_factory=dict)  #: the condition for an effect: values of other settings, or `SOME`
    search: Range | Sequence[Any] | None = None  #: the search space of tuning
    free: bool = False  #: it may change when training is resumed
    name: str = ""
    kinds: tuple[Any, ...] = ()  #: its possible types: the members of a union

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that are possible values."""
        return tuple(word for kind in self.kinds if get_origin(kind) is Literal for word in get_args(kind))

    @property
    def values_in_words(self) -> str:
        """The possible values in words.

        >>> Setting(default=1, help="", at_least=1, kinds=(int, NoneType)).values_in_words
        'a whole number of at least 1, or None'
        """
        bounds = {"above": self.above, "of at least": self.at_least, "below": self.below, "at most": self.at_most}
        limits = [f"{words} {limit:{',' if isinstance(limit, int) else 'g'}}" for words, limit in bounds.items() if limit is not None]
        within = f" {' and '.join(limits)}" if limits else ""
        numbers = [_KINDS[kind] + within for kind in self.kinds if kind in (int, float)]
        rest = [kind for kind in self.kinds if kind not in (int, float, NoneType) and get_origin(kind) is not Literal]
        nothing = ["None"] if NoneType in self.kinds else []
        words = [*(f'"{word}"' for word in self.choices), *numbers, *map(_describe_kind, rest), *nothing]
        return _join_choices(words, bool(numbers) and len(words) == 2)

    @property
    def condition(self) -> str:
        """The condition for an effect, as ``only with solver="adam"``; empty if there is none. ``help`` mentions validation data."""
        return " and ".join(f"only with {name}" + _one_of(values) for name, values in self.only.items() if name != VALID)

    def check(self, value: Any, owner: str) -> None:
        """Raise if the setting of the class ``owner`` cannot have this ``value``."""
        if not any(_is_a(value, kind) for kind in self.kinds):
            matches = get_close_matches(value, self.choices, 1) if isinstance(value, str) else []
            hint = f'; did you mean "{matches[0]}"?' if matches else ""
            raise SettingError(f"{owner}: {self.name}={value!r} is not {self.values_in_words}{hint}")
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if is_number:
            low = (self.at_least is None or value >= self.at_least) and (self.above is None or value > self.above)
            high = (self.at_most is None or value <= self.at_most) and (self.below is None or value < self.below)
            if not low or not high:
                raise SettingError(f"{owner}: {self.name}={value!r} is out of range; give {self.values_in_words}")

    def is_default(self, value: object) -> bool:
        """Return whether ``value`` is the default."""
        if isinstance(value, np.ndarray) or isinstance(self.default, np.ndarray):
            return value is self.default
        return (type(value) is type(self.default) and bool(value == self.default)) or bool(_is_a(value, float) and value == self.default)


def setting(
    *,
    default: Any,
    help: str,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
    only: Mapping[str, Any] | None = None,
    search: Range | Sequence[Any] | None = None,
    free: bool = False,
    kw_only: bool = True,
) -> Any:
    """Declare a setting in the body of a class; see `Setting`."""
    declaration = Setting(
        default=default, help=help, at_least=at_least, above=above, at_most=at_most, below=below, only=only or {}, search=search, free=free
    )
    return field(default=default, kw_only=kw_only, metadata={"setting": declaration})


@dataclass_transform()
class Configured:
    """A class whose annotated attributes are settings; a plain value in a subclass is a new default, and a `ClassVar` is not a setting."""

    settings: ClassVar[Mapping[str, Setting]] = {}
    space: ClassVar[Space] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        fields_of_bases = [one for base in reversed(cls.__mro__[1:]) for one in getattr(base, "__dataclass_fields__", {}).values()]
        inherited = {one.name: one for one in fields_of_bases if "setting" in one.metadata}
        for name, annotation in inspect.get_annotations(cls).items():
            form: Any = get_origin(annotation)
            if name in inherited and name in cls.__dict__ and form is not ClassVar and not isinstance(cls.__dict__[name], Field):
                default, base_field = cls.__dict__[name], inherited[name]
                declaration = replace(base_field.metadata["setting"], default=default)
                setattr(cls, name, field(default=default, kw_only=base_field.kw_only, metadata={"setting": declaration}))
        dataclass(eq=False, repr=False)(cls)
        hints = get_type_hints(cls)
        declared = [one for one in fields(cls) if "setting" in one.metadata]  # type: ignore[arg-type]
        cls.settings = {one.name: replace(one.metadata["setting"], name=one.name, kinds=_kinds(hints[one.name])) for one in declared}
        cls.space = {name: one.search for name, one in cls.settings.items() if one.search is not None}
        cls.__init__ = _with_hints(cls.__init__)  # type: ignore[method-assign]

    def check_names(self, names: Iterable[str]) -> None:
        """Raise if one of ``names`` is not a setting; the error says which setting may be meant."""
        unknown = next((name for name in names if name not in self.settings), None)
        if unknown is not None:
            ours = ELSEWHERE.get(unknown, "")
            matches = get_close_matches(unknown, self.settings, 1)
            hint = f"; here it is called {ours}" if ours in self.settings else f"; did you mean {matches[0]}?" if matches else ""
            names_text = "" if hint else f"; it has {', '.join(self.settings)}"
            raise SettingError(f"{type(self).__name__} has no setting {unknown!r}{hint}{names_text}")

    def check_values(self) -> None:
        """Raise if a setting has an invalid value."""
        for name, declaration in self.settings.items():
            declaration.check(getattr(self, name), type(self).__name__)

    def without_effect(self, **resolved: object) -> dict[str, str]:
        """Return the settings that have no effect beside the others, with the reasons.

        ``resolved`` has the values of settings such as "auto" and, as `VALID`, whether there is validation data (by default there is).
        """
        values = {VALID: True} | {name: getattr(self, name) for name in self.settings} | resolved
        reasons = {}
        for name, declaration in self.settings.items():
            value = getattr(self, name)
            for condition, allowed in () if declaration.is_default(value) else declaration.only.items():
                current = values[condition]
                if allowed is SOME:
                    is_met = isinstance(current, np.ndarray) or bool(current)
                else:
                    is_met = any(current is choice or (type(current) is type(choice) and current == choice) for choice in allowed)
                if is_met:
                    continue
                situation = f"with {condition}={current!r}" + (" (its value here)" if condition in resolved else "")
                remedy = f"{condition}{_one_of(allowed)}"
                if condition == VALID:
                    situation, remedy = "without validation data", f'{VALID}, or bags with bagging="cross-fit"'
                reasons[name] = f"{name}={value!r} has no effect {situation}; leave it out, or give {remedy}"
        return reasons


def _with_hints(constructor: Callable[..., None]) -> Callable[..., None]:
    """Return a ``constructor`` that checks the names of settings first, and suggests others for an unknown one."""

    @wraps(constructor)
    def init(self: Configured, *args: object, **settings: object) -> None:
        self.check_names(settings)
        constructor(self, *args, **settings)

    return init


def _kinds(annotation: object) -> tuple[object, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def _is_a(value: object, kind: Any) -> bool:
    """Return whether ``value`` is of a ``kind``: a type, a literal, a function, or a generic mapping or sequence."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return any(type(value) is type(word) and value == word for word in inner)
    if _FUNCTION in (origin, kind):
        return callable(value)
    if origin is not None and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(_is_a(k, inner[0]) and _is_a(v, inner[1]) for k, v in value.items())
    if origin is not None and issubclass(origin, Sequence):
        items = list(value) if isinstance(value, np.ndarray) and value.ndim == 1 else value
        return isinstance(items, Sequence) and not isinstance(items, str) and all(_is_a(item, inner[0]) for item in items)
    if kind is bool:
        return isinstance(value, bool | np.bool_)
    if kind is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    if kind is float:
        return isinstance(value, Real) and not isinstance(value, bool | np.bool_) and bool(abs(value) <= _LARGEST)  # type: ignore[operator]
    return isinstance(value, origin or kind)


def _one_of(allowed: object) -> str:
    return "=" + " or ".join(map(repr, allowed)) if isinstance(allowed, Sequence) else ""


def _describe_kind(kind: Any) -> str:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is None:
        return _KINDS.get(kind) or inspect.cleandoc(getattr(kind, "__name__", str(kind)))
    if origin is _FUNCTION:
        return "a function"
    if issubclass(origin, Mapping):
        kinds = (_KINDS.get(part) or _join_choices([repr(word) for word in get_args(part)], comma=False) for part in inner)
        return f"a mapping of {' to '.join(kinds)}"
    if issubclass(origin, Sequence):
        return _LISTS.get(inner[0], "a list")
    return inspect.cleandoc(getattr(kind, "__name__", str(kind)))


def _join_choices(words: Sequence[str], comma: bool) -> str:
    return f"{', '.join(words[:-1])}{',' if comma else ''} or {words[-1]}" if len(words) > 1 else "".join(words)
