"""Training data in partitions: what `training_data` does to a `RankingData`, done by each partition to its own queries.

The client learns a few numbers about all of it first: the largest size of each column, which orders the documents of a query, missing
values, and the mean weight of a query. Then each partition can prepare itself, to the bits of the whole.
"""

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_128_hexdigest

from exactrank import _core
from exactrank.arrays import Table
from exactrank.data.alignment import listed
from exactrank.data.ranking_data import RankingData
from exactrank.engine.engine import Part, Partitioned
from exactrank.errors import DataError, IncompatibleError
from exactrank.objectives.bounded_gain import MOST
from exactrank.rankers.training_data import TrainingData, in_content_order, prepared, units_for, validation
from exactrank.scorers.base import Scorer
from exactrank.scorers.missing import PerFeature, TreeMissing, filled
from exactrank.threads import thread_count


def partitioned_training_data(
    data: Partitioned,
    valid: RankingData | tuple[Table, npt.ArrayLike, npt.ArrayLike] | None,
    missing: TreeMissing,
    threads: int | None,
    start: Scorer | None,
) -> TrainingData:
    """``data`` checked and prepared, with validation data that is a `RankingData`."""
    if data.described[0].weighs_documents:
        raise IncompatibleError(
            "training on partitions does not weigh single documents; leave out sample_weight, or train on a RankingData"
        )
    if missing == "mean":
        raise IncompatibleError("missing='mean' is not known for partitions; give missing='zero', or train on a RankingData")
    facts = data.ask(_Facts(thread_count(threads)))
    _check(data, facts, missing)
    largest = np.max([np.maximum(np.abs(low), np.abs(high)) for low, high, *_ in facts], axis=0)
    fill = np.zeros(data.n_features) if missing == "zero" else None
    exponent, mean, weights = 0, 1.0, None
    if data.query_weight is not None:
        exponent = -int(np.frexp(data.query_weight.max())[1])
        near_one = np.ldexp(data.query_weight, exponent)
        mean = float(near_one.mean())
        weights = near_one / mean
    whole = replace(data, prepare=_Prepare(units_for(largest), fill, exponent, mean), query_weight=weights)
    given_valid = None if valid is None else validation(valid, cast(RankingData, data))
    return TrainingData(
        data=cast(RankingData, whole),
        learnt=cast(RankingData, whole),
        valid=None if given_valid is None else prepared(given_valid, fill),
        fill=fill,
        given=cast(RankingData, data),
        given_valid=given_valid,
        facts={"queries": data.n_queries, "documents": data.n_documents, "checksum": xxh3_128_hexdigest(data.checksum.encode())},
        start=None if start is None else start.relative_to(data.offset, data.feature_names),
    )


def _check(data: Partitioned, facts: list[Any], missing: TreeMissing) -> None:
    """Raise where there is nothing to learn, or values are missing."""
    holes = np.sum([each[2] for each in facts], axis=0)
    if missing == "error" and np.any(holes):
        columns = [f"{data.feature_names[j]}: {holes[j]:,}" for j in np.flatnonzero(holes)]
        raise DataError(f"{holes.sum():,} values are missing ({listed(columns)}); fill them, or train with missing='zero' (--missing)")
    least, most = min(each[3] for each in facts), max(each[4] for each in facts)
    if least < 0 or most > MOST:
        raise DataError(f"grades are {least:g} to {most:g}; training on partitions takes grades of 0 to {MOST:g}; scale them")
    if not any(each[5] for each in facts):
        raise DataError(f"nothing to learn: every query has documents of a single grade, or equal features ({data.n_queries:,} queries)")


@dataclass(frozen=True)
class _Facts:
    """Of a partition: least and largest value and number of missing values of each column, range of grades, is there something to learn."""

    threads: int

    def __call__(self, part: Part) -> tuple[Any, Any, Any, float, float, bool]:
        data = part.data
        low, high, holes, *_ = _core.summarise_columns(data.X, self.threads)
        starts = data.indptr[:-1]
        mixed = np.flatnonzero(np.minimum.reduceat(data.y, starts) < np.maximum.reduceat(data.y, starts))
        learns = any(np.any(rows != rows[0]) for rows in (data.X[data.indptr[q] : data.indptr[q + 1]] for q in mixed))
        return low, high, holes, float(data.y.min()), float(data.y.max()), learns


@dataclass(frozen=True, eq=False)
class _Prepare:
    """What a partition does to its queries, with numbers about all of them."""

    units: npt.NDArray[np.int32]
    fill: PerFeature | None
    exponent: int
    mean: float

    def __call__(self, data: RankingData) -> RankingData:
        weights = None if data.query_weight is None else np.asarray(np.ldexp(data.query_weight, self.exponent) / self.mean)
        return in_content_order(replace(data, X=filled(data.X, self.fill, data.offset), query_weight=weights), units=self.units)
