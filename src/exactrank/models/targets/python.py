"""Python: one function from the features of a document, by name, to its score. It imports only ``math``."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from exactrank import __version__
from exactrank._support.arrays import PerDocument
from exactrank.models.targets.generated_code import check_function_name, tables
from exactrank.models.targets.plain import Plain
from exactrank.models.targets.target import Rows, Target

_HEAD = '''"""A model of exactrank {version} as a function; it needs only Python."""

from math import nan as _nan, tanh as _tanh

{tables}

def {name}(features):
    """Return the score of a document: `features` maps feature names to numbers; absent ones, None and NaN are missing."""
    values = [features.get(name) for name in _FEATURES]
    x = [_nan if value is None else float(value) for value in values]
    score = {constant!r}
'''
_FILLED = "    filled = [fill if value != value else value for value, fill in zip(x, _FILL)]\n"
_LINEAR = "    for weight, value in zip(_WEIGHTS, filled):\n        score += weight * value\n"
_NETWORK = """\
    for output, bias, weights in _UNITS:
        for weight, value in zip(weights, filled):
            bias += weight * value
        score += output * _tanh(bias)
"""
_TREES = """\
    for node in _ROOTS:
        while node >= 0:
            feature, threshold, missing_left, left, right = _NODES[node]
            value = x[feature]
            node = left if value <= threshold or (missing_left and value != value) else right
        score += _LEAVES[~node]
"""


class Python(Target):
    """A module with one function, named after the model."""

    name, suffix = "python", ".py"
    kinds, adds, missing = ("linear", "network", "trees"), True, ("zero", "mean", "keep")

    def check(self, terms: Plain) -> None:
        super().check(terms)
        check_function_name(self.name, self.model_name)

    def write(self, terms: Plain) -> tuple[str, Sequence[str]]:
        constants: dict[str, Sequence[object]] = {"_FEATURES": terms.features}
        body = ""
        if terms.linear is not None or terms.units is not None:
            constants["_FILL"] = terms.fill.tolist()
            body += _FILLED
        if terms.linear is not None:
            constants["_WEIGHTS"] = terms.linear.tolist()
            body += _LINEAR
        if terms.units is not None:
            units = terms.units
            constants["_UNITS"] = list(zip(units.output.tolist(), units.bias.tolist(), map(tuple, units.weights.tolist()), strict=True))
            body += _NETWORK
        if terms.trees:
            constants |= zip(("_ROOTS", "_NODES", "_LEAVES"), tables(terms.trees), strict=True)
            body += _TREES
        tables_text = "".join(_constant(name, values) for name, values in constants.items())
        head = _HEAD.format(version=__version__, tables=tables_text, name=self.model_name, constant=terms.constant)
        return head + body + "    return score\n", []

    def scores(self, content: bytes, rows: Rows, features: Sequence[str]) -> PerDocument:
        namespace: dict[str, Any] = {}
        exec(compile(content, f"<{self.name}>", "exec"), namespace)  # what `write` has just written
        function = namespace[self.model_name]
        return np.array([function(dict(zip(features, row, strict=True))) for row in rows.tolist()], np.float64)


def _constant(name: str, values: Sequence[object]) -> str:
    lines = "".join(f"    {value!a},\n" for value in values)
    return f"{name} = (\n{lines})\n"
