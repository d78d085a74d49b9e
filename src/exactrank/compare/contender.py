"""What can take part in a comparison: anything that can be fitted to a division of data and then score its documents.

Rankers of this library take part by their names. Others are added by

- a file in ``contenders/`` and a line in `CONTENDERS` (as LightGBM, XGBoost and CatBoost are), or, in another package, an entry point
  of the group ``exactrank.contenders``: a class of `Contender`;
- a program that reads and writes files (`exactrank.compare.contenders.program`), in any language;
- a file of scores (`exactrank.compare.contenders.scores`).
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from exactrank._support.arrays import PerDocument, Rows
from exactrank._support.settings import Space
from exactrank.compare.results import FeatureWeights, Point
from exactrank.data.folds import Fold
from exactrank.data.ranking_data import RankingData

#: Maximum number of points that a report draws of a curve.
MOST_POINTS = 500


@dataclass(frozen=True, eq=False)
class ContenderTask:
    """What is to be learned, and with what."""

    dataset: str
    fold: Fold
    test_rows: Rows  #: of the test documents in the file that they come from
    measure: str  #: to train on
    seed: int
    threads: int
    scratch: Path | None = None  #: a folder for files that are gone after the run; None: the system's


@dataclass
class TrainingCurve:
    """What is recorded of a contender while it is trained: points as they come, and the time since it began."""

    started: float = field(default_factory=time.perf_counter)
    _heard: list[Point] = field(default_factory=list)

    def add(self, step: int, train: float, valid: float | None, run: str = "") -> None:
        """What training reached at ``step``, which is now; ``run`` names the restart that it belongs to."""
        self._heard.append(Point(step, time.perf_counter() - self.started, train, valid, run))

    @property
    def points(self) -> tuple[Point, ...]:
        """Evenly spaced ones, the first and the last among them."""
        kept = np.linspace(0, len(self._heard) - 1, min(len(self._heard), MOST_POINTS)).round().astype(int)
        return tuple(self._heard[i] for i in kept)


class Fitted(Protocol):
    """A contender that has learned."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """All settings, including those left at their defaults; plain values for a report."""

    @property
    def curve(self) -> tuple[Point, ...]:
        """Training step by step; empty if that is not known."""

    @property
    def weights(self) -> FeatureWeights | None:
        """How much each feature counts, if the method says."""

    def scores(self, part: str, data: RankingData) -> PerDocument | None:
        """Of the documents of ``data``, which is the ``part`` of the fold: "train", "valid" or "test"; None where there are none."""

    def save(self, folder: Path, name: str) -> None:
        """Write the model, where there is one, to ``folder`` as ``name`` and a suffix."""


class Contender(ABC):
    """A method, as a value that travels between processes; ``name`` is what tables call it."""

    name: str

    @property
    @abstractmethod
    def about(self) -> str:
        """One line for people."""

    @property
    def libraries(self) -> tuple[str, ...]:
        """Modules that are imported before any fit, so that this does not count among its seconds."""
        return ()

    @property
    def fingerprint(self) -> str:
        """What determines the result besides the task and the settings: fits with another one are done again."""
        return repr(self)

    @property
    def space(self) -> Space:
        """What tuning may choose from; nothing by default."""
        return {}

    def limit(self, seconds: float | None) -> float | None:
        """Seconds that a fit may take where the comparison sets no limit; ``seconds`` is the budget of tuning, if that is in seconds."""
        return None

    @abstractmethod
    def fit(self, task: ContenderTask, settings: Mapping[str, Any]) -> Fitted:
        """Learn from ``task.fold.train``, with ``task.fold.valid`` to choose by; ``settings`` are some that tuning drew."""
