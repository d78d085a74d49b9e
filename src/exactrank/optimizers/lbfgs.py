"""L-BFGS (Liu & Nocedal 1989) for smooth functions: the last few steps and changes of slope stand for the curvature.

With s_i the last steps and y_i the changes of the (descent) slope along them, rho_i = 1 / (s_i . y_i), the direction is H g by
two loops over them:

    newest to oldest:  a_i = rho_i s_i . q,  q <- q - a_i y_i,    then  r = (s.y / y.y) q                       (1)
    oldest to newest:  r <- r + s_i (a_i - rho_i y_i . r)                                                        (2)

and the step along it satisfies the strong Wolfe conditions (SciPy's line search).
"""

import warnings
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np
from scipy.optimize import line_search

from exactrank.errors import SettingError
from exactrank.optimizers.base import State, Theta
from exactrank.stored import storable


class Sloped(Protocol):
    """A problem with a slope."""

    def value_and_slope(self, theta: Theta) -> tuple[float, Theta]:
        """The objective at ``theta``, which is to be made large, and its slope."""


@storable
@dataclass(frozen=True, kw_only=True)
class LbfgsState(State[Theta]):
    """A state with the slope there and what (1) and (2) remember."""

    slope: Theta
    moves: tuple[tuple[Theta, Theta], ...] = ()  #: (s_i, y_i), oldest first


@dataclass(frozen=True)
class LBFGS:
    """Ascend along (1) and (2), remembering ``memory`` steps; done when the slope or the gain is below ``tolerance``."""

    asks: ClassVar[type] = Sloped

    memory: int = 10
    tolerance: float = 1e-8

    def __post_init__(self) -> None:
        if self.memory < 1 or not self.tolerance >= 0:
            raise SettingError(f"L-BFGS needs a memory of at least 1 and a tolerance of at least 0, got {self.memory} and {self.tolerance}")

    def init(self, problem: Sloped, theta: Theta, rng: np.random.Generator) -> LbfgsState:
        """At ``theta``; nothing here is random."""
        value, slope = problem.value_and_slope(theta)
        trouble = "" if np.isfinite(value) else "the objective is not finite at the start; scale the features or the start down"
        return LbfgsState(theta, value, done=bool(trouble), trouble=trouble, slope=slope)

    def step(self, problem: Sloped, state: LbfgsState) -> LbfgsState:
        """One step, which never lowers the value."""
        direction = self._direction(state)
        found = _along(problem, state, direction)
        if found is None:  # what is remembered leads nowhere: begin again, or there is nowhere to go
            return replace(state, steps=state.steps + 1, moves=(), done=not state.moves)
        theta, value, slope = found
        move, bend = theta - state.theta, state.slope - slope
        moves = (*state.moves, (move, bend))[-self.memory :] if move @ bend > 0 else state.moves
        flat = float(np.abs(slope).max()) <= self.tolerance or value - state.value <= self.tolerance * max(abs(value), 1e-12)
        return LbfgsState(theta, value, state.steps + 1, flat, slope=slope, moves=moves)

    def _direction(self, state: LbfgsState) -> Theta:
        q, shares = state.slope.copy(), []
        for s, y in reversed(state.moves):  # (1)
            shares.append((s @ q) / (s @ y))
            q -= shares[-1] * y
        if state.moves:
            s, y = state.moves[-1]
            q *= (s @ y) / (y @ y)
        for (s, y), share in zip(state.moves, reversed(shares), strict=True):  # (2)
            q += s * (share - (y @ q) / (s @ y))
        return q if q @ state.slope > 0 else state.slope.copy()


def _along(problem: Sloped, state: LbfgsState, direction: Theta) -> tuple[Theta, float, Theta] | None:
    """A better point along ``direction`` with its value and slope, or None."""
    seen: dict[bytes, tuple[float, Theta]] = {}

    def asked(theta: Theta) -> tuple[float, Theta]:
        key = theta.tobytes()
        if key not in seen:
            seen[key] = problem.value_and_slope(theta)
        return seen[key]

    first = direction if state.moves else direction / max(1.0, float(np.linalg.norm(direction)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a search failed is seen by its result
        alpha, *_ = line_search(lambda t: -asked(t)[0], lambda t: -asked(t)[1], state.theta, first, -state.slope, -state.value, maxiter=20)
    if alpha is None or not alpha > 0:
        return None
    theta = state.theta + alpha * first
    value, slope = asked(theta)
    return (theta, value, slope) if np.isfinite(value) and value >= state.value else None
