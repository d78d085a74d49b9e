"""The mean of a measure as a function of a linear model's weights, one of which is tried at many places.

f(w) = mean over queries of measure(X w),    the columns of X in units of their own                         (1)
X (w + d e_j) = X w + d x_j,    x_j the column of weight j                                                  (2)
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import PerDocument
from exactrank.measures.bound import BoundMeasure
from exactrank.scorers.missing import PerFeature
from exactrank.threads import thread_count

Theta = npt.NDArray[np.float64]
#: About this number of scores is ranked at a time.
SCORES_PER_BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class LinearValue:
    """(1) of a measure on its data, which holds no missing values."""

    bound: BoundMeasure
    scale: PerFeature | float = 1.0  #: in whose units the weights are: a feature is divided by it
    _last: list[tuple[Theta, PerDocument]] = field(default_factory=list, init=False, repr=False)  #: whose scores are at hand

    @property
    def most(self) -> float:
        """What no weights exceed."""
        return self.bound.most

    def value(self, theta: Theta) -> float:
        """The mean of the measure at the weights ``theta``."""
        return self.bound.mean(self.scores(theta))

    def values_along(self, theta: Theta, j: int, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The mean at ``theta`` with each of ``weights`` for its j-th; scores are made by (2), so equal up to rounding."""
        data = self.bound.data
        scores, column = self.scores(theta), data.X[:, j].astype(np.float64) / np.broadcast_to(self.scale, theta.shape)[j]
        at_once = max(1, SCORES_PER_BLOCK // data.n_documents)
        blocks = np.split(weights - theta[j], range(at_once, len(weights), at_once))
        return np.concatenate([self.bound.means(scores + change[:, None] * column) for change in blocks])

    def scores(self, theta: Theta) -> PerDocument:
        """The scores at ``theta``; those of the last one are kept, since a search asks again for where it stays."""
        at_hand = next((scores for last, scores in self._last if np.array_equal(last, theta)), None)
        if at_hand is not None:
            return at_hand
        weights = np.ascontiguousarray(theta / self.scale, np.float64)
        scores = _core.linear_scores(self.bound.data.X, weights, thread_count(self.bound.threads))
        self._last[:] = [(np.array(theta), scores)]
        return scores
