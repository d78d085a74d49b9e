"""The tuned weights beside what needs no tuning: each system alone, CombSUM, and reciprocal rank fusion.

    CombSUM   s = sum_j x_j, the comparable scores with equal weights                       (Fox & Shaw 1994)  (1)
    RRF       s = sum_j 1 / (60 + r_j), over the systems that retrieved the document                           (2)
                                                                        (Cormack, Clarke & Buettcher 2009)

All are measured on the same queries, so the gain of the tuned weights over each is a mean of differences query by query.
Weights tuned on the queries that measure them (in sample) flatter themselves; the gain is that of weights tuned on other queries
(held out, by cross-validation).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from exactrank.arrays import Boundaries, PerQuery
from exactrank.data.ranking_data import RankingData
from exactrank.fuse.contenders import by_blocks
from exactrank.fuse.normalise import normalised
from exactrank.fuse.problem import Problem
from exactrank.fuse.resample import Draws, Pair, mean_intervals
from exactrank.measures.base import Measure
from exactrank.measures.bound import mean_over_queries


@dataclass(frozen=True)
class Compared:
    """A way to rank and its measure; ``gain`` is what tuned weights have over it, cross-validated, query by query."""

    name: str
    mean: float
    interval: Pair | None  #: the bootstrap 95% interval of the mean
    gain: float | None = None
    gain_interval: Pair | None = None


def compared(data: RankingData, problem: Problem, in_sample: PerQuery, held_out: PerQuery | None, draws: Draws) -> tuple[Compared, ...]:
    """Every baseline, then the tuned weights on their own queries and cross-validated."""
    baselines = baseline_values(data, problem)
    rows = {**baselines, "tuned, in sample": in_sample} | ({} if held_out is None else {"tuned, held out": held_out})
    weight = problem.data.weights
    intervals = mean_intervals(np.stack(list(rows.values())), weight, draws) if len(draws) else [None] * len(rows)
    table = {
        name: Compared(name, mean_over_queries(values, weight), interval)
        for (name, values), interval in zip(rows.items(), intervals, strict=True)
    }
    if held_out is None:
        return tuple(table.values())
    gains = {name: held_out - values for name, values in baselines.items()}
    gain_intervals = mean_intervals(np.stack(list(gains.values())), weight, draws) if len(draws) else [None] * len(gains)
    for (name, gain), interval in zip(gains.items(), gain_intervals, strict=True):
        table[name] = replace(table[name], gain=mean_over_queries(gain, weight), gain_interval=interval)
    return tuple(table.values())


def baseline_values(data: RankingData, problem: Problem) -> Mapping[str, PerQuery]:
    """Each query's measure by each way to rank that needs no tuning; a feature of ``data`` is a system."""

    def untuned(rows: slice, indptr: Boundaries) -> npt.NDArray[np.float64]:
        block = _block(data, rows, indptr, problem.measure)
        ranks = Problem(problem.measure, block, *normalised(block.X, indptr, "reciprocal-rank", "zero"), threads=1)
        alone = block.X.T.astype(np.float64, order="C")
        alone[np.isnan(alone)] = -np.inf
        return np.stack([*map(ranks.measured, alone), ranks.per_query(np.ones(problem.systems))])  # (2)

    *alone, rrf = np.concatenate(by_blocks(untuned, data.indptr, problem.threads), axis=1)
    combined = problem.per_query(np.full(problem.systems, 1 / problem.systems))  # (1)
    return dict(zip(data.feature_names, alone, strict=True)) | {"CombSUM": combined, "RRF (k=60)": rrf}


def _block(data: RankingData, rows: slice, indptr: Boundaries, measure: Measure) -> RankingData:
    """Some queries of ``data``, with no more than measuring needs; their numbers stand for their ids."""
    return RankingData(
        X=data.X[rows],
        y=data.y[rows],
        indptr=indptr,
        qid=np.arange(len(indptr) - 1),
        feature_names=data.feature_names,
        docid=data.docid.take(np.arange(rows.start, rows.stop)) if data.docid is not None and measure.ties == "docid" else None,
    )
