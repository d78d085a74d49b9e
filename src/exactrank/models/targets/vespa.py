"""Vespa: trees as the JSON that ``lightgbm("x.json")`` imports, everything else as a rank profile of expressions.

Vespa computes in doubles. Its importer turns each tree into an expression in which, for a threshold t',

    x goes left  <=>  x < t'    or, where missing values go left,    !(x >= t')                                     (1)

so a split x <= t is written with the next double above t. An export is one file: a sum of trees and other terms is a
rank profile with the trees as the importer would write them, so that there is no second file to keep in sync.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from exactrank._support.arrays import PerDocument
from exactrank._support.json_values import JSONObject
from exactrank.errors import SettingError
from exactrank.models.targets.expression import evaluate_text, smooth_parts, sum_text
from exactrank.models.targets.nested import nest
from exactrank.models.targets.plain import Plain, Tree
from exactrank.models.targets.target import Rows, Target

#: Reserved words of rank expressions.
_WORDS = (
    "if in f true false map reduce join avg count prod sum max min median acos asin atan atan2 ceil cos cosh elu erf exp fabs floor fmod "
    "isNan ldexp log log10 pow relu round sigmoid sin sinh sqrt square tan tanh rename concat tensor range diag random argmax argmin"
)
_NAME = re.compile(rf"(?!(?:{_WORDS.replace(' ', '|')})$)[A-Za-z_]\w*(\([\w ,.:@$-]*\))?(\.\w+)*", re.ASCII)
_FUNCTION = re.compile(r"function (\w+)\(\) \{\s*expression \{(.*?)\}\s*\}", re.DOTALL)


class Vespa(Target):
    """Rank profiles, and the JSON of LightGBM models."""

    name, suffix = "vespa", ".json"
    kinds, adds, missing = ("linear", "network", "trees"), True, ("zero", "keep")
    names: ClassVar = _NAME
    names_remedy = "name it as Vespa does, e.g. bm25(title) or attribute(age), or as a function of the rank profile, e.g. title_bm25"

    def check(self, terms: Plain) -> None:
        super().check(terms)
        name = self.model_name
        if not re.fullmatch(r"\w+", name, re.ASCII) or not _NAME.fullmatch(name) or name == "default":
            raise SettingError(f"vespa: model_name={name!r} cannot name a rank profile; use letters, digits and _, e.g. 'my_model'")
        clashes = {name, *(f"{name}_{kind}" for kind in self.kinds)} & set(terms.features)
        if clashes:
            raise SettingError(
                f"vespa: model_name={name!r} needs a function {min(clashes)!r}, but a feature has that name; give another one"
            )

    def write(self, terms: Plain) -> tuple[str, Sequence[str]]:
        trees_alone = terms.kinds == ("trees",)
        content = _model(terms.without_constant()) if trees_alone else _profile(self.model_name, terms)
        remarks = [
            f'save it as models/{self.model_name}.json in the application, and score with lightgbm("{self.model_name}.json")'
            if trees_alone
            else f"save it as schemas/SCHEMA/{self.model_name}.profile in the application, where SCHEMA is the name of your schema"
        ]
        functions = [feature for feature in terms.features if re.fullmatch(r"\w+", feature)]
        if functions:
            remarks.append(
                f"the rank profile needs a function for each of {', '.join(functions[:5])}{' ...' if functions[5:] else ''}: "
                f"function {functions[0]}() {{ expression: ... }}"
            )
        return content, remarks

    def scores(self, content: bytes, rows: Rows, features: Sequence[str]) -> PerDocument:
        text = content.decode()
        columns = dict(zip(features, rows.T, strict=True))
        if text.startswith("{"):
            return evaluate_text(import_expression(json.loads(text)), columns)
        *parts, (_, total) = _FUNCTION.findall(text)
        return evaluate_text(total, {name: evaluate_text(part, columns) for name, part in parts} or columns)


def import_expression(model: Mapping[str, Any]) -> str:
    """Return the expression that Vespa's importer makes of a LightGBM model in JSON."""
    names = model["feature_names"]

    def expression(node: Mapping[str, Any]) -> str:
        if "leaf_value" in node:
            return repr(float(node["leaf_value"]))
        sides = expression(node["left_child"]), expression(node["right_child"])
        return _if(names[node["split_feature"]], float(node["threshold"]), node["default_left"], *sides)

    return " + ".join(expression(tree["tree_structure"]) for tree in model["tree_info"])


def _if(feature: str, threshold: float, missing_left: bool, left: str, right: str) -> str:
    return f"if ({f'!({feature} >= {threshold!r})' if missing_left else f'{feature} < {threshold!r}'}, {left}, {right})"


def _above(tree: Tree) -> list[float]:
    return [float(number) for number in np.nextafter(tree.threshold, np.inf)]


def _model(terms: Plain) -> str:
    def structure(tree: Tree) -> JSONObject:
        thresholds, leaves = _above(tree), tree.leaf.tolist()

        def split(node: int, left: JSONObject, right: JSONObject) -> JSONObject:
            test: JSONObject = {"split_feature": int(tree.feature[node]), "threshold": thresholds[node], "decision_type": "<="}
            return {**test, "default_left": bool(tree.missing_left[node]), "left_child": left, "right_child": right}

        return nest(tree, lambda leaf: {"leaf_value": leaves[leaf]}, split)

    trees = [{"tree_structure": structure(tree)} for tree in terms.trees]
    model = {"objective": "lambdarank", "feature_names": list(terms.features), "pandas_categorical": [], "tree_info": trees}
    return json.dumps(model) + "\n"


def _profile(name: str, terms: Plain) -> str:
    """Return a rank profile with a function for each kind of terms, and one that adds them up."""
    scorer = terms.model.scorer
    may_miss = any(part.missing in ("zero", "mean") for part in (scorer, *getattr(scorer, "parts", ())))
    parts = smooth_parts(terms, [f"if (isNan({name}), 0.0, {name})" if may_miss else name for name in terms.features])
    if terms.trees:
        parts["trees"] = [_tree(tree, terms.features) for tree in terms.trees]
    functions = {f"{name}_{kind}": " +\n            ".join(texts or ["0.0"]) for kind, texts in parts.items()}
    functions[name] = sum_text(list(functions))
    texts = (
        f"    function {function}() {{\n        expression {{\n            {text}\n        }}\n    }}\n"
        for function, text in functions.items()
    )
    first = f"    first-phase {{\n        expression: {name}\n    }}\n"
    return f"rank-profile {name} inherits default {{\n{''.join(texts)}{first}}}\n"


def _tree(tree: Tree, features: Sequence[str]) -> str:
    thresholds, names, leaves = _above(tree), [features[j] for j in tree.feature], tree.leaf.tolist()

    def split(node: int, left: str, right: str) -> str:
        return _if(names[node], thresholds[node], bool(tree.missing_left[node]), left, right)

    return nest(tree, lambda leaf: repr(leaves[leaf]), split)
