"""The network scorer: one hidden layer of tanh units on standardized features (Burges, Ragno & Le 2006).

    s(x) = sum_u v_u tanh(b_u + sum_j w_uj z_j),    z_j = (x_j - mean_j) / scale_j                              (1)

The standardization is part of the model, which therefore takes raw features; x_j is the feature less ``offset[j]``. There is no constant
at the end, because adding the same number to all scores does not change a ranking.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import Matrix, PerDocument
from exactrank._support.json_values import JSONObject
from exactrank._support.numerics import matmul
from exactrank._support.serialize import storable
from exactrank._support.threads import thread_count
from exactrank.data.precision import Offset
from exactrank.errors import DataError
from exactrank.models.base import Scorer, by_name, numbers, read_common, read_numbers, read_rows
from exactrank.models.missing import Missing, PerFeature

PerUnit = npt.NDArray[np.float64]  #: one number per hidden unit


@storable
@dataclass(frozen=True, eq=False, repr=False)
class Network(Scorer):
    """(1): ``weights`` has one row per hidden unit; with ``feature_names=()`` features are known by position.

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
    n_hidden: int = field(init=False, repr=False)

    kind: ClassVar[str] = "network"

    def __post_init__(self) -> None:
        vars(self).update({name: numbers(name, getattr(self, name)) for name in ("bias", "output", "mean", "scale")})
        units, features = len(self.output), len(self.mean)
        weights = np.array(self.weights, np.float64)
        if weights.shape != (units, features) or len(self.bias) != units or len(self.scale) != features:
            raise DataError(
                f"the weights have shape {weights.shape} for {units} outputs, {len(self.bias)} biases, {features} means"
                f" and {len(self.scale)} scales; give one row per unit and one column per feature"
            )
        vars(self).update(n_hidden=units, weights=numbers("weights", weights.ravel()).reshape(weights.shape))
        if not np.all(self.scale > 0):
            raise DataError(f"scale[{np.argmin(self.scale > 0)}] is {self.scale.min()}; scales are above 0")
        self._settle(features)

    @property
    def size(self) -> str:
        return f"{len(self.output):,} hidden units"

    @classmethod
    def combine(cls, scorers: "Sequence[Network]", weights: Sequence[float]) -> "Network":
        alike = [network.on_scale(scorers[0].mean, scorers[0].scale) for network in scorers]
        hidden, bias = np.concatenate([network.weights for network in alike]), np.concatenate([network.bias for network in alike])
        output = np.concatenate([weight * network.output for network, weight in zip(scorers, weights, strict=True)])
        return replace(scorers[0], weights=hidden, bias=bias, output=output)

    def relative_to(self, offset: Offset | None, names: tuple[str, ...]) -> "Network":
        shift = self._shift(offset)
        return replace(self, mean=self.mean if shift is None else self.mean - shift, offset=None, feature_names=names)

    def on_scale(self, mean: PerFeature, scale: PerFeature) -> "Network":
        """Return the network with the same scores that standardizes features by other means and scales."""
        weights, bias = self.weights * (scale / self.scale), self.bias + matmul(self.weights, (mean - self.mean) / self.scale)
        return replace(self, weights=weights, bias=bias, mean=mean, scale=scale)

    @cached_property
    def theta(self) -> npt.NDArray[np.float64]:
        """The parameters, flat: weights by feature, all units of a feature together, then ``bias``, then ``output``."""
        return np.concatenate([self.weights.T.ravel(), self.bias, self.output])

    def activations(self, X: Matrix, threads: int | None = None, offset: Offset | None = None) -> npt.NDArray[np.float64]:
        """Return the outputs of the hidden units for rows without missing values; scores are ``activations @ output``."""
        rows, net = self._rows(X, threads, offset), self._native(offset)
        return net.activations(self.theta, rows, thread_count(threads)).reshape(-1, self.n_hidden)

    def to_record(self) -> JSONObject:
        mean, scale = by_name(self.feature_names, self.mean), by_name(self.feature_names, self.scale)
        return self._record(mean=mean, scale=scale, weights=self.weights.tolist(), bias=self.bias.tolist(), output=self.output.tolist())

    @classmethod
    def _read(cls, record: JSONObject) -> "Network":
        (names, mean), (scale_names, scale) = (read_numbers(record, key) for key in ("mean", "scale"))
        if scale_names != names:
            raise DataError("mean and scale name different features; write the model again")
        bias, output = (read_numbers(record, key)[1] for key in ("bias", "output"))
        return cls(read_rows(record, "weights", "hidden unit"), bias, output, mean, scale, **read_common(record, names))

    def _scores(self, rows: Matrix, threads: int, offset: Offset | None) -> PerDocument:
        return self._native(offset).scores(self.theta, rows, threads)

    def _native(self, offset: Offset | None) -> _core.Net:
        shift = self._shift(offset)
        return _core.Net(self.mean if shift is None else self.mean - shift, self.scale, self.n_hidden)
