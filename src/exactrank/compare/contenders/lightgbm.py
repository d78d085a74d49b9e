"""LightGBM: lambdarank by default, or rank_xendcg.

Its nDCG has the gains of the measure where that is nDCG or DCG with linear gains, else 2^grade - 1, of which it takes grades up to 30.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from exactrank.compare.contender import Task
from exactrank.compare.contenders.peer import Judge, Peer, TrainedPeer, linear_gain, own_settings, plain_names
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError
from exactrank.measures.base import Measure
from exactrank.scorers.tree_ensemble import TreeEnsemble
from exactrank.settings import Range, Space

#: LightGBM's own limit.
LONGEST_QUERY = 10_000


class LightGBM(Peer):
    """Boosted trees of LightGBM, along its lambdas."""

    package = "lightgbm"
    title = "LightGBM"
    highest_grade = 30
    defaults: ClassVar[Mapping[str, Any]] = {
        "objective": "lambdarank",
        "trees": 500,
        "patience": 50,
        "learning_rate": 0.1,
        "num_leaves": 31,
        "max_depth": -1,
        "min_data_in_leaf": 20,
        "min_sum_hessian_in_leaf": 1e-3,
        "feature_fraction": 1.0,
        "bagging_fraction": 1.0,
        "lambda_l1": 0.0,
        "lambda_l2": 0.0,
        "max_bin": 255,
        "extra_trees": False,
        "lambdarank_truncation_level": 30,
        "lambdarank_norm": True,
    }
    ranges: ClassVar[Space] = {
        "learning_rate": Range(0.02, 0.3, log=True),
        "num_leaves": Range(4, 63, log=True),
        "min_data_in_leaf": Range(5, 100, log=True),
        "feature_fraction": Range(0.3, 1.0),
        "bagging_fraction": Range(0.5, 1.0),
    }

    def _check(self, train: RankingData, measure: Measure) -> None:
        super()._check(train, measure)
        if train.longest > LONGEST_QUERY:
            raise DataError(f"LightGBM takes at most {LONGEST_QUERY:,} documents a query, and one has {train.longest:,}; leave some out")

    def _trained(self, task: Task, given: Mapping[str, Any], judge: Judge) -> TrainedPeer:
        import lightgbm as lgb

        params = own_settings(given) | self._besides(task, judge)
        names: Any = plain_names(judge.train) or "auto"
        train, valid = (
            lgb.Dataset(part.values, part.y, group=part.sizes, weight=_row_weights(part), feature_name=names, params=dict(params))
            for part in (judge.train, judge.valid)
        )
        valid.set_reference(train)

        def measured(scores: npt.NDArray[np.float64], of: lgb.Dataset) -> tuple[str, float, bool]:
            return task.measure, judge(of is valid, scores), True

        stop = lgb.early_stopping(given["patience"], verbose=False)
        model = lgb.train(params, train, given["trees"], [train, valid], ["train", "valid"], feval=measured, callbacks=[stop])
        gains = model.feature_importance("gain").astype(np.float64)
        scorer = TreeEnsemble.of_lightgbm(model.model_to_string())  # to the bit as LightGBM's own, and many times as fast

        def predict(X: npt.NDArray[Any]) -> npt.ArrayLike:
            single = X.dtype == np.float32
            return scorer.score(X, task.threads) if single else np.asarray(model.predict(X, raw_score=True, num_threads=task.threads))

        return TrainedPeer(predict, model.save_model, ".txt", gains)

    def _besides(self, task: Task, judge: Judge) -> dict[str, Any]:
        """What is not for users to set."""
        grades = np.arange(max(int(judge.train.y.max()), self.highest_grade) + 1)
        return {
            "label_gain": (grades if linear_gain(judge.measure) else 2**grades - 1).tolist(),
            "metric": "none",
            "bagging_freq": 1,
            "seed": task.seed,
            "num_threads": task.threads,
            "deterministic": True,
            "force_row_wise": True,
            "verbosity": -1,
        }


def _row_weights(data: RankingData) -> npt.NDArray[np.float64] | None:
    """Of each document its weight times that of its query."""
    if data.sample_weight is None and data.query_weight is None:
        return None
    return np.asarray((1.0 if data.sample_weight is None else data.sample_weight) * np.repeat(data.weights, data.sizes))
