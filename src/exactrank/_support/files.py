"""Output files that are either complete or absent, scratch space, and input files that may be compressed by gzip.

An output is written to a temporary file beside its final path, flushed to the disk and renamed; after a failure the path holds what it
held before. A symbolic link stays, and the file that it points to is replaced. Only regular files are ever replaced. ``-`` and
``/dev/stdout`` are standard output, which gets the whole content at the end.

Temporary files and scratch folders are locked (`exactrank._support.locks`). The next process that writes in the same place removes those
of dead processes.
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
from typing import TYPE_CHECKING, Any, Protocol

from exactrank._support.arguments import wrong_kind
from exactrank._support.locks import make_locked_file, sweep
from exactrank._support.pipes import Pipe
from exactrank.errors import DataError, OutputExistsError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

#: Paths that mean standard output.
STREAMS = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
#: Size of the buffer of an output, in bytes.
BUFFER = 1 << 20
#: Largest number of bytes of a target's name in the name of its temporary file; a longer name becomes its beginning and a hash. File
#: systems allow 255 bytes.
LONGEST_NAME = 200
#: The part of a name that distinguishes temporary files of one target, or scratch folders in one place.
_TOKEN = "[0-9a-f]{16}"
_ANY_PART = re.compile(rf"\..+\.{_TOKEN}\.part", re.DOTALL)
_SCRATCH_LOCK = re.compile(rf"exactrank-{_TOKEN}\.lock")
#: The folder for scratch files if TMPDIR is not set; the usual folder for temporary files is often kept in memory.
ON_DISK = Path("/var/tmp")
LINE = 1 << 20  #: largest number of bytes in a line of a run, of qrels or of scores


def checked_path(path: object) -> Path:
    """Return ``path`` as a `Path`; anything except text or a path is an error, also the number of an open file."""
    if not isinstance(path, str | os.PathLike):
        raise wrong_kind("the path", path, "the path of a file or a folder, as text or a Path")
    return Path(path)


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Return whether ``path`` means standard output."""
    checked_path(path)
    return os.fspath(path) in STREAMS


def missing_file(path: str | os.PathLike[str]) -> DataError:
    """Return the error for a ``path`` without a file; it tells whether symbolic links are broken or circular."""
    try:
        os.stat(path)
    except (OSError, ValueError) as error:  # a ValueError: the path holds a null character
        if isinstance(error, OSError) and error.errno == errno.ELOOP:
            return DataError(f"{path} cannot be opened: its symbolic links lead in a circle, or are too many; correct the link")
    if os.path.islink(path):
        return DataError(f"{path} is a symbolic link to {os.readlink(path)}, which does not exist; correct the link")
    return DataError(f"{path} does not exist; check the path")


def refuse_existing(path: Path) -> None:
    """Raise if something exists at ``path``."""
    if not is_stream(path) and path.exists():
        raise OutputExistsError(f"{path} already exists; choose another path, or replace it with force=True (--force)")


@contextmanager
def whole_file(path: str | os.PathLike[str], *, force: bool = False) -> Iterator[io.BufferedRandom]:
    """Open a binary file, readable and writable, that appears at ``path`` when the block ends without an error."""
    with whole_files(path, force=force) as (file,):
        yield file


@contextmanager
def whole_files(*paths: str | os.PathLike[str], force: bool = False) -> Iterator[tuple[io.BufferedRandom, ...]]:
    """Open several such files; none appears before all of them are on the disk."""
    with ExitStack() as cleanup:
        outputs: list[_PartFile | _StandardOutput] = []
        for path in paths:
            output = _StandardOutput() if is_stream(path) else _PartFile(Path(path), force)
            cleanup.callback(output.close)
            if any(output.target == earlier.target for earlier in outputs):
                raise DataError(f"two outputs would go to {path}; give each its own path")
            outputs.append(output)
        yield tuple(output.file for output in outputs)
        for output in outputs:
            output.settle()
        for output in outputs:
            output.appear()


class _PartFile:
    """A temporary file for ``target``, to which ``path`` leads by links; `close` removes the file unless it has been moved there."""

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
            raise missing_file(path)
        if os.path.lexists(target) and not target.is_file():
            raise OSError(f"{path} is not a regular file and will not be replaced; give the path of a file, or - for standard output")
        folder, stem, content = target.parent, target.name, os.fsencode(target.name)
        if len(content) > LONGEST_NAME:
            stem = os.fsdecode(content[: LONGEST_NAME // 2]) + "-" + hashlib.sha256(content).hexdigest()[:16]
        sweep(folder, re.compile(rf"\.{re.escape(stem)}\.{_TOKEN}\.part", re.DOTALL), Path.unlink)
        try:
            mode = 0o600 if target.exists() else 0o666  # a replaced file may have been private
            self.part, self._handle = make_locked_file(lambda: folder / f".{stem}.{secrets.token_hex(8)}.part", mode)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from None
        with ExitStack() as cleanup:
            cleanup.callback(os.unlink, self.part)
            self.file = io.BufferedRandom(_OutputFile(self._handle, path), BUFFER)
            cleanup.pop_all()

    def settle(self) -> None:
        """Flush the content to the disk, and give the file the permissions of the one that it replaces."""
        self.file.flush()
        with _output_errors(self.path):
            with suppress(FileNotFoundError):
                os.fchmod(self._handle, stat.S_IMODE(self.target.stat().st_mode) & 0o777)
            os.fsync(self._handle)

    def appear(self) -> None:
        """Move the file to the target; without ``force`` only if the target does not exist."""
        is_placed = False
        if not self.force:
            try:
                os.link(self.part, self.target)  # a second name, which fails if the target exists
                is_placed = True
            except OSError:  # or if links are not supported
                refuse_existing(self.path)
        if not is_placed:
            with _output_errors(self.path):
                os.replace(self.part, self.target)
        try:
            with suppress(PermissionError):  # the rename itself is made durable if the system lets us open the folder
                folder = os.open(self.target.parent, os.O_RDONLY)
                try:
                    os.fsync(folder)
                finally:
                    os.close(folder)
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror}; the file is in place, but may not survive a power cut", str(self.path)) from None

    def close(self) -> None:
        """Remove the temporary name, then release the lock; content that could not be written is lost."""
        with suppress(OSError):
            os.unlink(self.part)
        with suppress(OSError):
            self.file.close()


class _StandardOutput:
    """A temporary file without a name, whose content is copied to standard output; some formats need to seek in their file."""

    target = None

    def __init__(self) -> None:
        self._out = os.dup(1)
        handle, name = tempfile.mkstemp(prefix="exactrank-")
        os.unlink(name)
        self.file = io.BufferedRandom(_OutputFile(handle, Path(name)), BUFFER)

    def settle(self) -> None:
        """Flush the content; nothing needs to survive the process."""
        self.file.flush()

    def appear(self) -> None:
        """Copy the content to standard output, after everything that was printed before."""
        for stream in (sys.stdout, sys.__stdout__):
            if stream is not None:
                stream.flush()
        self.file.seek(0)
        with open(self._out, "wb", closefd=False) as out:
            shutil.copyfileobj(self.file, out, BUFFER)

    def close(self) -> None:
        """Close and so remove the file."""
        with suppress(OSError):
            self.file.close()
        os.close(self._out)


class _OutputFile(io.FileIO):
    """A file whose errors name ``path``, the target of its content."""

    def __init__(self, handle: int, path: Path) -> None:
        super().__init__(handle, "r+")
        self.path = path

    def write(self, content: "ReadableBuffer", /) -> int:
        with _output_errors(self.path):
            return super().write(content)


@contextmanager
def _output_errors(path: Path) -> Iterator[None]:
    """Let errors of the system, such as a full disk, name the output and tell what its path holds now."""
    try:
        yield
    except OSError as error:
        result = "the file that was there is unchanged" if path.exists() else "nothing was written there"
        raise OSError(error.errno, f"{error.strerror}; {result}", str(path)) from None


def sweep_parts(folder: Path) -> None:
    """Remove all temporary files in ``folder`` whose processes have ended."""
    sweep(folder, _ANY_PART, Path.unlink)


@contextmanager
def scratch_folder(within: Path | None = None) -> Iterator[Path]:
    """Make an empty folder ``within`` another, by default the system's for temporary files, and remove it at the end."""
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
    """Remove the folder, then its lock; if the folder remains, the next run finds it by the lock."""
    shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
    if not os.path.lexists(lock.with_suffix("")):
        lock.unlink(missing_ok=True)


def scratch_map(size: int) -> mmap.mmap:
    """Return a map of ``size`` bytes on the disk. Its file has no name, so it vanishes with the map, however the process ends."""
    folder = None if "TMPDIR" in os.environ or not os.access(ON_DISK, os.W_OK) else ON_DISK
    with tempfile.TemporaryFile(dir=folder) as file:
        try:
            allocate(file.fileno(), size)
        except OSError as error:
            where = tempfile.gettempdir() if folder is None else folder
            remedy = f"{size / 1e9:.3g} GB of scratch space are needed there: free some, or set TMPDIR to another folder"
            raise OSError(error.errno, f"{error.strerror}; {remedy}", str(where)) from None
        return mmap.mmap(file.fileno(), size)


def allocate(handle: int, size: int) -> None:
    """Reserve at least ``size`` bytes on the disk for an open file; writing to the map of a sparse file would crash on a full disk."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, size)
    else:
        os.ftruncate(handle, max(size, os.fstat(handle).st_size))


@contextmanager
def output_folder(path: Path) -> Iterator[Path]:
    """Make the folder at ``path`` if necessary; folders that were made are removed if the block fails and they are empty."""
    if is_stream(path):
        raise DataError(f"{path} is standard output, which takes a single file; give a folder")
    if os.path.lexists(path) and not path.exists():
        raise missing_file(path)
    new_folders = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    try:
        yield path
    except BaseException:
        for folder in new_folders:
            with suppress(OSError):  # it is not empty
                folder.rmdir()
        raise


class Readable(Protocol):
    """An open file from which bytes are read."""

    def read(self, size: int = -1, /) -> bytes: ...
    def readinto(self, buffer: Any, /) -> int: ...  # an array of NumPy too, which is no buffer by its types


@contextmanager
def open_bytes(path: str | os.PathLike[str]) -> Iterator[Readable]:
    """Open a file or a pipe for reading bytes, which are decompressed if they are gzip; a damaged gzip stream is a `DataError`.

    Opening never blocks, so a device or a pipe without a writer cannot stop the process.
    """
    if not checked_path(path).exists():
        raise missing_file(path)
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    kind = os.fstat(handle).st_mode
    if not stat.S_ISFIFO(kind) and not stat.S_ISREG(kind):
        os.close(handle)
        raise DataError(f"{path} is {'a folder' if stat.S_ISDIR(kind) else 'a device or a socket'}; give the path of a file")
    with io.BufferedReader(Pipe(handle, str(path)) if stat.S_ISFIFO(kind) else io.FileIO(handle)) as file:
        if file.peek(2)[:2] != b"\x1f\x8b":
            if isinstance(file.raw, io.FileIO):
                file.raw.seek(0, os.SEEK_SET)  # without the buffer large reads are faster
            yield file.raw if isinstance(file.raw, io.FileIO) else file
            return
        try:
            with gzip.open(file) as unpacked:
                yield unpacked
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise DataError(f"{path}: the gzip stream is damaged or cut short ({error}); copy or download the file again") from None


def line_blocks(path: str | os.PathLike[str], size: int) -> Iterator[bytes]:
    """Yield a text in blocks of whole lines with about ``size`` bytes each; a line of more than `LINE` bytes is a `DataError`."""
    rest, lines = bytearray(), 0
    with open_bytes(path) as file:
        while block := file.read(size):
            head, newline, tail = block.rpartition(b"\n")
            if newline:
                lines += head.count(b"\n") + 1
                yield bytes(rest) + head + newline
                rest.clear()
            rest += tail
            if len(rest) > LINE:
                raise DataError(f"{path}:{lines + 1}: is longer than {LINE >> 20} MiB, too long for a line of such a file; check the file")
    if rest:
        yield bytes(rest)


def read_small_file(path: str | os.PathLike[str], largest: int) -> bytearray:
    """Return the content of a file; more than ``largest`` bytes are an error."""
    content = bytearray()
    with open_bytes(path) as file:
        while block := file.read(1 << 20):
            content += block
            if len(content) > largest:
                raise DataError(f"{path}: is longer than {largest >> 20:,} MiB, too long for a file of this kind; check the path")
    return content
