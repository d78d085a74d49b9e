"""The deep scorer: networks of several layers, or the user's PyTorch modules, on transformed and standardized features.

    z_j = (t(x_j) - mean_j) / scale_j,    t(x) = sign(x) log(1 + |x|)  or  x                                     (1)
    h_0 = z,    h_l = relu(norm(W_l h_(l-1) + b_l)),    s(x) = w . h_L                                          (2)
    norm(a)_i = gain_i (a_i - mean of a) / sqrt(variance of a + 1e-5) + shift_i                                 (3)

A model of several networks, such as those of bags, is their weighted sum. (2) is computed here in double precision, without PyTorch. Rows
are computed in blocks, by one thread each: a row's score depends neither on the other rows nor on threads.

A user's module takes the place of (2). The file then holds its tensors and, for information, the name of its factory: nothing is imported
by a name in a file. Whoever loads the model passes the module, see `with_modules`.
"""

import base64
import reprlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import Floats, Matrix, PerDocument
from exactrank._support.json_values import JSONObject, JSONValue
from exactrank._support.libraries import library
from exactrank._support.numerics import log1p, matmul
from exactrank._support.serialize import storable
from exactrank.data.precision import Offset
from exactrank.errors import DataError, IncompatibleError
from exactrank.models.base import Scorer, read_common, score_by_blocks
from exactrank.models.missing import Missing, PerFeature
from exactrank.models.sum import Sum

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

Tensors = Mapping[str, npt.NDArray[Any]]
Transform = Literal["log1p", "none"]
EPSILON = 1e-5  #: of (3)
NETWORKS = "files of deep networks"  #: need safetensors
MODULE = "module."  #: prefix of the names of a module's tensors


@dataclass(frozen=True, eq=False)
class Net:
    """A network: tensors by name, and the transform of features; ``of`` names the factory of its module, unless it is (2).

    ``mean`` and ``scale`` are among the tensors; (2) has ``layers.L.linear.weight`` and ``.bias``, ``layers.L.norm.weight`` and ``.bias``,
    and ``output.weight``.
    """

    tensors: Tensors = field(repr=False)
    weight: float = 1.0
    transform: Transform = "log1p"
    of: str | None = None  #: as package.module:name
    arguments: JSONObject = field(default_factory=dict)  #: of the factory, besides the number of features
    factory: object = field(default=None, repr=False)  #: a module, or a function of the number of features and the arguments

    def __post_init__(self) -> None:
        if self.transform not in ("log1p", "none"):
            raise DataError(f'the transform is {reprlib.repr(self.transform)}; known: "log1p", "none"')
        if not isinstance(self.weight, int | float) or not abs(self.weight) <= sys.float_info.max:
            raise DataError(f"the weight of a network is {reprlib.repr(self.weight)}; expected a finite number")
        for name, values in self.tensors.items():
            if values.dtype.kind == "f" and not np.all(np.isfinite(values)):
                raise DataError(f"{name} has a number that is not finite; train with a smaller learning_rate, or copy the model again")
        mean, scale = self._tensor("mean", 1), self._tensor("scale", 1)
        if mean.shape != scale.shape or not len(mean) or not np.all(scale > 0):
            raise DataError("mean and scale must have one number per feature, scales above 0")
        if self.of is None:
            self._check_layers(len(mean))

    def _check_layers(self, width: int) -> None:
        for number in range(self.n_layers):
            weights = self._tensor(f"layers.{number}.linear.weight", 2)
            vectors = [self._tensor(f"layers.{number}.{name}", 1) for name in ("linear.bias", "norm.weight", "norm.bias")]
            if weights.shape[1] != width or not len(weights) or any(len(vector) != len(weights) for vector in vectors):
                raise DataError(
                    f"layer {number} has weights of shape {weights.shape} for {width} inputs, or other numbers of units beside them"
                )
            width = len(weights)
        if self._tensor("output.weight", 2).shape != (1, width):
            raise DataError(f"output.weight has shape {self.tensors['output.weight'].shape}, expected (1, {width})")
        if len(self.tensors) != 3 + 4 * self.n_layers:
            raise DataError(f"there are {len(self.tensors)} tensors, expected {3 + 4 * self.n_layers}; train or copy the model again")

    def _tensor(self, name: str, dimensions: int) -> Floats:
        tensor = self.tensors.get(name)
        if tensor is None or tensor.ndim != dimensions or tensor.dtype.kind != "f":
            raise DataError(f"the tensor {name} of {dimensions} dimensions is missing; train or copy the model again")
        return tensor

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.tensors["mean"])

    @cached_property
    def n_layers(self) -> int:
        """The number of hidden layers of (2)."""
        return sum(name.endswith(".linear.weight") for name in self.tensors)

    @property
    def layers(self) -> list[tuple[Floats, Floats, Floats, Floats]]:
        """Weights, biases, gains and shifts of each hidden layer."""
        names = ("linear.weight", "linear.bias", "norm.weight", "norm.bias")
        return [tuple(self.tensors[f"layers.{number}.{name}"].astype(np.float64) for name in names) for number in range(self.n_layers)]  # type: ignore[misc]

    @property
    def output(self) -> Floats:
        """The weights w of (2)."""
        return np.asarray(self.tensors["output.weight"][0], np.float64)

    def inputs(self, x: npt.NDArray[np.floating]) -> Floats:
        """Return z of (1), in double precision."""
        z = np.asarray(x, np.float64)
        if self.transform == "log1p":
            z = np.sign(z) * log1p(np.abs(z))
        return np.asarray((z - self.tensors["mean"]) / self.tensors["scale"])

    @cached_property
    def function(self) -> Callable[[Floats], Floats]:
        """The function (2) of a block of standardized rows, or the module in its place."""
        if self.of is not None:
            return _of_module(self)
        layers, output = [(weights.T.copy(), *rest) for weights, *rest in self.layers], self.output

        def scores(h: Floats) -> Floats:
            for weights, bias, gain, shift in layers:
                h = matmul(h, weights) + bias
                h -= h.mean(axis=1, keepdims=True)
                h *= gain / np.sqrt(np.square(h).mean(axis=1, keepdims=True) + EPSILON)
                h = np.maximum(h + shift, 0.0)
            return matmul(h, output)

        return scores

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "function"}

    def to_record(self) -> JSONObject:
        """Return the network as JSON values."""
        module: dict[str, JSONValue] = {} if self.of is None else {"module": self.of, "arguments": dict(self.arguments)}
        safetensors = library("safetensors", NETWORKS, "deep")
        try:
            tensors = {name: np.asarray(values, order="C") for name, values in self.tensors.items()}
            content = library("safetensors.numpy", NETWORKS, "deep").save(tensors)
        except safetensors.SafetensorError as error:  # it names the type, and the valid types
            raise DataError(f"a model file cannot hold the tensors of the network: {error}") from None
        encoded = base64.b64encode(content).decode()
        return {"weight": self.weight, "transform": self.transform, **module, "tensors": encoded}

    @classmethod
    def read(cls, record: object) -> "Net":
        """Return the network that `to_record` described."""
        entries = record if isinstance(record, dict) else {}
        of, arguments, text, weight = (entries.get(key) for key in ("module", "arguments", "tensors", "weight"))
        if (
            not isinstance(of, str | None)
            or not isinstance(arguments, dict | None)
            or not isinstance(text, str)
            or isinstance(weight, bool)
        ):
            raise DataError("nets: expected weight, transform and tensors of each network; train or copy the model again")
        try:
            content = base64.b64decode(text, validate=True)
        except ValueError:
            raise DataError("nets: the tensors are not base64; train or copy the model again") from None
        safetensors = library("safetensors", NETWORKS, "deep")
        try:
            tensors = library("safetensors.numpy", NETWORKS, "deep").load(content)
        except (safetensors.SafetensorError, KeyError, ValueError) as error:  # the last two for types and shapes that NumPy lacks
            raise DataError(f"nets: the tensors cannot be read ({error}); train or copy the model again") from None
        return cls(tensors, weight, entries.get("transform"), of, arguments or {})  # type: ignore[arg-type]


@storable
@dataclass(frozen=True, eq=False, repr=False)
class Deep(Scorer):
    """The weighted sum of ``nets``, which read the same features; with ``feature_names=()`` features are known by position."""

    nets: tuple[Net, ...]
    feature_names: tuple[str, ...] = ()
    missing: Missing = "error"
    fill: PerFeature | None = None
    offset: Offset | None = None

    kind: ClassVar[str] = "deep"

    def __post_init__(self) -> None:
        vars(self)["nets"] = tuple(self.nets)
        if not self.nets or len({net.n_features for net in self.nets}) > 1:
            raise DataError("there must be networks, all of the same number of features")
        self._settle(self.nets[0].n_features)

    @property
    def size(self) -> str:
        layers = {" x ".join(f"{len(bias):,}" for _, bias, *_ in net.layers) or "linear" if net.of is None else net.of for net in self.nets}
        return (
            f"{len(self.nets):,} networks" if len(layers) > 1 else (f"{len(self.nets):,} of " if len(self.nets) > 1 else "") + layers.pop()
        )

    @classmethod
    def combine(cls, scorers: "Sequence[Deep]", weights: Sequence[float]) -> "Deep":
        pairs = zip(scorers, weights, strict=True)
        return replace(scorers[0], nets=tuple(replace(net, weight=weight * net.weight) for scorer, weight in pairs for net in scorer.nets))

    def relative_to(self, offset: Offset | None, names: tuple[str, ...]) -> "Deep":
        shift = self._shift(offset)
        if shift is not None and any(net.transform != "none" for net in self.nets):
            raise IncompatibleError(
                "the model takes logarithms of features that are stored as differences from other values than the data's; train it anew"
            )
        nets = self.nets
        if shift is not None:
            nets = tuple(replace(net, tensors={**net.tensors, "mean": net.tensors["mean"] - shift}) for net in nets)
        return replace(self, nets=nets, offset=None, feature_names=names)

    def to_record(self) -> JSONObject:
        return self._record(features=list(self.feature_names) or self.n_features, nets=[net.to_record() for net in self.nets])

    @classmethod
    def _read(cls, record: JSONObject) -> "Deep":
        nets, features = record.get("nets"), record.get("features")
        if not isinstance(nets, list) or not nets:
            raise DataError("nets: expected a list of networks; train or copy the model again")
        if isinstance(features, bool) or not (
            isinstance(features, int) or (isinstance(features, list) and all(isinstance(n, str) for n in features))
        ):
            raise DataError("features: expected their names or their number; train or copy the model again")
        names = tuple(features) if isinstance(features, list) else ()
        scorer = cls(tuple(map(Net.read, nets)), **read_common(record, names))
        if not names and scorer.n_features != features:
            raise DataError(f"features: there are {features}, and networks of {scorer.n_features}; train or copy the model again")
        return scorer

    def _scores(self, rows: Matrix, threads: int, offset: Offset | None) -> PerDocument:
        for net in self.nets:
            net.function  # noqa: B018  (computed once, before several threads need it)

        def scores_of(block: Floats) -> PerDocument:
            return np.asarray(sum(net.weight * net.function(net.inputs(block)) for net in self.nets))

        return score_by_blocks(rows, self._shift(offset), threads, scores_of)


def trained_module(net: Net) -> "Module":
    """Return the user's module with the weights of ``net``, ready to score."""
    if net.factory is None:
        raise IncompatibleError(_missing_module(net))
    torch = library("torch", "models of modules", "torch")
    module = fresh_module(net.factory, net.n_features, net.arguments)
    states = {name.removeprefix(MODULE): torch.tensor(values) for name, values in net.tensors.items() if name.startswith(MODULE)}
    try:
        module.load_state_dict(states)
    except RuntimeError as error:
        reasons = "; ".join(line.strip() for line in str(error).splitlines()[1:])
        raise IncompatibleError(f"the module does not fit the tensors of {net.of}: {reasons}; give the module that was trained") from None
    return module.eval()


def _of_module(net: Net) -> Callable[[Floats], Floats]:
    module, torch = trained_module(net), library("torch", "models of modules", "torch")

    def scores(z: Floats) -> Floats:
        with torch.inference_mode():
            return np.asarray(flat_scores(module(torch.from_numpy(z.astype(np.float32))), len(z)).double().numpy())

    return scores


def fresh_module(factory: object, n_features: int, arguments: Mapping[str, object]) -> "Module":
    """Return the module that ``factory`` creates for this number of features, or a copy of ``factory`` if it is a module."""
    from copy import deepcopy

    torch = library("torch", "models of modules", "torch")
    if not callable(factory):
        raise IncompatibleError(f"module is {reprlib.repr(factory)}; give an nn.Module, or the function or class that makes one")
    module: Module = deepcopy(factory) if isinstance(factory, torch.nn.Module) else factory(n_features, **arguments)
    is_module: bool = isinstance(module, torch.nn.Module)
    if not is_module:
        raise IncompatibleError(
            f"module gives {reprlib.repr(module)}, which is not a torch.nn.Module; give a module or a function that makes one"
        )
    return module


def flat_scores(output: "Tensor", rows: int) -> "Tensor":
    """Return the output of a module for ``rows`` documents with one number per document; an error names its shape."""
    shape = tuple(getattr(output, "shape", ()))
    if shape not in ((rows,), (rows, 1)):
        result = f"a tensor of shape {shape}" if hasattr(output, "shape") else type(output).__name__
        raise IncompatibleError(
            f"the module gives {result} for {rows} documents; it must give one score per document: ({rows},) or ({rows}, 1)"
        )
    scores: Tensor = output.reshape(rows)
    return scores


def _missing_module(net: Net) -> str:
    name = str(net.of).rpartition(":")[2].rpartition(".")[2]
    return (
        f"the model is a module of your own, {net.of}, and code that a file names is never run;"
        f" import it yourself and give it: er.load(path, module={name}), or --module MODULE:{name} of exactrank export and predict"
    )


def with_modules(scorer: Scorer, module: object) -> Scorer:
    """Return ``scorer`` with ``module`` as the module that its file only names; several are given as a mapping by these names.

    A module is an ``nn.Module`` of the same form, whose weights are replaced, or the function that creates it.
    """
    nets = [net for part in (scorer.parts if isinstance(scorer, Sum) else (scorer,)) if isinstance(part, Deep) for net in part.nets]
    open_ = [net for net in nets if net.of is not None]
    if not open_:
        if module is not None:
            raise IncompatibleError("the model has no module of your own; leave out module")
        return scorer
    by_name: dict[str, Any] = dict(module) if isinstance(module, Mapping) else {str(net.of): module for net in open_}
    absent = next((net for net in open_ if by_name.get(str(net.of)) is None), None)
    if absent is not None:
        raise IncompatibleError(_missing_module(absent))

    def insert(part: Scorer) -> Scorer:
        if not isinstance(part, Deep):
            return part
        complete = replace(part, nets=tuple(net if net.of is None else replace(net, factory=by_name[net.of]) for net in part.nets))
        for net in complete.nets:
            net.function  # noqa: B018  (raises if the module does not fit)
        return complete

    return replace(scorer, parts=tuple(map(insert, scorer.parts))) if isinstance(scorer, Sum) else insert(scorer)
