"""Data as rankers get it: grouped by query, with something to learn, without missing values.

The documents of a query come in an order that their content says (`exactrank.rankers.content_order`), and weights have mean 1: no model
depends on where a row stood, nor on the unit in which weights were given.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from exactrank.arrays import PerDocument, Table
from exactrank.data.alignment import aligned
from exactrank.data.checksum import checksum
from exactrank.data.ranking_data import RankingData, check_positive_weight
from exactrank.errors import DataError
from exactrank.measures.base import Measure
from exactrank.rankers.content_order import in_content_order
from exactrank.scorers.base import Scorer
from exactrank.scorers.missing import PerFeature, TreeMissing, fill_values, filled, refuse_missing

LARGEST_GRADE = 2.0**53
Weights = npt.NDArray[np.float64]  #: one for each document, or for each query


@dataclass(frozen=True, eq=False)
class TrainingData:
    """What a ranker trains on and, where there is validation data, chooses by."""

    data: RankingData
    valid: RankingData | None  #: with the same features
    fill: PerFeature | None  #: what stands for missing values in both
    given: RankingData  #: what `data` was, in the caller's order
    given_valid: RankingData | None
    facts: Mapping[str, Any]  #: of the data as it was given

    def reached(self, measure: Measure, scorer: Scorer, threads: int | None) -> tuple[float, float | None]:
        """What ``scorer`` comes to on the training and the validation data as they were given: ties may be broken by that order."""
        value = _value(measure, self.given, self.data.ungrouped(scorer.score(self.data.X, threads)), threads)
        if self.valid is None or self.given_valid is None:
            return value, None
        return value, _value(measure, self.given_valid, self.valid.ungrouped(scorer.score(self.valid.X, threads)), threads)


def judged(
    X: Table,
    y: npt.ArrayLike | None = None,
    *,
    qid: npt.ArrayLike | None = None,
    group: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    query_weight: npt.ArrayLike | None = None,
) -> RankingData:
    """``X`` itself where it is a `RankingData`, else its rows with grades ``y`` and ``qid`` or ``group``."""
    if isinstance(X, RankingData):
        given = {"y": y, "qid": qid, "group": group, "sample_weight": sample_weight, "query_weight": query_weight}
        besides = [name for name, value in given.items() if value is not None]
        if besides:
            raise DataError(f"RankingData holds {', '.join(besides)} already; leave out {'them' if len(besides) > 1 else 'it'}")
        return X
    if y is None:
        raise DataError("there are no grades; give y and qid (or group), or a RankingData")
    return RankingData.from_arrays(X, y, qid=qid, group=group, sample_weight=sample_weight, query_weight=query_weight)


def training_data(
    data: RankingData, valid: RankingData | tuple[Table, npt.ArrayLike, npt.ArrayLike] | None, missing: TreeMissing, threads: int | None
) -> TrainingData:
    """``data`` and ``valid``, a `RankingData` or ``(X, y, qid)``, checked and with missing values filled, unless they are kept."""
    held_out = None if valid is None else _validation(valid, data)
    _check_something_to_learn(data)
    if held_out is not None and missing == "error":
        refuse_missing(held_out.X, held_out.feature_names, threads)
    summed = in_content_order(data) if missing == "mean" else data  # a sum of floating-point numbers depends on their order
    fill = None if missing == "keep" else fill_values(summed.X, data.feature_names, missing, threads, data.offset)
    whole = _prepared(data, fill)
    _check_features_vary(whole)
    return TrainingData(
        data=whole,
        valid=None if held_out is None else _prepared(held_out, fill),
        fill=fill,
        given=data,
        given_valid=held_out,
        facts={"queries": data.n_queries, "documents": data.n_documents, "checksum": checksum(data)},
    )


def _value(measure: Measure, data: RankingData, scores: PerDocument, threads: int | None) -> float:
    return measure.on(data, threads=threads).mean(data.grouped(scores))


def _prepared(data: RankingData, fill: PerFeature | None) -> RankingData:
    """``data`` with ``fill`` in the place of missing values, the documents of each query in content order, and weights of mean 1.

    The order goes by weights that are near 1 by a power of two, which rounds nothing; their sum, which does, is taken in that order.
    """
    for name, weight in _weights_by(np.asarray, data).items():
        check_positive_weight(name, weight)
    whole = replace(data, X=filled(data.X, fill, data.offset), **_weights_by(_near_one, data))
    found = in_content_order(whole)
    return replace(found, **_weights_by(_of_mean_one, found))


def _weights_by(function: Callable[[Weights], Weights], data: RankingData) -> dict[str, Any]:
    """What ``function`` makes of the weights that there are."""
    found = {"sample_weight": data.sample_weight, "query_weight": data.query_weight}
    return {name: function(weight) for name, weight in found.items() if weight is not None}


def _near_one(weight: Weights) -> Weights:
    """``weight`` over a power of two, the largest then from 1/2 to 1: so no sum overflows, and no quotient loses digits."""
    return np.asarray(np.ldexp(weight, -np.frexp(weight.max())[1]))


def _of_mean_one(weight: Weights) -> Weights:
    return np.asarray(weight / weight.mean())


def check_measure_tells_apart(measure: Measure, data: RankingData, threads: int | None) -> None:
    """Raise where every ranking of ``data`` is worth the same: the best and the worst order of grades are, for every query."""
    bound = replace(measure, ties="input").on(data, threads=threads)
    best, worst = bound.values(data.y), bound.values(-data.y)
    if np.isinf(best).any():
        raise DataError(
            f"{measure} is infinite: the gain of grade {data.y.max():g} overflows; use gain='linear', or nDCG, which has no limit"
        )
    if not np.any(best != worst, where=~np.isnan(best)):
        raise DataError(
            f"nothing to learn: {measure} is the same for every ranking of every query; choose a measure that counts"
            f" grades such as these ({data.y.min():g} to {data.y.max():g}) and lists this long (up to {data.longest})"
        )


def _validation(valid: RankingData | tuple[Table, npt.ArrayLike, npt.ArrayLike] | None, data: RankingData) -> RankingData:
    """The validation data with the features of ``data``, kept as differences from the same offset."""
    if isinstance(valid, RankingData):
        return aligned(valid, data.feature_names, "the training data").relative_to(data.offset)
    if not isinstance(valid, tuple) or len(valid) != 3:
        raise DataError(f"valid must be a RankingData or (X, y, qid), got {type(valid).__name__}")
    X, y, qid = valid
    if hasattr(X, "columns"):
        return aligned(RankingData.from_arrays(X, y, qid=qid), data.feature_names, "the training data").relative_to(data.offset)
    offset = np.zeros(data.n_features) if data.offset is None else data.offset
    return RankingData.from_arrays(X, y, qid=qid, feature_names=data.feature_names, offset=offset)


def _check_something_to_learn(data: RankingData) -> None:
    huge = np.flatnonzero(np.abs(data.y) > LARGEST_GRADE)
    if len(huge):
        row = huge[0] if data.order is None else data.order[huge[0]]
        raise DataError(
            f"grade of row {row} is {data.y[huge[0]]:g}; training takes grades of at most 2^53 in size, beyond which whole numbers are"
            " not told apart; scale them down"
        )
    if data.n_features == 0:
        raise DataError("nothing to learn: the data has no features; give X, or runs that become features")
    if not np.any(_mixed_queries(data)):
        raise DataError(
            f"nothing to learn: every query has documents of a single grade ({data.n_queries:,} queries),"
            " so each ranking is as good as any other; give queries with documents of different grades"
        )


def _check_features_vary(data: RankingData) -> None:
    for q in np.flatnonzero(_mixed_queries(data)):
        rows = data.X[data.indptr[q] : data.indptr[q + 1]]
        if np.any(rows != rows[0]):
            return
    raise DataError(
        f"nothing to learn: all {data.n_features:,} features are constant within each query, so no model can tell documents apart;"
        " give features that differ between the documents of a query"
    )


def _mixed_queries(data: RankingData) -> npt.NDArray[np.bool_]:
    """Which queries have documents of different grades."""
    return np.minimum.reduceat(data.y, data.indptr[:-1]) < np.maximum.reduceat(data.y, data.indptr[:-1])
