"""ONNX graphs as exactrank exports them: trees, weighted features, hidden units, and their sums.

A graph is read, not run: node by node, from the input to the score, it is translated into these parts. Anything that our exports do not
contain is refused: other operators, several inputs or outputs, other rules of comparison or of adding up, numbers in other files.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from exactrank import __version__
from exactrank.data.frame import library
from exactrank.errors import DataError
from exactrank.imports.content import DAMAGED, Budget, Content, Reader
from exactrank.scorers.base import Scorer
from exactrank.scorers.linear import Linear
from exactrank.scorers.model import Model
from exactrank.scorers.network import Network
from exactrank.scorers.plain_tree import PlainTree, table_of
from exactrank.scorers.sum import Sum
from exactrank.scorers.tree_ensemble import TreeEnsemble

DOMAIN = "ai.onnx.ml"
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
T = TypeVar("T")
A = TypeVar("A", bound=npt.NDArray[Any])
_FOREIGN = "only graphs that exactrank exported can be read; load the model that the graph was made from"


@dataclass(frozen=True, eq=False)
class _Rows:
    """The input, with missing values replaced by ``fill``; None if they stay."""

    fill: Floats | None = None


@dataclass(frozen=True, eq=False)
class _Sums:
    """``rows`` times ``weights``, plus ``bias``: one column of weights per sum."""

    rows: _Rows
    weights: Floats
    bias: Floats
    bent: bool = False  #: by tanh


@dataclass(frozen=True, eq=False)
class _Score:
    """Parts and a constant that are added up."""

    parts: tuple[_Sums | tuple[_Sums, Floats] | list[PlainTree], ...] = ()
    constant: float = 0.0


class _IsNaN:
    """Where the input is missing."""


def read(content: Content) -> Model:
    """The model of a file."""
    onnx = library("onnx", "ONNX files", "onnx")
    try:
        model = onnx.load_from_string(content.data)
    except library("google.protobuf.message", "ONNX files", "onnx").DecodeError:
        raise DataError(f"it is not an ONNX file, or an incomplete one; {DAMAGED}") from None
    graph, known = model.graph, {one.key: one.value for one in model.metadata_props if isinstance(one.value, str)}  # bytes are damaged text
    if len(graph.input) != 1 or len(graph.output) != 1 or model.functions or graph.sparse_initializer:
        raise DataError(f"the graph has {len(graph.input)} inputs and {len(graph.output)} outputs, or functions of its own; {_FOREIGN}")
    shape = graph.input[0].type.tensor_type.shape.dim
    n_features = shape[1].dim_value if len(shape) == 2 else 0
    if n_features <= 0:
        raise DataError(f"the input has {n_features:,} columns, expected at least one feature; {_FOREIGN}")
    content.budget.spend("features", n_features, "the input")
    with np.errstate(invalid="ignore"):  # NaN is found later
        score = _Walk(onnx, graph, n_features, content.budget).score()
    names = tuple(_listed(known, "features", str, n_features) or ())
    offset = _listed(known, "offset", float, n_features)
    scorer = _scorer(score, n_features, names, None if offset is None else np.array(offset, np.float64), content.budget)
    return Model(scorer, measure=known.get("measure"), library=known.get("exactrank", __version__))


class _Walk:
    """From the input of a graph to its score, node by node; each operator is a method that gets its translated inputs."""

    def __init__(self, onnx: Any, graph: Any, n_features: int, budget: Budget) -> None:
        self.onnx, self.graph, self.n_features, self.budget = onnx, graph, n_features, budget
        self.known: dict[str, Any] = {one.name: _array(onnx, one) for one in graph.initializer} | {graph.input[0].name: _Rows()}

    def score(self) -> _Score:
        """What the output is."""
        for node in self.graph.node:
            operator, inputs = _OPERATORS.get((node.domain, node.op_type, len(node.input))), list(node.input)
            if operator is None:
                raise DataError(f"the graph has the operator {node.op_type[:40]!r} with {len(inputs)} inputs; {_FOREIGN}")
            unknown = next((name for name in inputs if name not in self.known), None)
            if unknown is not None:
                raise DataError(f"{node.op_type} reads {unknown[:40]!r}, which no earlier node produces; {DAMAGED}")
            if len(node.output) != 1 or node.output[0] in self.known:
                raise DataError(f"{node.op_type} does not produce one result, or one that already exists; {DAMAGED}")
            attributes = _Attributes(self.onnx, node)
            result = self.known[node.output[0]] = operator(self, attributes, *(self.known[name] for name in inputs))
            attributes.done()
            self.budget.spend("numbers", _length(result), f"{node.op_type} for {node.output[0][:40]!r}")
        return _as_score(self.known.get(self.graph.output[0].name), "the output")

    def is_nan(self, _: "_Attributes", rows: Any) -> _IsNaN:
        """Where the input is missing."""
        _of(rows, _Rows, "IsNaN")
        return _IsNaN()

    def where(self, _: "_Attributes", hole: Any, fill: Any, rows: Any) -> _Rows:
        """The input, filled."""
        _of(hole, _IsNaN, "Where")
        return replace(_of(rows, _Rows, "Where"), fill=_shaped(fill, (self.n_features,), "Where"))

    def mat_mul(self, _: "_Attributes", left: Any, weights: Any) -> _Sums | _Score:
        """Sums of features, or of hidden units."""
        if isinstance(left, _Sums) and left.bent:
            return _Score(((left, _shaped(weights, (left.weights.shape[1], 1), "MatMul")[:, 0]),))
        matrix = _shaped(weights, (self.n_features, *(np.shape(weights)[1:2] or (1,))), "MatMul")
        return _Sums(_of(left, _Rows, "MatMul"), matrix, np.zeros(matrix.shape[1]))

    def tanh(self, _: "_Attributes", sums: Any) -> _Sums:
        """Hidden units."""
        return replace(_of(sums, _Sums, "Tanh"), bent=True)

    def add(self, _: "_Attributes", left: Any, right: Any) -> _Sums | _Score:
        """The bias of hidden units, a constant, or another part of the score."""
        if isinstance(left, _Sums) and isinstance(right, np.ndarray) and not left.bent:
            return replace(left, bias=left.bias + _shaped(right, left.bias.shape, "Add"))
        ours = _as_score(left, "Add")
        if isinstance(right, np.ndarray):
            return replace(ours, constant=ours.constant + float(_shaped(right, (1,), "Add")[0]))
        theirs = _as_score(right, "Add")
        return _Score(ours.parts + theirs.parts, ours.constant + theirs.constant)

    def cast(self, given: "_Attributes", score: Any) -> _Score:
        """The same in another type: an older operator returns floats."""
        given.require(to=self.onnx.TensorProto.DOUBLE)
        return _as_score(score, "Cast")

    def ensemble(self, given: "_Attributes", rows: Any) -> _Score:
        """Trees, in version 5."""
        return self._trees(rows, _ensemble(given))

    def regressor(self, given: "_Attributes", rows: Any) -> _Score:
        """Trees, in earlier versions."""
        return self._trees(rows, _regressor(given))

    def _trees(self, rows: Any, trees: list[PlainTree]) -> _Score:
        if _of(rows, _Rows, "the trees").fill is not None:
            raise DataError(f"missing values are filled in before the trees; {_FOREIGN}")
        return _Score((trees,))


#: By domain, name, and number of inputs.
_OPERATORS: dict[tuple[str, str, int], Callable[..., Any]] = {
    ("", "IsNaN", 1): _Walk.is_nan,
    ("", "Where", 3): _Walk.where,
    ("", "MatMul", 2): _Walk.mat_mul,
    ("", "Tanh", 1): _Walk.tanh,
    ("", "Add", 2): _Walk.add,
    ("", "Cast", 1): _Walk.cast,
    (DOMAIN, "TreeEnsemble", 1): _Walk.ensemble,
    (DOMAIN, "TreeEnsembleRegressor", 1): _Walk.regressor,
}


class _Attributes:
    """The attributes of a node, by name, each checked; any that is left over is foreign."""

    def __init__(self, onnx: Any, node: Any) -> None:
        self.onnx, self.operator, self.left = onnx, node.op_type, {one.name: one for one in node.attribute}

    def require(self, **expected: Any) -> None:
        """Raise unless these have the values of our exports, or are absent."""
        for name, value in expected.items():
            if name in self.left and self.onnx.helper.get_attribute_value(self.left.pop(name)) not in (value, str(value).encode()):
                raise DataError(f"{name} of {self.operator} is not {value}; {_FOREIGN}")

    def integers(self, name: str, size: int, most: float = np.inf) -> Ints:
        """``size`` integers, from 0 to ``most``."""
        return self._checked(name, np.array(self.left.pop(name).ints if name in self.left else [], np.int64), size, most)

    def numbers(self, name: str, size: int) -> Floats:
        """``size`` numbers, as a tensor or as floats."""
        one = self.left.pop(f"{name}_as_tensor", None) or self.left.pop(name, None)
        found = np.empty(0) if one is None else _array(self.onnx, one.t) if one.HasField("t") else np.array(one.floats, np.float64)
        return self._checked(name, found, size, np.inf, -np.inf)

    def count(self, name: str) -> int:
        """The number of integers or words."""
        return max(len(self.left[name].ints), len(self.left[name].strings)) if name in self.left else 0

    def words(self, name: str, size: int, known: tuple[bytes, ...]) -> npt.NDArray[Any]:
        """``size`` words, all of them ``known``."""
        words = [bytes(word) for word in self.left.pop(name).strings] if name in self.left else []
        if not set(words) <= set(known):  # one long word would make an array of long ones
            raise DataError(f"the nodes of {self.operator} compare in another way than in our exports; {_FOREIGN}")
        return self._checked(name, np.array(words), size)

    def done(self) -> None:
        """Raise if any are left."""
        if self.left:
            raise DataError(f"{self.operator} has the attribute {next(iter(self.left))[:40]!r}; {_FOREIGN}")

    def _checked(self, name: str, found: A, size: int, most: float | None = None, least: float = 0) -> A:
        if found.shape != (size,) or (most is not None and np.any((found < least) | (found > most))):
            raise DataError(f"{name} of {self.operator} has {found.size} values instead of {size}, or some out of range; {DAMAGED}")
        return found


def _ensemble(given: _Attributes) -> list[PlainTree]:
    """All nodes have one numbering, of which each tree has a range, and all leaves another.

    In a tree of n nodes, the leaf that is the left child of node i gets the number n + i, and the right child 2n + i.
    """
    given.require(n_targets=1, aggregate_function=1, post_transform=0)
    n_nodes, n_leaves = given.count("nodes_featureids"), given.count("leaf_targetids")
    roots = given.integers("tree_roots", given.count("tree_roots"), n_nodes - 1)
    feature, threshold = given.integers("nodes_featureids", n_nodes), given.numbers("nodes_splits", n_nodes)
    missing = given.integers("nodes_missing_value_tracks_true", n_nodes, 1) > 0
    given.integers("leaf_targetids", n_leaves, 0)
    weights, sizes = given.numbers("leaf_weights", n_leaves), np.diff(roots, append=n_nodes)
    if np.any(given.numbers("nodes_modes", n_nodes)) or not n_leaves or not len(roots) or roots[0] != 0 or np.any(sizes <= 0):
        raise DataError(f"the nodes of {given.operator} compare in another way than in our exports, or are in another order; {_FOREIGN}")
    first, size = np.repeat(roots, sizes), np.repeat(sizes, sizes)
    children, values, ends = [], [], []
    for side, name in ((1, "true"), (2, "false")):
        ends.append(given.integers(f"nodes_{name}leafs", n_nodes, 1) > 0)
        child = given.integers(f"nodes_{name}nodeids", n_nodes)
        if np.any(child >= np.where(ends[-1], n_leaves, n_nodes)):
            raise DataError(f"nodes_{name}nodeids of TreeEnsemble refer to missing nodes or leaves; {DAMAGED}")
        values.append(np.where(ends[-1], weights[np.where(ends[-1], child, 0)], 0.0))
        children.append(np.where(ends[-1], side * size + np.arange(n_nodes) - first, child - first))
    alone = (size == 1) & ends[0] & ends[1] & (values[0] == values[1])  # how a tree of one leaf is written
    found = []
    for start, length in zip(roots.tolist(), sizes.tolist(), strict=True):
        own, none = slice(start, start + length), np.full(2 * length, -1)
        value = np.concatenate([np.zeros(length), *(each[own] for each in values)])
        columns = *(np.append(each[own], none) for each in (feature, threshold, *children)), value, np.append(missing[own], none > 0)
        found.append(_leaf(value[-1]) if alone[start] else PlainTree(*columns))
    return found


def _regressor(given: _Attributes) -> list[PlainTree]:
    """The nodes and leaves of a tree have one numbering."""
    given.require(n_targets=1, aggregate_function="SUM", post_transform="NONE")
    size, leaves = given.count("nodes_treeids"), given.count("target_ids")
    tree, node = given.integers("nodes_treeids", size), given.integers("nodes_nodeids", size)
    feature, threshold = given.integers("nodes_featureids", size), given.numbers("nodes_values", size)
    modes = given.words("nodes_modes", size, (b"BRANCH_LEQ", b"LEAF"))
    left, right = given.integers("nodes_truenodeids", size), given.integers("nodes_falsenodeids", size)
    missing = given.integers("nodes_missing_value_tracks_true", size, 1) > 0
    given.integers("target_ids", leaves, 0)
    starts = np.flatnonzero(np.diff(tree, prepend=-1))
    sizes = np.diff(starts, append=size)
    order = np.repeat(np.arange(len(starts)), sizes), np.arange(size) - np.repeat(starts, sizes)
    if not np.array_equal((tree, node), order):
        raise DataError(f"the nodes of {given.operator} are in another order than in our exports; {_FOREIGN}")
    owner, place = given.integers("target_treeids", leaves, len(starts) - 1), given.integers("target_nodeids", leaves)
    ends, value = modes == b"LEAF", np.zeros(size)
    if np.any(place >= sizes[owner]) or not np.array_equal(starts[owner] + place, np.flatnonzero(ends)):
        raise DataError(f"the leaves of TreeEnsembleRegressor are not the nodes that have values; {DAMAGED}")
    value[ends] = given.numbers("target_weights", leaves)
    columns = feature, threshold, np.where(ends, -1, left), np.where(ends, -1, right), value, missing
    return [PlainTree(*own) for own in zip(*(np.split(each, starts[1:]) for each in columns), strict=True)]


def _leaf(value: float) -> PlainTree:
    """A tree that gives all rows the same value."""
    return PlainTree(np.zeros(1, np.int64), np.zeros(1), np.array([-1]), np.array([-1]), np.array([value]), np.zeros(1, bool))


def _scorer(score: _Score, n_features: int, names: tuple[str, ...], offset: Floats | None, budget: Budget) -> Scorer:
    """The scorer made of the parts; a constant is a tree with one leaf."""
    parts: list[Scorer] = []
    trees, constant, zeros = list[PlainTree](), score.constant, np.zeros(n_features)
    budget.spend("parts", len(score.parts), "the score")
    for part in score.parts:
        if isinstance(part, list):
            budget.spend("nodes", sum(len(tree.left) for tree in part), "the score")
            trees += part
            continue
        sums, output = part if isinstance(part, tuple) else (part, None)
        budget.spend("numbers", sums.weights.size + 8 * n_features, "the score")
        fill = sums.rows.fill
        missing: Any = "error" if fill is None else "mean" if np.any(fill) else "zero"
        common = {"feature_names": names, "missing": missing, "fill": fill, "offset": offset}
        if output is not None:
            mean = zeros if offset is None else -offset
            parts.append(Network(sums.weights.T, sums.bias, output, mean, np.ones(n_features), **common))
        else:  # of differences from the offset
            parts.append(Linear(sums.weights[:, 0], **common))
            constant += float(sums.bias[0]) + (0.0 if offset is None else float(np.sum(sums.weights[:, 0] * offset)))
    trees += [_leaf(constant)] if constant else []
    if trees:
        parts.append(TreeEnsemble(table_of(trees, n_features), names, offset=offset))
    if not parts:
        raise DataError(f"the score does not depend on the features; {_FOREIGN}")
    return parts[0] if len(parts) == 1 else Sum(tuple(parts), np.ones(len(parts)))


def _length(value: Any) -> int:
    """How many numbers or parts an operator has put together."""
    return len(value.bias) if isinstance(value, _Sums) else len(value.parts) if isinstance(value, _Score) else 0


def _as_score(found: Any, where: str) -> _Score:
    if isinstance(found, _Sums) and not found.bent and found.weights.shape[1] == 1:
        return _Score((found,))
    return _of(found, _Score, where)


def _of(found: Any, kind: type[T], where: str) -> T:
    if not isinstance(found, kind):
        raise DataError(f"{where} differs from our exports; {_FOREIGN}")
    return found


def _shaped(found: Any, shape: tuple[int, ...], where: str) -> Floats:
    """The constant ``found``, checked to have that shape."""
    if np.shape(_of(found, np.ndarray, where)) != shape or len(shape) > 2:
        raise DataError(f"{where} has a constant of shape {np.shape(found)}, expected {shape}; {DAMAGED}")
    return np.asarray(found, np.float64)


def _array(onnx: Any, tensor: Any) -> npt.NDArray[np.float64]:
    """The numbers of a tensor, which must be in the file itself."""
    if tensor.external_data or tensor.data_location:
        raise DataError(f"the numbers of {tensor.name[:40]!r} are in another file; {_FOREIGN}")
    if tensor.data_type not in (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.UINT8):
        raise DataError(f"{tensor.name[:40]!r} has numbers that are neither double nor float; {_FOREIGN}")
    try:
        return np.asarray(onnx.numpy_helper.to_array(tensor), np.float64)
    except (ValueError, TypeError):
        raise DataError(f"{tensor.name[:40]!r} does not have as many numbers as it declares; {DAMAGED}") from None


def _listed(known: dict[str, str], key: str, kind: type, size: int) -> list[Any] | None:
    """The JSON list in the metadata under ``key``; None if there is none."""
    if key not in known:
        return None
    try:
        found = json.loads(known[key])
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or len(found) != size or not all(type(one) is kind for one in found):
        raise DataError(f"the metadata have {known[key][:40]!r} for {key!r}, which is not a list of {size}; {DAMAGED}")
    return found


READER = Reader(lambda content: content.data[:1] == b"\x08", read)
