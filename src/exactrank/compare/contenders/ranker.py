"""Rankers of this library, and any scikit-learn estimator whose ``fit`` takes ``X``, ``y`` and ``qid`` or ``group``, as contenders.

A ranker trains on the measure of the comparison, and validation data chooses the iterate to keep. Some methods bound one measure and no
other, as SVM-MAP does average precision; some cannot train on every measure. They train on the one that their constructor has by default,
which their settings then show.

An estimator gets the seed as ``random_state`` and the threads as ``n_jobs`` where it has such settings, and no validation data.
"""

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from exactrank.arrays import PerDocument
from exactrank.compare.contender import Contender, Curve, Fitted, Task
from exactrank.compare.results import Point, Weights
from exactrank.data.alignment import aligned
from exactrank.data.ranking_data import RankingData, moments
from exactrank.errors import DataError, IncompatibleError
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
class EstimatorContender(Contender):
    """The estimator of the class ``kind``, of which ``params`` are fixed."""

    name: str
    kind: Any  #: a class
    params: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not {"qid", "group"} & inspect.signature(self.kind.fit).parameters.keys():
            raise DataError(
                f"{self.kind.__name__}.fit takes neither qid nor group, so it cannot know which documents belong to a query;"
                " give an estimator that ranks, or write a Contender"
            )

    def __repr__(self) -> str:
        return f"{self.kind.__name__}({written(self.params)})"

    @property
    def about(self) -> str:
        return (inspect.getdoc(self.kind) or self.kind.__qualname__).partition("\n")[0]

    def fit(self, task: Task, settings: Mapping[str, Any]) -> Fitted:
        estimator = self.kind(**{**self.params, **settings})
        own = {"random_state": task.seed, "n_jobs": task.threads}
        estimator.set_params(**{name: own[name] for name in own.keys() & estimator.get_params().keys() if name not in self.params})
        train, sizes = task.fold.train, task.fold.train.sizes
        by_query = "qid" in inspect.signature(estimator.fit).parameters
        which = {"qid": np.repeat(np.arange(len(sizes)), sizes)} if by_query else {"group": sizes}
        learned = estimator.fit(train.values, train.y, **which)
        return FittedEstimator(plain(learned.get_params()), learned.predict)


@dataclass(frozen=True, eq=False)
class FittedEstimator:
    """What another library has learned."""

    settings: Mapping[str, Any]
    predict: Callable[[npt.NDArray[Any]], npt.ArrayLike]
    curve: tuple[Point, ...] = ()
    weights: Weights | None = None
    feature_names: tuple[str, ...] | None = None  #: in the order of its columns; None: as they come
    write: Callable[[str], object] | None = None  #: to a path
    suffix: str = ""  #: of files that hold such models

    def scores(self, part: str, data: RankingData) -> PerDocument:
        """What it predicts."""
        ordered = data if self.feature_names is None else aligned(data, self.feature_names)
        return data.ungrouped(np.asarray(self.predict(ordered.values), np.float64))

    def save(self, folder: Path, name: str) -> None:
        """In the library's own format; of an estimator in general only a pickle could be written, and those are programs, not data."""
        if self.write is not None:
            self.write(str(folder / f"{name}{self.suffix}"))


@dataclass(frozen=True, repr=False)
class RankerContender(EstimatorContender):
    """The ranker of the class ``kind``, of which ``params`` are fixed."""

    kind: type[Ranker]

    @property
    def libraries(self) -> tuple[str, ...]:
        return (self.kind.__module__,)

    @property
    def fingerprint(self) -> str:
        return f"{self.kind.__module__}:{self.kind.__name__}({plain(self.params)})"

    @property
    def space(self) -> Space:
        return {name: choices for name, choices in self.kind.space.items() if name not in self.params}

    def fit(self, task: Task, settings: Mapping[str, Any]) -> "FittedRanker":
        idle = self.kind(**self.params, **settings).idle(
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

    def _fitted(self, task: Task, params: Mapping[str, Any]) -> "FittedRanker":
        ranker, curve = self.kind(**params), Curve()

        def hear(progress: Progress) -> None:
            curve.add(progress.step, progress.value, progress.valid)

        ranker.fit(task.fold.train, valid=task.fold.valid, listener=hear)
        if ranker.model_.training["interrupted"]:
            raise KeyboardInterrupt  # half a model is none in a comparison
        chosen = ranker.model_.training.get("chosen", {})  # by data, in the place of "auto"
        settings = {**plain(ranker.get_params()), **{f"{name}, by validation": plain(value) for name, value in chosen.items()}}
        return FittedRanker(ranker, settings, curve.points, _weights(ranker, task.fold.train))


@dataclass(frozen=True, eq=False)
class FittedRanker:
    """A ranker that has learned."""

    ranker: Ranker
    settings: Mapping[str, Any]
    curve: tuple[Point, ...]
    weights: Weights | None

    def scores(self, part: str, data: RankingData) -> PerDocument:
        """By the model."""
        return self.ranker.predict(data)

    def save(self, folder: Path, name: str) -> None:
        """As a model file."""
        self.ranker.save(folder / f"{name}.json", force=True)


def _weights(ranker: Ranker, train: RankingData) -> Weights | None:
    """What each feature counts for, where that is known without further work."""
    match ranker.model_.scorer:
        case Linear() as scorer:
            _, deviation = moments(filled(train.X, scorer.fill, train.offset))
            kind, values = "weight x standard deviation", scorer.weights * deviation
        case TreeEnsemble() as scorer:
            return shares("share of gain", train, scorer.importance("gain"))
        case Thresholds() as scorer:
            kind, values = "sum of the sizes of steps", np.array([np.abs(jumps).sum() for jumps in scorer.jumps])
        case _:
            return None
    return Weights(kind, train.feature_names, tuple(values.tolist()))


def shares(kind: str, train: RankingData, values: PerFeature) -> Weights:
    """Of each feature its share of the sum of ``values``, which is 0 where no feature is used."""
    return Weights(kind, train.feature_names, tuple((values / (values.sum() or 1.0)).tolist()))
