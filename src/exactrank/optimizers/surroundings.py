"""Gains for a function of which nothing is known, from some of its values around the start.

Along a step u of length l let

    D(u) = f(theta + u) - f(theta - u),    S(u) = f(theta + u) + f(theta - u) - 2 f(theta)                      (1)

**How far to look.** Estimates of the slope are made of values at a distance l from theta. At first l is a quarter of |theta|, or
of 1 where theta is 0: far enough to see past the steps of a ranking measure. It is doubled as long as most of eight random
directions move nothing, or all looks like a plane: sum |S| < sum |D| / 4, and D still grows by half or more.

**How far to go.** Estimates g of the slope, taken as u = l g / |g|, give f'g = D |g| / 2 l and g'f''g = S |g|^2 / l^2 by (1), and

    a_1 = 1/2  sum f'g / sum |g'f''g|                                                                           (2)

is half the step that would gain the most on average if f were a quadratic; half, since later slopes may be steeper. First steps
are sqrt(d) l long at most, in d dimensions, and l / 2 where (2) is no number above 0: Spall's rule (1998), a wanted size.

Neither depends on the units of f or theta. Where f is rough and its slope lost in steps, D and S are both of the size of the
roughness, so first steps are about l / 4 long.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from exactrank.optimizers.base import Theta
from exactrank.optimizers.counted import Counted

#: How many directions and estimates are looked at.
LOOKS = 8
SHARE = 0.25  #: of |theta|: the first length
BEND = 0.25  #: all looks like a plane where S is below this share of D,
GROWTH = 1.5  #: and D grows by this factor over twice the length
DOUBLINGS = 20  #: of the length, at most
CAUTION = 0.5  #: the share of the best first step that is taken


@dataclass(frozen=True)
class Surroundings:
    """What is around ``theta``, where ``problem`` has ``value``."""

    problem: Counted
    theta: Theta
    value: float

    def changes(self, steps: npt.NDArray[np.float64]) -> tuple[Theta, Theta]:
        """D and S along each row of ``steps``, (1)."""
        forth, back = self.problem.both_ways(self.theta, steps)
        return forth - back, forth + back - 2 * self.value

    def length(self, rng: np.random.Generator) -> float:
        """How far estimates should look."""
        directions = signs(rng, LOOKS, len(self.theta)) / math.sqrt(len(self.theta))
        length = SHARE * (float(np.linalg.norm(self.theta)) or 1.0)
        D, S = self.changes(length * directions)
        for _ in range(DOUBLINGS):
            still = 2 * np.count_nonzero(D) < LOOKS
            if not still and np.abs(S).sum() >= BEND * np.abs(D).sum():
                break
            further = self.changes(2 * length * directions)
            if not still and np.abs(further[0]).sum() < GROWTH * np.abs(D).sum():
                break
            length, (D, S) = 2 * length, further
        return length

    def first_gain(self, slopes: npt.NDArray[np.float64], length: float) -> float:
        """a_1 by (2) for estimates ``slopes``, a row each; 1 where all are 0."""
        size = np.linalg.norm(slopes, axis=1)
        if not np.any(size):
            return 1.0
        D, S = self.changes(slopes * (length / np.where(size > 0, size, 1.0))[:, None])
        gain, bend = float((D * size).sum() / (2 * length)), float((np.abs(S) * size**2).sum() / length**2)
        as_long = length / float(size.mean())
        return min(CAUTION * gain / bend, math.sqrt(len(self.theta)) * as_long) if gain > 0 and bend > 0 else CAUTION * as_long


def signs(rng: np.random.Generator, rows: int, columns: int) -> npt.NDArray[np.float64]:
    """+1 or -1, evenly."""
    return np.asarray(rng.integers(0, 2, (rows, columns)) * 2.0 - 1.0)
