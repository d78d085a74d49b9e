"""Click logs as files that `read_clicks` reads."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from exactrank._support.files import checked_path, whole_file
from exactrank.clicks.log import Clicks, check_clicks
from exactrank.data.frame import library
from exactrank.errors import DataError


def write_clicks(clicks: Clicks, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write a click log as Parquet or CSV, by the path's suffix; an existing file is replaced only with ``force``."""
    check_clicks(clicks, "clicks")
    with log_writer(path, force=force) as write:
        write(clicks)


@contextmanager
def log_writer(path: str | os.PathLike[str], *, force: bool = False) -> Iterator[Callable[[Clicks], None]]:
    """Provide a function that writes a log to ``path``, which is opened before the work that makes the log."""
    suffix = checked_path(path).suffix.lower()
    if suffix not in (".parquet", ".csv"):
        raise DataError(f"{path}: the suffix {suffix!r} is not that of a click log; use .parquet or .csv")
    arrow, module = library("pyarrow"), library(f"pyarrow.{suffix[1:]}")
    with whole_file(path, force=force) as file:

        def write(clicks: Clicks) -> None:
            table = arrow.table(dict(clicks._columns()))
            (module.write_table if suffix == ".parquet" else module.write_csv)(table, file)

        yield write
