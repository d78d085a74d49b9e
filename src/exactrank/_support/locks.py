"""Files that say by a lock whether the process that made them is alive.

A process locks every temporary file that it makes, and the kernel frees the lock when the process ends, however it ends. So a
temporary file whose lock is free is a leftover, which the next run may remove. If a file system has no locks, nothing counts
as a leftover.

Between the making of a file and its lock another process may take it for a leftover. Whoever has locked a file therefore looks
whether that file still stands at its path, and if it does not, tries again.
"""

import errno
import fcntl
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

#: What `fcntl.flock` says where a file system knows no locks.
_UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF}


def make_locked_file(new_path: Callable[[], Path], mode: int = 0o666) -> tuple[Path, int]:
    """A new file at a path that ``new_path`` draws, locked until its descriptor, the second of the two, is closed."""
    while True:
        path = new_path()
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        ours = _locked(handle)
        if ours is None or (ours and _stands(handle, path)):
            return path, handle
        os.close(handle)


@contextmanager
def exclusive(path: Path) -> Iterator[bool]:
    """Hold the lock of the file at ``path``, which stands there for so long; False where another process holds it."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        ours = _locked(handle)
        if not ours or _stands(handle, path):
            break
        os.close(handle)  # its holder has just removed it
    try:
        yield ours is not False
    finally:
        if ours is not False:
            path.unlink(missing_ok=True)
        os.close(handle)


def sweep(folder: Path, names: re.Pattern[str], remove: Callable[[Path], None]) -> None:
    """``remove`` the files in ``folder`` with such names whose makers are dead."""
    found: list[str] = []
    with suppress(OSError):  # a folder that cannot be listed is not swept
        found = os.listdir(folder)
    for path in (folder / name for name in found if names.fullmatch(name)):
        with suppress(OSError):  # it is gone already, or another user's
            handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                about = os.fstat(handle)
                own = stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid()
                if own and _locked(handle) and _stands(handle, path):
                    remove(path)
            finally:
                os.close(handle)


def _locked(handle: int) -> bool | None:
    """Whether the lock is ours now, and not another's; None where locks are not supported."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            return None
        raise
    return True


def _stands(handle: int, path: Path) -> bool:
    """Is the open file the one that stands at ``path``?"""
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False
