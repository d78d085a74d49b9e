"""Several training runs from different starts, of which the best iterate is kept."""

from collections.abc import Callable
from dataclasses import replace

from exactrank.training import Listener, Progress, Trained


def best_of(starts: int, run: Callable[[int, Listener], Trained], listener: Listener | None) -> Trained:
    """The best iterate of ``run(0, ...)`` to ``run(starts - 1, ...)``: by validation where there is one, else by value.

    The runs count as one: steps go on counting, and ``listener`` hears of the best iterate of all runs. Ctrl-C ends all.
    """
    top: Progress | None = None
    history: list[Progress] = []
    interrupted = False
    for start in range(starts):
        made = history[-1].step if history else 0

        def heard(progress: Progress, start: int = start, made: int = made) -> None:
            nonlocal top
            if top is None or _goodness(progress) > _goodness(top):
                top = progress
            history.append(replace(progress, step=made + progress.step, steps=made + (starts - start) * progress.steps, theta=top.theta))
            if listener is not None:
                listener(history[-1])

        try:
            interrupted = run(start, heard).interrupted
        except KeyboardInterrupt:
            interrupted = True
        if interrupted:
            break
    if top is None:
        raise KeyboardInterrupt
    return Trained(top.theta, top.value, top.valid, tuple(history), interrupted)


def _goodness(progress: Progress) -> float:
    return progress.value if progress.valid is None else progress.valid
