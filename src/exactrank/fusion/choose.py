"""The choice of a normalization, or of anything else about a fusion, by cross-validation, and the value of each candidate.

Queries are divided into folds. The value of a candidate is that of held-out queries: the queries of each fold, ranked with weights that
were tuned on the other folds. The best candidate is chosen; but the value of the best of several is optimistic. So the choice is
repeated for each fold f, by the same rule, without the queries of f: by those of each other fold g, with weights that were tuned on neither
f nor g. The queries of f are then ranked with a candidate and weights that were chosen without them. That takes one tuning for each
fold and each pair of folds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import PerQuery, Rows
from exactrank.fusion.problem import Combine, FusionProblem, QuerySteps, Weights, all_weights, best_weights
from exactrank.fusion.resample import Draws, RankingComparison, means
from exactrank.fusion.search import tune_weights
from exactrank.learning.objectives.step_function import SAME_VALUE


@dataclass(frozen=True, eq=False)
class NormalizationChoice:
    """The best normalization, the values of held-out queries by choices that were made without them, and all normalizations compared."""

    name: str
    held_out: PerQuery
    comparison: tuple[RankingComparison, ...]


def choose(problems: Mapping[str, FusionProblem], combine: Combine, fold: Rows, draws: Draws, seed: int) -> NormalizationChoice:
    """Choose the best of several normalizations, the first of equals, measured with the scores that ``combine`` gives."""
    names, first = list(problems), next(iter(problems.values()))
    values = [_values(problem, combine, pairs_left_out(problem, fold), seed) for problem in problems.values()]
    held_out, unbiased = held_out_values(values, fold, first)
    best = first_best([first.mean(row) for row in held_out])
    values_by_name = means(dict(zip(names, held_out, strict=True)), first, draws)
    gains = means({name: held_out[best] - held_out[c] for c, name in enumerate(names) if c != best}, first, draws, best_weight=True)
    rows = tuple(RankingComparison(name, *values_by_name[name], *gains.get(name, (None, None))) for name in names)
    return NormalizationChoice(names[best], unbiased, rows)


PairValues = Sequence[tuple[tuple[int, int], PerQuery]]  #: of every query, by the folds without which weights were tuned


def held_out_values(candidates: Sequence[PairValues], fold: Rows, problem: FusionProblem) -> tuple[npt.NDArray[np.float64], PerQuery]:
    """Return the value of each held-out query by each candidate, and by the best of them, chosen without the query's fold."""
    folds = range(int(fold.max()) + 1)
    held_out, without = np.full((len(candidates), len(fold)), np.nan), np.full((len(candidates), len(folds), len(fold)), np.nan)
    for c, answers in enumerate(candidates):
        for left_out, values in answers:
            for f, g in (left_out, left_out[::-1]):
                in_fold = fold == f
                if f == g:
                    held_out[c, in_fold] = values[in_fold]
                else:
                    without[c, g, in_fold] = values[in_fold]
    unbiased = np.full(len(fold), np.nan)
    for f in folds:
        best = first_best([problem.mean(values[f]) for values in without])
        unbiased[fold == f] = held_out[best, fold == f]
    return held_out, unbiased


def pairs_left_out(problem: FusionProblem, fold: Rows) -> dict[tuple[int, int], PerQuery]:
    """Return the query weights without each fold (the same number twice) and without each pair of folds."""
    folds = range(int(fold.max()) + 1)
    left_out = {pair: problem.query_weights(~np.isin(fold, pair)) for pair in [*((f, f) for f in folds), *combinations(folds, 2)]}
    return {pair: query_weight for pair, query_weight in left_out.items() if problem.has_queries(query_weight)}


def _values(problem: FusionProblem, combine: Combine, left_out: Mapping[tuple[int, int], PerQuery], seed: int) -> PairValues:
    """Return the value of every query by weights tuned for each of the query weights ``left_out``."""
    best = tune_each(problem, list(left_out.values()), seed)
    measured = replace(problem, combine=combine)
    return [(pair, measured.per_query(weights)) for pair, weights in zip(left_out, best, strict=True)]


def tune_each(problem: FusionProblem, query_weights: Sequence[PerQuery], seed: int) -> list[Weights]:
    """Return the best weights for each of ``query_weights``; two systems need only one sweep."""
    if problem.systems > 2:
        return tune_weights(problem, query_weights, seed)
    segments = [QuerySteps.of(problem, start, end) for start, end in all_weights(2, problem.nonnegative)]
    return best_weights(segments, query_weights, problem.threads)


def first_best(values: Sequence[float]) -> int:
    """Return the number of the first value that no other exceeds by more than rounding."""
    comparable = np.nan_to_num(np.array(values), nan=-np.inf)
    return int(np.argmax(comparable >= comparable.max() - SAME_VALUE))
