"""Any scikit-learn estimator whose ``fit`` takes ``X``, ``y`` and ``qid`` or ``group`` as a contender.

It gets the seed as ``random_state`` and the threads as ``n_jobs`` where it has such settings, and no validation data.
"""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from exactrank.arrays import PerDocument
from exactrank.compare.contender import Contender, Fitted, Task
from exactrank.compare.results import Point, Weights
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError
from exactrank.scorers.model import plain
from exactrank.text import written


@dataclass(frozen=True, repr=False)
class EstimatorContender(Contender):
    """The estimator of the class ``estimator``, of which ``params`` are fixed."""

    name: str
    estimator: Any  #: a class
    params: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not {"qid", "group"} & inspect.signature(self.estimator.fit).parameters.keys():
            raise DataError(
                f"{self.estimator.__name__}.fit takes neither qid nor group, so it cannot know which documents belong to a query;"
                " give an estimator that ranks, or write a Contender"
            )

    def __repr__(self) -> str:
        return f"{self.estimator.__name__}({written(self.params)})"

    @property
    def about(self) -> str:
        return (inspect.getdoc(self.estimator) or self.estimator.__qualname__).partition("\n")[0]

    def fit(self, task: Task, settings: Mapping[str, Any]) -> Fitted:
        estimator = self.estimator(**{**self.params, **settings})
        own = {"random_state": task.seed, "n_jobs": task.threads}
        estimator.set_params(**{name: own[name] for name in own.keys() & estimator.get_params().keys() if name not in self.params})
        train, sizes = task.fold.train, task.fold.train.sizes
        by_query = "qid" in inspect.signature(estimator.fit).parameters
        which = {"qid": np.repeat(np.arange(len(sizes)), sizes)} if by_query else {"group": sizes}
        return FittedEstimator(estimator.fit(train.values, train.y, **which))


@dataclass(frozen=True, eq=False)
class FittedEstimator:
    """An estimator that has learned."""

    estimator: Any
    curve: tuple[Point, ...] = ()
    weights: Weights | None = None

    @property
    def settings(self) -> Mapping[str, Any]:
        """All parameters."""
        found: Mapping[str, Any] = plain(self.estimator.get_params())
        return found

    def scores(self, part: str, data: RankingData) -> PerDocument:
        """What it predicts."""
        return data.ungrouped(np.asarray(self.estimator.predict(data.values), np.float64))

    def save(self, folder: Path, name: str) -> None:
        """Nothing: of an estimator in general only a pickle could be written, and those are programs, not data."""
