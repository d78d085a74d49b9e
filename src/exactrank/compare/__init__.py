"""Methods compared on the same queries (`compare`) and tuned (`tune`): divisions, contenders, fits in processes, results, the report."""

from exactrank._support.registry import Registry

#: The place of each peer, by its name in the notation; imported on demand.
CONTENDERS: Registry[type] = Registry("method", {
    "lightgbm": "exactrank.compare.contenders.lightgbm:LightGBM",
    "xgboost": "exactrank.compare.contenders.xgboost:XGBoost",
    "catboost": "exactrank.compare.contenders.catboost:CatBoost",
}, "exactrank.contenders", lambda value: isinstance(value, type))  # fmt: skip
