"""Output files that are either whole or not there, and input files that may be gzip.

An output is written beside its final path, flushed to the disk and renamed over it; a failure on the way leaves whatever
stood at the path before.
"""

import gzip
import io
import os
import stat
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast

from exactrank.errors import DataError, OutputExistsError
from exactrank.pipes import Pipe

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

LINE = 1 << 20  #: bytes of the longest line of a run, of qrels or of scores


def refuse_existing(path: Path) -> None:
    """Raise where ``path`` is taken."""
    if path.exists():
        raise OutputExistsError(f"{path} already exists; choose another path or pass --force (force=True) to replace it")


@contextmanager
def whole_file(path: str | os.PathLike[str], *, force: bool = False) -> Iterator[BinaryIO]:
    """A binary file, readable and writable, that appears at ``path`` once the block ends without an error."""
    path = Path(path)
    if not force:
        refuse_existing(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the path of a file")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: the folder {path.parent} does not exist; create it first")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    try:
        with open(handle, "w+b") as file:
            os.fchmod(handle, 0o666 & ~_umask())
            yield file
            file.flush()
            os.fsync(handle)
        if not force:
            refuse_existing(path)
        os.replace(name, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name)
        raise
    _sync_folder(path.parent)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Readable(Protocol):
    """What a reader of bytes needs."""

    def read(self, size: int = -1, /) -> bytes: ...
    def readinto(self, buffer: "npt.NDArray[np.uint8]", /) -> int: ...


@contextmanager
def open_bytes(path: str | os.PathLike[str]) -> Iterator[Readable]:
    """The bytes of a file or a pipe, decompressed if they are gzip; a damaged gzip stream is a `DataError`."""
    with _opened(path) as file:
        if file.peek(2)[:2] != b"\x1f\x8b":
            if isinstance(file.raw, io.FileIO):
                file.raw.seek(0, os.SEEK_SET)  # past the buffer, which large reads do better without
                yield cast(Readable, file.raw)
            else:
                yield cast(Readable, file)
            return
        try:
            with gzip.open(file) as unpacked:
                yield cast(Readable, unpacked)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise DataError(f"{path}: the gzip stream is damaged or cut short ({error}); copy or download the file again") from None


def whole_lines(path: str | os.PathLike[str], size: int) -> Iterator[bytes]:
    """A text in blocks of whole lines, each block of about ``size`` bytes; a line of more than `LINE` bytes is a `DataError`."""
    rest, lines = bytearray(), 0
    with open_bytes(path) as file:
        while block := file.read(size):
            whole, newline, tail = block.rpartition(b"\n")
            if newline:
                lines += whole.count(b"\n") + 1
                yield bytes(rest) + whole + newline
                rest.clear()
            rest += tail
            if len(rest) > LINE:
                raise DataError(f"{path}:{lines + 1}: is longer than {LINE >> 20} MiB, which no line of such a text is; check the file")
    if rest:
        yield bytes(rest)


def read_bounded(path: str | os.PathLike[str], most: int) -> bytearray:
    """All bytes of a file, which are at most ``most``."""
    found = bytearray()
    with open_bytes(path) as file:
        while block := file.read(1 << 20):
            found += block
            if len(found) > most:
                raise DataError(f"{path}: is longer than {most >> 20:,} MiB, which no file of this kind is; check the path")
    return found


def _opened(path: str | os.PathLike[str]) -> io.BufferedReader:
    """A regular file or a pipe; nothing is waited for, so that a device or a pipe without a writer cannot hold us up."""
    if not os.path.exists(path):
        raise DataError(f"{path} does not exist; check the path")
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    kind = os.fstat(handle).st_mode
    if stat.S_ISFIFO(kind):
        return io.BufferedReader(Pipe(handle, str(path)))
    if stat.S_ISREG(kind):
        return open(handle, "rb")
    os.close(handle)
    raise DataError(f"{path} is {'a folder' if stat.S_ISDIR(kind) else 'a device or a socket'}; give the path of a file")
