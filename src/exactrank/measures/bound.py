"""Measures bound to the queries of data, for many evaluations.

    mean(s) = sum_q w_q measure_q(s) / sum_q w_q,    over the queries that the measure does not skip            (1)

A `BoundMeasure` is bound to documents of this process, and takes one score per document. A `DatasetMeasure` is bound to a dataset, wherever
its documents lie, and takes a function that scores them: each part binds the measure to its queries. `exactrank.evaluate` evaluates several
measures at once, with intervals.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import Floats, PerDocument, PerQuery
from exactrank._support.threads import thread_count
from exactrank.data.dataset import Answerer, Concatenated, Dataset, EachBlock, Part, Score, Weigh
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError

if TYPE_CHECKING:
    from exactrank.measures.base import Measure, Ties

A = TypeVar("A")
Adjust = Callable[["BoundMeasure"], "BoundMeasure"]  #: picklable and comparable


class _Weighted(Protocol):
    """A measure with the weight of each query."""

    @property
    def measure(self) -> "Measure": ...
    @property
    def weights(self) -> PerQuery: ...


class MeansOverQueries:
    """Means (1) of the values of queries; a `DataError` if one is not a finite number."""

    def mean_of(self: _Weighted, values: PerQuery) -> float:
        """Return (1) of the queries' ``values``."""
        return float(checked_means(self.measure, means_over_queries(values[None], self.weights))[0])

    def means_of(self: _Weighted, values: Floats) -> Floats:
        """Return (1) of each row of ``values``."""
        return checked_means(self.measure, means_over_queries(values, self.weights))


@dataclass(frozen=True, eq=False)
class BoundMeasure(MeansOverQueries):
    """A measure bound to data in this process, made by `Measure.on`; scores are in the order of the data's documents.

    `dataclasses.replace` changes ``weights`` or ``threads`` and shares the rest.
    """

    measure: "Measure"
    data: RankingData
    weights: PerQuery  #: of (1), one per query
    threads: int | None
    kernel: _core.Kernel = field(repr=False)
    grades: PerDocument = field(repr=False)  #: as the kernel reads them
    tie_key: PerDocument | None = field(repr=False)  #: ranks documents of equal score, smallest first; None for the order of the data
    _copies: dict[int, "BoundMeasure"] = field(
        default_factory=dict, init=False, repr=False
    )  #: the same measure on repeated data, by the number of repetitions

    @cached_property
    def native(self) -> _core.BoundMeasure:
        """Bound measure of the kernels."""
        return _core.BoundMeasure(self.kernel, self.grades, self.data.indptr, self.tie_key, self.measure.ties == "expected", self.weights)

    def with_ties(self, ties: "Ties") -> "BoundMeasure":
        """Return the same measure with other ``ties`` and the same kernel, so that the core can evaluate both at once."""
        measure = replace(self.measure, ties=ties).on(self.data, self.weights, self.threads)
        return replace(measure, kernel=self.kernel, grades=self.grades)

    def values(self, scores: PerDocument) -> PerQuery:
        """Return the value of each query; NaN if it is skipped."""
        return np.asarray(values_of([self], scores)[0][0])

    def mean(self, scores: PerDocument) -> float:
        """Return (1), like [`er.evaluate`][exactrank.evaluate]; raise a `DataError` if it is not a finite number."""
        return self.mean_of(self.values(scores))

    def means(self, scores: Floats) -> Floats:
        """Return (1) of each row of ``scores``."""
        return self.means_of(self.values_of_each(scores))

    def values_of_each(self, scores: Floats) -> Floats:
        """Return the values for each row of ``scores``, all ranked at once on data that repeats the queries for each row.

        The repeated data is cached, since searches ask for the same number of rows again.
        """
        times = len(scores)
        if times > 1 and times not in self._copies:
            data = self.data.without_features().take_queries(np.tile(np.arange(self.data.n_queries), times))
            tie_key = None if self.tie_key is None else np.tile(self.tie_key, times)
            repeated = replace(self, data=data, weights=np.tile(self.weights, times), grades=np.tile(self.grades, times), tie_key=tie_key)
            self._copies.clear()
            self._copies[times] = repeated
        values = self._copies[times].values(scores.ravel()) if times > 1 else self.values(scores[0])
        return values.reshape(times, -1)


def checked_means(measure: "Measure", means: Floats) -> Floats:
    """Return ``means``; raise a `DataError` if one is not a finite number."""
    if not np.all(np.isfinite(means)):
        raise DataError(f"{measure} is {means[0]} on this data: no query counts, or a gain overflows; choose another measure")
    return means


def values_of(bound: Sequence[BoundMeasure], scores: PerDocument) -> tuple[Floats, npt.NDArray[np.int32]]:
    """Return the values and the numbers of ranked documents, both measures x queries, of measures on the same documents.

    Each query is ranked once for all measures, or once per measure if only some have ``ties='docid'``, which compares scores in single
    precision.
    """
    data, rounded = bound[0].data, bound[0].measure.ties == "docid"
    if any((measure.measure.ties == "docid") != rounded for measure in bound):
        answers = [values_of([measure], scores) for measure in bound]
        return np.concatenate([values for values, _ in answers]), np.concatenate([retrieved for _, retrieved in answers])
    kernels = [(measure.kernel, measure.grades, measure.tie_key, measure.measure.ties == "expected") for measure in bound]
    compared = scores.astype(np.float32).astype(np.float64) if rounded else scores
    values, retrieved, bad = _core.evaluate(compared, data.indptr, kernels, thread_count(bound[0].threads))
    if bad >= 0:
        row = bad if data.order is None else int(data.order[bad])
        raise DataError(f"score of row {row} is {compared[bad]}; scores must be numbers, or -inf for a document not retrieved")
    return values.reshape(len(bound), -1), np.broadcast_to(retrieved, (len(bound), data.n_queries))


@dataclass(frozen=True, eq=False)
class DatasetMeasure(MeansOverQueries):
    """A measure bound to a dataset, made by `Measure.over`; each part binds the measure to its queries.

    `dataclasses.replace` changes the weights and shares the memos of the parts.
    """

    measure: "Measure"
    data: Dataset
    threads: int | None
    parts: Answerer = field(repr=False)  #: the data with a memo
    adjust: "Adjust | None" = None  #: changes the measure after a part has bound it
    weigh: Weigh | None = None  #: changes the weights of the data for (1)

    @cached_property
    def weights(self) -> PerQuery:
        """Weights of (1), one per query."""
        return self.data.weights if self.weigh is None else self.weigh(0, self.data.weights)

    def on(self, part: Part) -> BoundMeasure:
        """Return the measure bound to the queries of ``part``, with their weights."""
        bound = bound_on(part, self.measure, self.adjust, self.threads)
        return bound if self.weigh is None else replace(bound, weights=self.weigh(part.first, part.data.weights))

    def with_ties(self, ties: "Ties") -> "DatasetMeasure":
        """Return the same measure with other ``ties``."""
        return replace(self, measure=replace(self.measure, ties=ties))

    def values(self, score: Score) -> PerQuery:
        """Return the value of each query by ``score``; NaN if it is skipped."""
        return np.asarray(values_over([self], score)[0][0])

    def mean(self, score: Score) -> float:
        """Return (1) by ``score``; raise a `DataError` if it is not a finite number."""
        return self.mean_of(self.values(score))

    def by_query(self, answer: Callable[[BoundMeasure], Floats]) -> Floats:
        """Return the numbers of ``answer`` for each query, along the last axis; it is called with the measure on each part."""
        return self.parts.ask(Concatenated(_OnPart(self.measure, self.adjust, self.threads, answer), axis=-1))

    def differences(self, score: Score, steps: Floats) -> Floats:
        """Return mean(s + steps_j x_j) - mean(s - steps_j x_j) for each feature x_j, where ``score`` gives s; reads each query once."""
        total = np.zeros(len(steps))
        for block in self.parts.ask(EachBlock(_OnPart(self.measure, self.adjust, self.threads, partial(_differences, score, steps)))):
            total += block
        with np.errstate(invalid="ignore"):
            return checked_means(self.measure, total / self._weight_of_values)

    @cached_property
    def upper_bound(self) -> float:
        """Mean of the ideal rankings, if each query's is 1 or equal to its worst ranking; otherwise infinity."""
        if self.measure.counts_pairs and self.data.preferences is not None:
            return np.inf  # pairs may contradict each other, so that no order satisfies all of them
        best, worst = self.values(self.measure.grades), self.values(self.measure.negated_grades)
        is_bound = (best == 1) | (best == worst) | np.isnan(best)
        return mean_over_queries(best, self.weights) if np.all(is_bound) else np.inf

    @cached_property
    def _weight_of_values(self) -> float:
        """Total weight of the queries that are not skipped."""
        return float(self.weights[~np.isnan(self.values(_equal_scores))].sum())


def values_over(measures: Sequence[DatasetMeasure], score: Score) -> tuple[Floats, npt.NDArray[np.int32]]:
    """Return `values_of` measures on the same dataset, by the scores that each part gives its documents."""
    first = measures[0]
    return first.parts.ask(_Values(tuple((measure.measure, measure.adjust) for measure in measures), score, first.threads))


@dataclass(frozen=True)
class _OnPart(Generic[A]):
    """The result of ``answer`` for a measure bound to a part."""

    measure: "Measure"
    adjust: "Adjust | None"
    threads: int | None
    answer: Callable[[BoundMeasure], A]

    def __call__(self, part: Part) -> A:
        return self.answer(bound_on(part, self.measure, self.adjust, self.threads))


def bound_on(part: Part, measure: "Measure", adjust: "Adjust | None", threads: int | None) -> BoundMeasure:
    """Return the measure on ``part``, bound once; measures that differ only in ties share their kernel."""

    def bind() -> BoundMeasure:
        if adjust is not None:
            return adjust(bound_on(part, measure, None, threads))
        plain = measure.on(part.data, threads=threads)
        shared = part.once(("kernel", repr(replace(measure, ties="input"))), lambda: plain)
        return replace(plain, kernel=shared.kernel, grades=shared.grades)

    return part.once(("bound", repr(measure), adjust), bind)


def _differences(score: Score, steps: Floats, bound: BoundMeasure) -> Floats:
    """Return the sum of the differences over each block of queries, one row each."""
    scores, threads = score(bound.data), thread_count(bound.threads)
    return _core.differences(bound.native, scores, bound.data.X, steps, bound.measure.ties == "docid", threads).reshape(-1, len(steps))


def _equal_scores(data: RankingData) -> PerDocument:
    return np.zeros(data.n_documents)


@dataclass(frozen=True)
class _Values:
    """Question for the values of measures, one per query, and the number of ranked documents of each query."""

    measures: "tuple[tuple[Measure, Adjust | None], ...]"
    score: Score
    threads: int | None

    def ask(self, part: Part) -> tuple[Floats, npt.NDArray[np.int32]]:
        return values_of([bound_on(part, measure, adjust, self.threads) for measure, adjust in self.measures], self.score(part.data))

    def combine(self, answers: Sequence[tuple[Floats, npt.NDArray[np.int32]]]) -> tuple[Floats, npt.NDArray[np.int32]]:
        if len(answers) == 1:
            return answers[0]
        return np.concatenate([values for values, _ in answers], axis=1), np.concatenate([retrieved for _, retrieved in answers], axis=1)


def mean_over_queries(values: PerQuery, weight: PerQuery) -> float:
    """Return the weighted mean of ``values`` without NaN; NaN if all of them are NaN."""
    return float(means_over_queries(values[None], weight)[0])


def means_over_queries(values: Floats, weight: PerQuery) -> Floats:
    """Return the weighted mean of each row of ``values`` without NaN; NaN if all of them are NaN.

    Weights are first divided by a power of two, which changes no bit of the mean, so that their sum does not overflow.
    """
    counted = np.where(np.isnan(values), 0.0, np.ldexp(weight, -np.frexp(weight.max())[1]))
    with np.errstate(invalid="ignore"):
        terms = values * counted
        terms[np.isnan(terms)] = 0.0
        return np.asarray(terms.sum(axis=1) / counted.sum(axis=1))
