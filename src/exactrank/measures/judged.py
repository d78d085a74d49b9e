"""The share of judged documents: how much of a ranking is known.

    Judged@k = (judged documents among the first k) / min(k, retrieved documents)                           (1)

A grade below 0 means that nobody has judged the document (`exactrank.measures.unjudged` has what follows for other measures). For a
query for which nothing was retrieved it is 0. It is the measure of this name in ir_measures.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import PerDocument
from exactrank.measures.base import Measure


@dataclass(frozen=True, repr=False)
class Judged(Measure):
    """The share of judged documents among the first ``k``, (1)."""

    name: ClassVar[str] = "Judged"

    @property
    def equations(self) -> tuple[str, ...]:
        retrieved = r"\min(k, n)" if self.k else "n"
        return (rf"{self._symbol('Judged')} = \frac{{1}}{{{retrieved}}} {self._sum_over_ranks} [y_r \ge 0]",)

    @property
    def symbols(self) -> str:
        return "n is the number of retrieved documents; a grade below 0 means that nobody has judged the document."

    def kernel(self, y: PerDocument, longest: int) -> tuple[_core.Kernel, PerDocument]:
        discounts = np.ones(min(self.cutoff, longest))
        return _core.positional(_core.Gain("threshold", 0.0), discounts, self.cutoff, "retrieved", False, self.empty_value), y

    def swap_deltas(self, y: npt.ArrayLike) -> npt.NDArray[np.float64]:
        is_judged = (np.asarray(y, np.float64) >= 0).astype(np.float64)
        if not is_judged.any():
            return np.zeros((len(is_judged), len(is_judged)))
        counts = (np.arange(len(is_judged)) < self.cutoff).astype(np.float64)
        return (is_judged[None, :] - is_judged[:, None]) * (counts[:, None] - counts[None, :]) / min(self.cutoff, len(is_judged))
