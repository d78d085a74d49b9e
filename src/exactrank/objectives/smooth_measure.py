"""Smoothed measures: every rank held by all documents in part, as in SmoothRank (Chapelle & Wu 2010).

A positional measure is a sum over ranks of discount d_j times what the document there is worth. With d(j) the document at
rank j, let rank j be held by document i in the share h_ij:

    h_ij = e^{-(s_i - s_d(j))^2 / sigma} / sum_l e^{-(s_l - s_d(j))^2 / sigma}                                  (1)
    value = sum_{j <= k} d_j sum_i g_i h_ij                                                                     (2)

where g is the usefulness over the measure's normaliser: the gain over the ideal DCG for nDCG. As sigma falls to 0 the value
comes to the measure's; large ones smooth away its steps, so methods start there and lower sigma. The slope is the full one,
also through s_d(j), with the order held fixed; documents of equal score share what falls to their ranks. Where all scores of
a query are equal the slope is 0: start elsewhere.

A query with nothing useful in it, or a single document, has nothing to teach: its value is 0. No curvature is given.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from exactrank import _core
from exactrank.data.ranking_data import RankingData
from exactrank.errors import IncompatibleError, SettingError
from exactrank.measures.base import Measure
from exactrank.measures.families import Positional
from exactrank.objectives.bounded_gain import training_kernel


@dataclass(frozen=True)
class SmoothMeasure:
    """(2) of a positional ``measure``; ``sigma`` is in units of squared score."""

    remedy: ClassVar[str] = "give the measure a cutoff, e.g. nDCG@10, by which the cost grows in place of the length of queries"

    measure: Measure
    sigma: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.measure, Positional) or self.measure.normaliser == "mean_ideal":
            raise IncompatibleError(f"{self.measure} is no sum over ranks that could be smoothed; use nDCG, DCG, P, R or RBP")
        if not 0 < self.sigma < float("inf"):
            raise SettingError(f"sigma must be a number above 0, got {self.sigma}")

    def pairs(self, data: RankingData) -> float:
        """How many pairs of a rank and a document one pass looks at."""
        sizes = data.sizes
        return float((np.minimum(sizes, self.measure.cutoff) * sizes).sum())

    def on(self, data: RankingData) -> _core.Objective:
        """Itself on ``data``."""
        kernel, grades = training_kernel(self.measure, data)
        return _core.smooth_measure(kernel, _core.worths(kernel, grades, data.indptr), self.sigma)
