"""Output files that are either whole or not there, scratch space, and input files that may be gzip.

An output is written to a temporary file beside its final path, flushed to the disk and renamed; a failure on the way leaves
what was at the path before. A symbolic link stays, and the file that it points to is replaced. Only regular files are ever
replaced. ``-`` and ``/dev/stdout`` are standard output, which gets the whole content at the end.

Temporary files and scratch folders are locked (`exactrank._support.locks`): those of dead processes are removed by the next one that writes
in the same place.
"""

import errno
import gzip
import hashlib
import io
import mmap
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, cast

from exactrank._support.arguments import check_kind
from exactrank._support.locks import make_locked_file, sweep
from exactrank._support.pipes import Pipe
from exactrank.errors import DataError, OutputExistsError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from _typeshed import ReadableBuffer

#: Paths that mean standard output.
STREAMS = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
#: Bytes that are gathered before they are written.
BUFFER = 1 << 20
#: The longest name, in bytes, that is left as it is in the name of a temporary file, of longer ones the beginning and a hash; file
#: systems allow 255.
LONGEST_NAME = 200
#: What tells temporary files of one target, or scratch folders in one place, apart.
_TOKEN = "[0-9a-f]{16}"
_ANY_PART = re.compile(rf"\..+\.{_TOKEN}\.part", re.DOTALL)
_SCRATCH_LOCK = re.compile(rf"exactrank-{_TOKEN}\.lock")
#: The folder for scratch files where TMPDIR names none: that for temporary files is often kept in memory.
ON_DISK = Path("/var/tmp")
LINE = 1 << 20  #: bytes of the longest line of a run, of qrels or of scores


def checked_path(path: Any) -> Path:
    """Return ``path`` as a `Path`; anything but text or a path is an error, also the number of an open file."""
    check_kind("the path", path, (str, os.PathLike), "the path of a file or a folder, as text or a Path")
    return Path(path)


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Does ``path`` mean standard output?"""
    checked_path(path)
    return os.fspath(path) in STREAMS


def nothing_at(path: str | os.PathLike[str]) -> DataError:
    """Return the error for a ``path`` where no file is, which says why: links may lead nowhere, or in a circle."""
    try:
        os.stat(path)
    except (OSError, ValueError) as error:  # a ValueError: the path holds a null character
        if isinstance(error, OSError) and error.errno == errno.ELOOP:
            return DataError(f"{path} cannot be opened: its symbolic links lead in a circle, or are too many; correct the link")
    if os.path.islink(path):
        return DataError(f"{path} is a symbolic link to {os.readlink(path)}, which does not exist; correct the link")
    return DataError(f"{path} does not exist; check the path")


def refuse_existing(path: Path) -> None:
    """Raise if ``path`` is taken."""
    if not is_stream(path) and path.exists():
        raise OutputExistsError(f"{path} already exists; choose another path or pass --force (force=True) to replace it")


@contextmanager
def whole_file(path: str | os.PathLike[str], *, force: bool = False) -> Iterator[BinaryIO]:
    """A binary file, readable and writable, that appears at ``path`` once the block ends without an error."""
    with whole_files(path, force=force) as (file,):
        yield file


@contextmanager
def whole_files(*paths: str | os.PathLike[str], force: bool = False) -> Iterator[tuple[BinaryIO, ...]]:
    """Several such files, of which none appears before all are on the disk."""
    with ExitStack() as opened:
        outputs: list[_Part | _StandardOutput] = []
        for path in paths:
            output = _StandardOutput() if is_stream(path) else _Part(Path(path), force)
            opened.callback(output.close)
            if any(output.target == other.target for other in outputs):
                raise DataError(f"two outputs would go to {path}; give each its own path")
            outputs.append(output)
        yield tuple(output.file for output in outputs)
        for output in outputs:
            output.settle()
        for output in outputs:
            output.appear()


class _Part:
    """A temporary file on its way to ``target``, where ``path`` leads by links; `close` removes it unless it has appeared there."""

    def __init__(self, path: Path, force: bool) -> None:
        self.path, self.force = path, force
        if not force:
            refuse_existing(path)
        if path.is_dir():
            raise IsADirectoryError(f"{path} is a folder; give the path of a file")
        self.target = target = Path(os.path.realpath(path))
        if not target.parent.is_dir():
            missing = target.parent if path.is_symlink() else path.parent
            raise FileNotFoundError(f"{path}: the folder {missing} does not exist; create it first")
        if os.path.lexists(target) and not target.exists():
            raise nothing_at(path)
        if os.path.lexists(target) and not target.is_file():
            raise OSError(f"{path} is not a regular file and will not be replaced; give the path of a file, or - for standard output")
        folder, stem, content = target.parent, target.name, os.fsencode(target.name)
        if len(content) > LONGEST_NAME:
            stem = os.fsdecode(content[: LONGEST_NAME // 2]) + "-" + hashlib.sha256(content).hexdigest()[:16]
        sweep(folder, re.compile(rf"\.{re.escape(stem)}\.{_TOKEN}\.part", re.DOTALL), Path.unlink)
        try:
            mode = 0o600 if target.exists() else 0o666  # of what is replaced nobody sees more than before
            self.part, self._handle = make_locked_file(lambda: folder / f".{stem}.{secrets.token_hex(8)}.part", mode)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from None
        with ExitStack() as failed:
            failed.callback(os.unlink, self.part)
            self.file = cast(BinaryIO, io.BufferedRandom(_NamedFile(self._handle, path), BUFFER))
            failed.pop_all()

    def settle(self) -> None:
        """Bring all of it to the disk, with the permissions of the file that it replaces."""
        self.file.flush()
        with _named(self.path):
            with suppress(FileNotFoundError):
                os.fchmod(self._handle, stat.S_IMODE(self.target.stat().st_mode) & 0o777)
            os.fsync(self._handle)

    def appear(self) -> None:
        """Take the place of the target; without ``force`` only where nothing stands there."""
        placed = False
        if not self.force:
            try:
                os.link(self.part, self.target)  # a second name, which fails where there is such a file
                placed = True
            except OSError:  # or where links are not supported
                refuse_existing(self.path)
        if not placed:
            with _named(self.path):
                os.replace(self.part, self.target)
        try:
            with suppress(PermissionError):  # the rename itself is made durable where the system lets us open the folder
                folder = os.open(self.target.parent, os.O_RDONLY)
                try:
                    os.fsync(folder)
                finally:
                    os.close(folder)
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror}; the file is in place, but may not survive a power cut", str(self.path)) from None

    def close(self) -> None:
        """The name goes before the lock; what could not be written is given up."""
        with suppress(OSError):
            os.unlink(self.part)
        with suppress(OSError):
            self.file.close()


class _StandardOutput:
    """A temporary file without a name that is copied to standard output: some formats go back and forth in theirs."""

    target = None

    def __init__(self) -> None:
        self._out = os.dup(1)
        handle, name = tempfile.mkstemp(prefix="exactrank-")
        os.unlink(name)
        self.file = cast(BinaryIO, io.BufferedRandom(_NamedFile(handle, Path(name)), BUFFER))

    def settle(self) -> None:
        """Nothing outlasts the process."""
        self.file.flush()

    def appear(self) -> None:
        """After all that was printed before."""
        for printed in {sys.stdout, sys.__stdout__} - {None}:
            printed.flush()  # type: ignore[union-attr]
        self.file.seek(0)
        with open(self._out, "wb", closefd=False) as out:
            shutil.copyfileobj(self.file, out, BUFFER)

    def close(self) -> None:
        """The file is gone with this."""
        with suppress(OSError):
            self.file.close()
        os.close(self._out)


class _NamedFile(io.FileIO):
    """A file whose errors name ``path``, where its content is to appear."""

    def __init__(self, handle: int, path: Path) -> None:
        super().__init__(handle, "r+")
        self.path = path

    def write(self, content: "ReadableBuffer", /) -> int:
        with _named(self.path):
            return super().write(content)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Errors of the system, such as a full disk, say which output it was and what is left there."""
    try:
        yield
    except OSError as error:
        left = "the file that was there is unchanged" if path.exists() else "nothing was written there"
        raise OSError(error.errno, f"{error.strerror}; {left}", str(path)) from None


def sweep_parts(folder: Path) -> None:
    """Remove all temporary files in ``folder`` whose makers are dead."""
    sweep(folder, _ANY_PART, Path.unlink)


@contextmanager
def scratch_folder(within: Path | None = None) -> Iterator[Path]:
    """An empty folder that is gone afterwards, ``within`` a folder or the system's for temporary files."""
    home = Path(tempfile.gettempdir()) if within is None else within
    sweep(home, _SCRATCH_LOCK, _remove_scratch)
    lock, handle = make_locked_file(lambda: home / f"exactrank-{secrets.token_hex(8)}.lock", 0o600)
    try:
        lock.with_suffix("").mkdir(0o700)
        yield lock.with_suffix("")
    finally:
        _remove_scratch(lock)
        os.close(handle)


def _remove_scratch(lock: Path) -> None:
    """The folder, then its lock: what could not be removed is found again by the next run."""
    shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
    if not os.path.lexists(lock.with_suffix("")):
        lock.unlink(missing_ok=True)


def scratch_map(size: int) -> mmap.mmap:
    """``size`` bytes of room on the disk, mapped; the file has no name, so it is gone with the map, however the process ends."""
    folder = None if "TMPDIR" in os.environ or not os.access(ON_DISK, os.W_OK) else ON_DISK
    with tempfile.TemporaryFile(dir=folder) as file:
        try:
            allocate(file.fileno(), size)
        except OSError as error:
            where = tempfile.gettempdir() if folder is None else folder
            short = f"{error.strerror}; {size / 1e9:.3g} GB of scratch space are needed there: free some, or set TMPDIR to another folder"
            raise OSError(error.errno, short, str(where)) from None
        return mmap.mmap(file.fileno(), size)


def allocate(handle: int, size: int) -> None:
    """Give an open file at least ``size`` bytes on the disk: into a map of a file that only says so, a full disk would crash us."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, size)
    else:
        os.ftruncate(handle, max(size, os.fstat(handle).st_size))


@contextmanager
def output_folder(path: Path) -> Iterator[Path]:
    """The folder, made where it is not there; what was made goes again where the block fails and leaves it empty."""
    if is_stream(path):
        raise DataError(f"{path} is standard output, which takes a single file; give a folder")
    if os.path.lexists(path) and not path.exists():
        raise nothing_at(path)
    new = [each for each in (path, *path.parents) if not each.exists()]
    path.mkdir(parents=True, exist_ok=True)
    try:
        yield path
    except BaseException:
        for each in new:
            with suppress(OSError):  # it holds something
                each.rmdir()
        raise


class Readable(Protocol):
    """What a reader of bytes needs."""

    def read(self, size: int = -1, /) -> bytes: ...
    def readinto(self, buffer: "npt.NDArray[np.uint8]", /) -> int: ...


@contextmanager
def open_bytes(path: str | os.PathLike[str]) -> Iterator[Readable]:
    """The bytes of a file or a pipe, decompressed if they are gzip; a damaged gzip stream is a `DataError`.

    Opening never blocks, so a device or a pipe without a writer cannot hold us up.
    """
    if not checked_path(path).exists():
        raise nothing_at(path)
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    kind = os.fstat(handle).st_mode
    if not stat.S_ISFIFO(kind) and not stat.S_ISREG(kind):
        os.close(handle)
        raise DataError(f"{path} is {'a folder' if stat.S_ISDIR(kind) else 'a device or a socket'}; give the path of a file")
    with io.BufferedReader(Pipe(handle, str(path)) if stat.S_ISFIFO(kind) else io.FileIO(handle)) as file:
        if file.peek(2)[:2] != b"\x1f\x8b":
            if isinstance(file.raw, io.FileIO):
                file.raw.seek(0, os.SEEK_SET)  # past the buffer, which large reads do better without
            yield cast(Readable, file.raw if isinstance(file.raw, io.FileIO) else file)
            return
        try:
            with gzip.open(file) as unpacked:
                yield cast(Readable, unpacked)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise DataError(f"{path}: the gzip stream is damaged or cut short ({error}); copy or download the file again") from None


def line_blocks(path: str | os.PathLike[str], size: int) -> Iterator[bytes]:
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
                raise DataError(f"{path}:{lines + 1}: is longer than {LINE >> 20} MiB, too long for a line of such a file; check the file")
    if rest:
        yield bytes(rest)


def read_small_file(path: str | os.PathLike[str], most: int) -> bytearray:
    """All bytes of a file, which are at most ``most``."""
    found = bytearray()
    with open_bytes(path) as file:
        while block := file.read(1 << 20):
            found += block
            if len(found) > most:
                raise DataError(f"{path}: is longer than {most >> 20:,} MiB, too long for a file of this kind; check the path")
    return found
