"""The weighted sum of other scorers, which may be of different kinds.

    s(x) = sum_i weight_i s_i(x)                                                                                (1)

It is what the mean of several models is where they are not one model of their kind: networks with different standardisations, or a
network and trees.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from exactrank.arrays import Matrix, PerDocument
from exactrank.data.precision import Offset
from exactrank.errors import DataError
from exactrank.scorers import read_scorer
from exactrank.scorers.base import Scorer, by_name, numbers, read_common, read_numbers
from exactrank.scorers.missing import PerFeature, TreeMissing
from exactrank.stored import storable

#: What scorers of one kind have in common where their mean is of the same kind.
_COMMON = ("n_features", "feature_names", "missing", "fill", "offset", "mean", "scale")


@storable
@dataclass(frozen=True, eq=False)
class Sum(Scorer):
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
    feature_names: tuple[str, ...] = field(init=False, repr=False)
    offset: Offset | None = field(init=False, repr=False)  #: that of the first part that has one; each part sees to its own

    kind: ClassVar[str] = "sum"
    policies: ClassVar[tuple[str, ...]] = ("keep", "error", "zero", "mean")
    scaled: ClassVar[str] = "the weights"

    def __post_init__(self) -> None:
        vars(self).update(parts=tuple(self.parts), weights=numbers("weights", self.weights))
        if len(self.parts) != len(self.weights):
            raise DataError(f"there are {len(self.weights)} weights for {len(self.parts)} parts; give one per part")
        if any(isinstance(part, Sum) for part in self.parts):
            raise DataError("a part is a sum itself; give its parts in its place, with their weights times its own")
        if len({(part.n_features, part.feature_names) for part in self.parts}) > 1:
            raise DataError("the parts read different features; give scorers that were trained on the same ones")
        offset = next((part.offset for part in self.parts if part.offset is not None), None)
        vars(self).update(feature_names=self.parts[0].feature_names, offset=offset)
        self._settle(self.parts[0].n_features)

    def anchored(self, offset: Offset | None) -> "Sum":
        """The scorer of whole features that scores as this one does their differences from ``offset``."""
        return replace(self, parts=tuple(part.anchored(offset) for part in self.parts))

    def to_record(self) -> dict[str, Any]:
        """Itself as JSON values: the parts as they would be written alone."""
        record: dict[str, Any] = {"kind": self.kind, "missing": self.missing, "weights": self.weights.tolist()}
        if self.missing == "mean" and self.fill is not None:
            record["fill"] = by_name(self.feature_names, self.fill)
        return record | {"parts": [part.to_record() for part in self.parts]}

    @classmethod
    def _read(cls, record: Mapping[str, Any]) -> "Sum":
        given = record.get("parts")
        if not isinstance(given, list) or not given or any(not isinstance(one, dict) or one.get("kind") == cls.kind for one in given):
            raise DataError("parts: expected a list of scorers, none of which is a sum; train or copy the model again")
        parts = tuple(read_scorer(one, f"parts[{number}]") for number, one in enumerate(given))
        common = read_common(record, parts[0].feature_names, "keep")
        return cls(parts, read_numbers(record, "weights")[1], common["missing"], common["fill"])

    def _scores(self, rows: Matrix, threads: int, offset: Offset | None) -> PerDocument:
        with np.errstate(over="ignore", invalid="ignore"):
            terms = zip(self.weights.tolist(), self.parts, strict=True)
            return np.asarray(sum(weight * part.score(rows, threads, offset) for weight, part in terms))


def mean_of(scorers: Sequence[Scorer]) -> Scorer:
    """The scorer whose scores are the mean of those of ``scorers``, which read the same features.

    Linear models are one linear model, forests one forest, and others a sum.

    >>> from exactrank import Linear
    >>> mean_of([Linear(np.array([1.0, 2.0])), Linear(np.array([3.0, 0.0]))]).weights
    array([2., 1.])
    """
    first = scorers[0]
    if len(scorers) == 1:
        return first
    if not isinstance(first, Sum) and len({type(scorer) for scorer in scorers}) == 1:
        alike = ([np.asarray(getattr(scorer, name, None)) for scorer in scorers] for name in _COMMON)
        if all(np.array_equal(own[0], other) for own in alike for other in own[1:]):
            found: Scorer = type(first).averaged(scorers)  # type: ignore[attr-defined]
            return found
    terms: list[tuple[float, Scorer]] = []
    for scorer in scorers:
        if isinstance(scorer, Sum) and scorer.missing == "keep":  # it leaves missing values to its parts
            terms += zip(scorer.weights.tolist(), scorer.parts, strict=True)
        else:
            terms.append((1.0, scorer))
    return Sum(tuple(part for _, part in terms), np.array([weight / len(scorers) for weight, _ in terms]))
