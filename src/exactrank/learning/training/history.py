"""What a fit left behind of its steps: `history_`, a sequence that is short to print and can be drawn."""

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from exactrank._support.pictures import COLORS, INK, QUIET, Plottable, caption
from exactrank._support.tables import Tabular, Values, by_column
from exactrank.learning.training.progress import Progress

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKED = 30  #: a picture marks where runs begin, unless there are more of them


class History(tuple[Progress, ...], Tabular, Plottable):
    """All steps of a fit, in turn: a tuple of `Progress`, with the values of ``measure`` as asked.

    >>> History([Progress(0, 2, 0.5), Progress(1, 2, 0.625), Progress(2, 2, 0.6)], "nDCG@10")
    History(3 steps, best nDCG@10 0.6250 on training data at step 1)
    """

    measure: str

    def __new__(cls, steps: Iterable[Progress], measure: str = "value") -> "History":
        made = super().__new__(cls, steps)
        made.measure = measure
        return made

    @property
    def best(self) -> Progress | None:
        """The step with the best value: on the validation data where there is any; of equal ones the first."""
        judged = [step for step in self if step.valid is not None]
        return max(judged or self, key=_judged, default=None)

    def __repr__(self) -> str:
        if self.best is None:
            return "History(no steps)"
        part = "training data" if self.best.valid is None else "validation data"
        runs = len({step.run for step in self})
        counts = f"{len(self):,} step{'s' if len(self) > 1 else ''}" + (f" of {runs:,} runs" if runs > 1 else "")
        return f"History({counts}, best {self.measure} {_judged(self.best):.4f} on {part} at step {self.best.step:,})"

    def _columns(self) -> dict[str, Values]:
        columns = by_column(self, "step", "value", "valid", "run")
        if any(step.duality is not None for step in self):
            columns["gap"] = [None if step.duality is None else step.duality.gap for step in self]
        several = {"valid": any(step.valid is not None for step in self), "run": any(step.run for step in self)}
        return {name: values for name, values in columns.items() if several.get(name, True)}

    def _draw(self, axes: "Axes", **options: object) -> None:
        runs = [list(steps) for _, steps in groupby(self, lambda step: step.run)]
        for color, name, label in ((COLORS[0], "value", "training data"), (COLORS[1], "valid", "validation data")):
            if all(getattr(step, name) is None for step in self):
                continue
            for number, steps in enumerate(runs):  # one line per run, as the next begins elsewhere
                values = np.array([getattr(step, name) for step in steps], np.float64)
                alone = "." if len(steps) == 1 else None
                axes.plot([step.step for step in steps], values, marker=alone, color=color, label=None if number else label)
        for steps in runs[1:] if len(runs) <= MARKED else ():
            axes.axvline(steps[0].step, color=QUIET, linewidth=0.6, linestyle=":", label="a new run" if steps is runs[1] else None)
        if self.best is not None:
            axes.plot(
                self.best.step, _judged(self.best), "o", color=INK, label=f"best: {_judged(self.best):.4f} at step {self.best.step:,}"
            )
            axes.legend()
        axes.set(xlabel="step", ylabel=caption(self.measure))
        axes.locator_params(axis="x", integer=True)


def _judged(step: Progress) -> float:
    return step.value if step.valid is None else step.valid
