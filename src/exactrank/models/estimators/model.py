"""Models of other libraries as Python objects: those whose files `load` can read, and linear models."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from exactrank.errors import IncompatibleError
from exactrank.models.estimators.adapter import library_of
from exactrank.models.formats import catboost, xgboost
from exactrank.models.formats.content import Budget, Content
from exactrank.models.formats.ubjson import parse_ubjson
from exactrank.models.linear import Linear
from exactrank.models.model import Model
from exactrank.models.tree_ensemble import TreeEnsemble

if TYPE_CHECKING:
    from xgboost import Booster


def from_estimator(estimator: Any) -> Model:
    """Return the model of a fitted LightGBM, XGBoost or CatBoost booster or ranker, or of a linear model of scikit-learn.

    It has the trees that the object's own ``predict`` uses: those up to the best iteration of early stopping for LightGBM and for
    ``XGBRanker``, all for an XGBoost ``Booster``. Scores are raw scores, as with ``output_margin=True``. The intercept of linear models is
    left out, since it does not change a ranking. A ``Pipeline`` may scale with ``StandardScaler`` first.

    >>> from sklearn.linear_model import Ridge
    >>> model = from_estimator(Ridge().fit([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], [0, 1, 2]))
    >>> model.scorer.weights.round(3)
    array([0.625, 0.125])
    """
    library = library_of(estimator)
    if library == "lightgbm":
        booster = getattr(estimator, "booster_", estimator)
        return Model(TreeEnsemble.of_lightgbm(booster.model_to_string()), ranker="LightGBM")
    if library == "xgboost":
        return xgboost.of_record(parse_ubjson(bytes(_xgboost_trees(estimator).save_raw("ubj")), Budget()), Budget())
    if library == "catboost":
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.json"
            estimator.save_model(str(path), format="json")
            return catboost.of_record(Content(path.read_bytes(), "the model").record)
    *transforms, (_, last) = getattr(estimator, "steps", [("", estimator)])
    if library != "sklearn" or not hasattr(last, "coef_"):
        raise IncompatibleError(
            f"a {type(estimator).__name__} cannot be read; give a fitted model of LightGBM, XGBoost or CatBoost, or a linear model of"
            " scikit-learn"
        )
    weights = _linear_weights(last, [step for _, step in transforms])
    return Model(Linear(weights, tuple(getattr(estimator, "feature_names_in_", ()))), ranker=type(last).__name__)


def _xgboost_trees(estimator: Any) -> "Booster":
    """Return the booster with all trees that the estimator's own ``predict`` uses."""
    booster: Booster = estimator.get_booster() if hasattr(estimator, "get_booster") else estimator
    best = None if booster is estimator else getattr(estimator, "best_iteration", None)
    return booster if best is None else booster[: best + 1]


def _linear_weights(estimator: Any, transforms: Sequence[object]) -> npt.NDArray[np.float64]:
    """Return the weights of the features before ``transforms``."""
    coefficients = estimator.coef_
    weights = np.array(coefficients.toarray() if hasattr(coefficients, "toarray") else coefficients, np.float64)
    if weights.ndim > 1 and len(weights) > 1:
        raise IncompatibleError(
            f"the {type(estimator).__name__} gives {len(weights)} scores per row; a ranking needs one: fit a single target"
        )
    weights = weights.reshape(-1)
    for transform in transforms:
        if type(transform).__name__ != "StandardScaler":
            raise IncompatibleError(f"the pipeline has a {type(transform).__name__}; only StandardScaler may come before a linear model")
        scale = getattr(transform, "scale_", None)
        weights = weights if scale is None else weights / scale
    return weights
