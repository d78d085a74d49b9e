"""Estimators of other libraries as contenders; `exactrank.models.estimators` fits them to queries and scores with them."""

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from exactrank._support.arrays import PerDocument
from exactrank._support.json_values import json_object
from exactrank.compare.contender import Contender, ContenderTask, Fitted
from exactrank.compare.results import FeatureWeights, Point, Settings
from exactrank.data.alignment import align_features
from exactrank.data.ranking_data import RankingData
from exactrank.models.estimators.adapter import ScoreFunction, fit_to_queries, model_writer, params_of, score_function
from exactrank.models.estimators.naming import call_of, identity


@dataclass(frozen=True, repr=False, eq=False)
class EstimatorContender(Contender):
    """An estimator of another library; each fit makes a new one like ``estimator``."""

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

    def fit(self, task: ContenderTask, settings: Settings) -> Fitted:
        train = task.fold.train
        learned = fit_to_queries(self.estimator, train, task.fold.valid, seed=task.seed, threads=task.threads, settings=settings)
        return fitted_model(learned, score_function(learned), json_object(params_of(learned)), train)


def fitted_model(
    model: object,
    predict: ScoreFunction,
    settings: Settings,
    train: RankingData,
    curve: tuple[Point, ...] = (),
    weights: FeatureWeights | None = None,
) -> Fitted:
    """Return the ``model`` of another library that was fitted to ``train``; it is saved in the library's own format, if it has one."""
    suffix, write = model_writer(model)

    def scores(part: str, data: RankingData) -> PerDocument:
        ordered = align_features(data, train.feature_names, levels=train.levels)
        return data.ungroup(np.asarray(predict(ordered.values), np.float64).reshape(-1))

    def save(folder: Path, name: str) -> None:
        if write is not None:
            write(str(folder / f"{name}{suffix}"))

    return Fitted(settings, scores, curve, weights, save)
