"""What all commands share: options, data and models that are read, what is printed, JSON."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, TextIO

import typer

from exactrank._support.text import clip, printable
from exactrank.cli.completion import complete_measure
from exactrank.errors import ExactRankError, IncompatibleError, SettingError

if TYPE_CHECKING:
    from exactrank.clicks.log import ClickColumns
    from exactrank.data.formats.base import ReadOptions
    from exactrank.data.ranking_data import RankingData
    from exactrank.models.model import Model


def measure_option(about: str) -> Any:
    """The option that takes a measure, or several, under the same name in every command."""
    return typer.Option("--measure", "-m", metavar="MEASURE", autocompletion=complete_measure, help=about)


Source = Annotated[Path, typer.Argument(help="LETOR text (also .gz), .xr cache, .parquet, .csv or TREC qrels.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Native threads; results do not depend on it. [default: all cores]")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")]
Module = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:NAME", help="What made the model's own PyTorch module, to be imported (also from this folder): my_nets:Gated."
    ),
]


@dataclass(frozen=True)
class Options:
    """Options that are declared once, and that a command takes as one `ReadOptions`; its threads are those of the command."""

    each: Mapping[str, tuple[Any, Any]]  #: annotation and default, by name
    keep_missing: bool = True  #: are missing values kept, where no option says?

    def taken(self, arguments: dict[str, Any]) -> "ReadOptions":
        """How to read, by the options among ``arguments``, which are taken out."""
        from exactrank.data.formats.base import Columns, ReadOptions

        given = {name: arguments.pop(name) for name in self.each}
        named = given["feature_columns"]
        features = None if named is None else tuple(name.strip() for name in named.split(","))
        keep = tuple(name.strip() for name in (given["keep_columns"] or "").split(",") if name.strip())
        columns = Columns(given["query_column"], given["doc_column"], given["relevance_column"], features=features, keep=keep)
        keep_missing = given["missing"] is Missing.KEEP if "missing" in given else self.keep_missing
        return ReadOptions(keep_missing, given.get("features"), columns=columns, threads=arguments.get("threads"))


class LogOptions(Options):
    """The columns of a click log that other tables lack; query and document are named by the options of any table."""

    def taken(self, arguments: dict[str, Any]) -> Any:
        """The columns."""
        from exactrank.clicks.log import ClickColumns

        return ClickColumns(**{name.removesuffix("_column"): arguments.pop(name) for name in self.each})


_COLUMNS = {
    "query_column": (Annotated[str, typer.Option(help="Tables: the column of query ids.")], "query_id"),
    "doc_column": (Annotated[str, typer.Option(help="Tables: the column of document ids.")], "doc_id"),
    "relevance_column": (Annotated[str, typer.Option(help="Tables: the column of grades.")], "relevance"),
    "feature_columns": (
        Annotated[str | None, typer.Option(help="Tables: the columns of features, separated by commas; by default all others.")],
        None,
    ),
    "keep_columns": (
        Annotated[str | None, typer.Option(help="Tables: columns that are no features, separated by commas, for measures as revenue@10.")],
        None,
    ),
}
_FEATURES = Annotated[int | None, typer.Option(min=1, help="Text: how many features there are, where the file may lack the last ones.")]


class Missing(StrEnum):
    """What becomes of missing values where data is read as it is."""

    ERROR = "error"
    KEEP = "keep"


_MISSING = Annotated[Missing, typer.Option(help="What nan, inf and NULL in a text file are: an error, or missing values to keep.")]
#: How to read data for a model, which takes missing values and must have the features it was trained on.
Reading = Annotated["ReadOptions", Options({"features": (_FEATURES, None)} | _COLUMNS)]
#: How to read data as it is: missing values are refused unless they are asked for.
StrictReading = Annotated["ReadOptions", Options({"missing": (_MISSING, Missing.ERROR)} | _COLUMNS)]

#: The same, also for a model.
AnyReading = Annotated["ReadOptions", Options({"missing": (_MISSING, Missing.ERROR), "features": (_FEATURES, None)} | _COLUMNS)]

#: How to read a click log.
LogReading = Annotated[
    "ClickColumns",
    LogOptions(
        {
            f"{part}_column": (Annotated[str, typer.Option(help=f"Click logs: the column of {what}.")], default)
            for part, what, default in (
                ("rank", "ranks, from 1", "rank"),
                ("clicked", "clicks, 0 or 1", "clicked"),
                ("session", "sessions, if there is one", "session_id"),
                ("weight", "weights, if there is one", "weight"),
                ("time", "times, if there is one", "time"),
            )
        }
    ),
]


def read(path: Path, options: "ReadOptions", pairs: Path | None = None) -> "RankingData":
    """The data at ``path``, with the ``pairs`` of another file where there are any."""
    from exactrank.data import files as formats

    with on_disk(path) as file:
        data = formats.read_with(file, options)
    if pairs is None:
        return data
    from exactrank.data.pairs import read_pairs

    with on_disk(pairs) as file:
        return read_pairs(file, data)


@contextmanager
def on_disk(path: Path) -> Iterator[Path]:
    """``path`` itself, or a copy of what comes through it where that is a pipe, such as standard input: for what is read more than once."""
    from exactrank._support.files import open_bytes, scratch_folder

    if not path.is_fifo():
        yield path
        return
    with scratch_folder() as folder, open_bytes(path) as pipe:
        copy = folder / "stdin"
        with open(copy, "wb") as file:
            while block := pipe.read(1 << 20):
                file.write(block)
        try:
            yield copy
        except ExactRankError as error:
            raise type(error)(str(error).replace(str(copy), str(path))) from None


def load_model(path: Path, n_features: int | None = None, module: str | None = None) -> "Model":
    """The model at ``path`` for data with ``n_features``; one whose training was broken off is told on stderr."""
    from exactrank.loading import load
    from exactrank.models.model import Model

    model = load(path, n_features, None if module is None else _imported(module), kind=Model)
    if model.training.get("interrupted"):
        tell(f"{path} is unfinished: its training was interrupted; exactrank train with --resume goes on with it")
    return model


def _imported(written: str) -> Any:
    """What ``MODULE:NAME`` names, found as ``python -m`` finds it: the current folder comes first."""
    from importlib import import_module

    from exactrank.data.frame import library

    place, _, name = written.partition(":")
    if not all(part.isidentifier() for part in f"{place}.{name}".split(".")):
        raise SettingError(f"--module {written!r} does not name what made the module; write MODULE:NAME, e.g. my_nets:Gated")
    library("torch", "models of modules", "torch")
    sys.path.insert(0, str(Path.cwd()))
    try:
        return attrgetter(name)(import_module(place))
    except Exception as error:  # the user's code raises whatever it raises
        raise IncompatibleError(
            f"--module {written}: {place} cannot be imported, or has no {name} ({type(error).__name__}: {error}); give a module that"
            " Python finds from this folder"
        ) from error


def optional_file(path: Path | None, force: bool) -> AbstractContextManager[BinaryIO | None]:
    """The output at ``path``, opened before the work; None where none is asked for."""
    from exactrank._support.files import whole_file

    return nullcontext() if path is None else whole_file(path, force=force)


def report_written(target: Path, rows: int, as_json: bool) -> None:
    """Say what was written where."""
    from exactrank._support.files import is_stream

    size = None if is_stream(target) else target.stat().st_size
    if as_json:
        print_json({"path": str(target), "documents": rows, "bytes": size})
    else:
        say(f"{target}: {rows:,} documents" + ("" if size is None else f", {size:,} bytes"))


def stdout() -> TextIO:
    """Standard output, once it is not closed."""
    if sys.stdout is None:
        raise OSError("standard output is closed, so the results cannot be printed; send them to a file or to /dev/null")
    return sys.stdout


def write(text: str) -> None:
    """Text that is fit to be shown, on stdout."""
    typer.echo(text, file=stdout())


def say(line: str) -> None:
    """A line on stdout."""
    write(printable(line))


def tell(line: str) -> None:
    """A line on stderr: what a user should know besides the results."""
    typer.echo(f"exactrank: {printable(clip(line))}", file=sys.stderr, err=True)


def print_json(value: Any) -> None:
    """One JSON value on stdout."""
    write(json.dumps(value, indent=2, allow_nan=False))


def number(value: float | None) -> float | None:
    """A number as JSON has it: NaN is null."""
    return None if value is None or value != value else float(value)
