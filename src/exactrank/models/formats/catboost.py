"""CatBoost's models as ``save_model(..., format="json")`` writes them: symmetric and other trees, on numeric features.

At a border b a row goes right where x > b, in single precision; a missing value goes left, or right where the feature's
``nan_value_treatment`` is ``AsTrue``. Scores are scale times the sum of the leaves, plus a bias, in double precision.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from exactrank._support.json_values import JSONObject
from exactrank.errors import DataError
from exactrank.models.formats.content import DAMAGED, Content, Reader, array, finite, part
from exactrank.models.model import Model
from exactrank.models.plain_tree import PlainTree, table_of
from exactrank.models.tree_ensemble import TreeEnsemble

Bools = npt.NDArray[np.bool_]
DEEPEST = 16  #: maximum number of levels of a symmetric tree, as in CatBoost
ONE_SCORE = "a ranking needs one score per row, so train with a loss of one dimension"
OTHERS = ("categorical_features", "text_features", "embedding_features", "ctrs")


def recognizes(content: Content) -> bool:
    """Return whether there are features, and trees of one of the two kinds."""
    record = content.record
    return isinstance(record.get("features_info"), dict) and any(
        isinstance(record.get(kind), list) for kind in ("oblivious_trees", "trees")
    )


def of_record(record: JSONObject) -> Model:
    """Return the model that ``record`` describes."""
    other_kind = next((kind for kind in OTHERS if part(record, "features_info", dict).get(kind) or record.get(kind)), None)
    if other_kind is not None:
        raise DataError(f"the model has {other_kind}; encode them as numbers, one column each, and train on these (without cat_features)")
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
        (_symmetric_tree if symmetric else _nested_tree)(tree, f"tree {number}", right)
        for number, tree in enumerate(part(record, "oblivious_trees" if symmetric else "trees", list))
    ]
    with np.errstate(over="ignore"):
        trees = [replace(tree, value=scale * tree.value + (bias if number == 0 else 0.0)) for number, tree in enumerate(trees)]
    return Model(TreeEnsemble(table_of(trees, len(features)), names if all(names) else ()), ranker="CatBoost")


def _scale_and_bias(record: JSONObject) -> tuple[float, float]:
    entries = record.get("scale_and_bias", [1, [0]])
    if not isinstance(entries, list) or len(entries) != 2:
        raise DataError(f"scale_and_bias is not a scale and a list; {DAMAGED}")
    scale, bias = entries[0], entries[1] if isinstance(entries[1], list) else [entries[1]]
    if len(bias) > 1:
        raise DataError(f"scale_and_bias has {len(bias)} biases; {ONE_SCORE}")
    return finite(scale, "the scale"), finite(bias[0], "the bias") if bias else 0.0


def _split(split: object, where: str, features: int) -> tuple[int, float]:
    """Return the feature of a split, and its border."""
    if not isinstance(split, dict) or split.get("split_type") != "FloatFeature":
        kind = split.get("split_type") if isinstance(split, dict) else None
        raise DataError(
            f"{where} splits by {str(kind)[:40]!r}; encode categories as numbers, one column each, and train without cat_features"
        )
    feature = split.get("float_feature_index")
    if isinstance(feature, bool) or not isinstance(feature, int) or not 0 <= feature < features:
        raise DataError(f"{where} splits at feature {str(feature)[:40]}, of {features}; {DAMAGED}")
    with np.errstate(over="ignore"):
        return feature, float(np.float32(finite(split.get("border"), f"{where}: a border")))


def _symmetric_tree(tree: object, where: str, right: Bools) -> PlainTree:
    """Return a tree with the same split at all nodes of a level: node n has the children 2n + 1 and 2n + 2; the last level comes first."""
    entries = tree if isinstance(tree, dict) else {}
    splits = part(entries, "splits", list) if entries.get("splits") else []
    if len(splits) > DEEPEST:
        raise DataError(f"{where} has {len(splits)} levels, but CatBoost's trees have at most {DEEPEST}; {DAMAGED}")
    leaves = 1 << len(splits)
    values = array(entries, "leaf_values", where, "iuf")
    if len(values) != leaves:
        raise DataError(f"{where} has {len(values)} values for {leaves} leaves; {ONE_SCORE}")
    level = np.repeat(np.arange(len(splits)), 1 << np.arange(len(splits)))  # of each split, from the root
    pairs = [_split(split, where, len(right)) for split in splits][::-1]
    feature, border = (np.array(column)[level] for column in (zip(*pairs, strict=True) if pairs else ([0], [0.0])))
    nodes, none = np.arange(leaves - 1), np.full(leaves, -1)
    weights = array(entries, "leaf_weights", where, "iuf", leaves) if entries.get("leaf_weights") else np.ones(leaves)
    return PlainTree(
        np.concatenate([feature, none]).astype(np.int64),
        np.concatenate([border, none]).astype(np.float64),
        np.concatenate([2 * nodes + 1, none]),
        np.concatenate([2 * nodes + 2, none]),
        np.concatenate([np.zeros(leaves - 1), values]),
        np.concatenate([~right[feature.astype(np.int64)], none < 0]),
        cover=np.concatenate([np.zeros(leaves - 1), weights]),
    )


def _nested_tree(tree: object, where: str, right: Bools) -> PlainTree:
    """Return a tree of nested nodes, numbered in the order in which they are read."""
    feature, border, left, values, weights = list[int](), list[float](), list[int](), list[float](), list[float]()
    nodes: list[Any] = [tree]
    for node in nodes:  # the list grows
        leaf = isinstance(node, dict) and "value" in node
        if not leaf and (not isinstance(node, dict) or not {"left", "right", "split"} <= set(node)):
            raise DataError(f"{where}: node {len(left)} has neither a value nor a split and two sides; {DAMAGED}")
        if leaf and isinstance(node["value"], list):
            raise DataError(f"{where}: node {len(left)} has several values; {ONE_SCORE}")
        split = (0, 0.0) if leaf else _split(node["split"], f"{where}: node {len(left)}", len(right))
        feature.append(split[0])
        border.append(split[1])
        values.append(finite(node["value"], f"{where}: the value of node {len(left)}") if leaf else 0.0)
        weights.append(finite(node.get("weight", 1), f"{where}: the weight of node {len(left)}") if leaf else 0.0)
        left.append(-1 if leaf else len(nodes))
        nodes += [] if leaf else [node["left"], node["right"]]
    child = np.array(left)
    missing_left = ~right[np.array(feature)] if len(right) else np.ones(len(child), bool)
    right_child = np.where(child < 0, -1, child + 1)
    cover = np.array(weights)
    return PlainTree(np.array(feature), np.array(border), child, right_child, np.array(values), missing_left, cover=cover)


READER = Reader(recognizes, lambda content: of_record(content.record))
