"""A Dask cluster of processes on this machine that nobody else can use: the only place where such processes are started.

Left to itself, Dask shares a folder with a predictable name between all users and imports modules from there, takes tasks from anyone who
can reach its ports, and answers HTTP on all interfaces. Here

- all files lie in a folder that only this user can enter, with a random name; it is removed at the end,
- processes talk by TLS and know each other by a certificate that is made for this cluster; its key goes through pipes and memory, and
  for a moment through a file that only this user can read,
- every socket listens on the loopback interface, and no HTTP server is left,
- new interpreters do not import from the current folder, which may be anybody's.

Workers import this module when they start (`dask_setup`).
"""

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from exactrank._support.files import scratch_folder
from exactrank.errors import EngineError

LOOPBACK = "127.0.0.1"


@contextmanager
def local_cluster(workers: int | None) -> Iterator[Any]:
    """A client of a new cluster of this number of ``workers``, each a process with one thread, which ends with the block."""
    import dask
    from distributed import Client, LocalCluster, Security

    try:
        security = Security.temporary()
    except ImportError as error:
        raise EngineError(f"processes of a cluster need cryptography ({error}); install it with pip install exactrank[dask]") from error
    with (
        scratch_folder() as folder,
        dask.config.set({"temporary-directory": str(folder)}),  # of the scheduler too, which takes no other word for it
        _environment(PYTHONSAFEPATH="1"),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            # Without a limit on memory: Dask would count the pages of mapped files, and pause or end workers that have plenty.
            memory_limit=0,
            host=LOOPBACK,
            protocol="tls://",
            security=security,
            local_directory=str(folder),
            preload=__name__,  # a module's name: Dask would write a text to a file of the shared temporary folder
            dashboard_address=f"{LOOPBACK}:0",
            scheduler_kwargs={"dashboard": False, "preload": __name__},
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def dask_setup(server: Any) -> None:
    """Called by Dask in the scheduler and in each worker: end the HTTP server, which shows the work to everybody."""
    from distributed import Worker

    server.http_server.stop()
    if isinstance(server, Worker):  # Ctrl-C goes to all processes of a terminal, and the client alone ends the work
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    """Set environment ``variables`` for all processes that start within the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ |= variables
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
