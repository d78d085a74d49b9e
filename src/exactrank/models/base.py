"""What all scorers share: checked names, fill values and offsets, scores of rows that may have holes, and their form in files."""

import reprlib
import sys
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import Matrix, PerDocument
from exactrank._support.tables import ROWS, Shown, Table, Values, small_table
from exactrank._support.threads import thread_count
from exactrank.data.levels import NO_LEVELS, Levels
from exactrank.data.precision import Offset
from exactrank.data.repeated import check_features
from exactrank.errors import DataError, IncompatibleError
from exactrank.models.missing import ROWS_PER_BLOCK, PerFeature, TreeMissing, filled, refuse_missing


class Scorer(Shown):
    """An immutable function from features to scores that can be written as JSON and read back.

    A kind of scorer is a frozen dataclass with the fields below and no ``repr`` of its own; its ``__post_init__`` calls `_settle`.
    Missing values are filled by the policy ``missing``. One that computes with NaN itself has ``"keep"`` among its `policies`, else its
    kernel makes a row with NaN NaN.
    """

    kind: ClassVar[str]  #: its key in `exactrank.models.KINDS`
    policies: ClassVar[tuple[str, ...]] = ("error", "zero", "mean")  #: what ``missing`` may be
    scaled: ClassVar[str] = "weights or features"  #: what is to be scaled down where scores overflow

    n_features: int  #: how many features it reads
    feature_names: tuple[str, ...]  #: the features that it reads, in order; none where they are known by position alone
    missing: TreeMissing
    fill: PerFeature | None
    levels: Levels = NO_LEVELS  #: of the features that are categories, whose codes it reads
    offset: (
        Offset | None
    )  #: what rows in double precision are kept as differences from before they are scored; none where float32 holds them

    @abstractmethod
    def _scores(self, rows: Matrix, threads: int, offset: Offset | None) -> PerDocument:
        """The score of each row of features, which are ``rows`` plus ``offset``."""

    @abstractmethod
    def to_record(self) -> dict[str, Any]:
        """Itself as JSON values."""

    @classmethod
    @abstractmethod
    def added(cls, scorers: Sequence[Any], weights: Sequence[float]) -> Self:
        """The scorer of this kind whose scores are the weighted sum of those of ``scorers``, which read features in the same way."""

    @classmethod
    @abstractmethod
    def _read(cls, record: Mapping[str, Any]) -> Self:
        """The scorer that `to_record` described."""

    @classmethod
    def from_record(cls, record: Mapping[str, Any], where: str) -> Self:
        """The scorer that `to_record` described; errors name ``where`` it was read."""
        try:
            return cls._read(record)
        except DataError as error:
            raise DataError(f"{where}: {error}") from None

    @property
    def size(self) -> str:
        """What it is made of besides features, in few words."""
        return ""

    @cached_property
    def level_codes(self) -> Mapping[str, Mapping[str, int]]:
        """The code of each level by its text, for each feature that is a category."""
        return {name: {level: code for code, level in enumerate(texts)} for name, texts in self.levels.items()}

    def _columns(self) -> dict[str, Values]:
        from exactrank.models.card import per_feature

        names = self.feature_names or tuple(f"column {j}" for j in range(self.n_features))
        columns, rows = per_feature(self)
        return {"feature": names} | dict(zip(columns, zip(*rows, strict=True), strict=True))

    def _glance(self) -> Table:
        return self.features_first(repr(self))

    def features_first(self, title: str) -> Table:
        """The features that count most, as a small table."""
        columns = self._columns()
        by = next((values for name, values in columns.items() if name != "feature"), ())
        order = sorted(range(len(by)), key=lambda j: -abs(by[j]) if isinstance(by[j], float) else 0.0)[:ROWS]
        return small_table(title, [(name, [values[j] for j in order]) for name, values in columns.items()], self.n_features)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(filter(None, [self.size, f'{self.n_features:,} features']))})"

    def anchored(self, offset: Offset | None) -> Self:
        """The scorer of whole features that scores as this one does their differences from ``offset``."""
        return replace(cast(Any, self), offset=offset)  # type: ignore[no-any-return]

    def relative_to(self, offset: Offset | None, names: tuple[str, ...]) -> Self:
        """The scorer that ranks differences from ``offset`` of features called ``names`` as this one does whole features."""
        return replace(cast(Any, self), offset=None, feature_names=names)  # type: ignore[no-any-return]

    def score(self, X: Matrix, threads: int | None = None, offset: Offset | None = None) -> PerDocument:
        """The score of each row of features, which are ``X`` plus ``offset``."""
        rows, count = self._rows(X, threads, offset), thread_count(threads)
        scores = self._scores(rows, count, offset)
        holes = np.flatnonzero(np.isnan(scores)) if "keep" not in self.policies else ()
        if len(holes):
            if self.fill is None:
                refuse_missing(rows, self.feature_names, threads)
            for some in np.split(holes, range(ROWS_PER_BLOCK, len(holes), ROWS_PER_BLOCK)):
                scores[some] = self._scores(filled(rows[some], self.fill, offset), count, offset)
        if not np.all(np.isfinite(scores)):
            raise DataError(f"the score of row {np.argmin(np.isfinite(scores))} overflows; scale {self.scaled} down")
        return scores

    def _rows(self, X: Matrix, threads: int | None, offset: Offset | None) -> Matrix:
        """``X`` as a matrix of the right width, filled where no score would tell that there are missing values."""
        shape = np.shape(X)
        if len(shape) != 2 or shape[1] != self.n_features:
            raise IncompatibleError(f"X has shape {shape} but there are {self.n_features} weights; give one column per weight")
        rows = np.ascontiguousarray(X, np.float32)
        if "keep" not in self.policies:
            return rows
        if self.missing == "error":
            refuse_missing(rows, self.feature_names, threads)
        return filled(rows, self.fill, offset)

    def _settle(self, n_features: int) -> None:
        """Check and keep what all scorers have, once it is known how many features this one reads."""
        names = tuple(self.feature_names)
        if names and len(names) != n_features:
            raise DataError(f"there are {n_features} weights for {len(names)} features; give one per feature")
        check_features(names)
        if self.missing not in self.policies:
            *most, last = (f'"{policy}"' for policy in self.policies)
            raise DataError(f"missing={self.missing!r} is not a policy; use {', '.join(most)} or {last}")
        fill = np.zeros(n_features) if self.missing == "zero" else self.fill
        if (fill is None) != (self.missing in ("keep", "error")):
            raise DataError(f'missing="{self.missing}" {"needs" if fill is None else "has no"} fill values, one per feature')
        vars(self).update(n_features=n_features, feature_names=names)
        for name, given in (("fill", fill), ("offset", self.offset)):
            values = None if given is None else numbers(name, given)
            if values is not None and len(values) != n_features:
                raise DataError(f"{name} has {len(values)} values for {n_features} features; give one per feature")
            vars(self)[name] = values

    def _shift(self, offset: Offset | None) -> Offset | None:
        """What is to be added to differences from ``offset`` to get those from its own; None for nothing."""
        if offset is None and self.offset is None:
            return None
        shift: Offset = np.subtract(0.0 if offset is None else offset, 0.0 if self.offset is None else self.offset)
        return shift if np.any(shift) else None

    def _record(self, **own: Any) -> dict[str, Any]:
        """As JSON values what all scorers have, around what this kind has of its ``own``."""
        stands = {"fill": self.fill if self.missing == "mean" else None, "offset": self.offset}
        known = {key: by_name(self.feature_names, values) for key, values in stands.items() if values is not None}
        return {"kind": self.kind, "missing": self.missing} | own | known


def numbers(name: str, values: npt.ArrayLike) -> PerFeature:
    """``values`` as doubles that cannot be changed, once all are finite."""
    found = np.array(values, np.float64)
    if found.ndim != 1 or len(found) == 0:
        raise DataError(f"{name} must be a list of at least one number, got shape {found.shape}")
    if not np.all(np.isfinite(found)):
        raise DataError(f"{name}[{np.argmin(np.isfinite(found))}] is {found[np.argmin(np.isfinite(found))]}; give finite numbers")
    found.flags.writeable = False
    return found


def sum_rounded_down(first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The largest doubles that are at most ``first + second``: so a moved threshold stays below all values above it (Knuth 1969).

    >>> sum_rounded_down(np.array([0.75]), np.array([2.0**52])) - 2.0**52
    array([0.])
    """
    total = first + second
    with np.errstate(invalid="ignore"):  # infinite ones stay
        part = total - first
        error = (first - (total - part)) + (second - part)
    return np.where(error < 0, np.nextafter(total, -np.inf), total)


def by_name(names: tuple[str, ...], values: PerFeature) -> Any:
    """``values`` as JSON: by name, or a list where features have none."""
    return dict(zip(names, values.tolist(), strict=True)) if names else values.tolist()


def read_numbers(record: Mapping[str, Any], key: str) -> tuple[tuple[str, ...], PerFeature]:
    """Names and numbers under ``key`` from ``{"name": number}``, or numbers alone from a list."""
    given = record.get(key)
    if not isinstance(given, dict | list) or not given:
        raise DataError(f'{key}: expected numbers by feature name, {{"bm25": 0.5, ...}}, or a list of numbers')
    for name, value in given.items() if isinstance(given, dict) else enumerate(given):
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
            raise DataError(f"{key}: {name!r} has the value {reprlib.repr(value)}; expected a finite number")
    names, values = (tuple(given), given.values()) if isinstance(given, dict) else ((), given)
    return names, np.array([float(value) for value in values])


def read_common(record: Mapping[str, Any], names: tuple[str, ...], missing: str = "error") -> dict[str, Any]:
    """What a record says of features called ``names``, as the fields of a scorer; ``missing`` where it says nothing of that."""
    found: dict[str, Any] = {"feature_names": names, "missing": record.get("missing", missing), "fill": None, "offset": None}
    for key in ("fill", "offset"):
        if record.get(key) is not None:
            own_names, found[key] = read_numbers(record, key)
            if own_names != names:
                raise DataError(f"weights and {key} name different features; write the model again")
    return found
