"""The one training loop: it steps an optimizer, asks validation which iterate to keep, reports, and survives Ctrl-C."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from exactrank.optimizers.base import Optimizer, State, Theta


@dataclass(frozen=True)
class Progress:
    """What is known after a step: for progress bars and for histories."""

    step: int
    steps: int  #: at most this many
    value: float  #: of the training objective, or of the measure that is reported in its place
    valid: float | None  #: of the validation measure, where there is one
    theta: Theta = field(repr=False)  #: the best so far


Listener = Callable[[Progress], None]


@dataclass(frozen=True)
class Trained:
    """What a training run leaves behind."""

    theta: Theta  #: of the best iterate: by validation where there is one, else by the value that is reported
    value: float
    valid: float | None
    history: tuple[Progress, ...]
    interrupted: bool = False
    trouble: str = ""  #: why the optimizer had to end, where that is so


def train(
    optimizer: Optimizer[Any],
    problem: Any,
    theta: Theta,
    *,
    rng: np.random.Generator,
    max_steps: int,
    reported: Callable[[Theta], float] | None = None,
    valid: Callable[[Theta], float] | None = None,
    patience: int | None = None,
    listener: Listener | None = None,
) -> Trained:
    """Step until the optimizer is done, ``max_steps`` are made, or validation has not improved for ``patience`` steps.

    ``reported`` is what people read as the value, where that is another function than the objective. Ctrl-C ends the run
    early: the best iterate so far is returned, marked as interrupted.
    """
    history: list[Progress] = []
    best: State | None = None
    best_value, best_valid, trouble = 0.0, None, ""
    stale, interrupted = 0, False
    try:
        state = optimizer.init(problem, theta, rng)
        while True:
            trouble = state.trouble
            value = state.value if reported is None else reported(state.theta)
            measured = None if valid is None else valid(state.theta)
            better = best is None or (value > best_value if measured is None or best_valid is None else measured > best_valid)
            if better:
                best, best_value, best_valid = state, value, measured
            stale = 0 if better else stale + 1
            history.append(Progress(state.steps, max_steps, value, measured, best.theta if best else state.theta))
            if listener is not None:
                listener(history[-1])
            if state.done or state.steps >= max_steps or (patience is not None and stale >= patience):
                break
            state = optimizer.step(problem, state)
    except KeyboardInterrupt:
        interrupted = True
    if best is None:
        raise KeyboardInterrupt
    return Trained(best.theta, best_value, best_valid, tuple(history), interrupted, trouble)
