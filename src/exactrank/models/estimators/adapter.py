"""Estimators of other libraries on queries: anything that has ``fit`` and ``predict``.

Rankers of LightGBM, XGBoost and CatBoost get the query of each document by the argument of their library: ``qid``, ``group`` or
``group_id``, whichever ``fit`` takes; in a `Pipeline` the last step gets it. An estimator that takes none of them, such as a regressor, is
fitted to the grades of single documents. A classifier's score is its expected grade,

    s(x) = sum over the grades g of  g p(g | x)                                                                 (1)

since the likeliest grade alone would tie most documents (McRank, Li, Burges & Wu 2007).

An estimator gets the seed as ``random_state`` and the threads as ``n_jobs`` if it has such settings and they are None. It gets the
validation data if it is configured to stop early. Each fit makes a new estimator, so that of the caller stays unfitted.
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

ScoreFunction = Callable[[npt.NDArray[Any]], npt.ArrayLike]  #: returns the score of each row of features
ModelWriter = Callable[[str], object]  #: writes a model to a path
#: The files in which libraries save their models: the suffix, and the method that writes one.
FILES: Mapping[str, tuple[str, Callable[[Any], ModelWriter]]] = {
    "lightgbm": (".txt", lambda learned: getattr(learned, "booster_", learned).save_model),
    "xgboost": (".json", lambda learned: learned.save_model),
    "catboost": (".cbm", lambda learned: learned.save_model),
}
#: Settings that stop training early, by any of the three libraries.
STOPPING = ("early_stopping_rounds", "early_stopping_round", "od_wait")
#: Settings of CatBoost and their synonyms; its `get_params` has only the settings that were given, by the names they were given by.
CATBOOST_SYNONYMS = {"random_seed": ("random_state",), "verbose": ("silent", "logging_level", "verbose_eval")}


class Estimator(Protocol):
    """A model of another library that learns from features and grades, and then predicts a number for each row."""

    @property
    def fit(self) -> Callable[..., object]:
        """Learn from features, grades and the other arguments that it takes."""

    @property
    def predict(self) -> Callable[..., npt.ArrayLike]:
        """Return a number for each row of features."""


def is_estimator(value: object) -> TypeGuard[Estimator]:
    """Return whether ``value`` has the methods of an estimator."""
    return not isinstance(value, type) and missing_method(value) is None


def missing_method(value: object) -> str | None:
    """Return the first method of an estimator that ``value``, an object or a class, lacks."""
    return next((method for method in ("fit", "predict") if not callable(getattr(value, method, None))), None)


def library_of(value: object) -> str:
    """Return the package that defines the class of ``value``."""
    return type(value).__module__.partition(".")[0]


def params_of(estimator: object) -> dict[str, object]:
    """Return all settings of the estimator and of its parts."""
    return dict(estimator.get_params()) if hasattr(estimator, "get_params") else {}


def fit_to_queries(
    estimator: object,
    train: RankingData,
    valid: RankingData | None = None,
    *,
    seed: int | None = None,
    threads: int | None = None,
    settings: Mapping[str, object] | None = None,
) -> Estimator:
    """Return a new estimator, fitted to the queries of ``train``; ``settings`` replace its own.

    An estimator that is configured to stop early does so by ``valid``.
    """
    copy = clone(estimator, safe=False)
    changes = _open_settings(copy, seed, threads) | dict(settings or {})
    if changes:
        copy.set_params(**changes)
    fitted: Estimator | None = copy.fit(train.values, train.y, **_fit_arguments(copy, train, valid))
    return copy if fitted is None else fitted


def score_function(estimator: Estimator) -> ScoreFunction:
    """Return the function by which a fitted estimator scores rows of features: ``predict``, or (1)."""
    if not hasattr(estimator, "predict_proba") or not hasattr(estimator, "classes_"):
        return estimator.predict
    return lambda X: matmul(estimator.predict_proba(X), estimator.classes_)


def model_writer(estimator: object) -> tuple[str, ModelWriter | None]:
    """Return the suffix of the library's model files and a function that writes one; None if the library has no such files.

    Most estimators could only be pickled, and a pickle is a program, not data.
    """
    suffix, writer_of = FILES.get(library_of(estimator), ("", lambda estimator: None))
    return suffix, writer_of(estimator)


def document_weights(data: RankingData) -> PerDocument | None:
    """Return the weight of each document times that of its query; None if the data has neither."""
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
    """Raise: the method called ``name`` would read the codes of categories as amounts."""
    features = name_list(list(map(repr, data.levels)))
    raise DataError(
        f"{name} takes numbers alone here, and there are categories in {features}; encode them as numbers, or leave this method out"
    )


def _open_settings(estimator: Estimator, seed: int | None, threads: int | None) -> dict[str, object]:
    """Return the seed and the threads by the names that the estimator, or a part of it, has for them, if they are not set."""
    params = params_of(estimator)
    if library_of(estimator) == "catboost":
        values = {"random_seed": seed, "thread_count": threads, "allow_writing_files": False, "verbose": False}
        values = {name: value for name, value in values.items() if not {name, *CATBOOST_SYNONYMS.get(name, ())} & params.keys()}
    else:
        value_of = {"random_state": seed, "n_jobs": threads}
        values = {name: value_of.get(name.rpartition("__")[2]) for name, value in params.items() if value is None}
    return {name: value for name, value in values.items() if value is not None}


def _fit_arguments(estimator: Estimator, train: RankingData, valid: RankingData | None) -> dict[str, object]:
    """Return the arguments of ``fit`` besides features and grades: queries, weights, categories and, to stop early, validation data."""
    name = type(estimator).__name__
    if hasattr(estimator, "steps"):
        if train.levels:
            refuse_categories(name, train)
        step, last = estimator.steps[-1]  # it gets no validation data, which the other steps would not have transformed
        return {f"{step}__{argument}": value for argument, value in _fit_arguments(last, train, None).items()}
    parameters = inspect.signature(estimator.fit).parameters.keys()
    check_no_pairs(name, train)
    queries = next((argument for argument in ("qid", "group_id", "group") if argument in parameters), None)
    arguments: dict[str, object] = {} if queries is None else {queries: _queries(train, queries)}
    if train.levels and library_of(estimator) != "lightgbm":
        refuse_categories(name, train)
    if train.levels:
        arguments["categorical_feature"] = [j for j, feature in enumerate(train.feature_names) if feature in train.levels]
    arguments |= _weights(name, parameters, train, by_query=library_of(estimator) == "xgboost" and queries is not None)
    params = params_of(estimator)
    if valid is not None and "eval_set" in parameters and any(params.get(setting) for setting in STOPPING):
        held_out = align_features(valid, train.feature_names, "the training data", train.levels)
        arguments |= _validation(held_out, parameters, queries, library_of(estimator))
    return arguments


def _queries(data: RankingData, argument: str) -> npt.NDArray[np.int64]:
    """Return the sizes of queries for ``group``, or the number of each document's query."""
    return data.sizes if argument == "group" else data.query_numbers


def _weights(name: str, parameters: Collection[str], train: RankingData, by_query: bool) -> dict[str, PerDocument]:
    """Return the weights that ``fit`` takes: of queries, or of documents times those of their queries; none if all are equal."""
    weights = document_weights(train)
    if weights is None or np.all(weights == weights[0]):
        return {}
    if train.sample_weight is None and train.query_weight is not None:
        if by_query and "sample_weight" in parameters:
            return {"sample_weight": train.query_weight}
        if "group_weight" in parameters:
            return {"group_weight": weights}
    if "sample_weight" not in parameters or by_query:
        trouble = "weights of queries only, and documents have some too" if by_query else "no weights, and the data has some"
        raise DataError(f"{name} takes {trouble}; drop them, or leave this method out")
    return {"sample_weight": weights}


def _validation(valid: RankingData, parameters: Collection[str], queries: str | None, library: str) -> dict[str, object]:
    """Return validation data as arguments of the library's ``fit``."""
    if library == "catboost":
        import catboost

        return {"eval_set": catboost.Pool(valid.values, valid.y, group_id=None if queries is None else _queries(valid, queries))}
    data: dict[str, object] = {"eval_set": [(valid.values, valid.y)]}
    if "eval_X" in parameters:
        data = {"eval_X": valid.values, "eval_y": valid.y}
    return data | ({} if queries is None else {f"eval_{queries}": [_queries(valid, queries)]})
