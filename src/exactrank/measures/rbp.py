"""Rank-biased precision (Moffat & Zobel 2008): a reader goes on to the next rank with chance p.

RBP = (1 - p) sum_r [y_r >= rel] p^(r-1)
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from exactrank.arrays import PerDocument
from exactrank.errors import MeasureError
from exactrank.measures.binary import Binary
from exactrank.measures.families import Positional


@dataclass(frozen=True, repr=False)
class RBP(Binary, Positional):
    """Rank-biased precision with persistence ``p``."""

    p: float = 0.8

    name: ClassVar[str] = "RBP"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect_number("p", least=0, most=1)
        if self.p in (0, 1):
            raise MeasureError(f"RBP: p must lie between 0 and 1, got {self.p}")

    def discounts(self, n: int) -> PerDocument:
        return np.asarray((1 - self.p) * self.p ** np.arange(n), np.float64)
