"""The regularised risk of the ramp bound, and the convex risks that lie above it.

    loss_q = max_y [delta(y) + c(y).s] - max_y c(y).s  <=  max_y [delta(y) + c(y).s] - c(y').s                  (1)

with equality where y' is the ranking by the scores s: the right side is the convex structured loss whose target is y' in the
place of a perfect ranking.
"""

from dataclasses import dataclass

from exactrank.objectives.regularised_risk import RegularisedRisk
from exactrank.objectives.structured import Structured
from exactrank.scorers.architecture import Theta


@dataclass(frozen=True, eq=False)
class RampRisk(RegularisedRisk):
    """The risk of ``structured``, whose bound is the ramp."""

    structured: Structured

    @property
    def convex(self) -> bool:
        """Never: less is taken off where another ranking becomes the best."""
        return False

    def convexified(self, theta: Theta) -> RegularisedRisk:
        """The convex risk of (1) that touches this one at ``theta``."""
        scores = self.architecture.scores(theta, self.data.X, self.gain.threads)
        target = self.structured.towards(self.data, self.data.ungrouped(scores))
        return RegularisedRisk(self.gain.of(target), self.strength, self.centre)
