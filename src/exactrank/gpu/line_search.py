"""Exact line search on the GPU, for positional measures.

The value along a ray is a sum over useful documents of what each contributes at its own rank, and that rank changes by one where its line
crosses another's (`kernels.cu`, (1) there). So no document waits for another. Contributions are whole numbers of units, about 2^-60 of the
largest possible value: they add up to the same in any order, and the result has the same bits in every run. A search takes two rounds: a
histogram of all changes says in which bins the optimum can be, and the events in those bins are then listed and sorted.

Each answer that the host asks for waits for the device, so it asks for few.
"""

from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.errors import IncompatibleError
from exactrank.gpu.device import BLOCK, Array, Device
from exactrank.gpu.lists import Lists
from exactrank.measures.bound import BoundMeasure
from exactrank.measures.families import Positional

#: As in `kernels.cu`.
OCTAVES, BINS_PER_OCTAVE, LOWEST_EXPONENT = 121, 1024, 1023 - 60
HALF_BINS = OCTAVES * BINS_PER_OCTAVE
#: The crossings of a document with more others than this are sorted in main memory, of which ROOM bytes are taken at a time.
IN_SHARED_MEMORY, ROOM = 4096, 1 << 30
#: The largest possible value has about this number of units.
UNITS = 2.0**60
#: Room for this number of events at first.
EVENTS = 1 << 20

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
#: Breakpoints, and the values between them: -inf where the function is not large enough to be worked out.
Steps = tuple[Floats, Floats]


def serves(bound: BoundMeasure) -> bool:
    """Can its lines be searched on the GPU?"""
    measure = bound.measure
    return isinstance(measure, Positional) and measure.normaliser != "mean_ideal" and measure.ties in ("input", "pessimistic")


@dataclass(frozen=True, eq=False)
class Part:
    """Useful documents that are searched together, since their queries have about as many documents."""

    documents: Array  #: their numbers
    queries: Array  #: and those of their queries
    where: slice  #: among all that are useful
    size: int  #: of the queries, rounded up to a power of 2
    in_main_memory: bool  #: and not in the memory of a block


class LineEvents:
    """The step functions of one measure along rays, for the same queries; arrays are on the device, in the order of the documents."""

    def __init__(self, bound: BoundMeasure, device: Device) -> None:
        if not serves(bound):
            raise IncompatibleError(
                f"line search on the GPU knows nDCG, DCG, P, R and RBP, with ties='input' or 'pessimistic', not {bound.measure};"
                " leave out device to search on the processor"
            )
        assert isinstance(bound.measure, Positional)
        data, xp = bound.data, device.xp
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
        self.device = device
        self.lists = Lists(device, xp.asarray(data.indptr), data.n_documents, data.longest)
        self.cutoff = np.int32(bound.measure.cutoff)
        self.discount = xp.asarray(discount)
        self.worth = xp.asarray(worth / unit)
        self.tie_key = None if bound.tie_key is None else xp.asarray(bound.tie_key)
        self.useful = len(useful)
        documents, queries = useful[order], np.repeat(np.arange(data.n_queries, dtype=np.int32), data.sizes)[useful[order]]
        self._parts = [
            Part(xp.asarray(documents[where]), xp.asarray(queries[where]), where, size, size > IN_SHARED_MEMORY)
            for where, size in _parts(sizes[order])
        ]

    def value(self, scores: Array) -> float:
        """The mean of the measure at ``scores``."""
        lists = self.lists
        found = self.device.xp.empty(lists.documents, np.int64)
        counts = np.int32(lists.queries), np.int64(lists.documents)
        order = lists.order(scores, self.tie_key)
        lists.by_document("contributions", scores.dtype, self.worth, order, lists.indptr, *counts, self.discount, self.cutoff, found)
        return self.constant + int(found.sum()) * self.unit

    def near_best(self, scores: Array, slopes: Array, low: float, high: float, least: float | None = None) -> Steps:
        """The function between ``low`` and ``high`` wherever it may be as large as ``least``, or as at some bin's edge."""
        xp = self.device.xp
        start, (change, rise) = xp.zeros(self.useful, np.int64), xp.zeros((2, 2 * HALF_BINS), np.int64)
        for part in self._parts:
            self._launch(part, scores, slopes, low, high, start[part.where], change, rise, None, None, np.int64(0), None, None, None)
        after = start.sum() + xp.cumsum(change)
        before = after - change
        threshold = xp.maximum(before[0], after.max()) if least is None else (least - self.constant) / self.unit
        wanted = before.astype(np.float64) + rise >= threshold - 2e-12 / self.unit
        bins = xp.flatnonzero(wanted)
        chosen = _host(xp.stack([bins, before[bins]]))
        left, right = lower_edges(chosen[0, :1])[0], upper_edges(chosen[0, -1:])[0]
        # A little more, since crossings are rounded: what is in other bins is left out.
        ends = max(low, left - abs(left) * 1e-9), min(high, right + abs(right) * 1e-9)
        alpha, (net,) = self._events(scores, slopes, *ends, wanted.view(np.uint8))
        return self._steps(alpha[net != 0], net[net != 0], *chosen)

    def profile(self, scores: Array, slopes: Array, low: float, high: float) -> tuple[Floats, Floats, Floats]:
        """The whole function between ``low`` and ``high``: its breakpoints, the values between them, and those at them."""
        xp = self.device.xp
        start = xp.zeros(self.useful, np.int64)
        alpha, (net, tied) = self._events(scores, slopes, low, high, xp.ones(2 * HALF_BINS, np.uint8), start)
        changes = (net != 0) | (tied != 0)
        values = np.concatenate([[0], np.cumsum(net[changes])]) + int(start.sum())
        return alpha[changes], self.constant + values * self.unit, self.constant + (values[:-1] + tied[changes]) * self.unit

    def _events(
        self, scores: Array, slopes: Array, low: float, high: float, wanted: Array, start: Array | None = None
    ) -> tuple[Floats, Integers]:
        """Where events in the wanted bins are, rising, and the change there; with ``start`` also that to the place itself."""
        xp, capacity, count = self.device.xp, 0, EVENTS
        while count > capacity:
            capacity = count
            alpha, found, listed = xp.empty(capacity), xp.empty((1 if start is None else 2, capacity), np.int64), xp.zeros(1, np.int64)
            outputs = None, None, wanted, listed, np.int64(capacity), alpha, found[0], None if start is None else found[1]
            for part in self._parts:
                self._launch(part, scores, slopes, low, high, None if start is None else start[part.where], *outputs)
            count = int(listed[0])
        order = xp.argsort(alpha[:count])
        events = _host(xp.concatenate([alpha.view(np.int64)[None], found])[:, order])
        places = events[0].view(np.float64)
        first_there = np.flatnonzero(np.append(True, places[1:] != places[:-1])[:count])
        return places[first_there], np.add.reduceat(events[1:], first_there, axis=1) if count else events[1:]

    def _steps(self, alpha: Floats, change: Integers, wanted: Integers, before: Integers) -> Steps:
        """The function from its events in the wanted bins, the value before each of these, and their edges."""
        bins = bins_of(alpha)
        running = np.cumsum(change) - change  # before each event, over all wanted bins
        since = running - running[np.searchsorted(bins, bins)] if len(bins) else running  # and over its own
        after = before[np.searchsorted(wanted, bins)] + since + change
        gap = np.diff(wanted) > 1
        begins, ends = np.append(True, gap), np.append(gap, True)
        at = np.concatenate([lower_edges(wanted[begins]), alpha, upper_edges(wanted[ends])])
        values = np.concatenate([before[begins] * self.unit, after * self.unit, np.full(int(ends.sum()), -np.inf)]) + self.constant
        order = np.argsort(at, kind="stable")
        at, values = at[order], values[order]
        keep = np.append(at[1:] != at[:-1], True) & np.isfinite(at)
        beginning = values[at == -np.inf][-1] if np.any(at == -np.inf) else -np.inf
        return at[keep], np.concatenate([[beginning], values[keep]])

    def _launch(self, part: Part, scores: Array, slopes: Array, low: float, high: float, *outputs: object) -> None:
        """Run `line_events` for some of the useful documents."""
        count = len(part.documents)
        room = self.device.xp.empty(count * part.size, np.int64) if part.in_main_memory else None
        self.device.launch_blocks(
            "line_events", count, max(32, min(BLOCK, part.size // 4)), 0 if part.in_main_memory else 8 * part.size,
            scores, slopes, self.tie_key, self.worth, part.documents, part.queries, self.lists.indptr, self.discount,
            self.cutoff, np.float64(low), np.float64(high), room, np.int32(part.size), *outputs,
        )  # fmt: skip


def _parts(sizes: Integers) -> list[tuple[slice, int]]:
    """Documents to be searched together, by the lengths of their queries, which rise: which, and the length rounded up."""
    parts = []
    size = 1 << max(5, int(sizes[0] - 1).bit_length()) if len(sizes) else 0
    first = 0
    while first < len(sizes):
        last = int(np.searchsorted(sizes, size, "right"))
        at_once = max(1, ROOM // (8 * size) if size > IN_SHARED_MEMORY else last - first)
        parts += [(slice(at, min(at + at_once, last)), size) for at in range(first, last, at_once)]
        first, size = last, 2 * size
    return parts


def bins_of(alpha: Floats) -> Integers:
    """The bins of `kernels.cu`: 1,024 per octave on either side of 0."""
    distance = (np.abs(alpha).view(np.int64) >> 42) - LOWEST_EXPONENT * BINS_PER_OCTAVE
    distance = np.clip(distance, 0, HALF_BINS - 1)
    return np.asarray(np.where(alpha < 0, HALF_BINS - 1 - distance, HALF_BINS + distance))


def lower_edges(bins: Integers) -> Floats:
    """Where bins begin."""
    distance = np.where(bins < HALF_BINS, HALF_BINS - bins, bins - HALF_BINS)
    size = ((distance + LOWEST_EXPONENT * BINS_PER_OCTAVE) << 42).view(np.float64)
    size = np.where(distance == 0, 0.0, np.where(distance == HALF_BINS, np.inf, size))
    return np.where(bins < HALF_BINS, -size, size)


def upper_edges(bins: Integers) -> Floats:
    """Where bins end."""
    return lower_edges(bins + 1)


def _host(array: Array) -> Integers:
    """On the processor."""
    return cast(Integers, array if isinstance(array, np.ndarray) else array.get())
