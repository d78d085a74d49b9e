"""A column of strings as one buffer of bytes and where each string starts and stops in it.

Several columns may share a buffer (a LETOR comment and the document id inside it), and all of it can be memory-mapped.
Bytes that are not UTF-8 survive a round trip.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class TextColumn:
    """String ``i`` is ``buffer[start[i]:stop[i]]``."""

    buffer: npt.NDArray[np.uint8]
    start: npt.NDArray[np.int64]
    stop: npt.NDArray[np.int64]

    @classmethod
    def of(cls, strings: Iterable[object]) -> "TextColumn":
        """
        >>> TextColumn.of(["GX1", "", "é"]).tolist()
        ['GX1', '', 'é']
        """
        encoded = [s if isinstance(s, bytes) else str(s).encode("utf-8", "surrogateescape") for s in strings]
        stop = np.cumsum([len(s) for s in encoded], dtype=np.int64)
        start = np.concatenate([np.zeros(1, np.int64), stop[:-1]])[: len(encoded)]
        return cls(np.frombuffer(b"".join(encoded), np.uint8), start, stop)

    @classmethod
    def concatenated(cls, columns: list["TextColumn"]) -> "TextColumn":
        """
        >>> TextColumn.concatenated([TextColumn.of("ab"), TextColumn.of("c")]).tolist()
        ['a', 'b', 'c']
        """
        packed = [c.packed() for c in columns]
        offsets = np.cumsum([0] + [len(c.buffer) for c in packed[:-1]])
        return cls(
            np.concatenate([c.buffer for c in packed]),
            np.concatenate([c.start + offset for c, offset in zip(packed, offsets, strict=True)]),
            np.concatenate([c.stop + offset for c, offset in zip(packed, offsets, strict=True)]),
        )

    def packed(self) -> "TextColumn":
        """The same strings over a buffer that holds nothing else."""
        sizes = self.stop - self.start
        stop = np.cumsum(sizes)
        start = stop - sizes
        which = np.arange(sizes.sum()) + np.repeat(self.start - start, sizes)
        return TextColumn(self.buffer[which], start, stop)

    def __len__(self) -> int:
        return len(self.start)

    def __getitem__(self, i: int) -> str:
        return self.encoded(i).decode("utf-8", "surrogateescape")

    def __iter__(self) -> Iterator[str]:
        return (self[i] for i in range(len(self)))

    def encoded(self, i: int) -> bytes:
        """The bytes of string ``i``."""
        return self.buffer[self.start[i] : self.stop[i]].tobytes()

    def take(self, which: npt.NDArray[np.int64] | slice) -> "TextColumn":
        """The strings at ``which``, over the same buffer."""
        return TextColumn(self.buffer, self.start[which], self.stop[which])

    def tolist(self) -> list[str]:
        """All strings."""
        return list(self)
