"""Measures of grades: discounted cumulative gain (Järvelin & Kekäläinen 2002) and its share of the ideal, expected reciprocal rank.

    DCG@k  = sum_{r<=k} gain(y_r) discount(r)                                                               (1)
    nDCG@k = DCG@k / (DCG@k of the documents in order of grade)                                             (2)
    MeanNDCG = (nDCG@1 + ... + nDCG@n) / n, n documents                                                     (3)
    ERR = sum_r 1/r u_r prod_{t<r} (1 - u_t),    u = (2^y - 1) / 2^max_grade                                (4)
    Total(column=c)@k = sum_{r<=k} c_r,    c_r: the value of the column for the document at rank r          (5)

    gain 'exp2'    2^y - 1   (Burges et al. 2005)        discount 'log2'    1 / log2(1 + r)
         'linear'  y                                              'letor'   1 at ranks 1 and 2, then 1 / log2(r)
         {y: u}    a table                                        [d1, ..]  a table, 0 beyond its end

Grades below zero ("not judged") gain nothing, unless a table has an entry for them. ``short='zero'`` gives 0 to a list with fewer than k
documents, as the LETOR scripts do; ``'pad'`` evaluates it as it is.

In (4) (Chapelle, Metzler, Zhang & Grinspan 2009) the reader stops at a document with probability u. ``max_grade`` is part of the
definition, not taken from the data, so that training, validation and test numbers can be compared.

(5) is the total of a column over the first ranks, such as the revenue of the first page; without a column it is the total of the grades,
where grades below 0 count as 0. ``revenue@10`` is short for ``Total(column='revenue')@10`` if ``revenue`` is neither a measure's name nor
similar to one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from exactrank import _core
from exactrank._support.arrays import PerDocument
from exactrank._support.numerics import exp2, log2
from exactrank._support.text import did_you_mean
from exactrank.errors import DataError, MeasureError
from exactrank.measures.base import Measure
from exactrank.measures.families import Cascade, Positional

SIMILAR = 0.75  #: similarity of a misspelt name of a measure
GainTable = tuple[tuple[float, float], ...]
DiscountTable = tuple[float, ...]


@dataclass(frozen=True, repr=False)
class DCG(Positional):
    """Discounted cumulative gain, (1).

    >>> DCG(gain="exp2").usefulness(np.array([-1.0, 0.0, 1.0, 2.5])).round(3).tolist()
    [0.0, 0.0, 1.0, 4.657]
    >>> DCG(discount="letor").discounts(4).round(3).tolist()
    [1.0, 1.0, 0.631, 0.5]
    """

    gain: str | Mapping[float, float] | GainTable = "exp2"
    discount: str | Sequence[float] | DiscountTable = "log2"

    name: ClassVar[str] = "DCG"

    def __post_init__(self) -> None:
        super().__post_init__()
        for setting, names, example in (("gain", ("exp2", "linear"), "{0: 0, 1: 3}"), ("discount", ("log2", "letor"), "[1, 0.5, 0.25]")):
            value = getattr(self, setting)
            refusal = f"{setting}={value!r} is not one of {names[0]!r}, {names[1]!r} or a table"
            if not isinstance(value, str):
                object.__setattr__(self, setting, _freeze(value, setting == "gain", f"{refusal} of numbers such as {example}"))
            elif value not in names:
                raise MeasureError(f"{refusal} such as {example}")

    @classmethod
    def from_notation(cls, settings: dict[str, object]) -> dict[str, object]:
        """Return the fields for ``dcg='exp-log2'`` and ``gains={...}``, as ir_measures writes them."""
        settings = dict(settings)
        if "dcg" in settings:
            forms = {"log2": "linear", "exp-log2": "exp2"}
            if settings["dcg"] not in list(forms):
                raise ValueError(f"dcg={settings['dcg']!r} is not one of 'log2', 'exp-log2'")
            settings |= {"gain": forms[str(settings.pop("dcg"))], "discount": "log2"}
        if "gains" in settings:
            settings["gain"] = settings.pop("gains")
        return settings

    @property
    def equations(self) -> tuple[str, ...]:
        gain = {"exp2": "2^{y_r} - 1", "linear": "y_r"}.get(str(self.gain), r"\text{gain of }y_r")
        discounted = {"log2": rf"\frac{{{gain}}}{{\log_2(1 + r)}}", "letor": rf"\frac{{{gain}}}{{\max(1, \log_2 r)}}"}
        term = discounted.get(str(self.discount), rf"({gain})\text{{ times the discount of }}r")
        return (f"{self._symbol('DCG')} = {self._sum_over_ranks} {term}",)

    @property
    def native_gain(self) -> _core.Gain | None:
        return _core.Gain({"exp2": "exponential", "linear": "linear"}[self.gain]) if isinstance(self.gain, str) else None

    def usefulness(self, y: PerDocument) -> PerDocument:
        if isinstance(self.gain, str):
            above = np.maximum(y, 0.0)
            return exp2(above) - 1 if self.gain == "exp2" else above
        grades, values = np.array(self.gain).T
        at = np.minimum(np.searchsorted(grades, y), len(grades) - 1)
        is_listed = grades[at] == y
        unknown = np.flatnonzero(~is_listed & (y >= 0))
        if len(unknown):
            raise DataError(f"grade {y[unknown[0]]:g} has no entry in the gain table {dict(self.gain)}; add it")
        return np.where(is_listed, values[at], 0.0)

    def discounts(self, n: int) -> PerDocument:
        if not isinstance(self.discount, str):
            return np.pad(np.array(self.discount[:n]), (0, max(0, n - len(self.discount))))
        ranks = np.arange(1, n + 1, dtype=np.float64)
        return 1 / log2(1 + ranks) if self.discount == "log2" else 1 / log2(np.maximum(ranks, 2))


def _freeze(values: Any, by_grade: bool, refusal: str) -> GainTable | DiscountTable:
    """Return a table in hashable form: pairs of a grade and its gain, or discounts."""
    table: GainTable | DiscountTable
    try:
        entries = values.items() if by_grade and isinstance(values, Mapping) else values
        table = tuple(sorted((float(grade), float(gain)) for grade, gain in entries)) if by_grade else tuple(map(float, entries))
    except (TypeError, ValueError, OverflowError):
        table = ()
    if not table or not np.all(np.isfinite(table)):
        raise MeasureError(refusal)
    return table


@dataclass(frozen=True, repr=False)
class NDCG(DCG):
    """DCG as a share of the best possible, (2)."""

    short: Literal["pad", "zero"] = "pad"

    name: ClassVar[str] = "nDCG"
    normalizer = "ideal"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect("short", ("pad", "zero"))

    @property
    def equations(self) -> tuple[str, ...]:
        share = rf"{self._symbol('nDCG')} = \frac{{{self._symbol('DCG')}}}{{{self._symbol('IDCG')}}}"
        return share, *super().equations

    @property
    def symbols(self) -> str:
        gains = "" if isinstance(self.gain, str) else f" The gains are {dict(self.gain)}."
        return f"IDCG is the DCG of the documents in order of grade.{gains}"

    @property
    def short_is_zero(self) -> bool:
        return self.short == "zero" and self.k is not None


@dataclass(frozen=True, repr=False)
class MeanNDCG(DCG):
    """nDCG averaged over all cutoffs (up to ``k``, if given), (3): the MeanNDCG of the LETOR scripts."""

    name: ClassVar[str] = "MeanNDCG"
    normalizer = "mean_ideal"

    @property
    def equations(self) -> tuple[str, ...]:
        last, ndcg = "k" if self.k else "n", NDCG(k=1, gain=self.gain, discount=self.discount)
        return rf"\text{{MeanNDCG}} = \frac{{1}}{{{last}}} \sum_{{k = 1}}^{{{last}}} \text{{nDCG@}}k", *ndcg.equations

    @property
    def symbols(self) -> str:
        return NDCG(gain=self.gain).symbols


@dataclass(frozen=True, repr=False)
class ERR(Cascade):
    """Expected reciprocal rank for grades from 0 to ``max_grade``, (4)."""

    max_grade: float = 4

    name: ClassVar[str] = "ERR"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect_number("max_grade", minimum=0, maximum=1000)

    @property
    def equations(self) -> tuple[str, ...]:
        value = rf"{self._sum_over_ranks} \frac{{1}}{{r}} u_r \prod_{{t < r}} (1 - u_t)"
        return f"{self._symbol('ERR')} = {value}", rf"u_r = \frac{{2^{{y_r}} - 1}}{{2^{{{self.max_grade:g}}}}}"

    @property
    def native_gain(self) -> _core.Gain | None:
        return _core.Gain("stopping", self.max_grade)

    def usefulness(self, y: PerDocument) -> PerDocument:
        return np.asarray((exp2(np.maximum(y, 0)) - 1) / exp2(self.max_grade))

    def discounts(self, n: int) -> PerDocument:
        return 1 / np.arange(1, n + 1)

    def kernel(self, y: PerDocument, longest: int) -> tuple[_core.Kernel, PerDocument]:
        highest = float(y.max())
        if highest > self.max_grade:
            raise DataError(f"grade {highest:g} exceeds ERR's max_grade={self.max_grade:g}; use ERR(max_grade={highest:g})")
        return super().kernel(y, longest)


@dataclass(frozen=True, repr=False)
class Total(Positional):
    """The sum of a column over the first ``k`` ranks, (5).

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
        notation = self._notation(defaults=False)
        is_short = notation == f"{self.name}(column={self.column!r})@{self.k}" and names_a_column(str(self.column))
        return f"{self.column}@{self.k}" if is_short else notation


def names_a_column(name: str) -> bool:
    """Return whether ``name`` in place of a measure is that of a column: a word that is neither a measure's name nor similar to one."""
    return name.isidentifier() and name not in Measure.registry and not did_you_mean(name, Measure.registry, SIMILAR)
