"""Pairwise-correct: the share of pairs of unlike grade that are ranked in the right order.

    sum over pairs with y_a > y_b of [a above b]  /  (number of such pairs)

With ``rel`` given, grades count only as relevant or not, and this is the area under the ROC curve of the query (AUC).
A query all of whose documents are alike has no such pair and is ``empty``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import PerDocument
from exactrank.measures.families import PairCount, mirrored


@dataclass(frozen=True, repr=False)
class PairwiseCorrect(PairCount):
    """The share of correctly ordered pairs; ``rel=None`` compares the grades themselves."""

    rel: float | None = None

    name: ClassVar[str] = "PairwiseCorrect"
    aliases: ClassVar[Mapping[str, Mapping[str, Any]]] = {"AUC": {"rel": 1}}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rel is not None:
            self._expect_number("rel")

    def usefulness(self, y: PerDocument) -> PerDocument:
        """The grade, or whether it is relevant."""
        return y if self.rel is None else (y >= self.rel).astype(np.float64)

    def kernel(self, y: PerDocument, longest: int) -> tuple[_core.Kernel, PerDocument]:
        gain = _core.Gain("identity") if self.rel is None else _core.Gain("threshold", self.rel)
        return _core.pairwise_correct(gain, self.empty_value), y

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
        return mirrored((j_over_between - i_over_between - better) / pairs)
