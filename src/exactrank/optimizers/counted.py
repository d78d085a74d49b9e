"""A problem whose values are counted: what methods that ask for nothing else are compared by."""

from typing import Any

import numpy as np
import numpy.typing as npt

from exactrank.optimizers.base import Theta, Valued

#: Maximum number of numbers held for points that are asked for at once.
NUMBERS_AT_ONCE = 1 << 22


class Counted:
    """``problem``, asked for many values at once where it has ``values`` or ``differences``."""

    def __init__(self, problem: Valued) -> None:
        self._problem: Any = problem
        self.evaluations = 0

    def value(self, theta: Theta) -> float:
        """The value at ``theta``."""
        self.evaluations += 1
        return float(self._problem.value(theta))

    def values(self, thetas: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The value at each row."""
        if not hasattr(self._problem, "values"):
            return np.array([self.value(theta) for theta in thetas])
        self.evaluations += len(thetas)
        return np.asarray(self._problem.values(thetas))

    def both_ways(self, theta: Theta, steps: npt.NDArray[np.float64]) -> tuple[Theta, Theta]:
        """The values at ``theta + step`` and at ``theta - step`` for each row of ``steps``."""
        forth, back = np.split(self.values(np.concatenate([theta + steps, theta - steps])), 2)
        return forth, back

    def differences(self, theta: Theta, c: float) -> Theta:
        """f(theta + c e_i) - f(theta - c e_i) for every coordinate i."""
        d = len(theta)
        if hasattr(self._problem, "differences"):
            self.evaluations += 2 * d
            return np.asarray(self._problem.differences(theta, c))
        rows = max(1, NUMBERS_AT_ONCE // (2 * d))
        parts = [np.subtract(*self.both_ways(theta, c * np.eye(min(rows, d - i), d, i))) for i in range(0, d, rows)]
        return np.concatenate(parts)
