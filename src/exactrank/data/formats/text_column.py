"""A column of strings as one buffer of bytes and where each string starts and stops in it.

Several columns may share a buffer (a LETOR comment and the document id inside it), and all of it can be memory-mapped.
Every string lies within the buffer, and nobody can write into the arrays, so native code may rely on it. Bytes that are not
UTF-8 survive a round trip.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from exactrank.data.immutable import immutable, seal
from exactrank.errors import DataError

PACKED_AT_ONCE = 1 << 16  # strings; packing takes 16 bytes of scratch memory per byte of these


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

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({name: seal(array) for name, array in state.items()})

    @classmethod
    def of(cls, strings: Iterable[object]) -> "TextColumn":
        """
        >>> TextColumn.of(["GX1", "", "é"]).tolist()
        ['GX1', '', 'é']
        """
        try:
            encoded = [s if isinstance(s, bytes) else str(s).encode("utf-8", "surrogateescape") for s in strings]
        except UnicodeEncodeError as error:
            raise DataError(f"{error.object!r} holds half of a surrogate pair, which is not valid text; remove it") from None
        offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        return cls.between(np.frombuffer(b"".join(encoded), np.uint8), offsets)

    @classmethod
    def between(cls, buffer: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> "TextColumn":
        """The strings that lie one after the other in ``buffer``, string ``i`` from ``offsets[i]`` to ``offsets[i + 1]``.

        >>> TextColumn.between(np.frombuffer(b"abc", np.uint8), np.array([0, 1, 3])).tolist()
        ['a', 'bc']
        """
        offsets = immutable(offsets)
        return cls(buffer, offsets[:-1], offsets[1:])

    @classmethod
    def concatenate(cls, columns: list["TextColumn"]) -> "TextColumn":
        """
        >>> TextColumn.concatenate([TextColumn.of("ab"), TextColumn.of("c")]).tolist()
        ['a', 'b', 'c']
        """
        packed = [c.pack() for c in columns]
        ends = np.cumsum(np.concatenate([c.stop - c.start for c in packed]))
        return cls.between(seal(np.concatenate([c.buffer for c in packed])), seal(np.append(0, ends)))

    def pack(self) -> "TextColumn":
        """The same strings one after the other, over a buffer that holds nothing else."""
        offsets = seal(np.append(0, np.cumsum(self.stop - self.start)))
        text = np.empty(offsets[-1], np.uint8)
        for first in range(0, len(self), PACKED_AT_ONCE):
            near = slice(first, min(first + PACKED_AT_ONCE, len(self)))
            begin, end = offsets[near.start], offsets[near.stop]
            shift = np.repeat(self.start[near] - offsets[near], self.stop[near] - self.start[near])
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
        """The bytes of string ``i``."""
        return self.buffer[self.start[i] : self.stop[i]].tobytes()

    @cached_property
    def places_from_last(self) -> npt.NDArray[np.float64]:
        """A number for each string that is smaller the later it comes in the order of bytes: 0 for the first, -1 for the next."""
        encoded = [self.bytes_at(i) for i in range(len(self))]
        places = np.empty(len(self))
        places[sorted(range(len(self)), key=encoded.__getitem__)] = -np.arange(len(self))
        return seal(places)

    def take(self, which: npt.NDArray[np.int64] | slice) -> "TextColumn":
        """The strings at ``which``, over the same buffer."""
        return TextColumn(self.buffer, seal(self.start[which]), seal(self.stop[which]))

    def tolist(self) -> list[str]:
        """All strings."""
        return list(self)


Rowwise = TypeVar("Rowwise", bound=npt.NDArray[Any] | TextColumn | None)


def rows_of(values: Rowwise, rows: npt.NDArray[np.int64] | slice | None) -> Rowwise:
    """The ``rows`` of an array or a text column; all of it as it is for None, and nothing of nothing."""
    if values is None or rows is None:
        return values
    return cast(Rowwise, values.take(rows) if isinstance(values, TextColumn) else values[rows])
