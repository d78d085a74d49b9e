"""What measures of binary relevance share: a document is relevant if its grade is at least ``rel``."""

from dataclasses import dataclass

import numpy as np

from exactrank import _core
from exactrank.arrays import PerDocument
from exactrank.measures.base import Measure


@dataclass(frozen=True, repr=False)
class Binary(Measure):
    """A measure for which a grade of at least ``rel`` is relevant, whatever it is beyond."""

    rel: float = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect_number("rel")

    @property
    def native_gain(self) -> _core.Gain | None:
        """[y >= rel] as the kernels know it."""
        return _core.Gain("threshold", self.rel)

    def usefulness(self, y: PerDocument) -> PerDocument:
        """[y >= rel]"""
        return (y >= self.rel).astype(np.float64)
