"""Vespa: trees as the JSON that ``lightgbm("x.json")`` imports, everything else as a rank profile of expressions.

Vespa computes in doubles. Its importer turns each tree into an expression in which, for a threshold t',

    x goes left  <=>  x < t'    or, where missing values go left,    !(x >= t')                                     (1)

so a split x <= t is written with the next double above t. An export is one file: a sum of trees and other terms is a
rank profile with the trees as the importer would write them, so that there is no second file to keep in sync.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from exactrank._support.arrays import PerDocument
from exactrank.errors import SettingError
from exactrank.models.targets.expression import added, evaluated, smooth_parts
from exactrank.models.targets.nested import nested
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
        taken = {name, *(f"{name}_{kind}" for kind in self.kinds)} & set(terms.features)
        if taken:
            raise SettingError(f"vespa: model_name={name!r} needs a function {min(taken)!r}, but a feature has that name; give another one")

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
            return evaluated(imported(json.loads(text)), columns)
        *parts, (_, whole) = _FUNCTION.findall(text)
        return evaluated(whole, {name: evaluated(part, columns) for name, part in parts} or columns)


def imported(model: dict[str, Any]) -> str:
    """The expression that Vespa's importer makes of a LightGBM model in JSON."""
    names = model["feature_names"]

    def expression(node: dict[str, Any]) -> str:
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
    def structure(tree: Tree) -> dict[str, Any]:
        thresholds, leaves = _above(tree), tree.leaf.tolist()

        def split(node: int, left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
            own = {"split_feature": int(tree.feature[node]), "threshold": thresholds[node], "decision_type": "<="}
            return own | {"default_left": bool(tree.missing_left[node]), "left_child": left, "right_child": right}

        return nested(tree, lambda leaf: {"leaf_value": leaves[leaf]}, split)

    trees = [{"tree_structure": structure(tree)} for tree in terms.trees]
    model = {"objective": "lambdarank", "feature_names": list(terms.features), "pandas_categorical": [], "tree_info": trees}
    return json.dumps(model) + "\n"


def _profile(name: str, terms: Plain) -> str:
    """A function for each kind of terms, and one that adds them up."""
    scorer = terms.model.scorer
    holes = any(one.missing in ("zero", "mean") for one in (scorer, *getattr(scorer, "parts", ())))
    parts = smooth_parts(terms, [f"if (isNan({one}), 0.0, {one})" if holes else one for one in terms.features])
    if terms.trees:
        parts["trees"] = [_tree(tree, terms.features) for tree in terms.trees]
    functions = {f"{name}_{kind}": " +\n            ".join(own or ["0.0"]) for kind, own in parts.items()}
    functions[name] = added(list(functions))
    written = (
        f"    function {one}() {{\n        expression {{\n            {text}\n        }}\n    }}\n" for one, text in functions.items()
    )
    first = f"    first-phase {{\n        expression: {name}\n    }}\n"
    return f"rank-profile {name} inherits default {{\n{''.join(written)}{first}}}\n"


def _tree(tree: Tree, features: Sequence[str]) -> str:
    thresholds, names, leaves = _above(tree), [features[j] for j in tree.feature], tree.leaf.tolist()

    def split(node: int, left: str, right: str) -> str:
        return _if(names[node], thresholds[node], bool(tree.missing_left[node]), left, right)

    return nested(tree, lambda leaf: repr(leaves[leaf]), split)
