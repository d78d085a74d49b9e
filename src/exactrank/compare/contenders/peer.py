"""What LightGBM, XGBoost and CatBoost have in common as contenders.

Each is set up as its users would for the task. At most ``trees`` grow; after each the measure of the comparison, not one of the
library, is taken on validation data, with ties counted pessimistically as for the tree rankers of this library; after ``patience``
trees without a gain training ends, and the best number of trees is kept.

Their losses take grades that are whole and not negative; other grades are refused, for they would train on something else.
"""

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from exactrank.arrays import PerDocument, PerQuery
from exactrank.compare.contender import Contender, Curve, Fitted, Task
from exactrank.compare.contenders.ranker import shares
from exactrank.compare.results import Point, Weights
from exactrank.data.alignment import aligned
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError
from exactrank.measures.base import Measure
from exactrank.measures.parse import parse_measure
from exactrank.settings import Space
from exactrank.text import did_you_mean, written

#: Names that all three take for features.
_PLAIN = re.compile(r"[\w.-]+")


class Peer(Contender):
    """Another library, with its own names for settings; those that are given here are fixed, and tuning may choose the others."""

    package: ClassVar[str]  #: what is imported
    title: ClassVar[str]  #: what people call it
    defaults: ClassVar[Mapping[str, Any]]  #: of all settings
    ranges: ClassVar[Space]  #: of those that tuning may choose
    loss: ClassVar[str] = "objective"  #: the setting that names it
    highest_grade: ClassVar[float] = float("inf")  #: that it takes with gains of 2^grade - 1

    def __init__(self, name: str = "", **settings: Any) -> None:
        self.name = name or self.package
        self.params = settings
        for word in settings.keys() - self.defaults.keys():
            hint = did_you_mean(word, self.defaults)
            raise DataError(f"{self.package} has no setting {word!r} here{hint}; it has {', '.join(self.defaults)}")
        if find_spec(self.package) is None:
            raise DataError(f"{self.title} is not installed, so it cannot be compared; pip install {self.package}, or leave it out")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({written(self.params)})"

    @property
    def libraries(self) -> tuple[str, ...]:
        return (self.package,)

    @property
    def about(self) -> str:
        loss = {**self.defaults, **self.params}[self.loss]
        return f"Boosted trees of {self.title} by {loss}; the measure on validation data says how many."

    @property
    def space(self) -> Space:
        return {name: choices for name, choices in self.ranges.items() if name not in self.params}

    def fit(self, task: Task, settings: Mapping[str, Any]) -> Fitted:
        train = task.fold.train
        valid = aligned(task.fold.valid, train.feature_names, "the training data")
        self._check(train, parse_measure(task.measure))
        given = {**self.defaults, **self.params, **settings}
        judge = Judge(parse_measure(task.measure), train, valid, task.threads)
        trained = self._trained(task, given, judge)
        about = {"seed": task.seed, "threads": task.threads, "stopped by": task.measure, "version": import_module(self.package).__version__}
        return FittedPeer({**given, **about}, judge.curve.points, shares(trained.kind, train, trained.gains), train.feature_names, trained)

    @abstractmethod
    def _trained(self, task: Task, given: Mapping[str, Any], judge: "Judge") -> "TrainedPeer":
        """Train the library's model on ``judge.train`` with all settings ``given``."""

    def _check(self, train: RankingData, measure: Measure) -> None:
        """Refuse grades that the loss has no meaning for."""
        bad = np.flatnonzero((train.y < 0) | (train.y != np.floor(train.y)))
        if len(bad):
            raise DataError(
                f"{self.title} ranks by whole grades of at least 0, and there is a grade {train.y[bad[0]]:g};"
                " round or shift the grades, or leave this method out"
            )
        if train.y.max() > self.highest_grade and not linear_gain(measure):
            raise DataError(
                f"{self.title} takes grades up to {self.highest_grade} with gains of 2^grade - 1, and there is a grade {train.y.max():g};"
                " map the grades to fewer, or measure with linear gains: nDCG(gain='linear')@10"
            )


class Judge:
    """The measure of both parts, asked after each tree, first for the training part; ``curve`` remembers it."""

    def __init__(self, measure: Measure, train: RankingData, valid: RankingData, threads: int) -> None:
        self.measure, self.train, self.valid = measure, train, valid
        self.curve = Curve()
        severe = measure if measure.ties == "expected" else replace(measure, ties="pessimistic")
        self._on_train, self._on_valid, self._severe = (
            each.on(part, threads=threads) for each, part in ((measure, train), (measure, valid), (severe, valid))
        )
        self._steps, self._of_train = 0, float("nan")

    def __call__(self, held_out: bool, scores: npt.ArrayLike) -> float:
        """What tells how many trees to keep, for scores of the documents of the validation or the training part."""
        own = np.asarray(scores, np.float64)
        if not held_out:
            self._of_train = self._on_train.mean(own)
            return self._of_train
        self._steps += 1
        self.curve.add(self._steps, self._of_train, self._on_valid.mean(own))
        return self._severe.mean(own)


@dataclass(frozen=True, eq=False)
class TrainedPeer:
    """A model of another library."""

    predict: Callable[[npt.NDArray[Any]], npt.ArrayLike]
    write: Callable[[str], object]  #: to a path
    suffix: str  #: of files that hold such models
    gains: npt.NDArray[np.float64]  #: one a feature
    kind: str = "share of gain"  #: what they are


@dataclass(frozen=True, eq=False)
class FittedPeer:
    """A peer that has learned."""

    settings: Mapping[str, Any]
    curve: tuple[Point, ...]
    weights: Weights | None
    feature_names: tuple[str, ...]
    trained: TrainedPeer = field(repr=False)

    def scores(self, part: str, data: RankingData) -> PerDocument:
        """What the library predicts."""
        scores = self.trained.predict(aligned(data, self.feature_names).values)
        return data.ungrouped(np.asarray(scores, np.float64))

    def save(self, folder: Path, name: str) -> None:
        """In the library's own format."""
        self.trained.write(str(folder / f"{name}{self.trained.suffix}"))


def own_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Those that the library knows by the same names."""
    return {name: value for name, value in given.items() if name not in ("trees", "patience")}


def plain_names(data: RankingData) -> list[str] | None:
    """The names of the features, unless there is one that these libraries would not take."""
    return list(data.feature_names) if all(map(_PLAIN.fullmatch, data.feature_names)) else None


def weights_of_queries(peer: Peer, data: RankingData) -> PerQuery | None:
    """One weight a query, where there are any; documents can have none of their own."""
    if data.sample_weight is not None:
        raise DataError(f"{peer.title} takes weights of queries only, and documents have some too; drop them, or leave this method out")
    return data.query_weight


def linear_gain(measure: Measure) -> bool:
    """Does the measure take grades for gains, and not 2^grade - 1?"""
    return getattr(measure, "gain", None) == "linear"
