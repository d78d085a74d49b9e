"""Measures that count pairs of documents in the right order.

    PairwiseCorrect = sum over pairs with y_a > y_b of [a above b]  /  (number of such pairs)                   (1)
    Bpref = 1/R sum over relevant d of  1 - min(n_d, R) / min(R, N)                                             (2)

If the data has pairs (`exactrank.data.preferences`), they are counted besides those of grades, each by its weight w:

    PairwiseCorrect = (sum of (1) + sum of w [better above worse]) / (number of pairs of (1) + sum of w)        (3)

With ``rel`` given, grades count in (1) only as relevant or not, and it is the area under the ROC curve of the query (AUC). A query all
of whose documents are alike has no such pair and is ``empty``.

In (2) (Buckley & Voorhees 2004) n_d is the number of judged non-relevant documents above d, R and N the numbers of relevant and judged
non-relevant ones. A grade below zero means not judged, and does not count.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import PerDocument
from exactrank.data.ranking_data import RankingData
from exactrank.errors import MeasureError
from exactrank.measures.base import Measure
from exactrank.measures.binary import Binary
from exactrank.measures.families import mirror


@dataclass(frozen=True, repr=False)
class PairwiseCorrect(Measure):
    """The share of correctly ordered pairs, (1); ``rel=None`` compares the grades themselves."""

    rel: float | None = None

    name: ClassVar[str] = "PairwiseCorrect"
    aliases: ClassVar[Mapping[str, Mapping[str, Any]]] = {"AUC": {"rel": 1}}
    has_cutoff: ClassVar[bool] = False
    counts_pairs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rel is not None:
            self._expect_number("rel")

    @property
    def equations(self) -> tuple[str, ...]:
        return (r"\text{PairwiseCorrect} = \frac{\sum_{a, b} [a, b]}{\sum_{a, b} 1}",)

    @property
    def symbols(self) -> str:
        return "Sums are over pairs of documents a and b of which a is better; [a, b] is 1 where a is ranked above b."

    def usefulness(self, y: PerDocument) -> PerDocument:
        """Return the grade, or 1 for a relevant document and 0 for others."""
        return y if self.rel is None else (y >= self.rel).astype(np.float64)

    def kernel(self, y: PerDocument, longest: int) -> tuple[_core.Kernel, PerDocument]:
        return _core.pairwise_correct(self._gain, self.empty_value), y

    def _kernel_on(self, data: RankingData) -> tuple[_core.Kernel, PerDocument]:
        if data.preferences is None:
            return super()._kernel_on(data)
        kernel = _core.preference_correct(self._gain, self.grades(data), data.preferences.native(data.indptr), self.empty_value)
        return kernel, np.arange(data.n_documents, dtype=np.float64)  # pairs are of documents, not of grades

    def worst_first(self, data: RankingData) -> PerDocument:
        """Return the grades or, for data with pairs, the weight of the pairs that a document wins minus that of those that it loses."""
        if data.preferences is None:
            return super().worst_first(data)
        grades = self.grades(data)
        wins, losses = data.preferences.wins_and_losses(data.n_documents)
        for first, last in zip(data.indptr[:-1], data.indptr[1:], strict=True):
            u = self.usefulness(grades[first:last])
            rising = np.sort(u)
            wins[first:last] += np.searchsorted(rising, u)
            losses[first:last] += last - first - np.searchsorted(rising, u, side="right")
        return np.asarray(wins - losses)

    @property
    def _gain(self) -> _core.Gain:
        return _core.Gain("identity") if self.rel is None else _core.Gain("threshold", self.rel)

    def swap_deltas(self, y: npt.ArrayLike) -> npt.NDArray[np.float64]:
        u = self.usefulness(np.asarray(y, np.float64))
        wins = (u[:, None] > u[None, :]).astype(float)  # wins[a, b]: a above b would be right
        pairs = wins.sum()
        if pairs == 0:
            return np.zeros((len(u), len(u)))
        # The document that was at j is now above those between, the one that was at i below them.
        better = wins - wins.T
        running = np.cumsum(better, axis=1)
        before = running - better
        j_over_between = np.diag(before)[None, :] - running.T
        i_over_between = before - np.diag(running)[:, None]
        return mirror((j_over_between - i_over_between - better) / pairs)


@dataclass(frozen=True, repr=False)
class Bpref(Binary):
    """Preference of relevant over judged non-relevant documents, (2)."""

    name: ClassVar[str] = "Bpref"
    has_cutoff: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rel <= 0:
            raise MeasureError(f"Bpref: rel must be positive, since grades below 0 are not judged; got {self.rel}")

    @property
    def equations(self) -> tuple[str, ...]:
        return (r"\text{Bpref} = \frac{1}{R} \sum_d (1 - \frac{\min(n, R)}{\min(R, N)})",)

    @property
    def symbols(self) -> str:
        return "R and N count the judged documents that are relevant and that are not; n counts the latter above the relevant document d."

    def kernel(self, y: PerDocument, longest: int) -> tuple[_core.Kernel, PerDocument]:
        return _core.bpref(self.rel, self.empty_value), y

    def swap_deltas(self, y: npt.ArrayLike) -> npt.NDArray[np.float64]:
        y = np.asarray(y, np.float64)
        relevant, nonrelevant = (y >= self.rel).astype(float), ((y >= 0) & (y < self.rel)).astype(float)
        total, bound = relevant.sum(), min(relevant.sum(), nonrelevant.sum())
        if total == 0 or bound == 0:
            return np.zeros((len(y), len(y)))
        above = np.cumsum(nonrelevant) - nonrelevant

        def credit(n: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
            return np.asarray(1 - np.minimum(n, total) / bound)

        # Effect of one non-relevant document more, or less, above the relevant documents between i and j, from running sums.
        running = [np.cumsum(relevant * (credit(above + step) - credit(above))) for step in (1.0, -1.0)]
        gained, lost = (np.concatenate([[0.0], sums[:-1]])[None, :] - sums[:, None] for sums in running)
        change = nonrelevant[None, :] - nonrelevant[:, None]  # above those between
        between = np.where(change > 0, gained, np.where(change < 0, lost, 0.0))
        down = relevant[:, None] * (credit(above[None, :] + change) - credit(above)[:, None])
        up = relevant[None, :] * (credit(above)[:, None] - credit(above)[None, :])
        both_relevant = (relevant[:, None] * relevant[None, :]) > 0
        return mirror(np.where(both_relevant, 0.0, between + down + up) / total)
