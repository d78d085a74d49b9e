"""CatBoost's models as ``save_model(..., format="json")`` writes them: symmetric and other trees, on numeric features.

At a border b a row goes right where x > b, in single precision; a missing value goes left, or right where the feature's
``nan_value_treatment`` is ``AsTrue``. Scores are scale times the sum of the leaves, plus a bias, in double precision.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from exactrank.errors import DataError
from exactrank.models.formats.content import DAMAGED, Content, Reader, array, finite, part
from exactrank.models.model import Model
from exactrank.models.plain_tree import PlainTree, table_of
from exactrank.models.tree_ensemble import TreeEnsemble

DEEPEST = 16  #: levels of a symmetric tree, as in CatBoost
ONE_SCORE = "a ranking needs one score per row, so train with a loss of one dimension"
OTHERS = ("categorical_features", "text_features", "embedding_features", "ctrs")


def recognizes(content: Content) -> bool:
    """Are there features, and trees of one of the two kinds?"""
    record = content.record
    return isinstance(record.get("features_info"), dict) and any(
        isinstance(record.get(kind), list) for kind in ("oblivious_trees", "trees")
    )


def of_record(record: Mapping[str, Any]) -> Model:
    """The model that ``record`` describes."""
    other = next((kind for kind in OTHERS if record["features_info"].get(kind) or record.get(kind)), None)
    if other is not None:
        raise DataError(f"the model has {other}; encode them as numbers, one column each, and train on these (without cat_features)")
    features = part(record, "features_info.float_features", list)
    if not all(isinstance(feature, dict) for feature in features):
        raise DataError(f"features_info.float_features does not hold features; {DAMAGED}")
    if [feature.get("flat_feature_index") for feature in features] != list(range(len(features))):
        raise DataError(f"the float_features are not numbered like the columns; {DAMAGED}")
    names = tuple(str(feature.get("feature_id") or "") for feature in features)
    right = np.array([feature.get("nan_value_treatment") == "AsTrue" for feature in features])
    scale, bias = _scale_and_bias(record)
    symmetric = "oblivious_trees" in record
    trees = [
        (_symmetric if symmetric else _other)(tree, f"tree {number}", right)
        for number, tree in enumerate(part(record, "oblivious_trees" if symmetric else "trees", list))
    ]
    with np.errstate(over="ignore"):
        trees = [replace(tree, value=scale * tree.value + (bias if number == 0 else 0.0)) for number, tree in enumerate(trees)]
    known = names if all(names) else ()
    return Model(TreeEnsemble(table_of(trees, len(features)), known), ranker="CatBoost")


def _scale_and_bias(record: Mapping[str, Any]) -> tuple[float, float]:
    given = record.get("scale_and_bias", [1, [0]])
    if not isinstance(given, list) or len(given) != 2:
        raise DataError(f"scale_and_bias is not a scale and a list; {DAMAGED}")
    bias = given[1] if isinstance(given[1], list) else [given[1]]
    if len(bias) > 1:
        raise DataError(f"scale_and_bias has {len(bias)} biases; {ONE_SCORE}")
    return finite(given[0], "the scale"), finite(bias[0], "the bias") if bias else 0.0


def _split(split: Any, where: str, features: int) -> tuple[int, float]:
    """The feature of a split, and its border."""
    if not isinstance(split, dict) or split.get("split_type") != "FloatFeature":
        found = split.get("split_type") if isinstance(split, dict) else None
        raise DataError(
            f"{where} splits by {str(found)[:40]!r}; encode categories as numbers, one column each, and train without cat_features"
        )
    feature = split.get("float_feature_index")
    if isinstance(feature, bool) or not isinstance(feature, int) or not 0 <= feature < features:
        raise DataError(f"{where} splits at feature {str(feature)[:40]}, of {features}; {DAMAGED}")
    with np.errstate(over="ignore"):
        return feature, float(np.float32(finite(split.get("border"), f"{where}: a border")))


def _symmetric(tree: Any, where: str, right: npt.NDArray[np.bool_]) -> PlainTree:
    """A tree with the same split at all nodes of a level: node n has the children 2n + 1 and 2n + 2; the last level comes first."""
    splits = part(tree, "splits", list) if isinstance(tree, dict) and tree.get("splits") else []
    if len(splits) > DEEPEST:
        raise DataError(f"{where} has {len(splits)} levels, but CatBoost's trees have at most {DEEPEST}; {DAMAGED}")
    leaves = 1 << len(splits)
    values = array(tree, "leaf_values", where, "iuf")
    if len(values) != leaves:
        raise DataError(f"{where} has {len(values)} values for {leaves} leaves; {ONE_SCORE}")
    level = np.repeat(np.arange(len(splits)), 1 << np.arange(len(splits)))  # of each split, from the root
    asked = [_split(split, where, len(right)) for split in splits][::-1]
    feature, border = (np.array([one[side] for one in asked] or [0])[level] for side in (0, 1))
    nodes, none = np.arange(leaves - 1), np.full(leaves, -1)
    weights = array(tree, "leaf_weights", where, "iuf", leaves) if tree.get("leaf_weights") else np.ones(leaves)
    return PlainTree(
        np.concatenate([feature, none]).astype(np.int64),
        np.concatenate([border, none]).astype(np.float64),
        np.concatenate([2 * nodes + 1, none]),
        np.concatenate([2 * nodes + 2, none]),
        np.concatenate([np.zeros(leaves - 1), values]),
        np.concatenate([~right[feature.astype(np.int64)], none < 0]),
        cover=np.concatenate([np.zeros(leaves - 1), weights]),
    )


def _other(tree: Any, where: str, right: npt.NDArray[np.bool_]) -> PlainTree:
    """A tree of nested nodes, numbered in the order in which they are read."""
    feature, border, left, values, weights = list[int](), list[float](), list[int](), list[float](), list[float]()
    nodes = [tree]
    for node in nodes:  # the list grows
        leaf = isinstance(node, dict) and "value" in node
        if not leaf and (not isinstance(node, dict) or not {"left", "right", "split"} <= set(node)):
            raise DataError(f"{where}: node {len(left)} has neither a value nor a split and two sides; {DAMAGED}")
        if leaf and isinstance(node["value"], list):
            raise DataError(f"{where}: node {len(left)} has several values; {ONE_SCORE}")
        own = (0, 0.0) if leaf else _split(node["split"], f"{where}: node {len(left)}", len(right))
        feature.append(own[0])
        border.append(own[1])
        values.append(finite(node["value"], f"{where}: the value of node {len(left)}") if leaf else 0.0)
        weights.append(finite(node.get("weight", 1), f"{where}: the weight of node {len(left)}") if leaf else 0.0)
        left.append(-1 if leaf else len(nodes))
        nodes += [] if leaf else [node["left"], node["right"]]
    at = np.array(left)
    aside = ~right[np.array(feature)] if len(right) else np.ones(len(at), bool)
    return PlainTree(
        np.array(feature), np.array(border), at, np.where(at < 0, -1, at + 1), np.array(values), aside, cover=np.array(weights)
    )


READER = Reader(recognizes, lambda content: of_record(content.record))
