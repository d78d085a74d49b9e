"""Which normalization is best, by cross-validation, and how good each one is.

Queries are divided into folds. The value of a normalization is that of held-out queries: those of each fold, with weights that were tuned
on the others. The best one is chosen; but the value of the best of several is optimistic. So the choice is made anew for each fold f, by
the same rule, without the queries of f: by those of each other fold g, with weights that were tuned on neither f nor g. The queries of f
are then ranked with a normalization and weights that were chosen without them. That takes a tuning for each fold and each pair of folds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from exactrank._support.arrays import PerQuery, Rows
from exactrank.fusion.problem import Combine, FusionProblem, QuerySteps, Weights, all_weights, best_weights
from exactrank.fusion.resample import Compared, Draws, means
from exactrank.fusion.search import tuned
from exactrank.learning.objectives.step_function import SAME_VALUE
from exactrank.measures.bound import mean_over_queries


@dataclass(frozen=True, eq=False)
class NormalisationChoice:
    """The normalization chosen; the held-out values of each query by what was chosen without it; the value of each normalization."""

    name: str
    held_out: PerQuery
    worth: tuple[Compared, ...]


def choose(problems: Mapping[str, FusionProblem], combine: Combine, fold: Rows, draws: Draws, seed: int) -> NormalisationChoice:
    """The best of several normalizations, of which the first that is not beaten; measured as they are combined."""
    names, weight = list(problems), next(iter(problems.values())).data.weights
    folds = range(int(fold.max()) + 1)
    held_out, without = np.full((len(names), len(fold)), np.nan), np.full((len(names), len(folds), len(fold)), np.nan)
    for c, problem in enumerate(problems.values()):
        for left_out, values in _values(problem, combine, fold, seed):
            for f, g in (left_out, left_out[::-1]):
                here = fold == f
                if f == g:
                    held_out[c, here] = values[here]
                else:
                    without[c, g, here] = values[here]
    honest = np.full(len(fold), np.nan)
    for f in folds:
        best = _first_best([mean_over_queries(each[f], weight) for each in without])
        honest[fold == f] = held_out[best, fold == f]
    best = _first_best([mean_over_queries(each, weight) for each in held_out])
    own = means(dict(zip(names, held_out, strict=True)), weight, draws)
    gains = means({name: held_out[best] - held_out[c] for c, name in enumerate(names) if c != best}, weight, draws)
    return NormalisationChoice(names[best], honest, tuple(Compared(name, *own[name], *gains.get(name, (None, None))) for name in names))


def _values(problem: FusionProblem, combine: Combine, fold: Rows, seed: int) -> list[tuple[tuple[int, int], PerQuery]]:
    """The measure of every query, by weights tuned without each fold (twice the same number) and without each pair of folds."""
    weight, folds = problem.data.weights, range(int(fold.max()) + 1)
    left_out = {pair: weight * ~np.isin(fold, pair) for pair in [*((f, f) for f in folds), *combinations(folds, 2)]}
    left_out = {pair: others for pair, others in left_out.items() if problem.counts(others)}
    found = _tuned(problem, list(left_out.values()), seed)
    measured = replace(problem, combine=combine)
    return [(pair, measured.per_query(weights)) for pair, weights in zip(left_out, found, strict=True)]


def _tuned(problem: FusionProblem, query_weights: Sequence[PerQuery], seed: int) -> list[Weights]:
    """The best weights for each of ``query_weights``, of two systems by one sweep."""
    if problem.systems > 2:
        return tuned(problem, query_weights, seed)
    swept = [QuerySteps.of(problem, start, end) for start, end in all_weights(2, problem.nonnegative)]
    return best_weights(swept, query_weights, problem.threads)


def _first_best(values: Sequence[float]) -> int:
    """The first that no other beats by more than rounding."""
    known = np.nan_to_num(np.array(values), nan=-np.inf)
    return int(np.argmax(known >= known.max() - SAME_VALUE))
