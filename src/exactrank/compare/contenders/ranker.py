"""Rankers of this library as contenders.

A ranker trains on the measure of the comparison, and validation data chooses the iterate to keep. Some methods bound a single measure, as
SVM-MAP does average precision; some cannot train on every measure. They train on the default measure of their constructor, which their
settings then show.

A cross-fitted ranker learns from validation queries too. Its values on them come from their scores out of fold, of models that have not
seen the query: the scores of the ranker itself would be too good, and would choose settings that overfit.
"""

import inspect
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from exactrank._support.arrays import PerDocument
from exactrank._support.json_values import json_object, json_value
from exactrank._support.settings import Space
from exactrank._support.text import settings_text
from exactrank.compare.contender import Contender, ContenderTask, Fitted, TrainingCurve
from exactrank.compare.results import FeatureWeights, Settings
from exactrank.data.blocks import moments
from exactrank.data.ranking_data import RankingData
from exactrank.errors import IncompatibleError
from exactrank.learning.training.progress import Progress
from exactrank.measures.parse import parse_measure
from exactrank.models.estimators.naming import identity
from exactrank.models.linear import Linear
from exactrank.models.missing import PerFeature, fill_missing
from exactrank.models.thresholds import Thresholds
from exactrank.models.tree_ensemble import TreeEnsemble
from exactrank.rankers.base import Ranker

#: The default measure of rankers; a ranker with another default is made for that measure.
COMMON = "nDCG@10"


@dataclass(frozen=True, repr=False)
class RankerContender(Contender):
    """A ranker of the class ``kind``; the settings ``params`` are fixed."""

    name: str
    kind: type[Ranker]
    params: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"{self.kind.__name__}({settings_text(self.params)})"

    @property
    def about(self) -> str:
        return (inspect.getdoc(self.kind) or self.kind.__qualname__).partition("\n")[0]

    @property
    def libraries(self) -> tuple[str, ...]:
        return (self.kind.__module__, *self.kind.libraries)

    @property
    def fingerprint(self) -> str:
        return f"{identity(self.kind)}({identity(self.params)})"

    @property
    def space(self) -> Space:
        return {name: choices for name, choices in self.kind.space.items() if name not in self.params}

    def fit(self, task: ContenderTask, settings: Settings) -> Fitted:
        curve = TrainingCurve()
        ranker = self.fit_ranker(task, settings, curve)
        resolved = ranker.model_.training.get("chosen", {})  # values that the data chose for "auto"

        def scores(part: str, data: RankingData) -> PerDocument:
            """Score by the model; validation documents that a cross-fitted ranker has learned from, out of fold."""
            return ranker.valid_oof_ if part == "valid" and hasattr(ranker, "valid_oof_") else ranker.predict(data)

        return Fitted(
            {**json_object(ranker.get_params()), **{f"{name}, by validation": json_value(value) for name, value in resolved.items()}},
            scores,
            curve.points,
            _weights(ranker, task.fold.train),
            save=lambda folder, name: ranker.save(folder / f"{name}.json", force=True),
        )

    def fit_ranker(self, task: ContenderTask, settings: Settings, curve: TrainingCurve) -> Ranker:
        """Fit a ranker, on the measure of the task if it can train on that, and record its training in ``curve``."""
        ineffective = self.kind(**{**settings, **self.params}).ineffective_settings(task.fold.train, validated=True)
        effective = {name: value for name, value in settings.items() if name not in ineffective}
        params = {"seed": task.seed, "threads": task.threads, **self.params, **effective}
        default, measures = self.kind.settings["measure"].default, [task.measure]
        if "measure" in self.params:
            measures = [self.params["measure"]]
        elif default != COMMON and not isinstance(parse_measure(task.measure), type(parse_measure(default))):
            measures = [default]
        elif default != task.measure:
            measures = [task.measure, default]
        for measure in measures[:-1]:
            with suppress(IncompatibleError):
                return _train(self.kind(**{**params, "measure": measure}), task, curve)
        return _train(self.kind(**{**params, "measure": measures[-1]}), task, curve)


def _train(ranker: Ranker, task: ContenderTask, curve: TrainingCurve) -> Ranker:
    def add_point(progress: Progress) -> None:
        curve.add(progress.step, progress.value, progress.valid, progress.run)

    ranker.fit(task.fold.train, valid=task.fold.valid, progress=add_point)
    if ranker.model_.training["interrupted"]:
        raise KeyboardInterrupt  # a comparison takes no partial models
    return ranker


def _weights(ranker: Ranker, train: RankingData) -> FeatureWeights | None:
    """Return the weight of each feature, if the scorer has such weights."""
    match ranker.model_.scorer:
        case Linear() as scorer:
            _, deviation = moments(fill_missing(train.X, scorer.fill, train.offset))
            kind, values = "weight x standard deviation", scorer.weights * deviation
        case TreeEnsemble() as scorer:
            return shares("share of gain", train, scorer.importance("gain"))
        case Thresholds() as scorer:
            kind, values = "sum of the sizes of steps", np.array([np.abs(jumps).sum() for jumps in scorer.jumps])
        case _:
            return None
    return FeatureWeights(kind, train.feature_names, tuple(values.tolist()))


def shares(kind: str, train: RankingData, values: PerFeature) -> FeatureWeights:
    """Return each feature's share of the sum of ``values``; all are 0 if no feature is used."""
    return FeatureWeights(kind, train.feature_names, tuple((values / (values.sum() or 1.0)).tolist()))
