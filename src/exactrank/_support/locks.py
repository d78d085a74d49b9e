"""Locked files: the lock shows whether the process that made a file is alive.

A process locks every temporary file that it makes, and the kernel frees the lock when the process ends, however it ends. So a
temporary file whose lock is free is a leftover, which the next run may remove. If a file system has no locks, no file counts as a
leftover.

Before a new file is locked, another process may take it for a leftover and remove it. So a process that has locked a file checks
whether the file is still at its path; if not, it tries again.
"""

import errno
import fcntl
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

#: Errors of `fcntl.flock` on file systems without locks.
_UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF}


def make_locked_file(new_path: Callable[[], Path], mode: int = 0o666) -> tuple[Path, int]:
    """Return the path and the descriptor of a new file, which is locked until the descriptor is closed; ``new_path`` proposes paths."""
    while True:
        path = new_path()
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        ours = _try_lock(handle)
        if ours is None or (ours and _is_at(handle, path)):
            return path, handle
        os.close(handle)


@contextmanager
def exclusive(path: Path) -> Iterator[bool]:
    """Hold the lock of a file at ``path``, which is removed at the end; yields False if another process holds it."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        ours = _try_lock(handle)
        if not ours or _is_at(handle, path):
            break
        os.close(handle)  # another process has just removed it
    try:
        yield ours is not False
    finally:
        if ours is not False:
            path.unlink(missing_ok=True)
        os.close(handle)


def sweep(folder: Path, names: re.Pattern[str], remove: Callable[[Path], None]) -> None:
    """Call ``remove`` for each file in ``folder`` whose name matches ``names`` and whose process has ended."""
    entries: list[str] = []
    with suppress(OSError):  # a folder that cannot be listed is not swept
        entries = os.listdir(folder)
    for path in (folder / name for name in entries if names.fullmatch(name)):
        with suppress(OSError):  # it is gone already, or another user's
            handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                status = os.fstat(handle)
                ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
                if ours and _try_lock(handle) and _is_at(handle, path):
                    remove(path)
            finally:
                os.close(handle)


def _try_lock(handle: int) -> bool | None:
    """Return True if this process has the lock now, False if another one has it, and None if locks are not supported."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            return None
        raise
    return True


def _is_at(handle: int, path: Path) -> bool:
    """Return whether the open file is the one at ``path``."""
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False
