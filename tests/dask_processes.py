"""Schedulers and workers of Dask as real processes, to be lost on purpose."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def dask(program: str, *arguments: str) -> "Iterator[subprocess.Popen[str]]":
    """A process of Dask, the ``scheduler`` or a ``worker``, which ends with the block."""
    command = [sys.executable, "-m", f"distributed.cli.dask_{program}", *arguments, "--no-dashboard"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=20)


@contextmanager
def scheduler_and_address() -> "Iterator[tuple[subprocess.Popen[str], str]]":
    """A scheduler of this machine."""
    with dask("scheduler", "--host", "127.0.0.1", "--port", "0") as process:
        assert process.stderr is not None
        yield process, next(line.split()[-1] for line in process.stderr if "Scheduler at" in line)
