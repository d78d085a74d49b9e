"""Several training runs, from different starts or one after the other, of which the best iterate is kept."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from exactrank.optimizers.base import Theta
from exactrank.training import Listener, Progress, Trained


def best_of(starts: int, run: Callable[[int, Listener], Trained], listener: Listener | None, patience: int | None = None) -> Trained:
    """The best iterate of ``run(0, ...)`` to ``run(starts - 1, ...)``: by validation where there is one, else by value.

    The runs count as one: steps go on counting, and ``listener`` hears of the best iterate of all runs. Ctrl-C ends all, and so do
    ``patience`` runs in turn that are no better. The trouble of the last run is that of all.
    """
    top: Progress | None = None
    history: list[Progress] = []
    interrupted, trouble, stale = False, "", 0
    for start in range(starts):
        before, made = top, history[-1].step if history else 0

        def heard(progress: Progress, start: int = start, made: int = made) -> None:
            nonlocal top
            if top is None or goodness(progress) > goodness(top):
                top = progress
            history.append(replace(progress, step=made + progress.step, steps=made + (starts - start) * progress.steps, theta=top.theta))
            if listener is not None:
                listener(history[-1])

        try:
            trained = run(start, heard)
            interrupted, trouble = trained.interrupted, trained.trouble
        except KeyboardInterrupt:
            interrupted = True
        stale = stale + 1 if top is before else 0
        if interrupted or (patience is not None and stale >= patience):
            break
    if top is None:
        raise KeyboardInterrupt
    return Trained(top.theta, top.value, top.valid, tuple(history), interrupted, trouble)


def in_turn(phases: Sequence[Callable[[Theta, Listener], Trained]], theta: Theta, listener: Listener | None) -> Trained:
    """The best iterate of runs that each begin where the best of the one before ended, the first at ``theta``."""
    reached = theta

    def run(number: int, heard: Listener) -> Trained:
        nonlocal reached
        trained = phases[number](reached, heard)
        reached = trained.theta
        return trained

    return best_of(len(phases), run, listener)


def goodness(progress: Progress | Trained) -> float:
    """What the best iterate has most of: what chooses it, or the validation measure, or the value where there is none."""
    if isinstance(progress, Progress) and progress.goodness is not None:
        return progress.goodness
    return progress.value if progress.valid is None else progress.valid
