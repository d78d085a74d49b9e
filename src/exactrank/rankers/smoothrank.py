"""SmoothRank: a measure whose ranks are smoothed, less and less (Chapelle & Wu 2010).

The objective is that of `exactrank.learning.objectives.losses`. Training climbs it with a large sigma, where it has few hills,
and again from there with each smaller one:

    sigma = first, first / 2, first / 4, ..., last                                                              (1)

in units of the variance of the scores at the start: those of ridge regression for a linear model, random ones for a network.
"""

from typing import ClassVar

from exactrank._support.numerics import log2
from exactrank._support.settings import setting
from exactrank.data.dataset import Dataset
from exactrank.errors import SettingError
from exactrank.learning.objectives.losses import SmoothMeasure
from exactrank.learning.objectives.score_space import Objective
from exactrank.learning.objectives.within_query import deviation_of
from exactrank.learning.optimizers.base import Theta
from exactrank.learning.training.combinators import Phase
from exactrank.measures.base import Measure
from exactrank.rankers.composed import Composition
from exactrank.rankers.gradient import GradientRanker


class SmoothRank(GradientRanker):
    """A linear model or a network by a smoothed measure, smoothed less and less (Chapelle & Wu 2010).

    >>> from exactrank import RankingData
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> SmoothRank(measure="nDCG@1").fit(data).score(data)
    1.0
    """

    name = "smoothrank"
    rugged: ClassVar[bool] = True

    first: float = setting(default=16.0, help="Largest sigma, with which training begins.", at_least=1e-6, at_most=1e6)
    last: float = setting(
        default=0.0625, help="Smallest sigma, with which training ends.", at_least=1e-6, at_most=1e6, search=(0.25, 0.0625, 0.015625)
    )
    l2: float = 0.0001

    def check_effects(self, data: Dataset, validated: bool = False) -> None:
        """Raise if a setting has no effect beside the others, or if sigma would rise."""
        super().check_effects(data, validated)
        if self.last > self.first:
            raise SettingError(f"SmoothRank: sigma must fall, but first={self.first:g} is below last={self.last:g}; swap them")

    def _objective(self, measure: Measure) -> Objective:
        return SmoothMeasure(measure, self.first)

    def _start(self, composition: Composition) -> Theta:
        """Return parameters whose scores have unit deviation within queries."""
        theta, data, architecture = super()._start(composition), composition.task.data, composition.architecture
        if architecture.linear and composition.task.start is None:  # from ridge regression, and so already
            return theta
        size = deviation_of(data, composition.score(theta))
        return architecture.with_linear_weights(theta, architecture.linear_weights(theta) / size)

    def _phases(self, composition: Composition) -> list[Phase[Theta]]:
        sigmas = [self.first / 2**level for level in range(1 + round(float(log2(self.first / self.last))))]
        return [self._climb(composition, SmoothMeasure(composition.task.measure, sigma)) for sigma in sigmas]
