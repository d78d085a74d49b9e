"""The LTR plugin of Elasticsearch: the body that ``_ltr/_featureset/<set>/_createmodel`` takes.

A model is linear (weights of features), XGBoost's JSON (x goes left where x < threshold, and an absent value where ``missing`` says) or
RankLib's text. Everything is float32, added up from the first to the last. Older versions of the plugin treat absent values as 0, newer
ones send them to ``missing``; where the model treats them as 0, ``missing`` is the side of 0, so that all versions agree.
"""

import json
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from exactrank._support.arrays import PerDocument
from exactrank._support.json_values import JSONValue
from exactrank._support.settings import setting
from exactrank.data.alignment import name_list
from exactrank.errors import IncompatibleError
from exactrank.models.targets.nested import Split, depths, nest, read_tree
from exactrank.models.targets.plain import Plain, Tree
from exactrank.models.targets.ranklib import ranklib_scores, ranklib_text
from exactrank.models.targets.single import as_singles, next_above, rounded_down, short_doubles, singles, tree_sum, weighted_sum
from exactrank.models.targets.target import Rows, Target

_TYPES = {"linear": "model/linear", "xgboost": "model/xgboost+json", "ranklib": "model/ranklib"}
Node = dict[str, Any]  #: a node of a tree in XGBoost's JSON


class ElasticsearchLTR(Target):
    """The body of ``_createmodel``."""

    name, suffix, kinds = "elasticsearch-ltr", ".json", ("linear", "trees")
    missing = ("zero", "keep")
    precision: ClassVar[type[np.floating]] = np.float32
    #: The first version in which absent values go where the model sends them.
    since: ClassVar[str] = "version 1.5.9 of the plugin"

    format: Literal["auto", "linear", "xgboost", "ranklib"] = setting(
        default="auto", help="How the model is written; auto is linear for weights and xgboost for trees."
    )
    featureset: str = setting(default="exactrank", help="The feature set that the model belongs to.")

    def check(self, terms: Plain) -> None:
        super().check(terms)
        form, trees = self.form(terms), bool(terms.trees)
        if trees is (form == "linear"):
            has, fits = ("trees", "xgboost") if trees else ("weights of features", "linear")
            raise IncompatibleError(f"format={form!r} cannot express {has}; give format={fits!r}, or leave it out")
        if form == "ranklib" and terms.missing == "keep":
            features = name_list(terms.missing_unlike_zero())
            raise IncompatibleError(
                f"format='ranklib' treats missing values as 0, but the model does not treat those of {features}"
                " so; give format='xgboost', or train with missing='zero'"
            )

    def form(self, terms: Plain) -> str:
        """Return the format, with auto resolved."""
        return self.format if self.format != "auto" else "xgboost" if terms.trees else "linear"

    def write(self, terms: Plain) -> tuple[str, Sequence[str]]:
        form = self.form(terms)
        remarks = [
            f"send it by POST to _ltr/_featureset/{self.featureset}/_createmodel; the feature set must have the model's feature names"
        ]
        if terms.linear is not None:
            definition = _json(dict(zip(terms.features, short_doubles(singles(terms.linear, "a weight")), strict=True)))
            if terms.constant:
                remarks.append(f"the format has no constant term, so every score is lower by {terms.constant:g}; the order is the same")
        elif form == "xgboost":
            trees = terms.without_constant().trees
            definition = _json(self.definition_of([_xgboost(tree, terms.features) for tree in trees]))
        else:
            definition = ranklib_text(terms)
            remarks.append("features are numbered as in the model, so the feature set must list them in the same order")
        if terms.missing == "keep":
            names = name_list(terms.missing_unlike_zero())
            remarks.append(
                f"from {self.since} on, absent features go where the model sends missing values; earlier versions differ for {names}"
            )
        return _json({"model": {"name": self.model_name, "model": {"type": _TYPES[form], "definition": definition}}}), remarks

    def definition_of(self, trees: list[Node]) -> JSONValue:
        """Return the definition of a model of XGBoost's ``trees``."""
        return trees

    def trees_in(self, definition: Any) -> tuple[list[Node], float]:
        """Return the trees of such a definition, and the value of an absent feature."""
        return definition, np.nan

    def scores(self, content: bytes, rows: Rows, features: Sequence[str]) -> PerDocument:
        model = json.loads(content)["model"]["model"]
        if model["type"] == _TYPES["ranklib"]:
            return ranklib_scores(model["definition"], rows)
        definition = json.loads(model["definition"])
        if model["type"] == _TYPES["linear"]:
            weights = [definition[feature] for feature in features]
            return weighted_sum(weights, as_singles(rows, absent=0.0)).astype(np.float64)
        trees, absent = self.trees_in(definition)
        number = {feature: j for j, feature in enumerate(features)}

        def read_node(node: Node) -> Split | float:
            if "leaf" in node:
                return float(node["leaf"])
            yes, no = node["children"]
            return Split(number[node["split"]], node["split_condition"], yes, no, node["missing"] == node["yes"])

        return tree_sum((read_tree(tree, read_node) for tree in trees), as_singles(rows, absent), np.less).astype(np.float64)


def _xgboost(tree: Tree, features: Sequence[str]) -> Node:
    place, depth = {node: number for number, node in enumerate(tree.preorder())}, depths(tree).tolist()
    bounds, leaves = short_doubles(next_above(rounded_down(tree.threshold))), short_doubles(singles(tree.leaf, "a leaf"))

    def leaf(number: int) -> Node:
        return {"nodeid": place[~number], "leaf": leaves[number]}

    def split(node: int, yes: Node, no: Node) -> Node:
        test = {"nodeid": place[node], "depth": depth[node], "split": features[tree.feature[node]], "split_condition": bounds[node]}
        missing = yes if tree.missing_left[node] else no
        return test | {"yes": yes["nodeid"], "no": no["nodeid"], "missing": missing["nodeid"], "children": [yes, no]}

    return nest(tree, leaf, split)


def _json(value: JSONValue) -> str:
    return json.dumps(value, separators=(",", ":"))
