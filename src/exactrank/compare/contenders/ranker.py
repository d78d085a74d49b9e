"""Rankers of this library as contenders.

A ranker trains on the measure of the comparison, and validation data chooses the iterate to keep. Some methods bound one measure and no
other, as SVM-MAP does average precision; some cannot train on every measure. They train on the one that their constructor has by default,
which their settings then show.

A cross-fitted ranker learns from validation queries too. What is said of them is then said by their scores out of fold, which come from
models that have not seen the query: the scores of the ranker itself would flatter it, and choose settings that fit closely.
"""

import inspect
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from exactrank._support.arrays import PerDocument
from exactrank._support.json_values import json_object, json_value
from exactrank._support.settings import Space
from exactrank._support.text import settings_text
from exactrank.compare.contender import Contender, ContenderTask, TrainingCurve
from exactrank.compare.results import FeatureWeights, Point
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

#: The measure that rankers have by default; one that has another is made for that.
COMMON = "nDCG@10"


@dataclass(frozen=True, repr=False)
class RankerContender(Contender):
    """The ranker of the class ``kind``, of which ``params`` are fixed."""

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

    def fit(self, task: ContenderTask, settings: Mapping[str, Any]) -> "FittedRanker":
        idle = self.kind(**self.params, **settings).ineffective_settings(
            task.fold.train, validated=True
        )  # what has no effect beside the others is left out
        drawn = {name: value for name, value in settings.items() if name not in idle}
        given = {"seed": task.seed, "threads": task.threads, **self.params, **drawn}
        own, measures = self.kind.settings["measure"].default, [task.measure]
        if "measure" in self.params:
            measures = [self.params["measure"]]
        elif own != COMMON and not isinstance(parse_measure(task.measure), type(parse_measure(own))):
            measures = [own]
        elif own != task.measure:
            measures = [task.measure, own]
        for measure in measures[:-1]:
            with suppress(IncompatibleError):
                return self._fitted(task, {**given, "measure": measure})
        return self._fitted(task, {**given, "measure": measures[-1]})

    def _fitted(self, task: ContenderTask, params: Mapping[str, Any]) -> "FittedRanker":
        ranker, curve = self.kind(**params), TrainingCurve()

        def hear(progress: Progress) -> None:
            curve.add(progress.step, progress.value, progress.valid, progress.run)

        ranker.fit(task.fold.train, valid=task.fold.valid, progress=hear)
        if ranker.model_.training["interrupted"]:
            raise KeyboardInterrupt  # half a model is none in a comparison
        chosen = ranker.model_.training.get("chosen", {})  # by data, in the place of "auto"
        settings = {**json_object(ranker.get_params()), **{f"{name}, by validation": json_value(value) for name, value in chosen.items()}}
        return FittedRanker(ranker, settings, curve.points, _weights(ranker, task.fold.train))


@dataclass(frozen=True, eq=False)
class FittedRanker:
    """A ranker that has learned."""

    ranker: Ranker
    settings: Mapping[str, Any]
    curve: tuple[Point, ...]
    weights: FeatureWeights | None

    def scores(self, part: str, data: RankingData) -> PerDocument:
        """By the model; of validation documents that a cross-fitted ranker has learned from, out of fold."""
        return self.ranker.valid_oof_ if part == "valid" and hasattr(self.ranker, "valid_oof_") else self.ranker.predict(data)

    def save(self, folder: Path, name: str) -> None:
        """As a model file."""
        self.ranker.save(folder / f"{name}.json", force=True)


def _weights(ranker: Ranker, train: RankingData) -> FeatureWeights | None:
    """What each feature counts for, where that is known without further work."""
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
    """Of each feature its share of the sum of ``values``, which is 0 where no feature is used."""
    return FeatureWeights(kind, train.feature_names, tuple((values / (values.sum() or 1.0)).tolist()))
