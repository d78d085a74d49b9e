"""The base of LightGBM, XGBoost and CatBoost as contenders.

Each is set up as its users would for the task. ``trees`` is the maximum number of trees; after each tree the measure of the comparison, not
one of the library's, is evaluated on validation data, with tied documents in their worst order (`exactrank.measures.ties`); after
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

from exactrank._support.arrays import Floats
from exactrank._support.settings import Space
from exactrank._support.text import did_you_mean, settings_text
from exactrank.compare.contender import Contender, ContenderTask, Fitted, TrainingCurve
from exactrank.compare.contenders.estimator import fitted_model
from exactrank.compare.contenders.ranker import shares
from exactrank.compare.results import Settings
from exactrank.data.alignment import align_features
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError
from exactrank.measures.base import Measure
from exactrank.measures.parse import parse_measure
from exactrank.measures.ties import worst_tie_order
from exactrank.models.estimators.adapter import ScoreFunction, check_no_pairs, refuse_categories

#: Names of features that all three libraries accept.
_PLAIN = re.compile(r"[\w.-]+")
#: A model of another library: its scores, the model itself, and the gain of each feature.
PeerModel = tuple[ScoreFunction, object, Floats]


class Peer(Contender):
    """Another library, with its own names for settings; settings of the constructor are fixed, and tuning may choose the others."""

    package: ClassVar[str]  #: its name in Python
    title: ClassVar[str]  #: its name in prose
    defaults: ClassVar[Mapping[str, Any]]  #: of all settings
    ranges: ClassVar[Space]  #: of those that tuning may choose
    loss: ClassVar[str] = "objective"  #: the setting that names the loss
    gains: ClassVar[str] = "share of gain"  #: the unit of feature weights
    highest_grade: ClassVar[float] = float("inf")  #: that it takes with gains of 2^grade - 1
    longest_query: ClassVar[float] = float("inf")  #: in documents
    weighs_documents: ClassVar[bool] = False  #: False if only queries may have weights
    takes_categories: ClassVar[bool] = False

    def __init__(self, name: str = "", **settings: object) -> None:
        self.name = name or self.package
        self.params = settings
        for setting in settings.keys() - self.defaults.keys():
            hint = did_you_mean(setting, self.defaults)
            raise DataError(f"{self.package} has no setting {setting!r} here{hint}; it has {', '.join(self.defaults)}")
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

    def fit(self, task: ContenderTask, settings: Settings) -> Fitted:
        train, measure = task.fold.train, parse_measure(task.measure)
        valid = align_features(task.fold.valid, train.feature_names, "the training data", train.levels)
        self._check(train, valid, measure)
        values: dict[str, Any] = {**self.defaults, **self.params, **settings}
        stopping = StoppingMeasure(measure, train, valid, task.threads)
        library_settings = {name: value for name, value in values.items() if name not in ("trees", "patience")}
        predict, model, gains = self._train(task, stopping, values["trees"], values["patience"], library_settings)
        about = {"seed": task.seed, "threads": task.threads, "stopped by": task.measure, "version": import_module(self.package).__version__}
        weights = shares(self.gains, train, gains)
        return fitted_model(model, predict, {**values, **about}, train, stopping.curve.points, weights)

    @abstractmethod
    def _train(self, task: ContenderTask, stopping: "StoppingMeasure", trees: int, patience: int, settings: dict[str, object]) -> PeerModel:
        """Train the library's model on ``stopping.train`` with ``settings``, by the library's own names."""

    def _check(self, train: RankingData, valid: RankingData, measure: Measure) -> None:
        """Refuse data that the library cannot take, and grades without a meaning for its loss."""
        check_no_pairs(self.title, train)
        if train.levels and not self.takes_categories:
            refuse_categories(self.title, train)
        bad = np.flatnonzero((train.y < 0) | (train.y != np.floor(train.y)))
        if len(bad):
            raise DataError(
                f"{self.title} ranks by whole grades of at least 0, and there is a grade {train.y[bad[0]]:g};"
                " round or shift the grades, or leave this method out"
            )
        if train.y.max() > self.highest_grade and not has_linear_gain(measure):
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


class StoppingMeasure:
    """The measure that stops training: evaluated after each tree, first on the training part; ``curve`` records its values."""

    def __init__(self, measure: Measure, train: RankingData, valid: RankingData, threads: int) -> None:
        self.measure, self.train, self.valid = measure, train, valid
        #: The names of the features; None if these libraries would refuse one of them.
        self.names = list(train.feature_names) if all(map(_PLAIN.fullmatch, train.feature_names)) else None
        self.curve = TrainingCurve()
        self._on_train, self._on_valid = (measure.on(part, threads=threads) for part in (train, valid))
        self._worst_order = worst_tie_order(measure).on(valid, threads=threads)
        self._steps, self._train_value = 0, float("nan")

    def __call__(self, held_out: bool, scores: npt.ArrayLike) -> float:
        """Return the value that chooses the number of trees, of ``scores`` of the validation part (``held_out``) or the training part."""
        scores = np.asarray(scores, np.float64)
        if not held_out:
            self._train_value = self._on_train.mean(scores)
            return self._train_value
        self._steps += 1
        self.curve.add(self._steps, self._train_value, self._on_valid.mean(scores))
        return self._worst_order.mean(scores)


def has_linear_gain(measure: Measure) -> bool:
    """Return whether the gain of a grade is the grade itself rather than 2^grade - 1."""
    return getattr(measure, "gain", None) == "linear"
