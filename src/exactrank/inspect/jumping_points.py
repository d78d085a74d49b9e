"""Count of the changes at the top of a ranking along a ray of scores (Tan, Xia, Guo & Wang 2013, section 2.2 and Table 12).

With k the cutoff of the measure and r(alpha) a query's documents in the order of their scores s + alpha t,

    alpha is a jumping point  where  r_1 .. r_k just before it and just after it differ                         (1)

The measure is constant between jumping points, and an exact line search visits each, so their number is its cost. A
query of m documents has at most m (m - 1) / 2; the paper finds that with a cutoff there are far fewer, and that the
number stops growing with m, since most documents are never at the top.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.threads import thread_count
from exactrank.data.ranking_data import RankingData, check_data
from exactrank.errors import IncompatibleError
from exactrank.learning.objectives.line_search import check_pairs
from exactrank.learning.objectives.profile import ray_of
from exactrank.measures.base import Measure
from exactrank.measures.parse import parse_measure

Counts = npt.NDArray[np.int64]  #: one number per query


def jumping_points(
    data: RankingData, scores: npt.ArrayLike, direction: npt.ArrayLike, measure: str | Measure, *, threads: int | None = None
) -> Counts:
    """Count the jumping points (1) of each query along ``scores + alpha * direction``, for a positional ``measure``.

    All of them count, even those where documents of one grade change places and the measure stays the same. If several
    documents meet at one point, every swap of two counts.

    >>> data = RankingData.from_arrays(None, [0, 1, 0, 1, 0], qid=["a", "a", "a", "b", "b"])
    >>> scores, direction = [2.0, 1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 3.0, 0.0, 0.0]
    >>> [jumping_points(data, scores, direction, measure).tolist() for measure in ("nDCG@1", "nDCG")]
    [[1, 0], [3, 0]]
    """
    check_data(data)
    parsed = parse_measure(measure)
    bound = replace(parsed, ties="input").on(data, np.ones(data.n_queries))
    check_pairs(bound)
    if not _core.LineSearch.serves(bound.native):
        raise IncompatibleError(f"{parsed} is not positional, so every swap may change it; use nDCG, DCG, P, R or RBP")
    s, t = ray_of(data, scores, direction)
    search = _core.LineSearch(bound.native)
    search.rank(s, thread_count(threads))
    return search.best_as_published(t, thread_count(threads))[3]
