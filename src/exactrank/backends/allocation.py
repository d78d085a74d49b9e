"""The memory that the C library of a worker's process keeps when it is freed.

Dask starts its workers with ``MALLOC_TRIM_THRESHOLD_=65536``: memory that is freed goes back to the system at once, so that every large
array is mapped anew, page by page. Training makes many such arrays, one after the other and each as large as the last, and spends a fifth
of its time on pages. So a worker that is asked for answers keeps what it frees, up to a limit.
"""

import ctypes
import os
from contextlib import suppress
from functools import cache

#: The parameters M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of glibc, in bytes: how much is kept, and up to which size arrays are made of it.
KEPT, MAPPED = (-1, 1 << 28), (-3, 1 << 25)


@cache
def keep_freed_memory() -> bool:
    """Keep memory that is freed in this process, if Dask has set that it is not; return whether anything was changed."""
    if "MALLOC_TRIM_THRESHOLD_" not in os.environ:
        return False
    with suppress(AttributeError):  # the C library is not glibc
        library = ctypes.CDLL(None)
        return all(library.mallopt(*parameter) for parameter in (KEPT, MAPPED))
    return False
