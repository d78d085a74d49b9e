"""What all commands share: options, errors as a line on stderr and an exit code, what is printed, JSON.

Exit codes: 0 done, 1 the job failed, 2 bad usage or input.
"""

import functools
import inspect
import json
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer
from typer.core import TyperGroup

from exactrank.cli.failures import line_and_code
from exactrank.cli.streams import leave_stdout, stdout
from exactrank.text import printable, shortened

if TYPE_CHECKING:
    from exactrank.data.format import ReadOptions
    from exactrank.data.ranking_data import RankingData
    from exactrank.scorers.model import Model


class Program(TyperGroup):
    """All commands; what it says of bad usage is `printable`, whatever the arguments were."""

    def make_context(self, *given: Any, **settings: Any) -> Any:
        """Read the arguments."""
        with _printable_usage():
            return super().make_context(*given, **settings)

    def invoke(self, ctx: Any) -> Any:
        """Read the arguments of the command, and run it."""
        with _printable_usage():
            return super().invoke(ctx)


@contextmanager
def _printable_usage() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if hasattr(error, "format_message"):  # click's errors of usage, wherever typer has click from
            error.message = printable(shortened(error.message, 300))  # type: ignore[attr-defined]
        raise


app = typer.Typer(
    cls=Program,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Learning to rank, trained on the measure you report.",
)

Source = Annotated[Path, typer.Argument(help="LETOR text (also .gz), .xr cache, .parquet, .csv or TREC qrels.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Native threads; results do not depend on it. \\[default: all cores]")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")]


@dataclass(frozen=True)
class Options:
    """Options that are declared once, and that a command takes as one `ReadOptions`; its threads are those of the command."""

    each: Mapping[str, tuple[Any, Any]]  #: annotation and default, by name
    keep_missing: bool = True  #: are missing values kept, where no option says?

    def parameters(self) -> list[inspect.Parameter]:
        """What stands in the command's signature."""
        return [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
            for name, (annotation, default) in self.each.items()
        ]

    def taken(self, arguments: dict[str, Any]) -> "ReadOptions":
        """How to read, by the options among ``arguments``, which are taken out."""
        from exactrank.data.format import Columns, ReadOptions

        given = {name: arguments.pop(name) for name in self.each}
        columns = Columns(given["query_column"], given["doc_column"], given["relevance_column"])
        keep_missing = given.get("keep_missing", self.keep_missing)
        return ReadOptions(keep_missing, given.get("features"), columns=columns, verify=True, threads=arguments.get("threads"))


_COLUMNS = {
    "query_column": (Annotated[str, typer.Option(help="Tables: the column of query ids.")], "query_id"),
    "doc_column": (Annotated[str, typer.Option(help="Tables: the column of document ids.")], "doc_id"),
    "relevance_column": (Annotated[str, typer.Option(help="Tables: the column of grades.")], "relevance"),
}
_FEATURES = Annotated[int | None, typer.Option(min=1, help="Text: how many features there are, where the file may lack the last ones.")]
_KEEP_MISSING = Annotated[bool, typer.Option("--keep-missing", help="Text: keep nan, inf and NULL as missing values.")]
#: How to read data for a model, which takes missing values and must have the features it was trained on.
Reading = Annotated["ReadOptions", Options({"features": (_FEATURES, None)} | _COLUMNS)]
#: How to read data as it is: missing values are refused unless they are asked for.
StrictReading = Annotated["ReadOptions", Options({"keep_missing": (_KEEP_MISSING, False)} | _COLUMNS)]


def command(to: typer.Typer) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Registers a `guarded` function as a command of ``to``: the program itself or a group such as ``probe``."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        wrapped = guarded(function)
        to.command()(wrapped)
        return wrapped

    return register


def guarded(function: Callable[..., None]) -> Callable[..., None]:
    """``function`` with `Options` taken as one, and an option ``--debug``, without which errors are a line on stderr and an exit code."""
    signature = inspect.signature(function)
    groups = {name: group for name, given in signature.parameters.items() if (group := _group(given)) is not None}

    @functools.wraps(function)
    def wrapped(*, debug: bool, **arguments: Any) -> None:
        try:
            with _prints_beside(arguments.values()), plain_warnings():
                taken = {name: group.taken(arguments) for name, group in groups.items()}
                function(**arguments, **taken)
        except KeyboardInterrupt:
            if debug:
                raise
            tell("interrupted")
            raise typer.Exit(1) from None
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except Exception as error:
            if debug:
                raise
            line, code = line_and_code(error)
            leave_stdout()
            if not isinstance(error, BrokenPipeError):  # the reader of our output left; nothing more to say
                tell(line)
            raise typer.Exit(code) from None

    option = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
    flag = inspect.Parameter("debug", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=option)
    own = [given.replace(kind=flag.kind) for name, given in signature.parameters.items() if name not in groups]
    own += [each for group in groups.values() for each in group.parameters()]
    wrapped.__signature__ = signature.replace(parameters=[*own, flag])  # type: ignore[attr-defined]
    wrapped.__annotations__ = {each.name: each.annotation for each in (*own, flag)}
    return wrapped


def _group(given: inspect.Parameter) -> Options | None:
    return next((each for each in getattr(given.annotation, "__metadata__", ()) if isinstance(each, Options)), None)


@contextmanager
def _prints_beside(arguments: Iterable[Any]) -> Iterator[None]:
    """Where an output goes to standard output, all else that a command prints goes to stderr."""
    from exactrank.files import is_stream

    if not any(isinstance(each, Path) and is_stream(each) for each in arguments):
        yield
        return
    with redirect_stdout(sys.stderr):
        yield


def load_model(path: Path) -> "Model":
    """The model at ``path``; one whose training was broken off is told on stderr."""
    from exactrank.scorers.model import load

    model = load(path)
    if model.training.get("interrupted"):
        tell(f"{path} is unfinished: its training was interrupted; exactrank train with --resume goes on with it")
    return model


def optional_file(path: Path | None, force: bool) -> AbstractContextManager[BinaryIO | None]:
    """The output at ``path``, opened before the work; None where none is asked for."""
    from exactrank.files import whole_file

    return nullcontext() if path is None else whole_file(path, force=force)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Shows what this library warns of as it shows errors, as a line without a place in the code."""
    from exactrank.errors import PluginWarning, PrecisionWarning

    with warnings.catch_warnings():
        usual = warnings.showwarning

        def shown(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, PluginWarning | PrecisionWarning):
                tell(str(message))
            else:
                usual(message, category, *place, **more)

        warnings.showwarning = shown
        yield


@dataclass
class Counter:
    """Counts rows and passes them on to a progress bar."""

    advance: Callable[[int], None]
    total: int = 0

    def __call__(self, rows: int) -> None:
        self.total += rows
        self.advance(rows)


def read(path: Path, options: "ReadOptions") -> "RankingData":
    """The data at ``path``."""
    from exactrank.data import formats

    return formats.read_as(path, options)


@contextmanager
def progress(what: str, total: int | None, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A bar that counts documents."""
    from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn

    from exactrank.cli.terminal import progress_bar, words

    with progress_bar(words(), BarColumn(), MofNCompleteColumn(), words("documents"), TimeRemainingColumn(), quiet=quiet) as bar:
        task = bar.add_task(printable(what), total=total)
        yield lambda rows: bar.advance(task, rows)


def report_written(target: Path, rows: int, as_json: bool) -> None:
    """Say what was written where."""
    from exactrank.files import is_stream

    size = None if is_stream(target) else target.stat().st_size
    if as_json:
        print_json({"path": str(target), "documents": rows, "bytes": size})
    else:
        say(f"{target}: {rows:,} documents" + ("" if size is None else f", {size:,} bytes"))


def write(text: str) -> None:
    """Text that is fit to be shown, on stdout."""
    typer.echo(text, file=stdout())


def say(line: str) -> None:
    """A line on stdout."""
    write(printable(line))


def tell(line: str) -> None:
    """A line on stderr: what a user should know besides the results."""
    typer.echo(f"exactrank: {printable(shortened(line))}", file=sys.stderr, err=True)


def print_json(value: Any) -> None:
    """One JSON value on stdout."""
    write(json.dumps(value, indent=2, allow_nan=False))


def number(value: float) -> float | None:
    """A number as JSON has it: NaN is null."""
    return None if value != value else float(value)
