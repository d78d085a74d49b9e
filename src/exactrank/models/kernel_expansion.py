"""The kernel scorer: how much a document is like each of some documents of the training data.

    s(x) = sum_i coefficient_i k(z_i, z),    z_j = (x_j - mean_j) / scale_j                                     (1)
    linear: k(z, z') = z . z'                rbf: k(z, z') = exp(-gamma |z - z'|^2)                             (2)

The documents are part of the model as they are in the data: x_j is the feature less ``offset[j]``, and the model takes raw features.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal, get_args

import numpy as np

from exactrank._support.arrays import Floats, Matrix, PerDocument
from exactrank._support.json_values import JSONObject
from exactrank._support.numerics import exp, matmul
from exactrank._support.serialize import storable
from exactrank.data.precision import Offset
from exactrank.errors import DataError
from exactrank.models.base import Scorer, by_name, numbers, read_common, read_numbers, read_rows, score_by_blocks
from exactrank.models.missing import Missing, PerFeature

KernelName = Literal["linear", "rbf"]


@storable
@dataclass(frozen=True, eq=False, repr=False)
class KernelExpansion(Scorer):
    """(1): ``documents`` has a row of features per coefficient; with ``feature_names=()`` features are known by position.

    >>> peak = KernelExpansion(np.array([[1.0]]), np.array([2.0]), np.array([0.0]), np.array([1.0]), "rbf", gamma=0.5)
    >>> peak.score(np.array([[1.0], [2.0], [0.0]], np.float32)).round(4)
    array([2.    , 1.2131, 1.2131])
    """

    documents: Floats  #: documents x features
    coefficients: PerDocument
    mean: PerFeature
    scale: PerFeature
    kernel: KernelName = "rbf"
    gamma: float | None = None  #: of the kernel "rbf"
    feature_names: tuple[str, ...] = ()
    missing: Missing = "error"
    fill: PerFeature | None = None
    offset: Offset | None = None

    kind: ClassVar[str] = "kernel"
    common: ClassVar[tuple[str, ...]] = (*Scorer.common, "kernel", "gamma", "mean", "scale")
    scaled: ClassVar[str] = "the coefficients"

    def __post_init__(self) -> None:
        vars(self).update({name: numbers(name, getattr(self, name)) for name in ("coefficients", "mean", "scale")})
        documents = np.array(self.documents, np.float64)
        shape = len(self.coefficients), len(self.mean)
        if documents.shape != shape or len(self.scale) != shape[1]:
            raise DataError(
                f"the documents have shape {documents.shape} for {shape[0]} coefficients, {shape[1]} means and {len(self.scale)} scales;"
                " give one row per coefficient and one column per feature"
            )
        vars(self).update(documents=numbers("documents", documents.ravel()).reshape(shape))
        if not np.all(self.scale > 0):
            raise DataError(f"scale[{np.argmin(self.scale > 0)}] is {self.scale.min()}; scales are above 0")
        if self.kernel not in get_args(KernelName):
            raise DataError(f'the kernel is {self.kernel!r}; known: "linear", "rbf"')
        if (self.gamma is not None) != (self.kernel == "rbf") or not 0 < (self.gamma or 1.0) < np.inf:
            raise DataError(f'gamma is {self.gamma}; it is a number above 0 for the kernel "rbf", and absent for "linear"')
        self._settle(shape[1])

    @property
    def size(self) -> str:
        return f"{len(self.coefficients):,} documents"

    @classmethod
    def combine(cls, scorers: "Sequence[KernelExpansion]", weights: Sequence[float]) -> "KernelExpansion":
        documents = np.concatenate([scorer.documents for scorer in scorers])
        coefficients = np.concatenate([weight * scorer.coefficients for scorer, weight in zip(scorers, weights, strict=True)])
        rows, place = np.unique(documents, axis=0, return_inverse=True)
        merged = np.bincount(place.ravel(), coefficients, len(rows)).astype(np.float64)
        return replace(scorers[0], documents=rows, coefficients=merged)

    def relative_to(self, offset: Offset | None, names: tuple[str, ...]) -> "KernelExpansion":
        shift = self._shift(offset)
        by = np.zeros(self.n_features) if shift is None else shift
        return replace(self, documents=self.documents - by, mean=self.mean - by, offset=None, feature_names=names)

    def kernels(self, X: Matrix | Floats) -> Floats:
        """Return (2) of each row of ``X``, which has the same offset, with each of the documents."""
        z = (np.asarray(X, np.float64) - self.mean) / self.scale
        products = matmul(z, self._columns_of_z)
        if self.gamma is None:
            return products
        distances = np.square(z).sum(axis=1)[:, np.newaxis] + self._sizes - 2 * products
        return exp(-self.gamma * np.maximum(distances, 0.0))

    @cached_property
    def _columns_of_z(self) -> Floats:
        """The standardized documents, a column each."""
        return np.ascontiguousarray(((self.documents - self.mean) / self.scale).T)

    @cached_property
    def _sizes(self) -> PerDocument:
        return np.asarray(np.square(self._columns_of_z.T.copy()).sum(axis=1))

    def to_record(self) -> JSONObject:
        mean, scale = by_name(self.feature_names, self.mean), by_name(self.feature_names, self.scale)
        gamma: JSONObject = {} if self.gamma is None else {"gamma": self.gamma}
        kernel: JSONObject = {"kernel": self.kernel, **gamma}
        documents, coefficients = self.documents.tolist(), self.coefficients.tolist()
        return self._record(**kernel, mean=mean, scale=scale, documents=documents, coefficients=coefficients)

    @classmethod
    def _read(cls, record: JSONObject) -> "KernelExpansion":
        (names, mean), (scale_names, scale) = (read_numbers(record, key) for key in ("mean", "scale"))
        if scale_names != names:
            raise DataError("mean and scale name different features; write the model again")
        documents, (_, coefficients) = read_rows(record, "documents", "document"), read_numbers(record, "coefficients")
        kernel, gamma = record.get("kernel"), record.get("gamma")
        if gamma is not None:
            gamma = float(read_numbers({"gamma": [gamma]}, "gamma")[1][0])
        return cls(documents, coefficients, mean, scale, kernel, gamma, **read_common(record, names))  # type: ignore[arg-type]  # checked there

    def _scores(self, rows: Matrix, threads: int, offset: Offset | None) -> PerDocument:
        self._sizes  # noqa: B018  (computed once, before several threads need it)
        return score_by_blocks(rows, self._shift(offset), threads, lambda block: matmul(self.kernels(block), self.coefficients))
