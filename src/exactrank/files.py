"""Output files that are either whole or not there, and input files that may be gzip.

An output is written beside its final path, flushed to the disk and renamed over it; a failure on the way leaves whatever
stood at the path before.
"""

import gzip
import os
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast

from exactrank.errors import DataError, OutputExistsError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


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
    """The bytes of a file, decompressed if it is gzip; a damaged gzip stream is a `DataError`."""
    if not os.path.exists(path):
        raise DataError(f"{path} does not exist; check the path")
    with open(path, "rb") as file:
        if file.peek(2)[:2] != b"\x1f\x8b":
            if file.seekable():
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
