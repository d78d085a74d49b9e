"""Tables of the commands. No text is interpreted as markup, and all text is made `printable`.

This module imports rich, so commands import it where they print.
"""

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from exactrank._support.text import printable
from exactrank.cli.common import stdout

Cell = str | Sequence[str]  #: one line or several


class PlainTable(RichTable):
    """A table of plain text: the only kind that commands print."""

    def __init__(self, *columns: str, title: str | None = None, caption: str | None = None, show_header: bool = True) -> None:
        title_text, caption_text = (None if text is None else _text(text) for text in (title, caption))
        super().__init__(title=title_text, caption=caption_text, show_header=show_header)
        for name in columns:  # a name that is too long for a column goes on in the next line, so that names stay distinct
            self.add_column(_text(name), overflow="fold")

    def row(self, *cells: Cell) -> None:
        """Add a row."""
        self.add_row(*map(_text, cells))


def show(*parts: PlainTable | str) -> None:
    """Print tables and lines on stdout."""
    console = _stdout()
    for part in parts:
        console.print(part if isinstance(part, PlainTable) else _text(part))


def show_per_query(title: str | None, queries: Iterable[object], columns: Mapping[str, Iterable[float | None]]) -> None:
    """Print one row per query, with the ``columns`` of values by their names."""
    table = PlainTable("query", *columns, title=title)
    for query, *values in zip(queries, *columns.values(), strict=True):
        table.row(str(query), *("skipped" if value is None or value != value else f"{value:.4f}" for value in values))
    show(table)


def width_and_color() -> tuple[int, bool]:
    """Return the width of stdout, and whether it shows colors."""
    console = _stdout()
    return console.width, console.is_terminal


def _stdout() -> Console:
    return Console(file=stdout(), highlight=False, markup=False, emoji=False)


def _text(cell: Cell) -> Text:
    return Text(printable(cell) if isinstance(cell, str) else "\n".join(map(printable, cell)))
