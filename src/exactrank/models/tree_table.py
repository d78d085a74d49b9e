"""The trees of a model in flat arrays, checked once.

Tree t has the splits from ``start[t]`` to ``start[t + 1]``, of which the first is the root, and one more leaf than splits. A child is a
split of its tree, counted from 0 and behind its parent, or a leaf, counted -1, -2, ... At a split with feature j and threshold h

    a row goes left  <=>  x_j <= h,  or at a categorical split:  x_j is in the split's set                       (1)

The bits of ``decision`` say whether the split is categorical (1), whether missing values go left (2), and what is missing (4: zero and NaN,
8: NaN; with neither, NaN counts as 0).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import Floats, Ints, Matrix, group_numbers, starts_of
from exactrank.errors import DataError, IncompatibleError
from exactrank.models.base import sum_rounded_down

PerTree: TypeAlias = npt.NDArray[np.float64]  #: one number per tree
CATEGORICAL, MISSING_LEFT, MISSING_IS_ZERO, MISSING_IS_NAN = 1, 2, 4, 8  # bits of a decision
DECISIONS = MISSING_IS_NAN + MISSING_IS_ZERO  #: above all decisions: zero and NaN alone are not missing at once
MOST = 1 << 31  #: above all numbers of splits, leaves and features
MOST_WORDS = 1 << 24  #: of 32 categories each, in all sets of a model
AGAIN = "train or copy the model again"
_TYPES: dict[str, type[np.generic]] = {
    "start": np.int64,
    "feature": np.int32,
    "threshold": np.float64,
    "decision": np.uint8,
    "left": np.int32,
    "right": np.int32,
    "gain": np.float32,
    "leaf_value": np.float64,
    "set_start": np.int64,
    "sets": np.uint32,
    "shrinkage": np.float64,
    "cover": np.float64,
}


@dataclass(frozen=True, eq=False)
class TreeTable:
    """The trees of a model; an array that violates the format raises a `DataError` that names the tree.

    The threshold of a categorical split is the number of its set, whose bits are ``sets[set_start[number]:set_start[number + 1]]``, 32
    categories per word.

    >>> stump = TreeTable(1, [0, 1], [0], [0.5], [MISSING_IS_NAN], [-1], [-2], [1.0], [2.0, 3.0], [0], [], [1.0], [1.0, 1.0])
    >>> stump.native.scores(np.array([[0.5], [0.75]], np.float32), threads=1)
    array([2., 3.])
    >>> stump.scale([0.5]).join(stump).leaf_value
    array([1. , 1.5, 2. , 3. ])
    """

    n_features: int
    start: Ints  #: the first split of each tree, and last the number of splits
    feature: npt.NDArray[np.int32]
    threshold: Floats
    decision: npt.NDArray[np.uint8]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    gain: npt.NDArray[np.float32]  #: of each split in training; 1 if unknown
    leaf_value: Floats
    set_start: Ints
    sets: npt.NDArray[np.uint32]
    shrinkage: PerTree  #: factor by which the values of each tree have been multiplied: the learning rate times a weight
    cover: Floats  #: training documents in each leaf, or their share in any unit; 1 if unknown

    def __post_init__(self) -> None:
        raw = {name: _array(name, getattr(self, name), dtype) for name, dtype in _TYPES.items()}
        _check_sizes(self.n_features, raw)
        _check_splits(self.n_features, raw)
        _check_children(raw)
        _check_leaves(raw)
        with np.errstate(over="ignore"):  # a gain beyond single precision is infinite
            arrays = {name: np.ascontiguousarray(values, _TYPES[name]) for name, values in raw.items()}
        for values in arrays.values():
            values.flags.writeable = False
        vars(self).update(arrays)

    @classmethod
    def empty(cls, n_features: int) -> "TreeTable":
        """Return a table without a tree."""
        none, start = np.empty(0), np.zeros(1, np.int64)
        return cls(n_features, start, none, none, none, none, none, none, none, start, none, none, none)  # type: ignore[arg-type]

    @property
    def n_trees(self) -> int:
        """The number of trees."""
        return len(self.shrinkage)

    @property
    def n_splits(self) -> Ints:
        """The number of splits of each tree."""
        return np.diff(self.start)

    @cached_property
    def native(self) -> _core.Trees:
        """The trees of the native core."""
        return _core.Trees(**self._kernel_arrays())

    def contributions(self, rows: Matrix, threads: int) -> Floats:
        """Return the SHAP values of each row, one per feature; the last column is the expected score, the same for all rows."""
        return _core.tree_contributions(**self._kernel_arrays(), cover=self.cover, x=rows, threads=threads)

    def splits_by_feature(self) -> Ints:
        """Return the number of splits of each feature that have a gain."""
        return np.bincount(self.feature[self.gain > 0], minlength=self.n_features)

    def first(self, count: int) -> "TreeTable":
        """Return the first ``count`` trees."""
        if not 0 <= count <= self.n_trees:
            raise DataError(f"there are {self.n_trees} trees, so the first {count} cannot be taken; give a count from 0 to {self.n_trees}")
        return self._between(0, count)

    def single(self, t: int) -> "TreeTable":
        """Return tree ``t`` alone."""
        return self._between(t, t + 1)

    def join(self, *rest: "TreeTable") -> "TreeTable":
        """Return these trees followed by those of ``rest``, which must read the same number of features."""
        tables = (self, *rest)
        for table in rest:
            if table.n_features != self.n_features:
                widths = f"{self.n_features} and {table.n_features} features"
                raise IncompatibleError(f"the trees read {widths}; join only trees of the same features")
        arrays = {name: np.concatenate([getattr(table, name) for table in tables]) for name in _TYPES if not name.endswith("start")}
        first_set = starts_of([len(table.set_start) - 1 for table in tables])
        arrays["threshold"] = np.concatenate(
            [
                np.where(table.decision & CATEGORICAL, table.threshold + before, table.threshold)
                for table, before in zip(tables, first_set, strict=False)
            ]
        )
        return TreeTable(
            self.n_features,
            start=starts_of(np.concatenate([table.n_splits for table in tables])),
            set_start=starts_of(np.concatenate([np.diff(table.set_start) for table in tables])),
            **arrays,
        )

    def scale(self, weights: Sequence[float] | PerTree) -> "TreeTable":
        """Return the trees with the values of each, and its shrinkage, multiplied by its weight."""
        weights = np.asarray(weights, np.float64)
        if len(weights) != self.n_trees or not np.all(np.isfinite(weights)):
            numbers = ", ".join(map(str, weights[:3].tolist())) + (", ..." if len(weights) > 3 else "")
            raise DataError(f"there are {len(weights)} weights, {numbers}, for {self.n_trees} trees; give one finite weight per tree")
        trees = {"leaf_value": group_numbers(self.n_splits + 1), "shrinkage": np.arange(self.n_trees)}
        with np.errstate(over="ignore"):
            products = {name: getattr(self, name) * weights[tree] for name, tree in trees.items()}
        for name, product in products.items():
            _require(
                np.isfinite(product), trees[name], getattr(self, name), f"{name} {{}} times its weight overflows", "give a smaller one"
            )
        return replace(self, **products)

    def shift(self, by: Floats) -> "TreeTable":
        """Return the trees of features that are larger by ``by``, one number per feature.

        A threshold is rounded down, so that values above it stay above it.
        """
        step = np.where(self.decision & CATEGORICAL, 0.0, by[self.feature])
        return replace(self, threshold=np.where(step != 0, sum_rounded_down(self.threshold, step), self.threshold))

    def subtract(self, offset: Floats) -> tuple["TreeTable", Floats]:
        """Return the trees of features without ``offset``, and the part of it that must still be added to the features.

        That part belongs to features with a split that does not compare numbers: it has a set of categories, or zero counts as missing.
        NaN that counts as 0 goes to the side of a feature whose sum with its offset is 0.
        """
        not_numeric = (self.decision & (CATEGORICAL | MISSING_IS_ZERO)) > 0
        subtracted = np.where(np.bincount(self.feature[not_numeric], minlength=self.n_features) == 0, offset, 0.0)
        step = subtracted[self.feature]
        nan_is_zero = (step != 0) & ((self.decision & MISSING_IS_NAN) == 0)
        side = MISSING_IS_NAN | np.where(self.threshold >= 0, MISSING_LEFT, 0)
        decision = np.where(nan_is_zero, side, self.decision).astype(np.uint8)
        threshold = np.where(step != 0, sum_rounded_down(self.threshold, -step), self.threshold)
        return replace(self, threshold=threshold, decision=decision), offset - subtracted

    def _between(self, first: int, last: int) -> "TreeTable":
        """Return the trees from ``first`` to ``last``, exclusive."""
        splits = slice(self.start[first], self.start[last])
        leaves = slice(splits.start + first, splits.stop + last)
        threshold, categorical = self.threshold[splits], (self.decision[splits] & CATEGORICAL) > 0
        numbers = threshold[categorical].astype(np.int64)
        low, high = (numbers.min(), numbers.max() + 1) if len(numbers) else (0, 0)
        words = self.set_start[low : high + 1]
        return TreeTable(
            self.n_features,
            start=self.start[first : last + 1] - self.start[first],
            threshold=np.where(categorical, threshold - low, threshold),
            set_start=words - words[0],
            sets=self.sets[words[0] : words[-1]],
            shrinkage=self.shrinkage[first:last],
            **{name: getattr(self, name)[splits] for name in ("feature", "decision", "left", "right", "gain")},
            **{name: getattr(self, name)[leaves] for name in ("leaf_value", "cover")},
        )

    def _kernel_arrays(self) -> dict[str, Any]:
        names = ("start", "feature", "threshold", "decision", "left", "right", "leaf_value", "set_start", "sets")
        return {"width": self.n_features} | {name: getattr(self, name) for name in names}

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "native"}


def categories_in(words: npt.NDArray[np.uint32]) -> Ints:
    """Return the categories whose bits are set in ``words``, 32 per word.

    >>> categories_in(np.array([5, 1], np.uint32))
    array([ 0,  2, 32])
    """
    return np.flatnonzero(np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little"))


def _array(name: str, values: npt.ArrayLike, dtype: type[np.generic]) -> npt.NDArray[Any]:
    """Return ``values`` as a flat array of the kind of ``dtype``, though not yet of its precision."""
    array = np.asarray(values)
    array = array.astype(dtype) if array.size == 0 else array
    if array.ndim != 1 or array.dtype.kind not in ("iu" if np.issubdtype(dtype, np.integer) else "iuf"):
        raise DataError(f"{name} is an array of shape {array.shape} and type {array.dtype}; give a flat array of type {dtype.__name__}")
    return array


def _check_sizes(n_features: int, raw: dict[str, npt.NDArray[Any]]) -> None:
    """Raise unless the lengths of the arrays agree with ``start`` and ``set_start``."""
    if not 1 <= n_features < MOST:
        raise DataError(f"the trees read {n_features} features; give a number from 1 to {MOST - 1}")
    for name, total, least in (("start", len(raw["feature"]), 0), ("set_start", len(raw["sets"]), 1)):
        starts = raw[name].astype(np.int64)
        if len(starts) == 0 or starts[0] != 0 or starts[-1] != total or np.any(np.diff(starts) < least):
            raise DataError(f"{name} does not rise from 0 to {total}; {AGAIN}")
    if len(raw["sets"]) > MOST_WORDS:
        raise DataError(f"the sets of categories take {len(raw['sets']):,} words, more than {MOST_WORDS:,}; number categories from 0 on")
    splits, trees = len(raw["feature"]), len(raw["start"]) - 1
    if splits + trees >= MOST:
        raise DataError(f"there are {splits + trees:,} leaves; give fewer than {MOST:,}")
    lengths = dict.fromkeys(("threshold", "decision", "left", "right", "gain"), splits)
    for name, length in (lengths | {"leaf_value": splits + trees, "cover": splits + trees, "shrinkage": trees}).items():
        if len(raw[name]) != length:
            raise DataError(f"{name} has {len(raw[name])} numbers for {trees} trees with {splits} splits, not {length}; {AGAIN}")


def _check_splits(n_features: int, raw: dict[str, npt.NDArray[Any]]) -> None:
    tree, sets = group_numbers(np.diff(raw["start"])), len(raw["set_start"]) - 1
    feature, decision, threshold, gain = (raw[name] for name in ("feature", "decision", "threshold", "gain"))
    _require((feature >= 0) & (feature < n_features), tree, feature, f"feature {{}} is not one of 0 to {n_features - 1}")
    _require((decision >= 0) & (decision < DECISIONS), tree, decision, f"decision {{}} is not one of 0 to {DECISIONS - 1}")
    _require(~np.isnan(threshold), tree, threshold, "threshold {} is not a number")
    _require(~np.isnan(gain), tree, gain, "gain {} is not a number")
    with np.errstate(invalid="ignore"):
        valid = (threshold >= 0) & (threshold < sets) & (threshold == np.floor(threshold))
    _require(valid | ((decision & CATEGORICAL) == 0), tree, threshold, "threshold {} names a set of categories that is not there")
    words = raw["sets"]
    if not np.all((words >= 0) & (words < 1 << 32)):
        raise DataError(f"a word of the sets of categories does not have 32 bits; {AGAIN}")


def _check_children(raw: dict[str, npt.NDArray[Any]]) -> None:
    """Raise unless the children of each tree are its splits and leaves, each once and behind its parent."""
    start, splits = raw["start"].astype(np.int64), np.diff(raw["start"]).astype(np.int64)
    tree = np.tile(group_numbers(splits), 2)
    node, child = np.tile(np.arange(start[-1]) - np.repeat(start[:-1], splits), 2), np.concatenate([raw["left"], raw["right"]])
    sound = (child < 0) & (child >= ~splits[tree]) | (child > node) & (child < splits[tree])
    _require(sound, tree, child, "child {} is out of range or leads back to a split above it")
    place = np.where(child < 0, start[-1] + start[tree] + tree - 1 - child, start[tree] + child)
    times = np.bincount(place, minlength=1)
    _require(times[place] == 1, tree, child, "child {} is the child of two splits")


def _check_leaves(raw: dict[str, npt.NDArray[Any]]) -> None:
    tree, value, cover = group_numbers(np.diff(raw["start"]) + 1), raw["leaf_value"], raw["cover"]
    _require(np.isfinite(value), tree, value, "leaf_value {} is not finite")
    _require(np.isfinite(cover) & (cover >= 0), tree, cover, "cover {} is not a finite number of at least 0")
    _require(np.isfinite(raw["shrinkage"]), np.arange(len(raw["shrinkage"])), raw["shrinkage"], "shrinkage {} is not finite")


def _require(holds: npt.NDArray[np.bool_], tree: Ints, values: npt.NDArray[Any], trouble: str, remedy: str = AGAIN) -> None:
    """Raise ``trouble`` with the first of ``values`` where ``holds`` is false."""
    if not np.all(holds):
        place = int(np.argmin(holds))
        raise DataError(f"tree {tree[place]}: {trouble.format(values[place].item())}; {remedy}")
