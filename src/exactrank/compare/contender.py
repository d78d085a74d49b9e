"""The base of contenders: methods that a comparison fits to a division of data and asks for scores of its documents.

Rankers of this library take part by their names. Others are added by

- a file in ``contenders/`` and a line in `CONTENDERS` (as LightGBM, XGBoost and CatBoost are), or, in another package, an entry point
  of the group ``exactrank.contenders``: a class of `Contender`;
- a program that reads and writes files (`exactrank.compare.contenders.program`), in any language;
- a file of scores (`exactrank.compare.contenders.scores`).
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from exactrank._support.arrays import PerDocument, Rows
from exactrank._support.settings import Space
from exactrank.compare.results import FeatureWeights, Point, Settings
from exactrank.data.folds import Fold
from exactrank.data.ranking_data import RankingData

#: Maximum number of points of a curve in a report.
MOST_POINTS = 500


@dataclass(frozen=True, eq=False)
class ContenderTask:
    """The data, the measure and the resources of one fit."""

    dataset: str
    fold: Fold
    test_rows: Rows  #: positions of the test documents in the file that they come from
    measure: str  #: to train on
    seed: int
    threads: int
    scratch: Path | None = None  #: a folder for files that are deleted after the run; None: the system's


@dataclass
class TrainingCurve:
    """The points of a contender's training, recorded as they come with the seconds since it began."""

    started: float = field(default_factory=time.perf_counter)
    _recorded: list[Point] = field(default_factory=list)

    def add(self, step: int, train: float, valid: float | None, run: str = "") -> None:
        """Record the values at ``step``, at this moment; ``run`` names the restart that the step belongs to."""
        self._recorded.append(Point(step, time.perf_counter() - self.started, train, valid, run))

    @property
    def points(self) -> tuple[Point, ...]:
        """Evenly spaced points, including the first and the last."""
        steps = np.linspace(0, len(self._recorded) - 1, min(len(self._recorded), MOST_POINTS)).round().astype(int)
        return tuple(self._recorded[i] for i in steps)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A contender that has been fitted: its scores, and whatever else it can report."""

    settings: Settings  #: the values of all settings, including defaults, as plain values for a report
    #: Scores of the documents of a part ("train", "valid" or "test"), given its name and its data; None if there are none.
    scores: Callable[[str, RankingData], PerDocument | None]
    curve: tuple[Point, ...] = ()  #: the training step by step, if the method reports it
    weights: FeatureWeights | None = None
    #: Writes the model, if there is one, to a folder, as a file of this name and a suffix.
    save: Callable[[Path, str], object] = lambda folder, name: None
    documents: Mapping[str, RankingData] = field(default_factory=dict)  #: of a part, if its scores are for other documents than its own


class Contender(ABC):
    """A method, as a value that travels between processes; ``name`` is what tables call it."""

    name: str

    @property
    @abstractmethod
    def about(self) -> str:
        """A description in one line."""

    @property
    def libraries(self) -> tuple[str, ...]:
        """Modules to import before any fit, so that importing them does not count among its seconds."""
        return ()

    @property
    def fingerprint(self) -> str:
        """A text of everything that determines the result besides the task and the settings; if it changes, fits are repeated."""
        return repr(self)

    @property
    def space(self) -> Space:
        """The choices of tuning, by setting; none by default."""
        return {}

    def limit(self, seconds: float | None) -> float | None:
        """Return the seconds that a fit may take if the comparison sets no limit; ``seconds`` is the tuning budget, if it is in seconds."""
        return None

    @abstractmethod
    def fit(self, task: ContenderTask, settings: Settings) -> Fitted:
        """Learn from ``task.fold.train``, with ``task.fold.valid`` for validation; tuning chose ``settings``."""
