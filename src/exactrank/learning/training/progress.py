"""The progress, the results and the history of training."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from exactrank._support.arrays import PerQuery
from exactrank._support.pictures import COLORS, INK, QUIET, Plottable, caption
from exactrank._support.progress_bars import ProgressLine
from exactrank._support.serialize import storable
from exactrank._support.tables import Tabular, Values, by_column
from exactrank.learning.optimizers.base import Duality

if TYPE_CHECKING:
    from matplotlib.axes import Axes

It = TypeVar("It")  #: an iterate: parameters, trees, or a scorer


@storable
@dataclass(frozen=True)
class Verdict:
    """A judge's evaluation of an iterate."""

    value: float  #: the measure as asked, on the training data
    valid: float | None  #: the same on the validation data, if there is any
    goodness: float  #: the value by which iterates are selected; larger is better
    #: Its value for each query, and the weights of the queries if these differ, if queries select that were not trained on.
    values: PerQuery | None = field(default=None, compare=False, repr=False)
    weights: PerQuery | None = field(default=None, compare=False, repr=False)


@storable
@dataclass(frozen=True)
class Alternative:
    """A candidate of a selection (`exactrank.learning.training.selection`)."""

    name: str
    mean: float  #: of the values that select
    difference: float  #: to the best mean
    error: float  #: the standard error of the difference; NaN if it is not known
    selected: bool


@storable
@dataclass(frozen=True)
class Progress:
    """The state of training after a step, for progress bars and histories."""

    step: int
    steps: int  #: maximum number of steps, as far as is known now
    value: float  #: the measure as asked, on the training data
    valid: float | None = None  #: the same on the validation data, if there is any
    duality: Duality | None = None  #: bounds on the optimum, if the optimizer has them
    run: str = ""  #: the run of the step, if training has several that do not continue each other


Listener = Callable[[Progress], None]


def line_of(measure: str, progress: Progress) -> ProgressLine:
    """Return the line of a progress bar.

    >>> line_of("nDCG@10", Progress(30, 300, 0.5, 0.4)).activity
    'nDCG@10 0.5000, validation 0.4000'
    """
    validation = "" if progress.valid is None else f", validation {progress.valid:.4f}"
    gap = "" if progress.duality is None else f", gap {progress.duality.gap:.1e}"
    return ProgressLine(progress.step / progress.steps if progress.steps else None, f"{measure} {progress.value:.4f}{validation}{gap}")


@storable
@dataclass(frozen=True, eq=False)
class Trained(Generic[It]):
    """The result of a run: its best iterate, and the judge's verdict."""

    iterate: It
    verdict: Verdict
    steps: int = 0
    trouble: str = ""  #: the reason if the optimizer had to stop
    settings: Mapping[str, object] = field(default_factory=dict)  #: settings that were chosen by the data
    duality: Duality | None = None  #: bounds on the optimum, if the optimizer has them
    alternatives: tuple[Alternative, ...] = ()  #: the candidates of its selection


MOST_MARKED_RUNS = 30  #: pictures mark the beginnings of at most this number of runs


class History(tuple[Progress, ...], Tabular, Plottable):
    """The steps of a fit in order: a tuple of `Progress`, with the values of ``measure`` as requested.

    >>> History([Progress(0, 2, 0.5), Progress(1, 2, 0.625), Progress(2, 2, 0.6)], "nDCG@10")
    History(3 steps, best nDCG@10 0.6250 on training data at step 1)
    """

    measure: str

    def __new__(cls, steps: Iterable[Progress], measure: str = "value") -> "History":
        history = super().__new__(cls, steps)
        history.measure = measure
        return history

    @property
    def best(self) -> Progress | None:
        """The first step with the best value, on the validation data if there is any."""
        validated = [step for step in self if step.valid is not None]
        return max(validated or self, key=_value_of, default=None)

    def __repr__(self) -> str:
        if self.best is None:
            return "History(no steps)"
        part = "training data" if self.best.valid is None else "validation data"
        runs = len({step.run for step in self})
        counts = f"{len(self):,} step{'s' if len(self) > 1 else ''}" + (f" of {runs:,} runs" if runs > 1 else "")
        return f"History({counts}, best {self.measure} {_value_of(self.best):.4f} on {part} at step {self.best.step:,})"

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
            for number, steps in enumerate(runs):  # one line per run, since the next one begins elsewhere
                values = np.array([getattr(step, name) for step in steps], np.float64)
                marker = "." if len(steps) == 1 else None
                axes.plot([step.step for step in steps], values, marker=marker, color=color, label=None if number else label)
        for steps in runs[1:] if len(runs) <= MOST_MARKED_RUNS else ():
            axes.axvline(steps[0].step, color=QUIET, linewidth=0.6, linestyle=":", label="a new run" if steps is runs[1] else None)
        if self.best is not None:
            axes.plot(
                self.best.step, _value_of(self.best), "o", color=INK, label=f"best: {_value_of(self.best):.4f} at step {self.best.step:,}"
            )
            axes.legend()
        axes.set(xlabel="step", ylabel=caption(self.measure))
        axes.locator_params(axis="x", integer=True)


def _value_of(step: Progress) -> float:
    return step.value if step.valid is None else step.valid
