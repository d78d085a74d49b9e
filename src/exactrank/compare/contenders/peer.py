"""What LightGBM, XGBoost and CatBoost have in common as contenders.

Each is set up as its users would for the task. ``trees`` is the maximum number of trees; after each, the measure of the comparison, not
one of the library, is evaluated on validation data, with tied documents in their worst order (`exactrank.measures.ties`); after
``patience`` trees without improvement training ends, and the best number of trees is kept.

Their losses take grades that are whole and not negative; other grades are refused, since they would train on something else.
"""

import re
from abc import abstractmethod
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from exactrank._support.settings import Space
from exactrank._support.text import did_you_mean, settings_text
from exactrank.compare.contender import Contender, ContenderTask, Fitted, TrainingCurve
from exactrank.compare.contenders.estimator import FittedEstimator
from exactrank.compare.contenders.ranker import shares
from exactrank.data.alignment import align_features
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError
from exactrank.measures.base import Measure
from exactrank.measures.parse import parse_measure
from exactrank.measures.ties import worst_tie_order
from exactrank.models.estimators.adapter import ScoreFunction, check_no_pairs, model_writer, refuse_categories

#: Names that all three take for features.
_PLAIN = re.compile(r"[\w.-]+")
#: What another library has trained: its scores, the model itself, and what each feature has gained.
Trained = tuple[ScoreFunction, Any, npt.NDArray[np.float64]]


class Peer(Contender):
    """Another library, with its own names for settings; those that are given here are fixed, and tuning may choose the others."""

    package: ClassVar[str]  #: what is imported
    title: ClassVar[str]  #: what people call it
    defaults: ClassVar[Mapping[str, Any]]  #: of all settings
    ranges: ClassVar[Space]  #: of those that tuning may choose
    loss: ClassVar[str] = "objective"  #: the setting that names it
    gains: ClassVar[str] = "share of gain"  #: what features count for
    highest_grade: ClassVar[float] = float("inf")  #: that it takes with gains of 2^grade - 1
    longest_query: ClassVar[float] = float("inf")  #: in documents
    weighs_documents: ClassVar[bool] = False  #: and not queries alone
    takes_categories: ClassVar[bool] = False  #: are its trees told which features are categories?

    def __init__(self, name: str = "", **settings: Any) -> None:
        self.name = name or self.package
        self.params = settings
        for word in settings.keys() - self.defaults.keys():
            hint = did_you_mean(word, self.defaults)
            raise DataError(f"{self.package} has no setting {word!r} here{hint}; it has {', '.join(self.defaults)}")
        if find_spec(self.package) is None:
            raise DataError(f"{self.title} is not installed, so it cannot be compared; pip install {self.package}, or leave it out")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({settings_text(self.params)})"

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

    def fit(self, task: ContenderTask, settings: Mapping[str, Any]) -> Fitted:
        train, measure = task.fold.train, parse_measure(task.measure)
        valid = align_features(task.fold.valid, train.feature_names, "the training data", train.levels)
        self._check(train, valid, measure)
        given = {**self.defaults, **self.params, **settings}
        judge = PeerJudge(measure, train, valid, task.threads)
        own = {name: value for name, value in given.items() if name not in ("trees", "patience")}
        predict, model, gains = self._trained(task, judge, given["trees"], given["patience"], own)
        about = {"seed": task.seed, "threads": task.threads, "stopped by": task.measure, "version": import_module(self.package).__version__}
        weights = shares(self.gains, train, gains)
        suffix, write = model_writer(model)
        return FittedEstimator({**given, **about}, predict, judge.curve.points, weights, train.feature_names, write, suffix, train.levels)

    @abstractmethod
    def _trained(self, task: ContenderTask, judge: "PeerJudge", trees: int, patience: int, own: dict[str, Any]) -> Trained:
        """Train the library's model on ``judge.train``; ``own`` are the settings that it knows by the same names."""

    def _check(self, train: RankingData, valid: RankingData, measure: Measure) -> None:
        """Refuse what the library cannot take, and grades that the loss has no meaning for."""
        check_no_pairs(self.title, train)
        if train.levels and not self.takes_categories:
            refuse_categories(self.title, train)
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
        if train.longest > self.longest_query:
            raise DataError(
                f"{self.title} takes at most {self.longest_query:,} documents per query, and one has {train.longest:,}; leave some out"
            )
        if not self.weighs_documents and any(part.sample_weight is not None for part in (train, valid)):
            raise DataError(f"{self.title} takes only query weights, and documents have weights too; drop them, or leave this method out")


class PeerJudge:
    """The measure of both parts, asked after each tree, first for the training part; ``curve`` remembers it."""

    def __init__(self, measure: Measure, train: RankingData, valid: RankingData, threads: int) -> None:
        self.measure, self.train, self.valid = measure, train, valid
        #: The names of the features, unless there is one that these libraries would not take.
        self.names = list(train.feature_names) if all(map(_PLAIN.fullmatch, train.feature_names)) else None
        self.curve = TrainingCurve()
        self._on_train, self._on_valid = (measure.on(part, threads=threads) for part in (train, valid))
        self._selects = worst_tie_order(measure).on(valid, threads=threads)
        self._steps, self._of_train = 0, float("nan")

    def __call__(self, held_out: bool, scores: npt.ArrayLike) -> float:
        """What tells how many trees to keep, for scores of the documents of the validation or the training part."""
        own = np.asarray(scores, np.float64)
        if not held_out:
            self._of_train = self._on_train.mean(own)
            return self._of_train
        self._steps += 1
        self.curve.add(self._steps, self._of_train, self._on_valid.mean(own))
        return self._selects.mean(own)


def linear_gain(measure: Measure) -> bool:
    """Does the measure take grades for gains, and not 2^grade - 1?"""
    return getattr(measure, "gain", None) == "linear"
