"""The number of threads of native kernels, and a pool of Python threads. Results do not depend on the number of threads."""

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
    """Return ``threads``, or by default the number of cores that this process may use.

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
    """A pool of threads; if no thread can be started, for lack of memory or by a limit, the caller does the work.

    >>> with Pool(2) as pool:
    ...     list(pool.map(abs, [-1, 2]))
    [1, 2]
    """

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Return the future result of ``work``."""
        result: Future[T] = Future()
        free = Lock()

        def work_once() -> None:
            if free.acquire(blocking=False) and result.set_running_or_notify_cancel():
                try:
                    result.set_result(work(*args, **kwargs))
                except BaseException as error:
                    result.set_exception(error)

        try:
            super().submit(work_once)
        except RuntimeError:  # a thread may still find the work in the queue, and then leaves it alone
            work_once()
        return result
