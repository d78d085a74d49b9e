"""bpref (Buckley & Voorhees 2004): how many judged non-relevant documents stand above the relevant ones.

    bpref = 1/R sum over relevant d of  1 - min(n_d, R) / min(R, N)

n_d is the number of judged non-relevant documents above d, R and N the numbers of relevant and judged non-relevant ones.
A grade below zero means not judged, and does not count.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import PerDocument
from exactrank.errors import MeasureError
from exactrank.measures.binary import Binary
from exactrank.measures.families import PairCount, mirrored


@dataclass(frozen=True, repr=False)
class Bpref(Binary, PairCount):
    """Preference of relevant over judged non-relevant documents."""

    name: ClassVar[str] = "Bpref"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rel <= 0:
            raise MeasureError(f"Bpref: rel must be positive, since grades below 0 are not judged; got {self.rel}")

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

        # What one more, or one less, non-relevant document above does to the relevant ones between i and j.
        more, less = (np.cumsum(relevant * (credit(above + step) - credit(above))) for step in (1.0, -1.0))
        change = nonrelevant[None, :] - nonrelevant[:, None]  # above those between
        between = np.where(change > 0, _between(more), np.where(change < 0, _between(less), 0.0))
        down = relevant[:, None] * (credit(above[None, :] + change) - credit(above)[:, None])
        up = relevant[None, :] * (credit(above)[:, None] - credit(above)[None, :])
        both = (relevant[:, None] * relevant[None, :]) > 0
        return mirrored(np.where(both, 0.0, between + down + up) / total)


def _between(running: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Sums over i < r < j from a running sum."""
    before = np.concatenate([[0.0], running[:-1]])
    return np.asarray(before[None, :] - running[:, None])
