"""Solr's learning to rank: the model that ``PUT .../schema/model-store`` takes.

Weights are a LinearModel, hidden units a NeuralNetworkModel, trees a MultipleAdditiveTreesModel. Everything is float32, added up from the
first to the last. Solr adds a slack to each threshold that it reads: x goes left where

    x <= v (+) s,    s = 1e-6 and (+) the sum in float32,                                                           (1)

so a threshold d is written as a v with v (+) s = d. There is one for every d above 1e-5. Nearer to 0, and for some d below 0,
float32 is finer than such sums. Then v is the number whose sum is the next above d, which keeps a feature equal to d on its side; but v
stays on the same side of 0, since 0 is the most frequent value of most features.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from exactrank._support.arrays import Floats, PerDocument
from exactrank._support.json_values import JSONObject
from exactrank._support.numerics import tanh
from exactrank._support.settings import setting
from exactrank.data.alignment import name_list
from exactrank.models.targets.nested import Split, depths, nest, read_tree
from exactrank.models.targets.plain import ZERO, Plain, Tree
from exactrank.models.targets.single import Singles, as_singles, decimals, rounded_down, short_doubles, singles, tree_sum, weighted_sum
from exactrank.models.targets.target import Rows, Target

SLACK = np.float32(1e-6)
_CLASS = "org.apache.solr.ltr.model."


class Solr(Target):
    """A model of Solr's model store."""

    name, suffix, kinds = "solr", ".json", ("linear", "network", "trees")
    missing = ("zero", "keep")
    precision: ClassVar[type[np.floating]] = np.float32

    store: str | None = setting(default=None, help="The feature store that holds the features; None is Solr's default store.")

    def write(self, terms: Plain) -> tuple[str, Sequence[str]]:
        remarks: list[str] = []
        if terms.trees:
            kind, params = "MultipleAdditiveTreesModel", _trees(terms)
            remarks += _threshold_remarks(np.concatenate([tree.threshold for tree in terms.trees]))
            if terms.missing == "keep":
                remarks.append(
                    f"missing values of {name_list(terms.missing_unlike_zero())} need Solr 9.2, and features that yield null, such as a"
                    " FieldValueFeature with defaultValue NaN"
                )
        elif terms.units is None and not terms.constant:
            kind, params = "LinearModel", {"weights": dict(zip(terms.features, _numbers(terms.linear), strict=True))}
        else:
            kind, params = "NeuralNetworkModel", {"layers": _layers(terms)}
        store = {} if self.store is None else {"store": self.store}
        features = [{"name": feature} for feature in terms.features]
        model = store | {"class": _CLASS + kind, "name": self.model_name, "features": features, "params": params}
        return json.dumps(model, separators=(",", ":")), remarks

    def scores(self, content: bytes, rows: Rows, features: Sequence[str]) -> PerDocument:
        model = json.loads(content)
        params, number = model["params"], {feature["name"]: j for j, feature in enumerate(model["features"])}
        columns = rows[:, [features.index(feature) for feature in number]]
        if model["class"] == _CLASS + "MultipleAdditiveTreesModel":
            absent = 0.0 if params.get("isNullSameAsZero", True) else np.nan
            trees = (read_tree(tree["root"], lambda node: _read_node(node, number)) for tree in params["trees"])
            return tree_sum(trees, as_singles(columns, absent), np.less_equal).astype(np.float64)
        values = as_singles(columns, absent=0.0)
        if model["class"] == _CLASS + "LinearModel":
            return weighted_sum([params["weights"][feature] for feature in number], values).astype(np.float64)
        for layer in params["layers"]:
            units = zip(layer["matrix"], layer["bias"], strict=True)
            values = np.stack([weighted_sum(weights, values, bias) for weights, bias in units], axis=1)
            if layer["activation"] == "tanh":
                values = tanh(values).astype(np.float32)
        return values[:, 0].astype(np.float64)


def without_slack(thresholds: Singles) -> Singles:
    """Return v of (1) for each threshold; 1e-35, which LightGBM writes for 0, is 0."""
    thresholds = np.where((thresholds > 0) & (thresholds <= ZERO), np.float32(0), thresholds)
    near = (thresholds.astype(np.float64) - SLACK).astype(np.float32)
    with np.errstate(over="ignore"):
        candidates = np.stack([near, *(np.nextafter(near, np.float32(end)) for end in (-np.inf, np.inf))])
    sums = candidates + SLACK
    off = np.abs(sums.astype(np.float64) - thresholds)
    order = np.lexsort((off, sums < thresholds, (sums >= 0) != (thresholds >= 0)), axis=0)
    best: Singles = np.take_along_axis(candidates, order[:1], axis=0)[0]
    return best


def _threshold_remarks(thresholds: Floats) -> list[str]:
    """Return a remark about the thresholds that have no v, if there are any."""
    exact = rounded_down(thresholds)
    off = np.abs((without_slack(exact) + SLACK).astype(np.float64) - exact)
    count = np.count_nonzero(off > ZERO)
    if count == 0:
        return []
    counted = f"{count:,} of {len(off):,} thresholds are off, by at most {off.max():.1g}"
    return [f"{counted}: Solr adds {SLACK:g} to each, and no number gives exactly these; a value in between goes to the other side"]


def _trees(terms: Plain) -> JSONObject:
    """Return the parameters of a MultipleAdditiveTreesModel, whose numbers must be text."""
    keep = terms.missing == "keep"
    trees: list[JSONObject] = [{"weight": "1", "root": _root(tree, terms.features, keep)} for tree in terms.without_constant().trees]
    return {"trees": trees, **({"isNullSameAsZero": False} if keep else {})}


def _root(tree: Tree, features: Sequence[str], keep: bool) -> JSONObject:
    depths(tree)
    thresholds, leaves = decimals(without_slack(rounded_down(tree.threshold))), decimals(singles(tree.leaf, "a leaf"))

    def split(node: int, left: JSONObject, right: JSONObject) -> JSONObject:
        test: JSONObject = {"feature": features[tree.feature[node]], "threshold": thresholds[node], "left": left, "right": right}
        return {**test, "missing": "left" if tree.missing_left[node] else "right"} if keep else test

    return nest(tree, lambda leaf: {"value": leaves[leaf]}, split)


def _read_node(node: Mapping[str, Any], number: Mapping[str, int]) -> Split | float:
    if "value" in node:
        return float(node["value"])
    threshold = float(np.float32(node["threshold"]) + SLACK)
    return Split(number[node["feature"]], threshold, node["left"], node["right"], node.get("missing") == "left")


def _layers(terms: Plain) -> list[JSONObject]:
    """Return the layer of hidden units, if there are any, and the layer that adds them or the features up."""
    layers: list[JSONObject] = []
    if terms.units is not None:
        matrix = [_numbers(weights) for weights in terms.units.weights]
        layers.append({"matrix": matrix, "bias": _numbers(terms.units.bias), "activation": "tanh"})
    last = terms.linear if terms.units is None else terms.units.output
    return [*layers, {"matrix": [_numbers(last)], "bias": _numbers(np.array([terms.constant])), "activation": "identity"}]


def _numbers(values: Floats | None) -> list[float]:
    return short_doubles(singles(() if values is None else values, "a weight"))
