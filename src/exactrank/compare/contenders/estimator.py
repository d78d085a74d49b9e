"""Estimators of other libraries as contenders; `exactrank.models.estimators` fits them to queries and scores with them."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from exactrank._support.arrays import PerDocument
from exactrank._support.json_values import json_object
from exactrank.compare.contender import Contender, ContenderTask, Fitted
from exactrank.compare.results import FeatureWeights, Point
from exactrank.data.alignment import align_features
from exactrank.data.levels import Levels
from exactrank.data.ranking_data import RankingData
from exactrank.models.estimators.adapter import ModelWriter, ScoreFunction, fit_to_queries, model_writer, params_of, score_function
from exactrank.models.estimators.naming import call_of, identity


@dataclass(frozen=True, repr=False, eq=False)
class EstimatorContender(Contender):
    """The ``estimator``, which each fit makes anew."""

    name: str
    estimator: Any  #: an `Estimator`

    def __repr__(self) -> str:
        return call_of(self.estimator)

    @property
    def about(self) -> str:
        return (inspect.getdoc(type(self.estimator)) or type(self.estimator).__qualname__).partition("\n")[0]

    @property
    def libraries(self) -> tuple[str, ...]:
        parts = (self.estimator, *params_of(self.estimator).values())
        return tuple(sorted({type(part).__module__ for part in parts} - {"builtins"}))

    @property
    def fingerprint(self) -> str:
        return repr(identity(self.estimator))

    def fit(self, task: ContenderTask, settings: Mapping[str, Any]) -> Fitted:
        train = task.fold.train
        learned = fit_to_queries(self.estimator, train, task.fold.valid, seed=task.seed, threads=task.threads, settings=settings)
        suffix, write = model_writer(learned)
        return FittedEstimator(
            json_object(params_of(learned)), score_function(learned), (), None, train.feature_names, write, suffix, train.levels
        )


@dataclass(frozen=True, eq=False)
class FittedEstimator:
    """What another library has learned."""

    settings: Mapping[str, Any]
    predict: ScoreFunction
    curve: tuple[Point, ...] = ()
    weights: FeatureWeights | None = None
    feature_names: tuple[str, ...] | None = None  #: in the order of its columns; None: as they come
    write: ModelWriter | None = None  #: to a path
    suffix: str = ""  #: of files that hold such models
    levels: Levels = field(default_factory=dict)  #: of the features that are categories

    def scores(self, part: str, data: RankingData) -> PerDocument:
        """What it predicts."""
        ordered = data if self.feature_names is None else align_features(data, self.feature_names, levels=self.levels)
        return data.ungroup(np.asarray(self.predict(ordered.values), np.float64).reshape(-1))

    def save(self, folder: Path, name: str) -> None:
        """In the library's own format, if it has one."""
        if self.write is not None:
            self.write(str(folder / f"{name}{self.suffix}"))
