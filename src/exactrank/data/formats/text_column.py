"""A column of strings as one buffer of bytes, and the start and stop of each string in it.

Several columns may share a buffer (a LETOR comment and the document id inside it), and all of it can be memory-mapped.
Every string lies within the buffer, and the arrays are immutable, so native code may rely on it. Bytes that are not UTF-8 survive a round
trip.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar, overload

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import starts_of
from exactrank.data.immutable import immutable, seal
from exactrank.errors import DataError

Number = TypeVar("Number", bound=np.generic)
PACKED_AT_ONCE = 1 << 16  #: strings; packing takes 16 bytes of scratch memory per byte of these


@dataclass(frozen=True, eq=False, repr=False)
class TextColumn:
    """String ``i`` is ``buffer[start[i]:stop[i]]``."""

    buffer: npt.NDArray[np.uint8]
    start: npt.NDArray[np.int64]
    stop: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        for name, kind in (("buffer", np.uint8), ("start", np.int64), ("stop", np.int64)):
            array = getattr(self, name)
            if array.ndim != 1 or array.dtype != kind:
                raise DataError(f"{name} of a text column is {array.dtype} of shape {array.shape}; expected one row of {np.dtype(kind)}")
            object.__setattr__(self, name, immutable(array))
        if len(self.start) != len(self.stop):
            raise DataError(f"a text column has {len(self.start)} starts but {len(self.stop)} stops; give one of each per string")
        bad = np.flatnonzero((self.start < 0) | (self.start > self.stop) | (self.stop > len(self.buffer)))
        if len(bad):
            where = f"{self.start[bad[0]]} to {self.stop[bad[0]]}"
            raise DataError(f"string {bad[0]} of a text column lies at {where}, outside of its {len(self.buffer)} bytes of text")

    def __setstate__(self, state: dict[str, npt.NDArray[np.uint8] | npt.NDArray[np.int64]]) -> None:
        self.__dict__.update({name: seal(array) for name, array in state.items()})

    @classmethod
    def of(cls, strings: Iterable[object]) -> "TextColumn":
        """Return a column of these strings; bytes stay as they are, and other objects become their text.

        >>> TextColumn.of(["GX1", "", "é"]).tolist()
        ['GX1', '', 'é']
        """
        try:
            encoded = [s if isinstance(s, bytes) else str(s).encode("utf-8", "surrogateescape") for s in strings]
        except UnicodeEncodeError as error:
            raise DataError(f"{error.object!r} holds half of a surrogate pair, which is not valid text; remove it") from None
        offsets = starts_of([*map(len, encoded)])
        return cls.between(np.frombuffer(b"".join(encoded), np.uint8), offsets)

    @classmethod
    def between(cls, buffer: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> "TextColumn":
        """Return the strings of ``buffer``, of which string ``i`` lies from ``offsets[i]`` to ``offsets[i + 1]``.

        >>> TextColumn.between(np.frombuffer(b"abc", np.uint8), np.array([0, 1, 3])).tolist()
        ['a', 'bc']
        """
        offsets = immutable(offsets)
        return cls(buffer, offsets[:-1], offsets[1:])

    @classmethod
    def concatenate(cls, columns: list["TextColumn"]) -> "TextColumn":
        """Return the strings of all columns, one column after the other.

        >>> TextColumn.concatenate([TextColumn.of("ab"), TextColumn.of("c")]).tolist()
        ['a', 'b', 'c']
        """
        packed = [c.pack() for c in columns]
        offsets = starts_of(np.concatenate([c.stop - c.start for c in packed]))
        return cls.between(seal(np.concatenate([c.buffer for c in packed])), seal(offsets))

    def pack(self) -> "TextColumn":
        """Return the same strings one after the other, in a buffer that holds nothing else."""
        offsets = seal(starts_of(self.stop - self.start))
        text = np.empty(offsets[-1], np.uint8)
        for first in range(0, len(self), PACKED_AT_ONCE):
            chunk = slice(first, min(first + PACKED_AT_ONCE, len(self)))
            begin, end = offsets[chunk.start], offsets[chunk.stop]
            shift = np.repeat(self.start[chunk] - offsets[chunk], self.stop[chunk] - self.start[chunk])
            text[begin:end] = self.buffer[np.arange(begin, end) + shift]
        return TextColumn.between(seal(text), offsets)

    def __len__(self) -> int:
        return len(self.start)

    def __repr__(self) -> str:
        return f"TextColumn({len(self):,} strings)"

    def __getitem__(self, i: int) -> str:
        return self.bytes_at(i).decode("utf-8", "surrogateescape")

    def __iter__(self) -> Iterator[str]:
        return (self[i] for i in range(len(self)))

    def bytes_at(self, i: int) -> bytes:
        """Return string ``i`` as bytes."""
        return self.buffer[self.start[i] : self.stop[i]].tobytes()

    @cached_property
    def places_from_last(self) -> npt.NDArray[np.float64]:
        """Numbers that rank the strings by descending bytes: 0 for the first string in the order of bytes, -1 for the next."""
        encoded = [self.bytes_at(i) for i in range(len(self))]
        places = np.empty(len(self))
        places[sorted(range(len(self)), key=encoded.__getitem__)] = -np.arange(len(self))
        return seal(places)

    def take(self, which: npt.NDArray[np.int64] | slice) -> "TextColumn":
        """Return the strings at ``which``, in the same buffer."""
        return TextColumn(self.buffer, seal(self.start[which]), seal(self.stop[which]))

    def tolist(self) -> list[str]:
        """Return a list of the strings."""
        return list(self)


@overload
def rows_of(values: None, rows: npt.NDArray[np.int64] | slice | None) -> None: ...
@overload
def rows_of(values: TextColumn, rows: npt.NDArray[np.int64] | slice | None) -> TextColumn: ...
@overload
def rows_of(values: npt.NDArray[Number], rows: npt.NDArray[np.int64] | slice | None) -> npt.NDArray[Number]: ...
def rows_of(values: object, rows: npt.NDArray[np.int64] | slice | None) -> object:
    """Return the ``rows`` of an array or a text column; ``values`` itself if either argument is None."""
    if rows is None:
        return values
    return values.take(rows) if isinstance(values, TextColumn) else values[rows] if isinstance(values, np.ndarray) else None
