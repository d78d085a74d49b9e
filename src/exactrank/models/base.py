"""Base class of scorers: checked names, fill values and offsets, scores of rows with missing values, and JSON."""

import reprlib
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import Floats, Matrix, PerDocument
from exactrank._support.json_values import JSONObject, JSONValue
from exactrank._support.numerals import is_finite_number
from exactrank._support.tables import ROWS, Table, Tabular, Values, small_table
from exactrank._support.threads import Pool, thread_count
from exactrank.data.duplicates import check_features
from exactrank.data.levels import NO_LEVELS, Levels
from exactrank.data.precision import Offset
from exactrank.errors import DataError, IncompatibleError
from exactrank.models.missing import ROWS_PER_BLOCK, PerFeature, TreeMissing, fill_missing, refuse_missing

BLOCK = 512  #: rows that are scored at once


class Scorer(Tabular):
    """An immutable function from features to scores that can be written as JSON and read back.

    A kind of scorer is a frozen dataclass with the fields below and without a ``repr``; its ``__post_init__`` calls `_settle`. Missing
    values are filled by the policy ``missing``. A kind that can score NaN itself has ``"keep"`` among its `policies`; the kernels of all
    other kinds return NaN for a row with a missing value.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    kind: ClassVar[str]  #: its key in `exactrank.models.KINDS`
    policies: ClassVar[tuple[str, ...]] = ("error", "zero", "mean")  #: what ``missing`` may be
    scaled: ClassVar[str] = "weights or features"  #: what to scale down if scores overflow
    #: The fields that scorers of this kind share if they can be combined into one.
    common: ClassVar[tuple[str, ...]] = ("n_features", "feature_names", "missing", "fill", "offset", "levels")

    n_features: int  #: the number of features that it reads
    feature_names: tuple[str, ...]  #: of the features that it reads, in order; empty if they are known by position
    missing: TreeMissing
    fill: PerFeature | None
    levels: Levels = NO_LEVELS  #: of categorical features, whose codes it reads
    offset: Offset | None  #: subtracted from rows in double precision before they are scored in float32; None for nothing

    @abstractmethod
    def _scores(self, rows: Matrix, threads: int, offset: Offset | None) -> PerDocument:
        """Return the score of each row of features, which are ``rows`` plus ``offset``."""

    @abstractmethod
    def to_record(self) -> JSONObject:
        """Return the scorer as JSON values."""

    @classmethod
    @abstractmethod
    def combine(cls, scorers: Sequence[Self], weights: Sequence[float]) -> Self:
        """Return the scorer whose scores are the weighted sum of those of ``scorers``, which are of this kind and read features alike."""

    @classmethod
    @abstractmethod
    def _read(cls, record: JSONObject) -> Self: ...

    @classmethod
    def from_record(cls, record: JSONObject, where: str) -> Self:
        """Return the scorer that `to_record` described; errors name ``where`` it was read."""
        try:
            return cls._read(record)
        except DataError as error:
            raise DataError(f"{where}: {error}") from None

    @property
    def size(self) -> str:
        """The number of its parts, such as trees, in words."""
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
        """Return a small table of the most important features."""
        columns = self._columns()
        by = next((values for name, values in columns.items() if name != "feature"), ())
        order = sorted(range(len(by)), key=lambda j: -abs(by[j]) if isinstance(by[j], float) else 0.0)[:ROWS]
        return small_table(title, [(name, [values[j] for j in order]) for name, values in columns.items()], self.n_features)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(filter(None, [self.size, f'{self.n_features:,} features']))})"

    def with_offset(self, offset: Offset | None) -> Self:
        """Return the scorer of whole features that scores as this one scores their differences from ``offset``."""
        return replace(self, offset=offset)

    def relative_to(self, offset: Offset | None, names: tuple[str, ...]) -> Self:
        """Return the scorer that ranks differences from ``offset`` of features called ``names`` as this one ranks whole features."""
        return replace(self, offset=None, feature_names=names)

    def score(self, X: Matrix, threads: int | None = None, offset: Offset | None = None) -> PerDocument:
        """Return the score of each row of features, which are ``X`` plus ``offset``."""
        rows, count = self._rows(X, threads, offset), thread_count(threads)
        scores = self._scores(rows, count, offset)
        holes = np.flatnonzero(np.isnan(scores)) if "keep" not in self.policies else ()
        if len(holes):
            if self.fill is None:
                refuse_missing(rows, self.feature_names, threads)
            for block in np.split(holes, range(ROWS_PER_BLOCK, len(holes), ROWS_PER_BLOCK)):
                scores[block] = self._scores(fill_missing(rows[block], self.fill, offset), count, offset)
        if not np.all(np.isfinite(scores)):
            raise DataError(f"the score of row {np.argmin(np.isfinite(scores))} overflows; scale {self.scaled} down")
        return scores

    def _rows(self, X: Matrix, threads: int | None, offset: Offset | None) -> Matrix:
        """Return ``X`` as a matrix of the right width; missing values are filled if scores would not reveal them."""
        shape = np.shape(X)
        if len(shape) != 2 or shape[1] != self.n_features:
            raise IncompatibleError(f"X has shape {shape} but there are {self.n_features} weights; give one column per weight")
        rows = np.ascontiguousarray(X, np.float32)
        if "keep" not in self.policies:
            return rows
        if self.missing == "error":
            refuse_missing(rows, self.feature_names, threads)
        return fill_missing(rows, self.fill, offset)

    def _settle(self, n_features: int) -> None:
        """Check and store the fields of all scorers."""
        names = tuple(self.feature_names)
        if names and len(names) != n_features:
            raise DataError(f"there are {n_features} weights for {len(names)} features; give one per feature")
        check_features(names)
        if self.missing not in self.policies:
            *first, last = (f'"{policy}"' for policy in self.policies)
            raise DataError(f"missing={self.missing!r} is not a policy; use {', '.join(first)} or {last}")
        fill = np.zeros(n_features) if self.missing == "zero" else self.fill
        if (fill is None) != (self.missing in ("keep", "error")):
            raise DataError(f'missing="{self.missing}" {"needs" if fill is None else "has no"} fill values, one per feature')
        vars(self).update(n_features=n_features, feature_names=names)
        for name, array in (("fill", fill), ("offset", self.offset)):
            values = None if array is None else numbers(name, array)
            if values is not None and len(values) != n_features:
                raise DataError(f"{name} has {len(values)} values for {n_features} features; give one per feature")
            vars(self)[name] = values

    def _shift(self, offset: Offset | None) -> Offset | None:
        """Return the difference of ``offset`` from the scorer's own offset; None if there is none."""
        if offset is None and self.offset is None:
            return None
        shift: Offset = np.subtract(0.0 if offset is None else offset, 0.0 if self.offset is None else self.offset)
        return shift if np.any(shift) else None

    def _record(self, **fields: JSONValue) -> JSONObject:
        """Return the JSON values that all scorers have, with the ``fields`` of this kind in between."""
        arrays = {"fill": self.fill if self.missing == "mean" else None, "offset": self.offset}
        named = {key: by_name(self.feature_names, values) for key, values in arrays.items() if values is not None}
        return {"kind": self.kind, "missing": self.missing, **fields, **named}


def score_by_blocks(rows: Matrix, shift: Offset | None, threads: int, scores_of: Callable[[Floats], PerDocument]) -> PerDocument:
    """Return the scores of ``rows`` plus ``shift``, NaN for a row with a missing value; ``scores_of`` is called with a block of them."""
    scores = np.zeros(len(rows))

    def score(start: int) -> None:
        block = np.asarray(rows[start : start + BLOCK], np.float64) if shift is None else rows[start : start + BLOCK] + shift
        holes = np.isnan(block).any(axis=1)
        block[holes] = 0.0  # a function of the user's might not propagate NaN
        with np.errstate(over="ignore", invalid="ignore"):  # which holds for this thread only
            scores[start : start + BLOCK] = np.where(holes, np.nan, scores_of(block))

    starts = range(0, len(rows), BLOCK)
    if threads == 1 or len(starts) == 1:
        list(map(score, starts))
    else:
        with Pool(min(threads, max(1, len(starts)))) as pool:
            list(pool.map(score, starts))
    return scores


def numbers(name: str, values: npt.ArrayLike) -> PerFeature:
    """Return ``values`` as doubles that cannot be changed; raises unless all are finite."""
    array = np.array(values, np.float64)
    if array.ndim != 1 or len(array) == 0:
        raise DataError(f"{name} must be a list of at least one number, got shape {array.shape}")
    if not np.all(finite := np.isfinite(array)):
        raise DataError(f"{name}[{np.argmin(finite)}] is {array[np.argmin(finite)]}; give finite numbers")
    array.flags.writeable = False
    return array


def sum_rounded_down(first: Floats, second: Floats) -> Floats:
    """Return the largest doubles that are at most ``first + second`` (Knuth 1969).

    A threshold that is moved in this way stays below all values above it.

    >>> sum_rounded_down(np.array([0.75]), np.array([2.0**52])) - 2.0**52
    array([0.])
    """
    total = first + second
    with np.errstate(invalid="ignore"):  # infinite ones stay
        part = total - first
        error = (first - (total - part)) + (second - part)
    return np.where(error < 0, np.nextafter(total, -np.inf), total)


def by_name(names: tuple[str, ...], values: PerFeature) -> dict[str, float] | list[float]:
    """Return ``values`` as JSON: by name, or a list if features have no names."""
    return dict(zip(names, values.tolist(), strict=True)) if names else values.tolist()


def read_numbers(record: JSONObject, key: str) -> tuple[tuple[str, ...], PerFeature]:
    """Return names and numbers under ``key`` from ``{"name": number}``, or only numbers from a list."""
    entries = record.get(key)
    if not isinstance(entries, dict | list) or not entries:
        raise DataError(f'{key}: expected numbers by feature name, {{"bm25": 0.5, ...}}, or a list of numbers')
    for name, value in entries.items() if isinstance(entries, dict) else enumerate(entries):
        if not is_finite_number(value):
            raise DataError(f"{key}: {name!r} has the value {reprlib.repr(value)}; expected a finite number")
    names, values = (tuple(entries), entries.values()) if isinstance(entries, dict) else ((), entries)
    return names, np.array([float(value) for value in values])


def read_rows(record: JSONObject, key: str, what: str) -> Floats:
    """Return the matrix under ``key``, which has a list of as many numbers for each ``what``."""
    rows = record.get(key)
    if not isinstance(rows, list) or not rows:
        raise DataError(f"{key}: expected a list of numbers for each {what}")
    arrays = [read_numbers({f"{key}[{number}]": row}, f"{key}[{number}]")[1] for number, row in enumerate(rows)]
    if len({len(array) for array in arrays}) > 1:
        raise DataError(f"{key}: the lists of the {what}s differ in length; write the model again")
    return np.array(arrays)


def read_common(record: JSONObject, names: tuple[str, ...], missing: str = "error") -> dict[str, Any]:
    """Return the fields of a scorer that concern its features, called ``names``; ``missing`` is the default of that field."""
    fields: dict[str, Any] = {"feature_names": names, "missing": record.get("missing", missing), "fill": None, "offset": None}
    for key in ("fill", "offset"):
        if record.get(key) is not None:
            array_names, fields[key] = read_numbers(record, key)
            if array_names != names:
                raise DataError(f"weights and {key} name different features; write the model again")
    return fields
