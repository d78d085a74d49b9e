"""The mean of a measure as a function of a linear model's weights.

    f(w) = mean over queries of measure(X w)        the columns of X in units of their own                      (1)

Values of one weight are cheap to compare: with x_j the column of that weight,

    X (w + d e_j) = X w + d x_j                                                                                 (2)
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import PerDocument
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError
from exactrank.measures.base import Measure
from exactrank.measures.evaluate import mean_value, means_over_queries, values_per_query
from exactrank.scorers.missing import PerFeature
from exactrank.threads import thread_count

Theta = npt.NDArray[np.float64]
#: About this number of scores is ranked at a time.
SCORES_PER_BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class LinearValue:
    """(1) on ``data``, which holds no missing values."""

    measure: Measure
    data: RankingData
    threads: int | None = None
    scale: PerFeature | float = 1.0  #: in whose units the weights are: a feature is divided by it
    _last: list[tuple[Theta, PerDocument]] = field(default_factory=list, init=False, repr=False)  #: whose scores are at hand

    def value(self, theta: Theta) -> float:
        """The mean of the measure at the weights ``theta``, as [`xr.evaluate`][exactrank.evaluate] has it."""
        return self.mean(self._scores(theta))

    def values_along(self, theta: Theta, j: int, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The mean at ``theta`` with each of ``weights`` for its j-th; scores are made by (2), so equal up to rounding."""
        scores, column = self._scores(theta), self.data.X[:, j].astype(np.float64) / np.broadcast_to(self.scale, theta.shape)[j]
        at_once = max(1, SCORES_PER_BLOCK // self.data.n_documents)
        blocks = np.split(weights - theta[j], range(at_once, len(weights), at_once))
        return np.concatenate([self._means(scores + change[:, None] * column) for change in blocks])

    @cached_property
    def most(self) -> float:
        """What no weights exceed: the mean of the ideal rankings where each has 1, or is worth as much as the worst; else infinity."""
        best, worst = (
            values_per_query([self.measure], self.data, scores, self.measure.ties, self.threads)[0][0]
            for scores in (self.data.y, -self.data.y)
        )
        is_most = (best == 1) | (best == worst) | np.isnan(best)
        return float(means_over_queries(best[None], self.data.weights)[0]) if np.all(is_most) else np.inf

    def mean(self, scores: PerDocument) -> float:
        """The mean of the measure for ``scores`` in the order of the documents."""
        mean = mean_value(self.measure, self.data, scores, self.data.weights, self.threads)
        self._check(mean)
        return mean

    def _means(self, scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The mean for each row of ``scores``, all of them ranked at once."""
        every = self._judged.take_queries(np.tile(np.arange(self.data.n_queries), len(scores)))
        values, _ = values_per_query([self.measure], every, scores.ravel(), self.measure.ties, self.threads)
        means = means_over_queries(values.reshape(len(scores), -1), self.data.weights)
        self._check(*means)
        return means

    def _check(self, *means: float) -> None:
        if not np.all(np.isfinite(means)):
            raise DataError(f"{self.measure} is {means[0]} on this data: no query counts, or a gain overflows; choose another measure")

    @cached_property
    def _judged(self) -> RankingData:
        """The data without its features."""
        return replace(self.data, X=np.empty((self.data.n_documents, 0), np.float32), feature_names=(), offset=None)

    def _scores(self, theta: Theta) -> PerDocument:
        """Those of the last theta are kept: a search asks again for where it stays."""
        at_hand = next((scores for last, scores in self._last if np.array_equal(last, theta)), None)
        if at_hand is not None:
            return at_hand
        weights = np.ascontiguousarray(theta / self.scale, np.float64)
        scores = _core.linear_scores(self.data.X, weights, thread_count(self.threads))
        self._last[:] = [(np.array(theta), scores)]
        return scores
