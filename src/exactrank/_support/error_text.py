"""Why something failed, in text that is short enough for a table and that every file can hold."""

import sys
import traceback
from contextlib import suppress

from exactrank.errors import ExactRankError

#: Characters of a reason; of a longer one the middle is left out.
LONGEST = 2000
#: Characters of a traceback in the log.
LONGEST_TRACEBACK = 20_000


def clipped(text: str, longest: int = LONGEST) -> str:
    """``text`` without its middle where it is too long; what is no Unicode is escaped.

    >>> clipped("begin" + "-" * 1000 + "end", longest=20)
    'begin-- ... ----end'
    """
    if len(text) > longest:
        half = (longest - len(" ... ")) // 2
        text = f"{text[:half]} ... {text[-half:]}"
    return text.encode("utf-8", "backslashreplace").decode()


def reason_of(error: BaseException) -> str:
    """What ``error`` says; errors of this library speak for themselves, others have their type's name before them.

    >>> reason_of(MemoryError()), reason_of(KeyError("x"))
    ('MemoryError', "KeyError: 'x'")
    """
    said = str(error)
    if isinstance(error, ExactRankError):
        return clipped(said)
    return clipped(f"{type(error).__name__}: {said}" if said else type(error).__name__)


def log_traceback() -> None:
    """Write the traceback of the error at hand to standard error, if that is open."""
    with suppress(OSError, ValueError):
        sys.stderr.write(clipped(traceback.format_exc(), LONGEST_TRACEBACK))
