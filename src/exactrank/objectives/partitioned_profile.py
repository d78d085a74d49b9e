"""The mean of a positional measure along lines of a linear model's weights, for data in partitions.

    f(alpha) = sum over partitions of f_p(alpha),    in fixed point, so that the sum is the same in any order       (1)

Each partition gives the histogram of its events; the bins of their sum that can hold the optimum are asked for exactly. So a search takes
two or three rounds, and gives the same interval and the same value as `LinearProfile` on all queries at once.

Where a search stands is told by where the round over the weights began and by the moves since, so that any worker can go there:
scores are moved as `Place` moves them, to the bit. Where weights come one after the other, the value of a step comes with the outline along
the next weight, in one round.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.engine.engine import Part, Partitioned
from exactrank.errors import IncompatibleError
from exactrank.measures.base import Measure
from exactrank.measures.bound import BoundMeasure
from exactrank.objectives.linear_profile import Direction, Theta, columns_of
from exactrank.objectives.step_function import Interval
from exactrank.objectives.within_query import spread_by_block
from exactrank.threads import thread_count

Move = tuple[Direction, float]
Along = dict[str, Any]  #: a direction, and how far to look along it: low and high


class PartitionedProfile:
    """(1) of a measure on its data in partitions."""

    def __init__(self, bound: BoundMeasure, data: Partitioned) -> None:
        self.data, self.dimension = data, data.n_features
        self._asked = _Search(bound.measure, thread_count(bound.threads))
        facts: list[Any] = data.ask(self._asked)
        if not all(serves for serves, _, _ in facts):
            raise IncompatibleError(f"exact line searches over partitions know nDCG, DCG, P, R and RBP, and not {bound.measure}")
        counted = np.concatenate([counted for _, counted, _ in facts])
        total = float(np.cumsum(np.where(counted, bound.weights, 0.0))[-1])
        self._asked = replace(self._asked, total=total, peak=max(peak for _, _, peak in facts))
        self._last: Direction | None = None
        self._in_turn = False

    def searched(self, along: "Along") -> None:
        """Note along what was searched last, and whether without limits and along the next weight."""
        last, self._last = self._last, along["direction"]
        in_order = isinstance(last, int) and isinstance(self._last, int) and self._last == last + 1
        self._in_turn = in_order and math.isinf(along["low"]) and math.isinf(along["high"])

    def next_after(self, direction: Direction) -> "Along | None":
        """What will be asked for after a step along ``direction``, if weights are searched in turn."""
        if not self._in_turn or not isinstance(direction, int) or direction + 1 == self.dimension:
            return None
        return {"direction": direction + 1, "low": -math.inf, "high": math.inf}

    def value(self, theta: Theta) -> float:
        """The mean of the measure at ``theta``."""
        return self.at(theta).value

    def at(self, theta: Theta) -> "PartitionedPlace":
        """The place to search from."""
        return PartitionedPlace(self, theta, _Path(np.array(theta), ()))

    def ask(self, path: "_Path", what: "What", **more: Any) -> list[Any]:  # noqa: ANN401
        """What each partition says at the end of ``path``."""
        return self.data.ask(replace(self._asked, path=path, what=what, **more))

    @property
    def peak(self) -> float:
        """What the measure of no query exceeds."""
        return self._asked.peak


class PartitionedPlace:
    """A point in weight space with the value there, and the outlines ``ahead``, where it is known what comes next."""

    def __init__(self, problem: PartitionedProfile, theta: Theta, path: "_Path", ahead: "Along | None" = None) -> None:
        self.theta, self._problem, self._path, self._ahead = theta, problem, path, ahead
        answers = problem.ask(path, "value", **(ahead or {}))
        self.value = _core.from_fixed(sum(value for value, _ in answers), problem.peak)
        self._outlines = [outline for _, outline in answers]

    def best(self, direction: Direction, low: float = -math.inf, high: float = math.inf) -> Interval:
        """The interval of alpha, low <= 0 <= high, where (1) is largest."""
        along: Along = {"direction": direction, "low": low, "high": high}
        self._problem.searched(along)
        known = isinstance(direction, int) and along == self._ahead
        outlines = self._outlines if known else self._problem.ask(self._path, "outline", **along)
        numbers, change, up = (np.concatenate([outline[i] for outline in outlines]) for i in range(3))
        left, right = (sum(outline[i] for outline in outlines) for i in (3, 4))
        ties = any(outline[5] for outline in outlines)
        if ties:
            numbers = np.append(numbers, np.uint32(_core.BIN_OF_ZERO))
            change, up = np.append(change, right - left), np.append(up, max(right - left, 0))

        def in_bins(bins: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
            found = self._problem.ask(self._path, "events", bins=bins, **along)
            at, changes = (np.concatenate([each[i] for each in found]) for i in range(2))
            if ties and _core.BIN_OF_ZERO in bins:
                at, changes = np.append(at, 0.0), np.append(changes, right - left)
            order = np.lexsort((changes, at))
            return at[order], changes[order]

        def around(edge: int, low: float, high: float) -> tuple[float, float]:
            if ties:
                low, high = (max(low, 0.0), high) if edge > _core.BIN_OF_ZERO else (low, min(high, 0.0))
            found = self._problem.ask(self._path, "around", edge=edge, **along)
            return max(low, *(each[0] for each in found)), min(high, *(each[1] for each in found))

        return Interval(*_core.best_of_outline(numbers, change, up, left, low, high, self._problem.peak, in_bins, around))

    def point(self, direction: Direction, interval: Interval) -> float:
        """The middle of an interval; where it has no end, as far as the scores deviate."""
        if not interval.endless:
            return interval.middle(1.0)
        own, along = self._spread(None), self._spread(direction)
        return interval.middle(own / along if along > 0 and own > 0 else 1.0)

    def moved(self, direction: Direction, alpha: float) -> "PartitionedPlace":
        """The place at ``alpha`` along ``direction``."""
        theta = self.theta.copy()
        if isinstance(direction, int):
            theta[direction] += alpha
        else:
            theta += alpha * direction
        path = _Path(self._path.start, (*self._path.moves, (direction, alpha)))
        return PartitionedPlace(self._problem, theta, path, self._problem.next_after(direction))

    def _spread(self, direction: Direction | None) -> float:
        """The deviation of the scores, or of how fast they change along a direction."""
        count, more = self._problem.data.n_documents, {} if direction is None else {"direction": direction}
        mean = np.sum([block for answer in self._problem.ask(self._path, "spread", **more) for block in answer]) / count
        squares = [block for answer in self._problem.ask(self._path, "spread", mean=float(mean), **more) for block in answer]
        return float(np.sqrt(np.sum(squares) / count))


@dataclass(frozen=True, eq=False)
class _Path:
    """Where a search stands: moves from a start."""

    start: Theta
    moves: tuple[Move, ...]


What = Literal["facts", "value", "outline", "events", "around", "spread"]


@dataclass(frozen=True, eq=False)
class _Search:
    """What is asked of a part."""

    measure: Measure
    threads: int
    total: float = 1.0
    peak: float = 1.0
    what: What = "facts"
    path: _Path | None = None
    direction: Direction | None = None
    low: float = -math.inf
    high: float = math.inf
    bins: npt.NDArray[np.uint32] | None = None
    edge: int = 0
    mean: float | None = None

    def __call__(self, part: Part) -> object:
        bound = part.once(("bound", repr(self.measure)), lambda: self.measure.on(part.data, threads=self.threads))
        if self.what == "facts":
            if not _core.LineSearch.serves(bound.native):
                return False, np.zeros(0, np.uint8), 0.0
            search = _core.LineSearch(bound.native)
            return True, search.counted(), search.peak()
        assert self.path is not None
        here = part.once(("search", repr(self.measure), self.total, self.peak), lambda: _PartSearch(bound, self.total, self.peak))
        here.go(self.path, self.threads)
        if self.what == "value":
            return here.value, None if self.direction is None else here.outline(self.direction, self.low, self.high, self.threads)
        if self.what == "spread":
            values = here.scores if self.direction is None else here.slopes(self.direction, self.threads)
            return spread_by_block(np.asarray(values), part.data.indptr, self.mean)
        outline = here.outline(self.direction, self.low, self.high, self.threads)
        if self.what == "outline":
            return outline
        if self.what == "events":
            return here.native.events(self.bins, self.threads)
        return here.native.around(self.edge, self.low, self.high, self.threads)


class _PartSearch:
    """Searches on the queries of a part, whose state follows the path that it is asked about."""

    def __init__(self, bound: BoundMeasure, total: float, peak: float) -> None:
        self.native = _core.LineSearch(bound.native, events=1 << 62, total=total, peak=peak)
        self.data, self.columns = bound.data, columns_of(bound.data)
        self.scores: npt.NDArray[np.float64] = np.zeros(0)
        self.value = 0
        self._path: _Path | None = None
        self._outline: tuple[Any, Any] = (None, None)

    def go(self, path: _Path, threads: int) -> None:
        """To the end of ``path``, from where it stands if that lies on it."""
        now = self._path
        if now is None or not np.array_equal(now.start, path.start) or not _begins(path.moves, now.moves):
            now, self.scores = _Path(path.start, ()), _core.linear_scores(self.data.X, np.ascontiguousarray(path.start), threads)
            self._path = None
        for direction, alpha in path.moves[len(now.moves) :]:
            self.scores = self.scores + alpha * self.slopes(direction, threads).astype(np.float64)
            self._path = None
        if self._path is None:
            self.value, self._path, self._outline = self.native.rank_part(self.scores, threads), path, (None, None)

    def slopes(self, direction: Direction, threads: int) -> npt.NDArray[Any]:
        """How fast each score changes along ``direction``."""
        if isinstance(direction, int):
            return np.asarray(self.columns[direction])
        return _core.linear_scores(self.data.X, np.ascontiguousarray(direction), threads)

    def outline(self, direction: Direction | None, low: float, high: float, threads: int) -> object:
        """Of the function along ``direction``; the last is kept, since its events are asked for next."""
        assert direction is not None
        key = (direction if isinstance(direction, int) else direction.tobytes(), low, high)
        if self._outline[0] != key:
            self._outline = key, self.native.outline(self.slopes(direction, threads), low, high, threads)
        return self._outline[1]


def _begins(moves: tuple[Move, ...], first: tuple[Move, ...]) -> bool:
    """Do ``moves`` begin with those?"""
    return len(first) <= len(moves) and all(np.array_equal(a[0], b[0]) and a[1] == b[1] for a, b in zip(first, moves, strict=False))
