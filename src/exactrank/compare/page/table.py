"""Tables as values: a column may stand in a group of columns, and a cell has what it is sorted by besides its text."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from exactrank.compare.page.numbers import plain


@dataclass(frozen=True)
class Column:
    """``words`` are set to the left, numbers to the right."""

    title: str
    group: str = ""
    words: bool = False


@dataclass(frozen=True)
class Cell:
    """``order`` is what the page sorts by: None stands last."""

    text: str
    order: float | str | None = None
    kind: str = ""  #: a class of the style
    span: int = 1


@dataclass(frozen=True)
class Row:
    """``last`` rows stay at the end however the table is sorted."""

    cells: tuple[Cell, ...]
    last: bool = False


@dataclass(frozen=True)
class Table:
    """``caption`` says what it shows."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Row]

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Titles of groups with how many columns each has; none where there are no groups."""
        found = [(title, len(list(own))) for title, own in groupby(column.group for column in self.columns)]
        return found if any(title for title, _ in found) else []

    @property
    def firsts(self) -> set[int]:
        """The columns with which a group begins."""
        ends = [0]
        for _, span in self.groups:
            ends.append(ends[-1] + span)
        return set(ends[1:-1])


def words(text: str, kind: str = "") -> Cell:
    """A cell of text, sorted by it.

    >>> words("Abc").order
    'abc'
    """
    return Cell(text, text.casefold(), kind)


def number(value: float | None, text: str | None = None, kind: str = "") -> Cell:
    """A cell of a number, which is sorted by its value.

    >>> number(0.5), number(float("nan")).order
    (Cell(text='0.5000', order=0.5, kind='', span=1), None)
    """
    known = value is not None and math.isfinite(value)
    return Cell(plain(value) if text is None else text, value if known else None, kind)
