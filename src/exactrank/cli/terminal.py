"""Tables and progress bars of the commands. No text is ever taken for markup, and all of it is `printable`.

This module imports rich, so commands import it where they print.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from rich.console import Console
from rich.progress import Progress, ProgressColumn, TextColumn
from rich.table import Table as RichTable
from rich.text import Text

from exactrank.cli.streams import stdout
from exactrank.text import printable

Cell = str | Sequence[str]  #: a line, or several


class Table(RichTable):
    """A table of plain text: the only kind that commands print."""

    def __init__(self, *columns: str, title: str | None = None, caption: str | None = None, show_header: bool = True) -> None:
        super().__init__(title=None if title is None else _text(title), show_header=show_header)
        self.caption = None if caption is None else _text(caption)
        for name in columns:
            self.column(name)

    def column(self, name: str = "", justify: Literal["left", "right"] = "left") -> None:
        """Add a column; names that are too long for it go on in the next line, so that they can be told apart."""
        self.add_column(_text(name), justify=justify, overflow="fold")

    def row(self, *cells: Cell) -> None:
        """Add a row."""
        self.add_row(*map(_text, cells))


def show(*parts: Table | str) -> None:
    """Print tables and lines on stdout."""
    console = _stdout()
    for part in parts:
        console.print(part if isinstance(part, Table) else _text(part))


def width_and_colour() -> tuple[int, bool]:
    """How wide stdout is, and whether it shows colours."""
    console = _stdout()
    return console.width, console.is_terminal


@contextmanager
def progress_bar(*columns: ProgressColumn, quiet: bool, **settings: Any) -> Iterator[Progress]:
    """A bar on stderr, where someone watches it, that leaves nothing behind."""
    console = Console(stderr=True)
    hidden = quiet or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden, **settings) as bar:
        yield bar


def words(text: str = "{task.description}") -> TextColumn:
    """A column of plain text: by default, what a task is doing."""
    return TextColumn(text, markup=False)


def _stdout() -> Console:
    return Console(file=stdout(), highlight=False, markup=False, emoji=False)


def _text(cell: Cell) -> Text:
    return Text(printable(cell) if isinstance(cell, str) else "\n".join(map(printable, cell)))
