"""ApproxNDCG: nDCG with soft ranks (Qin, Liu & Li 2010).

A rank is 1 plus the number of documents above; a logistic function of steepness alpha counts them softly:

    rank_i = 1 + sum_{j != i} 1 / (1 + e^{alpha (s_i - s_j)})                                                   (1)
    value = sum_i g_i / log2(1 + rank_i),    g the gains over the ideal DCG                                     (2)

As alpha grows the value comes to nDCG's where no scores are equal. The published ApproxNDCG has no cutoff, and neither has
this: (2) and the ideal go over all documents, whatever the measure's ``k`` and ``short``; of the measure its gain counts. The
slope needs all pairs of a useful document and any other.

A query with nothing useful in it, or a single document, has nothing to teach: its value is 0. No curvature is given.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from exactrank import _core
from exactrank.data.ranking_data import RankingData
from exactrank.errors import IncompatibleError, SettingError
from exactrank.measures.dcg import NDCG
from exactrank.objectives.bounded_gain import bounded, training_kernel


@dataclass(frozen=True)
class ApproxNDCG:
    """(2) with the gain of ``measure``; ``alpha`` is the steepness of (1)."""

    remedy: ClassVar[str] = "leave out documents of grade 0 from long queries, or use SmoothRank with a cutoff"

    measure: NDCG
    alpha: float = 10.0

    def __post_init__(self) -> None:
        if not isinstance(self.measure, NDCG):
            raise IncompatibleError(f"ApproxNDCG approximates nDCG, not {self.measure}; use nDCG, or SmoothMeasure for P, R, DCG or RBP")
        if self.measure.discount != "log2":
            raise IncompatibleError(f"soft ranks have no discount {self.measure.discount!r}; use discount='log2', or SmoothMeasure")
        if not 0 < self.alpha < float("inf"):
            raise SettingError(f"alpha must be a number above 0, got {self.alpha}")

    def pairs(self, data: RankingData) -> float:
        """How many pairs of a document with a gain and another one pass looks at."""
        _, grades = bounded(self.measure, data.y)
        useful = np.add.reduceat(self.measure.usefulness(grades) > 0, data.indptr[:-1], dtype=np.float64)
        return float((useful * data.sizes).sum())

    def on(self, data: RankingData) -> _core.Objective:
        """Itself on ``data``."""
        kernel, grades = training_kernel(replace(self.measure, k=None), data)
        return _core.approx_ndcg(_core.worths(kernel, grades, data.indptr), self.alpha)
