"""Options, reading and printing that the commands share."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal, TextIO

import typer
from typer.models import OptionInfo

from exactrank._support.text import clip, printable
from exactrank.cli.names import complete_measure
from exactrank.errors import ExactRankError, IncompatibleError, SettingError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from exactrank.clicks.log import ClickColumns
    from exactrank.data.formats.base import ReadOptions
    from exactrank.data.ranking_data import RankingData
    from exactrank.models.model import Model


def measure_option(about: str) -> OptionInfo:
    """Return the option that takes one measure or several, which has the same name in every command."""
    option: OptionInfo = typer.Option("--measure", "-m", metavar="MEASURE", autocompletion=complete_measure, help=about)
    return option


Source = Annotated[Path, typer.Argument(help="LETOR text (also .gz), .xr cache, .parquet, .csv or TREC qrels.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Native threads; results do not depend on it. [default: all cores]")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")]
UnjudgedRule = Literal["zero", "bounds"]
UnjudgedOption = Annotated[
    UnjudgedRule, typer.Option(help="Unjudged documents gain nothing, or get bounds: the means for all grades that they may have.")
]
HighestGrade = Annotated[float | None, typer.Option(help="With --unjudged bounds: how high grades can be. [default: the largest of DATA]")]
Module = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:NAME",
        help="The PyTorch module of the model, or a function that makes it, to be imported (also from this folder): my_nets:Gated.",
    ),
]
Machine = Annotated[
    Path | None,
    typer.Option(help="A machine's grades of these and further queries; its errors are corrected by the grades of DATA."),
]
Systems = Annotated[list[str] | None, typer.Option(help="Feature or column with a system's scores; repeatable.")]


@dataclass(frozen=True)
class Options:
    """Options that are declared once, and that a command takes as one `ReadOptions`; its threads are those of the command."""

    declarations: Mapping[str, tuple[object, object]]  #: annotation and default, by name
    keep_missing: bool = True  #: are missing values kept in commands without an option for it?

    def take_from(self, arguments: dict[str, object]) -> object:
        """Remove the values of these options from ``arguments``, and return them as one object."""
        from exactrank.data.formats.base import Columns, ReadOptions

        values: dict[str, Any] = {name: arguments.pop(name) for name in self.declarations}
        names: str | None = values["feature_columns"]
        features = None if names is None else tuple(name.strip() for name in names.split(","))
        extra = tuple(name.strip() for name in (values["keep_columns"] or "").split(",") if name.strip())
        columns = Columns(values["query_column"], values["doc_column"], values["relevance_column"], features=features, keep=extra)
        keep_missing = values["missing"] == "keep" if "missing" in values else self.keep_missing
        threads: Any = arguments.get("threads")
        return ReadOptions(keep_missing, values.get("features"), columns=columns, threads=threads)


class LogOptions(Options):
    """The columns of a click log that other tables lack; query and document are named by the options of any table."""

    def take_from(self, arguments: dict[str, object]) -> object:
        """Remove the values of these options from ``arguments``, and return them as `ClickColumns`."""
        from exactrank.clicks.log import ClickColumns

        values: dict[str, Any] = {name.removesuffix("_column"): arguments.pop(name) for name in self.declarations}
        return ClickColumns(**values)


_COLUMNS = {
    "query_column": (Annotated[str, typer.Option(help="Tables: the column of query ids.")], "query_id"),
    "doc_column": (Annotated[str, typer.Option(help="Tables: the column of document ids.")], "doc_id"),
    "relevance_column": (Annotated[str, typer.Option(help="Tables: the column of grades.")], "relevance"),
    "feature_columns": (
        Annotated[str | None, typer.Option(help="Tables: the columns of features, separated by commas; by default all others.")],
        None,
    ),
    "keep_columns": (
        Annotated[
            str | None,
            typer.Option(help="Tables: columns that are not features, separated by commas, for measures such as revenue@10."),
        ],
        None,
    ),
}
_FEATURES = Annotated[int | None, typer.Option(min=1, help="Text: the number of features, if the file may lack the last ones.")]
_MISSING = Annotated[
    Literal["error", "keep"], typer.Option(help="How to treat nan, inf and NULL in a text file: as an error, or as missing values.")
]
#: How to read data for a model, which takes missing values and must have the features it was trained on.
Reading = Annotated["ReadOptions", Options({"features": (_FEATURES, None)} | _COLUMNS)]
#: How to read data to show or convert it: missing values are refused unless the user asks for them.
StrictReading = Annotated["ReadOptions", Options({"missing": (_MISSING, "error")} | _COLUMNS)]
#: How to read data either for a model or for scores.
AnyReading = Annotated["ReadOptions", Options({"missing": (_MISSING, "error"), "features": (_FEATURES, None)} | _COLUMNS)]
#: How to read a click log.
LogReading = Annotated[
    "ClickColumns",
    LogOptions(
        {
            f"{part}_column": (Annotated[str, typer.Option(help=f"Click logs: the column of {content}.")], default)
            for part, content, default in (
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
    """Read the data at ``path``, and join the ``pairs`` of another file to it, if there is one."""
    from exactrank.data import files as formats

    with regular_file(path) as file:
        data = formats.read_with(file, options)
    if pairs is None:
        return data
    from exactrank.data.pairs import read_pairs

    with regular_file(pairs) as file:
        return read_pairs(file, data)


@contextmanager
def regular_file(path: Path) -> Iterator[Path]:
    """Yield ``path``, or, for a pipe such as standard input, a copy of its content: readers may read more than once."""
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
    """Load the model at ``path`` for data with ``n_features``; a note on stderr says if its training was interrupted."""
    from exactrank.loading import load
    from exactrank.models.model import Model

    model = load(path, n_features, None if module is None else _import_object(module), kind=Model)
    if model.training.get("interrupted"):
        print_note(f"{path} is unfinished: its training was interrupted; exactrank train with --resume continues it")
    return model


def _import_object(path: str) -> object:
    """Import ``MODULE:NAME`` as ``python -m`` finds modules: the current folder comes first."""
    from importlib import import_module

    from exactrank._support.libraries import library

    module, _, name = path.partition(":")
    if not all(part.isidentifier() for part in f"{module}.{name}".split(".")):
        raise SettingError(f"--module {path!r} does not name a module and an object in it; write MODULE:NAME, e.g. my_nets:Gated")
    library("torch", "models of modules", "torch")
    sys.path.insert(0, str(Path.cwd()))
    try:
        return attrgetter(name)(import_module(module))
    except Exception as error:  # the user's code may raise anything
        raise IncompatibleError(
            f"--module {path}: {module} cannot be imported, or has no {name} ({type(error).__name__}: {error}); give a module that"
            " Python finds from this folder"
        ) from error


def optional_file(path: Path | None, force: bool) -> AbstractContextManager[BinaryIO | None]:
    """Open the output at ``path`` before the work; None if no path is given."""
    from exactrank._support.files import whole_file

    return nullcontext() if path is None else whole_file(path, force=force)


def picture(plot: Path | None, force: bool) -> "AbstractContextManager[Callable[[Figure], None] | None]":
    """Open the picture ``plot`` before the work, and yield the function that draws into it; None if no path is given."""
    from exactrank._support.pictures import picture_file

    return nullcontext() if plot is None else picture_file(plot, force=force)


def report_file(path: Path, documents: int, as_json: bool) -> None:
    """Print the path, the number of documents and the size of a file that was written."""
    from exactrank._support.files import is_stream

    size = None if is_stream(path) else path.stat().st_size
    if as_json:
        print_json({"path": str(path), "documents": documents, "bytes": size})
    else:
        print_line(f"{path}: {documents:,} documents" + ("" if size is None else f", {size:,} bytes"))


def stdout() -> TextIO:
    """Return standard output; raise if it is closed."""
    if sys.stdout is None:
        raise OSError("standard output is closed, so the results cannot be printed; send them to a file or to /dev/null")
    return sys.stdout


def print_text(text: str) -> None:
    """Print printable text on stdout."""
    typer.echo(text, file=stdout())


def print_line(line: str) -> None:
    """Print a line on stdout, with escapes for characters that cannot be shown."""
    print_text(printable(line))


def print_note(line: str) -> None:
    """Print a line on stderr: an error, or something a user should know besides the results."""
    typer.echo(f"exactrank: {printable(clip(line))}", file=sys.stderr, err=True)


def print_json(value: object) -> None:
    """Print one JSON value on stdout."""
    print_text(json.dumps(value, indent=2, allow_nan=False))


def json_number(value: float | None) -> float | None:
    """Return ``value`` as JSON can hold it: NaN becomes null."""
    return None if value is None or value != value else float(value)


def json_mean(mean: float, interval: tuple[float, float]) -> dict[str, object]:
    """Return a mean and its interval as JSON can hold them."""
    return {"mean": json_number(mean), "interval": [json_number(end) for end in interval]}
