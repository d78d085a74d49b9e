"""CatBoost: YetiRank by default, or any of its losses of groups, such as QueryRMSE, or StochasticRank:metric=NDCG;top=10;type=Exp."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from exactrank.compare.contender import Task
from exactrank.compare.contenders.peer import Judge, Peer, TrainedPeer, own_settings, plain_names, weights_of_queries
from exactrank.settings import Range, Space


class CatBoost(Peer):
    """Boosted symmetric trees of CatBoost."""

    package = "catboost"
    title = "CatBoost"
    loss = "loss_function"
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

    def _trained(self, task: Task, given: Mapping[str, Any], judge: Judge) -> TrainedPeer:
        import catboost

        names = plain_names(judge.train)
        train, valid = (
            catboost.Pool(
                part.values,
                part.y,
                group_id=np.repeat(np.arange(part.n_queries), part.sizes),
                group_weight=None if (weight := weights_of_queries(self, part)) is None else np.repeat(weight, part.sizes),
                feature_names=names,
            )
            for part in (judge.train, judge.valid)
        )
        besides = {"thread_count": task.threads, "random_seed": task.seed, "logging_level": "Silent", "allow_writing_files": False}
        model = catboost.CatBoost({**own_settings(given), **besides, "iterations": given["trees"], "eval_metric": _Metric(judge)})
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "(?s).*opti.*method")  # it would compile our metric, where Numba is installed
            model.fit(train, eval_set=valid, early_stopping_rounds=given["patience"], use_best_model=True)
        gains = np.asarray(model.get_feature_importance(type="PredictionValuesChange"), np.float64)
        kind = "share of the change of predictions"
        return TrainedPeer(lambda X: model.predict(X, thread_count=task.threads), model.save_model, ".cbm", gains, kind)


class _Metric:
    """The measure as CatBoost asks for it."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def __deepcopy__(self, memo: object) -> "_Metric":
        """Itself: CatBoost copies its settings, and a copy would keep the curve, and all data, to itself."""
        return self

    def is_max_optimal(self) -> bool:
        return True

    def evaluate(self, approxes: Sequence[Any], target: npt.ArrayLike, weight: object) -> tuple[float, float]:
        """CatBoost does not say which part it asks about; the grades do."""
        held_out = np.array_equal(np.asarray(target, np.float32), self._judge.valid.y.astype(np.float32))
        return self._judge(held_out, np.asarray(approxes[0])), 1.0

    def get_final_error(self, error: float, weight: float) -> float:
        return error / weight
