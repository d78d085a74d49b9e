"""Bootstrap intervals and cross-validation of tuned weights, and their comparison with baselines that need no tuning.

*Bootstrap* (Efron 1979): as many queries as there are are drawn with replacement, and the weights tuned again; the middle 95% of such
weights is their interval. The same draws give the intervals of all means. *Cross-validation*: queries are divided into
folds; each fold's queries are ranked with weights that were tuned on the others.

A draw is a count per query, and tuning on it is tuning with those counts as query weights. Each query's step function along a
segment of weights is computed once (`problem.py`), after which a draw costs next to nothing. Two systems are tuned again over all
weights; with more, each weight is tuned again while the others keep their proportions. Cross-validation always searches from the start.

The baselines are each system alone, CombSUM, and reciprocal rank fusion:

    CombSUM   s = sum_j x_j, the comparable scores with equal weights                       (Fox & Shaw 1994)  (1)
    RRF       s = sum_j 1 / (60 + r_j), over the systems that retrieved the document                           (2)
                                                                        (Cormack, Clarke & Buettcher 2009)

All are measured on the same queries, so the gain of the tuned weights over each is a mean of differences query by query.
The value on the queries that weights were tuned on (in sample) is optimistic; the gain is that of weights tuned on other queries
(held out, by cross-validation).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import Boundaries, PerQuery
from exactrank._support.numerics import matmul
from exactrank.data.ranking_data import RankingData
from exactrank.fusion.normalize import normalize_systems
from exactrank.fusion.preparation import by_blocks
from exactrank.fusion.problem import FusionProblem, QuerySteps, Weights, best_weights
from exactrank.fusion.search import coordinate
from exactrank.measures.bound import mean_over_queries

LEVEL = 0.95
Draws = npt.NDArray[np.float64]  #: draws x queries: how often each query was drawn
Pair = tuple[float, float]


def middle_of(samples: npt.NDArray[np.float64]) -> list[Pair]:
    """Return the middle 95% of each column, without samples that have no value."""
    complete = samples[~np.isnan(samples).any(axis=1)]
    if not len(complete):
        return [(float("nan"), float("nan"))] * samples.shape[1]
    return [(float(low), float(high)) for low, high in np.quantile(complete, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0).T]


def bootstrap_intervals_of(
    problem: FusionProblem, weights: Weights, draws: Draws, segments: Sequence[QuerySteps]
) -> tuple[Pair, ...] | None:
    """Return the 95% interval of each of the best ``weights``; ``segments`` hold all weights of two systems, otherwise nothing."""
    if not len(draws):
        return None
    query_weights = [weights for weights in map(problem.query_weights, draws) if problem.has_queries(weights)]
    if segments:
        return tuple(middle_of(np.reshape(best_weights(segments, query_weights, problem.threads), (-1, 2))))
    samples = np.tile(weights, (len(query_weights), 1))
    for j in range(problem.systems):
        line = [QuerySteps.of(problem, start, end) for start, end in coordinate(problem, weights, j)]
        if line:
            samples[:, j] = [best[j] for best in best_weights(line, query_weights, problem.threads)]
    return tuple(middle_of(samples))


@dataclass(frozen=True)
class RankingComparison:
    """The mean of a ranking method; ``gain`` is the cross-validated advantage of tuned weights over it, query by query."""

    name: str
    mean: float
    interval: Pair | None  #: the bootstrap 95% interval of the mean
    gain: float | None = None
    gain_interval: Pair | None = None


def compare_rankings(
    data: RankingData, problem: FusionProblem, in_sample: PerQuery, held_out: PerQuery | None, draws: Draws
) -> tuple[RankingComparison, ...]:
    """Compare all baselines, the tuned weights on their own queries, and the cross-validated weights."""
    baselines = baseline_values(data, problem)
    rows = {**baselines, "tuned, in sample": in_sample} | ({} if held_out is None else {"tuned, held out": held_out})
    row_means = means(rows, problem, draws)
    gains = {}
    if held_out is not None:
        gains = means({name: held_out - values for name, values in baselines.items()}, problem, draws, best_weight=True)
    return tuple(RankingComparison(name, *row_means[name], *gains.get(name, (None, None))) for name in rows)


def means(
    rows: Mapping[str, PerQuery], problem: FusionProblem, draws: Draws, *, best_weight: bool = False
) -> dict[str, tuple[float, Pair | None]]:
    """Return the mean over queries of each row, and its interval if there are draws.

    Means that a machine's grades correct have the machine weight of the problem, or each the best of its own (``best_weight``).
    """
    if problem.corrected is not None:
        machine_weight = None if best_weight else problem.machine_weight
        corrected = {name: problem.corrected_mean(values, machine_weight) for name, values in rows.items()}
        return {name: (mean.mean, mean.interval if len(draws) else None) for name, mean in corrected.items()}
    weight = problem.data.weights
    intervals: Sequence[Pair | None] = [None] * len(rows)
    if len(draws):
        per_query = np.stack(list(rows.values()))
        counted = np.where(np.isnan(per_query), 0.0, weight)
        with np.errstate(invalid="ignore"):
            sums, counts = (matmul(draws, columns.T) for columns in (np.nan_to_num(per_query) * counted, counted))
            intervals = middle_of(sums / counts)
    return {name: (mean_over_queries(rows[name], weight), interval) for name, interval in zip(rows, intervals, strict=True)}


def baseline_values(data: RankingData, problem: FusionProblem) -> Mapping[str, PerQuery]:
    """Return each query's measure by each baseline; the features of ``data`` are systems."""
    docid = data.docid if problem.measure.ties == "docid" else None

    def evaluate_block(rows: slice, indptr: Boundaries) -> npt.NDArray[np.float64]:
        block = RankingData(  # only the parts that a measure needs; numbers of queries stand for their ids
            X=data.X[rows],
            y=data.y[rows],
            indptr=indptr,
            qid=np.arange(len(indptr) - 1),
            feature_names=data.feature_names,
            docid=None if docid is None else docid.take(np.arange(rows.start, rows.stop)),
        )
        ranks = FusionProblem(problem.measure, block, *normalize_systems(block.X, indptr, "reciprocal-rank", "zero"), threads=1)
        single_scores = block.X.T.astype(np.float64, order="C")
        single_scores[np.isnan(single_scores)] = -np.inf
        return np.stack([*map(ranks.bound.values, single_scores), ranks.per_query(np.ones(problem.systems))])  # (2)

    *single_systems, rrf = np.concatenate(by_blocks(evaluate_block, data.indptr, problem.threads), axis=1)
    comb_sum = problem.per_query(np.full(problem.systems, 1 / problem.systems))  # (1)
    return dict(zip(data.feature_names, single_systems, strict=True)) | {"CombSUM": comb_sum, "RRF (k=60)": rrf}
