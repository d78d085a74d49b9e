"""What replaces a missing value: nothing (an error), 0, or the feature's mean over the training data.

A scorer that computes with NaN would rank by it; so a model keeps the values that replaced NaN when it was trained, and
puts the same ones into the data that it scores.
"""

from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import Matrix
from exactrank.data.alignment import listed
from exactrank.data.immutable import sealed
from exactrank.data.precision import Offset
from exactrank.errors import DataError
from exactrank.threads import thread_count

Missing: TypeAlias = Literal["error", "zero", "mean"]
TreeMissing: TypeAlias = Literal["keep", "error", "zero", "mean"]  #: trees may send missing values down a side of their own
PerFeature: TypeAlias = npt.NDArray[np.float64]  #: one number per feature
ROWS_PER_BLOCK = 1 << 14


def fill_values(
    X: Matrix, names: tuple[str, ...], missing: Missing, threads: int | None = None, offset: Offset | None = None
) -> PerFeature | None:
    """What stands for NaN in each feature, ``X`` plus ``offset``, by the policy ``missing``; None for ``"error"``, once there is no NaN.

    The mean of a feature without any value is 0.

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
    total, count = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for start in range(0, len(X), ROWS_PER_BLOCK):
        block = X[start : start + ROWS_PER_BLOCK].astype(np.float64)
        total += np.nansum(block, axis=0)
        count += np.sum(~np.isnan(block), axis=0)
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
    stands = (fill if offset is None else fill - offset).astype(np.float32)
    whole: Matrix | None = None
    for start in range(0, len(X), ROWS_PER_BLOCK):
        holes = np.isnan(X[start : start + ROWS_PER_BLOCK])
        if holes.any():
            whole = np.array(X) if whole is None else whole
            np.copyto(whole[start : start + ROWS_PER_BLOCK], stands, where=holes)
    return X if whole is None else sealed(whole)
