"""The regularised risk of the ramp bound, and the convex risks that lie above it.

    loss_q = max_y [delta(y) + c(y).s] - max_y c(y).s  <=  max_y [delta(y) + c(y).s] - c(y').s                  (1)

with equality where y' is the ranking by the scores s: the right side is the convex structured loss whose target is y' in the
place of a perfect ranking.
"""

from exactrank.objectives.regularised_risk import RegularisedRisk
from exactrank.objectives.structured import Structured
from exactrank.scorers.architecture import Theta


class RampRisk(RegularisedRisk):
    """The risk of a structured loss whose bound is the ramp."""

    objective: Structured
    convex = False

    def convexified(self, theta: Theta) -> RegularisedRisk:
        """The convex risk of (1) that touches this one at ``theta``."""
        scores = self.architecture.scores(theta, self.data.X, self.threads)
        target = self.objective.towards(self.data, self.data.ungrouped(scores))
        return RegularisedRisk(target, self.architecture, self.data, self.strength, self.centre, self.threads)
