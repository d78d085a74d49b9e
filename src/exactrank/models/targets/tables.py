"""All trees of a model in one table, which a loop in any language can evaluate.

node = root of the tree
while node >= 0:  node = left[node] if x[feature[node]] goes left else right[node]
score += leaf[~node]                                                                                            (1)
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from exactrank.models.targets.plain import Tree


class Tables(NamedTuple):
    """The roots of the trees, (feature, threshold, missing goes left, left, right) of each node, and the leaves."""

    roots: list[int]
    nodes: list[tuple[int, float, int, int, int]]
    leaves: list[float]


def tables(trees: Sequence[Tree]) -> Tables:
    """The table of (1)."""
    roots: list[int] = []
    columns: list[tuple[Any, ...]] = []
    nodes = leaves = 0
    for tree in trees:
        sides = (np.where(side >= 0, side + nodes, side - leaves) for side in (tree.left, tree.right))
        columns.append((tree.feature, tree.threshold, tree.missing_left.astype(int), *sides))
        roots.append(nodes if len(tree.feature) else ~leaves)
        nodes, leaves = nodes + len(tree.feature), leaves + len(tree.leaf)
    rows = [row for own in columns for row in zip(*(column.tolist() for column in own), strict=True)]
    return Tables(roots, rows, [value for tree in trees for value in tree.leaf.tolist()])
