"""Options of commands that work on data in several files, in this process, on a GPU or on a cluster."""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exactrank.errors import EngineError, SettingError

if TYPE_CHECKING:
    from distributed import Client

    from exactrank.backends.dask import DaskBackend
    from exactrank.data.backend import Backend
    from exactrank.data.formats.base import ReadOptions
    from exactrank.data.shards import Shards

Dask = Annotated[
    str | None, typer.Option("--dask", metavar="ADDRESS", help="Work on the Dask cluster at this address, e.g. tcp://10.0.0.1:8786.")
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", min=1, max=1024, rich_help_panel="Data", help="Work in this number of processes, as a Dask cluster on this machine."
    ),
]
Cuda = Annotated[bool, typer.Option("--cuda", rich_help_panel="Data", help="Search lines and grow trees on the GPU, which needs CuPy.")]
SECONDS_TO_CONNECT = 30


def shards_at(path: Path, clustered: bool, options: "ReadOptions") -> "Shards | None":
    """Return the files that ``path`` stands for, or None if it is one file to read here.

    Several files are given as a pattern, a URL or a folder of ``convert --shards``; on a cluster even one file is read there.
    """
    from exactrank.data.files import MANIFEST
    from exactrank.data.shards import is_remote, read_shards

    text = re.sub(r"^(\w+):/(?=[^/])", r"\1://", re.sub("^file:/+", "file:///", str(path)))  # a Path keeps one slash of several
    several = is_remote(text) or (path / MANIFEST).is_file() or any(sign in text for sign in "*?[")
    if (several and not path.is_file()) or path.suffix == ".json" or clustered:
        return read_shards(text, keep_missing=options.keep_missing, n_features=options.n_features, columns=options.columns)
    return None


@contextmanager
def backend_at(dask: str | None, workers: int | None, cuda: bool = False) -> "Iterator[Backend | None]":
    """Yield the backend that the options ask for; None for this process."""
    if cuda and (dask is not None or workers is not None):
        raise SettingError("--cuda computes in this process, and --dask and --workers on a cluster; give one of them")
    if cuda:
        from exactrank.backends.cuda.backend import CudaBackend

        yield CudaBackend()
        return
    with cluster_at(dask, workers) as backend:
        yield backend


@contextmanager
def cluster_at(dask: str | None, workers: int | None = None) -> "Iterator[DaskBackend | None]":
    """Yield the backend of the cluster at the address ``dask``, or of a new one with ``workers`` processes; None without either."""
    if dask is None and workers is None:
        yield None
        return
    if dask is not None and workers is not None:
        raise SettingError("--dask names a cluster, and --workers starts one; give one of them")
    from exactrank._support.libraries import library

    library("distributed", "--dask and --workers", "dask")
    from exactrank.backends.dask import DaskBackend
    from exactrank.backends.local_cluster import local_cluster

    logging.disable(logging.ERROR)  # Dask reports lost connections by tracebacks; we report what concerns a user
    try:
        with _connect(dask) if dask is not None else local_cluster(workers) as client:
            yield DaskBackend(client)
    finally:
        logging.disable(logging.NOTSET)


@contextmanager
def _connect(address: str) -> "Iterator[Client]":
    """Yield a client of the cluster at ``address``."""
    from distributed import Client
    from distributed.comm.addressing import get_address_host_port

    try:
        get_address_host_port(address)  # raises at once if it is not an address; a client would take a minute to give up
        client = Client(address, timeout=SECONDS_TO_CONNECT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise EngineError(f"no scheduler answers at {address} ({error}); check the address, or start one with dask scheduler") from None
    with client:
        yield client
