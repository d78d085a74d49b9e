"""What an error looks like to a user: one line, and an exit code.

Exit codes: 1 the job failed, 2 bad usage or input.
"""

import errno
import os
import re

from exactrank.errors import ExactRankError

MEMORY = "not enough memory{}; give less data or fewer features, or convert text to an .xr cache, which is mapped instead of read"
CLOSED = "standard input or output is closed; open it, or give the path of a file"
_ALLOCATION = re.compile(r"Unable to allocate ([\d.]+ \w+)")  # NumPy's words


def line_and_code(error: Exception) -> tuple[str, int]:
    """What to say of ``error``, and the exit code.

    >>> line_and_code(FileNotFoundError(2, "No such file or directory", "a.txt"))
    ('a.txt: No such file or directory', 1)
    >>> line_and_code(ZeroDivisionError("division by zero"))[0]
    'internal error (ZeroDivisionError: division by zero); run it again with --debug, and report what that shows'
    """
    if isinstance(error, ExactRankError):
        return str(error) or type(error).__name__, 2
    if isinstance(error, OSError):
        return _of_the_system(error), 1
    if isinstance(error, MemoryError):
        wanted = _ALLOCATION.search(str(error))
        return MEMORY.format(f" for another {wanted[1]}" if wanted else ""), 1
    told = f"{type(error).__name__}: {error}".removesuffix(": ")
    return f"internal error ({told}); run it again with --debug, and report what that shows", 1


def _of_the_system(error: OSError) -> str:
    if error.strerror is None:
        return str(error) or type(error).__name__
    if error.errno == errno.EBADF and error.filename is None:
        return CLOSED
    where = [os.fsdecode(name) for name in (error.filename, error.filename2) if isinstance(name, str | bytes | os.PathLike)]
    return f"{' and '.join(where) or 'input or output'}: {error.strerror}"
