"""What scorers of a feature matrix share: checked numbers, names and fill values, and scores of rows that may have holes."""

import math
import reprlib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from exactrank.arrays import Matrix, PerDocument
from exactrank.data.alignment import first_repeated
from exactrank.errors import DataError, IncompatibleError
from exactrank.scorers.missing import ROWS_PER_BLOCK, Missing, PerFeature, check_policy, filled, refuse_missing


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


def scores_of(
    X: Matrix,
    names: tuple[str, ...],
    fill: PerFeature | None,
    threads: int | None,
    scored: Callable[[Matrix], PerDocument],
) -> PerDocument:
    """What ``scored`` gives for ``X``, with ``fill`` for the rows that it made NaN, which are those with missing values."""
    matrix = np.ascontiguousarray(X, np.float32)
    scores = scored(matrix)
    holes = np.flatnonzero(np.isnan(scores))
    if len(holes):
        if fill is None:
            refuse_missing(matrix, names, threads)
        for rows in np.split(holes, range(ROWS_PER_BLOCK, len(holes), ROWS_PER_BLOCK)):
            scores[rows] = scored(filled(matrix[rows], fill))
    if not np.all(np.isfinite(scores)):
        raise DataError(f"the score of row {np.argmin(np.isfinite(scores))} overflows; scale weights or features down")
    return scores


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


def read_fill(given: Any, names: tuple[str, ...], where: str) -> PerFeature | None:
    """Fill values as `read_numbers` reads them, of the features called ``names``; None where there are none."""
    if given is None:
        return None
    fill_names, fill = read_numbers(given, f"{where}: fill")
    if fill_names != names:
        raise DataError(f"{where}: weights and fill are of different features; write the model again")
    return fill


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False
