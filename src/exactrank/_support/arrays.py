"""Types of the arrays that pass between components, named by what an element belongs to, and groups of consecutive rows."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Matrix: TypeAlias = npt.NDArray[np.float32]  #: documents x features
PerDocument: TypeAlias = npt.NDArray[np.float64]  #: one number per document
PerQuery: TypeAlias = npt.NDArray[np.float64]  #: one number per query
Boundaries: TypeAlias = npt.NDArray[np.int64]  #: query q holds documents boundaries[q] to boundaries[q + 1]
Rows: TypeAlias = npt.NDArray[np.int64]  #: row numbers
Ids: TypeAlias = npt.NDArray[Any]  #: ids of any dtype
AnyArray: TypeAlias = npt.NDArray[Any]  #: an array of any dtype
Floats: TypeAlias = npt.NDArray[np.float64]  #: numbers of any meaning
Ints: TypeAlias = npt.NDArray[np.int64]  #: whole numbers of any meaning
Table: TypeAlias = Any  #: rows of features: a matrix, or a frame of pandas, polars or Arrow, which share no type


def starts_of(sizes: Sequence[int] | Ints) -> Ints:
    """Return the first row of each group of this size, and last the number of rows.

    >>> starts_of([2, 3]).tolist()
    [0, 2, 5]
    """
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def group_numbers(sizes: Sequence[int] | Ints) -> Ints:
    """Return the number of the group of each row, for groups of these sizes.

    >>> group_numbers([2, 3]).tolist()
    [0, 0, 1, 1, 1]
    """
    return np.repeat(np.arange(len(sizes)), sizes)
