"""Exact line search on the GPU, for positional measures, and the features of documents, along which lines are searched.

The value along a ray is a sum over useful documents of what each contributes at its own rank, and that rank changes by one where its line
crosses another's (`line_search.cu`, (1) there). So no document waits for another. Contributions are whole numbers of units, about 2^-60 of
the largest possible value: they add up to the same in any order, and the result has the same bits in every run. A search takes two rounds:
a histogram of all changes says in which bins the optimum can be, and the events in those bins are then listed and sorted.

Each answer that the host asks for waits for the device, so it asks once both rounds are under way.
"""

import math
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import PerDocument
from exactrank.backends.cuda.device import BLOCK, REAL, Array, cuda, memory_for, on_host
from exactrank.backends.cuda.lists import Lists
from exactrank.data.ranking_data import RankingData
from exactrank.data.scratch_arrays import FeatureColumns
from exactrank.errors import IncompatibleError
from exactrank.learning.objectives.step_function import SAME_VALUE, Interval, StepFunction
from exactrank.measures.bound import BoundMeasure
from exactrank.measures.families import Positional

#: As in `line_search.cu`.
OCTAVES, BINS_PER_OCTAVE, LOWEST_EXPONENT = 121, 1024, 1023 - 60
HALF_BINS = OCTAVES * BINS_PER_OCTAVE
BINS, START_CELLS = 2 * HALF_BINS, 1024
#: The crossings of a document with more others than this are listed in main memory, of which at most ROOM bytes are taken.
IN_SHARED_MEMORY, ROOM = 4096, 1 << 30
#: As many blocks are started, each for one document after the other.
BLOCKS = 1 << 15
#: The largest possible value has about this number of units.
UNITS = 2.0**60
#: Room for this number of events at first; up to FEW are sorted by the host.
EVENTS, FEW = 1 << 20, 1 << 12

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
#: Scores, slopes, and the ends between which to search.
Ray = tuple[Array, Array, float, float]
#: What `line_events` takes where it adds up.
NO_LIST = None, None, np.int64(0), np.int32(2), None
#: Breakpoints, and the values between them: -inf where the function is too small to be computed.
Steps = tuple[Floats, Floats]
TINY = 1e-300


def serves(bound: BoundMeasure) -> bool:
    """Return whether its lines can be searched on the GPU."""
    measure = bound.measure
    return isinstance(measure, Positional) and measure.normalizer != "mean_ideal" and measure.ties in ("input", "pessimistic")


@dataclass(frozen=True, eq=False)
class LengthGroup:
    """Useful documents that are searched together, since their queries have about as many documents."""

    documents: Array  #: their numbers
    queries: Array  #: and those of their queries
    where: slice  #: among all that are useful
    size: int  #: of the queries, rounded up to a power of 2


class CudaLineSearch:
    """`LineSearch` on the GPU, for positional measures of finite scores; scores and slopes are there, or are sent."""

    def __init__(self, bound: BoundMeasure) -> None:
        if not serves(bound):
            raise IncompatibleError(
                f"line search on the GPU knows nDCG, DCG, P, R and RBP, with ties='input' or 'pessimistic', not {bound.measure};"
                " leave out backend to search on the processor"
            )
        self.device = cuda()
        with memory_for(bound.data.n_documents, self.device):
            self._send(bound)

    def _send(self, bound: BoundMeasure) -> None:
        """Send what each document is worth to the device."""
        assert isinstance(bound.measure, Positional)
        data, xp = bound.data, self.device.xp
        values = bound.values(np.zeros(data.n_documents))
        weights = np.where(np.isnan(values), 0.0, bound.weights)  # queries that are skipped do not count
        total = float(weights.sum())
        weights = weights / (total or 1.0)
        worth = _core.worths(bound.kernel, bound.grades, data.indptr) * np.repeat(weights, data.sizes)
        discount = np.ascontiguousarray(bound.measure.discounts(min(bound.measure.cutoff, data.longest)), np.float64)
        unit = (float(np.abs(worth).sum() * np.abs(discount).max()) or 1.0) / UNITS
        useful = np.flatnonzero(worth)
        sizes = np.repeat(data.sizes, data.sizes)[useful]
        order = np.argsort(sizes, kind="stable")
        useless = np.add.reduceat(np.abs(worth), data.indptr[:-1]) == 0
        #: What queries add in which nothing changes; NaN where no query counts.
        self.constant = float(np.sum((np.nan_to_num(values) * weights)[useless])) if total else np.nan
        self.unit = unit
        self.lists = Lists(self.device, xp.asarray(data.indptr), data.n_documents, data.longest)
        self.cutoff = np.int32(bound.measure.cutoff)
        self.discount = xp.asarray(discount)
        self.worth = xp.asarray(worth / unit)
        self.tie_key = None if bound.tie_key is None else xp.asarray(bound.tie_key)
        self.useful = len(useful)
        documents, queries = useful[order], np.repeat(np.arange(data.n_queries, dtype=np.int32), data.sizes)[useful[order]]
        self._ties = self.lists.least_first(self.tie_key)
        self._parts = [
            LengthGroup(xp.asarray(documents[where]), xp.asarray(queries[where]), where, size) for where, size in _parts(sizes[order])
        ]

    def start(self, scores: PerDocument | Array) -> float:
        """Take the scores at alpha = 0, and return the measure's mean there; NaN if no query counts."""
        if isinstance(scores, np.ndarray) and np.any(np.isinf(scores)):
            raise IncompatibleError(
                "scores hold -inf (not retrieved), which the GPU does not rank along a line; leave out backend, or those rows"
            )
        with self._memory():
            self._scores = self._doubles(scores)
            return self.value(self._scores)

    def best(self, slopes: Array, low: float = -math.inf, high: float = math.inf) -> Interval:
        """Return the interval between ``low`` and ``high`` where the measure is largest."""
        least = None
        with self._memory():
            t = self._doubles(slopes)
            while True:
                points, values = self.near_best(self._scores, t, low, high, least)
                interval = StepFunction(points, values, values[1:]).best(low, high)
                if least is not None or not interval.value < values.max() - SAME_VALUE:
                    return interval
                least = interval.value  # the largest are on intervals that rounding alone may have made: the next may be elsewhere

    def profile(self, slopes: Array, low: float = -math.inf, high: float = math.inf) -> StepFunction:
        """Return the whole function from ``low`` to ``high``, and a little more: for crossings that are at the ends up to rounding."""
        with self._memory():
            ends = low - 1e-12 * abs(low) - TINY, high + 1e-12 * abs(high) + TINY
            return StepFunction(*self.steps(self._scores, self._doubles(slopes), *ends))

    def fetch(self, numbers: Array) -> PerDocument:
        """Return scores or slopes as an array of this process."""
        array: PerDocument = on_host(numbers)
        return array

    def _doubles(self, numbers: Array) -> Array:
        return self.device.xp.asarray(numbers).astype(np.float64, copy=False)

    def _memory(self) -> AbstractContextManager[None]:
        return memory_for(self.lists.documents, self.device)

    def value(self, scores: Array) -> float:
        """Return the mean of the measure at ``scores``."""
        lists = self.lists
        shares = self.device.xp.empty(lists.documents, np.int64)
        counts = np.int32(lists.queries), np.int64(lists.documents)
        order = lists.order(scores, self._ties)
        lists.by_document("contributions", scores.dtype, self.worth, order, lists.indptr, *counts, self.discount, self.cutoff, shares)
        return self.constant + int(shares.sum()) * self.unit

    def near_best(self, scores: Array, slopes: Array, low: float, high: float, least: float | None = None) -> Steps:
        """Return the function between ``low`` and ``high`` wherever it may be as large as ``least``, or as at some bin's edge."""
        xp, ray = self.device.xp, (scores, slopes, low, high)
        reach, bins = xp.empty((self.useful, 2)), xp.empty((BINS, 2), np.int64)
        is_needed, marks = xp.empty(BINS, np.uint8), xp.empty(BINS, np.int32)
        zeros = xp.zeros(START_CELLS + 2 * BINS + 4, np.int64)
        rises, counters = zeros[START_CELLS + BINS : -4], zeros[-4:]
        changes = zeros[: START_CELLS + BINS]  # after what the documents contribute at first
        self._launch(ray, (changes, reach, None), (changes[START_CELLS:], rises), NO_LIST)
        change, after = changes[START_CELLS:], xp.cumsum(changes)[START_CELLS - 1 :]
        threshold = np.float64(np.nan if least is None else (least - self.constant) / self.unit), np.float64(2e-12 / self.unit)
        self._by_bin("choose_bins", change, rises, after[1:], after.max(keepdims=True), *threshold, is_needed)
        self._by_bin("mark_bins", change, rises, is_needed, marks, counters[2:])
        self._by_bin("tell_bins", change, after[1:], is_needed, xp.cumsum(marks, dtype=np.int32), counters[1:], bins)
        counts, alpha, (net,) = self._events(ray, (None, reach, counters[2:]), is_needed, counters)
        return self._steps(alpha[net != 0], net[net != 0], *on_host(bins[: counts[1]]).T)

    def _by_bin(self, kernel: str, *args: object) -> None:
        """Run ``kernel`` with one thread per bin."""
        self.device.launch(kernel, BINS, REAL, *args)

    def steps(self, scores: Array, slopes: Array, low: float, high: float) -> tuple[Floats, Floats, Floats]:
        """Return the whole function between ``low`` and ``high``: its breakpoints, the values between them, and those at them."""
        xp = self.device.xp
        everywhere, counters = xp.ones(BINS, np.uint8), xp.zeros(1 + START_CELLS, np.int64)
        ray, ends = (scores, slopes, low, high), (counters[1:], None, None)
        counts, alpha, (net, tied) = self._events(ray, ends, everywhere, counters, at_places=True)
        changes = (net != 0) | (tied != 0)
        values = np.concatenate([[0], np.cumsum(net[changes])]) + counts[1:].sum()
        return alpha[changes], self.constant + values * self.unit, self.constant + (values[:-1] + tied[changes]) * self.unit

    def _events(
        self, ray: Ray, ends: tuple[Array | None, ...], is_needed: Array, counters: Array, at_places: bool = False
    ) -> tuple[Integers, Floats, Integers]:
        """Return the counts, the places of events in bins that are needed, rising, and the change there; ``at_places`` also to the place.

        The first of ``counters`` is the number of events; the others are as they were for the first time that there was room for all.
        """
        xp, capacity, count, columns = self.device.xp, 0, EVENTS, 3 if at_places else 2
        while count > capacity:
            if capacity:
                counters[:1] = 0
                ends = None, *ends[1:]
            capacity = count
            events = xp.empty((capacity, columns), np.int64)
            self._launch(ray, ends, (None, None), (is_needed, counters, np.int64(capacity), np.int32(columns), events))
            counts = on_host(counters)
            count = int(counts[0])
        events = on_host(events[:count]) if count <= FEW else events[:count]
        order = (np if count <= FEW else xp).argsort(events[:, 0].copy().view(np.float64))
        sorted_events = np.ascontiguousarray(on_host(events[order]).T)
        places, changes = sorted_events[0].view(np.float64), sorted_events[1:]
        first_there = np.flatnonzero(np.append(True, places[1:] != places[:-1])[:count])
        return counts, places[first_there], np.add.reduceat(changes, first_there, axis=1) if count else changes

    def _steps(self, alpha: Floats, change: Integers, marks: Integers, before: Integers) -> Steps:
        """Return the function from its events in the bins that `tell_bins` marks, the value before each of these, and the edges of runs."""
        bins, marked, begins, ends = bins_of(alpha), marks >> 2, (marks & 2) > 0, (marks & 1) > 0
        first = np.flatnonzero(np.append(True, bins[1:] != bins[:-1])[: len(bins)])  # of each bin's events
        total = np.cumsum(change)  # over all of these bins
        offset = before[np.searchsorted(marked, bins[first])] - (total - change)[first]
        after = total + np.repeat(offset, np.diff(np.append(first, len(bins))))
        at = np.concatenate([lower_edges(marked[begins]), alpha, upper_edges(marked[ends])])
        values = np.concatenate([before[begins] * self.unit, after * self.unit, np.full(int(ends.sum()), -np.inf)]) + self.constant
        order = np.argsort(at, kind="stable")
        at, values = at[order], values[order]
        keep = np.append(at[1:] != at[:-1], True) & np.isfinite(at)
        beginning = values[at == -np.inf][-1] if np.any(at == -np.inf) else -np.inf
        return at[keep], np.concatenate([[beginning], values[keep]])

    def _launch(self, ray: Ray, ends: tuple[Array | None, ...], sums: tuple[Array | None, ...], listing: tuple[object, ...]) -> None:
        """Run `line_events`, for queries of about one length at a time."""
        scores, slopes, low, high = ray
        starts, reach, window = ends
        for part in self._parts:
            count, size, in_main_memory = len(part.documents), part.size, part.size > IN_SHARED_MEMORY
            blocks = min(count, BLOCKS, max(1, ROOM // (8 * size)) if in_main_memory else count)
            room = self.device.xp.empty(blocks * size, np.int64) if in_main_memory else None
            self.device.launch_blocks(
                "line_events", blocks, max(32, min(BLOCK, size // 4)), 0 if in_main_memory else 8 * size, REAL,
                scores, slopes, self.tie_key, self.worth, part.documents, part.queries, np.int32(count), self.lists.indptr, self.discount,
                self.cutoff, np.float64(low), np.float64(high), room, np.int32(size), starts,
                None if reach is None else reach[part.where], window, *sums, *listing,
            )  # fmt: skip


def _parts(sizes: Integers) -> list[tuple[slice, int]]:
    """Return which documents are searched together, by the lengths of their queries, which rise, and the length rounded up."""
    parts, first = [], 0
    while first < len(sizes):
        size = 1 << max(5, int(sizes[first] - 1).bit_length())
        last = int(np.searchsorted(sizes, size, "right"))
        parts.append((slice(first, last), size))
        first = last
    return parts


def bins_of(alpha: Floats) -> Integers:
    """Return the bins of `line_search.cu`: 1,024 per octave on either side of 0."""
    distance = (np.abs(alpha).view(np.int64) >> 42) - LOWEST_EXPONENT * BINS_PER_OCTAVE
    distance = np.clip(distance, 0, HALF_BINS - 1)
    return np.asarray(np.where(alpha < 0, HALF_BINS - 1 - distance, HALF_BINS + distance))


def lower_edges(bins: Integers) -> Floats:
    """Return the lower ends of ``bins``."""
    distance = np.where(bins < HALF_BINS, HALF_BINS - bins, bins - HALF_BINS)
    size = ((distance + LOWEST_EXPONENT * BINS_PER_OCTAVE) << 42).view(np.float64)
    size = np.where(distance == 0, 0.0, np.where(distance == HALF_BINS, np.inf, size))
    return np.where(bins < HALF_BINS, -size, size)


def upper_edges(bins: Integers) -> Floats:
    """Return the upper ends of ``bins``."""
    return lower_edges(bins + 1)


class CudaFeatures:
    """`DocumentFeatures` on the GPU, to which each feature is sent once, in single precision."""

    def __init__(self, data: RankingData) -> None:
        self._data, self._device = data, cuda()
        self._features: dict[int, Array] = {}

    @cached_property
    def _columns(self) -> FeatureColumns:
        return FeatureColumns.of(self._data.X, copy=True)

    def feature(self, number: int) -> Array:
        """Return a feature of all documents."""
        if number not in self._features:
            with memory_for(self._data.n_documents, self._device):
                self._features[number] = self._device.xp.asarray(self._columns[number])
        return self._features[number]

    def scores(self, weights: npt.NDArray[np.float64], threads: int) -> Array:
        """Return the sum of the features, each times its weight."""
        documents = self._data.n_documents
        scores = self._device.xp.zeros(documents)
        for j in np.flatnonzero(weights).tolist():
            self._device.launch("add_feature", documents, REAL, self.feature(j), np.float64(weights[j]), np.int64(documents), scores)
        return scores
