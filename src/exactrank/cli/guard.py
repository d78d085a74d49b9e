"""The application, and the wrapper around each command: errors become a line on stderr and an exit code, and - is standard input.

Exit codes: 0 done, 1 the job failed, 2 bad usage or input.
"""

import errno
import functools
import inspect
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from exactrank._support.text import clip, printable
from exactrank.cli.common import Options, print_note
from exactrank.cli.help import Group, describe_parameter
from exactrank.errors import (
    DataError,
    EvaluationWarning,
    ExactRankError,
    InterruptedWarning,
    LeftOutWarning,
    PluginWarning,
    PrecisionWarning,
)

if TYPE_CHECKING:
    from typer._click import Command, Context  # typer's own copy of click

MEMORY = "not enough memory{}; give less data or fewer features, or convert text to an .xr cache, which is mapped instead of read"
STDIN = "/dev/stdin"
#: Arguments that are read, for which - is standard input; for all others it is standard output.
INPUTS = ("data", "source", "model", "scores", "run", "valid", "test", "fusion", "start", "pairs", "clicks")
CLOSED = "standard input or output is closed; open it, or give the path of a file"
_ALLOCATION = re.compile(r"Unable to allocate ([\d.]+ \w+)")  # NumPy's words


class CommandLine(Group):
    """The group of all commands; its messages about bad usage are `printable`, whatever the arguments were.

    A command may have a name of two words, of which the first is a command too: ``fuse apply``.
    """

    def list_commands(self, ctx: "Context") -> list[str]:
        """Return the names of all commands, ``train`` first."""
        return sorted(super().list_commands(ctx), key=lambda name: name != "train")

    def resolve_command(self, ctx: "Context", args: list[str]) -> "tuple[str | None, Command | None, list[str]]":
        """Return the name of the command, the command, and its arguments."""
        if " ".join(args[:2]) in self.commands and len(args) > 1:
            args = [" ".join(args[:2]), *args[2:]]
        return super().resolve_command(ctx, args)

    def make_context(self, info_name: str | None, args: list[str], parent: "Context | None" = None, **extra: object) -> "Context":
        """Parse the options before the command."""
        with _printable_usage():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: "Context") -> object:
        """Parse the arguments of the command, and run it."""
        with _printable_usage():
            return super().invoke(ctx)


@contextmanager
def _printable_usage() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if hasattr(error, "format_message"):  # click's errors of usage, wherever typer has click from
            error.message = printable(clip(error.message.replace("Value error, ", ""), 300))  # type: ignore[attr-defined]
        raise


app = typer.Typer(
    cls=CommandLine,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Learning to rank, trained on the measure you report.",
)


def guard(function: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command: its `Options` become single options, and unless ``--debug`` is given, errors become a line and an exit code."""
    signature = inspect.signature(function)
    metadata = {name: getattr(parameter.annotation, "__metadata__", ()) for name, parameter in signature.parameters.items()}
    groups = {name: item for name, items in metadata.items() for item in items if isinstance(item, Options)}

    @functools.wraps(function)
    def command(*, debug: bool, **arguments: object) -> None:
        from exactrank._support.files import is_stream

        with nullcontext() if debug else report_errors():
            arguments = arguments | _name_stdin({name: arguments[name] for name in INPUTS if name in arguments})
            # If an output goes to standard output, everything else that a command prints goes to stderr.
            streams = any(isinstance(value, Path) and is_stream(value) for value in arguments.values())
            with redirect_stdout(sys.stderr) if streams else nullcontext(), plain_warnings():
                grouped = {name: group.take_from(arguments) for name, group in groups.items()}
                function(**arguments, **grouped)

    options = {name: option for group in groups.values() for name, option in group.declarations.items()}
    options["debug"] = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")], False
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [parameter.replace(kind=kind) for name, parameter in signature.parameters.items() if name not in groups]
    parameters += [inspect.Parameter(name, kind, annotation=annotation, default=default) for name, (annotation, default) in options.items()]
    parameters = [describe_parameter(parameter) for parameter in parameters]
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


@contextmanager
def report_errors() -> Iterator[None]:
    """Turn an error into a line on stderr and an exit code."""
    try:
        yield
    except KeyboardInterrupt:
        print_note("interrupted")
        raise typer.Exit(1) from None
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except Exception as error:
        line, code = line_and_code(error)
        try:
            if sys.stdout is not None:
                sys.stdout.flush()
        except OSError:  # its reader left, or the disk is full: what is still in the buffer goes nowhere
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # the reader of our output left; nothing more to say
            print_note(line)
        raise typer.Exit(code) from None


def _name_stdin(inputs: dict[str, object]) -> dict[str, object]:
    """Replace - and NAME=- by the path of standard input, which one input may be."""
    count = 0

    def name_stdin(value: object) -> object:
        nonlocal count
        if isinstance(value, list):
            return [name_stdin(item) for item in value]
        name, equals, path = value.rpartition("=") if isinstance(value, str) else ("", "", str(value))
        if path != "-" or not isinstance(value, str | Path):
            return value
        count += 1
        return type(value)(f"{name}{equals}{STDIN}")

    paths = {name: name_stdin(value) for name, value in inputs.items()}
    if count > 1:
        raise DataError(f"- is given {count} times, but standard input can be read once; give files for the others")
    if count and sys.stdin is None:
        raise OSError(errno.EBADF, CLOSED)
    return paths


def line_and_code(error: Exception) -> tuple[str, int]:
    """Return the message for ``error``, and the exit code.

    >>> line_and_code(FileNotFoundError(2, "No such file or directory", "a.txt"))
    ('a.txt: No such file or directory', 1)
    >>> line_and_code(ZeroDivisionError("division by zero"))[0]
    'internal error (ZeroDivisionError: division by zero); run it again with --debug, and report what that shows'
    """
    if isinstance(error, ExactRankError):
        return str(error) or type(error).__name__, 2
    if isinstance(error, MemoryError):
        size = _ALLOCATION.search(str(error))
        return MEMORY.format(f" for another {size[1]}" if size else ""), 1
    if not isinstance(error, OSError):
        description = f"{type(error).__name__}: {error}".removesuffix(": ")
        return f"internal error ({description}); run it again with --debug, and report what that shows", 1
    if error.strerror is None:
        return str(error) or type(error).__name__, 1
    if error.errno == errno.EBADF and error.filename is None:
        return CLOSED, 1
    paths = [os.fsdecode(name) for name in (error.filename, error.filename2) if isinstance(name, str | bytes | os.PathLike)]
    return f"{' and '.join(paths) or 'input or output'}: {error.strerror}", 1


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Show this library's warnings as its errors are shown, as a line without a place in the code."""
    with warnings.catch_warnings():
        show_default = warnings.showwarning

        def show(
            message: Warning | str, category: type[Warning], filename: str, lineno: int, file: TextIO | None = None, line: str | None = None
        ) -> None:
            if issubclass(category, EvaluationWarning | LeftOutWarning | PluginWarning | PrecisionWarning):
                print_note(str(message))
            elif not issubclass(category, InterruptedWarning):  # commands report an interruption themselves, with more details
                show_default(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        yield
