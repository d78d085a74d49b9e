"""Room for matrices that are made of others: in memory, or in a scratch file where those lie in a mapped file.

So whoever trains on a file larger than memory needs no memory for a second matrix either: the rows of another order, of some queries, or
with missing values filled lie in a scratch file (`exactrank.files.scratch_map`), and the system keeps in memory what is being read.

`FeatureColumns` are the features of all documents one after the other, as a line search reads them: from a copy that lies so, or
gathered from the rows, which takes no memory.
"""

from collections.abc import Iterator

import numpy as np

from exactrank import _core
from exactrank.arrays import Matrix, Rows
from exactrank.data.immutable import is_mapped, sealed
from exactrank.files import scratch_map
from exactrank.threads import thread_count

#: Bytes up to which a matrix in memory is copied column by column rather than gathered from.
HELD_TWICE = 64 << 20


def room(shape: tuple[int, int], like: Matrix) -> Matrix:
    """A matrix to be written, in memory or in a scratch file as ``like`` is."""
    if not is_mapped(like) or 0 in shape:
        return np.empty(shape, np.float32)
    return np.frombuffer(scratch_map(4 * shape[0] * shape[1]), np.float32).reshape(shape)


def rows_taken(X: Matrix, rows: Rows) -> Matrix:
    """The rows of ``X`` that ``rows`` names, to be written on or sealed."""
    taken = room((len(rows), X.shape[1]), X)
    np.take(X, rows, axis=0, out=taken, mode="clip")  # another mode would copy twice
    return taken


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
    def of(cls, X: Matrix, *, whole: bool = False) -> "FeatureColumns":
        """Of ``X``, from a copy in columns where there is room for one, or if the ``whole`` of it is wanted at hand."""
        if X.nbytes > HELD_TWICE and not is_mapped(X) and not whole:
            return cls(X)
        columns = room((X.shape[1], X.shape[0]), X)
        _core.transpose(X, columns, thread_count(None))
        return cls(sealed(columns).T)

    def __len__(self) -> int:
        return int(self._X.shape[1])

    def __iter__(self) -> Iterator[Matrix]:
        return (self[j] for j in range(len(self)))

    def __getitem__(self, j: int) -> Matrix:
        number, column = self._last
        if number != j:
            column = self._X[:, j]
            column = np.ascontiguousarray(column) if self._rows is None else np.take(column, self._rows)
            if self._stands is not None:
                column = np.where(np.isnan(column), self._stands[j], column)
            self._last = j, column
        return column

    def ordered(self, rows: Rows | None, stands: Matrix | None) -> "FeatureColumns":
        """The same documents in another order, and with ``stands`` for missing values."""
        return FeatureColumns(self._X, rows, stands)
