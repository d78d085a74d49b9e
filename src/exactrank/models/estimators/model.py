"""Models of other libraries as Python objects: those whose files `load` can read, and linear models."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from exactrank.errors import IncompatibleError
from exactrank.models.formats import catboost, xgboost
from exactrank.models.formats.content import Budget, Content
from exactrank.models.formats.ubjson import parsed
from exactrank.models.linear import Linear
from exactrank.models.model import Model
from exactrank.models.tree_ensemble import TreeEnsemble


def from_estimator(estimator: Any) -> Model:
    """The model of a fitted LightGBM, XGBoost or CatBoost booster or ranker, or of a linear model of scikit-learn.

    It has as many trees as the object's own ``predict`` uses: those up to the best iteration of early stopping for LightGBM and for
    ``XGBRanker``, all for an XGBoost ``Booster``. Scores are raw scores, as with ``output_margin=True``. The intercept of linear models is
    left out: it changes no ranking. A ``Pipeline`` may scale with ``StandardScaler`` first.

    >>> from sklearn.linear_model import Ridge
    >>> found = from_estimator(Ridge().fit([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], [0, 1, 2]))
    >>> found.scorer.weights.round(3)
    array([0.625, 0.125])
    """
    library = type(estimator).__module__.partition(".")[0]
    if library == "lightgbm":
        booster = getattr(estimator, "booster_", estimator)
        return Model(TreeEnsemble.of_lightgbm(booster.model_to_string()), ranker="LightGBM")
    if library == "xgboost":
        return xgboost.of_record(parsed(bytes(_xgboost_trees(estimator).save_raw("ubj")), Budget()), Budget())
    if library == "catboost":
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.json"
            estimator.save_model(str(path), format="json")
            return catboost.of_record(Content(path.read_bytes(), "the model").record)
    steps = getattr(estimator, "steps", [("", estimator)])
    if library != "sklearn" or not hasattr(steps[-1][1], "coef_"):
        raise IncompatibleError(
            f"a {type(estimator).__name__} cannot be read; give a fitted model of LightGBM, XGBoost or CatBoost, or a linear model of"
            " scikit-learn"
        )
    return _linear(estimator, steps)


def _xgboost_trees(estimator: Any) -> Any:
    """The booster with all trees that the estimator's own ``predict`` uses."""
    booster = estimator.get_booster() if hasattr(estimator, "get_booster") else estimator
    best = None if booster is estimator else getattr(estimator, "best_iteration", None)
    return booster if best is None else booster[: best + 1]


def _linear(estimator: Any, steps: list[tuple[str, Any]]) -> Model:
    found = steps[-1][1].coef_
    weights = np.array(found.toarray() if hasattr(found, "toarray") else found, np.float64)
    if weights.ndim > 1 and len(weights) > 1:
        raise IncompatibleError(
            f"the {type(steps[-1][1]).__name__} gives {len(weights)} scores per row; a ranking needs one: fit a single target"
        )
    weights = weights.reshape(-1)
    for _, step in steps[:-1]:
        if type(step).__name__ != "StandardScaler":
            raise IncompatibleError(f"the pipeline has a {type(step).__name__}; only StandardScaler may come before a linear model")
        weights = weights if step.scale_ is None else weights / step.scale_
    names = tuple(getattr(estimator, "feature_names_in_", ()))
    return Model(Linear(weights, names), ranker=type(steps[-1][1]).__name__)
