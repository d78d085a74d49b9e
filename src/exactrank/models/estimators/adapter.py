"""Estimators of other libraries on queries: anything that has ``fit`` and ``predict``.

Rankers of LightGBM, XGBoost and CatBoost are told which documents belong to a query in the way of their library: ``qid``, ``group`` or
``group_id``, whichever ``fit`` takes; in a `Pipeline` the last step is told. An estimator that takes none of them, such as a regressor, is
fitted to the grades of single documents. A classifier's score is the grade that it expects,

    s(x) = sum over the grades g of  g p(g | x)                                                                 (1)

since the likeliest grade alone would tie most documents (McRank, Li, Burges & Wu 2007).

An estimator gets the seed as ``random_state`` and the threads as ``n_jobs`` if it has such settings and they are open. It gets the
validation data if it is set to stop early. Each fit makes a new one, so the estimator of the caller stays unfitted.
"""

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, NoReturn, Protocol, TypeGuard

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from exactrank._support.arrays import PerDocument
from exactrank._support.numerics import matmul
from exactrank.data.alignment import align_features, name_list
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError

Scoring = Callable[[npt.NDArray[Any]], npt.ArrayLike]  #: the score of each row of features
Writing = Callable[[str], object]  #: writes a model to a path
#: How libraries save their models: the suffix of the file, and the function that writes it.
FILES: Mapping[str, tuple[str, Callable[[Any], Writing]]] = {
    "lightgbm": (".txt", lambda learned: getattr(learned, "booster_", learned).save_model),
    "xgboost": (".json", lambda learned: learned.save_model),
    "catboost": (".cbm", lambda learned: learned.save_model),
}
#: Settings that stop training early, by any of the three libraries.
STOPPING = ("early_stopping_rounds", "early_stopping_round", "od_wait")
#: Settings of CatBoost, and others that say the same; its `get_params` names only the settings that were given.
CATBOOST_SYNONYMS = {"random_seed": ("random_state",), "verbose": ("silent", "logging_level", "verbose_eval")}


class Estimator(Protocol):
    """Learns from features and grades, and then predicts a number for each row."""

    def fit(self, *args: Any, **more: Any) -> Any:
        """Learn from features, grades and what else it takes."""

    def predict(self, *args: Any, **more: Any) -> Any:
        """A number for each row of features."""


def is_estimator(value: object) -> TypeGuard[Estimator]:
    """Has ``value`` the methods of an estimator?"""
    return not isinstance(value, type) and missing_method(value) is None


def missing_method(value: object) -> str | None:
    """The first method of an estimator that ``value``, an object or a class, lacks."""
    return next((method for method in ("fit", "predict") if not callable(getattr(value, method, None))), None)


def library_of(value: object) -> str:
    """The package that defines the class of ``value``."""
    return type(value).__module__.partition(".")[0]


def params_of(estimator: Any) -> dict[str, Any]:
    """All settings of the estimator and of its parts."""
    return dict(estimator.get_params()) if hasattr(estimator, "get_params") else {}


def fit_to_queries(
    estimator: Any,
    train: RankingData,
    valid: RankingData | None = None,
    *,
    seed: int | None = None,
    threads: int | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Any:
    """Return a new estimator, fitted to the queries of ``train``; ``settings`` replace its own.

    An estimator that is set to stop early does so by ``valid``.
    """
    made = clone(estimator, safe=False)
    changes = _open_settings(made, seed, threads) | dict(settings or {})
    if changes:
        made.set_params(**changes)
    learned = made.fit(train.values, train.y, **_fit_arguments(made, train, valid))
    return made if learned is None else learned


def scoring(learned: Any) -> Scoring:
    """Return what scores rows of features: ``predict``, or (1)."""
    if not hasattr(learned, "predict_proba") or not hasattr(learned, "classes_"):
        return learned.predict  # type: ignore[no-any-return]
    return lambda X: matmul(learned.predict_proba(X), learned.classes_)


def writing(learned: Any) -> tuple[str, Writing | None]:
    """Return the suffix of the library's model files and what writes one, or neither.

    Of an estimator in general only a pickle could be written, and those are programs, not data.
    """
    suffix, writer_of = FILES.get(library_of(learned), ("", lambda learned: None))
    return suffix, writer_of(learned)


def query_numbers(data: RankingData) -> npt.NDArray[np.int64]:
    """The number of each document's query."""
    return np.repeat(np.arange(data.n_queries), data.sizes)


def document_weights(data: RankingData) -> PerDocument | None:
    """The weight of each document times that of its query; None if the data has neither."""
    if data.sample_weight is None and data.query_weight is None:
        return None
    return (1.0 if data.sample_weight is None else data.sample_weight) * np.repeat(data.weights, data.sizes)


def check_no_pairs(name: str, data: RankingData) -> None:
    """Raise if the data has pairs, which the method called ``name`` would ignore."""
    if data.preferences is not None:
        raise DataError(
            f"{name} learns from grades alone, and the data has {len(data.preferences):,} pairs; make grades of them with"
            " er.pairs.bradley_terry, or leave this method out"
        )


def refuse_categories(name: str, data: RankingData) -> NoReturn:
    """Raise: the method called ``name`` would take codes for amounts."""
    features = name_list(list(map(repr, data.levels)))
    raise DataError(f"{name} takes numbers alone here, and {features} hold categories; encode them as numbers, or leave this method out")


def _open_settings(estimator: Any, seed: int | None, threads: int | None) -> dict[str, Any]:
    """The seed and the threads under the names that the estimator, or a part of it, has for them, if they are open."""
    params = params_of(estimator)
    if library_of(estimator) == "catboost":
        wanted = {"random_seed": seed, "thread_count": threads, "allow_writing_files": False, "verbose": False}
        wanted = {name: value for name, value in wanted.items() if not {name, *CATBOOST_SYNONYMS.get(name, ())} & params.keys()}
    else:
        known = {"random_state": seed, "n_jobs": threads}
        wanted = {name: known.get(name.rpartition("__")[2]) for name, value in params.items() if value is None}
    return {name: value for name, value in wanted.items() if value is not None}


def _fit_arguments(estimator: Any, train: RankingData, valid: RankingData | None) -> dict[str, Any]:
    """What ``fit`` gets beside features and grades: queries, weights, categories and, to stop early, validation data."""
    name = type(estimator).__name__
    if hasattr(estimator, "steps"):
        if train.levels:
            refuse_categories(name, train)
        step, last = estimator.steps[-1]  # the other steps would not change validation data, so none is given
        return {f"{step}__{argument}": value for argument, value in _fit_arguments(last, train, None).items()}
    taken = inspect.signature(estimator.fit).parameters.keys()
    check_no_pairs(name, train)
    queries = next((argument for argument in ("qid", "group_id", "group") if argument in taken), None)
    arguments: dict[str, Any] = {} if queries is None else {queries: _queries(train, queries)}
    if train.levels and library_of(estimator) != "lightgbm":
        refuse_categories(name, train)
    if train.levels:
        arguments["categorical_feature"] = [j for j, feature in enumerate(train.feature_names) if feature in train.levels]
    arguments |= _weights(name, taken, train, by_query=library_of(estimator) == "xgboost" and queries is not None)
    params = params_of(estimator)
    if valid is not None and "eval_set" in taken and any(params.get(setting) for setting in STOPPING):
        held_out = align_features(valid, train.feature_names, "the training data", train.levels)
        arguments |= _validation(held_out, taken, queries, library_of(estimator))
    return arguments


def _queries(data: RankingData, argument: str) -> npt.NDArray[Any]:
    """The size of each query, or its number for each document."""
    return data.sizes if argument == "group" else query_numbers(data)


def _weights(name: str, taken: Collection[str], train: RankingData, by_query: bool) -> dict[str, PerDocument]:
    """The weights as ``fit`` takes them: of queries, or of each document its own times that of its query. Equal ones say nothing."""
    weights = document_weights(train)
    if weights is None or np.all(weights == weights[0]):
        return {}
    if train.sample_weight is None and train.query_weight is not None:
        if by_query and "sample_weight" in taken:
            return {"sample_weight": train.query_weight}
        if "group_weight" in taken:
            return {"group_weight": weights}
    if "sample_weight" not in taken or by_query:
        what = "weights of queries only, and documents have some too" if by_query else "no weights, and the data has some"
        raise DataError(f"{name} takes {what}; drop them, or leave this method out")
    return {"sample_weight": weights}


def _validation(valid: RankingData, taken: Collection[str], queries: str | None, library: str) -> dict[str, Any]:
    """Validation data in the way of the library."""
    if library == "catboost":
        import catboost

        return {"eval_set": catboost.Pool(valid.values, valid.y, group_id=None if queries is None else _queries(valid, queries))}
    data = {"eval_X": valid.values, "eval_y": valid.y} if "eval_X" in taken else {"eval_set": [(valid.values, valid.y)]}
    return data | ({} if queries is None else {f"eval_{queries}": [_queries(valid, queries)]})
