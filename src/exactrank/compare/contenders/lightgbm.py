"""LightGBM: lambdarank by default, or rank_xendcg.

Its nDCG has the gains of the measure where that is nDCG or DCG with linear gains, else 2^grade - 1, of which it takes grades up to 30.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from exactrank._support.settings import Range, Space
from exactrank.compare.contender import ContenderTask
from exactrank.compare.contenders.peer import Peer, PeerJudge, Trained, linear_gain
from exactrank.models.estimators.adapter import document_weights
from exactrank.models.estimators.model import from_estimator

#: What is not for users to set.
FIXED = {"metric": "none", "bagging_freq": 1, "deterministic": True, "force_row_wise": True, "verbosity": -1}


class LightGBM(Peer):
    """Boosted trees of LightGBM, along its lambdas."""

    package = "lightgbm"
    title = "LightGBM"
    highest_grade = 30
    longest_query = 10_000
    weighs_documents = True
    takes_categories = True
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

    def _trained(self, task: ContenderTask, judge: PeerJudge, trees: int, patience: int, own: dict[str, Any]) -> Trained:
        import lightgbm as lgb

        grades = np.arange(max(int(judge.train.y.max()), self.highest_grade) + 1)
        gain = (grades if linear_gain(judge.measure) else 2**grades - 1).tolist()
        params = own | FIXED | {"label_gain": gain, "seed": task.seed, "num_threads": task.threads}
        names: Any = judge.names or "auto"
        kinds = [j for j, name in enumerate(judge.train.feature_names) if name in judge.train.levels]
        both = []
        for part in (judge.train, judge.valid):
            about: dict[str, Any] = {"feature_name": names, "categorical_feature": kinds, "params": dict(params)}
            both.append(lgb.Dataset(part.values, part.y, group=part.sizes, weight=document_weights(part), **about))
        train, valid = both
        valid.set_reference(train)

        def measured(scores: npt.NDArray[np.float64], of: lgb.Dataset) -> tuple[str, float, bool]:
            return task.measure, judge(of is valid, scores), True

        stop = lgb.early_stopping(patience, verbose=False)
        model = lgb.train(params, train, trees, [train, valid], ["train", "valid"], feval=measured, callbacks=[stop])
        model.pandas_categorical = [
            list(judge.train.levels[name]) for name in judge.train.feature_names if name in judge.train.levels
        ] or None
        scorer = from_estimator(model).scorer  # to the bit as LightGBM's own, and many times as fast

        def predict(X: npt.NDArray[Any]) -> npt.ArrayLike:
            single = X.dtype == np.float32
            return scorer.score(X, task.threads) if single else np.asarray(model.predict(X, raw_score=True, num_threads=task.threads))

        return predict, model, model.feature_importance("gain").astype(np.float64)
