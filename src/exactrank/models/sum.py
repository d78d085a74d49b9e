"""The weighted sum of other scorers, which may be of different kinds.

    s(x) = sum_i weight_i s_i(x)                                                                                (1)

Scorers of one kind are combined into one scorer of that kind; those of several kinds, such as a linear model and trees, into a `Sum`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import Matrix, PerDocument
from exactrank._support.json_values import JSONObject, JSONValue
from exactrank._support.serialize import storable
from exactrank.data.levels import Levels
from exactrank.data.precision import Offset
from exactrank.errors import DataError
from exactrank.models import read_scorer
from exactrank.models.base import Scorer, by_name, numbers, read_common, read_numbers
from exactrank.models.missing import PerFeature, TreeMissing


@storable
@dataclass(frozen=True, eq=False, repr=False)
class Sum(Scorer):
    """The scorer (1) of ``parts``, which read the same features and are not sums.

    ``missing`` says how NaN is treated: ``"keep"`` leaves it to the parts, otherwise as in [`Linear`][exactrank.models.Linear].

    >>> from exactrank.models import Linear
    >>> both = Sum((Linear(np.array([2.0])), Linear(np.array([1.0]))), np.array([0.5, 3.0]))
    >>> both.score(np.array([[1.0], [2.0]], np.float32))
    array([4., 8.])
    """

    parts: tuple[Scorer, ...]
    weights: npt.NDArray[np.float64]
    missing: TreeMissing = "keep"
    fill: PerFeature | None = None
    feature_names: tuple[str, ...] = field(init=False, repr=False)
    levels: Levels = field(init=False, repr=False)  #: those of all parts
    offset: Offset | None = field(init=False, repr=False)  #: of the first part that has one; each part subtracts its own

    kind: ClassVar[str] = "sum"
    policies: ClassVar[tuple[str, ...]] = ("keep", "error", "zero", "mean")
    scaled: ClassVar[str] = "the weights"

    def __post_init__(self) -> None:
        vars(self).update(parts=tuple(self.parts), weights=numbers("weights", self.weights))
        if len(self.parts) != len(self.weights):
            raise DataError(f"there are {len(self.weights)} weights for {len(self.parts)} parts; give one per part")
        if any(isinstance(part, Sum) for part in self.parts):
            raise DataError("a part is itself a sum; give its parts instead, with their weights times its own")
        if len({(part.n_features, part.feature_names) for part in self.parts}) > 1:
            raise DataError("the parts read different features; give scorers that were trained on the same ones")
        offset = next((part.offset for part in self.parts if part.offset is not None), None)
        levels = {name: texts for part in self.parts for name, texts in part.levels.items()}
        if any(texts != levels[name] for part in self.parts for name, texts in part.levels.items()):
            raise DataError("the parts read categories by different levels; give scorers that were trained on the same data")
        vars(self).update(feature_names=self.parts[0].feature_names, offset=offset, levels=levels)
        self._settle(self.parts[0].n_features)

    @property
    def size(self) -> str:
        return f"{len(self.parts):,} parts"

    def with_offset(self, offset: Offset | None) -> "Sum":
        return replace(self, parts=tuple(part.with_offset(offset) for part in self.parts))

    @classmethod
    def combine(cls, scorers: "Sequence[Sum]", weights: Sequence[float]) -> "Sum":
        factors = np.concatenate([weight * scorer.weights for scorer, weight in zip(scorers, weights, strict=True)])
        return replace(scorers[0], parts=tuple(part for scorer in scorers for part in scorer.parts), weights=factors)

    def to_record(self) -> JSONObject:
        record: dict[str, JSONValue] = {"kind": self.kind, "missing": self.missing, "weights": self.weights.tolist()}
        if self.missing == "mean" and self.fill is not None:
            record["fill"] = by_name(self.feature_names, self.fill)
        return record | {"parts": [part.to_record() for part in self.parts]}

    @classmethod
    def _read(cls, record: JSONObject) -> "Sum":
        records = record.get("parts")
        if not isinstance(records, list) or not records or any(not isinstance(r, dict) or r.get("kind") == cls.kind for r in records):
            raise DataError("parts: expected a list of scorers, none of which is a sum; train or copy the model again")
        parts = tuple(read_scorer(part, f"parts[{number}]") for number, part in enumerate(records))
        common = read_common(record, parts[0].feature_names, "keep")
        return cls(parts, read_numbers(record, "weights")[1], common["missing"], common["fill"])

    def _scores(self, rows: Matrix, threads: int, offset: Offset | None) -> PerDocument:
        with np.errstate(over="ignore", invalid="ignore"):
            terms = zip(self.weights.tolist(), self.parts, strict=True)
            return np.asarray(sum(weight * part.score(rows, threads, offset) for weight, part in terms))


def sum_of(scorers: Sequence[Scorer], weights: Sequence[float]) -> Scorer:
    """Return the scorer (1) of ``scorers``, which read the same features.

    Linear models become one linear model, forests one forest, networks one network, and scorers of several kinds a `Sum`.

    >>> from exactrank.models import Linear
    >>> sum_of([Linear(np.array([1.0, 2.0])), Linear(np.array([3.0, 0.0]))], [0.5, 0.5]).weights
    array([2., 1.])
    """
    groups: list[list[tuple[Scorer, float]]] = []
    for scorer, weight in zip(scorers, weights, strict=True):
        terms = [(scorer, weight)]
        if isinstance(scorer, Sum) and scorer.missing == "keep":  # its parts treat missing values
            terms = list(zip(scorer.parts, (weight * scorer.weights).tolist(), strict=True))
        for term in terms:
            group = next((group for group in groups if _can_combine(group[0][0], term[0])), None)
            if group is None:
                groups.append(group := [])
            group.append(term)
    parts = [group[0][0].combine([scorer for scorer, _ in group], [weight for _, weight in group]) for group in groups]
    return parts[0] if len(parts) == 1 else Sum(tuple(parts), np.ones(len(parts)))


def mean_of(scorers: Sequence[Scorer]) -> Scorer:
    """Return the scorer whose scores are the mean of those of ``scorers``."""
    return scorers[0] if len(scorers) == 1 else sum_of(scorers, [1 / len(scorers)] * len(scorers))


def _can_combine(a: Scorer, b: Scorer) -> bool:
    return type(a) is type(b) and all(np.array_equal(np.asarray(getattr(a, name)), np.asarray(getattr(b, name))) for name in a.common)
