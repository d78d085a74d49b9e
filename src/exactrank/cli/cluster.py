"""Options of commands that work on data in several files, here or on a cluster."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exactrank.errors import DataError, EngineError, SettingError

if TYPE_CHECKING:
    from exactrank.engine.engine import Engine
    from exactrank.engine.partitions import Shards

Dask = Annotated[str | None, typer.Option("--dask", metavar="ADDRESS", help="Work on the Dask cluster there, e.g. tcp://10.0.0.1:8786.")]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", min=1, max=1024, rich_help_panel="Data", help="Work in this number of processes, as a Dask cluster on this machine."
    ),
]
SECONDS_TO_CONNECT = 30


def shards_at(path: Path, clustered: bool) -> "Shards | None":
    """The files that ``path`` stands for: a pattern, a URL, what convert --shards wrote; on a cluster any file; else None."""
    from exactrank.data.formats import MANIFEST
    from exactrank.engine.partitions import is_remote, read_shards

    text = re.sub(r"^(\w+):/(?=[^/])", r"\1://", str(path))  # a Path keeps one slash of two
    several = is_remote(text) or (path / MANIFEST).is_file() or path.suffix == ".json" or any(sign in text for sign in "*?[")
    return read_shards(text) if (several and not path.is_file()) or path.suffix == ".json" or clustered else None


@contextmanager
def engine_at(dask: str | None, workers: int | None) -> "Iterator[Engine | None]":
    """The engine that the options ask for; None for this process."""
    if dask is None and workers is None:
        yield None
        return
    if dask is not None and workers is not None:
        raise SettingError("--dask names a cluster, and --workers starts one; give one of them")
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise DataError("--dask and --workers need Dask; install it with pip install exactrank[dask]") from None
    from exactrank.engine.dask import DaskEngine

    if dask is not None:
        try:
            client = Client(dask, timeout=SECONDS_TO_CONNECT, set_as_default=False)
        except (OSError, ValueError) as error:
            raise EngineError(f"no scheduler answers at {dask} ({error}); check the address, or start one with dask scheduler") from None
        with client:
            yield DaskEngine(client)
        return
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield DaskEngine(client)
