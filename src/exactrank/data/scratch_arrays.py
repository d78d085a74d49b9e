"""Arrays derived from other arrays: in memory, or in a scratch file if the others lie in a mapped file.

So training on a file larger than memory needs no memory for a second matrix: rows in another order, rows of some queries, or rows with
filled missing values lie in a scratch file (`exactrank._support.files.scratch_map`), and the system keeps in memory what is being read.

`FeatureColumns` gives the features one after the other, as a line search reads them: from a copy by columns, or gathered from the rows,
which takes no memory.
"""

import math
from collections.abc import Iterator
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import Matrix, Rows
from exactrank._support.files import scratch_map
from exactrank._support.threads import thread_count
from exactrank.data.immutable import is_mapped, seal

Number = TypeVar("Number", bound=np.generic)
#: Maximum bytes of a matrix in memory that is copied by columns; columns of larger ones are gathered from the rows.
COPY_BYTES = 32 << 20
#: Maximum bytes of reordered numbers per document that stay in memory.
MEMORY_BYTES = 4 << 20
#: Rows taken at a time: NumPy copies row numbers that are read-only.
ROWS_AT_ONCE = 1 << 16


def empty_matrix(shape: tuple[int, int], like: Matrix) -> Matrix:
    """Return an uninitialized matrix, in a scratch file if ``like`` is mapped and otherwise in memory."""
    return empty_array(shape, np.float32, like)


def empty_array(shape: tuple[int, ...], kind: type[Number], like: Matrix) -> npt.NDArray[Number]:
    """Return an uninitialized array, in a scratch file if ``like`` is mapped and otherwise in memory."""
    return scratch(shape, kind) if is_mapped(like) else np.empty(shape, kind)


def empty_document_array(shape: tuple[int, ...], kind: type[Number], like: Matrix) -> npt.NDArray[Number]:
    """Return an uninitialized array of numbers per document, in a scratch file if it is large or ``like`` is mapped."""
    return scratch(shape, kind) if math.prod(shape) * np.dtype(kind).itemsize > MEMORY_BYTES else empty_array(shape, kind, like)


def scratch(shape: tuple[int, ...], kind: type[Number]) -> npt.NDArray[Number]:
    """Return an uninitialized array in a scratch file."""
    size = math.prod(shape) * np.dtype(kind).itemsize
    return np.frombuffer(scratch_map(size), kind).reshape(shape) if size else np.empty(shape, kind)


def take_rows(X: Matrix, rows: Rows) -> Matrix:
    """Return a writable copy of the ``rows`` of ``X``."""
    return _take(X, rows, empty_matrix((len(rows), X.shape[1]), X))


def take_numbers(numbers: npt.NDArray[Number], rows: Rows, like: Matrix) -> npt.NDArray[Number]:
    """Return the ``rows`` of ``numbers``, which has one number per row of ``like``."""
    return _take(numbers, rows, empty_document_array((len(rows),), numbers.dtype.type, like))


def _take(values: npt.NDArray[Number], rows: Rows, out: npt.NDArray[Number]) -> npt.NDArray[Number]:
    for first in range(0, len(rows), ROWS_AT_ONCE):
        chunk = slice(first, first + ROWS_AT_ONCE)
        np.take(values, rows[chunk], axis=0, out=out[chunk], mode="clip")  # another mode would copy twice
    return out


class FeatureColumns:
    """Columns of a matrix as contiguous arrays, optionally in the order of ``rows`` and with missing values replaced by ``fill``.

    >>> columns = FeatureColumns(np.array([[1, 2], [3, 4]], np.float32), np.array([1, 0]))
    >>> [column.tolist() for column in columns]
    [[3.0, 1.0], [4.0, 2.0]]
    """

    def __init__(self, X: Matrix, rows: Rows | None = None, fill: Matrix | None = None) -> None:
        self._X, self._rows, self._fill = X, rows, fill
        self._last: tuple[int, Matrix] = -1, X[:0, 0]  # a search reads a column several times

    @classmethod
    def of(cls, X: Matrix, *, copy: bool = False) -> "FeatureColumns":
        """Return the columns of ``X``, from a copy in column order if there is room for one or a ``copy`` is required."""
        if X.nbytes > COPY_BYTES and not is_mapped(X) and not copy:
            return cls(X)
        columns = empty_matrix((X.shape[1], X.shape[0]), X)
        _core.transpose(X, columns, thread_count(None))
        return cls(seal(columns).T)

    def __len__(self) -> int:
        return int(self._X.shape[1])

    def __iter__(self) -> Iterator[Matrix]:
        return (self[j] for j in range(len(self)))

    def __getitem__(self, j: int) -> Matrix:
        number, column = self._last
        if number != j:
            self._last, column = (-1, column[:0]), self._X[:, j]  # only one column is held at a time
            column = np.ascontiguousarray(column) if self._rows is None else np.take(column, self._rows)
            if self._fill is not None:
                column = np.where(np.isnan(column), self._fill[j], column)
            self._last = j, column
        return column

    def reorder(self, rows: Rows | None, fill: Matrix | None) -> "FeatureColumns":
        """Return the columns in the order of ``rows``, with missing values replaced by ``fill``."""
        return FeatureColumns(self._X, rows, fill)
