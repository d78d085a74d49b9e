"""The linear scorer: one weight per feature.

    s(x) = sum_j w_j x_j                                                                                        (1)

A ranking does not change if all weights are multiplied by one positive number. There is no intercept, because adding the same number to
all scores does not change a ranking either. If features are stored as differences from an offset, x_j is the feature less ``offset[j]``,
and (1) adds up small numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import Matrix, PerDocument
from exactrank._support.json_values import JSONObject
from exactrank._support.numerics import dot, matmul
from exactrank._support.serialize import storable
from exactrank.data.precision import Offset
from exactrank.data.ranking_data import RankingData
from exactrank.models.base import Scorer, by_name, numbers, read_common, read_numbers
from exactrank.models.missing import Missing, PerFeature, fill_values


@storable
@dataclass(frozen=True, eq=False, repr=False)
class Linear(Scorer):
    """The scorer (1); with ``feature_names=()`` features are known by position.

    ``missing`` says how NaN is treated: as an error, as 0, or as the value in ``fill``, the feature's mean over the training data.

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
        vars(self).update(weights=numbers("weights", self.weights))
        self._settle(len(self.weights))

    @classmethod
    def for_data(cls, data: RankingData, weights: npt.ArrayLike, missing: Missing = "error") -> "Linear":
        """Return weights for the features of ``data``, whose means replace missing values with ``missing="mean"``."""
        fill = fill_values(data.X, data.feature_names, missing, offset=data.offset)
        return cls(np.asarray(weights), data.feature_names, missing, fill, data.offset)

    @classmethod
    def combine(cls, scorers: "Sequence[Linear]", weights: Sequence[float]) -> "Linear":
        return replace(scorers[0], weights=matmul(weights, [scorer.weights for scorer in scorers]))

    def to_record(self) -> JSONObject:
        return self._record(weights=by_name(self.feature_names, self.weights))

    @classmethod
    def _read(cls, record: JSONObject) -> "Linear":
        names, weights = read_numbers(record, "weights")
        return cls(weights, **read_common(record, names))

    def _scores(self, rows: Matrix, threads: int, offset: Offset | None) -> PerDocument:
        scores, shift = _core.linear_scores(rows, self.weights, threads), self._shift(offset)
        return scores if shift is None else np.asarray(scores + dot(self.weights, shift))
