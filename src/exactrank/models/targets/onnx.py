"""ONNX: a graph for ONNX Runtime and everything that serves such graphs: Vespa, Triton, browsers, any language.

The input ``x`` has one row per document and one column per feature, the output ``score`` one number per document. With x' for x whose
missing values are filled, the score is

    MatMul(x', w)  +  MatMul(Tanh(MatMul(x', A) + b), v)  +  nets(x')  +  TreeEnsemble(x)  +  constant,                (1)

of which a model has one or several. `TreeEnsemble` came with version 5 of the operators ai.onnx.ml. It compares and adds up in the type
of its numbers: doubles send each row where the model does, and give the same bits. `TreeEnsembleRegressor`, of the versions before, gives
floats.
"""

import json
import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from exactrank import __version__
from exactrank._support.arrays import PerDocument, group_numbers, starts_of
from exactrank._support.libraries import library
from exactrank._support.settings import setting
from exactrank.errors import IncompatibleError
from exactrank.models.deep import EPSILON, Net, trained_module
from exactrank.models.formats.onnx import properties as readable
from exactrank.models.targets.plain import DeepTerm, Plain, Tree
from exactrank.models.targets.single import rounded_down
from exactrank.models.targets.target import Rows, Target

if TYPE_CHECKING:
    from onnx import GraphProto, TensorProto

DOMAIN = "ai.onnx.ml"
OPSET = 13  #: of the operators that are not of trees
IR_VERSION = {3: 8, 4: 9, 5: 10}  #: of the file, by the version of the operators of trees: the oldest that has them
_BRANCH_LEQ, _SUM = 0, 1  # x <= threshold goes left; the leaves are added up


class Onnx(Target):
    """A graph with the input ``x`` and the output ``score``."""

    name, suffix, kinds, adds, is_text = "onnx", ".onnx", ("linear", "network", "deep", "trees"), True, False
    missing = ("zero", "mean", "keep")

    ml_opset: int = setting(default=5, at_least=3, at_most=5, help="Version of the operators ai.onnx.ml; 3 for old runtimes.")
    numbers: Literal["double", "float"] = setting(default="double", help="The type of the input, the output and everything between.")

    @property
    def precision(self) -> type[np.floating]:  # type: ignore[override]
        """The precision in which sums are rounded."""
        return np.float64 if self.numbers == "double" and self.ml_opset == 5 else np.float32

    def write(self, terms: Plain) -> tuple[bytes, Sequence[str]]:
        graph = _Graph(np.float64 if self.numbers == "double" else np.float32)
        self._add_scores(graph, terms)
        helper, sizes = graph.onnx.helper, {"x": len(terms.features), "score": 1}
        x, score = (helper.make_tensor_value_info(name, graph.element, ["documents", size]) for name, size in sizes.items())
        model = helper.make_model(
            helper.make_graph(graph.nodes, self.model_name, [x], [score], graph.constants),
            producer_name="exactrank",
            producer_version=__version__,
            ir_version=IR_VERSION[self.ml_opset],
            opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(DOMAIN, self.ml_opset)],
        )
        helper.set_model_props(model, _properties(terms) | readable(terms.model, model.graph))
        return model.SerializeToString(deterministic=True), self._remarks(terms)

    def scores(self, content: bytes, rows: Rows, features: Sequence[str]) -> PerDocument:
        runtime = library("onnxruntime", "scores of ONNX files", "onnx")
        options = runtime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 3
        session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        (column,) = session.run(["score"], {"x": rows.astype(np.float64 if self.numbers == "double" else np.float32)})
        return np.asarray(column[:, 0], np.float64)

    def _add_scores(self, graph: "_Graph", terms: Plain) -> None:
        """Add (1) to the graph; the output of the last node is ``score``."""
        parts, linear = [], terms.linear
        if linear is not None or terms.units is not None or terms.nets:
            filled = graph.add("Where", graph.add("IsNaN", "x"), graph.constant("fill", terms.fill), "x")
        if linear is not None:
            parts.append(graph.add("MatMul", filled, graph.constant("weights", linear[:, None])))
        if terms.units is not None:
            within = graph.add("MatMul", filled, graph.constant("unit_weights", terms.units.weights.T))
            units = graph.add("Tanh", graph.add("Add", within, graph.constant("unit_bias", terms.units.bias)))
            parts.append(graph.add("MatMul", units, graph.constant("unit_output", terms.units.output[:, None])))
        parts += [_add_net(graph, filled, net, f"net{number}_") for number, net in enumerate(terms.nets)]
        if terms.trees:
            parts.append(self._add_trees(graph, terms.trees))
        if terms.constant:
            parts.append(graph.constant("constant", np.array([terms.constant])))
        total, *rest = parts
        for part in rest:
            total = graph.add("Add", total, part)
        graph.nodes[-1].output[0] = "score"

    def _add_trees(self, graph: "_Graph", trees: Sequence[Tree]) -> str:
        if self.ml_opset == 5:
            return graph.add("TreeEnsemble", "x", domain=DOMAIN, **_ensemble(trees, graph))
        total = graph.add("TreeEnsembleRegressor", "x", domain=DOMAIN, **_regressor(trees, graph))
        return total if self.numbers == "float" else graph.add("Cast", total, to=graph.element)

    def _remarks(self, terms: Plain) -> list[str]:
        largest = math.fsum(np.abs(tree.leaf).max() for tree in terms.trees)
        half, offset, remarks = float(np.finfo(np.float32).eps) / 2, terms.model.scorer.offset, list[str]()
        if terms.trees and self.precision is np.float64:
            remarks.append(
                "with one thread (intra_op_num_threads=1) ONNX Runtime adds up the trees in the same order as the model; "
                "several threads add up many trees in another order, which changes the last digits"
            )
        if terms.trees and self.precision is np.float32:
            steps, how = (1, "rounded to") if self.numbers == "double" else (len(terms.trees) + 1, "added up in")
            remarks.append(f"the trees' sum is {how} float32: it differs from the model's by at most {steps * half * largest:.2g}")
        if self.numbers == "float" and (terms.linear is not None or terms.units is not None or terms.nets):
            remarks.append("weights are rounded to float32 and added up in float32: a relative error of 6e-08 for each")
        modules = dict.fromkeys(term.net.of for term in terms.nets if term.net.of is not None)
        remarks += [f"{module} computes in float32, as PyTorch does" for module in modules]
        if self.numbers == "float" and offset is not None and np.any(offset):
            lost = ", ".join(repr(name) for name, by in zip(terms.features, offset, strict=True) if by)
            remarks.append(f"float32 cannot distinguish values of {lost} that the model can; export with numbers='double'")
        return remarks


class _Graph:
    """Nodes and constants of a graph, whose numbers have the type ``number``."""

    def __init__(self, number: type[np.floating]) -> None:
        self.onnx, self.number, self.nodes, self.constants = library("onnx", "ONNX files", "onnx"), number, list[Any](), list[Any]()
        self.element = self.onnx.TensorProto.DOUBLE if number is np.float64 else self.onnx.TensorProto.FLOAT

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node, and return the name of its output."""
        output = f"{operator}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, [output], **attributes))
        return output

    def constant(self, name: str, values: npt.NDArray[np.float64]) -> str:
        """Add a constant, and return its name."""
        self.constants.append(self.tensor(values, name))
        return name

    def tensor(self, values: npt.NDArray[np.floating], name: str = "") -> "TensorProto":
        """Return ``values`` as an ONNX tensor."""
        tensor: TensorProto = self.onnx.numpy_helper.from_array(np.ascontiguousarray(values, self.number), name)
        return tensor

    def thresholds(self, trees: Sequence[Tree]) -> npt.NDArray[np.floating]:
        """Return the thresholds of all nodes, rounded down to ``number``."""
        exact = np.concatenate([tree.threshold for tree in trees])
        return exact if self.number is np.float64 else rounded_down(exact)


def _add_net(graph: _Graph, x: str, term: DeepTerm, name: str) -> str:
    """Add the score of a deep network: standardized features, then layers with layer norm and ReLU."""
    net = term.net
    if np.any(term.offset):
        x = graph.add("Sub", x, graph.constant(f"{name}offset", term.offset))
    if net.transform == "log1p":
        size = graph.add("Log", graph.add("Add", graph.add("Abs", x), graph.constant(f"{name}one", np.ones(1))))
        x = graph.add("Mul", graph.add("Sign", x), size)
    h = graph.add("Sub", x, graph.constant(f"{name}mean", net.tensors["mean"]))
    h = graph.add("Div", h, graph.constant(f"{name}scale", net.tensors["scale"]))
    if net.of is not None:
        return _add_module(graph, h, term, name)
    for number, (weights, *rest) in enumerate(net.layers):
        bias, gain, shift = (
            graph.constant(f"{name}{part}{number}", values) for part, values in zip(("bias", "gain", "shift"), rest, strict=True)
        )
        h = graph.add("Add", graph.add("MatMul", h, graph.constant(f"{name}weights{number}", weights.T)), bias)
        h = graph.add("Sub", h, graph.add("ReduceMean", h, axes=[1]))
        variance = graph.add("ReduceMean", graph.add("Mul", h, h), axes=[1])
        deviation = graph.add("Sqrt", graph.add("Add", variance, graph.constant(f"{name}epsilon{number}", np.array([EPSILON]))))
        h = graph.add("Relu", graph.add("Add", graph.add("Mul", graph.add("Div", h, deviation), gain), shift))
    return graph.add("MatMul", h, graph.constant(f"{name}output", term.weight * net.output[:, None]))


def _add_module(graph: _Graph, z: str, term: DeepTerm, name: str) -> str:
    """Add the score of the user's own module for standardized features ``z``, in single precision as PyTorch computes it."""
    module_graph = _module_graph(term.net, f"{name}module_", graph.add("Cast", z, to=graph.onnx.TensorProto.FLOAT))
    graph.nodes.extend(module_graph.node)
    graph.constants.extend(module_graph.initializer)
    column = graph.onnx.numpy_helper.from_array(np.array([-1, 1]), f"{name}column")
    graph.constants.append(column)
    score = graph.add("Cast", graph.add("Reshape", module_graph.output[0].name, column.name), to=graph.element)
    return graph.add("Mul", score, graph.constant(f"{name}weight", np.array([term.weight])))


def _module_graph(net: Net, prefix: str, z: str) -> "GraphProto":
    """Return the graph that PyTorch writes of the module of ``net``; its input is ``z``, and all other names begin with ``prefix``."""
    torch, onnx = library("torch", "ONNX files of modules", "torch"), library("onnx", "ONNX files", "onnx")
    module, file = trained_module(net), BytesIO()
    # Two documents, since a single one could be broadcast. The exporter by tracing writes the old operators, which all runtimes have.
    documents, axes = torch.zeros(2, net.n_features), {"z": {0: "documents"}}
    try:
        with warnings.catch_warnings(), torch.inference_mode():
            warnings.simplefilter("ignore")  # that it is deprecated, and that it makes parts of shapes constant
            torch.onnx.export(
                module, (documents,), file, input_names=["z"], output_names=["s"], dynamic_axes=axes, opset_version=OPSET, dynamo=False
            )
    except RuntimeError as error:
        raise IncompatibleError(
            f"PyTorch cannot write {net.of} as ONNX: {str(error).splitlines()[0]}; use operators that torch.onnx.export knows"
        ) from error
    graph: GraphProto = onnx.compose.add_prefix_graph(onnx.load_from_string(file.getvalue()).graph, prefix)
    for node in graph.node:
        node.input[:] = [z if name == f"{prefix}z" else name for name in node.input]
    return graph


def _ensemble(trees: Sequence[Tree], graph: _Graph) -> dict[str, object]:
    """Return the attributes of a TreeEnsemble: nodes and leaves are numbered separately; a tree begins with a node."""
    zero, leaf = np.zeros(1, np.int64), np.full(1, ~0)
    rooted = [tree if len(tree.feature) else Tree(zero, zero.astype(float), leaf, leaf, zero > 0, tree.leaf) for tree in trees]
    first_node, first_leaf = (starts_of([len(getattr(tree, part)) for tree in rooted]) for part in ("feature", "leaf"))
    firsts = zip(rooted, first_node[:-1].tolist(), first_leaf[:-1].tolist(), strict=True)
    rooted = [_renumber_leaves(tree, node, leaf) for tree, node, leaf in firsts]

    def children(side: str) -> tuple[list[int], list[int]]:
        owner = group_numbers(np.diff(first_node))
        child = np.concatenate([getattr(tree, side) for tree in rooted])
        return np.where(child < 0, first_leaf[owner] + ~child, first_node[owner] + child).tolist(), (child < 0).astype(int).tolist()

    (left, left_leaf), (right, right_leaf) = children("left"), children("right")
    return {
        "n_targets": 1,
        "aggregate_function": _SUM,
        "tree_roots": first_node[:-1].tolist(),
        "nodes_featureids": np.concatenate([tree.feature for tree in rooted]).tolist(),
        "nodes_splits": graph.tensor(graph.thresholds(rooted)),
        "nodes_modes": graph.onnx.numpy_helper.from_array(np.full(len(left), _BRANCH_LEQ, np.uint8)),
        "nodes_truenodeids": left,
        "nodes_trueleafs": left_leaf,
        "nodes_falsenodeids": right,
        "nodes_falseleafs": right_leaf,
        "nodes_missing_value_tracks_true": np.concatenate([tree.missing_left for tree in rooted]).astype(int).tolist(),
        "leaf_targetids": [0] * int(first_leaf[-1]),
        "leaf_weights": graph.tensor(np.concatenate([tree.leaf for tree in rooted])),
    }


def _renumber_leaves(tree: Tree, first_node: int, first_leaf: int) -> Tree:
    """Return the tree with its leaves renumbered if a leaf and a node below the root share a number.

    ONNX Runtime 1.21 to 1.23 reads such a tree as a single leaf.
    """
    leaf, node = sorted((int(tree.left[0]), int(tree.right[0])))
    if not leaf < 0 <= node or first_leaf + ~leaf != first_node + node:
        return tree
    left, right = (np.where(child < 0, ~((~child + 1) % len(tree.leaf)), child) for child in (tree.left, tree.right))
    return replace(tree, left=left, right=right, leaf=np.roll(tree.leaf, 1))


def _regressor(trees: Sequence[Tree], graph: _Graph) -> dict[str, object]:
    """Return the attributes of a TreeEnsembleRegressor: the nodes and leaves of a tree share a numbering, leaves come last."""
    sizes = [(len(tree.feature), len(tree.leaf)) for tree in trees]

    def with_leaves(nodes: Sequence[npt.NDArray[Any]], leaf: float) -> npt.NDArray[Any]:
        """Return one number per node and leaf: those of the nodes of each tree, and ``leaf`` for its leaves."""
        return np.concatenate([part for tree, (_, n) in zip(nodes, sizes, strict=True) for part in (tree, np.full(n, leaf))])

    def children(side: str) -> list[int]:
        sides = zip((getattr(tree, side) for tree in trees), sizes, strict=True)
        return [int(child) for child in with_leaves([np.where(child < 0, nodes + ~child, child) for child, (nodes, _) in sides], 0)]

    splits = np.split(graph.thresholds(trees), np.cumsum([nodes for nodes, _ in sizes])[:-1])
    thresholds, weights = with_leaves(splits, 0.0), np.concatenate([tree.leaf for tree in trees])
    values: dict[str, object] = {"nodes_values": thresholds.tolist(), "target_weights": weights.tolist()}
    if graph.number is np.float64:
        values = {"nodes_values_as_tensor": graph.tensor(thresholds), "target_weights_as_tensor": graph.tensor(weights)}
    return values | {
        "n_targets": 1,
        "aggregate_function": "SUM",
        "nodes_treeids": group_numbers([nodes + leaves for nodes, leaves in sizes]).tolist(),
        "nodes_nodeids": [number for nodes, leaves in sizes for number in range(nodes + leaves)],
        "nodes_modes": [mode for nodes, leaves in sizes for mode in ["BRANCH_LEQ"] * nodes + ["LEAF"] * leaves],
        "nodes_featureids": with_leaves([tree.feature for tree in trees], 0).tolist(),
        "nodes_truenodeids": children("left"),
        "nodes_falsenodeids": children("right"),
        "nodes_missing_value_tracks_true": with_leaves([tree.missing_left for tree in trees], 0).astype(int).tolist(),
        "target_treeids": group_numbers([leaves for _, leaves in sizes]).tolist(),
        "target_nodeids": [nodes + leaf for nodes, leaves in sizes for leaf in range(leaves)],
        "target_ids": [0] * len(weights),
    }


def _properties(terms: Plain) -> dict[str, str]:
    """Return the metadata of the model; lists are JSON."""
    scorer, metadata = terms.model.scorer, {"exactrank": __version__, "missing": terms.missing}
    if scorer.feature_names:
        metadata["features"] = json.dumps(scorer.feature_names)
    if terms.model.measure:
        metadata["measure"] = terms.model.measure
    if scorer.offset is not None:  # rows are differences from it where float32 could not hold the features
        metadata["offset"] = json.dumps(scorer.offset.tolist())
    return metadata
