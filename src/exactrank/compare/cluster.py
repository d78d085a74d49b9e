"""Fits on the workers of a Dask cluster, in the place of processes of this machine (`exactrank.compare.workers.Server`).

A fit is a task. The worker that gets it starts a process for it, as this machine would, with the same limit, and watches that process: it
is killed when nobody wants the fit any more. Results are files; the folder of the comparison must be one that all workers see under the
same path. The fit of a worker that is lost is given to another by Dask. Which fit ran where changes no result.

Each thread of a worker is a place for one fit.
"""

import re
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import cloudpickle

from exactrank.compare.workers import Ended, Server
from exactrank.errors import DataError

#: Seconds between two looks at a process.
LOOK = 0.25
#: What each thread of a worker keeps from fit to fit: the server that starts its processes, and what it was made of.
_kept = threading.local()


class Cluster(Protocol):
    """What is needed of a `DaskBackend`."""

    def alive(self) -> list[str]:
        """The addresses of the workers that show signs of life."""

    def submit(self, work: Callable[[], Any]) -> Any:
        """The future of ``work``."""

    def facts(self) -> dict[str, Any]:
        """What the scheduler knows of its workers, by address."""


class ClusterServer:
    """Starts fits on ``cluster``; it has the methods of `Server`."""

    def __init__(self, cluster: Cluster, threads: int, folder: Path, libraries: Sequence[str] = ()) -> None:
        self._cluster, self._how = cluster, (threads, folder, tuple(libraries))
        self._futures: dict[str, Any] = {}

    def start(self, name: str, run: Callable[[], None], limit: float | None) -> Ended | None:
        """Call ``run`` in a process of a worker; `wait` will tell of its end by the ``name``."""
        try:
            job = cloudpickle.dumps(run)
        except Exception as error:  # pickle raises whatever the value's classes raise
            return Ended(1, f"it cannot be sent to another process ({error}); leave out of it what only this process can hold")
        self._futures[name] = self._cluster.submit(partial(fitted, name, job, limit, *self._how))
        return None

    def wait(self, seconds: float) -> tuple[str, Ended] | None:
        """The name of a fit that has ended, and how; None if none does within this number of seconds."""
        until = time.monotonic() + seconds
        while True:
            for name, future in self._futures.items():
                if future.done():
                    del self._futures[name]
                    return name, self._ended(future)
            if time.monotonic() > until:
                self._cluster.alive()  # raises where nobody is there to wait for
                return None
            time.sleep(0.02)

    def _ended(self, future: Any) -> Ended:
        if future.status == "finished":
            return Ended(**future.result())
        if future.status == "error":
            return Ended(1, f"its worker could not run it: {future.exception()}")
        return Ended(1, "it was cancelled on the cluster")

    def close(self) -> None:
        """End whatever is running: workers notice that nobody wants it any more."""
        for future in self._futures.values():
            with suppress(Exception):  # of a cluster that is gone
                future.cancel()


def slots(cluster: Cluster) -> int:
    """The number of fits that ``cluster`` can do at a time: the threads of all its workers."""
    found = cluster.facts()
    return sum(int(found[address]["nthreads"]) for address in cluster.alive() if address in found)


def fitted(name: str, job: bytes, limit: float | None, threads: int, folder: Path, libraries: tuple[str, ...]) -> dict[str, Any]:
    """On a worker: do ``job`` in a process of its own; how that ended."""
    import pickle
    from dataclasses import asdict

    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()
    if not folder.is_dir():
        raise DataError(f"worker {worker.address} does not see {folder}; give --out (out=...) a folder that all workers share")
    where = re.sub(r"[^\w.-]+", "-", str(worker.name))  # by default its address
    server = _server(threads, folder / f"log-{where}.txt", libraries)
    refused = server.start(name, pickle.loads(job), limit)
    while refused is None:
        heard = server.wait(LOOK)
        if heard is not None:
            return asdict(heard[1])
        task = worker.state.tasks.get(key)
        if task is None or task.state == "cancelled":  # its client has ended, or wants it no more
            server.close()
            _kept.made = None
            return asdict(Ended(1, "nobody wants it any more"))
    return asdict(refused)


def _server(*how: Any) -> Server:
    """The server of this thread, a new one where another is needed."""
    made = getattr(_kept, "made", None)
    if made is None or made[0] != how:
        if made is not None:
            made[1].close()
        made = how, Server(*how)
        _kept.made = made
    server: Server = made[1]
    return server
