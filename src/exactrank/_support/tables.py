"""Tables of words and numbers for a terminal, Markdown, LaTeX, CSV and HTML, and results that notebooks show as tables.

Words may come from anywhere. So each format escapes its markup, and CSV also what a spreadsheet would take for a formula. In all formats
words are `printable`.
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

from exactrank._support.text import clip, printable
from exactrank.errors import IncompatibleError


@dataclass(frozen=True)
class MarkedNumber:
    """A number with marks, as in tables of papers: 0.5132 with the letters of the methods that it beats; the best is bold."""

    value: float
    marks: str = ""
    best: bool = False


Cell = str | int | float | MarkedNumber
Values = Sequence[Any] | npt.NDArray[Any]  #: one column: a value per row
ROWS, COLUMNS, LETTERS = 10, 12, 48  #: limits of a small table: rows, columns, and letters of a cell
FRAMES = ("pandas", "polars", "pyarrow")  #: libraries of `Tabular.to_frame`, which uses the first that is installed
_LATEX = {"&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}"}
_LATEX |= {"^": r"\textasciicircum{}", "\\": r"\textbackslash{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
_LATEX |= {"[": "{[}", "]": "{]}", "*": "{*}"}  # they would be read as an argument of the line end before them
#: Markup of Markdown: marks, links, HTML and its entities. An underscore within a word is none.
_MARKDOWN = re.compile(r"[\\`*|~$^]|\](?=[(\[:])|(?<![^\W_])_|_(?![^\W_])|<(?=[A-Za-z/!?])|&(?=#?\w+;)")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_FORMULA = tuple("=+-@")  #: how a spreadsheet's formulas begin
_END = (r"\end{tabular}", r"\end{table}", "")


@dataclass(frozen=True)
class Table:
    """Rows of words and numbers; numbers are rounded to four digits or decimals."""

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
        """Return a heading, the rows and the note in Markdown.

        >>> print(Table("Time of *a*", ["net"], [["b"]]).section())
        ## Time of \\*a\\*
        <BLANKLINE>
        | net |
        | --- |
        | b |
        """
        note = [_escape_markdown(self.note)] if self.note else []
        return "\n\n".join([f"## {_escape_markdown(self.title)}", self.markdown(), *note])

    def markdown(self) -> str:
        """Return the rows in Markdown.

        >>> print(Table("Times", ["net", "s"], [["linear", 0.25], ["a|b", MarkedNumber(0.5, "a", True)]]).markdown())
        | net | s |
        | --- | --- |
        | linear | 0.2500 |
        | a\\|b | **0.5000** ^a^ |
        """
        lines = [
            [_escape_markdown(name) for name in self.columns],
            ["---"] * len(self.columns),
            *([_markup(cell, _escape_markdown, "**{}**", " ^{}^") for cell in row] for row in self.rows),
        ]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    def latex(self) -> str:
        """Return the whole table in LaTeX, for ``\\usepackage{booktabs}``."""
        sides = "".join("l" if self._has_words(j) else "r" for j in range(len(self.columns)))
        rows = [[_markup(cell, _escape_latex, r"\textbf{{{}}}", "$^{{{}}}$") for cell in row] for row in self.rows]
        head, *body = (" & ".join(line) + r" \\" for line in ([_escape_latex(name) for name in self.columns], *rows))
        lines = "\n".join([r"\toprule", head, r"\midrule", *body, r"\bottomrule"])
        caption = _escape_latex(f"{self.title}. {self.note}".strip())
        return "\n".join([r"\begin{table}", r"\centering", rf"\caption{{{caption}}}", rf"\begin{{tabular}}{{{sides}}}", lines, *_END])

    def csv(self) -> str:
        """Return the rows as CSV: numbers with all their digits, NaN as an empty cell."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(map(_plain, self.columns))
        writer.writerows([_plain(cell) for cell in row] for row in self.rows)
        return file.getvalue()

    def head(self, of: tuple[int, int] | None = None) -> "Table":
        """Return the first rows and columns, with words of bounded length; the note says how many more there are.

        ``of`` gives the total numbers of rows and columns if this table holds only the first of them.
        """
        rows, columns = of or (len(self.rows), len(self.columns))
        limits = (("rows", rows, ROWS), ("columns", columns, COLUMNS))
        excess = [f"{count - limit:,} more {what}" for what, count, limit in limits if count > limit]
        ellipsis = ["…"] if columns > COLUMNS else []
        cells = [[*map(_clip, row[:COLUMNS]), *ellipsis] for row in self.rows[:ROWS]]
        note = "\n".join(filter(None, [f"… and {' and '.join(excess)}" if excess else "", self.note]))
        return Table(self.title, [clip(name, LETTERS) for name in self.columns[:COLUMNS]] + ellipsis, cells, note)

    def html(self) -> str:
        """Return the title, the rows and the note as HTML, for a notebook.

        >>> print(Table("Time", ["net"], [["<b>"], [MarkedNumber(0.5, "a", True)]]).html())
        <div><p>Time</p>
        <table><thead><tr><th style="text-align: left">net</th></tr></thead>
        <tbody><tr><td style="text-align: left">&lt;b&gt;</td></tr>
        <tr><td style="text-align: left"><b>0.5000</b><sup>a</sup></td></tr></tbody></table></div>
        """
        alignments = ["left" if self._has_words(j) else "right" for j in range(len(self.columns))]

        def line(tag: str, cells: Iterable[str]) -> str:
            elements = (f'<{tag} style="text-align: {side}">{cell}</{tag}>' for side, cell in zip(alignments, cells, strict=True))
            return f"<tr>{''.join(elements)}</tr>"

        head = line("th", map(html.escape, self.columns))
        body = "\n".join(line("td", (_markup(cell, html.escape, "<b>{}</b>", "<sup>{}</sup>") for cell in row)) for row in self.rows)
        title = f"<p>{html.escape(self.title)}</p>\n" if self.title else ""
        note = "".join(f"<p><small>{html.escape(text)}</small></p>" for text in self.note.splitlines())
        return f"<div>{title}<table><thead>{head}</thead>\n<tbody>{body}</tbody></table>{note}</div>"

    def text(self, width: int = 120, color: bool = False) -> str:
        """Return the table as a terminal of this width shows it; it is wider if cells would be cut otherwise."""
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        columns = [[row[j] for row in self.rows] for j in range(len(self.columns))]
        mark_widths = [max((len(cell.marks) for cell in column if isinstance(cell, MarkedNumber)), default=0) for column in columns]
        for j, name in enumerate(self.columns):
            table.add_column(Text(name), justify="left" if mark_widths[j] or self._has_words(j) else "right", no_wrap=True)
        for row in self.rows:
            cells = []
            for cell, room in zip(row, mark_widths, strict=True):  # numbers are aligned, whatever their marks
                if isinstance(cell, MarkedNumber):
                    cells.append(Text(cell_text(cell) + (f" {cell.marks:<{room}}" if room else ""), "bold" if cell.best else ""))
                else:
                    cells.append(Text(cell_text(cell)))
            table.add_row(*cells)
        file = io.StringIO()
        full_width = Console(width=1000).measure(table).maximum
        console = Console(file=file, width=max(width, full_width), force_terminal=color, no_color=not color, force_jupyter=False)
        console.print(Text(self.title, "bold italic"), table, sep="\n")
        note = [text for line in self.note.splitlines() for text in textwrap.wrap(line, width)]
        return "\n".join([line.rstrip() for line in file.getvalue().splitlines()] + note) + "\n"

    def _has_words(self, column: int) -> bool:
        return any(isinstance(row[column], str) and re.search("[A-Za-z]", str(row[column])) for row in self.rows)


class Tabular(ABC):
    """A result with rows: a few lines as text, a small table in a notebook, and a frame for everything else."""

    @abstractmethod
    def _columns(self) -> Mapping[str, Values]:
        """Return all rows, column by column."""

    def to_frame(self) -> Any:
        """Return all rows as a pandas frame; without pandas, as a polars frame or an Arrow table."""
        columns = self._columns()
        for library in FRAMES:
            if find_spec(library) is not None:
                module = import_module(library)
                return module.table(dict(columns)) if library == "pyarrow" else module.DataFrame(dict(columns))
        raise IncompatibleError(f"a frame needs {', '.join(FRAMES[:-1])} or {FRAMES[-1]}, and none is installed; pip install pandas")

    def _glance(self) -> Table:
        """Return the table of a notebook: ``repr`` as the title, and the first rows."""
        columns = self._columns()
        return small_table(repr(self), list(columns.items()), len(next(iter(columns.values()), ())))

    def _repr_html_(self) -> str:
        return self._glance().html()


def small_table(title: str, columns: Sequence[tuple[str, Values]], rows: int) -> Table:
    """Return the first rows and columns of a table with ``rows`` rows; the others are not read."""
    cells = [_cells(values[:ROWS]) for _, values in columns[:COLUMNS]]
    return Table(title, [name for name, _ in columns[:COLUMNS]], list(zip(*cells, strict=True))).head((rows, len(columns)))


def by_column(rows: Sequence[object], *names: str) -> dict[str, Values]:
    """Return the attributes ``names`` of ``rows``, column by column."""
    return {name: [getattr(row, name) for row in rows] for name in names}


def cell_text(cell: Cell) -> str:
    """Return a cell as people read it.

    >>> cell_text(1234), cell_text(0.5), cell_text(1234.5), cell_text(float("nan"))
    ('1,234', '0.5000', '1234', '-')
    """
    value = cell.value if isinstance(cell, MarkedNumber) else cell
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    if math.isnan(value):
        return "-"
    return f"{value:.4f}" if value == 0 or 1e-4 <= abs(value) < 100 else f"{value:.4g}"


def _cells(values: Values) -> list[Cell]:
    """Return a column as cells; if all of its numbers are whole, as grades are, without decimals."""
    cells = [_cell(value) for value in values]
    is_whole = all(isinstance(cell, float) and cell.is_integer() for cell in cells)
    return [int(cell) if is_whole and isinstance(cell, float) else cell for cell in cells]


def _cell(value: object) -> Cell:
    """Return any value as a cell.

    >>> _cell(np.float32(0.5)), _cell(None), _cell(True), _cell(("a", 1))
    (0.5, '', 'yes', "('a', 1)")
    """
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, bool):
        return "yes" if plain else "no"
    return plain if isinstance(plain, str | int | float | MarkedNumber) else "" if plain is None else str(plain)


def _clip(cell: Cell) -> Cell:
    return clip(cell, LETTERS) if isinstance(cell, str) else cell


def _markup(cell: Cell, escape: Callable[[str], str], bold: str, marks: str) -> str:
    """Return a cell with its marks as markup; ``bold`` and ``marks`` are templates."""
    text = escape(cell_text(cell))
    if isinstance(cell, MarkedNumber):
        text = (bold.format(text) if cell.best else text) + (marks.format(cell.marks) if cell.marks else "")
    return text


def _escape_markdown(text: str) -> str:
    """
    >>> print(_escape_markdown("a|b, <b>x</b>, [x](y), x < y, min_leaf, _x_"))
    a\\|b, \\<b>x\\</b>, [x\\](y), x < y, min_leaf, \\_x\\_
    """
    return _MARKDOWN.sub(lambda match: "\\" + match[0], text)


def _escape_latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text.replace("\n", " "))


def _plain(cell: Cell) -> str | int | float:
    """Return a cell for CSV; an apostrophe keeps a spreadsheet from taking words for a formula.

    >>> _plain("=1+1"), _plain("-0.5"), _plain(-0.5)
    ("'=1+1", '-0.5', -0.5)
    """
    value = cell.value if isinstance(cell, MarkedNumber) else cell
    if isinstance(value, str) and value.startswith(_FORMULA) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return "" if isinstance(value, float) and math.isnan(value) else value
