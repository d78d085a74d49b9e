"""LightGBM: lambdarank by default, or rank_xendcg.

Its nDCG has linear gains if the measure has them, otherwise 2^grade - 1, for which it takes grades up to 30.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from exactrank._support.settings import Range, Space
from exactrank.compare.contender import ContenderTask
from exactrank.compare.contenders.peer import Peer, PeerModel, StoppingMeasure, has_linear_gain
from exactrank.models.estimators.adapter import document_weights
from exactrank.models.estimators.model import from_estimator

#: Settings that users may not change.
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

    def _train(self, task: ContenderTask, stopping: StoppingMeasure, trees: int, patience: int, settings: dict[str, object]) -> PeerModel:
        import lightgbm as lgb

        grades = np.arange(max(int(stopping.train.y.max()), self.highest_grade) + 1)
        gain = (grades if has_linear_gain(stopping.measure) else 2**grades - 1).tolist()
        params = settings | FIXED | {"label_gain": gain, "seed": task.seed, "num_threads": task.threads}
        names: list[str] | Literal["auto"] = stopping.names or "auto"
        categories = [j for j, name in enumerate(stopping.train.feature_names) if name in stopping.train.levels]
        about: dict[str, Any] = {"feature_name": names, "categorical_feature": categories}
        train, valid = (
            lgb.Dataset(part.values, part.y, group=part.sizes, weight=document_weights(part), params=dict(params), **about)
            for part in (stopping.train, stopping.valid)
        )
        valid.set_reference(train)

        def evaluate(scores: npt.NDArray[np.float64], part: lgb.Dataset) -> tuple[str, float, bool]:
            return task.measure, stopping(part is valid, scores), True

        stop = lgb.early_stopping(patience, verbose=False)
        model = lgb.train(params, train, trees, [train, valid], ["train", "valid"], feval=evaluate, callbacks=[stop])
        model.pandas_categorical = [
            list(stopping.train.levels[name]) for name in stopping.train.feature_names if name in stopping.train.levels
        ] or None
        scorer = from_estimator(model).scorer  # the same bits as LightGBM's own, many times as fast

        def predict(X: npt.NDArray[np.generic]) -> npt.ArrayLike:
            if X.dtype == np.float32:
                return scorer.score(X.astype(np.float32, copy=False), task.threads)
            return np.asarray(model.predict(X, raw_score=True, num_threads=task.threads))

        return predict, model, model.feature_importance("gain").astype(np.float64)
