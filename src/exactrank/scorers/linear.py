"""The linear scorer: a weight a feature.

    s(x) = sum_j w_j x_j                                                                                        (1)

A ranking does not change when all weights are multiplied by one positive number, and there is no intercept: adding the
same number to all scores would not change it either.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import Matrix, PerDocument
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError, IncompatibleError
from exactrank.scorers.missing import ROWS_PER_BLOCK, Missing, PerFeature, check_policy, fill_values, filled, refuse_missing
from exactrank.threads import thread_count


@dataclass(frozen=True, eq=False)
class Linear:
    """A weight a feature, (1); ``feature_names=()`` knows the features by position.

    ``missing`` says what NaN is worth: an error, 0, or the value in ``fill``, the feature's mean over the training data.

    >>> Linear(np.array([2.0, -1.0]), ("bm25", "length")).score(np.array([[3.0, 1.0]], np.float32))
    array([5.])
    """

    weights: PerFeature
    feature_names: tuple[str, ...] = ()
    missing: Missing = "error"
    fill: PerFeature | None = None

    kind: ClassVar[str] = "linear"

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", _numbers("weights", self.weights))
        object.__setattr__(self, "feature_names", tuple(self.feature_names))
        self._check_names()
        check_policy(self.missing)
        if self.missing == "zero":
            object.__setattr__(self, "fill", np.zeros(self.n_features))
        if (self.fill is None) != (self.missing == "error"):
            raise DataError(f"missing={self.missing!r} {'needs' if self.fill is None else 'has no'} fill values, one a feature")
        if self.fill is not None:
            object.__setattr__(self, "fill", _numbers("fill", self.fill))
            if len(self.fill) != self.n_features:
                raise DataError(f"fill has {len(self.fill)} values for {self.n_features} features; give one a feature")

    def _check_names(self) -> None:
        names = self.feature_names
        if names and len(names) != self.n_features:
            raise DataError(f"there are {self.n_features} weights for {len(names)} features; give one a feature")
        twice = next((name for j, name in enumerate(names) if name in names[:j]), None) if len(set(names)) < len(names) else None
        if twice is not None:
            raise DataError(f"two features are called {twice!r}; weights are matched by name, so give each its own")

    @classmethod
    def for_data(cls, data: RankingData, weights: npt.ArrayLike, missing: Missing = "error") -> "Linear":
        """Weights for the features of ``data``, whose means stand for missing values under ``missing="mean"``."""
        return cls(np.asarray(weights), data.feature_names, missing, fill_values(data.X, data.feature_names, missing))

    @property
    def n_features(self) -> int:
        """How many features it reads."""
        return len(self.weights)

    def score(self, X: Matrix, threads: int | None = None) -> PerDocument:
        """The score of each row of ``X``, (1)."""
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise IncompatibleError(f"X has shape {X.shape} but there are {self.n_features} weights; give one column a weight")
        matrix = np.ascontiguousarray(X, np.float32)
        scores = self._scored(matrix, threads)
        holes = np.flatnonzero(np.isnan(scores))  # NaN times any weight is NaN, so these are the rows with missing values
        if len(holes):
            if self.fill is None:
                refuse_missing(matrix, self.feature_names, threads)
            for rows in np.split(holes, range(ROWS_PER_BLOCK, len(holes), ROWS_PER_BLOCK)):
                scores[rows] = self._scored(filled(matrix[rows], self.fill), threads)
        if not np.all(np.isfinite(scores)):
            raise DataError(f"the score of row {np.argmin(np.isfinite(scores))} overflows; scale weights or features down")
        return scores

    def _scored(self, matrix: Matrix, threads: int | None) -> PerDocument:
        return _core.linear_scores(matrix, self.weights, thread_count(threads))

    def to_record(self) -> dict[str, Any]:
        """Itself as JSON values: weights and fill values by name, or lists where features have none."""
        record: dict[str, Any] = {"kind": self.kind, "missing": self.missing, "weights": self._by_name(self.weights)}
        return record | ({"fill": self._by_name(self.fill)} if self.missing == "mean" and self.fill is not None else {})

    @classmethod
    def from_record(cls, record: Mapping[str, Any], where: str) -> "Linear":
        """The scorer that `to_record` described; errors name ``where`` it was read."""
        names, weights = _read_numbers(record.get("weights"), f"{where}: weights")
        fill = None
        if record.get("fill") is not None:
            fill_names, fill = _read_numbers(record["fill"], f"{where}: fill")
            if fill_names != names:
                raise DataError(f"{where}: weights and fill are of different features; write the model again")
        try:
            return cls(weights, names, record.get("missing", "error"), fill)
        except DataError as error:
            raise DataError(f"{where}: {error}") from None

    def _by_name(self, values: PerFeature) -> Any:
        return dict(zip(self.feature_names, values.tolist(), strict=True)) if self.feature_names else values.tolist()


def _numbers(name: str, values: npt.ArrayLike) -> PerFeature:
    numbers = np.array(values, np.float64)
    if numbers.ndim != 1 or len(numbers) == 0:
        raise DataError(f"{name} must be a list of at least one number, got shape {numbers.shape}")
    if not np.all(np.isfinite(numbers)):
        raise DataError(f"{name}[{np.argmin(np.isfinite(numbers))}] is {numbers[np.argmin(np.isfinite(numbers))]}; give finite numbers")
    numbers.flags.writeable = False
    return numbers


def _read_numbers(given: Any, where: str) -> tuple[tuple[str, ...], PerFeature]:
    """Names and numbers from ``{"name": number}``, or numbers alone from a list."""
    if not isinstance(given, dict | list) or not given:
        raise DataError(f'{where}: expected numbers by feature name, {{"bm25": 0.5, ...}}, or a list of numbers')
    pairs = given.items() if isinstance(given, dict) else enumerate(given)
    for key, value in pairs:
        if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
            raise DataError(f"{where}: {key!r} has the value {value!r}; expected a finite number")
    names, values = (tuple(given), given.values()) if isinstance(given, dict) else ((), given)
    return names, np.array([float(value) for value in values])


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False
