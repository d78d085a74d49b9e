"""What the weights and the measure would have been with other queries: bootstrap and cross-validation.

*Bootstrap* (Efron 1979): queries are drawn with replacement, as many as there are, and the weights tuned again; the middle 95%
of such weights is their interval. The same draws give the intervals of all means. *Cross-validation*: queries are dealt into
folds; each fold's queries are ranked with weights that were tuned on the others.

A draw is a count a query, and tuning on it is tuning with those counts for query weights. Each query's step function along a
segment of weights is found once (`query_steps.py`), after which a draw costs next to nothing. Two systems are tuned anew over all
weights; of more, each weight is tuned anew with the others in the proportions found. Cross-validation searches anew in any case.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from exactrank.arrays import PerQuery, Rows
from exactrank.data.folds import deal_folds
from exactrank.fuse.problem import Problem, Weights
from exactrank.fuse.query_steps import QuerySteps, best_weights
from exactrank.fuse.search import coordinate

LEVEL = 0.95
Draws = npt.NDArray[np.float64]  #: draws x queries: how often each query was drawn
Pair = tuple[float, float]


def draw_counts(queries: int, draws: int, seed: int) -> Draws:
    """How often each query is drawn in each of ``draws`` samples."""
    rng = np.random.default_rng([seed, 2])
    return np.array([np.bincount(rng.integers(0, queries, queries), minlength=queries) for _ in range(draws)], np.float64)


def middle_of(samples: npt.NDArray[np.float64]) -> list[Pair]:
    """The interval that holds the middle 95% of each column, samples without a value left out."""
    known = samples[~np.isnan(samples).any(axis=1)]
    if not len(known):
        return [(float("nan"), float("nan"))] * samples.shape[1]
    return [(float(low), float(high)) for low, high in np.quantile(known, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0).T]


def mean_intervals(per_query: npt.NDArray[np.float64], query_weight: PerQuery, draws: Draws) -> list[Pair]:
    """The interval of each row's mean over queries."""
    counted = np.where(np.isnan(per_query), 0.0, query_weight)
    with np.errstate(invalid="ignore"):
        return middle_of((draws @ (np.nan_to_num(per_query) * counted).T) / (draws @ counted.T))


@dataclass(frozen=True, eq=False)
class Folds:
    """Queries dealt into folds, and what the measure makes of each when the weights are tuned on the others."""

    fold: Rows
    held_out: tuple[int, ...]  #: the folds whose others have something to tune on
    trainings: tuple[PerQuery, ...]  #: the query weights of those others

    @classmethod
    def of(cls, problem: Problem, folds: int, seed: int) -> "Folds":
        """``folds`` of them, or none."""
        fold = deal_folds(problem.data.n_queries, folds, seed) if folds else np.zeros(0, np.int64)
        trainings = {f: problem.data.weights * (fold != f) for f in range(folds)}
        usable = {f: training for f, training in trainings.items() if problem.counts(training)}
        return cls(fold, tuple(usable), tuple(usable.values()))

    def values(self, problem: Problem, weights: Sequence[Weights]) -> PerQuery | None:
        """Each query's value under the ``weights`` of its fold, one a training; NaN where it is skipped, none without folds."""
        values = np.full(len(self.fold), np.nan)
        for fold, tuned_elsewhere in zip(self.held_out, weights, strict=True):
            values[self.fold == fold] = problem.per_query(tuned_elsewhere)[self.fold == fold]
        return values if len(self.fold) else None


def bootstrapped(problem: Problem, weights: Weights, draws: Draws, swept: Sequence[QuerySteps]) -> tuple[Pair, ...] | None:
    """The 95% interval of each weight, of which ``weights`` were found; ``swept``: all weights, of two systems."""
    if not len(draws):
        return None
    query_weights = [problem.data.weights * counts for counts in draws if problem.counts(problem.data.weights * counts)]
    if swept:
        return tuple(middle_of(np.reshape(best_weights(swept, query_weights, problem.threads), (-1, 2))))
    samples = np.tile(weights, (len(query_weights), 1))
    for j in range(problem.systems):
        line = [QuerySteps.of(problem, start, end) for start, end in coordinate(problem, weights, j)]
        if line:
            samples[:, j] = [best[j] for best in best_weights(line, query_weights, problem.threads)]
    return tuple(middle_of(samples))
