"""Schedulers and workers of Dask as real processes, to be lost on purpose, and a clock that goes by their signs of life."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from exactrank.backends.dask import DaskBackend
from tests.events import HANGS, wait_until


@contextmanager
def dask(program: str, *arguments: str) -> "Iterator[subprocess.Popen[str]]":
    """A process of Dask, the ``scheduler`` or a ``worker``, which ends with the block."""
    command = [sys.executable, "-m", f"distributed.cli.dask_{program}", *arguments, "--no-dashboard"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=HANGS)


@contextmanager
def scheduler_and_address() -> "Iterator[tuple[subprocess.Popen[str], str]]":
    """A scheduler of this machine."""
    with dask("scheduler", "--host", "127.0.0.1", "--port", "0") as process:
        assert process.stderr is not None
        yield process, next(line.split()[-1] for line in process.stderr if "Scheduler at" in line)


def answering(client: Any, workers: int) -> None:
    """Wait until this number of ``workers`` answers, and the scheduler has no others: it may not know yet that one of them is gone."""

    def answer() -> bool:
        with suppress(OSError):
            return len(client.run(os.getpid)) == workers
        return False

    wait_until(answer)


class ByHeartbeat(DaskBackend):
    """An engine whose clock, put in the place of `exactrank.backends.dask.time`, goes by the signs of life of its workers.

    It stands still, however busy the machine is. Only where the engine sleeps, or believes in a worker that is ``stopped``, it jumps by
    more than the silence, and not before all others have shown another sign of life.
    """

    now = 0.0
    stopped = ""  #: the address of a worker that shows none

    def __init__(self, client: Any) -> None:
        super().__init__(client, silence=HANGS)
        self._hangs = time.monotonic() + HANGS

    def monotonic(self) -> float:
        """The time of this clock."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Time passes."""
        before = DaskBackend.facts(self)

        def heard() -> bool:
            others = {address: own for address, own in DaskBackend.facts(self).items() if address in before and address != self.stopped}
            return all(own["last_seen"] != before[address]["last_seen"] for address, own in others.items())

        wait_until(heard)
        self.now += self.silence + 1

    def facts(self) -> dict[str, Any]:
        """Return what the scheduler knows, after the time in which it waits for a stopped worker."""
        assert time.monotonic() < self._hangs, "it hangs"
        _, since = self._seen.get(self.stopped, (0.0, -float("inf")))
        if self.now - since <= self.silence:
            self.sleep(0)
        return super().facts()
