"""The weighted sum of other scorers, which may be of different kinds.

    s(x) = sum_i weight_i s_i(x)                                                                                (1)

It is what the mean of several models is where they are not one model of their kind: networks with different standardisations, or a
network and trees.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from exactrank.arrays import Matrix, PerDocument
from exactrank.data.precision import Offset
from exactrank.errors import DataError
from exactrank.scorers import read_scorer
from exactrank.scorers.base import Scorer
from exactrank.scorers.features import check_width, checked_fill_or_keep, numbers, optional, read_numbers, read_optional, rows_by_policy
from exactrank.scorers.missing import PerFeature, TreeMissing
from exactrank.stored import storable


@storable
@dataclass(frozen=True, eq=False)
class Sum:
    """(1): ``parts``, which read the same features and are no sums, with one of the ``weights`` each.

    ``missing`` says what NaN is: ``"keep"`` leaves it to the parts, else as in [`Linear`][exactrank.Linear].

    >>> from exactrank import Linear
    >>> both = Sum((Linear(np.array([2.0])), Linear(np.array([1.0]))), np.array([0.5, 3.0]))
    >>> both.score(np.array([[1.0], [2.0]], np.float32))
    array([4., 8.])
    """

    parts: tuple[Scorer, ...]
    weights: npt.NDArray[np.float64]
    missing: TreeMissing = "keep"
    fill: PerFeature | None = None

    kind: ClassVar[str] = "sum"

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        object.__setattr__(self, "weights", numbers("weights", self.weights))
        if len(self.parts) != len(self.weights):
            raise DataError(f"there are {len(self.weights)} weights for {len(self.parts)} parts; give one per part")
        if any(isinstance(part, Sum) for part in self.parts):
            raise DataError("a part is a sum itself; give its parts in its place, with their weights times its own")
        if len({(part.n_features, part.feature_names) for part in self.parts}) > 1:
            raise DataError("the parts read different features; give scorers that were trained on the same ones")
        object.__setattr__(self, "fill", checked_fill_or_keep(self.missing, self.fill, self.n_features))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features that it reads, in order; none where they are known by position alone."""
        return self.parts[0].feature_names

    @property
    def n_features(self) -> int:
        """How many features it reads."""
        return self.parts[0].n_features

    @property
    def offset(self) -> Offset | None:
        """That of the first part that has one; each part sees to its own."""
        return next((part.offset for part in self.parts if part.offset is not None), None)

    def score(self, X: Matrix, threads: int | None = None, offset: Offset | None = None) -> PerDocument:
        """The score of each row of features, (1), which are ``X`` plus ``offset``."""
        check_width(X, self.n_features)
        rows = rows_by_policy(X, self.feature_names, self.missing, self.fill, threads, offset)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = sum(weight * part.score(rows, threads, offset) for weight, part in zip(self.weights.tolist(), self.parts, strict=True))
        if not np.all(np.isfinite(scores)):
            raise DataError(f"the score of row {np.argmin(np.isfinite(scores))} overflows; scale the weights down")
        return np.asarray(scores)

    def anchored(self, offset: Offset | None) -> "Sum":
        """The scorer of whole features that scores as this one does their differences from ``offset``."""
        return replace(self, parts=tuple(part.anchored(offset) for part in self.parts))

    def to_record(self) -> dict[str, Any]:
        """Itself as JSON values: the parts as they would be written alone."""
        record: dict[str, Any] = {"kind": self.kind, "missing": self.missing, "weights": self.weights.tolist()}
        record |= optional(self.feature_names, fill=self.fill if self.missing == "mean" else None)
        return record | {"parts": [part.to_record() for part in self.parts]}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], where: str) -> "Sum":
        """The scorer that `to_record` described; errors name ``where`` it was read."""
        given = record.get("parts")
        if not isinstance(given, list) or not given or any(not isinstance(one, dict) or one.get("kind") == cls.kind for one in given):
            raise DataError(f"{where}: parts: expected a list of scorers, none of which is a sum; train or copy the model again")
        parts = tuple(read_scorer(one, f"{where}: parts[{number}]") for number, one in enumerate(given))
        weights = read_numbers(record.get("weights"), f"{where}: weights")[1]
        fill = read_optional(record, "fill", parts[0].feature_names, where)
        try:
            return cls(parts, weights, record.get("missing", "keep"), fill)
        except DataError as error:
            raise DataError(f"{where}: {error}") from None
