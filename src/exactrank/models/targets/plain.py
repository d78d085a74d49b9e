"""A model in plain terms, which targets can express: weighted features, hidden units, deep networks, trees.

    s(x) = constant + sum_j w_j x_j + sum_u v_u tanh(b_u + sum_j a_uj x_j) + sum_n net_n(x) + sum_t leaf_t(x)       (1)

Standardisation and offsets are folded into the numbers, step functions are trees, a sum is all its parts. At a node of a tree

    x goes left  <=>  x_j <= threshold,    and a missing value where ``missing_left`` says so.                      (2)

In the other terms of (1) ``fill`` replaces missing values. Missing values that a model would refuse are treated as 0.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import Literal

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import Floats, Ints
from exactrank._support.numerics import matmul
from exactrank.data.alignment import name_list
from exactrank.errors import IncompatibleError
from exactrank.models.base import Scorer, sum_rounded_down
from exactrank.models.deep import EPSILON, Deep, Net
from exactrank.models.linear import Linear
from exactrank.models.model import Model
from exactrank.models.network import Network
from exactrank.models.sum import Sum
from exactrank.models.thresholds import Thresholds
from exactrank.models.tree_ensemble import TreeEnsemble
from exactrank.models.tree_table import CATEGORICAL, MISSING_IS_NAN, MISSING_IS_ZERO, MISSING_LEFT

Bools = npt.NDArray[np.bool_]
MODULE_ROUNDING = 1e-5  #: relative rounding error of modules, which compute in single precision
ZERO = float(np.float32(1e-35))  #: LightGBM treats all values up to this as 0


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree: inner nodes, with the root at 0 and children after their parents, and leaves; a child below 0 is the leaf ``~child``."""

    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints
    missing_left: Bools
    leaf: Floats

    def preorder(self) -> Iterator[int]:
        """Yield nodes and leaves, as ``left`` and ``right`` name them, before their children, the left child first."""
        waiting = [0 if len(self.feature) else -1]
        while waiting:
            node = waiting.pop()
            yield node
            if node >= 0:
                waiting += [int(self.right[node]), int(self.left[node])]

    def leaf_of(self, rows: int, goes_left: Callable[[int], Bools]) -> Ints:
        """Return the leaf that each of the ``rows`` falls into; ``goes_left(node)`` is true for those that a node sends left."""
        leaf = np.zeros(rows, np.int64)
        reached = {0: np.ones(rows, bool)}
        for node in range(len(self.feature)):
            arrivals, left = reached.pop(node), goes_left(node)
            for child, at_child in ((int(self.left[node]), arrivals & left), (int(self.right[node]), arrivals & ~left)):
                if child < 0:
                    leaf[at_child] = ~child
                else:
                    reached[child] = at_child
        return leaf


@dataclass(frozen=True, eq=False)
class HiddenUnits:
    """The hidden units of (1), each with a row of ``weights``, a ``bias`` and an ``output``."""

    weights: Floats
    bias: Floats
    output: Floats


@dataclass(frozen=True, eq=False)
class DeepTerm:
    """A deep network on features less ``offset``, times ``weight``; see `exactrank.models.deep`."""

    net: Net
    weight: float
    offset: Floats

    def rounding(self, rows: Floats, eps: float) -> Floats:
        """Return a first-order bound of the error of each row's score from rounding by ``eps``; a usual error if a module computes it."""
        if self.net.of is not None:
            scores = self.net.function(self.net.inputs(rows - self.offset))
            return np.asarray(abs(self.weight) * MODULE_ROUNDING * np.maximum(1.0, np.abs(scores)))
        scale = self.net.tensors["scale"]
        h, moved = self.net.inputs(rows - self.offset), np.abs(rows) + np.abs(self.offset)
        error = eps * ((moved + 4 * (1 + np.abs(self.net.tensors["mean"]))) / scale + 2 * np.abs(h))
        for weights, bias, gain, shift in self.net.layers:
            within, count = matmul(h, weights.T) + bias, weights.shape[1] + len(bias) + 6
            error = matmul(error, np.abs(weights).T) + count * eps * (matmul(np.abs(h), np.abs(weights).T) + np.abs(bias))
            within, error = within - within.mean(axis=1, keepdims=True), error + error.mean(axis=1, keepdims=True)
            size = np.sqrt(np.square(within).mean(axis=1, keepdims=True) + EPSILON)
            unit = within / size
            error = (error + np.abs(unit) * (np.abs(unit) * error).mean(axis=1, keepdims=True)) / size + count * eps * np.abs(unit)
            error = error * np.abs(gain) + 3 * eps * (np.abs(unit * gain) + np.abs(shift))
            h = np.maximum(unit * gain + shift, 0.0)
        output = np.abs(self.net.output)
        return np.asarray(abs(self.weight) * matmul(error + (len(output) + 4) * eps * np.abs(h), output))


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms of (1); None for parts that are absent."""

    constant: float = 0.0
    linear: Floats | None = None
    units: HiddenUnits | None = None
    trees: tuple[Tree, ...] = field(default=(), repr=False)
    nets: tuple[DeepTerm, ...] = ()

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of terms that are present, out of linear, network, deep and trees."""
        present = {"linear": self.linear is not None, "network": self.units is not None, "deep": self.nets, "trees": self.trees}
        return tuple(kind for kind, terms in present.items() if terms)


@dataclass(frozen=True, eq=False)
class Plain(Terms):
    """A whole model as (1), with ``features`` by name, or numbered if the model has no names."""

    model: Model = field(kw_only=True)
    features: tuple[str, ...] = field(kw_only=True)
    fill: Floats = field(kw_only=True)

    @property
    def missing(self) -> Literal["zero", "mean", "keep"]:
        """The treatment of missing values: as 0, as a mean, or sent to the side that each node of a tree names."""
        if self.model.scorer.missing == "mean" or np.any(self.fill):
            return "mean"
        return "keep" if self.missing_unlike_zero() else "zero"

    def missing_unlike_zero(self) -> list[str]:
        """Return the features, in quotation marks, whose missing values the model does not treat as 0."""
        is_unlike = self.fill != 0
        for tree in self.trees:
            is_unlike[tree.feature[tree.missing_left != (tree.threshold >= 0)]] = True
        return [repr(self.features[number]) for number in np.flatnonzero(is_unlike)]

    def __post_init__(self) -> None:
        """Raise if a number has overflowed when scales, offsets and weights were folded into it."""
        per_feature: list[tuple[str, Floats]] = [("the fill value", self.fill)]
        other_numbers: list[tuple[str, npt.ArrayLike]] = [("the constant", self.constant)]
        if self.linear is not None:
            per_feature.append(("the weight", self.linear))
        if self.units is not None:
            per_feature.append(("the weight in a hidden unit", self.units.weights))
            other_numbers += [("the bias of a hidden unit", self.units.bias), ("the output of a hidden unit", self.units.output)]
        for name, values in per_feature:
            sound = np.isfinite(values).reshape(-1, len(self.features)).all(axis=0)
            if not np.all(sound):
                raise _overflow(f"{name} of feature {self.features[np.argmin(sound)]!r}")
        for tree in self.trees:
            sound = np.isfinite(tree.threshold)
            if not np.all(sound):
                raise _overflow(f"a threshold of feature {self.features[tree.feature[np.argmin(sound)]]!r}")
        other_numbers += [("the value of a leaf", tree.leaf) for tree in self.trees]
        other_numbers += [("the weight of a deep network", net.weight) for net in self.nets]
        for name, numbers in other_numbers:
            if not np.all(np.isfinite(numbers)):
                raise _overflow(name)

    def without_constant(self) -> "Plain":
        """Return the model with the constant in the leaves of the first tree, for engines that cannot express it otherwise."""
        if not self.constant or not self.trees:
            return self
        first, *rest = self.trees
        with np.errstate(over="ignore"):
            leaf = first.leaf + self.constant
        return replace(self, constant=0.0, trees=(replace(first, leaf=leaf), *rest))


def plain(model: Model) -> Plain:
    """Return ``model`` in plain terms; raise if no target could express it."""
    scorer = model.scorer
    with np.errstate(over="ignore", invalid="ignore"):  # `Plain` refuses the results
        terms, fill = _filled_terms(scorer), _fill(scorer)
    if fill is None:  # each part has its own
        fills = [values for part in getattr(scorer, "parts", ()) if (values := _fill(part)) is not None] or [np.zeros(scorer.n_features)]
        fill = fills[0]
        if any(not np.array_equal(fill, values) for values in fills):
            raise IncompatibleError("the parts of the sum fill missing values in different ways; train them with the same missing=...")
    features = scorer.feature_names or tuple(f"f{number}" for number in range(scorer.n_features))
    return Plain(**vars(terms), model=model, features=features, fill=fill)


def _overflow(name: str) -> IncompatibleError:
    return IncompatibleError(
        f"{name} overflows when scales, offsets and weights are folded into one number; bring the features to similar scales,"
        " e.g. divide large ones and multiply tiny ones, and train again"
    )


def _fill(scorer: Scorer) -> Floats | None:
    """Return the replacement of missing values, in the precision of features; None if the scorer leaves that to its nodes or parts."""
    if scorer.missing == "keep":
        return None
    if scorer.fill is None or scorer.missing == "zero":
        return np.zeros(scorer.n_features)
    offset = 0.0 if scorer.offset is None else scorer.offset
    return np.asarray((scorer.fill - offset).astype(np.float32) + offset, np.float64)


def _filled_terms(scorer: Scorer) -> Terms:
    """Return the terms of ``scorer``, with missing values sent where their replacement goes."""
    terms, fill = _terms(scorer), _fill(scorer)
    if fill is None:
        return terms
    return replace(terms, trees=tuple(replace(tree, missing_left=fill[tree.feature] <= tree.threshold) for tree in terms.trees))


@singledispatch
def _terms(scorer: Scorer) -> Terms:
    """Return the terms of (1) that ``scorer`` adds up, without regard to a replacement of missing values."""
    raise IncompatibleError(
        f"a scorer of kind {scorer.kind!r} cannot be exported; export one of linear, network, deep, thresholds, trees or sum"
    )


@_terms.register
def _linear(scorer: Linear) -> Terms:
    constant = 0.0 if scorer.offset is None else -float(np.sum(scorer.weights * scorer.offset))
    return Terms(constant, scorer.weights)


@_terms.register
def _network(scorer: Network) -> Terms:
    weights, mean = scorer.weights / scorer.scale, scorer.mean + (0.0 if scorer.offset is None else scorer.offset)
    return Terms(units=HiddenUnits(weights, scorer.bias - np.sum(weights * mean, axis=1), scorer.output))


@_terms.register
def _deep(scorer: Deep) -> Terms:
    offset = np.zeros(scorer.n_features) if scorer.offset is None else scorer.offset
    return Terms(nets=tuple(DeepTerm(net, net.weight, offset) for net in scorer.nets))


@_terms.register
def _thresholds(scorer: Thresholds) -> Terms:
    offset = np.zeros(scorer.n_features) if scorer.offset is None else scorer.offset
    steps = zip(scorer.thresholds, scorer.jumps, offset, strict=True)
    trees = (_step_tree(j, sum_rounded_down(at, np.full(len(at), by)), jumps) for j, (at, jumps, by) in enumerate(steps) if len(at))
    return Terms(trees=tuple(trees))


def _step_tree(feature: int, thresholds: Floats, jumps: Floats) -> Tree:
    """Return the step function of a feature as a tree of least depth; its leaves are the levels, from the lowest up."""
    left, right = np.empty(len(thresholds), np.int64), np.empty(len(thresholds), np.int64)
    order: list[int] = []  # the threshold of each node

    def grow(first: int, last: int) -> int:
        if first == last:
            return ~first
        order.append(middle := (first + last) // 2)
        node = len(order) - 1
        left[node], right[node] = grow(first, middle), grow(middle + 1, last)
        return node

    grow(0, len(thresholds))
    threshold = thresholds[order]
    return Tree(np.full(len(threshold), feature), threshold, left, right, threshold >= 0, np.concatenate([[0.0], np.cumsum(jumps)]))


@_terms.register
def _trees(scorer: TreeEnsemble) -> Terms:
    table = scorer.table
    if np.any(table.decision & (CATEGORICAL | MISSING_IS_ZERO)):
        which = "a categorical split" if np.any(table.decision & CATEGORICAL) else "zeros that count as missing"
        named = sorted({scorer.feature_names[j] for j in table.feature[(table.decision & CATEGORICAL) > 0]} if scorer.feature_names else ())
        without = f" {name_list(list(map(repr, named)))}" if named else ""
        columns = ", or with a column of 0 and 1 for each level" if scorer.levels else ""
        raise IncompatibleError(
            f"the trees have {which}, which only --to lightgbm can write; export to that, or train without{without}{columns}"
        )
    nan_is_missing, to_left = (table.decision & MISSING_IS_NAN) > 0, (table.decision & MISSING_LEFT) > 0
    missing_left = np.where(nan_is_missing, to_left, table.threshold >= 0)
    if len(table.shrinkage) == 0:
        return Terms()
    feature, left, right = (values.astype(np.int64) for values in (table.feature, table.left, table.right))
    nodes, cuts = (feature, _comparable(table.threshold), left, right, missing_left), table.start[1:-1]
    leaves = np.split(table.leaf_value, cuts + np.arange(1, len(cuts) + 1))
    return Terms(trees=tuple(Tree(*arrays) for arrays in zip(*(np.split(values, cuts) for values in nodes), leaves, strict=True)))


def _comparable(thresholds: Floats) -> Floats:
    """Return thresholds for which (2) holds: LightGBM treats values up to 1e-35 as 0, and infinity sends every present value left."""
    apart = np.where(np.abs(thresholds) <= ZERO, np.where(thresholds >= 0, ZERO, np.nextafter(-ZERO, -np.inf)), thresholds)
    return np.clip(apart, np.finfo(np.float64).min, np.finfo(np.float32).max)


@_terms.register
def _sum(scorer: Sum) -> Terms:
    parts = [(_filled_terms(part), weight) for part, weight in zip(scorer.parts, scorer.weights.tolist(), strict=True)]
    linear = [weight * part.linear for part, weight in parts if part.linear is not None]
    units = [replace(part.units, output=weight * part.units.output) for part, weight in parts if part.units is not None]
    constants = [weight * part.constant for part, weight in parts]
    return Terms(
        math.fsum(constants) if np.isfinite(np.sum(constants)) else math.nan,  # which `Plain` refuses
        np.sum(linear, axis=0) if linear else None,
        HiddenUnits(*(np.concatenate(arrays) for arrays in zip(*(vars(part).values() for part in units), strict=True))) if units else None,
        tuple(replace(tree, leaf=weight * tree.leaf) for part, weight in parts for tree in part.trees),
        tuple(replace(net, weight=weight * net.weight) for part, weight in parts for net in part.nets),
    )
