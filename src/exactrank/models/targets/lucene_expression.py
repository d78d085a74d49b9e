"""Lucene expressions, as Elasticsearch and OpenSearch run them with ``"lang": "expression"``.

They compute in doubles, with x <= t as it is. A document without a value gets 0. Lucene compiles an expression into one method, for which
the Java virtual machine allows at most 64 kB of byte code; the size is counted here byte by byte.
"""

import re
from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from exactrank._support.arrays import PerDocument
from exactrank._support.settings import setting
from exactrank.errors import IncompatibleError
from exactrank.models.targets.expression import evaluate_text, smooth_parts, sum_text
from exactrank.models.targets.nested import nest
from exactrank.models.targets.plain import Plain, Terms, Tree
from exactrank.models.targets.target import Rows, Target

MOST = 60_000  #: maximum size of byte code in bytes; the Java virtual machine allows 65,535
TERMS = 1_000  #: maximum number of terms of a sum; Lucene's compiler runs out of stack somewhere between 1,000 and 3,000
INTERPRETED = 8_000  #: size in bytes above which HotSpot leaves a method to the interpreter
_ID = r"[_$a-zA-Z][_$a-zA-Z0-9]*"


class LuceneExpression(Target):
    """The model as one expression."""

    name, suffix = "lucene-expression", ".txt"
    kinds, adds = ("linear", "network", "trees"), True
    names: ClassVar = re.compile(rf"{_ID}(\.{_ID})*", re.ASCII)
    names_remedy = "rename it with letters, digits, _ and $, with dots between words, like field names"

    variables: Literal["names", "doc"] = setting(
        default="names", help="How features are written: by name, or as doc['name'].value, which Elasticsearch needs; _score stays."
    )

    def check(self, terms: Plain) -> None:
        super().check(terms)
        size, count = byte_code(terms), sum(map(len, smooth_parts(terms, terms.features).values())) + len(terms.trees)
        if size > MOST or count > TERMS:
            amount = (
                f"{size:,} bytes of byte code, above {MOST:,} (Java allows 65,535),"
                if size > MOST
                else f"{count:,} terms, above {TERMS:,},"
            )
            raise IncompatibleError(
                f"the model has {amount} as a Lucene expression; train fewer or smaller trees, or export to another target"
            )

    def write(self, terms: Plain) -> tuple[str, Sequence[str]]:
        names = self._variables(terms.features)
        smooth = [part for parts in smooth_parts(terms, names).values() for part in parts]
        trees = [_tree(tree, names) for tree in terms.trees]
        remarks = ["engines round a script's score to single precision, and refuse a score below 0 except in a rescorer or sort"]
        if (size := byte_code(terms)) > INTERPRETED:
            remarks.append(f"it has {size:,} bytes of byte code; HotSpot compiles no method above {INTERPRETED:,}, so it is interpreted")
        return sum_text([*smooth, *trees]) + "\n", remarks

    def scores(self, content: bytes, rows: Rows, features: Sequence[str]) -> PerDocument:
        return evaluate_text(content.decode(), dict(zip(self._variables(features), np.nan_to_num(rows).T, strict=True)))

    def _variables(self, features: Sequence[str]) -> list[str]:
        return [f"doc['{name}'].value" if self.variables == "doc" and name != "_score" else name for name in features]


def _tree(tree: Tree, names: Sequence[str]) -> str:
    tests, leaves = [f"{names[j]} <= {t!r}" for j, t in zip(tree.feature, tree.threshold.tolist(), strict=True)], tree.leaf.tolist()
    return nest(tree, lambda leaf: repr(leaves[leaf]), lambda node, left, right: f"({tests[node]} ? {left} : {right})")


def byte_code(terms: Terms) -> int:
    """Return an upper bound of the size of the compiled expression in bytes, which is a few bytes too large."""
    width = max((int(tree.feature.max(initial=0)) + 1 for tree in terms.trees), default=0)
    for weights in (terms.linear, None if terms.units is None else terms.units.weights):
        width = max(width, 0 if weights is None else weights.shape[-1])
    variable = 6 if width <= 6 else 7 if width <= 128 else 8  # a small index takes a shorter instruction
    product, number = variable + 6, 5  # a number takes 3, the sign and the sum 1 each
    size = number + 1
    for tree in terms.trees:
        size += (variable + 19) * len(tree.feature) + 4 * len(tree.leaf) + 1
    if terms.linear is not None:
        size += product * int(np.count_nonzero(terms.linear))
    if terms.units is not None:
        size += product * int(np.count_nonzero(terms.units.weights)) + (number + number + 4) * len(terms.units.bias)
    return size
