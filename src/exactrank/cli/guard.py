"""All commands, and what each is wrapped in: errors as a line on stderr and an exit code, - for standard input, plain warnings.

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
from typing import Annotated, Any

import typer

from exactrank._support.text import clip, printable
from exactrank.cli.common import Options, tell
from exactrank.cli.help import Group, described
from exactrank.errors import DataError, ExactRankError, InterruptedWarning, LeftOutWarning, PluginWarning, PrecisionWarning

MEMORY = "not enough memory{}; give less data or fewer features, or convert text to an .xr cache, which is mapped instead of read"
STDIN = "/dev/stdin"
#: Arguments that are read, for which - is standard input; for all others it is standard output.
INPUTS = ("data", "source", "model", "scores", "run", "valid", "test", "fusion", "start", "pairs", "clicks")
CLOSED = "standard input or output is closed; open it, or give the path of a file"
_ALLOCATION = re.compile(r"Unable to allocate ([\d.]+ \w+)")  # NumPy's words


class CommandLine(Group):
    """All commands; what it says of bad usage is `printable`, whatever the arguments were.

    A command may be called by two words, of which the first is a command too: ``fuse apply``.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """All commands; the first is what the program is for."""
        return sorted(super().list_commands(ctx), key=lambda name: name != "train")

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the first words name, and the others."""
        if " ".join(args[:2]) in self.commands and len(args) > 1:
            args = [" ".join(args[:2]), *args[2:]]
        return super().resolve_command(ctx, args)

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
            error.message = printable(clip(error.message, 300))  # type: ignore[attr-defined]
        raise


app = typer.Typer(
    cls=CommandLine,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Learning to rank, trained on the measure you report.",
)


def guarded(function: Callable[..., None]) -> Callable[..., None]:
    """``function`` with `Options` taken as one, and an option ``--debug``, without which errors are a line on stderr and an exit code."""
    signature = inspect.signature(function)
    declared = {name: getattr(given.annotation, "__metadata__", ()) for name, given in signature.parameters.items()}
    groups = {name: group for name, about in declared.items() for group in about if isinstance(group, Options)}

    @functools.wraps(function)
    def wrapped(*, debug: bool, **arguments: Any) -> None:
        from exactrank._support.files import is_stream

        with nullcontext() if debug else _told():
            arguments = arguments | _inputs({name: arguments[name] for name in INPUTS if name in arguments})
            # Where an output goes to standard output, all else that a command prints goes to stderr.
            streamed = any(isinstance(each, Path) and is_stream(each) for each in arguments.values())
            with redirect_stdout(sys.stderr) if streamed else nullcontext(), plain_warnings():
                taken = {name: group.taken(arguments) for name, group in groups.items()}
                function(**arguments, **taken)

    options = {name: option for group in groups.values() for name, option in group.each.items()}
    options["debug"] = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")], False
    kind = inspect.Parameter.KEYWORD_ONLY
    own = [given.replace(kind=kind) for name, given in signature.parameters.items() if name not in groups]
    own += [inspect.Parameter(name, kind, annotation=annotation, default=default) for name, (annotation, default) in options.items()]
    own = [described(each) for each in own]
    wrapped.__signature__ = signature.replace(parameters=own)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {each.name: each.annotation for each in own}
    return wrapped


@contextmanager
def _told() -> Iterator[None]:
    """Errors become a line on stderr and an exit code."""
    try:
        yield
    except KeyboardInterrupt:
        tell("interrupted")
        raise typer.Exit(1) from None
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except Exception as error:
        line, code = line_and_code(error)
        try:
            if sys.stdout is not None:
                sys.stdout.flush()
        except OSError:  # its reader left, or the disk is full: what is left of it goes nowhere
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # the reader of our output left; nothing more to say
            tell(line)
        raise typer.Exit(code) from None


def _inputs(given: dict[str, Any]) -> dict[str, Any]:
    """What is read, with standard input for - and NAME=-, of which there may be one."""
    times = 0

    def opened(value: Any) -> Any:
        nonlocal times
        if isinstance(value, list):
            return [opened(each) for each in value]
        name, equals, path = value.rpartition("=") if isinstance(value, str) else ("", "", str(value))
        if path != "-" or not isinstance(value, str | Path):
            return value
        times += 1
        return type(value)(f"{name}{equals}{STDIN}")

    found = {name: opened(value) for name, value in given.items()}
    if times > 1:
        raise DataError(f"- is given {times} times, but standard input can be read once; give files for the others")
    if times and sys.stdin is None:
        raise OSError(errno.EBADF, CLOSED)
    return found


def line_and_code(error: Exception) -> tuple[str, int]:
    """What to say of ``error``, and the exit code.

    >>> line_and_code(FileNotFoundError(2, "No such file or directory", "a.txt"))
    ('a.txt: No such file or directory', 1)
    >>> line_and_code(ZeroDivisionError("division by zero"))[0]
    'internal error (ZeroDivisionError: division by zero); run it again with --debug, and report what that shows'
    """
    if isinstance(error, ExactRankError):
        return str(error) or type(error).__name__, 2
    if isinstance(error, MemoryError):
        wanted = _ALLOCATION.search(str(error))
        return MEMORY.format(f" for another {wanted[1]}" if wanted else ""), 1
    if not isinstance(error, OSError):
        told = f"{type(error).__name__}: {error}".removesuffix(": ")
        return f"internal error ({told}); run it again with --debug, and report what that shows", 1
    if error.strerror is None:
        return str(error) or type(error).__name__, 1
    if error.errno == errno.EBADF and error.filename is None:
        return CLOSED, 1
    where = [os.fsdecode(name) for name in (error.filename, error.filename2) if isinstance(name, str | bytes | os.PathLike)]
    return f"{' and '.join(where) or 'input or output'}: {error.strerror}", 1


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Shows what this library warns of as it shows errors, as a line without a place in the code."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def shown(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, LeftOutWarning | PluginWarning | PrecisionWarning):
                tell(str(message))
            elif not issubclass(category, InterruptedWarning):  # of which commands say more than this
                usual(message, category, *place, **more)

        warnings.showwarning = shown
        yield
