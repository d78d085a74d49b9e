"""Tables of words and numbers: for a terminal, Markdown, LaTeX and CSV.

Words may come from anywhere, so each form escapes what it would take for more than words: markup in Markdown and LaTeX, and in CSV what a
spreadsheet would take for a formula. In all forms words are `printable`.
"""

import csv
import io
import math
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from exactrank.text import printable


@dataclass(frozen=True)
class Marked:
    """A number with marks, as in tables of papers: 0.5132 with the letters of those it is better than; the best is bold."""

    value: float
    marks: str = ""
    best: bool = False


Cell = str | int | float | Marked
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
        """The rows, numbers with all their digits; nothing stands for NaN."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(map(_plain, self.columns))
        writer.writerows([_plain(cell) for cell in row] for row in self.rows)
        return file.getvalue()

    def text(self, width: int = 120, colour: bool = False) -> str:
        """As a terminal of this width shows it; it grows wider where cells would be cut."""
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table as RichTable
        from rich.text import Text

        drawn = RichTable(title=Text(self.title, "bold"), title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        marked = [
            max((len(cell.marks) for cell in column if isinstance(cell, Marked)), default=0) for column in zip(*self.rows, strict=True)
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
        Console(file=file, width=max(width, needed), force_terminal=colour, no_color=not colour).print(drawn)
        note = [wrapped for line in self.note.splitlines() for wrapped in textwrap.wrap(line, width)]
        return "\n".join([line.rstrip() for line in file.getvalue().splitlines()] + note) + "\n"

    def _words(self, column: int) -> bool:
        return any(isinstance(row[column], str) and re.search("[A-Za-z]", str(row[column])) for row in self.rows)


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
