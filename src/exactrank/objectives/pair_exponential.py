"""The exponential loss over pairs of documents of different grades, and thresholds that lower it (Freund, Iyer, Schapire & Singer 2003).

    loss(H) = sum_q w_q sum_{i, j: y_i < y_j} e^{H_i - H_j} / sum_q w_q (number of pairs of q)                  (1)

Pairs that the data has beside its grades (`exactrank.data.preferences`) are added to both sums, each times its weight.

H are scores and w the weights of queries. Each pair has a weight, what it adds to (1), as a share of all. The edge of a step

    h(x) = [x_f > t],    r = sum over pairs of weight_ij (h(x_j) - h(x_i)),    i the worse, j the better         (2)

says how much better than chance h orders pairs, -1 to 1. The edges of all thresholds of all features take one pass over the
documents, without looking at a pair of grades (``rank_boost.hpp``). They are sums in fixed point, so that data in partitions has the same.
"""

import pickle
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_128_hexdigest

from exactrank import _core
from exactrank.data.blocks import wide_blocks
from exactrank.data.ranking_data import RankingData
from exactrank.engine.engine import Part, Partitioned, fold, in_parts
from exactrank.errors import DataError
from exactrank.objectives.within_query import pair_counts
from exactrank.scorers.architecture import Theta
from exactrank.scorers.thresholds import StepScores
from exactrank.stored import storable
from exactrank.threads import thread_count

#: More thresholds than this are as good as one between every two values.
MOST_THRESHOLDS = 65_535
FEATURES_AT_ONCE = 8  #: whose values partitions send together
LEAST = -1014  #: exponent of a loss whose units are still numbers


@storable
@dataclass(frozen=True)
class Edge:
    """The step with the largest |r| of (2), and the loss (1) before it is taken."""

    loss: float
    edge: float
    feature: int
    number: int  #: of the threshold among those of the feature; -1: no step has an edge
    threshold: float

    @property
    def place(self) -> tuple[float, float]:
        """What theta says of the step besides how far it goes."""
        return float(self.feature), self.threshold


class PairExponential:
    """(1) over ``data``, without missing values, and (2) for at most ``limit`` thresholds per feature; None: between any two values.

    About equally many documents lie between neighbouring thresholds. Theta has three numbers per step: feature, threshold, jump.
    """

    def __init__(self, data: RankingData, limit: int | None = None, threads: int | None = None) -> None:
        count, self._parts = thread_count(threads), in_parts(data)
        pairs = np.concatenate(fold(self._parts, pair_counts))
        total = float(np.sum(data.weights * pairs))
        if total == 0:
            raise DataError(
                "no query with documents of different grades has a weight above 0, nor one with pairs; give such a query a weight"
            )
        self.thresholds = _thresholds(data, limit or 0, count)
        key = xxh3_128_hexdigest(pickle.dumps((self.thresholds, total)))
        self._asked = _Sums(tuple(self.thresholds), total, count, key)
        self._exponent = 1

    def best(self, theta: Theta) -> Edge:
        """(1) at the scores that are sums of the steps of ``theta``, and the step with the largest edge."""
        while True:  # in units of a power of two that goes by the loss, which mostly is that of the step before
            answers = fold(self._parts, replace(self._asked, theta=theta, exponent=self._exponent))
            loss = float(np.sum([block for blocks, _ in answers for block in blocks]))
            exponent = max(int(np.frexp(loss)[1]), LEAST) if np.isfinite(loss) else self._exponent
            if exponent == self._exponent:
                break
            self._exponent = exponent
        if not np.isfinite(loss) or loss == 0:
            return Edge(loss, np.nan, 0, -1, np.nan)
        return self._largest(loss, np.sum([sums for _, sums in answers], axis=0))

    def _largest(self, loss: float, forces: npt.NDArray[np.int64]) -> Edge:
        """The step with the largest edge to either side: of the first feature, and there beyond the largest threshold, that has it."""
        ends, best = np.cumsum([len(own) + 1 for own in self.thresholds])[:-1], (0, 0, -1)
        for feature, own in enumerate(np.split(forces, ends)):
            beyond = np.cumsum(own[:0:-1])  # of the last threshold, of the one before it, ...
            if len(beyond) and abs(most := int(beyond[np.argmax(np.abs(beyond))])) > abs(best[0]):
                best = most, feature, len(beyond) - 1 - int(np.argmax(np.abs(beyond)))
        edge, feature, number = best
        threshold = float(self.thresholds[feature][number]) if number >= 0 else np.nan
        return Edge(loss, float(np.ldexp(edge, self._exponent - 60)) / loss, feature, number, threshold)

    def step_scores(self, data: RankingData) -> StepScores | None:
        """What scores the documents of ``data`` by steps, where they are those of (1) and in this process."""
        return _scores_on(self._parts, self._asked.key) if isinstance(self._parts, Part) and self._parts.data is data else None


def _thresholds(data: RankingData, limit: int, threads: int) -> list[npt.NDArray[np.float64]]:
    """Those of each feature. Of data in partitions each sends the values of some features and how often it has them."""
    if not isinstance(data, Partitioned):
        return _core.column_thresholds(data.X, limit, threads)
    found = []
    for first in range(0, data.n_features, FEATURES_AT_ONCE):
        for columns in zip(*data.ask(partial(_values, first)), strict=True):
            values, counts = (np.concatenate(each) for each in zip(*columns, strict=True))
            found += _core.column_thresholds(np.repeat(values, counts)[:, None], limit, threads)
    return found


def _values(first: int, part: Part) -> list[tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]]:
    X = part.data.X
    return [np.unique(X[:, j], return_counts=True) for j in range(first, min(first + FEATURES_AT_ONCE, X.shape[1]))]


def _scores_on(part: Part, key: str) -> StepScores:
    return part.once(("scores", key), lambda: StepScores(part.data.X))


@dataclass(frozen=True, eq=False)
class _Sums:
    """Of a part the losses of queries, summed by wide blocks, and the sums of forces by bin in units of 2^(exponent - 60)."""

    thresholds: tuple[npt.NDArray[np.float64], ...]
    total: float  #: of the weights of pairs
    threads: int
    key: str  #: by which parts know the problem
    theta: Theta = field(default_factory=lambda: np.empty(0))
    exponent: int = 1

    def __call__(self, part: Part) -> tuple[list[float], npt.NDArray[np.int64]]:
        data, scores = part.data, _scores_on(part, self.key).at(self.theta)
        losses, sums = part.once(("boosting", self.key), lambda: self._bound(data)).sums(scores, self.exponent, self.threads)
        return [float(losses[a:b].sum()) for a, b in pairwise(wide_blocks(data.indptr).tolist())], sums

    def _bound(self, data: RankingData) -> _core.RankBoost:
        given = None if data.preferences is None else data.preferences.native(data.indptr)
        return _core.RankBoost(data.X, list(self.thresholds), data.y, data.indptr, data.weights / self.total, self.threads, given)
