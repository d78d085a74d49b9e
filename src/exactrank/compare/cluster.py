"""Fits on the workers of a Dask cluster instead of in processes of this machine (`exactrank.compare.workers.ForkServer`).

A fit is a task. The worker that gets it starts a process for it, as this machine would, with the same limit, and watches that process: it
is killed when the task is cancelled or its client is gone. Results are files; the folder of the comparison must be one that all workers
see under the same path. Dask gives the fit of a lost worker to another one. Which worker did a fit changes no result.

Each thread of a worker does one fit at a time.
"""

import pickle
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from exactrank.compare.workers import ForkServer, ProcessExit, pickle_job
from exactrank.errors import DataError

if TYPE_CHECKING:
    from distributed import Future

#: Seconds between two looks at a process.
LOOK = 0.25
#: The states of a future that has not ended; Dask repeats the fit of a lost one.
RUNNING = ("pending", "lost")
#: The server of each thread of a worker, kept from fit to fit, and the arguments that it was made with.
_servers = threading.local()


class Cluster(Protocol):
    """The methods of a `DaskBackend` that fits need."""

    def alive(self) -> Sequence[str]:
        """Return the addresses of the workers that show signs of life."""

    def submit(self, work: Callable[[], object]) -> "Future[ProcessExit]":
        """Return the future of ``work``."""

    def facts(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the scheduler's facts about its workers, by address."""


class ClusterServer:
    """Starts fits on ``cluster``; it has the methods of `ForkServer`."""

    def __init__(self, cluster: Cluster, threads: int, folder: Path, libraries: Sequence[str] = ()) -> None:
        self._cluster, self._threads, self._folder, self._libraries = cluster, threads, folder, tuple(libraries)
        self._futures: dict[str, Future[ProcessExit]] = {}

    def start(self, name: str, run: Callable[[], None], limit: float | None) -> ProcessExit | None:
        """Call ``run`` in a process of a worker; `wait` reports its end under ``name``."""
        job = pickle_job(run)
        if isinstance(job, ProcessExit):
            return job
        self._futures[name] = self._cluster.submit(partial(fit_on_worker, name, job, limit, self._threads, self._folder, self._libraries))
        return None

    def wait(self, seconds: float) -> tuple[str, ProcessExit] | None:
        """Return the name of a fit that has ended, and how; None if none ends within this number of seconds."""
        deadline = time.monotonic() + seconds
        while True:
            for name, future in self._futures.items():
                if future.status in RUNNING:
                    continue
                del self._futures[name]
                if future.status == "finished":
                    return name, future.result()
                failed = future.status == "error"
                message = f"its worker could not run it: {future.exception()}" if failed else "it was cancelled on the cluster"
                return name, ProcessExit(1, message)
            if time.monotonic() > deadline:
                self._cluster.alive()  # raises if no worker is left to wait for
                return None
            time.sleep(0.02)

    def close(self) -> None:
        """End all running fits: workers notice that their tasks are cancelled."""
        for future in self._futures.values():
            with suppress(Exception):  # of a cluster that is gone
                future.cancel()


def count_slots(cluster: Cluster) -> int:
    """Return the number of fits that ``cluster`` can do at a time: the threads of all its workers."""
    facts = cluster.facts()
    return sum(int(facts[address]["nthreads"]) for address in cluster.alive() if address in facts)


def fit_on_worker(name: str, job: bytes, limit: float | None, threads: int, folder: Path, libraries: tuple[str, ...]) -> ProcessExit:
    """On a worker, run ``job`` in a process of its own and return how that ended."""
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()
    if not folder.is_dir():
        raise DataError(f"worker {worker.address} does not see {folder}; give out=... (--out), a folder that all workers share")
    file_name = re.sub(r"[^\w.-]+", "-", str(worker.name))  # by default its address
    server = _thread_server(threads, folder / f"log-{file_name}.txt", libraries)
    process_exit = server.start(name, pickle.loads(job), limit)
    while process_exit is None:
        answer = server.wait(LOOK)
        task = worker.state.tasks.get(key)
        if answer is not None:
            process_exit = answer[1]
        elif task is None or task.state == "cancelled":  # its client has ended, or no longer wants it
            server.close()
            _servers.current = None
            process_exit = ProcessExit(1, "nobody wants it any more")
    return process_exit


def _thread_server(threads: int, log: Path, libraries: tuple[str, ...]) -> ForkServer:
    """Return the server of this thread, a new one if its arguments were others."""
    arguments = threads, log, libraries
    current: tuple[tuple[int, Path, tuple[str, ...]], ForkServer] | None = getattr(_servers, "current", None)
    if current is None or current[0] != arguments:
        if current is not None:
            current[1].close()
        current = arguments, ForkServer(*arguments)
        _servers.current = current
    return current[1]
