"""How search engines score: Elasticsearch LTR and OpenSearch LTR, Elasticsearch's own trees, Solr, RankLib; one document after the other.

They read what the engine reads, and compute in its arithmetic. A row is a list of doubles, NaN where a feature is absent.
"""

import json
import math
import re

import numpy as np

F = np.float32


def elasticsearch_ltr(body, row, features, newest=True):
    """XGBoost's JSON, weights or RankLib's text; before ``newest`` versions an absent feature was 0."""
    model = json.loads(body)["model"]["model"]
    known = dict(zip(features, map(F, row), strict=True))
    zeros = {name: F(0) if np.isnan(x) else x for name, x in known.items()}
    if model["type"] == "model/ranklib":
        return ranklib(model["definition"], row)
    definition = json.loads(model["definition"])
    total = F(0)
    if model["type"] == "model/linear":
        for name, x in zeros.items():
            total = total + F(definition.get(name, 0)) * x
        return float(total)
    assert model["type"] == "model/xgboost+json"
    splits = definition["splits"] if isinstance(definition, dict) else definition
    if not newest or (isinstance(definition, dict) and definition.get("missing_as_zero")):
        known = zeros
    for root in splits:
        node = root
        while "leaf" not in node:
            assert set(node) == {"nodeid", "depth", "split", "split_condition", "yes", "no", "missing", "children"}
            x = known[node["split"]]
            to = node["missing"] if np.isnan(x) else node["yes"] if F(node["split_condition"]) > x else node["no"]
            (node,) = (child for child in node["children"] if child["nodeid"] == to)
        total = total + F(node["leaf"])
    return float(total)


def ranklib(text, row):
    """Features count from 1, absent ones are 0."""
    total = F(0)
    for tree in re.findall(r"<tree .*?</tree>", text, re.DOTALL):
        words = iter(re.findall(r"<(feature|threshold|output)> (\S+) <", tree))
        total = F(float(total) + float(_ranklib_split(words, row)))
    return float(total)


def _ranklib_split(words, row):
    """Both branches are read, and one is the answer."""
    kind, value = next(words)
    if kind == "output":
        return F(value)
    threshold = F(next(words)[1])
    left, right = _ranklib_split(words, row), _ranklib_split(words, row)
    x = row[int(value) - 1]
    return left if F(0 if np.isnan(x) else x) <= threshold else right


def elasticsearch(body, row, features):
    """Doubles; the sum of all leaves is as good as exact, and then a float."""
    ensemble = json.loads(body)["definition"]["trained_model"]["ensemble"]
    leaves = []
    for model in ensemble["trained_models"]:
        nodes = {node["node_index"]: node for node in model["tree"]["tree_structure"]}
        node = nodes[0]
        while "leaf_value" not in node:
            assert node["decision_type"] == "lte"
            x = row[features.index(model["tree"]["feature_names"][node["split_feature"]])]
            left = node["default_left"] if np.isnan(x) else x <= node["threshold"]
            node = nodes[node["left_child" if left else "right_child"]]
        leaves.append(node["leaf_value"])
    return float(F(math.fsum(leaves)))


def solr(body, row, features):
    """Trees, weights or layers."""
    model = json.loads(body)
    kind, params = model["class"].removeprefix("org.apache.solr.ltr.model."), model["params"]
    given = dict(zip(features, row, strict=True))
    values = [F(given[feature["name"]]) for feature in model["features"]]
    zeros = [F(0) if np.isnan(x) else x for x in values]
    if kind == "LinearModel":
        total = F(0)
        for feature, x in zip(model["features"], zeros, strict=True):
            total = total + F(params["weights"][feature["name"]]) * x
        return float(total)
    if kind == "NeuralNetworkModel":
        for layer in params["layers"]:
            zeros = [
                _solr_unit(weights, bias, layer["activation"], zeros) for weights, bias in zip(layer["matrix"], layer["bias"], strict=True)
            ]
        return float(zeros[0])
    assert kind == "MultipleAdditiveTreesModel"
    known = dict(
        zip([feature["name"] for feature in model["features"]], zeros if params.get("isNullSameAsZero", True) else values, strict=True)
    )
    total = F(0)
    for tree in params["trees"]:
        node = tree["root"]
        while "feature" in node:
            assert isinstance(node["threshold"], str)
            x = known[node["feature"]]
            left = node["missing"] == "left" if np.isnan(x) else x <= F(node["threshold"]) + F(1e-6)
            node = node["left" if left else "right"]
        assert isinstance(node["value"], str)
        total = total + F(tree["weight"]) * F(node["value"])
    return float(total)


def _solr_unit(weights, bias, activation, values):
    assert all(isinstance(number, float) for number in [*weights, bias])  # Solr cannot read whole numbers here
    total = F(bias)
    for weight, x in zip(weights, values, strict=True):
        total = total + F(weight) * x
    return F(np.tanh(float(total))) if activation == "tanh" else total
