"""The command line: it parses strings, calls the library, and prints tables or JSON. Each command is a function of the same name.

Errors go to stderr without a traceback (``--debug`` shows it). Library modules are imported inside the commands, so that
``--help`` answers at once.
"""

import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import typer

from exactrank.cli import (
    clicks,
    compare,
    cutoff,
    data,
    evaluate,
    export,
    fuse,
    inspect,
    judge,
    listing,
    pareto,
    power,
    reproduce,
    serve,
    train,
    tune,
)
from exactrank.cli.guard import app, guard
from exactrank.cli.help import Command, Group

__all__ = ["app", "main"]

#: The commands, by the panels of ``exactrank --help``.
COMMANDS: Mapping[str, Sequence[Callable[..., None]]] = {
    "Data": (data.info, data.convert, data.pairs, data.generate, clicks.clicks),
    "Models": (tune.tune, compare.compare, compare.demo, evaluate.evaluate, evaluate.predict, cutoff.cutoff, power.power),
    "Hybrid search": (fuse.fuse, pareto.pareto, judge.judge),
    "Deployment": (export.card, export.export, serve.serve),
    "Reference": (listing.methods, listing.measures, reproduce.reproduce),
}
INSPECTIONS: tuple[Callable[..., None], ...] = (inspect.optimality, inspect.forces, inspect.importance, inspect.smoothness)

_rankers, _inspections = typer.Typer(cls=train.Rankers, no_args_is_help=True), typer.Typer(cls=Group, no_args_is_help=True)
for _panel, _functions in COMMANDS.items():
    for _function in _functions:
        app.command(cls=Command, rich_help_panel=_panel)(guard(_function))
for _function in INSPECTIONS:
    _inspections.command(cls=Command)(guard(_function))
app.command("fuse apply", cls=Command, rich_help_panel="Hybrid search")(guard(fuse.apply))
app.add_typer(_rankers, name="train", rich_help_panel="Models", help="Train a ranker on the measure you report.")
app.add_typer(_inspections, name="inspect", rich_help_panel="Models", help="Examine a model or a lambda function.")


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        from exactrank import __version__

        typer.echo(f"exactrank {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the ``exactrank`` command. SIGTERM and SIGHUP end it like Ctrl-C, with all temporary files removed.

    A closed standard stream is opened on the null device, for reading only. Otherwise the next file that is opened would take its place
    and receive what a library prints, and results that are sent there would be lost silently. Letters that a stream cannot show are
    printed as escapes.
    """
    for signal_number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(signal_number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(signal_number, signal.default_int_handler)
    for handle in range(3):
        try:
            os.fstat(handle)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)  # takes the lowest free number, which is this one
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    app()
