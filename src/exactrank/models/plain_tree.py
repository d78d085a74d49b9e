"""Trees in the form of most libraries, which number splits and leaves together, converted to a `TreeTable`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import Floats, Ints, starts_of
from exactrank.errors import DataError
from exactrank.models.tree_table import MISSING_IS_NAN, MISSING_LEFT, TreeTable

_DAMAGED = "the model is damaged, so train or copy it again"


@dataclass(frozen=True, eq=False)
class PlainTree:
    """A tree with one number per node in each array; node 0 is the root, and a node whose ``left`` child is negative is a leaf.

    At a split a row goes left if its feature is at most the threshold, and a missing value if ``missing_left`` says so; without that array
    NaN counts as 0. ``gain`` is the gain of a split in training, 1 if unknown, and ``cover`` the share of documents that fall into a leaf.
    Nodes that cannot be reached from the root are left out.

    >>> stump = PlainTree(np.array([0, 0, 0]), np.array([0.5, 0, 0]), np.array([1, -1, -1]), np.array([2, -1, -1]), np.array([0, 2.0, 3.0]))
    >>> from exactrank.models import TreeEnsemble
    >>> TreeEnsemble(table_of([stump], n_features=1)).score(np.array([[0.5], [0.75]], np.float32))
    array([2., 3.])
    """

    feature: npt.NDArray[np.integer[Any]]
    threshold: Floats
    left: npt.NDArray[np.integer[Any]]
    right: npt.NDArray[np.integer[Any]]
    value: Floats
    missing_left: npt.NDArray[np.bool_] | None = None
    gain: npt.NDArray[np.floating[Any]] | None = None
    cover: npt.NDArray[np.floating[Any]] | None = None

    def nodes(self, number: int) -> tuple[Ints, Ints]:
        """Return the splits and the leaves, parents first; raises if this is not a tree, with its ``number``."""
        left, right, visited, stack = self.left.tolist(), self.right.tolist(), bytearray(len(self.left)), [0]
        splits, leaves = list[int](), list[int]()
        while stack:
            node = stack.pop()
            if not 0 <= node < len(left):
                raise DataError(f"tree {number}: there is a child {node} but there are {len(left)} nodes; {_DAMAGED}")
            if visited[node]:
                raise DataError(f"tree {number}: node {node} is the child of two nodes, or of one below it; {_DAMAGED}")
            visited[node] = True
            if left[node] < 0:
                leaves.append(node)
            else:
                splits.append(node)
                stack += (right[node], left[node])
        return np.array(splits, np.int64), np.array(leaves, np.int64)

    def columns(self, number: int, n_features: int) -> tuple[npt.NDArray[Any], ...]:
        """Return this tree's part of the arrays of a `TreeTable`, from ``feature`` to ``leaf_value``, and ``cover``."""
        splits, leaves = self.nodes(number)
        feature, threshold, value = self.feature[splits], self.threshold[splits], self.value[leaves]
        gain = np.ones(len(splits)) if self.gain is None else self.gain[splits]
        cover = np.ones(len(leaves)) if self.cover is None else self.cover[leaves]
        for sound, nodes, what in (
            ((feature >= 0) & (feature < n_features), splits, f"splits at a feature that is none of the {n_features}"),
            (~np.isnan(threshold), splits, "has no number for a threshold"),
            (~np.isnan(gain), splits, "has no number for a gain"),
            (np.isfinite(value), leaves, "has no finite value"),
            (np.isfinite(cover) & (cover >= 0), leaves, "has no cover that is finite and at least 0"),
        ):
            if not np.all(sound):
                raise DataError(f"tree {number}: node {nodes[np.argmin(sound)]} {what}; {_DAMAGED}")
        place = np.zeros(len(self.left), np.int64)
        place[splits], place[leaves] = np.arange(len(splits)), ~np.arange(len(leaves))
        decision = np.full(len(splits), MISSING_LEFT)
        if self.missing_left is not None:
            decision = MISSING_IS_NAN | np.where(self.missing_left[splits], MISSING_LEFT, 0)
        return feature, threshold, decision, place[self.left[splits]], place[self.right[splits]], gain, value, cover


def table_of(trees: Sequence[PlainTree], n_features: int) -> TreeTable:
    """Return ``trees`` as a table; their values are added up in this order."""
    if not trees:
        raise DataError("the model has no trees, so all scores would be equal; train it")
    columns = [tree.columns(number, n_features) for number, tree in enumerate(trees)]
    feature, threshold, decision, left, right, gain, value, cover = (np.concatenate(arrays) for arrays in zip(*columns, strict=True))
    start = starts_of([len(splits) for splits, *_ in columns])
    no_sets = np.zeros(1, np.int64), np.empty(0, np.uint32)
    ones = np.ones(len(trees))
    return TreeTable(n_features, start, feature, threshold, decision, left, right, gain, value, *no_sets, ones, cover)
