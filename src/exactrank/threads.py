"""How many threads the native kernels use, and a pool of Python's own. Results do not depend on how many there are."""

import operator
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Generic, ParamSpec, SupportsIndex, TypeVar

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
        once: _Once[T] = _Once(lambda: work(*args, **kwargs))
        try:
            super().submit(once)
        except RuntimeError:  # what it has queued a thread may still find, and then leaves alone
            once()
        return once.result


class _Once(Generic[T]):
    """Work that is done by the first who calls."""

    def __init__(self, work: Callable[[], T]) -> None:
        self.result: Future[T] = Future()
        self._work, self._free = work, Lock()

    def __call__(self) -> None:
        if not self._free.acquire(blocking=False) or not self.result.set_running_or_notify_cancel():
            return
        try:
            self.result.set_result(self._work())
        except BaseException as error:
            self.result.set_exception(error)
