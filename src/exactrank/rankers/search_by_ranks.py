"""Exact line searches over the queries of all ranks, of which each knows the scores of its own.

Each rank gives the outline of the measure on its own queries, in whole numbers of a small unit, and all of them find the same interval of
the sum (`exactrank.objectives.summed_steps`): the one that a single machine finds. No scores travel, and no rank does another's work.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import PerDocument, PerQuery
from exactrank.data.ranking_data import RankingData
from exactrank.measures.base import Measure
from exactrank.measures.bound import BoundMeasure
from exactrank.objectives.bounded_gain import gentle
from exactrank.objectives.partitioned_search import ALL_EVENTS
from exactrank.objectives.step_function import Interval
from exactrank.objectives.summed_steps import Close, Outline, Scale, Sought, Sums, Wanted, best_intervals
from exactrank.rankers.forces import Steps, step_by
from exactrank.rankers.peers import Peers
from exactrank.threads import thread_count
from exactrank.training.judge import severe

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Share:
    """Some queries of the whole, with their numbers there and those of their documents."""

    data: RankingData
    queries: Numbers
    documents: Numbers


class SearchesByRanks:
    """Searches of ``measure``, as it selects, on a rank's ``share`` of the queries and those of all others."""

    def __init__(self, measure: Measure, share: Share, peers: Peers, threads: int) -> None:
        self._measure, self._share, self._peers, self._threads = severe(measure), share, peers, threads
        self._made: tuple[BoundMeasure, list[tuple[npt.NDArray[np.uint8], float]]] | None = None

    def __call__(self, weights: PerQuery) -> Steps:
        """The search in which all queries, of all ranks, have these ``weights``."""
        if self._made is None:
            self._made = self._first()
        bound, facts = self._made
        scale = Scale.of(self._measure, facts, weights)
        return partial(step_by, SearchByRanks(replace(bound, weights=weights[self._share.queries]), self._peers, scale), slice(None))

    def _first(self) -> tuple[BoundMeasure, list[tuple[npt.NDArray[np.uint8], float]]]:
        """The measure on the rank's own queries; and of each rank, which queries count, and what none exceeds."""
        bound = gentle(self._measure.on(self._share.data, threads=self._threads))
        native = _search(bound, None)
        counted, peaks = self._peers.collected(native.counted()), self._peers.gathered(np.array([native.peak()]))
        return bound, [(each, float(peak[0])) for each, peak in zip(counted, peaks, strict=True)]


class SearchByRanks:
    """A line search from scores that `start` sets; every rank asks the same of it, for its own documents."""

    def __init__(self, bound: BoundMeasure, peers: Peers, scale: Scale) -> None:
        self._native, self._peers, self._scale = _search(bound, scale), peers, scale
        self._threads = thread_count(bound.threads)

    def start(self, scores: PerDocument) -> float:
        """Take the scores at alpha = 0, and return the measure's mean there; NaN where no query counts."""
        own = self._native.rank_part(scores, self._threads)
        return self._scale.value([int(each[0]) for each in self._peers.gathered(np.array([own]))])

    def best(self, slopes: PerDocument, low: float, high: float) -> Interval:
        """The interval between ``low`` and ``high``, which hold 0 between them, where the measure is largest."""
        outline = self._native.outline(slopes, low, high, self._threads)

        def ask(wanted: Sequence[Wanted]) -> list[list[Close]]:
            return [_unpacked(each) for each in self._peers.collected(_packed([one.of(outline, self._threads) for one in wanted]))]

        return best_intervals([Sought(self._outlines(outline), low, high)], ask, self._scale)[0]

    def _outlines(self, own: _core.Outline) -> list[Outline]:
        """Of all ranks."""
        packed = self._peers.collected(np.concatenate([np.array([own.left, own.right, own.ties]), *own.sums]))
        return [Outline(_sums(each[3:]), int(each[0]), int(each[1]), bool(each[2])) for each in packed]


def _packed(answers: Sequence[Close]) -> Numbers:
    """Of one line: the number of events, what is beside the edge, events, and sums."""
    ((at, change), sums, below, above) = answers[0]
    return np.concatenate([[len(at)], np.array([below, above, *at]).view(np.int64), change, *sums])


def _unpacked(packed: Numbers) -> list[Close]:
    ends = np.cumsum([1, 2 + packed[0], packed[0]])
    places = np.ascontiguousarray(packed[1 : ends[1]]).view(np.float64)
    return [((places[2:], packed[ends[1] : ends[2]]), _sums(packed[ends[2] :]), float(places[0]), float(places[1]))]


def _search(bound: BoundMeasure, scale: Scale | None) -> _core.LineSearch | _core.StepSearch:
    """On a rank's own queries."""
    total, peak = (None, None) if scale is None else (scale.total, scale.peak)
    if _core.LineSearch.serves(bound.native):
        return _core.LineSearch(bound.native, events=ALL_EVENTS, total=total, peak=peak)
    return _core.StepSearch(bound.native, total=total, peak=peak)


def _sums(packed: Numbers) -> Sums:
    """Numbers of bins, their changes and rises."""
    numbers, change, up = packed.reshape(3, -1)
    return numbers.astype(np.uint32), change, up
