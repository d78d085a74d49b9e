"""The command line: strings in, library calls, tables or JSON out; a command is a function of its name.

Errors go to stderr without a traceback (``--debug`` shows it). Library modules are imported inside the commands, so that
``--help`` answers at once.
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from exactrank.cli import card, compare, data, evaluate, export, fuse, probe, reproduce, serve, train, tune
from exactrank.cli.common import app, guarded

__all__ = ["app", "main"]

COMMANDS: tuple[Callable[..., None], ...] = (
    *(data.info, data.convert, data.generate, evaluate.evaluate, compare.compare, tune.tune, evaluate.predict, card.card),
    *(fuse.fuse, export.export, serve.serve, reproduce.reproduce, compare.demo),
)
PROBES: tuple[Callable[..., None], ...] = (probe.optimality, probe.forces, probe.importance, probe.smoothness)

_probes = typer.Typer(no_args_is_help=True)
for _group, _functions in ((app, COMMANDS), (_probes, PROBES)):
    for _function in _functions:
        _group.command()(guarded(_function))
app.command("fuse apply")(guarded(fuse.apply))
app.add_typer(typer.Typer(cls=train.Rankers), name="train", help="Train a ranker on the measure you report.", no_args_is_help=True)
app.add_typer(_probes, name="probe", help="Look closely at a model or a lambda function.")


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        from exactrank import __version__

        typer.echo(f"exactrank {__version__}")
        raise typer.Exit


def main() -> None:
    """The entry point of the ``exactrank`` command; it ends by SIGTERM and SIGHUP as by Ctrl-C, with all that is temporary removed.

    A closed standard stream is opened on nothing, for reading alone: else the next file that is opened would take its place, and get
    what a library prints; and results that are sent there would be lost without a word. Letters that a stream cannot show are printed
    as escapes.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, signal.default_int_handler)
    for handle in range(3):
        try:
            os.fstat(handle)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)  # takes the lowest number that is free: this one
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    app()
