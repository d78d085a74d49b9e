"""The exponential loss over pairs of documents of different grades, and thresholds that lower it (Freund, Iyer, Schapire & Singer 2003).

    loss(H) = sum_q w_q sum_{i, j: y_i < y_j} e^{H_i - H_j} / sum_q w_q (number of pairs of q)                  (1)

Pairs that the data has beside its grades (`exactrank.data.preferences`) are added to both sums, each times its weight.

H are scores and w the weights of queries. Each pair has a weight, what it adds to (1), as a share of all. The edge of a step

    h(x) = [x_f > t],    r = sum over pairs of weight_ij (h(x_j) - h(x_i)),    i the worse, j the better         (2)

says how much better than chance h orders pairs, -1 to 1. The edges of all thresholds of all features take one pass over the
documents, without looking at a pair of grades (``rank_boost.hpp``). They are sums in fixed point, so that data in partitions has the same.
"""

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_128_hexdigest

from exactrank import _core
from exactrank._support.arrays import PerDocument
from exactrank._support.serialize import storable
from exactrank._support.threads import thread_count
from exactrank.data.blocks import wide_blocks
from exactrank.data.dataset import Answerer, Concatenated, Dataset, Part, Score
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError
from exactrank.learning.objectives.within_query import pair_counts
from exactrank.models.architecture import Theta
from exactrank.models.thresholds import StepScores, Thresholds

#: More thresholds than this are as good as one between every two values.
MOST_THRESHOLDS = 65_535
FEATURES_AT_ONCE = 8  #: whose values partitions send together
LEAST = -1014  #: the least exponent of a loss whose units are normal numbers


@storable
@dataclass(frozen=True)
class Edge:
    """The step with the largest |r| of (2), and the loss (1) before it is taken."""

    loss: float
    edge: float
    feature: int
    number: int  #: of the threshold among those of the feature; -1 if no step has an edge
    threshold: float

    @property
    def place(self) -> tuple[float, float]:
        """The feature and the threshold, which theta holds besides the jump."""
        return float(self.feature), self.threshold


class PairExponential:
    """(1) over ``data``, without missing values, and (2) for at most ``limit`` thresholds per feature; None: between any two values.

    About equally many documents lie between neighboring thresholds. Theta has three numbers per step: feature, threshold, jump.
    """

    def __init__(self, data: Dataset, limit: int | None = None, threads: int | None = None) -> None:
        count, self._parts = thread_count(threads), data.with_memo()
        pairs = self._parts.ask(Concatenated(pair_counts))
        total = float(np.sum(data.weights * pairs))
        if total == 0:
            raise DataError(
                "no query with documents of different grades has a weight above 0, nor one with pairs; give such a query a weight"
            )
        self.thresholds = _thresholds(self._parts, data.n_features, limit or 0, count)
        key = xxh3_128_hexdigest(pickle.dumps((self.thresholds, total)))
        self._memo = StepMemo()
        self._sums = _PairSums(tuple(self.thresholds), total, count, key, self._memo)
        self._exponent = 1

    def best(self, theta: Theta) -> Edge:
        """Return (1) at scores that are the sums of the steps of ``theta``, and the step with the largest edge."""
        while True:  # in units by the loss, a power of two that seldom changes from step to step
            loss, forces = self._parts.ask(replace(self._sums, theta=theta, exponent=self._exponent))
            exponent = max(int(np.frexp(loss)[1]), LEAST) if np.isfinite(loss) else self._exponent
            if exponent == self._exponent:
                break
            self._exponent = exponent
        if not np.isfinite(loss) or loss == 0:
            return Edge(loss, np.nan, 0, -1, np.nan)
        return self._largest(loss, forces)

    def score(self, theta: Theta) -> Score:
        """Return a function that scores documents by the steps of ``theta``."""
        return StepScore(theta, self._sums.threads, self._memo)

    def _largest(self, loss: float, forces: npt.NDArray[np.int64]) -> Edge:
        """Return the step with the largest edge to either side; of equal ones that of the first feature and the largest threshold."""
        ends, best = np.cumsum([len(thresholds) + 1 for thresholds in self.thresholds])[:-1], (0, 0, -1)
        for feature, feature_forces in enumerate(np.split(forces, ends)):
            beyond = np.cumsum(feature_forces[:0:-1])  # of the last threshold, of the one before it, ...
            if len(beyond) and abs(largest := int(beyond[np.argmax(np.abs(beyond))])) > abs(best[0]):
                best = largest, feature, len(beyond) - 1 - int(np.argmax(np.abs(beyond)))
        edge, feature, number = best
        threshold = float(self.thresholds[feature][number]) if number >= 0 else np.nan
        return Edge(loss, float(np.ldexp(edge, self._exponent - 60)) / loss, feature, number, threshold)


def _thresholds(parts: Answerer, features: int, limit: int, threads: int) -> list[npt.NDArray[np.float64]]:
    """Return the thresholds of each feature; several parts send the values of some features at a time, with their counts."""
    thresholds: list[npt.NDArray[np.float64]] = []
    while len(thresholds) < features:
        thresholds += parts.ask(_Thresholds(len(thresholds), limit, threads))
    return thresholds


Counts = tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]  #: the values of a feature, and the count of each


@dataclass(frozen=True)
class _Thresholds:
    """The thresholds of all features; or, of several parts, of some features beginning with the ``first``."""

    first: int
    limit: int
    threads: int

    def ask(self, part: Part) -> tuple[list[npt.NDArray[np.float64]], list[Counts]]:
        """Return the thresholds of the only part; or the values of some features of one of several."""
        X = part.data.X
        if part.is_complete:
            return _core.column_thresholds(X, self.limit, self.threads), []
        return [], [np.unique(X[:, j], return_counts=True) for j in range(self.first, min(self.first + FEATURES_AT_ONCE, X.shape[1]))]

    def combine(self, answers: Sequence[tuple[list[npt.NDArray[np.float64]], list[Counts]]]) -> list[npt.NDArray[np.float64]]:
        """Return the thresholds of these features."""
        thresholds = answers[0][0]
        for columns in zip(*(counts for _, counts in answers), strict=True):
            values, counts = (np.concatenate(arrays) for arrays in zip(*columns, strict=True))
            thresholds += _core.column_thresholds(np.repeat(values, counts)[:, None], self.limit, self.threads)
        return thresholds


class StepMemo:
    """The scores of the documents of this process by the steps so far, for a few more steps; they are not pickled."""

    def __init__(self, is_local: bool = True) -> None:
        self.is_local = is_local
        self._known: dict[int, tuple[RankingData, StepScores]] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return StepMemo, (False,)

    def of(self, data: RankingData) -> StepScores:
        """Return the scores of the documents of ``data``."""
        if id(data) not in self._known:
            self._known[id(data)] = data, StepScores(data.X)
        return self._known[id(data)][1]


@dataclass(frozen=True, eq=False)
class StepScore:
    """A function that scores documents by the steps of ``theta``."""

    theta: Theta
    threads: int
    memo: StepMemo

    def __call__(self, data: RankingData) -> PerDocument:
        if self.memo.is_local:
            return self.memo.of(data).at(self.theta)
        return Thresholds.from_steps(self.theta, data.n_features).score(data.X, self.threads)


@dataclass(frozen=True, eq=False)
class _PairSums:
    """The loss, summed by wide blocks, and the sums of forces by bin in units of 2^(exponent - 60)."""

    thresholds: tuple[npt.NDArray[np.float64], ...]
    total: float  #: of the weights of pairs
    threads: int
    key: str  #: by which parts recognize the problem
    memo: StepMemo
    theta: Theta = field(default_factory=lambda: np.empty(0))
    exponent: int = 1

    def ask(self, part: Part) -> tuple[list[float], npt.NDArray[np.int64]]:
        """Return the losses of the blocks of ``part``, and its forces."""
        data = part.data
        step_scores = self.memo.of(data) if part.is_complete else part.once(("scores", self.key), lambda: StepScores(data.X))
        boosting = part.once(("boosting", self.key), lambda: self._bound(data))
        losses, sums = boosting.sums(step_scores.at(self.theta), self.exponent, self.threads)
        return [float(losses[a:b].sum()) for a, b in pairwise(wide_blocks(data.indptr).tolist())], sums

    def combine(self, answers: Sequence[tuple[list[float], npt.NDArray[np.int64]]]) -> tuple[float, npt.NDArray[np.int64]]:
        """Return the sums of both."""
        loss = float(np.sum([block for blocks, _ in answers for block in blocks]))
        return loss, np.sum([sums for _, sums in answers], axis=0)

    def _bound(self, data: RankingData) -> _core.RankBoost:
        return _core.RankBoost(
            data.X, list(self.thresholds), data.y, data.indptr, data.weights / self.total, self.threads, data.native_preferences
        )
