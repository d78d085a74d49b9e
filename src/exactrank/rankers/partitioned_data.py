"""Training data in partitions: what `training_data` does to a `RankingData`, done by each partition to its own queries.

The client learns a few numbers about all of it first: the largest size of each column, which orders the documents of a query, missing
values and what stands for them, and the mean weights of queries and documents. Then each partition can prepare itself, to the bits of the
whole.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_128_hexdigest

from exactrank import _core
from exactrank.arrays import Matrix, Table
from exactrank.data.alignment import listed
from exactrank.data.blocks import wide_blocks
from exactrank.data.levels import Levels
from exactrank.data.precision import Offset
from exactrank.data.ranking_data import RankingData
from exactrank.data.whole import Whole
from exactrank.engine.engine import Part, Partitioned, Prepare
from exactrank.errors import DataError
from exactrank.measures.base import Measure
from exactrank.rankers.training_data import (
    TrainingData,
    check_grades,
    facts_of_start,
    in_content_order,
    prepared,
    queries_with_pairs,
    units_for,
    validation,
    weights_by_block,
)
from exactrank.scorers.base import Scorer
from exactrank.scorers.missing import PerFeature, TreeMissing, filled, mean_values, refuse_missing, sorted_sums, stand_ins
from exactrank.threads import thread_count


def partitioned_training_data(
    data: Partitioned,
    valid: RankingData | Partitioned | tuple[Table, npt.ArrayLike, npt.ArrayLike] | None,
    missing: TreeMissing,
    threads: int | None,
    start: Scorer | None,
) -> TrainingData:
    """``data`` checked and prepared, with validation data that is a `RankingData` or in partitions too."""
    facts = _facts(data, missing, threads)
    if not any(each.learns for each in facts):
        raise DataError(f"nothing to learn: every query has documents of a single grade, or equal features ({data.n_queries:,} queries)")
    fill = _fill(data, facts, missing) if start is None else start.fill
    whole = _prepared(data, facts, fill)
    given_valid, ready = (None, None) if valid is None else _prepared_valid(valid, data, missing, fill, threads)
    return TrainingData(
        data=cast(RankingData, whole),
        learnt=cast(RankingData, whole),
        valid=ready,
        fill=fill,
        given=cast(RankingData, data),
        given_valid=given_valid,
        facts={"queries": data.n_queries, "documents": data.n_documents, "checksum": xxh3_128_hexdigest(data.checksum.encode())}
        | facts_of_start(start),
        start=None if start is None else start.relative_to(data.offset, data.feature_names),
    )


def graded_by(measure: Measure, data: RankingData | Partitioned) -> RankingData:
    """``data``, also in partitions, with what ``measure`` reads for its grades."""
    if isinstance(data, Partitioned):
        return cast(RankingData, replace(data, prepare=_Graded(measure)))
    return replace(data, y=measure.grades(data))


@dataclass(frozen=True)
class _Graded:
    """What `graded_by` does to a partition."""

    measure: Measure

    def __call__(self, data: RankingData) -> RankingData:
        return graded_by(self.measure, data)


def _prepared_valid(
    valid: RankingData | Partitioned | tuple[Table, npt.ArrayLike, npt.ArrayLike],
    data: Partitioned,
    missing: TreeMissing,
    fill: PerFeature | None,
    threads: int | None,
) -> tuple[RankingData, RankingData]:
    """Validation data with the features of ``data``, as given and prepared."""
    if not isinstance(valid, Partitioned):
        own = validation(valid, cast(RankingData, data))
        if missing == "error":
            refuse_missing(own.X, own.feature_names, threads)
        return own, prepared(own, fill)
    aligned = replace(valid, prepare=_Aligned(_Form(data.feature_names, data.offset, data.levels), valid.prepare))
    return cast(RankingData, aligned), cast(RankingData, _prepared(aligned, _facts(aligned, missing, threads), fill))


@dataclass(frozen=True, eq=False)
class _Facts:
    """What a partition says of itself."""

    low: Matrix
    high: Matrix
    holes: npt.NDArray[np.int64]  #: missing values of each column
    grades: tuple[float, float]
    learns: bool  #: is there a query to learn from?
    sums: list[PerFeature]  #: of the columns, by wide blocks, where means are wanted
    heaviest: float  #: weight of a document


def _facts(data: Partitioned, missing: TreeMissing, threads: int | None) -> list[_Facts]:
    """Those of all partitions; an error where values are missing, or grades are too large."""
    facts = data.ask(partial(_facts_of, thread_count(threads), missing == "mean"))
    holes = np.sum([each.holes for each in facts], axis=0)
    if missing == "error" and np.any(holes):
        columns = [f"{data.feature_names[j]}: {holes[j]:,}" for j in np.flatnonzero(holes)]
        remedy = 'fill them, or train with missing="zero" or missing="mean" (--missing)'
        raise DataError(f"{holes.sum():,} values are missing ({listed(columns)}); {remedy}")
    check_grades(*_grades(facts))
    return facts


def _grades(facts: list[_Facts]) -> tuple[float, float]:
    """The least and the largest of all."""
    return min(each.grades[0] for each in facts), max(each.grades[1] for each in facts)


def _facts_of(threads: int, means: bool, part: Part) -> _Facts:
    data, starts = part.data, part.data.indptr[:-1]
    low, high, holes, *_ = _core.summarise_columns(data.X, threads)
    differ = np.minimum.reduceat(data.y, starts) < np.maximum.reduceat(data.y, starts)
    mixed = np.flatnonzero(differ | queries_with_pairs(data))
    learns = any(np.any(rows != rows[0]) for rows in (data.X[data.indptr[q] : data.indptr[q + 1]] for q in mixed))
    sums = sorted_sums(data.X, data.indptr[wide_blocks(data.indptr)]) if means else []
    heaviest = 0.0 if data.sample_weight is None else float(data.sample_weight.max())
    return _Facts(low, high, holes, (float(data.y.min()), float(data.y.max())), learns, sums, heaviest)


def _fill(data: Partitioned, facts: list[_Facts], missing: TreeMissing) -> PerFeature | None:
    """What stands for missing values."""
    if missing == "mean":
        count = data.n_documents - np.sum([each.holes for each in facts], axis=0)
        return mean_values([block for each in facts for block in each.sums], count, data.offset)
    return np.zeros(data.n_features) if missing == "zero" else None


def _prepared(data: Partitioned, facts: list[_Facts], fill: PerFeature | None) -> Partitioned:
    """``data`` whose partitions prepare themselves as `prepared` does it."""
    largest = np.max([np.maximum(np.abs(each.low), np.abs(each.high)) for each in facts], axis=0)
    if fill is not None:
        holes = np.sum([each.holes for each in facts], axis=0) > 0
        largest = np.where(holes, np.maximum(largest, np.abs(stand_ins(fill, data.offset))), largest)
    queries, documents, weights = _Unit(), _Unit(), None
    if data.query_weight is not None:
        exponent = -int(np.frexp(data.query_weight.max())[1])
        near_one = np.ldexp(data.query_weight, exponent)
        queries = _Unit(exponent, float(near_one.mean()))
        weights = near_one / queries.mean
    if data.described[0].weighs_documents:
        exponent = -int(np.frexp(max(each.heaviest for each in facts))[1])
        sums = [block for answer in data.ask(partial(_weights_near_one, exponent)) for block in answer]
        documents = _Unit(exponent, math.fsum(sums) / data.n_documents)
    first = data.prepare.first if isinstance(data.prepare, _Aligned) else data.prepare
    column = first.measure.column if isinstance(first, _Graded) else None
    whole = Whole(_grades(facts), data.longest, data.preferences is not None, column)
    return replace(data, prepare=Prepared(units_for(largest), fill, queries, documents, whole, data.prepare), query_weight=weights)


def _weights_near_one(exponent: int, part: Part) -> list[float]:
    return weights_by_block(replace(part.data, sample_weight=np.ldexp(np.asarray(part.data.sample_weight), exponent)))


@dataclass(frozen=True)
class _Form:
    """The features of the training data, as `validation` asks for them."""

    feature_names: tuple[str, ...]
    offset: Offset | None
    levels: Levels


@dataclass(frozen=True)
class _Aligned:
    """Validation data with the features of the training data."""

    form: _Form
    first: Prepare | None  #: what is done before

    def __call__(self, data: RankingData) -> RankingData:
        return validation(data if self.first is None else self.first(data), cast(RankingData, self.form))


@dataclass(frozen=True)
class _Unit:
    """What weights are divided by: a power of two, then their mean."""

    exponent: int = 0
    mean: float = 1.0

    def of(self, weight: npt.NDArray[np.float64] | None) -> npt.NDArray[np.float64] | None:
        return None if weight is None else np.asarray(np.ldexp(weight, self.exponent) / self.mean)


@dataclass(frozen=True, eq=False)
class Prepared:
    """What a partition does to its queries, with numbers about all of them."""

    units: npt.NDArray[np.int32]
    fill: PerFeature | None
    queries: _Unit
    documents: _Unit
    whole: Whole
    first: Prepare | None  #: what is done before
    last: Prepare | None = None  #: what is done afterwards

    def __call__(self, data: RankingData) -> RankingData:
        data = data if self.first is None else self.first(data)
        near_one = replace(self.documents, mean=1.0).of(data.sample_weight)
        weighed = replace(data, X=filled(data.X, self.fill, data.offset), query_weight=self.queries.of(data.query_weight))
        found = in_content_order(replace(weighed, sample_weight=near_one), units=self.units)
        weight = replace(self.documents, exponent=0).of(found.sample_weight)
        found = replace(found, sample_weight=weight, whole=self.whole, preferences=found.preferences if self.whole.pairs else None)
        return found if self.last is None else self.last(found)
