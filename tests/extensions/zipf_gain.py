"""A positional measure of another package: normalized gain with Zipf's discounts.

zNDG@k = sum_{r<=k} (2^{y_r} - 1) / r, divided by its largest value for any order
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from exactrank.extend import PerDocument, Positional


@dataclass(frozen=True, repr=False)
class ZipfGain(Positional):
    """Normalized gain with discounts of 1/rank."""

    name: ClassVar[str] = "zNDG"

    @property
    def normalizer(self) -> Literal["ideal"]:
        return "ideal"

    def usefulness(self, y: PerDocument) -> PerDocument:
        return 2.0 ** np.maximum(y, 0.0) - 1

    def discounts(self, n: int) -> PerDocument:
        return 1 / np.arange(1, n + 1)
