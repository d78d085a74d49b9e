"""The total of a column of the data over the first ranks, such as the revenue of the first page.

    Total(column=c)@k = sum_{r<=k} c_r,    c_r what the column holds for the document at rank r                 (1)

Without a column it is the total of the grades, of which those below 0 add nothing. ``revenue@10`` is short for
``Total(column='revenue')@10`` wherever ``revenue`` is neither a measure's name nor like one.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from exactrank import _core
from exactrank._support.arrays import PerDocument
from exactrank._support.text import did_you_mean
from exactrank.errors import MeasureError
from exactrank.measures.base import Measure
from exactrank.measures.families import Positional

LIKE = 0.75  #: names of measures, misspelt


@dataclass(frozen=True, repr=False)
class Total(Positional):
    """The sum of a column over the first ``k`` ranks, (1).

    >>> str(Total(column="revenue", k=10)), str(Total(column="AP", k=10))
    ('revenue@10', "Total(column='AP')@10")
    """

    name: ClassVar[str] = "Total"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k is None:
            raise MeasureError(f"{self.name} needs a cutoff; write e.g. revenue@10 or {self.name}(column='revenue')@10")

    @property
    def equations(self) -> tuple[str, ...]:
        return (rf"\text{{Total@}}k = {self._sum_over_ranks} {'c_r' if self.column else 'y_r'}",)

    def usefulness(self, y: PerDocument) -> PerDocument:
        return np.maximum(y, 0.0)

    @property
    def native_gain(self) -> _core.Gain:
        return _core.Gain("linear")

    def discounts(self, n: int) -> PerDocument:
        return np.ones(n)

    def __str__(self) -> str:
        whole = self._notation(defaults=False)
        short = whole == f"{self.name}(column={self.column!r})@{self.k}" and names_a_column(str(self.column))
        return f"{self.column}@{self.k}" if short else whole


def names_a_column(name: str) -> bool:
    """Is ``name``, written as a measure, that of a column: a word that is neither a measure's name nor like one?"""
    return name.isidentifier() and name not in Measure.registry and not did_you_mean(name, Measure.registry, LIKE)
