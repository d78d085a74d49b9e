"""What all optimizers share: a state that is a value, made by ``init`` and carried forward by ``step``.

Values are maximised, here and in all objectives. Only a risk, which large-margin methods bound from below by planes, is minimised,
with its primal and dual; `Duality.value` and `exactrank.optimizers.cutting_plane.value_of` change the sign.

A state holds everything that the next step depends on, including the state of the random generator, so that it can be saved and
resumed to the bit. An optimizer uses only what its protocol names of its problem.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import getattr_static
from typing import ClassVar, Generic, Never, Protocol, Self, TypeVar, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

from exactrank import optimizers
from exactrank.errors import IncompatibleError
from exactrank.stored import storable

Theta = npt.NDArray[np.float64]  #: the parameters, flat
Draws = Mapping[str, object]  #: the state of a random generator
#: What optimizers that ask for values ask for instead where a problem has it: many of them at once.
AT_ONCE = ("values", "values_along", "differences")


@runtime_checkable
class Valued(Protocol):
    """A problem with a value, which is to be maximised."""

    def value(self, theta: Theta) -> float:
        """The objective at ``theta``."""


@storable
@dataclass(frozen=True)
class Duality:
    """The bounds on the minimum of a problem that is minimised."""

    primal: float  #: the problem's value at theta
    dual: float  #: no theta has a smaller one

    @property
    def value(self) -> float:
        """At theta, to be maximised."""
        return -self.primal

    @property
    def gap(self) -> float:
        """How far theta can be from the optimum, as a share of its value."""
        return (self.primal - self.dual) / max(abs(self.primal), 1e-300)


It = TypeVar("It")


@storable
@dataclass(frozen=True)
class State(Generic[It]):
    """Where an optimizer stands; an optimizer that needs more to go on extends it."""

    theta: It  #: the iterate: parameters, or whatever the problem is a function of
    value: float
    steps: int = 0
    done: bool = False  #: converged: another step would change nothing
    trouble: str = ""  #: why no step could be made, where that is so
    duality: Duality | None = None  #: what is known of the best value, where the method knows


P_contra = TypeVar("P_contra", contravariant=True)
It_contra = TypeVar("It_contra", contravariant=True)
P = TypeVar("P")
S = TypeVar("S")


@runtime_checkable
class Optimizer(Protocol[P_contra, It_contra, S]):
    """Something that increases a problem's value, step by step; ``S`` is its `State`."""

    asks: ClassVar[type]  #: the protocol of its problems

    def init(self, problem: P_contra, theta: It_contra, rng: np.random.Generator) -> S:
        """The state to start from."""

    def step(self, problem: P_contra, state: S) -> S:
        """The state after one step, whose value is not smaller where the optimizer promises to ascend."""


class Resumable(Optimizer[P_contra, It_contra, S], Protocol[P_contra, It_contra, S]):
    """An optimizer that can go on in a problem that differs little from the one before, as in strength alone."""

    def resumed(self, problem: P_contra, state: S, rng: np.random.Generator) -> S:
        """The state to start from in ``problem``, where ``state`` was reached in the one before."""


@runtime_checkable
class Redrawn(Protocol):
    """A problem that depends on random draws, which are others in every step."""

    def drawn(self, number: int) -> Self:
        """Itself with the draws of the step of that number."""


def fitting(optimizer: Optimizer[Never, It, S], problem: P) -> Optimizer[P, It, S]:
    """``optimizer``, after a check that ``problem`` has all that it needs; else an error that says what would do.

    The check only looks methods up, without calling them: that may be expensive.
    """
    lacking = [name for name in questions(optimizer.asks) if getattr_static(problem, name, None) is None]
    if not lacking:
        return cast(Optimizer[P, It, S], optimizer)
    asked = {name: set(questions(getattr(optimizers, name).asks)) for name in optimizers.OPTIMIZERS}
    known = [name for name in sorted(set(AT_ONCE).union(*asked.values())) if getattr_static(problem, name, None) is not None]
    able = [name for name, own in asked.items() if own.issubset(known)]
    remedy = f"use {_listed(able, 'or')}" if able else "no optimizer asks for that alone"
    has = f"{type(problem).__name__} has {_listed(known) or 'nothing that any optimizer asks for'}"
    raise IncompatibleError(f"{type(optimizer).__name__} asks for {_listed(lacking)}; {has}; {remedy}")


def questions(protocol: type) -> list[str]:
    """What an object of ``protocol`` can be asked for, by name.

    >>> questions(Valued)
    ['value']
    """
    declared = (cls for cls in protocol.__mro__ if getattr(cls, "_is_protocol", False))
    return sorted({name for cls in declared for name in vars(cls) if not name.startswith("_")})


def _listed(names: Sequence[str], last: str = "and") -> str:
    return f" {last} ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else ""


def draws_of(rng: np.random.Generator) -> Draws:
    """The state of ``rng``, to go on drawing from later."""
    return dict(rng.bit_generator.state)


def drawing_from(draws: Draws) -> np.random.Generator:
    """A generator that goes on where `draws_of` left one."""
    rng = np.random.default_rng()
    rng.bit_generator.state = dict(draws)
    return rng
