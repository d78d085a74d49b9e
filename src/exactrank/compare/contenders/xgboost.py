"""XGBoost: rank:ndcg by default, or rank:pairwise, or rank:map for grades of 0 and 1.

Its nDCG has linear gains if the measure has them, otherwise 2^grade - 1, for which it takes grades up to 31.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import Matrix
from exactrank._support.settings import Range, Space
from exactrank.compare.contender import ContenderTask
from exactrank.compare.contenders.peer import Peer, PeerModel, StoppingMeasure, has_linear_gain

#: Settings that users may not change.
FIXED = {"disable_default_eval_metric": True, "tree_method": "hist", "verbosity": 0}


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

    def _train(self, task: ContenderTask, stopping: StoppingMeasure, trees: int, patience: int, settings: dict[str, object]) -> PeerModel:
        import xgboost as xgb

        about: dict[str, Any] = {"feature_names": stopping.names, "nthread": task.threads}
        train, valid = (
            xgb.DMatrix(part.values, part.y, group=part.sizes, weight=part.query_weight, **about)
            for part in (stopping.train, stopping.valid)
        )

        def evaluate(scores: npt.NDArray[np.float32], part: object) -> tuple[str, float]:
            return "measure", stopping(part is valid, scores)

        stop = xgb.callback.EarlyStopping(rounds=patience, metric_name="measure", data_name="valid", maximize=True, save_best=True)
        params = settings | FIXED | {"ndcg_exp_gain": not has_linear_gain(stopping.measure), "seed": task.seed, "nthread": task.threads}
        parts = [(train, "train"), (valid, "valid")]
        model = xgb.train(params, train, trees, evals=parts, custom_metric=evaluate, callbacks=[stop], verbose_eval=False)
        total_gains = model.get_score(importance_type="total_gain")
        gains = [total_gains.get(name, 0.0) for name in stopping.names or [f"f{j}" for j in range(stopping.train.n_features)]]

        def predict(X: Matrix) -> npt.ArrayLike:
            return np.asarray(model.predict(xgb.DMatrix(X, **about)))

        return predict, model, np.array(gains)
