"""Expected reciprocal rank (Chapelle, Metzler, Zhang & Grinspan 2009).

    ERR = sum_r 1/r u_r prod_{t<r} (1 - u_t),    u = (2^y - 1) / 2^max_grade

The reader stops at a document with chance u. ``max_grade`` is part of the definition, not taken from the data, so that
training, validation and test numbers can be compared.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from exactrank import _core
from exactrank.arrays import PerDocument
from exactrank.errors import DataError
from exactrank.measures.families import Cascade


@dataclass(frozen=True, repr=False)
class ERR(Cascade):
    """Expected reciprocal rank for grades from 0 to ``max_grade``."""

    max_grade: float = 4

    name: ClassVar[str] = "ERR"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect_number("max_grade", least=0, most=1000)

    @property
    def native_gain(self) -> _core.Gain | None:
        return _core.Gain("stopping", self.max_grade)

    def usefulness(self, y: PerDocument) -> PerDocument:
        return np.asarray((np.exp2(np.maximum(y, 0)) - 1) / 2**self.max_grade)

    def discounts(self, n: int) -> PerDocument:
        return 1 / np.arange(1, n + 1)

    def kernel(self, y: PerDocument, longest: int) -> tuple[_core.Kernel, PerDocument]:
        highest = float(y.max())
        if highest > self.max_grade:
            raise DataError(f"grade {highest:g} exceeds ERR's max_grade={self.max_grade:g}; use ERR(max_grade={highest:g})")
        return super().kernel(y, longest)
