"""Settings: each is declared once, and everything else is read off the declaration.

    class Ridge(Ranker):
        l2: float = setting(default=1e-3, help="Penalty on a feature's weight, relative to its variance.", above=0)

The annotation is the type, with the choices if there are any. From the declaration come the constructor, the check in ``fit``, the
option of the command line with its help, the table on the method's page, the search space of tuning, and what may change when training
is resumed. A constructor only stores, as scikit-learn asks; `check_values` is called by ``fit`` before any work.
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

#: In ``only``: any value but None, 0, False and an empty one.
SOME = object()
#: What other libraries call our settings, and what we called them.
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
#: In ``only``, beside settings: validation data, which the caller gives, or the folds of cross-fitting.
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
    """Numbers from ``low`` to ``high``; if both are whole, so are the numbers drawn. ``log`` draws on a logarithmic scale.

    It is what scikit-learn calls a distribution: ``RandomizedSearchCV(er.LambdaMART(), dict(er.LambdaMART.space), ...)`` takes it too.
    """

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high or (self.log and self.low <= 0):
            raise ValueError(f"{self} is empty; low must be below high, and above 0 on a logarithmic scale")

    @property
    def whole(self) -> bool:
        """Are they whole numbers?"""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def rvs(self, random_state: np.random.RandomState) -> float:
        """A number at random, as scikit-learn asks for it.

        >>> Range(1, 3).rvs(np.random.RandomState(0)), round(Range(0.01, 1, log=True).rvs(np.random.RandomState(0)), 4)
        (2, 0.1252)
        """
        u, low, high = random_state.uniform(), self.low, self.high + self.whole
        at = low * power(high / low, u) if self.log else low + u * (high - low)
        return min(int(at), int(self.high)) if self.whole else float(at)

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}" + (", logarithmic" if self.log else "")


Space = Mapping[str, Range | Sequence[Any]]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The declaration of one setting."""

    default: Any
    help: str  #: one sentence or two
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None
    only: Mapping[str, Any] = field(default_factory=dict)  #: it has an effect where these others have one of these values, or `SOME`
    search: Range | Sequence[Any] | None = None  #: what tuning may choose from
    free: bool = False  #: it may change when training is resumed
    name: str = ""
    kinds: tuple[Any, ...] = ()  #: the types that it may have: those of a union one by one

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that it may take."""
        return tuple(word for kind in self.kinds if get_origin(kind) is Literal for word in get_args(kind))

    @property
    def expected(self) -> str:
        """The values that it may take, in words.

        >>> Setting(default=1, help="", at_least=1, kinds=(int, NoneType)).expected
        'a whole number of at least 1, or None'
        """
        said = {"above": self.above, "of at least": self.at_least, "below": self.below, "at most": self.at_most}
        limits = [f"{words} {limit:{',' if isinstance(limit, int) else 'g'}}" for words, limit in said.items() if limit is not None]
        within = f" {' and '.join(limits)}" if limits else ""
        numbers = [_KINDS[kind] + within for kind in self.kinds if kind in (int, float)]
        rest = [kind for kind in self.kinds if kind not in (int, float, NoneType) and get_origin(kind) is not Literal]
        nothing = ["None"] if NoneType in self.kinds else []
        words = [*(f'"{word}"' for word in self.choices), *numbers, *map(_described, rest), *nothing]
        return _listed(words, bool(numbers) and len(words) == 2)

    @property
    def condition(self) -> str:
        """When it has an effect, as ``only with solver="adam"``; empty where it always has. What ``help`` says of data is not repeated."""
        return " and ".join(f"only with {name}" + _one_of(values) for name, values in self.only.items() if name != VALID)

    def check(self, value: Any, owner: str) -> None:
        """Raise if the setting may not have this ``value``."""
        if not any(_is_a(value, kind) for kind in self.kinds):
            near = get_close_matches(value, self.choices, 1) if isinstance(value, str) else []
            meant = f'; did you mean "{near[0]}"?' if near else ""
            raise SettingError(f"{owner}: {self.name}={value!r} is not {self.expected}{meant}")
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if is_number:
            low = (self.at_least is None or value >= self.at_least) and (self.above is None or value > self.above)
            high = (self.at_most is None or value <= self.at_most) and (self.below is None or value < self.below)
            if not low or not high:
                raise SettingError(f"{owner}: {self.name}={value!r} is out of range; give {self.expected}")

    def is_default(self, value: Any) -> bool:
        """Is it the default?"""
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
    made = Setting(
        default=default, help=help, at_least=at_least, above=above, at_most=at_most, below=below, only=only or {}, search=search, free=free
    )
    return field(default=default, kw_only=kw_only, metadata={"setting": made})


@dataclass_transform()
class Configured:
    """A class whose annotated attributes are settings; a plain value in a subclass is another default, a `ClassVar` is no setting."""

    settings: ClassVar[Mapping[str, Setting]] = {}
    space: ClassVar[Space] = {}

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        above = [one for base in reversed(cls.__mro__[1:]) for one in getattr(base, "__dataclass_fields__", {}).values()]
        inherited = {one.name: one for one in above if "setting" in one.metadata}
        for name, annotation in inspect.get_annotations(cls).items():
            form: Any = get_origin(annotation)
            if name in inherited and name in cls.__dict__ and form is not ClassVar and not isinstance(cls.__dict__[name], Field):
                default, one = cls.__dict__[name], inherited[name]
                made = replace(one.metadata["setting"], default=default)
                setattr(cls, name, field(default=default, kw_only=one.kw_only, metadata={"setting": made}))
        dataclass(eq=False, repr=False)(cls)
        hints = get_type_hints(cls)
        declared = [one for one in fields(cls) if "setting" in one.metadata]  # type: ignore[arg-type]
        cls.settings = {one.name: replace(one.metadata["setting"], name=one.name, kinds=_kinds(hints[one.name])) for one in declared}
        cls.space = {name: one.search for name, one in cls.settings.items() if one.search is not None}
        cls.__init__ = _told(cls.__init__)  # type: ignore[method-assign]

    def check_names(self, names: Iterable[str]) -> None:
        """Raise where there is no setting of one of these ``names``, and say what it may mean."""
        unknown = next((name for name in names if name not in self.settings), None)
        if unknown is not None:
            ours = ELSEWHERE.get(unknown, "")
            near = get_close_matches(unknown, self.settings, 1)
            hint = f"; here it is called {ours}" if ours in self.settings else f"; did you mean {near[0]}?" if near else ""
            known = "" if hint else f"; it has {', '.join(self.settings)}"
            raise SettingError(f"{type(self).__name__} has no setting {unknown!r}{hint}{known}")

    def check_values(self) -> None:
        """Raise if a setting has a value that it may not have."""
        for name, one in self.settings.items():
            one.check(getattr(self, name), type(self).__name__)

    def without_effect(self, **known: Any) -> dict[str, str]:
        """The settings that have no effect with the others as they are, each with the reason.

        ``known`` says which values settings such as "auto" take, and as `VALID` whether there is validation data; unless it does, all goes.
        """
        comes_to = {VALID: True} | {name: getattr(self, name) for name in self.settings} | known
        found = {}
        for name, one in self.settings.items():
            value = getattr(self, name)
            for other, allowed in () if one.is_default(value) else one.only.items():
                is_now = comes_to[other]
                if allowed is SOME:
                    goes = isinstance(is_now, np.ndarray) or bool(is_now)
                else:
                    goes = any(is_now is each or (type(is_now) is type(each) and is_now == each) for each in allowed)
                if goes:
                    continue
                beside = f"with {other}={is_now!r}" + (" (its value here)" if other in known else "")
                remedy = f"{other}{_one_of(allowed)}"
                if other == VALID:
                    beside, remedy = "without validation data", f'{VALID}, or bags with bagging="cross-fit"'
                found[name] = f"{name}={value!r} has no effect {beside}; leave it out, or give {remedy}"
        return found


def _told(made: Callable[..., None]) -> Callable[..., None]:
    """The constructor ``made``, which says what a name that it does not know may mean."""

    @wraps(made)
    def init(self: Any, *args: Any, **settings: Any) -> None:
        self.check_names(settings)
        made(self, *args, **settings)

    return init


def _kinds(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def _is_a(value: Any, kind: Any) -> bool:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return any(type(value) is type(word) and value == word for word in inner)
    if _FUNCTION in (origin, kind):
        return callable(value)
    if origin is not None and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(_is_a(k, inner[0]) and _is_a(v, inner[1]) for k, v in value.items())
    if origin is not None and issubclass(origin, Sequence):
        listed = list(value) if isinstance(value, np.ndarray) and value.ndim == 1 else value
        return isinstance(listed, Sequence) and not isinstance(listed, str) and all(_is_a(one, inner[0]) for one in listed)
    if kind is bool:
        return isinstance(value, bool | np.bool_)
    if kind is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    if kind is float:
        return isinstance(value, Real) and not isinstance(value, bool | np.bool_) and bool(abs(value) <= _LARGEST)  # type: ignore[operator]
    return isinstance(value, origin or kind)


def _one_of(allowed: Any) -> str:
    return "" if allowed is SOME else "=" + " or ".join(repr(one) for one in allowed)


def _described(kind: Any) -> str:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is None:
        return _KINDS.get(kind) or inspect.cleandoc(getattr(kind, "__name__", str(kind)))
    if origin is _FUNCTION:
        return "a function"
    if issubclass(origin, Mapping):
        kinds = (_KINDS.get(one) or _listed([repr(word) for word in get_args(one)], comma=False) for one in inner)
        return f"a mapping of {' to '.join(kinds)}"
    if issubclass(origin, Sequence):
        return _LISTS.get(inner[0], "a list")
    return inspect.cleandoc(getattr(kind, "__name__", str(kind)))


def _listed(words: Sequence[str], comma: bool) -> str:
    return f"{', '.join(words[:-1])}{',' if comma else ''} or {words[-1]}" if len(words) > 1 else "".join(words)
