"""Trees in nested formats, where a node holds its children: built from the leaves up, read from the root down, and evaluated."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import Floats, Ints
from exactrank.errors import IncompatibleError
from exactrank.models.targets.plain import Bools, Tree

#: JSON readers give up at 1,000 nested brackets, and a level has up to two.
DEEPEST = 300
T = TypeVar("T")
Real = TypeVar("Real", np.float32, np.float64)


class Split(NamedTuple):
    """An inner node that was read; its children are as the format has them."""

    feature: int
    threshold: float
    left: Any
    right: Any
    missing_left: bool


def nest(tree: Tree, leaf: Callable[[int], T], split: Callable[[int, T, T], T]) -> T:
    """Return the root as ``split`` makes it of its children, which are made before it in the same way; ``leaf`` makes the leaves."""
    built: dict[int, T] = {}
    for node in reversed(range(len(tree.feature))):
        left, right = (built.pop(child) if child >= 0 else leaf(~child) for child in (int(tree.left[node]), int(tree.right[node])))
        built[node] = split(node, left, right)
    return built[0] if built else leaf(0)


def depths(tree: Tree) -> Ints:
    """Return the number of splits above each inner node; raise if a tree is deeper than readers can follow."""
    depth = np.zeros(len(tree.feature), np.int64)
    for node in range(len(depth)):
        for child in (tree.left[node], tree.right[node]):
            if child >= 0:
                depth[child] = depth[node] + 1
    if depth.max(initial=0) >= DEEPEST:
        raise IncompatibleError(f"a tree is {depth.max() + 1} splits deep, and engines read {DEEPEST} at most; train with depth={DEEPEST}")
    return depth


def read_tree(root: T, read_node: Callable[[T], Split | float]) -> Tree:
    """Return the tree below ``root``; ``read_node`` returns the split, or the leaf value, of a node."""
    splits: list[Split] = []
    leaves: list[float] = []

    def number(node: T) -> int:
        content = read_node(node)
        if isinstance(content, Split):
            splits.append(content)
            return len(splits) - 1
        leaves.append(content)
        return -len(leaves)

    number(root)
    children = [(number(split.left), number(split.right)) for split in splits]  # splits grows as it is read
    left, right = np.array(children, np.int64).reshape(-1, 2).T
    return Tree(
        np.array([split.feature for split in splits], np.int64),
        np.array([split.threshold for split in splits], np.float64),
        left,
        right,
        np.array([split.missing_left for split in splits], bool),
        np.array(leaves, np.float64),
    )


def leaf_values(tree: Tree, columns: npt.NDArray[Real], goes_left: Callable[[npt.NDArray[Real], Real], Bools]) -> Floats:
    """Return the value of the leaf that each document reaches; ``columns`` has one row per feature, in the precision of the comparisons.

    ``goes_left(values, threshold)`` decides for values that are present; NaN goes where the node says.
    """
    thresholds = tree.threshold.astype(columns.dtype)

    def left(node: int) -> Bools:
        values = columns[tree.feature[node]]
        return np.where(np.isnan(values), tree.missing_left[node], goes_left(values, thresholds[node]))

    return tree.leaf[tree.leaf_of(columns.shape[1], left)]
