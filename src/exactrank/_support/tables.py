"""Tables of words and numbers: for a terminal, Markdown, LaTeX, CSV and HTML; and results, which notebooks show as such tables.

Words may come from anywhere, so each form escapes what it would take for more than words: markup in Markdown, LaTeX and HTML, and in CSV
what a spreadsheet would take for a formula. In all forms words are `printable`.
"""

import csv
import html
import io
import math
import re
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from exactrank._support.error_text import clipped
from exactrank._support.text import printable
from exactrank.errors import IncompatibleError


@dataclass(frozen=True)
class Marked:
    """A number with marks, as in tables of papers: 0.5132 with the letters of the methods it beats; the best is bold."""

    value: float
    marks: str = ""
    best: bool = False


Cell = str | int | float | Marked
Values = Sequence[Any] | npt.NDArray[Any]  #: of one column, a value per row
ROWS, COLUMNS, LETTERS = 10, 12, 48  #: that a small table shows at most, and letters of a cell
FRAMES = ("pandas", "polars", "pyarrow")  #: what `Shown.to_frame` makes, the first that is installed
_LATEX = {"&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}"}
_LATEX |= {"^": r"\textasciicircum{}", "\\": r"\textbackslash{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
_LATEX |= {"[": "{[}", "]": "{]}", "*": "{*}"}  # what may follow a line's end, as its argument
#: What Markdown would not take for itself: marks, links, HTML and its entities; an underscore within a word is one.
_MARKDOWN = re.compile(r"[\\`*|~$^]|\](?=[(\[:])|(?<![^\W_])_|_(?![^\W_])|<(?=[A-Za-z/!?])|&(?=#?\w+;)")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_FORMULA = tuple("=+-@")  #: how a spreadsheet's formulas begin
_END = (r"\end{tabular}", r"\end{table}", "")


@dataclass(frozen=True)
class Table:
    """Rows of words and numbers, which are shown to four digits or decimals."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", printable(self.title))
        object.__setattr__(self, "columns", tuple(map(printable, self.columns)))
        object.__setattr__(self, "rows", [[printable(cell) if isinstance(cell, str) else cell for cell in row] for row in self.rows])
        object.__setattr__(self, "note", printable(self.note, lines=True))

    def section(self) -> str:
        """A heading, the rows and the note, in Markdown.

        >>> print(Table("Time of *a*", ["net"], [["b"]]).section())
        ## Time of \\*a\\*
        <BLANKLINE>
        | net |
        | --- |
        | b |
        """
        note = [_escaped_markdown(self.note)] if self.note else []
        return "\n\n".join([f"## {_escaped_markdown(self.title)}", self.markdown(), *note])

    def markdown(self) -> str:
        """The rows.

        >>> print(Table("Times", ["net", "s"], [["linear", 0.25], ["a|b", Marked(0.5, "a", True)]]).markdown())
        | net | s |
        | --- | --- |
        | linear | 0.2500 |
        | a\\|b | **0.5000** ^a^ |
        """
        lines = [
            [_escaped_markdown(name) for name in self.columns],
            ["---"] * len(self.columns),
            *([_form(cell, _escaped_markdown, "**{}**", " ^{}^") for cell in row] for row in self.rows),
        ]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    def latex(self) -> str:
        """The whole table, for ``\\usepackage{booktabs}``."""
        aligned = "".join("l" if self._words(j) else "r" for j in range(len(self.columns)))
        rows = [[_form(cell, _escaped, r"\textbf{{{}}}", "$^{{{}}}$") for cell in row] for row in self.rows]
        head, *body = (" & ".join(line) + r" \\" for line in ([_escaped(name) for name in self.columns], *rows))
        inside = "\n".join([r"\toprule", head, r"\midrule", *body, r"\bottomrule"])
        caption = _escaped(f"{self.title}. {self.note}".strip())
        return "\n".join([r"\begin{table}", r"\centering", rf"\caption{{{caption}}}", rf"\begin{{tabular}}{{{aligned}}}", inside, *_END])

    def csv(self) -> str:
        """The rows, numbers with all their digits; NaN is an empty cell."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(map(_plain, self.columns))
        writer.writerows([_plain(cell) for cell in row] for row in self.rows)
        return file.getvalue()

    def head(self, of: tuple[int, int] | None = None) -> "Table":
        """The first rows and columns, with words of bounded length; the note tells how many more there are.

        ``of`` is the number of rows and columns in all, where the table has only the first.
        """
        rows, columns = of or (len(self.rows), len(self.columns))
        more = [
            f"{count - most:,} more {what}" for what, count, most in (("rows", rows, ROWS), ("columns", columns, COLUMNS)) if count > most
        ]
        beyond = ["…"] if columns > COLUMNS else []
        kept = [[*map(_clip, row[:COLUMNS]), *beyond] for row in self.rows[:ROWS]]
        note = "\n".join(filter(None, [f"… and {' and '.join(more)}" if more else "", self.note]))
        return Table(self.title, [clipped(name, LETTERS) for name in self.columns[:COLUMNS]] + beyond, kept, note)

    def html(self) -> str:
        """A title, the rows and the note, for a notebook.

        >>> print(Table("Time", ["net"], [["<b>"], [Marked(0.5, "a", True)]]).html())
        <div><p>Time</p>
        <table><thead><tr><th style="text-align: left">net</th></tr></thead>
        <tbody><tr><td style="text-align: left">&lt;b&gt;</td></tr>
        <tr><td style="text-align: left"><b>0.5000</b><sup>a</sup></td></tr></tbody></table></div>
        """
        aligned = ["left" if self._words(j) else "right" for j in range(len(self.columns))]

        def line(tag: str, cells: Iterable[str]) -> str:
            inside = (f'<{tag} style="text-align: {side}">{cell}</{tag}>' for side, cell in zip(aligned, cells, strict=True))
            return f"<tr>{''.join(inside)}</tr>"

        head = line("th", map(html.escape, self.columns))
        body = "\n".join(line("td", (_form(cell, html.escape, "<b>{}</b>", "<sup>{}</sup>") for cell in row)) for row in self.rows)
        title = f"<p>{html.escape(self.title)}</p>\n" if self.title else ""
        note = "".join(f"<p><small>{html.escape(text)}</small></p>" for text in self.note.splitlines())
        return f"<div>{title}<table><thead>{head}</thead>\n<tbody>{body}</tbody></table>{note}</div>"

    def text(self, width: int = 120, color: bool = False) -> str:
        """As a terminal of this width shows it; it grows wider if cells would be cut."""
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table as RichTable
        from rich.text import Text

        drawn = RichTable(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        marked = [
            max((len(cell.marks) for row in self.rows if isinstance(cell := row[j], Marked)), default=0) for j in range(len(self.columns))
        ]
        for j, name in enumerate(self.columns):
            drawn.add_column(Text(name), justify="left" if marked[j] or self._words(j) else "right", no_wrap=True)
        for row in self.rows:
            cells = []
            for cell, room in zip(row, marked, strict=True):  # for marks, so that numbers stand below each other
                if isinstance(cell, Marked):
                    cells.append(Text(shown(cell) + (f" {cell.marks:<{room}}" if room else ""), "bold" if cell.best else ""))
                else:
                    cells.append(Text(shown(cell)))
            drawn.add_row(*cells)
        file = io.StringIO()
        needed = Console(width=1000).measure(drawn).maximum
        console = Console(file=file, width=max(width, needed), force_terminal=color, no_color=not color, force_jupyter=False)
        console.print(Text(self.title, "bold italic"), drawn, sep="\n")
        note = [wrapped for line in self.note.splitlines() for wrapped in textwrap.wrap(line, width)]
        return "\n".join([line.rstrip() for line in file.getvalue().splitlines()] + note) + "\n"

    def _words(self, column: int) -> bool:
        return any(isinstance(row[column], str) and re.search("[A-Za-z]", str(row[column])) for row in self.rows)


class Shown(ABC):
    """A result with rows: one or a few lines as text, a small table in a notebook, and a frame for all else that is done with it."""

    @abstractmethod
    def _columns(self) -> Mapping[str, Values]:
        """All rows, column by column."""

    def to_frame(self) -> Any:
        """All rows as a pandas frame; as a polars frame or an Arrow table where pandas is not installed."""
        columns = self._columns()
        for library in FRAMES:
            if find_spec(library) is not None:
                module = import_module(library)
                return module.table(dict(columns)) if library == "pyarrow" else module.DataFrame(dict(columns))
        raise IncompatibleError(f"a frame needs {', '.join(FRAMES[:-1])} or {FRAMES[-1]}, and none is installed; pip install pandas")

    def _glance(self) -> Table:
        """What a notebook shows: the first rows below what ``repr`` says."""
        columns = self._columns()
        return small_table(repr(self), list(columns.items()), len(next(iter(columns.values()), ())))

    def _repr_html_(self) -> str:
        return self._glance().html()


def small_table(title: str, columns: Sequence[tuple[str, Values]], rows: int) -> Table:
    """The first rows and columns of a table of ``rows`` rows; only these are looked at."""
    few = [_cells(values[:ROWS]) for _, values in columns[:COLUMNS]]
    return Table(title, [name for name, _ in columns[:COLUMNS]], list(zip(*few, strict=True))).head((rows, len(columns)))


def by_column(rows: Sequence[Any], *names: str) -> dict[str, Values]:
    """The attributes ``names`` of each of ``rows``, column by column."""
    return {name: [getattr(row, name) for row in rows] for name in names}


def shown(cell: Cell) -> str:
    """A cell as people read it.

    >>> shown(1234), shown(0.5), shown(1234.5), shown(float("nan"))
    ('1,234', '0.5000', '1234', '-')
    """
    value = cell.value if isinstance(cell, Marked) else cell
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    if math.isnan(value):
        return "-"
    return f"{value:.4f}" if value == 0 or 1e-4 <= abs(value) < 100 else f"{value:.4g}"


def _cells(values: Values) -> list[Cell]:
    """A column; one of whole numbers alone, as grades are, without decimals."""
    cells = [_cell(value) for value in values]
    whole = all(isinstance(cell, float) and cell.is_integer() for cell in cells)
    return [int(cell) if whole and isinstance(cell, float) else cell for cell in cells]


def _cell(value: Any) -> Cell:
    """Any value as a cell.

    >>> _cell(np.float32(0.5)), _cell(None), _cell(True), _cell(("a", 1))
    (0.5, '', 'yes', "('a', 1)")
    """
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, bool):
        return "yes" if plain else "no"
    return plain if isinstance(plain, str | int | float | Marked) else "" if plain is None else str(plain)


def _clip(cell: Cell) -> Cell:
    return clipped(cell, LETTERS) if isinstance(cell, str) else cell


def _form(cell: Cell, escaped: Callable[[str], str], bold: str, marks: str) -> str:
    """A cell with its marks as markup; ``bold`` and ``marks`` are templates for these."""
    text = escaped(shown(cell))
    if isinstance(cell, Marked):
        text = (bold.format(text) if cell.best else text) + (marks.format(cell.marks) if cell.marks else "")
    return text


def _escaped_markdown(text: str) -> str:
    """
    >>> print(_escaped_markdown("a|b, <b>x</b>, [x](y), x < y, min_leaf, _x_"))
    a\\|b, \\<b>x\\</b>, [x\\](y), x < y, min_leaf, \\_x\\_
    """
    return _MARKDOWN.sub(lambda found: "\\" + found[0], text)


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text.replace("\n", " "))


def _plain(cell: Cell) -> str | int | float:
    """For CSV; an apostrophe keeps a spreadsheet from running a cell that is not a number.

    >>> _plain("=1+1"), _plain("-0.5"), _plain(-0.5)
    ("'=1+1", '-0.5', -0.5)
    """
    value = cell.value if isinstance(cell, Marked) else cell
    if isinstance(value, str) and value.startswith(_FORMULA) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return "" if isinstance(value, float) and math.isnan(value) else value
