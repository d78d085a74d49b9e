"""Common interface of all optimizers: a state that is a value, made by ``init`` and advanced by ``step``.

Values are maximized, here and in all objectives. Only risks, which large-margin methods bound from below by planes, are minimized;
`Duality.value` and `exactrank.learning.optimizers.cutting_plane.value_of` change the sign.

A state holds everything that the next step depends on, including the state of the random generator, so that it can be saved and
resumed to the bit. An optimizer uses only those methods of its problem that its protocol names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import getattr_static
from typing import ClassVar, Generic, Never, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from exactrank._support.serialize import storable
from exactrank.errors import IncompatibleError
from exactrank.learning import optimizers

Theta = npt.NDArray[np.float64]  #: the parameters, flat
Draws = Mapping[str, object]  #: the state of a random generator
#: Methods that compute many values at once; optimizers that need values use them if a problem has them.
AT_ONCE = ("values", "values_along", "differences")


@runtime_checkable
class Valued(Protocol):
    """A problem with a value, which is to be maximized."""

    def value(self, theta: Theta) -> float:
        """Return the objective at ``theta``."""


@storable
@dataclass(frozen=True)
class Duality:
    """The bounds on the minimum of a problem that is minimized."""

    primal: float  #: the problem's value at theta
    dual: float  #: no theta has a smaller one

    @property
    def value(self) -> float:
        """The value at theta, to be maximized."""
        return -self.primal

    @property
    def gap(self) -> float:
        """Upper bound of the distance of theta's value from the optimum, as a share of that value."""
        return (self.primal - self.dual) / max(abs(self.primal), 1e-300)


It = TypeVar("It")


@storable
@dataclass(frozen=True)
class State(Generic[It]):
    """State of an optimizer; an optimizer that needs more to continue extends it."""

    theta: It  #: the iterate: parameters, or whatever the problem is a function of
    value: float
    steps: int = 0
    is_done: bool = False  #: another step would change nothing, or cannot be made
    trouble: str = ""  #: why no step could be made; empty if one could
    duality: Duality | None = None  #: bounds on the best value, if the method has them


P_contra = TypeVar("P_contra", contravariant=True)
It_contra = TypeVar("It_contra", contravariant=True)
P = TypeVar("P")
S = TypeVar("S")


@runtime_checkable
class Optimizer(Protocol[P_contra, It_contra, S]):
    """Interface of methods that increase a problem's value step by step; ``S`` is the type of the `State`."""

    asks: ClassVar[type]  #: the protocol of its problems

    def init(self, problem: P_contra, theta: It_contra, rng: np.random.Generator) -> S:
        """Return the state to start from."""

    def step(self, problem: P_contra, state: S) -> S:
        """Return the state after a step; its value is not smaller if the optimizer promises to ascend."""


@runtime_checkable
class Resumable(Optimizer[P_contra, It_contra, S], Protocol[P_contra, It_contra, S]):
    """An optimizer that can continue on a problem that differs little from the previous one, such as only in strength."""

    def resume(self, problem: P_contra, state: S, rng: np.random.Generator) -> S:
        """Return the state to start from on ``problem``, given the ``state`` reached on the previous one."""


@runtime_checkable
class Redrawn(Protocol):
    """A problem that depends on random draws, which change in every step."""

    def with_draws(self, number: int) -> Self:
        """Return the problem with the draws of the step of this number."""


def fitting(optimizer: Optimizer[Never, It, S], problem: P) -> Optimizer[P, It, S]:
    """Return ``optimizer`` after checking that ``problem`` has all methods that it needs; otherwise name optimizers that would work.

    The check only looks methods up, without calling them: that may be expensive.
    """
    missing = [name for name in questions(optimizer.asks) if getattr_static(problem, name, None) is None]
    if not missing:
        return optimizer  # type: ignore[return-value]  # since the problem has what it asks for
    questions_by_optimizer = {name: set(questions(getattr(optimizers, name).asks)) for name in optimizers.OPTIMIZERS}
    possible = sorted(set(AT_ONCE).union(*questions_by_optimizer.values()))
    names = [name for name in possible if getattr_static(problem, name, None) is not None]
    usable = [name for name, methods in questions_by_optimizer.items() if methods.issubset(names)]
    remedy = f"use {_join_names(usable, 'or')}" if usable else "no optimizer asks for that alone"
    has = f"{type(problem).__name__} has {_join_names(names) or 'nothing that any optimizer asks for'}"
    raise IncompatibleError(f"{type(optimizer).__name__} asks for {_join_names(missing)}; {has}; {remedy}")


def questions(protocol: type) -> list[str]:
    """Return the names of the methods that ``protocol`` declares.

    >>> questions(Valued)
    ['value']
    """
    declared = (cls for cls in protocol.__mro__ if getattr(cls, "_is_protocol", False))
    return sorted({name for cls in declared for name in vars(cls) if not name.startswith("_")})


def _join_names(names: Sequence[str], last: str = "and") -> str:
    return f" {last} ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else ""


def draws_of(rng: np.random.Generator) -> Draws:
    """Return the state of ``rng``, so that drawing can continue later."""
    return dict(rng.bit_generator.state)


def drawing_from(draws: Draws) -> np.random.Generator:
    """Return a generator that continues from the state that `draws_of` returned."""
    rng = np.random.default_rng()
    rng.bit_generator.state = dict(draws)
    return rng
