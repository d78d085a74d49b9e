"""AdaRank (Xu & Li 2007): parts that fare badly weigh more, and each step takes the coordinate that is best for them.

    phi_k = sum_i P_i E_i(k),    E_i(k), from -1 to 1: how well coordinate k alone does on part i                (1)
    theta <- theta + alpha e_k,    k with the largest phi,    alpha = 1/2 ln((1 + phi_k) / (1 - phi_k))         (2)
    P_i <- w_i e^{-E_i(theta)} / sum_j w_j e^{-E_j(theta)},    at first P = w, which sums to 1                    (3)

A coordinate that does better upside down is a candidate with its sign turned. After T steps (their Theorem 1)

    sum_i w_i E_i(theta_T) >= 1 - prod_t e^{-d_t} sqrt(1 - phi_t^2)                                              (4)
    d_t = min_i [E_i(theta_t) - E_i(theta_{t-1}) - alpha_t E_i(k_t)],    E_i(theta_0) taken for 0

By (3) no two parts' weights differ by more than a factor e^2, so the same coordinate tends to be the best again and again. Hence a
coordinate may have to rest for some steps after each that takes it; published is none.
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from exactrank.errors import SettingError
from exactrank.optimizers.base import State, Theta
from exactrank.stored import storable

Floats = npt.NDArray[np.float64]
#: A coordinate that does everything right would have an infinite alpha; one this good ends the search.
PERFECT = 1 - 1e-12


class Performing(Protocol):
    """A problem of many parts, on each of which parameters do well or badly."""

    @property
    def weight(self) -> Floats:
        """Of each part; they sum to 1."""

    @property
    def alone(self) -> Floats:
        """E of each coordinate alone, by sign (+ and, maybe, -), coordinate and part."""

    def performance(self, theta: Theta) -> tuple[float, Floats]:
        """The mean of E at ``theta``, and E of each part."""


@storable
@dataclass(frozen=True, kw_only=True)
class AdaState(State[Theta]):
    """A state with the weights (3) and the coordinates taken so far, the last one last."""

    share: Floats = field(repr=False)
    taken: tuple[int, ...] = ()


@dataclass(frozen=True)
class AdaRank:
    """(1) to (3); a coordinate rests for ``rest`` steps once it was taken, None: until all others were. The value is the mean E.

    Without any coordinate nothing is told apart, so the start is after the first step. Done when more of the same would follow.
    """

    asks: ClassVar[type] = Performing

    rest: int | None = 0

    def __post_init__(self) -> None:
        if self.rest is not None and self.rest < 0:
            raise SettingError(f"rest must be a number of rounds of at least 0, or None, got {self.rest}")

    def init(self, problem: Performing, theta: Theta, rng: np.random.Generator) -> AdaState:
        """After the first step from ``theta``, where all parts weigh what they are given to."""
        return self.step(problem, AdaState(theta, -math.inf, share=problem.weight))

    def step(self, problem: Performing, state: AdaState) -> AdaState:
        """One coordinate."""
        phi = np.einsum("skp,p->sk", problem.alone, state.share)  # (1); a matrix product may round equal rows differently
        phi[:, self._resting(state.taken, len(state.theta))] = -math.inf
        turned, k = np.unravel_index(np.argmax(phi), phi.shape)
        best = float(phi[turned, k])
        alpha = math.atanh(min(max(best, -PERFECT), PERFECT))
        theta = state.theta.copy()
        theta[k] += -alpha if turned else alpha  # (2)
        value, performed = problem.performance(theta)
        heavy = problem.weight * np.exp(-performed)
        more_of_the_same = np.count_nonzero(theta) == 1 and np.array_equal(np.sign(theta), np.sign(state.theta))
        return AdaState(
            theta,
            value,
            state.steps + 1,
            more_of_the_same or best >= PERFECT,
            share=heavy / heavy.sum(),  # (3)
            taken=(*state.taken, int(k)),
        )

    def _resting(self, taken: tuple[int, ...], dimension: int) -> list[int]:
        rest = dimension - 1 if self.rest is None else min(self.rest, dimension - 1)
        return list(taken[-rest:]) if rest else []
