"""How many threads the native kernels use. Results do not depend on it."""

import operator
import os
from typing import SupportsIndex

from exactrank.errors import DataError

MOST = 4096


def thread_count(threads: SupportsIndex | None) -> int:
    """``threads``, or by default every core this process may run on.

    >>> thread_count(3)
    3
    """
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        count = 0 if isinstance(threads, bool) else operator.index(threads)
    except TypeError:
        count = 0
    if not 1 <= count <= MOST:
        raise DataError(f"threads={threads!r} is not a whole number from 1 to {MOST:,}; give fewer, or None for every core")
    return count
