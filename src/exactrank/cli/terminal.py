"""Tables of the commands. No text is ever taken for markup, and all of it is `printable`.

This module imports rich, so commands import it where they print.
"""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from exactrank._support.text import printable
from exactrank.cli.common import stdout

Cell = str | Sequence[str]  #: a line, or several


class PlainTable(RichTable):
    """A table of plain text: the only kind that commands print."""

    def __init__(self, *columns: str, title: str | None = None, caption: str | None = None, **settings: Any) -> None:
        super().__init__(title=None if title is None else _text(title), caption=None if caption is None else _text(caption), **settings)
        for name in columns:  # names that are too long for a column go on in the next line, so that they can be told apart
            self.add_column(_text(name), overflow="fold")

    def row(self, *cells: Cell) -> None:
        """Add a row."""
        self.add_row(*map(_text, cells))


def show(*parts: PlainTable | str) -> None:
    """Print tables and lines on stdout."""
    console = _stdout()
    for part in parts:
        console.print(part if isinstance(part, PlainTable) else _text(part))


def width_and_color() -> tuple[int, bool]:
    """How wide stdout is, and whether it shows colors."""
    console = _stdout()
    return console.width, console.is_terminal


def _stdout() -> Console:
    return Console(file=stdout(), highlight=False, markup=False, emoji=False)


def _text(cell: Cell) -> Text:
    return Text(printable(cell) if isinstance(cell, str) else "\n".join(map(printable, cell)))
