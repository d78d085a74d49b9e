"""A ranker of this library as a contender: it trains on the measure of the comparison, and validation data chooses the iterate to keep.

Some methods bound one measure and no other, as SVM-MAP does average precision; some cannot train on every measure. They train on the
one that their constructor has by default, which their settings then show.
"""

import inspect
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from exactrank.arrays import PerDocument
from exactrank.compare.contender import Contender, Curve, Task
from exactrank.compare.results import Point, Weights
from exactrank.data.moments import moments
from exactrank.data.ranking_data import RankingData
from exactrank.errors import IncompatibleError
from exactrank.measures.parse import parse_measure
from exactrank.rankers.base import Ranker
from exactrank.scorers.linear import Linear
from exactrank.scorers.missing import PerFeature, filled
from exactrank.scorers.model import plain
from exactrank.scorers.thresholds import Thresholds
from exactrank.scorers.tree_ensemble import TreeEnsemble
from exactrank.settings import Space
from exactrank.text import written
from exactrank.training.progress import Progress

#: The measure that rankers have by default; one that has another is made for that.
COMMON = "nDCG@10"


@dataclass(frozen=True, repr=False)
class RankerContender(Contender):
    """The ranker of the class ``ranker``, of which ``params`` are fixed."""

    name: str
    ranker: type[Ranker]
    params: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"{self.ranker.__name__}({written(self.params)})"

    @property
    def libraries(self) -> tuple[str, ...]:
        return (self.ranker.__module__,)

    @property
    def fingerprint(self) -> str:
        return f"{self.ranker.__module__}:{self.ranker.__name__}({plain(self.params)})"

    @property
    def about(self) -> str:
        return (inspect.getdoc(self.ranker) or "").partition("\n")[0]

    @property
    def space(self) -> Space:
        return {name: choices for name, choices in self.ranker.space.items() if name not in self.params}

    def fit(self, task: Task, settings: Mapping[str, Any]) -> "FittedRanker":
        given = {"seed": task.seed, "threads": task.threads, **self.params, **self._effective(task, settings)}
        *others, last = self._measures(task.measure)
        for measure in others:
            with suppress(IncompatibleError):
                return self._fitted(task, {**given, "measure": measure})
        return self._fitted(task, {**given, "measure": last})

    def _effective(self, task: Task, drawn: Mapping[str, Any]) -> Mapping[str, Any]:
        """Those of the settings that tuning has ``drawn`` that have an effect beside the others."""
        idle = self.ranker(**self.params, **drawn).idle(task.fold.train)
        return {name: value for name, value in drawn.items() if name not in idle}

    def _measures(self, asked: str) -> Iterator[Any]:
        """What to train on: the first that the ranker can."""
        if "measure" in self.params:
            yield self.params["measure"]
            return
        own = self.ranker.settings["measure"].default
        if own == COMMON or isinstance(parse_measure(asked), type(parse_measure(own))):
            yield asked
        if own != asked:
            yield own

    def _fitted(self, task: Task, params: Mapping[str, Any]) -> "FittedRanker":
        ranker, curve = self.ranker(**params), Curve()

        def hear(progress: Progress) -> None:
            curve.add(progress.step, progress.value, progress.valid)

        ranker.fit(task.fold.train, valid=task.fold.valid, listener=hear)
        if ranker.model_.training["interrupted"]:
            raise KeyboardInterrupt  # half a model is none in a comparison
        return FittedRanker(ranker, curve.points, _weights(ranker, task.fold.train))


@dataclass(frozen=True, eq=False)
class FittedRanker:
    """A ranker that has learned."""

    ranker: Ranker
    curve: tuple[Point, ...]
    weights: Weights | None

    @property
    def settings(self) -> Mapping[str, Any]:
        """All parameters, and what data chose in the place of "auto"."""
        chosen = self.ranker.model_.training.get("chosen", {})
        return {**plain(self.ranker.get_params()), **{f"{name}, by validation": plain(value) for name, value in chosen.items()}}

    def scores(self, part: str, data: RankingData) -> PerDocument:
        """By the model."""
        return self.ranker.predict(data)

    def save(self, folder: Path, name: str) -> None:
        """As a model file."""
        self.ranker.save(folder / f"{name}.json", force=True)


def _weights(ranker: Ranker, train: RankingData) -> Weights | None:
    """What each feature counts for, where that is known without further work."""
    scorer = ranker.model_.scorer
    if isinstance(scorer, Linear):
        _, deviation = moments(filled(train.X, scorer.fill, train.offset))
        return _named("weight x standard deviation", train, scorer.weights * deviation)
    if isinstance(scorer, TreeEnsemble):
        return shares("share of gain", train, scorer.importance("gain"))
    if isinstance(scorer, Thresholds):
        return _named("sum of the sizes of steps", train, np.array([np.abs(jumps).sum() for jumps in scorer.jumps]))
    return None


def shares(kind: str, train: RankingData, values: PerFeature) -> Weights:
    """Of each feature its share of the sum of ``values``, which is 0 where no feature is used."""
    return _named(kind, train, values / (values.sum() or 1.0))


def _named(kind: str, train: RankingData, values: PerFeature) -> Weights:
    return Weights(kind, train.feature_names, tuple(float(value) for value in values))
