"""What scorers of a feature matrix share: checked numbers, names and fill values, and scores of rows that may have holes."""

import math
import reprlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from exactrank.arrays import Matrix, PerDocument
from exactrank.data.alignment import first_repeated
from exactrank.data.precision import Offset
from exactrank.errors import DataError, IncompatibleError
from exactrank.scorers.missing import ROWS_PER_BLOCK, Missing, PerFeature, TreeMissing, check_policy, filled, refuse_missing


def numbers(name: str, values: npt.ArrayLike) -> PerFeature:
    """``values`` as doubles that cannot be changed, once all are finite."""
    found = np.array(values, np.float64)
    if found.ndim != 1 or len(found) == 0:
        raise DataError(f"{name} must be a list of at least one number, got shape {found.shape}")
    if not np.all(np.isfinite(found)):
        raise DataError(f"{name}[{np.argmin(np.isfinite(found))}] is {found[np.argmin(np.isfinite(found))]}; give finite numbers")
    found.flags.writeable = False
    return found


def check_names(names: tuple[str, ...], count: int) -> None:
    """Raise where there are names, but not one of its own for each feature."""
    if names and len(names) != count:
        raise DataError(f"there are {count} weights for {len(names)} features; give one a feature")
    twice = first_repeated(names)
    if twice is not None:
        raise DataError(f"two features are called {twice!r}; weights are matched by name, so give each its own")


def checked_fill(missing: Missing, fill: npt.ArrayLike | None, count: int) -> PerFeature | None:
    """The values that stand for missing ones under a policy, one a feature; None for an error."""
    check_policy(missing)
    if missing == "zero":
        return numbers("fill", np.zeros(count))
    if (fill is None) != (missing == "error"):
        raise DataError(f"missing={missing!r} {'needs' if fill is None else 'has no'} fill values, one a feature")
    if fill is None:
        return None
    values = numbers("fill", fill)
    if len(values) != count:
        raise DataError(f"fill has {len(values)} values for {count} features; give one a feature")
    return values


def checked_fill_or_keep(missing: TreeMissing, fill: npt.ArrayLike | None, count: int) -> PerFeature | None:
    """`checked_fill` where missing values may also be kept."""
    if missing == "keep":
        if fill is not None:
            raise DataError('missing="keep" has no fill values')
        return None
    if missing not in ("error", "zero", "mean"):
        raise DataError(f'missing={missing!r} is not a policy; use "keep", "error", "zero" or "mean"')
    return checked_fill(missing, None if missing == "zero" else fill, count)


def checked_offset(offset: npt.ArrayLike | None, count: int) -> Offset | None:
    """An offset that cannot be changed, one number per feature; None where there is none."""
    if offset is None:
        return None
    values = numbers("offset", offset)
    if len(values) != count:
        raise DataError(f"offset has {len(values)} values for {count} features; give one per feature")
    return values


def shift_between(given: Offset | None, own: Offset | None) -> Offset | None:
    """What is to be added to differences from ``given`` to get those from ``own``; None for nothing."""
    if given is None and own is None:
        return None
    shift: Offset = np.subtract(0.0 if given is None else given, 0.0 if own is None else own)
    return shift if np.any(shift) else None


def sum_rounded_down(first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The largest doubles that are at most ``first + second``: a threshold that moves so stays below all values above it (Knuth 1969).

    >>> sum_rounded_down(np.array([0.75]), np.array([2.0**52])) - 2.0**52
    array([0.])
    """
    total = first + second
    with np.errstate(invalid="ignore"):  # infinite ones stay
        part = total - first
        error = (first - (total - part)) + (second - part)
    return np.where(error < 0, np.nextafter(total, -np.inf), total)


def scores_of(
    X: Matrix,
    names: tuple[str, ...],
    fill: PerFeature | None,
    threads: int | None,
    scored: Callable[[Matrix], PerDocument],
    offset: Offset | None = None,
) -> PerDocument:
    """What ``scored`` gives for ``X``, with ``fill`` for the rows that it made NaN, which are those with missing values.

    ``fill`` is of whole features, ``X`` plus ``offset``.
    """
    matrix = np.ascontiguousarray(X, np.float32)
    scores = scored(matrix)
    holes = np.flatnonzero(np.isnan(scores))
    if len(holes):
        if fill is None:
            refuse_missing(matrix, names, threads)
        for rows in np.split(holes, range(ROWS_PER_BLOCK, len(holes), ROWS_PER_BLOCK)):
            scores[rows] = scored(filled(matrix[rows], fill, offset))
    if not np.all(np.isfinite(scores)):
        raise DataError(f"the score of row {np.argmin(np.isfinite(scores))} overflows; scale weights or features down")
    return scores


def rows_by_policy(
    X: Matrix, names: tuple[str, ...], missing: TreeMissing, fill: PerFeature | None, threads: int | None, offset: Offset | None
) -> Matrix:
    """``X`` with ``fill`` for missing values, unless they are kept; ``fill`` is of whole features, ``X`` plus ``offset``."""
    matrix = np.ascontiguousarray(X, np.float32)
    if missing == "error":
        refuse_missing(matrix, names, threads)
    return filled(matrix, fill, offset)


def check_width(X: Matrix, count: int) -> None:
    """Raise where ``X`` is not a matrix of ``count`` columns."""
    shape = np.shape(X)
    if len(shape) != 2 or shape[1] != count:
        raise IncompatibleError(f"X has shape {shape} but there are {count} weights; give one column a weight")


def by_name(names: tuple[str, ...], values: PerFeature) -> Any:
    """``values`` as JSON: by name, or a list where features have none."""
    return dict(zip(names, values.tolist(), strict=True)) if names else values.tolist()


def read_numbers(given: Any, where: str) -> tuple[tuple[str, ...], PerFeature]:
    """Names and numbers from ``{"name": number}``, or numbers alone from a list."""
    if not isinstance(given, dict | list) or not given:
        raise DataError(f'{where}: expected numbers by feature name, {{"bm25": 0.5, ...}}, or a list of numbers')
    pairs = given.items() if isinstance(given, dict) else enumerate(given)
    for key, value in pairs:
        if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
            raise DataError(f"{where}: {key!r} has the value {reprlib.repr(value)}; expected a finite number")
    names, values = (tuple(given), given.values()) if isinstance(given, dict) else ((), given)
    return names, np.array([float(value) for value in values])


def read_optional(record: Mapping[str, Any], key: str, names: tuple[str, ...], where: str) -> PerFeature | None:
    """The numbers under ``key`` as `read_numbers` reads them, of the features called ``names``; None where there are none."""
    if record.get(key) is None:
        return None
    own_names, values = read_numbers(record[key], f"{where}: {key}")
    if own_names != names:
        raise DataError(f"{where}: weights and {key} are of different features; write the model again")
    return values


def optional(names: tuple[str, ...], **values: PerFeature | None) -> dict[str, Any]:
    """Those of ``values`` that there are, as JSON by feature."""
    return {key: by_name(names, value) for key, value in values.items() if value is not None}


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False
