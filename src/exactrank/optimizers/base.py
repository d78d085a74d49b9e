"""What all optimizers share: a state that is a value, made by ``init`` and carried forward by ``step``.

Values are to be made large, here and in all objectives. Only a risk, which large-margin methods know planes below, is to be made
small, with the primal and dual that belong to it; `Duality.value` and `exactrank.optimizers.regularised.value_of` turn it.

A state holds everything that the next step depends on, the random generator's state among it, so that it can be kept and
taken up again to the bit.
"""

from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

Theta = npt.NDArray[np.float64]  #: the parameters, flat


class Valued(Protocol):
    """A problem that can be asked for its value, which is to be made large."""

    def value(self, theta: Theta) -> float:
        """The objective at ``theta``."""


@dataclass(frozen=True)
class Duality:
    """Between which bounds the least value of a problem that is to be made small lies."""

    primal: float  #: the problem's value at theta
    dual: float  #: no theta has a smaller one

    @property
    def value(self) -> float:
        """At theta, to be made large."""
        return -self.primal

    @property
    def gap(self) -> float:
        """How far theta can be from the best, as a share of its value."""
        return (self.primal - self.dual) / max(abs(self.primal), 1e-300)


@dataclass(frozen=True)
class State:
    """Where an optimizer stands; an optimizer that needs more to go on extends it."""

    theta: Theta
    value: float
    steps: int = 0
    done: bool = False  #: converged: another step would change nothing
    trouble: str = ""  #: why no step could be made, where that is so
    duality: Duality | None = None  #: what is known of the best value, where the method knows


S = TypeVar("S", bound=State)


class Optimizer(Protocol[S]):
    """Something that makes a problem's value larger, step by step."""

    def init(self, problem: Any, theta: Theta, rng: np.random.Generator) -> S:
        """The state to start from."""

    def step(self, problem: Any, state: S) -> S:
        """The state after one step, whose value is not smaller where the optimizer promises to ascend."""


def diverged(rate: float, epoch: int) -> str:
    """What to say when numbers have become too large to go on."""
    return f"a learning rate of {rate:g} diverged in epoch {epoch}; take a smaller one"
