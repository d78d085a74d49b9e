"""The network scorer: one hidden layer of tanh units on standardised features (Burges, Ragno & Le 2006).

    s(x) = sum_u v_u tanh(b_u + sum_j w_uj z_j),    z_j = (x_j - mean_j) / scale_j                              (1)

The standardisation is part of the model, which so takes features as they come; x_j is the feature less ``offset[j]`` where it was
kept as a difference from that. There is no constant at the end: adding the
same number to all scores would not change a ranking.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import Matrix, PerDocument
from exactrank.data.precision import Offset
from exactrank.errors import DataError
from exactrank.scorers.features import (
    by_name,
    check_names,
    check_width,
    checked_fill,
    checked_offset,
    numbers,
    optional,
    read_numbers,
    read_optional,
    scores_of,
    shift_between,
)
from exactrank.scorers.missing import Missing, PerFeature
from exactrank.stored import storable
from exactrank.threads import thread_count

PerUnit = npt.NDArray[np.float64]  #: one number a hidden unit


@storable
@dataclass(frozen=True, eq=False)
class Network:
    """(1): ``weights`` has a row a hidden unit; ``feature_names=()`` knows the features by position.

    >>> net = Network(np.array([[1.0, 0.0]]), np.array([0.0]), np.array([2.0]), np.array([0.5, 0.0]), np.array([1.0, 1.0]))
    >>> net.score(np.array([[0.5, 3.0], [1.5, 3.0]], np.float32)).round(4)
    array([0.    , 1.5232])
    """

    weights: npt.NDArray[np.float64]  #: units x features
    bias: PerUnit
    output: PerUnit
    mean: PerFeature
    scale: PerFeature
    feature_names: tuple[str, ...] = ()
    missing: Missing = "error"
    fill: PerFeature | None = None
    offset: Offset | None = None

    kind: ClassVar[str] = "network"

    def __post_init__(self) -> None:
        for name in ("bias", "output", "mean", "scale"):
            object.__setattr__(self, name, numbers(name, getattr(self, name)))
        weights = np.array(self.weights, np.float64)
        if weights.shape != (self.n_hidden, self.n_features) or len(self.bias) != self.n_hidden or len(self.scale) != self.n_features:
            raise DataError(
                f"the weights have shape {weights.shape} for {self.n_hidden} outputs, {len(self.bias)} biases, {self.n_features} means"
                f" and {len(self.scale)} scales; give a row a unit and a column a feature"
            )
        object.__setattr__(self, "weights", numbers("weights", weights.ravel()).reshape(weights.shape))
        if not np.all(self.scale > 0):
            raise DataError(f"scale[{np.argmin(self.scale > 0)}] is {self.scale.min()}; scales are above 0")
        object.__setattr__(self, "feature_names", tuple(self.feature_names))
        check_names(self.feature_names, self.n_features)
        object.__setattr__(self, "fill", checked_fill(self.missing, None if self.missing == "zero" else self.fill, self.n_features))
        object.__setattr__(self, "offset", checked_offset(self.offset, self.n_features))

    @classmethod
    def averaged(cls, scorers: "Sequence[Network]") -> "Network":
        """The network of all hidden units, the output of each over the number of ``scorers``, which are standardised alike."""
        weights, bias, output = (np.concatenate([getattr(one, name) for one in scorers]) for name in ("weights", "bias", "output"))
        return replace(scorers[0], weights=weights, bias=bias, output=output / len(scorers))

    @property
    def n_features(self) -> int:
        """How many features it reads."""
        return len(self.mean)

    @property
    def n_hidden(self) -> int:
        """How many hidden units it has."""
        return len(self.output)

    @cached_property
    def theta(self) -> npt.NDArray[np.float64]:
        """The parameters, flat: weights by feature, all units of a feature together, then ``bias``, then ``output``."""
        return np.concatenate([self.weights.T.ravel(), self.bias, self.output])

    def score(self, X: Matrix, threads: int | None = None, offset: Offset | None = None) -> PerDocument:
        """The score of each row of features, (1), which are ``X`` plus ``offset``."""
        check_width(X, self.n_features)
        net, count = self._native(shift_between(offset, self.offset)), thread_count(threads)
        return scores_of(X, self.feature_names, self.fill, threads, lambda matrix: net.scores(self.theta, matrix, count), offset)

    def activations(self, X: Matrix, threads: int | None = None, offset: Offset | None = None) -> npt.NDArray[np.float64]:
        """What the hidden units say of each row, which has no missing values: scores are ``activations @ output``."""
        check_width(X, self.n_features)
        net, rows = self._native(shift_between(offset, self.offset)), np.ascontiguousarray(X, np.float32)
        return net.activations(self.theta, rows, thread_count(threads)).reshape(-1, self.n_hidden)

    def anchored(self, offset: Offset | None) -> "Network":
        """The scorer of whole features that scores as this one does their differences from ``offset``."""
        return replace(self, offset=offset)

    def to_record(self) -> dict[str, Any]:
        """Itself as JSON values: means, scales and fill values by name, or lists where features have none."""
        return {
            "kind": self.kind,
            "missing": self.missing,
            "mean": by_name(self.feature_names, self.mean),
            "scale": by_name(self.feature_names, self.scale),
            "weights": self.weights.tolist(),
            "bias": self.bias.tolist(),
            "output": self.output.tolist(),
        } | optional(self.feature_names, fill=self.fill if self.missing == "mean" else None, offset=self.offset)

    @classmethod
    def from_record(cls, record: Mapping[str, Any], where: str) -> "Network":
        """The scorer that `to_record` described; errors name ``where`` it was read."""
        names, mean = read_numbers(record.get("mean"), f"{where}: mean")
        scale_names, scale = read_numbers(record.get("scale"), f"{where}: scale")
        if scale_names != names:
            raise DataError(f"{where}: mean and scale are of different features; write the model again")
        rows = record.get("weights")
        if not isinstance(rows, list) or not rows:
            raise DataError(f"{where}: weights: expected a list of numbers for each hidden unit")
        weights = [read_numbers(row, f"{where}: weights[{u}]")[1] for u, row in enumerate(rows)]
        bias, output = (read_numbers(record.get(name), f"{where}: {name}")[1] for name in ("bias", "output"))
        if len({len(row) for row in weights}) > 1:
            raise DataError(f"{where}: weights: the hidden units have different numbers of weights; write the model again")
        fill, offset = (read_optional(record, key, names, where) for key in ("fill", "offset"))
        try:
            return cls(np.array(weights), bias, output, mean, scale, names, record.get("missing", "error"), fill, offset)
        except DataError as error:
            raise DataError(f"{where}: {error}") from None

    def _native(self, shift: Offset | None) -> _core.Net:
        """The kernels' form of it, for features that lack ``shift``."""
        return _core.Net(self.mean if shift is None else self.mean - shift, self.scale, self.n_hidden)
