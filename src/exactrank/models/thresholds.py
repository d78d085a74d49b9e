"""The threshold scorer: a sum of step functions, one per feature.

    s(x) = sum_j sum_k jump_jk [x_j > t_jk]                                                                     (1)

The steps of a feature make one step function, whose value is 0 below its first threshold: a constant would not change a ranking. x_j is
the feature less ``offset[j]``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import Matrix, PerDocument, starts_of
from exactrank._support.json_values import JSONObject
from exactrank._support.serialize import storable
from exactrank.data.precision import Offset
from exactrank.errors import DataError
from exactrank.models.base import Scorer, numbers, read_common, read_numbers, sum_rounded_down
from exactrank.models.missing import Missing, PerFeature

PerStep = npt.NDArray[np.float64]  #: one number per step


@storable
@dataclass(frozen=True, eq=False, repr=False)
class Thresholds(Scorer):
    """The scorer (1); ``thresholds`` rise for each feature, and with ``feature_names=()`` features are known by position.

    >>> steps = Thresholds((np.array([0.5, 2.0]), np.array([])), (np.array([1.0, -0.25]), np.array([])), ("bm25", "length"))
    >>> steps.score(np.array([[0.5, 3.0], [1.0, 3.0], [9.0, 3.0]], np.float32))
    array([0.  , 1.  , 0.75])
    """

    thresholds: tuple[PerStep, ...]
    jumps: tuple[PerStep, ...]
    feature_names: tuple[str, ...] = ()
    missing: Missing = "error"
    fill: PerFeature | None = None
    offset: Offset | None = None

    kind: ClassVar[str] = "thresholds"

    def __post_init__(self) -> None:
        if len(self.thresholds) != len(self.jumps) or not self.thresholds:
            raise DataError(f"there are {len(self.thresholds)} lists of thresholds and {len(self.jumps)} of jumps; give each feature both")
        for name in ("thresholds", "jumps"):  # a feature may have none
            lists = enumerate(getattr(self, name))
            vars(self)[name] = tuple(numbers(f"{name}[{j}]", values) if np.size(values) else np.empty(0) for j, values in lists)
        for j, (thresholds, jumps) in enumerate(zip(self.thresholds, self.jumps, strict=True)):
            if len(thresholds) != len(jumps):
                raise DataError(f"feature {j} has {len(thresholds)} thresholds for {len(jumps)} jumps; give one jump per threshold")
            if np.any(np.diff(thresholds) <= 0):
                raise DataError(f"the thresholds of feature {j} are {thresholds.tolist()}; sort them and remove duplicates")
        self._settle(len(self.thresholds))

    @property
    def size(self) -> str:
        return f"{sum(map(len, self.jumps)):,} steps"

    @classmethod
    def from_steps(cls, steps: npt.ArrayLike, n_features: int, feature_names: tuple[str, ...] = ()) -> "Thresholds":
        """Return the scorer of ``steps``, rows of a feature's number, a threshold and a jump.

        >>> Thresholds.from_steps([(0, 2.0, 0.25), (0, 0.5, 1.0), (0, 2.0, -0.5)], n_features=1).jumps
        (array([ 1.  , -0.25]),)
        """
        rows = np.array(steps, np.float64).reshape(-1, 3)
        thresholds, jumps = list[PerStep](), list[PerStep]()
        for j in range(n_features):
            _, threshold, jump = rows[rows[:, 0] == j].T
            unique, place = np.unique(threshold, return_inverse=True)
            thresholds.append(unique)
            jumps.append(np.bincount(place, jump, len(unique)).astype(np.float64))
        return cls(tuple(thresholds), tuple(jumps), feature_names)

    @classmethod
    def combine(cls, scorers: "Sequence[Thresholds]", weights: Sequence[float]) -> "Thresholds":
        steps = [
            np.column_stack([np.full(len(at), j), at, weight * jumps])
            for scorer, weight in zip(scorers, weights, strict=True)
            for j, (at, jumps) in enumerate(zip(scorer.thresholds, scorer.jumps, strict=True))
        ]
        merged = cls.from_steps(np.concatenate(steps), scorers[0].n_features)
        return replace(scorers[0], thresholds=merged.thresholds, jumps=merged.jumps)

    def to_record(self) -> JSONObject:
        steps = [np.stack(pair, axis=1).tolist() for pair in zip(self.thresholds, self.jumps, strict=True)]
        return self._record(steps=dict(zip(self.feature_names, steps, strict=True)) if self.feature_names else steps)

    @classmethod
    def _read(cls, record: JSONObject) -> "Thresholds":
        entries = record.get("steps")
        if not isinstance(entries, dict | list) or not entries:
            raise DataError('expected steps by feature name, {"bm25": [[threshold, jump], ...], ...}, or a list of such lists')
        steps = []
        for name, pairs in entries.items() if isinstance(entries, dict) else enumerate(entries):
            what = f"steps of {name!r}"
            if not isinstance(pairs, list) or any(not isinstance(pair, list) or len(pair) != 2 for pair in pairs):
                raise DataError(f"{what}: expected pairs of a threshold and a jump, [[0.5, 1.0], ...]")
            steps.append(np.array([read_numbers({what: pair}, what)[1] for pair in pairs]).reshape(-1, 2))
        thresholds, jumps = (tuple(pairs[:, column] for pairs in steps) for column in (0, 1))
        return cls(thresholds, jumps, **read_common(record, tuple(entries) if isinstance(entries, dict) else ()))

    def _scores(self, rows: Matrix, threads: int, offset: Offset | None) -> PerDocument:
        (start, thresholds, levels), shift = self._flat, self._shift(offset)
        moved = thresholds if shift is None else sum_rounded_down(thresholds, -np.repeat(shift, np.diff(start)))
        return _core.step_scores(rows, start, moved, levels, threads)

    @cached_property
    def _flat(self) -> tuple[npt.NDArray[np.int64], PerStep, PerStep]:
        """The first step of each feature, all thresholds, and all levels, one more per feature than steps."""
        start = starts_of([len(values) for values in self.thresholds])
        levels = [np.concatenate([[0.0], np.cumsum(values)]) for values in self.jumps]
        return start, np.concatenate(self.thresholds), np.concatenate(levels)


class StepScores:
    """Scores of the rows of ``X``, which has no missing values, by steps of three numbers: feature, threshold, jump.

    The last scores are remembered, so that steps which continue the last ones cost only what is new.
    """

    def __init__(self, X: Matrix) -> None:
        self._X = X
        self._steps: PerStep = np.empty(0)
        self._scores: PerDocument = np.zeros(len(X))

    def at(self, steps: PerStep) -> PerDocument:
        """Return the sum of the jumps of each row."""
        count = len(self._steps)
        if not np.array_equal(steps[:count], self._steps):
            count, self._scores = 0, np.zeros(len(self._X))
        for feature, threshold, jump in steps[count:].reshape(-1, 3):
            # Compared as floats, a threshold halfway between two values could fall onto one of them.
            self._scores = self._scores + jump * (self._X[:, int(feature)].astype(np.float64) > threshold)
        self._steps = steps
        return self._scores
