"""The linear scorer: a weight a feature.

    s(x) = sum_j w_j x_j                                                                                        (1)

A ranking does not change when all weights are multiplied by one positive number, and there is no intercept: adding the
same number to all scores would not change it either. So a model of features that were kept as differences from an offset goes on
reading them so, and adds up small numbers: x_j in (1) is the feature less ``offset[j]``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import Matrix, PerDocument
from exactrank.data.precision import Offset
from exactrank.data.ranking_data import RankingData
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
from exactrank.scorers.missing import Missing, PerFeature, fill_values
from exactrank.stored import storable
from exactrank.threads import thread_count


@storable
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
    offset: Offset | None = None

    kind: ClassVar[str] = "linear"

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", numbers("weights", self.weights))
        object.__setattr__(self, "feature_names", tuple(self.feature_names))
        check_names(self.feature_names, self.n_features)
        object.__setattr__(self, "fill", checked_fill(self.missing, None if self.missing == "zero" else self.fill, self.n_features))
        object.__setattr__(self, "offset", checked_offset(self.offset, self.n_features))

    @classmethod
    def for_data(cls, data: RankingData, weights: npt.ArrayLike, missing: Missing = "error") -> "Linear":
        """Weights for the features of ``data``, whose means stand for missing values under ``missing="mean"``."""
        fill = fill_values(data.X, data.feature_names, missing, offset=data.offset)
        return cls(np.asarray(weights), data.feature_names, missing, fill, data.offset)

    @classmethod
    def averaged(cls, scorers: "Sequence[Linear]") -> "Linear":
        """The scorer with the mean weights, taken one after the other."""
        weights = np.zeros(scorers[0].n_features)
        for number, scorer in enumerate(scorers, 1):
            weights = weights + (scorer.weights - weights) / number
        return replace(scorers[0], weights=weights)

    @property
    def n_features(self) -> int:
        """How many features it reads."""
        return len(self.weights)

    def score(self, X: Matrix, threads: int | None = None, offset: Offset | None = None) -> PerDocument:
        """The score of each row of features, (1), which are ``X`` plus ``offset``."""
        check_width(X, self.n_features)
        count, shift = thread_count(threads), shift_between(offset, self.offset)

        def scored(matrix: Matrix) -> PerDocument:
            scores = _core.linear_scores(matrix, self.weights, count)
            return scores if shift is None else np.asarray(scores + self.weights @ shift)

        return scores_of(X, self.feature_names, self.fill, threads, scored, offset)

    def anchored(self, offset: Offset | None) -> "Linear":
        """The scorer of whole features that scores as this one does their differences from ``offset``."""
        return replace(self, offset=offset)

    def to_record(self) -> dict[str, Any]:
        """Itself as JSON values: weights and fill values by name, or lists where features have none."""
        record: dict[str, Any] = {"kind": self.kind, "missing": self.missing, "weights": by_name(self.feature_names, self.weights)}
        return record | optional(self.feature_names, fill=self.fill if self.missing == "mean" else None, offset=self.offset)

    @classmethod
    def from_record(cls, record: Mapping[str, Any], where: str) -> "Linear":
        """The scorer that `to_record` described; errors name ``where`` it was read."""
        names, weights = read_numbers(record.get("weights"), f"{where}: weights")
        fill, offset = (read_optional(record, key, names, where) for key in ("fill", "offset"))
        try:
            return cls(weights, names, record.get("missing", "error"), fill, offset)
        except DataError as error:
            raise DataError(f"{where}: {error}") from None
