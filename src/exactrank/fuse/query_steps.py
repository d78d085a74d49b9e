"""The step functions of single queries on one segment of weights, kept apart so that they can be weighted anew.

    f_q(alpha) = f_q(0) + sum of the jumps of q at points below alpha                                           (1)
    f(alpha) = sum_q w_q f_q(alpha) / sum_q w_q                                                                 (2)

With the jumps of all queries in order of their points, (2) is a running sum, whatever the weights: a bootstrap sample or a
training fold costs as much as reading the jumps.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from exactrank.arrays import PerQuery, Rows
from exactrank.fuse.problem import Problem, Sweep, Weights, between
from exactrank.objectives.profile import query_jumps
from exactrank.objectives.step_function import LEAST_WIDTH, SAME_VALUE, Floats, Interval, StepFunction
from exactrank.threads import Pool, thread_count


@dataclass(frozen=True, eq=False)
class QuerySteps:
    """Each query's step function on the segment from weights ``start`` to weights ``end``, (1)."""

    start: Weights
    end: Weights
    here: PerQuery  #: the values at ``start``, NaN where a query is skipped
    points: Floats  #: of the jumps, rising
    to: Floats  #: the jump from left of the point to it
    whole: Floats  #: the jump from left of the point to right of it
    query: Rows  #: whose jump it is

    @classmethod
    def of(cls, problem: Problem, start: Weights, end: Weights) -> "QuerySteps":
        """Sweeps all queries."""
        found = query_jumps(problem.measure, problem.data, *problem.ray(start, end), high=1.0, threads=problem.threads)
        real = np.flatnonzero((np.abs(found.to) > SAME_VALUE) | (np.abs(found.beyond) > SAME_VALUE))  # the rest is rounding
        order = real[np.argsort(found.at[real], kind="stable")]
        return cls(start, end, found.here, found.at[order], found.to[order], (found.to + found.beyond)[order], found.query[order])

    def sweep(self, query_weight: PerQuery) -> Sweep:
        """(2), with a breakpoint wherever a query that counts has one."""
        share, here = self._shares(query_weight)
        counting = np.flatnonzero(share[self.query])
        points, shares = self.points[counting], share[self.query[counting]]
        running = here + np.append(0.0, np.cumsum(shares * self.whole[counting]))
        first = np.flatnonzero(np.append(True, points[1:] != points[:-1])[: len(points)])  # of the jumps at one point
        values = np.append(running[first], running[-1])
        reached = np.add.reduceat(shares * self.to[counting], first) if len(first) else np.zeros(0)
        return Sweep(self.start, self.end, StepFunction(points[first], values, values[:-1] + reached))

    def best(self, query_weight: PerQuery) -> Interval:
        """Where (2) is largest, the widest of such places; neighbours of the same value count as one."""
        share, here = self._shares(query_weight)
        running = np.append(0.0, np.cumsum(share[self.query] * self.whole))
        inside, low, high = self._intervals
        values = running[inside]
        near = np.concatenate([[False], values >= values.max() - SAME_VALUE, [False]])
        first, last = np.flatnonzero(near[1:] & ~near[:-1]), np.flatnonzero(near[:-1] & ~near[1:]) - 1
        widest = int(np.argmax(high[last] - low[first]))
        return Interval(float(low[first[widest]]), float(high[last[widest]]), here + float(values[first[widest]]))

    @cached_property
    def _intervals(self) -> tuple[Rows, Floats, Floats]:
        """How many points are left of each interval that is wider than rounding could make it, and its two ends."""
        ends = np.concatenate([[0.0], self.points, [1.0]])
        inside = np.flatnonzero(np.diff(ends) > LEAST_WIDTH * ends[1:])
        return inside, ends[inside], ends[inside + 1]

    def _shares(self, query_weight: PerQuery) -> tuple[PerQuery, float]:
        """Each query's share of the mean, 0 where it is skipped, and the mean at ``start``."""
        counted = np.where(np.isnan(self.here), 0.0, query_weight)
        share = counted / counted.sum()
        return share, float(np.nan_to_num(self.here) @ share)


def best_weights(segments: Iterable[QuerySteps], query_weights: Sequence[PerQuery], threads: int | None) -> list[Weights]:
    """The best weights on any of the segments, of which the first that is not beaten, for each of ``query_weights``."""
    values, weights = np.full(len(query_weights), -np.inf), [np.zeros(0)] * len(query_weights)
    with Pool(thread_count(threads)) as pool:
        for steps in segments:
            for i, found in enumerate(pool.map(steps.best, query_weights)):
                if found.value > values[i] + SAME_VALUE:
                    values[i], weights[i] = found.value, between(steps.start, steps.end, found.middle())
    return weights
