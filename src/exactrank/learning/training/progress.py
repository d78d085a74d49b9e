"""What is known of a run while it goes on and when it has ended."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from exactrank._support.arrays import PerQuery
from exactrank._support.progress_bars import ProgressLine
from exactrank._support.serialize import storable
from exactrank.learning.optimizers.base import Duality

It = TypeVar("It")  #: an iterate: parameters, trees, or a scorer


@storable
@dataclass(frozen=True)
class Verdict:
    """What a judge says of an iterate."""

    value: float  #: the measure as asked, on the training data
    valid: float | None  #: the same on the validation data, where there is any
    goodness: float  #: what selects: the larger, the better
    #: Of what selects, for each query, and the weights of the queries if these differ; where queries select that were not trained on.
    values: PerQuery | None = field(default=None, compare=False, repr=False)
    weights: PerQuery | None = field(default=None, compare=False, repr=False)


@storable
@dataclass(frozen=True)
class Alternative:
    """A candidate of a selection (`exactrank.learning.training.selection`)."""

    name: str
    mean: float  #: of what selects
    difference: float  #: to the best mean
    error: float  #: the standard error of the difference; NaN where it is not known
    chosen: bool


@storable
@dataclass(frozen=True)
class Progress:
    """What is known after a step: for progress bars and histories."""

    step: int
    steps: int  #: maximum number of steps, as far as is known now
    value: float  #: the measure as asked, on the training data
    valid: float | None = None  #: the same on the validation data, where there is any
    duality: Duality | None = None  #: how far from the optimum, where the optimizer knows
    run: str = ""  #: to which run the step belongs, where training has several that do not begin where another ended


Listener = Callable[[Progress], None]


def line_of(measure: str, progress: Progress) -> ProgressLine:
    """What a progress bar says of it.

    >>> line_of("nDCG@10", Progress(30, 300, 0.5, 0.4)).activity
    'nDCG@10 0.5000, validation 0.4000'
    """
    validated = "" if progress.valid is None else f", validation {progress.valid:.4f}"
    gap = "" if progress.duality is None else f", gap {progress.duality.gap:.1e}"
    return ProgressLine(progress.step / progress.steps if progress.steps else None, f"{measure} {progress.value:.4f}{validated}{gap}")


@storable
@dataclass(frozen=True, eq=False)
class Trained(Generic[It]):
    """What a run leaves behind: its best iterate, and what the judge says of it."""

    iterate: It
    verdict: Verdict
    steps: int = 0
    trouble: str = ""  #: why the optimizer had to end, where that is so
    chosen: Mapping[str, object] = field(default_factory=dict)  #: settings that the data chose
    duality: Duality | None = None  #: how far from the optimum it ended, where the optimizer knows
    alternatives: tuple[Alternative, ...] = ()  #: what it was chosen from
