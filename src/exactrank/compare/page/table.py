"""Numbers as the report writes them, with a dash where there is none, and tables of them as values.

A column may stand in a group of columns, and a cell has what it is sorted by besides its text.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

NONE, MINUS = "\u2013", "\u2212"
MIB = 1 << 20  #: bytes, the unit of memory in every table
_LEADING = re.compile(r"[<+]?(-?\d+(?:\.\d+)?)")


def plain(value: float | None, decimals: int = 4) -> str:
    """With a true minus sign.

    >>> plain(0.51234), plain(-1200.5, 1), plain(float("nan")), plain(-0.00001)
    ('0.5123', '−1,200.5', '–', '0.0000')
    """
    return NONE if value is None or not math.isfinite(value) else f"{value:z,.{decimals}f}".replace("-", MINUS)


def signed(value: float | None, decimals: int = 4) -> str:
    """With a plus sign too.

    >>> signed(0.25, 2), signed(-0.25, 2), signed(0.0, 2)
    ('+0.25', '−0.25', '0.00')
    """
    text = plain(value, decimals)
    return f"+{text}" if value is not None and value > 0 and any(c in "123456789" for c in text) else text


def interval(ends: tuple[float, float], decimals: int = 4) -> str:
    """Both ends of an interval.

    >>> interval((0.1, 0.25)), interval((float("nan"), float("nan")))
    ('0.1000 to 0.2500', '–')
    """
    return f"{plain(ends[0], decimals)} to {plain(ends[1], decimals)}" if all(map(math.isfinite, ends)) else NONE


def probability(p: float) -> str:
    """No p is written as 0.

    >>> probability(0.0123), probability(1e-9)
    ('0.0123', '<0.0001')
    """
    return "<0.0001" if p < 0.00005 else plain(p)


def compact(value: float) -> str:
    """Four digits that count.

    >>> compact(0.000012345), compact(1234567.0), compact(-0.5)
    ('1.234e−05', '1.235e+06', '−0.5')
    """
    return f"{value:.4g}".replace("-", MINUS) if math.isfinite(value) else NONE


@dataclass(frozen=True)
class Column:
    """``words`` are set to the left, numbers to the right."""

    title: str
    group: str = ""
    words: bool = False


@dataclass(frozen=True)
class Cell:
    """``order`` is what the page sorts by: None stands last, and so does a row with a cell that spans columns."""

    text: str
    order: float | str | None = None
    kind: str = ""  #: a class of the style
    span: int = 1

    @property
    def hidden_order(self) -> str | None:
        """The order where the page's script cannot read it from the text.

        >>> Cell("-1,234.5 to 2", -1234.496).hidden_order, Cell("b", 1.0).hidden_order, Cell(NONE).hidden_order
        (None, '1.0', '')
        """
        if self.order is None:
            return ""
        if isinstance(self.order, str):
            return None if self.order == self.text.casefold() else self.order
        leading = _LEADING.match(self.text.replace(",", "").replace(MINUS, "-"))
        near = leading is not None and abs(float(leading[1]) - self.order) <= 0.01
        return None if near else str(self.order)


@dataclass(frozen=True)
class ReportTable:
    """``caption`` says what it shows."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Titles of groups with how many columns each has; none where there are no groups."""
        found = [(title, len(list(own))) for title, own in groupby(column.group for column in self.columns)]
        return found if any(title for title, _ in found) else []

    @property
    def firsts(self) -> set[int]:
        """The columns with which a group begins, that of the first group left out."""
        return {j for j in range(1, len(self.columns)) if self.columns[j].group != self.columns[j - 1].group}


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
