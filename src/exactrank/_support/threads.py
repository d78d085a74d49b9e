"""How many threads the native kernels use, and a pool of Python's own. Results do not depend on how many there are."""

import operator
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import ParamSpec, SupportsIndex, TypeVar

from exactrank.errors import DataError

T = TypeVar("T")
P = ParamSpec("P")
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


class Pool(ThreadPoolExecutor):
    """Threads that do what is submitted; where none can be started, for want of memory or by a limit, the caller does it.

    >>> with Pool(2) as pool:
    ...     list(pool.map(abs, [-1, 2]))
    [1, 2]
    """

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """The result to come of ``work``."""
        result: Future[T] = Future()
        free = Lock()

        def once() -> None:
            if free.acquire(blocking=False) and result.set_running_or_notify_cancel():
                try:
                    result.set_result(work(*args, **kwargs))
                except BaseException as error:
                    result.set_exception(error)

        try:
            super().submit(once)
        except RuntimeError:  # what it has queued a thread may still find, and then leaves alone
            once()
        return result
