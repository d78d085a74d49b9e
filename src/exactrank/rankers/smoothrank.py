"""SmoothRank: a measure whose ranks are smoothed, less and less (Chapelle & Wu 2010).

The objective is that of `exactrank.objectives.smooth_measure`. Training climbs it with a large sigma, where it has few hills,
and again from there with each smaller one:

    sigma = first, first / 2, first / 4, ..., last                                                              (1)

in units of the variance of the scores at the start: those of ridge regression for a linear model, random ones for a network.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError
from exactrank.measures.base import Measure
from exactrank.measures.parse import parse_measure
from exactrank.objectives import smooth_measure
from exactrank.objectives.score_space import Objective
from exactrank.objectives.within_query import deviation
from exactrank.optimizers.base import Theta
from exactrank.rankers.gradient import GradientRanker, Run
from exactrank.rankers.restarts import in_turn
from exactrank.rankers.search_space import Space
from exactrank.scorers.architecture import Architecture
from exactrank.training import Listener, Trained


@dataclass(eq=False, repr=False)
class SmoothRank(GradientRanker):
    """A linear model or a network by a smoothed measure, smoothed less and less (Chapelle & Wu 2010).

    Args:
        first: The largest sigma, at which training begins.
        last: The smallest sigma, at which it ends.

    >>> from exactrank import RankingData
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> SmoothRank(measure="nDCG@1").fit(data).score(data)
    1.0
    """

    rugged: ClassVar[bool] = True
    name = "smoothrank"
    space: ClassVar[Space] = {**GradientRanker.space, "last": (0.25, 0.0625, 0.015625)}

    first: float = 16.0
    last: float = 0.0625
    l2: float = 0.0001

    def _objective(self, measure: Measure) -> Objective:
        return smooth_measure.SmoothMeasure(measure, self.first)

    def _start(self, data: RankingData, architecture: Architecture) -> Theta:
        """Where scores have unit deviation within queries."""
        theta = super()._start(data, architecture)
        if architecture.linear:  # from ridge regression, and so already
            return theta
        size = deviation(architecture.scores(theta, data.X), data.indptr)
        return architecture.with_linear_weights(theta, architecture.linear_weights(theta) / size)

    def _trained(self, run: Run, theta: Theta, listener: Listener | None) -> Trained:
        if not 1e-6 <= self.last <= self.first <= 1e6:
            raise DataError(f"sigma must fall from first to last, both from 1e-6 to 1e6; got {self.first} and {self.last}")
        measure = parse_measure(self.measure)
        sigmas = [self.first / 2**level for level in range(1 + round(math.log2(self.first / self.last)))]
        climb = super()._trained
        levels = [partial(climb, run.on(smooth_measure.SmoothMeasure(measure, sigma))) for sigma in sigmas]
        return in_turn(levels, theta, listener)
