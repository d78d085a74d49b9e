"""A measure on the queries of some data, bound once for many evaluations.

    mean(s) = sum_q w_q measure_q(s) / sum_q w_q,    over the queries that the measure does not skip            (1)

A `BoundMeasure` is on documents of this process, and takes one score per document. A `DatasetMeasure` is on a dataset, wherever its
documents lie, and takes what scores them: each part binds the measure to its own queries. `exactrank.evaluate` evaluates several measures
at once, with intervals.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import PerDocument, PerQuery
from exactrank._support.threads import thread_count
from exactrank.data.dataset import Answerer, Concatenated, Dataset, EachBlock, Part, Score, Weigh
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError

if TYPE_CHECKING:
    from exactrank.measures.base import Measure, Ties

A = TypeVar("A")
Floats = npt.NDArray[np.float64]
Adjust = Callable[["BoundMeasure"], "BoundMeasure"]  #: picklable and comparable


@dataclass(frozen=True, eq=False)
class BoundMeasure:
    """(1), made by `Measure.on`; scores are in the order of the data's documents.

    `dataclasses.replace` gives it other ``weights`` or ``threads`` and shares the rest.
    """

    measure: "Measure"
    data: RankingData
    weights: PerQuery  #: of (1), one per query
    threads: int | None
    kernel: _core.Kernel = field(repr=False)
    grades: PerDocument = field(repr=False)  #: as the kernel reads them
    tie_key: PerDocument | None = field(repr=False)  #: ranks documents of equal score, smallest first; None for the order given
    _copies: dict[int, "BoundMeasure"] = field(default_factory=dict, init=False, repr=False)  #: of itself, by their number

    @cached_property
    def native(self) -> _core.BoundMeasure:
        """Itself as the kernels take it."""
        return _core.BoundMeasure(self.kernel, self.grades, self.data.indptr, self.tie_key, self.measure.ties == "expected", self.weights)

    def with_ties(self, ties: "Ties") -> "BoundMeasure":
        """The same measure, which breaks ties in another way; the kernel is shared, which the core notices where both are asked."""
        other = replace(self.measure, ties=ties).on(self.data, self.weights, self.threads)
        return replace(other, kernel=self.kernel, grades=self.grades)

    def values(self, scores: PerDocument) -> PerQuery:
        """The measure of each query; NaN where it is skipped."""
        return np.asarray(values_of([self], scores)[0][0])

    def mean(self, scores: PerDocument) -> float:
        """(1), as [`er.evaluate`][exactrank.evaluate] has it; a DataError where that is no number."""
        return self.mean_of(self.values(scores))

    def mean_of(self, values: PerQuery) -> float:
        """(1), of the queries' ``values``."""
        return float(self.means_of(values[None])[0])

    def means_of(self, values: Floats) -> Floats:
        """(1) for each row of ``values``."""
        return self._checked(means_over_queries(values, self.weights))

    def means(self, scores: Floats) -> Floats:
        """(1) for each row of ``scores``."""
        return self.means_of(self.values_of_each(scores))

    def values_of_each(self, scores: Floats) -> Floats:
        """The values for each row of ``scores``, all of them ranked at once: on as many copies of the data, one after the other.

        The last copies are kept, since searches ask for as many again.
        """
        times = len(scores)
        if times > 1 and times not in self._copies:
            judged = replace(self.data, X=np.empty((self.data.n_documents, 0), np.float32), feature_names=(), offset=None, levels={})
            data = judged.take_queries(np.tile(np.arange(self.data.n_queries), times))
            tie_key = None if self.tie_key is None else np.tile(self.tie_key, times)
            made = replace(self, data=data, weights=np.tile(self.weights, times), grades=np.tile(self.grades, times), tie_key=tie_key)
            self._copies.clear()
            self._copies[times] = made
        values = self._copies[times].values(scores.ravel()) if times > 1 else self.values(scores[0])
        return values.reshape(times, -1)

    def _checked(self, means: Floats) -> Floats:
        return checked_means(self.measure, means)


def checked_means(measure: "Measure", means: Floats) -> Floats:
    """Return ``means``; a DataError if one is not a finite number."""
    if not np.all(np.isfinite(means)):
        raise DataError(f"{measure} is {means[0]} on this data: no query counts, or a gain overflows; choose another measure")
    return means


def values_of(bound: Sequence[BoundMeasure], scores: PerDocument) -> tuple[Floats, npt.NDArray[np.int32]]:
    """Values, and how many documents of each query have a rank, both measures x queries; the measures are on the same documents.

    Each query is ranked once for all of them; where only some have ``ties='docid'``, which compares scores in single precision, once for
    each.
    """
    data, rounded = bound[0].data, bound[0].measure.ties == "docid"
    if any((each.measure.ties == "docid") != rounded for each in bound):
        found = [values_of([each], scores) for each in bound]
        return np.concatenate([values for values, _ in found]), np.concatenate([retrieved for _, retrieved in found])
    kernels = [(each.kernel, each.grades, each.tie_key, each.measure.ties == "expected") for each in bound]
    compared = scores.astype(np.float32).astype(np.float64) if rounded else scores
    values, retrieved, bad = _core.evaluate(compared, data.indptr, kernels, thread_count(bound[0].threads))
    if bad >= 0:
        row = bad if data.order is None else int(data.order[bad])
        raise DataError(f"score of row {row} is {compared[bad]}; scores must be numbers, or -inf for a document not retrieved")
    return values.reshape(len(bound), -1), np.broadcast_to(retrieved, (len(bound), data.n_queries))


@dataclass(frozen=True, eq=False)
class DatasetMeasure:
    """(1) over a dataset, made by `Measure.over`; each part binds the measure to its own queries.

    `dataclasses.replace` gives it other weights, and shares what parts compute once.
    """

    measure: "Measure"
    data: Dataset
    threads: int | None
    parts: Answerer = field(repr=False)  #: the data, which remembers what it computes
    adjust: "Adjust | None" = None  #: what becomes of the measure once a part has bound it
    weigh: Weigh | None = None  #: makes the weights of (1) of those of the data, if they are not these

    @cached_property
    def weights(self) -> PerQuery:
        """The weights of (1), one per query."""
        return self.data.weights if self.weigh is None else self.weigh(0, self.data.weights)

    def on(self, part: Part) -> BoundMeasure:
        """Return the measure bound to the queries of ``part``, with their weights."""
        bound = bound_on(part, self.measure, self.adjust, self.threads)
        return bound if self.weigh is None else replace(bound, weights=self.weigh(part.first, part.data.weights))

    def with_ties(self, ties: "Ties") -> "DatasetMeasure":
        """Return the same measure, which breaks ties in another way."""
        return replace(self, measure=replace(self.measure, ties=ties))

    def values(self, score: Score) -> PerQuery:
        """Return the measure of each query by ``score``; NaN where it is skipped."""
        return np.asarray(values_over([self], score)[0][0])

    def mean(self, score: Score) -> float:
        """Return (1) by ``score``; a DataError if that is not a number."""
        return self.mean_of(self.values(score))

    def mean_of(self, values: PerQuery) -> float:
        """Return (1) of the queries' ``values``."""
        return float(self.means_of(values[None])[0])

    def means_of(self, values: Floats) -> Floats:
        """Return (1) of each row of ``values``."""
        return checked_means(self.measure, means_over_queries(values, self.weights))

    def by_query(self, answer: Callable[[BoundMeasure], Floats]) -> Floats:
        """Return what ``answer`` says of each query, along the last axis, when asked about the measure on each part."""
        return self.parts.ask(Concatenated(_OnPart(self.measure, self.adjust, self.threads, answer), axis=-1))

    def differences(self, score: Score, steps: Floats) -> Floats:
        """mean(s + steps_j x_j) - mean(s - steps_j x_j) for each feature x_j, s what ``score`` gives: each query is read once for all."""
        total = np.zeros(len(steps))
        for block in self.parts.ask(EachBlock(_OnPart(self.measure, self.adjust, self.threads, partial(_differences, score, steps)))):
            total += block
        with np.errstate(invalid="ignore"):
            return checked_means(self.measure, total / self._counted)

    @cached_property
    def most(self) -> float:
        """What no ranking exceeds: the mean of the ideal ones where each has 1, or is worth as much as the worst; else infinity."""
        if self.measure.counts_pairs and self.data.preferences is not None:
            return np.inf  # pairs may contradict each other, and then no order has all of them
        best, worst = self.values(self.measure.grades), self.values(self.measure.negated_grades)
        is_most = (best == 1) | (best == worst) | np.isnan(best)
        return mean_over_queries(best, self.weights) if np.all(is_most) else np.inf

    @cached_property
    def _counted(self) -> float:
        """The weight of the queries that are not skipped."""
        return float(self.weights[~np.isnan(self.values(_all_tied))].sum())


def values_over(measures: Sequence[DatasetMeasure], score: Score) -> tuple[Floats, npt.NDArray[np.int32]]:
    """Return `values_of` measures on the same dataset, by the scores that each part gives its documents."""
    first = measures[0]
    return first.parts.ask(_Values(tuple((each.measure, each.adjust) for each in measures), score, first.threads))


@dataclass(frozen=True)
class _OnPart(Generic[A]):
    """What ``answer`` says of a measure on a part."""

    measure: "Measure"
    adjust: "Adjust | None"
    threads: int | None
    answer: Callable[[BoundMeasure], A]

    def __call__(self, part: Part) -> A:
        return self.answer(bound_on(part, self.measure, self.adjust, self.threads))


def bound_on(part: Part, measure: "Measure", adjust: "Adjust | None", threads: int | None) -> BoundMeasure:
    """Return the measure on ``part``, bound once; measures that differ in ties alone share their kernel."""

    def bound() -> BoundMeasure:
        if adjust is not None:
            return adjust(bound_on(part, measure, None, threads))
        plain = measure.on(part.data, threads=threads)
        shared = part.once(("kernel", repr(replace(measure, ties="input"))), lambda: plain)
        return replace(plain, kernel=shared.kernel, grades=shared.grades)

    return part.once(("bound", repr(measure), adjust), bound)


def _differences(score: Score, steps: Floats, bound: BoundMeasure) -> Floats:
    """Return the sum of the differences over each block of queries, one row each."""
    scores, threads = score(bound.data), thread_count(bound.threads)
    return _core.differences(bound.native, scores, bound.data.X, steps, bound.measure.ties == "docid", threads).reshape(-1, len(steps))


def _all_tied(data: RankingData) -> PerDocument:
    return np.zeros(data.n_documents)


@dataclass(frozen=True)
class _Values:
    """The values of measures, one per query, and how many documents of each query have a rank."""

    measures: "tuple[tuple[Measure, Adjust | None], ...]"
    score: Score
    threads: int | None

    def ask(self, part: Part) -> tuple[Floats, npt.NDArray[np.int32]]:
        return values_of([bound_on(part, *one, self.threads) for one in self.measures], self.score(part.data))

    def combine(self, answers: Sequence[tuple[Floats, npt.NDArray[np.int32]]]) -> tuple[Floats, npt.NDArray[np.int32]]:
        if len(answers) == 1:
            return answers[0]
        return np.concatenate([values for values, _ in answers], axis=1), np.concatenate([retrieved for _, retrieved in answers], axis=1)


def mean_over_queries(values: PerQuery, weight: PerQuery) -> float:
    """The weighted mean of ``values``; NaN is left out, and comes out where nothing else is there."""
    return float(means_over_queries(values[None], weight)[0])


def means_over_queries(values: Floats, weight: PerQuery) -> Floats:
    """The same for each row of ``values``.

    Weights go by a power of two first, which changes no bit of the mean, so that their sum does not overflow.
    """
    counted = np.where(np.isnan(values), 0.0, np.ldexp(weight, -np.frexp(weight.max())[1]))
    with np.errstate(invalid="ignore"):
        terms = values * counted
        terms[np.isnan(terms)] = 0.0
        return np.asarray(terms.sum(axis=1) / counted.sum(axis=1))
