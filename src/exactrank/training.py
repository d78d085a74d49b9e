"""The one training loop: it steps an optimizer, asks validation which iterate to keep, reports, and survives Ctrl-C."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from exactrank.optimizers.base import Duality, Optimizer, State, Theta


@dataclass(frozen=True)
class Progress:
    """What is known after a step: for progress bars and for histories."""

    step: int
    steps: int  #: at most this many
    value: float  #: of the training objective, or of the measure that is reported in its place
    valid: float | None  #: of the validation measure, where there is one
    theta: Theta = field(repr=False)  #: the best so far
    duality: Duality | None = None  #: how far from the optimum, where the optimizer knows
    goodness: float | None = None  #: what chooses the iterate to keep, where that is none of these


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
    chosen: Mapping[str, Any] = field(default_factory=dict)  #: settings that the data chose


def train(
    optimizer: Optimizer[Any],
    problem: Any,
    theta: Theta,
    *,
    rng: np.random.Generator,
    max_steps: int,
    reported: Callable[[Theta], float] | None = None,
    valid: Callable[[Theta], float] | None = None,
    by_objective: bool = False,
    chosen_by: Callable[[Theta], float] | None = None,
    patience: int | None = None,
    listener: Listener | None = None,
) -> Trained:
    """Step until the optimizer is done, ``max_steps`` are made, or validation has not improved for ``patience`` steps.

    ``reported`` is what people read as the value, where that is another function than the objective; without validation it
    chooses the iterate to keep, unless that is to be chosen ``by_objective``. ``chosen_by`` chooses it whatever there is to read.
    Ctrl-C ends the run early: the best iterate so far is returned, marked as interrupted.
    """
    history: list[Progress] = []
    best: State | None = None
    best_value, best_goodness, trouble = 0.0, 0.0, ""
    best_valid: float | None = None
    stale, interrupted = 0, False
    try:
        state = optimizer.init(problem, theta, rng)
        while True:
            trouble = state.trouble
            value = state.value if reported is None else reported(state.theta)
            measured = None if valid is None else valid(state.theta)
            goodness = (state.value if by_objective else value) if measured is None else measured
            goodness = goodness if chosen_by is None else chosen_by(state.theta)
            better = best is None or goodness > best_goodness
            if better:
                best, best_value, best_valid, best_goodness = state, value, measured, goodness
            stale = 0 if better else stale + 1
            kept = best.theta if best else state.theta
            history.append(Progress(state.steps, max_steps, value, measured, kept, state.duality, goodness if chosen_by else None))
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
