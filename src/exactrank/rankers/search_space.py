"""What tuning may choose from: numbers of a range, or values of a list, by the name of the parameter.

These are what scikit-learn calls distributions: ``RandomizedSearchCV(xr.LambdaMART(), dict(xr.LambdaMART.space), ...)`` takes them too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``; where they are whole, so are the numbers drawn. ``log`` draws ratios evenly."""

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high or (self.log and self.low <= 0):
            raise ValueError(f"{self} is empty; low must be below high, and above 0 on a logarithmic scale")

    @property
    def whole(self) -> bool:
        """Are they whole numbers?"""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def rvs(self, random_state: np.random.RandomState) -> float:
        """A number at random, as scikit-learn asks for it.

        >>> Range(1, 3).rvs(np.random.RandomState(0)), round(Range(0.01, 1, log=True).rvs(np.random.RandomState(0)), 4)
        (2, 0.1252)
        """
        u = random_state.uniform()
        if self.whole:
            low, high = (np.log(self.low), np.log(self.high + 1)) if self.log else (self.low, self.high + 1)
            at = low + u * (high - low)
            return min(int(np.exp(at) if self.log else at), int(self.high))
        if self.log:
            return float(np.exp(np.log(self.low) + u * (np.log(self.high) - np.log(self.low))))
        return float(self.low + u * (self.high - self.low))

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}" + (", logarithmic" if self.log else "")


Space = Mapping[str, Range | Sequence[Any]]
