"""An export target of another package: trees as nested rules such as ``(bm25 <= 0.5 ? 1.25 : (age <= 2.0 ? -0.5 : 0.75))``."""

import re

import numpy as np

from exactrank.extend import Plain, Rows, Target, nest

RULE = re.compile(r"\((\S+) <= (\S+) \? ")


class Rules(Target):
    """Trees as rules that people can read."""

    name, suffix = "rules", ".rules"
    kinds = ("trees",)
    names = re.compile(r"[^\s()]+")

    def write(self, terms: Plain):
        lines = [f"{terms.constant!r}"]
        for tree in terms.trees:
            splits = list(zip(tree.feature.tolist(), tree.threshold.tolist(), strict=True))

            def rule(node: int, left: str, right: str, splits=splits) -> str:
                feature, threshold = splits[node]
                return f"({terms.features[feature]} <= {threshold!r} ? {left} : {right})"

            lines.append(nest(tree, lambda leaf, tree=tree: repr(float(tree.leaf[leaf])), rule))
        return "\n".join(lines) + "\n", ["a missing value counts as 0"]

    def scores(self, content: bytes, rows: Rows, features):
        constant, *rules = content.decode().splitlines()
        column_of = dict(zip(features, np.nan_to_num(rows.T), strict=True))
        total = np.full(len(rows), float(constant))
        for rule in rules:
            total += self.evaluate(rule, column_of, len(rows))
        return total

    def evaluate(self, rule: str, column_of, rows: int):
        """Return the leaf of each row, reading the rule from its end: what follows a condition has been read already."""
        values = []
        for word in reversed(re.findall(r"\(\S+ <= \S+ \?|[^\s():]+", rule)):
            if word.startswith("("):
                name, threshold = RULE.match(word + " ").groups()
                left, right = values.pop(), values.pop()
                values.append(np.where(column_of[name] <= float(threshold), left, right))
            else:
                values.append(np.full(rows, float(word)))
        return values.pop()
