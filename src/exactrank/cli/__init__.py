"""The command line: strings in, library calls, tables or JSON out; one file a command or a few that belong together.

Errors go to stderr without a traceback (``--debug`` shows it). Library modules are imported inside the commands, so that
``--help`` answers at once.
"""

import signal
from importlib import import_module
from typing import Annotated

import typer

from exactrank.cli.common import app
from exactrank.cli.streams import settle

#: The modules that register commands, in the order of ``--help``.
MODULES = (
    "data",
    "evaluate",
    "train",
    "tune",
    "predict",
    "probe_optimality",
    "probe_forces",
    "probe_importance",
    "probe_smoothness",
    "fuse",
    "compare",
    "reproduce",
    "demo",
)

for _module in MODULES:
    import_module(f"exactrank.cli.{_module}")

__all__ = ["app", "main"]


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        from exactrank import __version__

        typer.echo(f"exactrank {__version__}")
        raise typer.Exit


def main() -> None:
    """The entry point of the ``exactrank`` command; it ends by SIGTERM and SIGHUP as by Ctrl-C, with all that is temporary removed."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, signal.default_int_handler)
    settle()
    app()
