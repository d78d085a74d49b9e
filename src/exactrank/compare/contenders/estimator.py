"""Estimators of other libraries as contenders: anything that has ``fit`` and ``predict``.

Rankers of LightGBM, XGBoost and CatBoost are told which documents belong to a query in the way of their library: ``qid``, ``group`` or
``group_id``, whichever ``fit`` takes; in a `Pipeline` the last step is told. An estimator that takes none of them, such as a regressor, is
fitted to the grades of single documents. A classifier's score is the grade that it expects,

    s(x) = sum over the grades g of  g p(g | x)                                                                 (1)

since the likeliest grade alone would tie most documents (McRank, Li, Burges & Wu 2007).

An estimator gets the seed as ``random_state`` and the threads as ``n_jobs`` where it has such settings and they are open. It gets the
validation data where it is set to stop early. `sklearn.base.clone` makes a new one for each fit, so what was given is never fitted.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NoReturn, Protocol

import numpy as np
import numpy.typing as npt
import xxhash
from sklearn.base import clone

from exactrank.arrays import PerDocument
from exactrank.compare.contender import Contender, Fitted, Task
from exactrank.compare.results import Point, Weights
from exactrank.data.alignment import aligned, listed
from exactrank.data.levels import Levels
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError
from exactrank.numerics import matmul
from exactrank.scorers.model import plain

#: Characters of a name for tables; an estimator with more to tell is called by its class alone.
LONGEST_NAME = 60
#: Of an object, in its `repr`: another one in each process.
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_PLAIN = (bool, int, float, str, tuple, np.ndarray)
#: Settings that do not change what is learned, so that no name needs them.
QUIET = frozenset({"allow_writing_files", "logging_level", "n_jobs", "silent", "thread_count", "verbose", "verbosity"})
#: How libraries save their models: the suffix of the file, and the method that writes it.
SAVED: Mapping[str, tuple[str, Callable[[Any], Callable[[str], object]]]] = {
    "lightgbm": (".txt", lambda learned: learned.booster_.save_model),
    "xgboost": (".json", lambda learned: learned.save_model),
    "catboost": (".cbm", lambda learned: learned.save_model),
}


class Estimator(Protocol):
    """What learns from features and grades, and then gives numbers."""

    def fit(self, *args: Any, **more: Any) -> Any:
        """Learn from features, grades and what else it takes."""

    def predict(self, *args: Any, **more: Any) -> Any:
        """A number for each row of features."""


@dataclass(frozen=True, repr=False, eq=False)
class EstimatorContender(Contender):
    """The ``estimator``, which each fit makes anew."""

    name: str
    estimator: Any

    def __post_init__(self) -> None:
        for method in ("fit", "predict"):
            if not callable(getattr(self.estimator, method, None)):
                what = type(self.estimator).__name__
                raise DataError(f"{what} has no {method}; give an estimator with fit and predict, a ranker or a Contender")

    def __repr__(self) -> str:
        return call_of(self.estimator)

    @property
    def about(self) -> str:
        return (inspect.getdoc(type(self.estimator)) or type(self.estimator).__qualname__).partition("\n")[0]

    @property
    def libraries(self) -> tuple[str, ...]:
        return tuple(sorted({type(each).__module__ for each in (self.estimator, *_params(self.estimator).values())} - {"builtins"}))

    @property
    def fingerprint(self) -> str:
        return repr(identity(self.estimator))

    def fit(self, task: Task, settings: Mapping[str, Any]) -> Fitted:
        estimator, train = clone(self.estimator, safe=False), task.fold.train
        check_pairs(self.name, train)
        own = _own_settings(estimator, task) | dict(settings)
        if own:
            estimator.set_params(**own)
        found = estimator.fit(train.values, train.y, **_told(estimator, train, task.fold.valid))
        learned = estimator if found is None else found
        suffix, write = SAVED.get(type(learned).__module__.partition(".")[0], ("", lambda learned: None))
        return FittedEstimator(
            plain(_params(learned)), _scoring(learned), (), None, train.feature_names, write(learned), suffix, train.levels
        )


@dataclass(frozen=True, eq=False)
class FittedEstimator:
    """What another library has learned."""

    settings: Mapping[str, Any]
    predict: Callable[[npt.NDArray[Any]], npt.ArrayLike]
    curve: tuple[Point, ...] = ()
    weights: Weights | None = None
    feature_names: tuple[str, ...] | None = None  #: in the order of its columns; None: as they come
    write: Callable[[str], object] | None = None  #: to a path
    suffix: str = ""  #: of files that hold such models
    levels: Levels = field(default_factory=dict)  #: of the features that are categories

    def scores(self, part: str, data: RankingData) -> PerDocument:
        """What it predicts."""
        ordered = data if self.feature_names is None else aligned(data, self.feature_names, levels=self.levels)
        return data.ungrouped(np.asarray(self.predict(ordered.values), np.float64).reshape(-1))

    def save(self, folder: Path, name: str) -> None:
        """In the library's own format; of an estimator in general only a pickle could be written, and those are programs, not data."""
        if self.write is not None:
            self.write(str(folder / f"{name}{self.suffix}"))


def check_pairs(name: str, data: RankingData) -> None:
    """Raise where the data has pairs, which the method called ``name`` would ignore."""
    if data.preferences is not None:
        raise DataError(
            f"{name} learns from grades alone, and the data has {len(data.preferences):,} pairs; make grades of them with xr.bradley_terry,"
            " or leave this method out"
        )


def refuse_categories(name: str, data: RankingData) -> NoReturn:
    """Raise: the method called ``name`` would take codes for amounts."""
    named = listed(list(map(repr, data.levels)))
    raise DataError(f"{name} takes numbers alone here, and {named} hold categories; encode them as numbers, or leave this method out")


def call_of(value: Any, leave_out: frozenset[str] = frozenset()) -> str:
    """An estimator in one line with the settings that are not its defaults, other values as Python writes them.

    Settings called as those in ``leave_out`` are not shown.

    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> call_of(make_pipeline(StandardScaler(), Ridge(alpha=2.0)))
    'StandardScaler + Ridge(alpha=2.0)'
    """
    if hasattr(value, "steps"):
        return " + ".join(call_of(step, leave_out) for _, step in value.steps if step not in (None, "passthrough"))
    if isinstance(value, FunctionType | type):
        return value.__name__
    if not callable(getattr(value, "fit", None)):
        return " ".join(ADDRESS.sub("", repr(value)).split())
    changed = {name: call_of(own, leave_out) for name, own in _changed(value).items() if name not in leave_out}
    return type(value).__name__ + (f"({', '.join(f'{name}={own}' for name, own in changed.items())})" if changed else "")


def name_of(estimator: Any) -> str:
    """What tables call the estimator."""
    whole = call_of(estimator, QUIET)
    return (
        whole
        if len(whole) <= LONGEST_NAME
        else " + ".join(type(step).__name__ for _, step in getattr(estimator, "steps", [("", estimator)]))
    )


def identity(value: Any, seen: frozenset[int] = frozenset()) -> Any:
    """What tells ``value`` from others in any process: the class and the settings of an estimator, the content of an array.

    Of what is defined outside of modules that can be imported, as in a notebook, it is also the code, and what of the notebook the code
    names; ``seen`` are functions and classes that are being looked at.
    """
    if isinstance(value, np.ndarray):
        return [str(value.dtype), list(value.shape), xxhash.xxh3_64(np.ascontiguousarray(value).tobytes()).hexdigest()]
    if isinstance(value, Mapping):
        return {str(name): identity(own, seen) for name, own in value.items()}
    if isinstance(value, list | tuple):
        return [identity(own, seen) for own in value]
    if isinstance(value, FunctionType | type):
        name, within = f"{value.__module__}:{value.__qualname__}", seen | {id(value)}
        local = value.__module__ == "__main__" or "<" in value.__qualname__
        if not local or id(value) in seen:
            return name
        if isinstance(value, type):
            written = {key: own for key, own in sorted(vars(value).items()) if isinstance(own, FunctionType) or not key.startswith("__")}
            return [name, {key: identity(own, within) for key, own in written.items() if isinstance(own, (*_PLAIN, FunctionType))}]
        cells = [identity(cell.cell_contents, within) for cell in value.__closure__ or ()]
        named = sorted(_names(value.__code__) & value.__globals__.keys())
        used = {key: value.__globals__[key] for key in named}
        return [name, _code(value.__code__), identity(value.__defaults__, within), cells, _own(used, value.__module__, within)]
    if callable(getattr(value, "fit", None)):
        own = value.get_params(deep=False) if hasattr(value, "get_params") else vars(value)
        return [identity(type(value), seen), identity(own, seen)]
    return plain(value)


def _own(used: Mapping[str, Any], module: str, seen: frozenset[int]) -> dict[str, Any]:
    """The functions, classes and plain values among ``used`` that ``module`` defines."""
    return {
        name: identity(value, seen)
        for name, value in used.items()
        if isinstance(value, _PLAIN) or (isinstance(value, FunctionType | type) and value.__module__ == module)
    }


def _names(code: CodeType) -> set[str]:
    """All names that it looks up, in functions inside of it too."""
    return set(code.co_names).union(*(_names(each) for each in code.co_consts if isinstance(each, CodeType)))


def _code(code: CodeType) -> Any:
    """What a function does, wherever it stands."""
    constants = [_code(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts]
    return [xxhash.xxh3_64(code.co_code).hexdigest(), list(code.co_names), constants]


def _params(estimator: Any) -> dict[str, Any]:
    return dict(estimator.get_params()) if hasattr(estimator, "get_params") else {}


def _changed(estimator: Any) -> dict[str, Any]:
    """The settings that are not the defaults, which the class itself knows best; some take settings that their signature does not name."""
    own = estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}
    try:
        defaults = type(estimator)().get_params(deep=False)
    except Exception:  # of a class that needs settings
        defaults = {}
    alike = {name for name in own.keys() & defaults.keys() if identity(own[name]) == identity(defaults[name])}
    return {name: value for name, value in own.items() if name not in alike}


def _own_settings(estimator: Any, task: Task) -> dict[str, Any]:
    """The seed and the threads under the names that the estimator, or a part of it, has for them, where they are open."""
    given = {"random_state": task.seed, "n_jobs": task.threads}
    found = _params(estimator)
    if type(estimator).__module__.partition(".")[0] == "catboost":  # it tells only of settings that were given
        defaults = {"random_seed": task.seed, "thread_count": task.threads, "allow_writing_files": False}
        taken = {"random_seed": "random_state"}
        return {name: value for name, value in defaults.items() if found.get(name) is None and taken.get(name) not in found}
    return {name: given[last] for name, value in found.items() if value is None and (last := name.rpartition("__")[2]) in given}


def _told(estimator: Any, train: RankingData, valid: RankingData) -> dict[str, Any]:
    """What ``fit`` gets beside features and grades: queries, weights and, to stop early, validation data."""
    if hasattr(estimator, "steps"):
        name, last = estimator.steps[-1]
        if train.levels:
            refuse_categories(call_of(estimator, QUIET), train)
        return {f"{name}__{key}": value for key, value in _told(last, train, valid).items() if not key.startswith("eval_")}
    takes, library = inspect.signature(estimator.fit).parameters, type(estimator).__module__.partition(".")[0]
    way = next((name for name in ("qid", "group_id", "group") if name in takes), None)
    told: dict[str, Any] = {} if way is None else {way: _queries(train, way)}
    if train.levels and library != "lightgbm":
        refuse_categories(type(estimator).__name__, train)
    if train.levels:
        told["categorical_feature"] = [j for j, name in enumerate(train.feature_names) if name in train.levels]
    weight = _weight(type(estimator).__name__, takes, library, train)
    told |= {} if weight is None else {"sample_weight": weight}
    stops = any(_params(estimator).get(name) for name in ("early_stopping_rounds", "early_stopping_round"))
    if stops and "eval_set" in takes and way is not None:
        held_out = aligned(valid, train.feature_names, "the training data", train.levels)
        if library == "catboost":
            import catboost

            return told | {"eval_set": catboost.Pool(held_out.values, held_out.y, group_id=_queries(held_out, way))}
        told |= {"eval_set": [(held_out.values, held_out.y)], f"eval_{way}": [_queries(held_out, way)]}
    return told


def _queries(data: RankingData, way: str) -> npt.NDArray[Any]:
    """The size of each query, or its number for each document."""
    return data.sizes if way == "group" else np.repeat(np.arange(data.n_queries), data.sizes)


def _weight(name: str, takes: Mapping[str, Any], library: str, train: RankingData) -> PerDocument | None:
    """What ``fit`` takes as ``sample_weight``: of each document its own times that of its query; of each query for XGBoost's ranker."""
    if train.sample_weight is None and train.query_weight is None:
        return None
    by_query = library == "xgboost" and "qid" in takes
    if "sample_weight" not in takes or (by_query and train.sample_weight is not None):
        what = "weights of queries only, and documents have some too" if by_query else "no weights, and the data has some"
        raise DataError(f"{name} takes {what}; drop them, or leave this method out")
    if by_query:
        return train.query_weight
    return (1.0 if train.sample_weight is None else train.sample_weight) * np.repeat(train.weights, train.sizes)


def _scoring(learned: Any) -> Callable[[npt.NDArray[Any]], npt.ArrayLike]:
    """What scores documents: ``predict``, or (1)."""
    if not hasattr(learned, "predict_proba") or not hasattr(learned, "classes_"):
        return learned.predict  # type: ignore[no-any-return]
    return lambda X: matmul(learned.predict_proba(X), learned.classes_)
