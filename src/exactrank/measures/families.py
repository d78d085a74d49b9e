"""The four families of measures; a new member of the first two needs only its usefulness and its discounts.

With u the usefulness of the documents in ranked order, swapping ranks i < j changes the measure by

    delta_ij = (u_j - u_i) * omega_ij                                                                       (1)

| family            | value                                | omega_ij                                              |
|-------------------|--------------------------------------|-------------------------------------------------------|
| positional        | sum_r u_r d_r / N                    | (d_i - d_j) / N                                       |
| cascade           | sum_r c_r u_r prod_{t<r} (1 - u_t)   | P_{i-1} (c_i - B_ij - c_j Q_ij)                       |
| average precision | sum_r w_r u_r C_r / N                | (w_i (C_{i-1} + 1) - w_j C_j + sum_{i<r<j} w_r u_r)/N |

where P_i = prod_{t<=i} (1 - u_t), Q_ij = prod_{i<t<j} (1 - u_t), B_ij = sum_{i<r<j} c_r u_r prod_{i<t<r} (1 - u_t), C_r is
the number of relevant documents down to rank r, w_r = 1/r, and d, c, w are 0 beyond the cutoff. Pair counts change by
one pair with each adjacent swap.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import PerDocument
from exactrank.errors import DataError, MeasureError
from exactrank.measures.base import Measure

Square = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Discounted(Measure):
    """A measure made of a usefulness for each grade and a discount for each rank."""

    @abstractmethod
    def usefulness(self, y: PerDocument) -> PerDocument:
        """Return the usefulness of documents of grades ``y``."""

    @abstractmethod
    def discounts(self, n: int) -> PerDocument:
        """Return the discounts of ranks 1 to ``n``; the cutoff is applied elsewhere."""

    @property
    def native_gain(self) -> _core.Gain | None:
        """`usefulness` as a gain of the kernels; None if it is computed in Python."""
        return None

    def _parts(self, y: PerDocument, longest: int) -> tuple[_core.Gain, PerDocument, PerDocument]:
        """Return the arguments of the kernels: a gain, the grades that it reads, and the discounts of all ranks that count."""
        ranks, gain = min(self.cutoff, longest), self.native_gain
        discounts = self._checked_numbers("discounts", self.discounts(ranks), ranks)
        if gain is None:
            return _core.Gain("identity"), self._checked_numbers("usefulness", self.usefulness(y), len(y)), discounts
        return gain, y, discounts

    def _checked_numbers(self, method: str, values: PerDocument, count: int) -> PerDocument:
        """Return the result of a method of the measure; raise unless it has as many numbers as the kernel reads."""
        numbers = np.ascontiguousarray(values, np.float64)
        if numbers.shape != (count,) or not np.isfinite(numbers).all():
            raise MeasureError(f"{type(self).__name__}.{method} must give {count} finite numbers, got shape {numbers.shape}")
        return numbers

    def _cut_discounts(self, n: int) -> PerDocument:
        return np.where(np.arange(n) < self.cutoff, self.discounts(n), 0.0)


@dataclass(frozen=True, repr=False)
class Positional(Discounted):
    """sum_r u_r d_r / N, where `normalizer` defines N."""

    @property
    def normalizer(self) -> Literal["one", "length", "total", "ideal", "mean_ideal"]:
        """N: 1, min(k, documents), the sum of all u, or the largest value that any order has.

        ``mean_ideal`` is the mean of the measure over all cutoffs up to k, each as a share of its own ideal.
        """
        return "one"

    @property
    def short_is_zero(self) -> bool:
        """True if a list shorter than the cutoff has the value 0."""
        return False

    @property
    def is_linear(self) -> bool:
        """True if u is proportional to the grade and neither N, nor the order of ties, nor ``empty`` depends on grades."""
        if self.normalizer not in ("one", "length") or self.empty != 0 or self.ties == "pessimistic":
            return False
        grades = np.array([1.0, 0.0, 0.3, 2.5, 40.0])
        try:
            u = self.usefulness(grades)
        except DataError:  # a table has no gain for grades between its own
            return False
        return bool(np.all(u == grades * u[0]))

    def kernel(self, y: PerDocument, longest: int) -> tuple[_core.Kernel, PerDocument]:
        gain, grades, discounts = self._parts(y, longest)
        return _core.positional(gain, discounts, self.cutoff, self.normalizer, self.short_is_zero, self.empty_value), grades

    def swap_deltas(self, y: npt.ArrayLike) -> Square:
        u = self.usefulness(np.asarray(y, np.float64))
        if not np.any(u > 0) or (self.short_is_zero and len(u) < self.cutoff):
            return np.zeros((len(u), len(u)))
        d, cutoff = self._cut_discounts(len(u)), min(self.cutoff, len(u))
        ideal = np.cumsum(np.sort(u)[::-1] * d)
        if self.normalizer == "mean_ideal":
            inverse = np.divide(1, ideal[:cutoff], out=np.zeros(cutoff), where=ideal[:cutoff] > 0)
            d = np.pad(np.cumsum(inverse[::-1])[::-1] / cutoff, (0, len(u) - cutoff)) * d
        else:
            d = d / {"one": 1.0, "length": cutoff, "total": u.sum(), "ideal": ideal[-1]}[self.normalizer]
        return np.asarray((u[None, :] - u[:, None]) * (d[:, None] - d[None, :]))


@dataclass(frozen=True, repr=False)
class Cascade(Discounted):
    """sum_r c_r u_r prod_{t<r} (1 - u_t): a reader goes down the list and stops at rank r with probability u_r."""

    def kernel(self, y: PerDocument, longest: int) -> tuple[_core.Kernel, PerDocument]:
        gain, grades, discounts = self._parts(y, longest)
        return _core.cascade(gain, discounts, self.cutoff, self.empty_value), grades

    def swap_deltas(self, y: npt.ArrayLike) -> Square:
        u = self.usefulness(np.asarray(y, np.float64))
        n, c = len(u), self._cut_discounts(len(u))
        reach = np.concatenate([[1.0], np.cumprod(1 - u)[:-1]])  # P_{i-1}
        omega = np.zeros((n, n))
        for i in range(n - 1):
            pass_between = np.concatenate([[1.0], np.cumprod(1 - u[i + 1 : -1])])  # Q_ij for j > i
            gained_between = np.concatenate([[0.0], np.cumsum(c[i + 1 : -1] * u[i + 1 : -1] * pass_between[:-1])])  # B_ij
            omega[i, i + 1 :] = reach[i] * (c[i] - gained_between - c[i + 1 :] * pass_between)
        return mirror((u[None, :] - u[:, None]) * omega)


def mirror(upper: Square) -> Square:
    """Return the symmetric matrix with this upper triangle and zeros on the diagonal."""
    strict = np.triu(upper, 1)
    return strict + strict.T
