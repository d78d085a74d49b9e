"""XGBoost's models as ``Booster.save_model`` writes them, in JSON or UBJSON: gbtree and dart as trees, gblinear as a linear model.

XGBoost compares and adds in single precision: a row goes left where x < t, which is x <= the float below t, and missing values go where the
split says. All trees count, as in ``Booster.predict``, including those after ``best_iteration``; scores are those of
``output_margin=True``.
"""

import math
import re
from dataclasses import replace

import numpy as np

from exactrank._support.numerics import log
from exactrank.errors import DataError
from exactrank.models.formats.content import DAMAGED, Budget, Content, Reader, array, part
from exactrank.models.formats.ubjson import parse_ubjson
from exactrank.models.linear import Linear
from exactrank.models.model import Model
from exactrank.models.plain_tree import PlainTree, table_of
from exactrank.models.tree_ensemble import TreeEnsemble

LOGISTIC = ("binary:logistic", "binary:logitraw", "reg:logistic")
LOGARITHMIC = ("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft")
_NUMBER = re.compile(r"\[?([-+.0-9eE]{1,30})\]?")


def recognizes(content: Content) -> bool:
    """Return whether there is a learner, in JSON or in UBJSON."""
    if content.is_binary:
        return b"learner" in content.data[:64]
    return isinstance(content.record.get("learner"), dict)


def read(content: Content) -> Model:
    """Return the model of a file."""
    return of_record(parse_ubjson(content.data, content.budget) if content.is_binary else content.record, content.budget)


def of_record(record: object, budget: Budget) -> Model:
    """Return the model that ``record`` describes, within ``budget``."""
    booster = part(record, "learner.gradient_booster", dict)
    objective = part(record, "learner.objective.name", str)
    n_features, outputs = _integer(record, "num_feature"), _integer(record, "num_class")
    if "num_target" in part(record, "learner.learner_model_param", dict):
        outputs = max(outputs, _integer(record, "num_target"))
    base_score = part(record, "learner.learner_model_param.base_score", str)
    if outputs > 1:
        raise DataError(f"the model gives {outputs} scores per row; a ranking needs one, so train with a single target and no num_class")
    budget.spend("features", n_features, "num_feature", "leave out features that no tree uses, or correct the number")
    names = tuple(part(record, "learner.feature_names", list) if part(record, "learner", dict).get("feature_names") else ())
    if not all(isinstance(name, str) for name in names) or (names and len(names) != n_features):
        raise DataError(f"there are {len(names)} feature_names for num_feature={n_features}; {DAMAGED}")
    kind = part(booster, "name", str)
    if kind == "gblinear":
        weights = array(part(booster, "model", dict), "weights", "gblinear", "iuf", n_features + 1)
        return Model(Linear(weights[:-1].astype(np.float32), names, "zero"), ranker=f"XGBoost {objective}")
    if kind not in ("gbtree", "dart"):
        raise DataError(f"the booster is {kind!r}; train with booster=gbtree, dart or gblinear")
    model = part(booster, "model" if kind == "gbtree" else "gbtree.model", dict)
    trees = [_tree(tree, number) for number, tree in enumerate(part(model, "trees", list))]
    factors = array(booster, "weight_drop", kind, "iuf", len(trees)) if kind == "dart" else np.ones(len(trees))
    with np.errstate(invalid="ignore", over="ignore"):  # a tree refuses what is not finite
        trees = [replace(tree, value=tree.value * factor) for tree, factor in zip(trees, factors.astype(np.float32).tolist(), strict=True)]
    if trees:
        trees[0] = replace(trees[0], value=trees[0].value + _margin(base_score, objective))
    return Model(TreeEnsemble(table_of(trees, n_features), names), ranker=f"XGBoost {objective}")


def _tree(tree: object, number: int) -> PlainTree:
    where = f"tree {number}"
    left = array(tree, "left_children", where)
    if len(left) == 0:
        raise DataError(f"{where} has no nodes; {DAMAGED}")
    if np.any(array(tree, "split_type", where, "iub", len(left)) if isinstance(tree, dict) and "split_type" in tree else 0):
        raise DataError(f"{where} splits on categories; encode them as numbers or one column each, and train without enable_categorical")
    if array(tree, "base_weights", where, "iuf").size != len(left):
        raise DataError(f"{where} has several values in a leaf; a ranking needs one score per row, so train with a single target")
    with np.errstate(over="ignore"):
        condition = array(tree, "split_conditions", where, "iuf", len(left)).astype(np.float32)
        below = np.nextafter(condition, np.float32(-np.inf)).astype(np.float64)
    return PlainTree(
        array(tree, "split_indices", where, size=len(left)),
        below,
        left,
        array(tree, "right_children", where, size=len(left)),
        condition.astype(np.float64),
        array(tree, "default_left", where, "iub", len(left)).astype(bool),
        array(tree, "loss_changes", where, "iuf", len(left)),
        array(tree, "sum_hessian", where, "iuf", len(left)),
    )


def _margin(base_score: str, objective: str) -> float:
    """Return the base score as a score; objectives on probabilities and counts state it in those units. Since 3.1 it is a list of one."""
    number = _NUMBER.fullmatch(base_score)
    try:
        base = float(np.float32(number[1])) if number else math.nan
        margin = float(log(base / (1 - base))) if objective in LOGISTIC else float(log(base)) if objective in LOGARITHMIC else base
    except (ZeroDivisionError, ValueError):  # two signs, for instance
        margin = math.nan
    if not math.isfinite(margin):
        raise DataError(
            f"base_score is {base_score[:40]!r}, which {objective} cannot have; a ranking needs one number, so train a single target"
        )
    return margin


def _integer(record: object, name: str) -> int:
    digits = part(record, f"learner.learner_model_param.{name}", str)
    if not re.fullmatch("[0-9]{1,9}", digits):
        raise DataError(f"{name} is {digits[:40]!r}; {DAMAGED}")
    return int(digits)


READER = Reader(recognizes, read)
