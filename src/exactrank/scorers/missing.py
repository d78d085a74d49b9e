"""What replaces a missing value: nothing (an error), 0, or the feature's mean over the training data.

A scorer that computes with NaN would rank by it; so a model keeps the values that replaced NaN when it was trained, and
puts the same ones into the data that it scores.
"""

from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import Matrix, Rows
from exactrank.data.alignment import listed
from exactrank.data.immutable import sealed
from exactrank.data.precision import Offset
from exactrank.data.ranking_data import summed
from exactrank.data.room import room
from exactrank.errors import DataError
from exactrank.threads import thread_count

Missing: TypeAlias = Literal["error", "zero", "mean"]
TreeMissing: TypeAlias = Literal["keep", "error", "zero", "mean"]  #: trees may send missing values down a side of their own
PerFeature: TypeAlias = npt.NDArray[np.float64]  #: one number per feature
ROWS_PER_BLOCK = 1 << 14


def fill_values(
    X: Matrix,
    names: tuple[str, ...],
    missing: Missing,
    threads: int | None = None,
    offset: Offset | None = None,
    order: Rows | None = None,
) -> PerFeature | None:
    """What stands for NaN in each feature, ``X`` plus ``offset``, by the policy ``missing``; None for ``"error"``, once there is no NaN.

    The mean of a feature without any value is 0. Rows are added up in the ``order`` given: sums of floating-point numbers depend on it.

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
    total = np.zeros(X.shape[1])

    def block(rows: slice) -> npt.NDArray[np.float64]:
        return X[rows if order is None else order[rows]].astype(np.float64)

    for start in range(0, len(X), ROWS_PER_BLOCK):
        rows = slice(start, min(start + ROWS_PER_BLOCK, len(X)))
        total += summed(lambda some: np.nan_to_num(block(some)), rows, X.shape[1])
    count = len(X) - _core.summarise_columns(X, thread_count(threads))[2]
    return np.asarray(total / np.maximum(count, 1) + (0.0 if offset is None else np.where(count > 0, offset, 0.0)))


def refuse_missing(X: Matrix, names: tuple[str, ...], threads: int | None = None) -> None:
    """Raise if ``X`` has NaN, naming the columns."""
    counts = _core.summarise_columns(X, thread_count(threads))[2]
    if np.any(counts):
        columns = [f"{names[j] if names else f'column {j}'}: {counts[j]:,}" for j in np.flatnonzero(counts)]
        remedy = 'fill them, or train with missing="zero" or missing="mean" (--missing)'
        raise DataError(f"{counts.sum():,} values are missing ({listed(columns)}); {remedy}")


def filled(X: Matrix, fill: PerFeature | None, offset: Offset | None = None) -> Matrix:
    """``X`` with ``fill`` instead of NaN; ``X`` itself if there is none. Features are ``X`` plus ``offset``."""
    if fill is None:
        return X
    if not np.any(_core.summarise_columns(X, thread_count(None))[2]):
        return X
    whole = room(X.shape, X)
    np.copyto(whole, X)
    fill_in(whole, stand_ins(fill, offset))
    return sealed(whole)


def stand_ins(fill: PerFeature, offset: Offset | None) -> Matrix:
    """What stands for NaN in ``X``, where features are ``X`` plus ``offset``."""
    return (fill if offset is None else fill - offset).astype(np.float32)


def fill_in(X: Matrix, stands: Matrix) -> None:
    """Write ``stands``, one number per feature, over NaN, a block of rows at a time."""
    for start in range(0, len(X), ROWS_PER_BLOCK):
        block = X[start : start + ROWS_PER_BLOCK]
        np.copyto(block, stands, where=np.isnan(block))
