"""Elasticsearch's own learning to rank: the body that ``PUT _ml/trained_models/<id>`` takes, for ``learning_to_rank`` rescorers.

Trees are evaluated in double precision: x goes left where x <= threshold, and an absent value where ``default_left`` says. Their leaves
are added up with compensation (Kahan 1965), and the sum is rounded to float32, the type of document scores.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from exactrank._support.arrays import PerDocument
from exactrank._support.json_values import JSONObject, JSONValue
from exactrank.errors import SettingError
from exactrank.models.targets.nested import Split, leaf_values, read_tree
from exactrank.models.targets.plain import Plain, Tree
from exactrank.models.targets.target import Rows, Target

_ID = re.compile(r"[a-z0-9]([a-z0-9_.-]{0,62}[a-z0-9])?")
_LARGEST = np.finfo(np.float64).max


class Elasticsearch(Target):
    """The body of a trained model."""

    name, suffix, kinds = "elasticsearch", ".json", ("trees",)
    missing = ("zero", "keep")
    precision: ClassVar[type[np.floating]] = np.float32

    def check(self, terms: Plain) -> None:
        super().check(terms)
        if not _ID.fullmatch(self.model_name):
            rule = "at most 64 of a-z, 0-9, -, _ and ., with a letter or digit at both ends"
            raise SettingError(f"model_name={self.model_name!r} is not a valid id of an Elasticsearch model; give {rule}")

    def write(self, terms: Plain) -> tuple[str, Sequence[str]]:
        queries = [{"query_extractor": {"feature_name": name, "query": {"match": {name: "{{query}}"}}}} for name in terms.features]
        common = {"target_type": "regression", "feature_names": list(terms.features)}
        trees = [{"tree": common | {"tree_structure": _structure(tree)}} for tree in terms.without_constant().trees]
        ensemble = common | {"trained_models": trees, "aggregate_output": {"weighted_sum": {}}}
        body = {
            "input": {"field_names": list(terms.features)},
            "inference_config": {"learning_to_rank": {"feature_extractors": queries}},
            "definition": {"trained_model": {"ensemble": ensemble}},
        }
        remarks = [
            f"send it by PUT to _ml/trained_models/{self.model_name}",
            "each query in feature_extractors matches a field with the feature's name; replace it with the feature's own query",
        ]
        return json.dumps(body, separators=(",", ":")), remarks

    def scores(self, content: bytes, rows: Rows, features: Sequence[str]) -> PerDocument:
        ensemble = json.loads(content)["definition"]["trained_model"]["ensemble"]
        columns = np.ascontiguousarray(rows.T[[features.index(name) for name in ensemble["feature_names"]]])
        total, lost = np.zeros(len(rows)), np.zeros(len(rows))
        for model in ensemble["trained_models"]:
            part = leaf_values(_read_structure(model["tree"]["tree_structure"]), columns, np.less_equal) - lost
            total, before = total + part, total
            lost = (total - before) - part
        return (total - lost).astype(np.float32).astype(np.float64)


def _structure(tree: Tree) -> list[JSONObject]:
    """Return all nodes and leaves, in preorder."""
    place = {node: number for number, node in enumerate(tree.preorder())}
    thresholds, leaves = np.clip(tree.threshold, -_LARGEST, _LARGEST).tolist(), tree.leaf.tolist()

    def split(node: int) -> dict[str, JSONValue]:
        test = {"decision_type": "lte", "split_feature": int(tree.feature[node]), "threshold": thresholds[node]}
        children = {"left_child": place[int(tree.left[node])], "right_child": place[int(tree.right[node])]}
        return {**test, "default_left": bool(tree.missing_left[node]), **children}

    return [{"node_index": place[node], **(split(node) if node >= 0 else {"leaf_value": leaves[~node]})} for node in place]


def _read_structure(nodes: Sequence[Mapping[str, Any]]) -> Tree:
    """Return the tree that `_structure` wrote."""

    def read_node(number: int) -> Split | float:
        node = nodes[number]
        if "leaf_value" in node:
            return float(node["leaf_value"])
        return Split(node["split_feature"], node["threshold"], node["left_child"], node["right_child"], node["default_left"])

    return read_tree(0, read_node)
