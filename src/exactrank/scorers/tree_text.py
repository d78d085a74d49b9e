"""The text in which LightGBM keeps a model: read without LightGBM, and changed without loss.

A model is a header, the trees, and a tail that scores do not depend on (importances, parameters). A tree with L leaves has the
inner nodes 0 to L - 2, of which 0 is the root and a child comes behind its parent; a child below 0 is a leaf, counted -1, -2, ...
At a node with feature j and threshold t

    a row goes left  <=>  x_j <= t,  or at a categorical node:  x_j is in the node's set                         (1)

and ``decision_type`` says, by bits, whether the node is categorical (1), whether missing values go left (2), and what is missing
(4: zero and NaN, 8: NaN, neither: nothing, NaN counts as 0).
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.errors import DataError, IncompatibleError
from exactrank.scorers.base import sum_rounded_down

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
PerTree: TypeAlias = npt.NDArray[np.float64]  #: one number per tree
_DAMAGED = "the LightGBM text is damaged, so train or copy the model again"
_END = "\nend of trees\n"
_INTEGERS = re.compile(r"-?[0-9]{1,10}(?: -?[0-9]{1,10})*")
_NUMBER = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?(?:e[-+]?[0-9]+)?|inf)"
_DECIMALS = re.compile(f"{_NUMBER}(?: {_NUMBER})*")
_SAVED_IMPORTANCES = re.compile(r"^feature_importances:\n(?:[^\n]+\n)*", re.MULTILINE)
CATEGORICAL, MISSING_LEFT, MISSING_IS_ZERO, MISSING_IS_NAN = 1, 2, 4, 8  # bits of decision_type
_PANDAS = re.compile(r"^pandas_categorical:(null|\[.*\])$", re.MULTILINE)
_RANGE = re.compile(rf"\[{_NUMBER}:{_NUMBER}\]")
_MOST = 1 << 31
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
            raise DataError(f"the line 'end of trees' is not there; {_DAMAGED}")
        head, *numbered = re.split(r"^Tree=(.*)\n", body + "\n", flags=re.MULTILINE)
        lines, trees = head.removeprefix("tree\n"), tuple(numbered[1::2])
        if "\naverage_output\n" in lines:
            raise DataError("the trees are a random forest, whose scores are means; train with boosting=gbdt")
        header = _fields(lines, "the header")
        for name in ("version", "num_class", "num_tree_per_iteration", "max_feature_idx", "feature_names", "feature_infos", "tree_sizes"):
            if name not in header:
                raise DataError(f"the header has no line {name}=...; {_DAMAGED}")
        if header["version"] != "v4":
            raise DataError(f"the LightGBM text has version {_start(header['version'])}; load and save it with LightGBM 4, which writes v4")
        scores = {header["num_class"], header["num_tree_per_iteration"]} - {"1"}
        if scores:
            raise DataError(f"the trees give {_start(scores.pop())} scores per row; a ranking needs one, so train with num_class=1")
        features = header["max_feature_idx"]
        if not re.fullmatch("[0-9]{1,9}", features) or int(features) + 1 != len(header["feature_names"].split(" ")):
            raise DataError(f"max_feature_idx is {_start(features)}, which is not that of the last of the feature_names; {_DAMAGED}")
        sizes = " ".join(str(len(tree)) for tree in _numbered(trees))
        if numbered[::2] != [str(number) for number in range(len(trees))] or header["tree_sizes"] != sizes:
            told = _start(header["tree_sizes"])
            raise DataError(f"the header tells of trees of {told} characters but there are {_start(sizes)}; {_DAMAGED}")
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


def for_ranking(text: str) -> str:
    """The model with LightGBM's objective for rankings, where it has none: there are programs that read no other text. Scores stay."""
    header, names, rest = text.partition("\nfeature_names=")
    if "\nobjective=" in header:
        return text
    return f"{header}\nobjective=lambdarank{names}{rest}".replace("\n[objective: custom]\n", "\n[objective: lambdarank]\n")


def with_levels(text: str, levels: Mapping[str, Sequence[str]], names: Sequence[str]) -> str:
    """The model with the levels of categories where LightGBM keeps those of pandas columns: in the order of the columns."""
    known = [list(levels[name]) for name in names if name in levels]
    return _PANDAS.sub(lambda _: f"pandas_categorical:{json.dumps(known)}", text) if known else text


def levels_of(text: str) -> dict[str, tuple[str, ...]]:
    """The levels that LightGBM kept of pandas columns, by the name of the feature; none where it is not plain which they belong to."""
    header, found = ModelText.of(text).header, _PANDAS.search(text)
    if found is None or not (known := json.loads(found[1])):
        return {}
    pairs = zip(header["feature_names"].split(" "), header["feature_infos"].split(" "), strict=True)
    names = [name for name, info in pairs if info != "none" and not info.startswith("[")]
    levels = {name: tuple(map(str, own)) for name, own in zip(names, known, strict=False)}
    clear = len(names) == len(known) and all(all(own) and len(set(own)) == len(own) for own in levels.values())
    return levels if clear else {}


def writable(names: Sequence[str]) -> bool:
    """May all ``names`` of features stand in the text? Else LightGBM is left to number them."""
    return bool(names) and all(_WRITABLE.fullmatch(name) for name in names)


def first_trees(text: str, count: int) -> str:
    """The model of the first ``count`` trees."""
    model = ModelText.of(text)
    if not 0 <= count <= len(model.trees):
        raise DataError(f"there are {len(model.trees)} trees, so the first {count} cannot be taken")
    return replace(model, trees=model.trees[:count]).written()


def joint_info(first: str, second: str) -> str:
    """What values a feature has in either of two sets of data: from the least to the largest, or which kinds.

    >>> joint_info("[-1:0.5]", "[0:2.5]"), joint_info("none", "[0:1]"), joint_info("3:1", "3:2")
    ('[-1:2.5]', '[0:1]', '3:1:2')
    """
    if first == second or "none" in (first, second):
        return second if first == "none" else first
    ours, theirs = (info.strip("[]").split(":") for info in (first, second))
    if _RANGE.fullmatch(first) and _RANGE.fullmatch(second):
        return f"[{min(ours[0], theirs[0], key=Decimal)}:{max(ours[1], theirs[1], key=Decimal)}]"
    return first if first.startswith("[") or second.startswith("[") else ":".join(dict.fromkeys([*ours, *theirs]))


def scaled(text: str, weights: Sequence[float] | PerTree) -> str:
    """The model with each tree's values, and the rate that they were multiplied by before, times its weight."""
    model = ModelText.of(text)
    if len(weights) != len(model.trees) or not np.all(np.isfinite(weights)):
        raise DataError(
            f"there are {len(weights)} weights, {_start(str(list(weights)))}, for {len(model.trees)} trees; give one finite weight per tree"
        )
    lines, trees = _Lines(model.trees), model.trees
    for name in ("leaf_value", "internal_value", "shrinkage"):
        counts = np.array([len(fields.get(name, "").split()) for fields in lines.trees], np.int64)
        with np.errstate(over="ignore"):
            values = lines.decimals(name, counts) * np.repeat(np.asarray(weights, np.float64), counts)
        lines.require(np.isfinite(values), _owners(counts), f"{name} overflows", "give a smaller weight")
        own = np.split(values, np.cumsum(counts))
        trees = tuple(
            tree if weight == 1 else _with_line(tree, name, own[t]) for t, (tree, weight) in enumerate(zip(trees, weights, strict=True))
        )
    return replace(model, trees=trees).written()


def joined(first: str, second: str) -> str:
    """The model with the trees of ``first`` and then those of ``second``, whose features must be the same."""
    ours, theirs = ModelText.of(first), ModelText.of(second)
    if ours.header["feature_names"] != theirs.header["feature_names"]:
        found = f"{_start(ours.header['feature_names'])} and {_start(theirs.header['feature_names'])}"
        raise IncompatibleError(f"the trees differ in feature_names, {found}; join only models of the same features")
    infos = zip(*(model.header["feature_infos"].split(" ") for model in (ours, theirs)), strict=True)
    header = ours.header | {"feature_infos": " ".join(joint_info(*each) for each in infos)}
    return replace(ours, header=header, trees=ours.trees + theirs.trees).written()


def moved(text: str, by: Floats) -> str:
    """The model of features that are larger by ``by``, one number per feature: its thresholds are.

    A threshold is rounded down, so that what lay above it goes on doing so.
    """
    model = ModelText.of(text)
    lines = _Lines(model.trees)
    nodes = lines.integers("num_leaves", np.ones(len(model.trees), np.int64), 1, _MOST) - 1
    feature, decision = lines.integers("split_feature", nodes, 0, len(by)), lines.integers("decision_type", nodes, 0, 12)
    step = np.where(decision & CATEGORICAL, 0.0, by[feature])
    threshold = sum_rounded_down(lines.decimals("threshold", nodes, finite=False), step)
    ends = np.cumsum(nodes)[:-1]
    trees = tuple(
        _with_line(tree, "threshold", own) if np.any(steps) else tree
        for tree, own, steps in zip(model.trees, np.split(threshold, ends), np.split(step, ends), strict=True)
    )
    infos = [_moved_info(info, float(own)) for info, own in zip(model.header["feature_infos"].split(" "), by, strict=True)]
    return replace(model, trees=trees, header=model.header | {"feature_infos": " ".join(infos)}).written()


def _moved_info(info: str, by: float) -> str:
    """The range of a feature, ``[low:high]``, moved without rounding, so that moving it back gives the same text.

    >>> _moved_info("[-1.5:0.10000000000000001]", 1e9), _moved_info("[999999998.5:1000000000.10000000000000001]", -1e9)
    ('[999999998.5:1000000000.10000000000000001]', '[-1.5:0.10000000000000001]')
    """
    if by == 0 or not _RANGE.fullmatch(info):
        return info
    with localcontext(prec=800):
        ends = [Decimal(end) + Decimal(by) for end in info[1:-1].split(":")]
        short = [format(float(end), ".17g") for end in ends]
        return f"[{':'.join(text if Decimal(text) == end else format(end, 'f') for text, end in zip(short, ends, strict=True))}]"


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
        lines, n_features = _Lines(model.trees), int(model.header["max_feature_idx"]) + 1
        single = np.ones(len(model.trees), np.int64)
        leaves, set_counts = lines.integers("num_leaves", single, 1, _MOST), lines.integers("num_cat", single, 0, _MOST)
        nodes, first_set = leaves - 1, _boundaries(set_counts)
        bound_counts = np.where(set_counts > 0, set_counts + 1, 0)  # where the words of each set begin, and at last where they end
        bounds, owner = lines.integers("cat_boundaries", bound_counts, 0, _MOST), _owners(bound_counts)
        begins, rise = np.diff(owner, prepend=-1) > 0, np.diff(bounds, prepend=0)
        lines.require(np.where(begins, bounds == 0, rise > 0), owner, "cat_boundaries do not rise from 0")
        set_start = _boundaries(rise[~begins])
        decision, threshold = lines.integers("decision_type", nodes, 0, 12), lines.decimals("threshold", nodes, finite=False)
        tree = _owners(nodes)
        categorical = (decision & CATEGORICAL) > 0
        known = (threshold >= 0) & (threshold < set_counts[tree]) & (threshold == np.floor(threshold))
        lines.require(known | ~categorical, tree, "threshold names a set that is not there")
        feature = lines.integers("split_feature", nodes, 0, n_features)
        left, right = (lines.integers(f"{side}_child", nodes, -_MOST, _MOST) for side in ("left", "right"))
        _check_children(lines, left, right, nodes)
        with np.errstate(over="ignore"):
            gain = lines.decimals("split_gain", nodes, finite=False).astype(np.float32)
        return cls(
            n_features,
            _boundaries(nodes),
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
            mean[node] = sum(number / counts[node] * average for number, average in own)
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
        return "".join(_line(name, values) + "\n" for name, values in lines.items()) + "\n\n"

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


class _Lines:
    """The lines of all trees, each tree's by name; errors name the tree."""

    def __init__(self, trees: Sequence[str]) -> None:
        self.trees = [_fields(tree, f"tree {number}") for number, tree in enumerate(trees)]
        linear = next((number for number, fields in enumerate(self.trees) if fields.get("is_linear", "0") != "0"), None)
        if linear is not None:
            raise DataError(f"tree {linear} has linear models in its leaves; train with linear_tree=false")

    def require(self, holds: npt.NDArray[np.bool_], tree: Ints, what: str, remedy: str = _DAMAGED) -> None:
        """Raise ``what`` is wrong with the first ``tree`` of which not all ``holds``."""
        if not np.all(holds):
            raise DataError(f"tree {tree[np.argmin(holds)]}: {what}; {remedy}")

    def integers(self, name: str, counts: Ints, low: int, end: int) -> Ints:
        """The given number of integers of each tree, at least ``low`` and below ``end``."""
        found = np.array([int(word) for word in self._words(name, counts, _INTEGERS)], np.int64)
        self.require((found >= low) & (found < end), _owners(counts), f"{name} has numbers that are below {low} or not below {end}")
        return found

    def decimals(self, name: str, counts: Ints, finite: bool = True) -> Floats:
        """The given number of numbers of each tree."""
        found = np.array([float(word) for word in self._words(name, counts, _DECIMALS)], np.float64)
        self.require(np.isfinite(found) | (not finite), _owners(counts), f"{name} has numbers that are not finite")
        return found

    def _words(self, name: str, counts: Ints, form: re.Pattern[str]) -> list[str]:
        words: list[str] = []
        for number, (fields, count) in enumerate(zip(self.trees, counts.tolist(), strict=True)):
            line = fields.get(name, "")
            own = line.split(" ") if line else []
            if len(own) != count or (line and not form.fullmatch(line)):
                raise DataError(f"tree {number}: {name} has {_start(line)} instead of {count} numbers; {_DAMAGED}")
            words += own
        return words


def _check_children(lines: _Lines, left: Ints, right: Ints, nodes: Ints) -> None:
    """Raise unless the children of each tree are its nodes and leaves, each there once and behind its parent."""
    tree = np.tile(_owners(nodes), 2)
    node, child = np.tile(np.arange(len(left)) - np.repeat(_boundaries(nodes)[:-1], nodes), 2), np.concatenate([left, right])
    sound = (child < 0) & (child >= ~nodes[tree]) | (child > node) & (child < nodes[tree])
    lines.require(sound, tree, "a child is out of range or leads back")
    order = np.lexsort((child, tree))
    again = (np.diff(tree[order], prepend=-1) == 0) & (np.diff(child[order], prepend=0) == 0)
    lines.require(~again, tree[order], "a node or leaf is the child of two nodes")


def _fields(lines: str, where: str) -> dict[str, str]:
    pairs = [line.partition("=") for line in lines.split("\n") if line]
    found = {name: value for name, _, value in pairs}
    if len(found) < len(pairs) or not all(equals for _, equals, _ in pairs):
        raise DataError(f"{where}: a line is there twice or has no '='; {_DAMAGED}")
    return found


def _numbered(trees: Sequence[str]) -> list[str]:
    return [f"Tree={number}\n{tree}" for number, tree in enumerate(trees)]


def _with_line(tree: str, name: str, values: Floats) -> str:
    return re.sub(f"^{name}=.*$", _line(name, values), tree, count=1, flags=re.MULTILINE)


def _line(name: str, values: npt.NDArray[Any]) -> str:
    return f"{name}=" + " ".join(format(value, ".17g") if isinstance(value, float) else str(value) for value in values.tolist())


def _owners(counts: Ints) -> Ints:
    """The number of the tree that each thing belongs to, from how many each tree has."""
    return np.repeat(np.arange(len(counts)), counts)


def _boundaries(counts: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _start(text: str) -> str:
    return repr(text[:30] + "..." if len(text) > 30 else text)
