"""How many threads the native kernels use. Results do not depend on it."""

import os


def thread_count(threads: int | None) -> int:
    """``threads``, or by default every core this process may run on.

    >>> thread_count(3)
    3
    """
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if threads < 1:
        raise ValueError(f"threads must be at least 1, got {threads}")
    return threads
