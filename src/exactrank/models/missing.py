"""Missing values: an error, or replaced by 0 or by the feature's mean over the training data.

A model keeps the values that replaced NaN when it was trained, and puts the same values into the data that it scores.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import Boundaries, Matrix
from exactrank._support.threads import thread_count
from exactrank.data.alignment import name_list
from exactrank.data.immutable import seal
from exactrank.data.precision import Offset
from exactrank.data.scratch_arrays import empty_matrix
from exactrank.errors import DataError

Missing: TypeAlias = Literal["error", "zero", "mean"]
TreeMissing: TypeAlias = Literal["keep", "error", "zero", "mean"]  #: trees may send missing values down a side of their own
PerFeature: TypeAlias = npt.NDArray[np.float64]  #: one number per feature
ROWS_PER_BLOCK = 1 << 14
COLUMNS_AT_ONCE = 16


def fill_values(
    X: Matrix,
    names: tuple[str, ...],
    missing: Missing,
    threads: int | None = None,
    offset: Offset | None = None,
    ends: Boundaries | None = None,
) -> PerFeature | None:
    """Return the replacement of NaN in each feature, which is ``X`` plus ``offset``, by the policy ``missing``.

    With ``"error"`` it is None, and NaN is refused. The mean of a feature without any value is 0. Rows are added up by blocks, which
    ``ends`` bound; the order of the rows in a block does not matter.

    >>> X = np.array([[1.0, np.nan], [3.0, np.nan]], np.float32)
    >>> fill_values(X, ("a", "b"), "mean")
    array([2., 0.])
    >>> fill_values(X, ("a", "b"), "error")
    Traceback (most recent call last):
    exactrank.errors.DataError: 2 values are missing (b: 2); fill them, or train with missing="zero" or missing="mean" (--missing)
    """
    if missing not in ("error", "zero", "mean"):
        raise DataError(f'missing={missing!r} is not a policy; use "error", "zero" or "mean"')
    if missing == "zero":
        return np.zeros(X.shape[1])
    if missing == "error":
        refuse_missing(X, names, threads)
        return None
    bounds = np.array([*range(0, len(X), ROWS_PER_BLOCK), len(X)]) if ends is None else ends
    return mean_values(sorted_sums(X, bounds), len(X) - _core.summarize_columns(X, thread_count(threads))[2], offset)


def sorted_sums(X: Matrix, ends: Boundaries) -> list[PerFeature]:
    """Return the sums of the columns of each block of rows, without NaN.

    The smallest number comes first, so that the order of the rows does not matter.
    """
    sums = []
    for first, last in pairwise(ends.tolist()):
        columns = (X[first:last, j : j + COLUMNS_AT_ONCE] for j in range(0, X.shape[1], COLUMNS_AT_ONCE))
        sums.append(np.concatenate([np.nan_to_num(np.sort(block, axis=0)).sum(axis=0, dtype=np.float64) for block in columns]))
    return sums


def mean_values(sums: Sequence[PerFeature], count: npt.NDArray[np.int64], offset: Offset | None) -> PerFeature:
    """Return the mean of each feature, from the sums of blocks of rows and the number of values."""
    total = np.sum(sums, axis=0)
    return np.asarray(total / np.maximum(count, 1) + (0.0 if offset is None else np.where(count > 0, offset, 0.0)))


def refuse_missing(X: Matrix, names: tuple[str, ...], threads: int | None = None) -> None:
    """Raise if ``X`` has NaN, naming the columns."""
    refuse_holes(_core.summarize_columns(X, thread_count(threads))[2], names)


def refuse_holes(counts: npt.NDArray[np.int64], names: tuple[str, ...]) -> None:
    """Raise if any of ``counts``, the number of missing values in each column, is above 0."""
    if np.any(counts):
        columns = [f"{names[j] if names else f'column {j}'}: {counts[j]:,}" for j in np.flatnonzero(counts)]
        remedy = 'fill them, or train with missing="zero" or missing="mean" (--missing)'
        raise DataError(f"{counts.sum():,} values are missing ({name_list(columns)}); {remedy}")


def fill_missing(X: Matrix, fill: PerFeature | None, offset: Offset | None = None) -> Matrix:
    """Return ``X`` with ``fill`` instead of NaN; ``X`` itself if there is none. Features are ``X`` plus ``offset``."""
    if fill is None or not np.any(_core.summarize_columns(X, thread_count(None))[2]):
        return X
    copy = empty_matrix(X.shape, X)
    np.copyto(copy, X)
    fill_in(copy, stand_ins(fill, offset))
    return seal(copy)


def stand_ins(fill: PerFeature, offset: Offset | None) -> Matrix:
    """Return the replacement of NaN in each column of ``X``, if features are ``X`` plus ``offset``."""
    return (fill if offset is None else fill - offset).astype(np.float32)


def fill_in(X: Matrix, stands: Matrix) -> None:
    """Write ``stands``, one number per feature, over NaN, one block of rows at a time."""
    for start in range(0, len(X), ROWS_PER_BLOCK):
        block = X[start : start + ROWS_PER_BLOCK]
        np.copyto(block, stands, where=np.isnan(block))
