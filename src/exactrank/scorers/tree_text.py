"""The text in which LightGBM keeps a model: read without LightGBM, and written as it was.

A model is a header, the trees, and a tail that scores do not depend on (importances, parameters). A tree with L leaves has the
inner nodes 0 to L - 2, of which 0 is the root and a child comes behind its parent; a child below 0 is a leaf, counted -1, -2, ...
At a node with feature j and threshold t

    a row goes left  <=>  x_j <= t,  or at a categorical node:  x_j is in the node's set                         (1)

and ``decision_type`` says, by bits, whether the node is categorical (1), whether missing values go left (2), and what is missing
(4: zero and NaN, 8: NaN, neither: nothing, NaN counts as 0).
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.errors import DataError
from exactrank.scorers.base import sum_rounded_down
from exactrank.scorers.tree_lines import DAMAGED, MOST, Floats, Ints, Lines, beginning, boundaries, fields_of, line_of, owners

PerTree: TypeAlias = npt.NDArray[np.float64]  #: one number per tree
_END = "\nend of trees\n"
_SAVED_IMPORTANCES = re.compile(r"^feature_importances:\n(?:[^\n]+\n)*", re.MULTILINE)
CATEGORICAL, MISSING_LEFT, MISSING_IS_ZERO, MISSING_IS_NAN = 1, 2, 4, 8  # bits of decision_type
_WRITABLE = re.compile(r"[\w.-]+", re.ASCII)
_COUNTED = 1 << 24  # what the documents of a tree are counted as, where only their shares are known
_EMPTY = """tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx={last}
objective=lambdarank
feature_names={names}
feature_infos={infos}
tree_sizes=

end of trees

feature_importances:

parameters:
[boosting: gbdt]
[objective: lambdarank]

end of parameters

pandas_categorical:null
"""


@dataclass(frozen=True, eq=False)
class ModelText:
    """A LightGBM text in its parts: the header by name, of each tree what follows its number, and the tail."""

    header: dict[str, str]
    trees: tuple[str, ...]
    tail: str

    @classmethod
    def of(cls, text: str) -> "ModelText":
        """The parts of ``text``; raises where it is not whole, or its score is not a sum of constant leaves."""
        if not text.startswith("tree\n"):
            raise DataError(f"a LightGBM model begins with a line 'tree', not {text[:40]!r}; give what Booster.model_to_string returns")
        body, end, tail = text.partition(_END)
        if not end:
            raise DataError(f"the line 'end of trees' is not there; {DAMAGED}")
        head, *numbered = re.split(r"^Tree=(.*)\n", body + "\n", flags=re.MULTILINE)
        lines, trees = head.removeprefix("tree\n"), tuple(numbered[1::2])
        if "\naverage_output\n" in lines:
            raise DataError("the trees are a random forest, whose scores are means; train with boosting=gbdt")
        header = fields_of(lines, "the header")
        for name in ("version", "num_class", "num_tree_per_iteration", "max_feature_idx", "feature_names", "feature_infos", "tree_sizes"):
            if name not in header:
                raise DataError(f"the header has no line {name}=...; {DAMAGED}")
        if header["version"] != "v4":
            raise DataError(
                f"the LightGBM text has version {beginning(header['version'])}; load and save it with LightGBM 4, which writes v4"
            )
        scores = {header["num_class"], header["num_tree_per_iteration"]} - {"1"}
        if scores:
            raise DataError(f"the trees give {beginning(scores.pop())} scores per row; a ranking needs one, so train with num_class=1")
        features = header["max_feature_idx"]
        if not re.fullmatch("[0-9]{1,9}", features) or int(features) + 1 != len(header["feature_names"].split(" ")):
            raise DataError(f"max_feature_idx is {beginning(features)}, which is not that of the last of the feature_names; {DAMAGED}")
        sizes = " ".join(str(len(tree)) for tree in _numbered(trees))
        if numbered[::2] != [str(number) for number in range(len(trees))] or header["tree_sizes"] != sizes:
            told = beginning(header["tree_sizes"])
            raise DataError(f"the header tells of trees of {told} characters but there are {beginning(sizes)}; {DAMAGED}")
        return cls(header, trees, tail)

    def written(self) -> str:
        """The whole text, with the sizes and the importances of the trees as they are."""
        trees = _numbered(self.trees)
        header = self.header | {"tree_sizes": " ".join(str(len(tree)) for tree in trees)}
        lines = "".join(f"{name}={value}\n" for name, value in header.items())
        # The importances have a line for each feature that is split at, most often first.
        counts, names = TreeTable.of(self).splits(), self.header["feature_names"].split(" ")
        splits = "".join(f"{names[j]}={counts[j]}\n" for j in np.argsort(-counts, kind="stable") if counts[j] > 0)
        saved = _SAVED_IMPORTANCES.sub(lambda _: "feature_importances:\n" + splits, self.tail, count=1)
        return f"tree\n{lines}\n{''.join(trees)}{_END[1:]}{saved}"


def writable(names: Sequence[str]) -> bool:
    """May all ``names`` of features stand in the text? Else LightGBM is left to number them."""
    return bool(names) and all(_WRITABLE.fullmatch(name) for name in names)


@dataclass(frozen=True, eq=False)
class TreeTable:
    """All trees of a model in flat arrays, checked: tree t has the nodes from ``start[t]`` to ``start[t + 1]``, and a leaf more.

    The threshold of a categorical node is the number of its set, whose bits are ``sets[set_start[number]:set_start[number + 1]]``.
    """

    n_features: int
    start: Ints
    feature: npt.NDArray[np.int32]
    threshold: Floats
    decision: npt.NDArray[np.uint8]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    gain: npt.NDArray[np.float32]
    leaf_value: Floats
    set_start: Ints
    sets: npt.NDArray[np.uint32]
    shrinkage: PerTree

    @classmethod
    def of(cls, model: ModelText) -> "TreeTable":
        """The trees of a model."""
        lines, n_features = Lines(model.trees), int(model.header["max_feature_idx"]) + 1
        single = np.ones(len(model.trees), np.int64)
        leaves, set_counts = lines.integers("num_leaves", single, 1, MOST), lines.integers("num_cat", single, 0, MOST)
        nodes, first_set = leaves - 1, boundaries(set_counts)
        bound_counts = np.where(set_counts > 0, set_counts + 1, 0)  # where the words of each set begin, and at last where they end
        bounds, owner = lines.integers("cat_boundaries", bound_counts, 0, MOST), owners(bound_counts)
        begins, rise = np.diff(owner, prepend=-1) > 0, np.diff(bounds, prepend=0)
        lines.require(np.where(begins, bounds == 0, rise > 0), owner, "cat_boundaries do not rise from 0")
        set_start = boundaries(rise[~begins])
        decision, threshold = lines.integers("decision_type", nodes, 0, 12), lines.decimals("threshold", nodes, finite=False)
        tree = owners(nodes)
        categorical = (decision & CATEGORICAL) > 0
        known = (threshold >= 0) & (threshold < set_counts[tree]) & (threshold == np.floor(threshold))
        lines.require(known | ~categorical, tree, "threshold names a set that is not there")
        feature = lines.integers("split_feature", nodes, 0, n_features)
        left, right = (lines.integers(f"{side}_child", nodes, -MOST, MOST) for side in ("left", "right"))
        _check_children(lines, left, right, nodes)
        with np.errstate(over="ignore"):
            gain = lines.decimals("split_gain", nodes, finite=False).astype(np.float32)
        return cls(
            n_features,
            boundaries(nodes),
            feature.astype(np.int32),
            np.where(categorical, threshold + first_set[tree], threshold),
            decision.astype(np.uint8),
            left.astype(np.int32),
            right.astype(np.int32),
            gain,
            lines.decimals("leaf_value", leaves),
            set_start,
            lines.integers("cat_threshold", np.diff(set_start[first_set]), 0, 1 << 32).astype(np.uint32),
            lines.decimals("shrinkage", single),
        )

    def text(self, feature_names: Sequence[str] = (), cover: Floats | None = None) -> str:
        """The model that `of` reads as this; without names that are `writable`, LightGBM's numbered ones.

        ``cover`` has for each leaf the share of the documents that fall into it, in any unit; without it all leaves have the same.
        """
        names = feature_names if writable(feature_names) else [f"Column_{j}" for j in range(self.n_features)]
        empty = _EMPTY.format(last=self.n_features - 1, names=" ".join(names), infos=" ".join(["none"] * self.n_features))
        shares = np.ones(len(self.leaf_value)) if cover is None else cover
        trees = tuple(self._tree(t, shares) for t in range(len(self.shrinkage)))
        return replace(ModelText.of(empty), trees=trees).written()

    def _tree(self, t: int, shares: Floats) -> str:
        nodes = slice(*self.start[t : t + 2])
        leaves, left, right = slice(nodes.start + t, nodes.stop + t + 1), self.left[nodes], self.right[nodes]
        threshold, decision = self.threshold[nodes], self.decision[nodes]
        sets = threshold[(decision & CATEGORICAL) > 0].astype(np.int64)
        first = sets.min() if len(sets) else 0
        bounds = self.set_start[first : sets.max() + 2] if len(sets) else np.empty(0, np.int64)
        value, share = self.leaf_value[leaves], shares[leaves] / max(shares[leaves].max(), np.finfo(float).tiny)
        count = np.maximum(np.rint(_COUNTED * share / max(share.sum(), 1.0)), 1).astype(np.int64)  # of each leaf
        counts, mean = np.zeros(len(left), np.int64), np.zeros(len(left))
        for node in range(len(left) - 1, -1, -1):  # a child comes behind its parent
            own = [(counts[child], mean[child]) if child >= 0 else (count[~child], value[~child]) for child in (left[node], right[node])]
            counts[node] = own[0][0] + own[1][0]
            mean[node] = math.fsum(number / counts[node] * average for number, average in own)
        lines: dict[str, npt.NDArray[Any]] = {
            "num_leaves": np.array([len(value)]),
            "num_cat": np.array([max(len(bounds) - 1, 0)]),
            "split_feature": self.feature[nodes],
            "split_gain": self.gain[nodes].astype(np.float64),
            "threshold": np.where(decision & CATEGORICAL, threshold - first, threshold),
            "decision_type": decision,
            "left_child": left,
            "right_child": right,
            "leaf_value": value,
            "leaf_weight": count,
            "leaf_count": count,
            "internal_value": mean,
            "internal_weight": counts,
            "internal_count": counts,
        }
        if len(sets):
            lines |= {"cat_boundaries": bounds - bounds[0], "cat_threshold": self.sets[bounds[0] : bounds[-1]]}
        lines |= {"is_linear": np.array([0]), "shrinkage": self.shrinkage[t : t + 1]}
        return "".join(line_of(name, values) + "\n" for name, values in lines.items()) + "\n\n"

    @cached_property
    def native(self) -> _core.Trees:
        """The kernels' form of them."""
        children = self.left, self.right, self.leaf_value
        return _core.Trees(self.n_features, self.start, self.feature, self.threshold, self.decision, *children, self.set_start, self.sets)

    def splits(self) -> Ints:
        """Of each feature how many splits gained by it."""
        return np.bincount(self.feature[self.gain > 0], minlength=self.n_features)

    def less(self, offset: Floats) -> tuple["TreeTable", Floats]:
        """The same trees for features that lack ``offset``, and what of it is left to be added to the features.

        That is the offset of those at which not all splits compare numbers: there is a set of categories, or zero counts as missing.
        NaN that counts as 0 still does: it goes to the side of a feature that is 0 with its offset.
        """
        other = (self.decision & (CATEGORICAL | MISSING_IS_ZERO)) > 0
        lacked = np.where(np.bincount(self.feature[other], minlength=self.n_features) == 0, offset, 0.0)
        own = lacked[self.feature]
        nan_is_zero = (own != 0) & ((self.decision & MISSING_IS_NAN) == 0)
        side = MISSING_IS_NAN | np.where(self.threshold >= 0, MISSING_LEFT, 0)
        threshold = np.where(own != 0, sum_rounded_down(self.threshold, -own), self.threshold)
        decision = np.where(nan_is_zero, side, self.decision).astype(np.uint8)
        return replace(self, threshold=threshold, decision=decision), offset - lacked


def _check_children(lines: Lines, left: Ints, right: Ints, nodes: Ints) -> None:
    """Raise unless the children of each tree are its nodes and leaves, each there once and behind its parent."""
    tree = np.tile(owners(nodes), 2)
    node, child = np.tile(np.arange(len(left)) - np.repeat(boundaries(nodes)[:-1], nodes), 2), np.concatenate([left, right])
    sound = (child < 0) & (child >= ~nodes[tree]) | (child > node) & (child < nodes[tree])
    lines.require(sound, tree, "a child is out of range or leads back")
    order = np.lexsort((child, tree))
    again = (np.diff(tree[order], prepend=-1) == 0) & (np.diff(child[order], prepend=0) == 0)
    lines.require(~again, tree[order], "a node or leaf is the child of two nodes")


def _numbered(trees: Sequence[str]) -> list[str]:
    return [f"Tree={number}\n{tree}" for number, tree in enumerate(trees)]
