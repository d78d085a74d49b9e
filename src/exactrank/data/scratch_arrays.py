"""Room for matrices that are made of others: in memory, or in a scratch file where those lie in a mapped file.

So whoever trains on a file larger than memory needs no memory for a second matrix either: the rows of another order, of some queries, or
with missing values filled lie in a scratch file (`exactrank._support.files.scratch_map`), and the system keeps in memory what is being
read.

`FeatureColumns` are the features of all documents one after the other, as a line search reads them: from a copy that lies so, or
gathered from the rows, which takes no memory.
"""

import math
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import Matrix, Rows
from exactrank._support.files import scratch_map
from exactrank._support.threads import thread_count
from exactrank.data.immutable import is_mapped, seal

Number = TypeVar("Number", bound=np.generic)
#: Bytes up to which a matrix in memory is copied column by column rather than gathered from.
HELD_TWICE = 32 << 20
#: Bytes up to which numbers by document, in another order than they were given in, are kept in memory.
SMALL = 4 << 20
#: That many rows are taken at a time: NumPy copies numbers of rows that it may not write on.
ROWS_TAKEN = 1 << 16


def empty_matrix(shape: tuple[int, int], like: Matrix) -> Matrix:
    """A matrix to be written, in memory or in a scratch file as ``like`` is."""
    return empty_array(shape, np.float32, like)


def empty_array(shape: tuple[int, ...], kind: type[Number], like: Matrix) -> npt.NDArray[Number]:
    """The same of other numbers, of any shape."""
    return scratch(shape, kind) if is_mapped(like) else np.empty(shape, kind)


def empty_document_array(shape: tuple[int, ...], kind: type[Number], like: Matrix) -> npt.NDArray[Number]:
    """The same for numbers by document beside the features, which lie in a scratch file unless they are few."""
    return scratch(shape, kind) if math.prod(shape) * np.dtype(kind).itemsize > SMALL else empty_array(shape, kind, like)


def scratch(shape: tuple[int, ...], kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """An array to be written, in a scratch file."""
    size = math.prod(shape) * np.dtype(kind).itemsize
    return np.frombuffer(scratch_map(size), kind).reshape(shape) if size else np.empty(shape, kind)


def take_rows(X: Matrix, rows: Rows) -> Matrix:
    """The rows of ``X`` that ``rows`` names, to be written on or sealed."""
    return _taken(X, rows, empty_matrix((len(rows), X.shape[1]), X))


def take_numbers(numbers: npt.NDArray[Number], rows: Rows, like: Matrix) -> npt.NDArray[Number]:
    """The ``numbers``, one for each row of ``like``, of the ``rows`` that are named; they lie where those of ``like`` do,
    or in a scratch file where they are many."""
    return _taken(numbers, rows, empty_document_array((len(rows),), numbers.dtype.type, like))


def _taken(values: npt.NDArray[Number], rows: Rows, out: npt.NDArray[Number]) -> npt.NDArray[Number]:
    for first in range(0, len(rows), ROWS_TAKEN):
        some = slice(first, first + ROWS_TAKEN)
        np.take(values, rows[some], axis=0, out=out[some], mode="clip")  # another mode would copy twice
    return out


class FeatureColumns:
    """The columns of a matrix as arrays of their own, in the order of ``rows`` and with ``stands`` for missing values, where given.

    >>> columns = FeatureColumns(np.array([[1, 2], [3, 4]], np.float32), np.array([1, 0]))
    >>> [column.tolist() for column in columns]
    [[3.0, 1.0], [4.0, 2.0]]
    """

    def __init__(self, X: Matrix, rows: Rows | None = None, stands: Matrix | None = None) -> None:
        self._X, self._rows, self._stands = X, rows, stands
        self._last: tuple[int, Matrix] = -1, X[:0, 0]  # a search asks for a column several times

    @classmethod
    def of(cls, X: Matrix, *, copy: bool = False) -> "FeatureColumns":
        """Return the columns of ``X``, from a copy in column order if there is room for one or a ``copy`` is required."""
        if X.nbytes > HELD_TWICE and not is_mapped(X) and not copy:
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
            self._last, column = (-1, column[:0]), self._X[:, j]  # one is held at a time
            column = np.ascontiguousarray(column) if self._rows is None else np.take(column, self._rows)
            if self._stands is not None:
                column = np.where(np.isnan(column), self._stands[j], column)
            self._last = j, column
        return column

    def reorder(self, rows: Rows | None, stands: Matrix | None) -> "FeatureColumns":
        """The same documents in another order, and with ``stands`` for missing values."""
        return FeatureColumns(self._X, rows, stands)
