"""The best weights, by exact sweeps of the measure along segments of weights.

| systems | swept weights                                           | guarantee                                          |
|---------|---------------------------------------------------------|----------------------------------------------------|
| 2       | all weights                                             | the global optimum                                 |
| 3       | a fan of segments from each corner, then coordinates    | a value within a certified gap of the optimum      |
| 4 ..    | coordinates, from several starts                        | a local optimum                                    |

Two non-negative weights that add up to 1 are the points of one segment; of any sign, of the four sides of a square. So one
sweep, or four, covers them all. Beyond two systems, *coordinate* j is the segment from the other systems, in their current
proportions, to system j alone: sweeping it finds the best share of j given those proportions. Repeating that for each j
until the value stays the same is coordinate ascent with an exact line search (Tan, Xia, Guo & Wang 2013, Algorithm 1).
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from exactrank._support import numerics
from exactrank._support.arrays import PerQuery, Rows
from exactrank.fusion.problem import FusionProblem, QuerySteps, Sweep, Weights, all_weights, best_weights
from exactrank.learning.objectives.step_function import SAME_VALUE

FAN = 8  #: segments from each corner of three systems
STARTS = 8  #: of coordinate ascent, for four systems or more
ROUNDS = 100
SAMPLED_DOCUMENTS = 400_000  #: number that is searched first


def tune_weights(problem: FusionProblem, query_weights: Sequence[PerQuery], seed: int) -> list[Weights]:
    """Search the best weights for the mean by each of ``query_weights``.

    If there are many documents, a sample of the queries is searched first, and one round on all queries continues from there.
    """
    queries = sample_queries(problem, query_weights, seed)
    if queries is None:
        return _search_weights(problem, query_weights, seed)
    starts = _search_weights(problem.part(queries), [weight[queries] for weight in query_weights], seed)
    return [ascend(problem, start, weight, rounds=1) for start, weight in zip(starts, query_weights, strict=True)]


def sample_queries(problem: FusionProblem, query_weights: Sequence[PerQuery], seed: int) -> Rows | None:
    """Return the queries to search first; None if all can be searched at once, or if no query of a sample counts."""
    number = problem.data.n_queries * SAMPLED_DOCUMENTS // problem.data.n_documents
    if number >= problem.data.n_queries or problem.corrected is not None:  # whose queries belong together
        return None
    queries = np.sort(np.random.default_rng([seed, 4]).permutation(problem.data.n_queries)[: max(1, number)])
    countable = ~problem.is_skipped[queries]
    return queries if all(np.any(weight[queries][countable]) for weight in query_weights) else None


def _search_weights(problem: FusionProblem, query_weights: Sequence[PerQuery], seed: int) -> list[Weights]:
    if problem.systems == 3:
        steps = (QuerySteps.of(problem, start, end) for start, end in fan(problem))  # one segment at a time: jumps take memory
        starts = best_weights(steps, query_weights, problem.threads)
        return [ascend(problem, start, weight) for start, weight in zip(starts, query_weights, strict=True)]
    draws = numerics.standard_exponential(np.random.default_rng([seed, 1]), (STARTS - 1, problem.systems))
    starts = [np.full(problem.systems, 1 / problem.systems), *(draws / draws.sum(axis=1, keepdims=True))]  # uniform over all weights
    best = []
    for query_weight in query_weights:
        ends = [ascend(problem, start, query_weight) for start in starts]
        best.append(ends[int(np.argmax([problem.value(end, query_weight) for end in ends]))])
    return best


def fan(problem: FusionProblem) -> Iterator[tuple[Weights, Weights]]:
    """Yield segments from each corner of three systems to points evenly spaced on the weights of the other two."""
    for j, corner in enumerate(np.eye(3)):
        for side in all_weights(2, problem.nonnegative):
            start, end = (np.insert(weights, j, 0.0) for weights in side)
            for share in np.arange(FAN) / FAN:
                opposite = (1 - share) * start + share * end
                yield corner, opposite
                if not problem.nonnegative:
                    yield opposite, -corner


def ascend(problem: FusionProblem, weights: Weights, query_weight: PerQuery, rounds: int = ROUNDS) -> Weights:
    """Return the end of coordinate ascent from ``weights``: no coordinate improves the value, or ``rounds`` are over."""
    value = problem.value(weights, query_weight)
    for _ in range(rounds):
        before = value
        for j in range(problem.systems):
            if segments := coordinate(problem, weights, j):
                sweep = best_of(problem.sweep(start, end, query_weight) for start, end in segments)
                if sweep.best.value > value + SAME_VALUE:
                    weights, value = sweep.weights(sweep.best.middle()), sweep.best.value
        if value <= before + SAME_VALUE:
            break
    return weights


def coordinate(problem: FusionProblem, weights: Weights, j: int) -> list[tuple[Weights, Weights]]:
    """Return the segments of coordinate ``j`` through ``weights``; none if no other system has any weight."""
    rest = np.where(np.arange(problem.systems) == j, 0.0, weights)
    size = np.abs(rest).sum()
    if size == 0:
        return []
    corner = np.eye(problem.systems)[j]
    return [(rest / size, end) for end in ((corner,) if problem.nonnegative else (corner, -corner))]


def flat_range(problem: FusionProblem, weights: Weights, j: int) -> tuple[float, float]:
    """Return the ends between which weight ``j`` does not change the measure, while the other systems keep their proportions."""
    low, high = (0.0, 1.0) if problem.nonnegative else (-1.0, 1.0)
    for start, end in coordinate(problem, weights, j):
        alpha = weights[j] * end[j]
        if alpha >= 0:
            points = problem.sweep(start, end, problem.query_weights()).steps.breakpoints
            points = np.concatenate([[0.0], points[(points > 0) & (points < 1)], [1.0]])
            at = int(np.clip(np.searchsorted(points, alpha, "right"), 1, len(points) - 1))
            low, high = sorted((float(points[at - 1] * end[j]), float(points[at] * end[j])))
    return low, high


def best_of(sweeps: Iterable[Sweep]) -> Sweep:
    """Return the sweep with the best value, the first of equals."""
    first, *rest = sweeps
    best = first
    for sweep in rest:
        if sweep.best.value > best.best.value + SAME_VALUE:
            best = sweep
    return best
