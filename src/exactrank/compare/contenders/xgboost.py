"""XGBoost: rank:ndcg by default, or rank:pairwise, or rank:map for grades of 0 and 1.

Its nDCG has linear gains where those of the measure are, else 2^grade - 1, of which it takes grades up to 31.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from exactrank.arrays import Matrix
from exactrank.compare.contender import Task
from exactrank.compare.contenders.peer import Judge, Peer, TrainedPeer, linear_gain, own_settings, plain_names, weights_of_queries
from exactrank.settings import Range, Space


class XGBoost(Peer):
    """Boosted trees of XGBoost, along its lambdas."""

    package = "xgboost"
    title = "XGBoost"
    highest_grade = 31
    defaults: ClassVar[Mapping[str, Any]] = {
        "objective": "rank:ndcg",
        "trees": 500,
        "patience": 50,
        "eta": 0.1,
        "max_depth": 6,
        "max_leaves": 0,
        "grow_policy": "depthwise",
        "min_child_weight": 1.0,
        "colsample_bytree": 1.0,
        "subsample": 1.0,
        "reg_alpha": 0.0,
        "reg_lambda": 1.0,
        "max_bin": 256,
        "lambdarank_pair_method": "topk",
        "lambdarank_num_pair_per_sample": 32,
    }
    ranges: ClassVar[Space] = {
        "eta": Range(0.02, 0.3, log=True),
        "max_depth": Range(3, 8),
        "min_child_weight": Range(0.1, 10.0, log=True),
        "colsample_bytree": Range(0.3, 1.0),
        "subsample": Range(0.5, 1.0),
    }

    def _trained(self, task: Task, given: Mapping[str, Any], judge: Judge) -> TrainedPeer:
        import xgboost as xgb

        names = plain_names(judge.train)
        train, valid = (
            xgb.DMatrix(
                part.values, part.y, group=part.sizes, weight=weights_of_queries(self, part), feature_names=names, nthread=task.threads
            )
            for part in (judge.train, judge.valid)
        )

        def measured(scores: npt.NDArray[np.float32], of: Any) -> tuple[str, float]:
            return "measure", judge(of is valid, scores)

        stop = xgb.callback.EarlyStopping(rounds=given["patience"], metric_name="measure", data_name="valid", maximize=True, save_best=True)
        params = own_settings(given) | self._besides(task, judge)
        model = xgb.train(
            params,
            train,
            given["trees"],
            evals=[(train, "train"), (valid, "valid")],
            custom_metric=measured,
            callbacks=[stop],
            verbose_eval=False,
        )

        def predicted(X: Matrix) -> npt.ArrayLike:
            found: npt.ArrayLike = model.predict(xgb.DMatrix(X, feature_names=names, nthread=task.threads))
            return found

        found = model.get_score(importance_type="total_gain")
        known = names or [f"f{j}" for j in range(judge.train.n_features)]
        gains = np.array([found.get(name, 0.0) for name in known])
        return TrainedPeer(predicted, model.save_model, ".json", gains)

    def _besides(self, task: Task, judge: Judge) -> dict[str, Any]:
        """What is not for users to set."""
        return {
            "ndcg_exp_gain": not linear_gain(judge.measure),
            "disable_default_eval_metric": True,
            "tree_method": "hist",
            "seed": task.seed,
            "nthread": task.threads,
            "verbosity": 0,
        }
