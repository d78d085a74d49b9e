"""CatBoost: YetiRank by default, or any of its losses of groups, such as QueryRMSE, or StochasticRank:metric=NDCG;top=10;type=Exp."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from exactrank._support.settings import Range, Space
from exactrank.compare.contender import ContenderTask
from exactrank.compare.contenders.peer import Peer, PeerModel, StoppingMeasure
from exactrank.models.estimators.adapter import document_weights


class CatBoost(Peer):
    """Boosted symmetric trees of CatBoost."""

    package = "catboost"
    title = "CatBoost"
    loss = "loss_function"
    gains = "share of the change of predictions"
    defaults: ClassVar[Mapping[str, Any]] = {
        "loss_function": "YetiRank",
        "trees": 500,
        "patience": 50,
        "learning_rate": 0.1,
        "depth": 6,
        "l2_leaf_reg": 3.0,
        "random_strength": 1.0,
        "rsm": 1.0,
        "border_count": 254,
        "min_data_in_leaf": 1,
    }
    ranges: ClassVar[Space] = {
        "learning_rate": Range(0.02, 0.3, log=True),
        "depth": Range(3, 8),
        "l2_leaf_reg": Range(0.3, 30.0, log=True),
        "random_strength": Range(0.1, 10.0, log=True),
        "rsm": Range(0.3, 1.0),
    }

    def _train(self, task: ContenderTask, stopping: StoppingMeasure, trees: int, patience: int, settings: dict[str, object]) -> PeerModel:
        import catboost

        train, valid = (
            catboost.Pool(
                part.values,
                part.y,
                group_id=part.query_numbers,
                group_weight=document_weights(part),
                feature_names=stopping.names,
            )
            for part in (stopping.train, stopping.valid)
        )
        settings |= {"iterations": trees, "eval_metric": _Metric(stopping), "thread_count": task.threads, "random_seed": task.seed}
        model = catboost.CatBoost({**settings, "logging_level": "Silent", "allow_writing_files": False})
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "(?s).*opti.*method")  # it would compile our metric, where Numba is installed
            model.fit(train, eval_set=valid, early_stopping_rounds=patience, use_best_model=True)
        gains = np.asarray(model.get_feature_importance(type="PredictionValuesChange"), np.float64)
        return lambda X: model.predict(X, thread_count=task.threads), model, gains


@dataclass(eq=False)
class _Metric:
    """The measure with the methods that CatBoost calls."""

    stopping: StoppingMeasure

    def __deepcopy__(self, memo: object) -> "_Metric":
        """Return this object: CatBoost copies its settings, and a copy would have a curve, and data, of its own."""
        return self

    def is_max_optimal(self) -> bool:
        return True

    def evaluate(self, approxes: Sequence[npt.ArrayLike], target: npt.ArrayLike, weight: object) -> tuple[float, float]:
        """Evaluate one part; CatBoost does not say which, but the grades do."""
        held_out = np.array_equal(np.asarray(target, np.float32), self.stopping.valid.y.astype(np.float32))
        return self.stopping(held_out, np.asarray(approxes[0])), 1.0

    def get_final_error(self, error: float, weight: float) -> float:
        return error / weight
