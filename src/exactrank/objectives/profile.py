"""The exact value of a measure along a ray of scores: `xr.profile`.

    f(alpha) = mean over queries of measure(s + alpha t)                                                        (1)

Each document is a line in alpha, and f changes only where two lines of a query cross (Tan, Xia, Guo & Wang 2013). The ray may
be anything that moves scores along a line: one weight of a linear model, a direction in weight space, a tree's output, the
weight of one retriever against another.
"""

import math
from typing import Literal

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import PerDocument, PerQuery
from exactrank.data.ranking_data import RankingData
from exactrank.engine.partitions import refuse_shards
from exactrank.errors import DataError, IncompatibleError
from exactrank.measures.base import Measure
from exactrank.measures.bound import BoundMeasure
from exactrank.measures.evaluate import checked_scores
from exactrank.measures.parse import parse_measure
from exactrank.objectives.line_search_on_gpu import search_on
from exactrank.objectives.step_function import StepFunction
from exactrank.threads import thread_count

#: The maximum number of documents of which all pairs are looked at.
MOST_CROSSING = 20_000
TINY = 1e-300


def profile(
    measure: str | Measure,
    data: RankingData,
    scores: npt.ArrayLike,
    direction: npt.ArrayLike,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    weight: npt.ArrayLike | None = None,
    preset: str | None = None,
    threads: int | None = None,
    device: Literal["cuda"] | None = None,
) -> StepFunction:
    """The measure's mean at ``scores + alpha * direction`` for every alpha from ``low`` to ``high``, (1).

    It equals [`xr.evaluate`][exactrank.evaluate] at every point, even where documents tie. Crossings are accurate to 13
    significant decimals; ``ties='docid'`` compares scores in double precision here. ``weight``, one per query, replaces
    ``data.query_weight``, e.g. with the counts of a bootstrap sample. With ``device="cuda"`` it is computed on
    the GPU, for nDCG, DCG, P, R and RBP of finite scores.

    >>> data = RankingData.from_arrays(None, [1, 0, 0, 1], qid=["a", "a", "b", "b"])
    >>> f = profile("nDCG@1", data, [3.0, 2.0, 1.0, 0.0], [0.0, 0.5, 0.0, 2.0])
    >>> f.breakpoints.tolist(), f.values.tolist(), f.best()
    ([0.5, 2.0], [0.5, 1.0, 0.5], Interval(low=0.5, high=2.0, value=1.0))
    """
    refuse_shards(data, "profile")
    parsed = parse_measure(measure, preset)
    if not low < high:
        raise DataError(f"a ray needs low < high, got {low} and {high}")
    bound, (s, t) = parsed.on(data, query_weights(data, weight)), ray_of(data, scores, direction)
    if device is not None:
        # A little more, for crossings that are at the ends up to rounding.
        whole = search_on(device, bound, s).profile(t, low - 1e-12 * abs(low) - TINY, high + 1e-12 * abs(high) + TINY)
        breakpoints, values, at = whole.breakpoints, whole.values, whole.at
    else:
        check_pairs(bound)
        breakpoints, values, at = _core.profile(bound.native, s, t, min(low, 0.0), max(high, 0.0), thread_count(threads))
    first, last = np.searchsorted(breakpoints, low, "left"), np.searchsorted(breakpoints, high, "right")
    return StepFunction(breakpoints[first:last], values[first : last + 1], at[first:last])


def query_weights(data: RankingData, weight: npt.ArrayLike | None) -> PerQuery:
    """``weight``, or the data's own: one per query."""
    weights = data.weights if weight is None else np.ascontiguousarray(weight, np.float64)
    if weights.shape != (data.n_queries,) or not np.all(np.isfinite(weights) & (weights >= 0)) or not np.any(weights > 0):
        raise DataError(f"weight must hold {data.n_queries} numbers of at least 0, one per query, not all 0")
    return weights


def check_pairs(bound: BoundMeasure) -> None:
    """Refuse a whole profile where all pairs of very many documents would have to be looked at."""
    measure, data = bound.measure, bound.data
    if min(data.longest, measure.cutoff) > MOST_CROSSING:
        raise IncompatibleError(
            f"{measure} counts every rank, and a query has {data.longest:,} documents: too many to examine all pairs;"
            f" give the measure a cutoff, or leave out documents beyond {MOST_CROSSING:,}"
        )


def ray_of(data: RankingData, scores: npt.ArrayLike, direction: npt.ArrayLike) -> tuple[PerDocument, PerDocument]:
    """Scores and direction in the order of the documents, once they are numbers."""
    s, t = (data.grouped(checked_scores(data, given, name)) for given, name in ((scores, "scores"), (direction, "direction")))
    for name, bad in (("scores", np.isnan(s) | (s == np.inf)), ("direction", ~np.isfinite(t))):
        if np.any(bad):
            raise DataError(f"{name} holds {(s if name == 'scores' else t)[bad][0]}; give numbers (a score of -inf: not retrieved)")
    return s, t
