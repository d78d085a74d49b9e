"""Base of all measures. A measure is a frozen value that holds every setting on which its numbers depend.

A measure turns the grades of one query's documents, in ranked order, into a number. Its fields are its definition, its
``repr`` prints all of them in the notation of ir_measures, and `parse_measure` reads this notation:

>>> from exactrank.measures import NDCG
>>> NDCG(k=10)
nDCG(gain='exp2', discount='log2', short='pad', empty=0, ties='input')@10
>>> str(NDCG(k=10, ties="expected"))
"nDCG(ties='expected')@10"

``empty``: the value of a query with nothing relevant: 0, 1, or ``'skip'`` to leave it out of the mean.
``ties``: how documents of equal score are ranked: ``'input'`` in the order of the input; ``'pessimistic'`` lowest grade first;
``'expected'`` the mean over all their orders; ``'docid'`` as trec_eval does, scores compared in single precision and
then document ids descending.
``column``: the column or feature of the data that is read in place of grades, such as a price; None for the grades.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import PerDocument, PerQuery
from exactrank._support.numerals import is_finite_number
from exactrank._support.registry import Registry
from exactrank.data.dataset import Dataset, Weigh
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError, IncompatibleError, MeasureError
from exactrank.measures.bound import BoundMeasure, DatasetMeasure

Empty = Literal[0, 1, "skip"]
Ties = Literal["input", "pessimistic", "expected", "docid"]
NO_CUTOFF = np.iinfo(np.int32).max
NO_DOCID = "ties='docid' (as in trec_eval's names such as ndcg) needs document ids, and there are none; give docid, or write nDCG"


@dataclass(frozen=True, repr=False)
class Measure(ABC):
    """The base of all measures; ``k`` is the cutoff, None for the whole list."""

    k: int | None = None
    empty: Empty = 0
    ties: Ties = "input"
    column: str | None = None

    name: ClassVar[str]  #: in the notation of ir_measures
    aliases: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  #: other names, with the settings they imply
    has_cutoff: ClassVar[bool] = True
    counts_pairs: ClassVar[bool] = False  #: whether it also counts pairs besides the grades
    registry: ClassVar[Registry[type["Measure"]]]  #: by all names in lower case

    def __init_subclass__(cls) -> None:
        if "name" in vars(cls):
            for name in (cls.name, cls.__name__, *cls.aliases):
                registered = Measure.registry.builtin.setdefault(name.lower(), cls)
                if isinstance(registered, type) and (registered.__module__, registered.__qualname__) != (cls.__module__, cls.__qualname__):
                    raise MeasureError(f"{cls.__module__}: {registered.__module__} already has a measure {name!r}; give yours another name")
                Measure.registry.builtin[name.lower()] = cls  # the class may have been defined again

    def __post_init__(self) -> None:
        if self.k is not None and not self.has_cutoff:
            raise MeasureError(f"{self.name} has no cutoff; write it without @{self.k}")
        if self.k is not None and (isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 1):
            raise MeasureError(f"{self.name}: the cutoff k must be a whole number of at least 1, got {self.k!r}")
        self._expect("empty", (0, 1, "skip"))
        self._expect("ties", ("input", "pessimistic", "expected", "docid"))
        if self.column is not None and (not isinstance(self.column, str) or not self.column):
            raise MeasureError(f"{self.name}: column must be the name of a column, got {self.column!r}")

    @classmethod
    def from_notation(cls, settings: dict[str, object]) -> dict[str, object]:
        """Return the values of fields for settings in the notation of this measure, which may have other names."""
        return settings

    @abstractmethod
    def kernel(self, y: PerDocument, longest: int) -> tuple[_core.Kernel, PerDocument]:
        """Return the native measure and the numbers that it reads as grades: ``y``, or a usefulness; the same for all ``ties``.

        ``longest`` is the largest number of documents of a query.
        """

    @abstractmethod
    def swap_deltas(self, y: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the change of the measure when positions i and j are swapped, for all pairs; ``y`` are grades in ranked order."""

    def on(self, data: RankingData, weights: PerQuery | None = None, threads: int | None = None) -> BoundMeasure:
        """Return the measure bound to the queries of ``data``, for many evaluations; ``weights`` replace the query weights.

        >>> from exactrank.measures import NDCG
        >>> data = RankingData.from_arrays(None, [0, 2, 1, 0], qid=["a", "a", "a", "b"])
        >>> bound = NDCG(k=10).on(data)
        >>> bound.values(np.array([0.3, 0.2, 0.1, 0.9])).round(4), round(bound.mean(np.array([0.3, 0.2, 0.1, 0.9])), 4)
        (array([0.659, 0.   ]), 0.3295)
        """
        kernel, grades = self._kernel_on(data)
        tie_key = self.worst_first(data) if self.ties == "pessimistic" else None
        if self.ties == "docid":
            if data.docid is None:
                raise IncompatibleError(NO_DOCID)
            tie_key = data.docid.places_from_last
        return BoundMeasure(self, data, data.weights if weights is None else weights, threads, kernel, grades, tie_key)

    def over(self, data: Dataset, weigh: Weigh | None = None, threads: int | None = None) -> DatasetMeasure:
        """Return the measure over ``data``, wherever its documents lie; ``weigh`` changes the query weights."""
        if self.ties == "docid" and not data.has_docid:
            raise IncompatibleError(NO_DOCID)
        return DatasetMeasure(self, data, threads, data.with_memo(), weigh=weigh)

    def negated_grades(self, data: RankingData) -> PerDocument:
        """Return scores that rank the worst documents first."""
        return -self.grades(data)

    def grades(self, data: RankingData) -> PerDocument:
        """Return the numbers that are read as grades: those of ``data``, or of its ``column``, which must be at least 0."""
        if self.column is None:
            return data.y
        values = data.column(self.column)
        bad = np.flatnonzero(~(values >= 0))
        if len(bad):
            row, value = bad[0] if data.order is None else data.order[bad[0]], values[bad[0]]
            remedy = (
                "give every document a number" if np.isnan(value) else "add a constant to the column, or give 0 where nothing is gained"
            )
            raise DataError(f"{self}: column {self.column!r} is {value:g} in row {row}, and gains are numbers of at least 0; {remedy}")
        return values

    def _kernel_on(self, data: RankingData) -> tuple[_core.Kernel, PerDocument]:
        """Return the `kernel` for the documents of ``data``."""
        return self.kernel(self.grades(data), data.longest)

    def worst_first(self, data: RankingData) -> PerDocument:
        """Return numbers whose ascending order is the worst order of tied documents."""
        return self.grades(data)

    @property
    def equations(self) -> tuple[str, ...]:
        """Definition for one query in LaTeX, the measure's equation first; shown in the report of a comparison.

        >>> from exactrank.measures import Recall
        >>> print(*Recall(k=5).equations)
        \\text{R@}k = \\frac{\\sum_{r \\le k} [y_r \\ge 1]}{\\sum_r [y_r \\ge 1]}
        """
        return ()

    @property
    def symbols(self) -> str:
        """Sentences that explain the symbols in `equations` besides ranks and grades."""
        return ""

    def _symbol(self, name: str) -> str:
        """Return ``name`` in LaTeX, with ``@k`` if the measure has a cutoff."""
        return rf"\text{{{name}@}}k" if self.k else rf"\text{{{name}}}"

    @property
    def _sum_over_ranks(self) -> str:
        return r"\sum_{r \le k}" if self.k else r"\sum_r"

    @property
    def is_linear(self) -> bool:
        """True if the value of a fixed ranking is a weighted sum of the grades, which can be estimated from clicks without bias."""
        return False

    @property
    def cutoff(self) -> int:
        """``k``, or a number larger than the length of any list."""
        return NO_CUTOFF if self.k is None else min(self.k, NO_CUTOFF)

    @property
    def empty_value(self) -> float:
        """``empty`` as the kernels take it: NaN to skip."""
        return float("nan") if self.empty == "skip" else float(self.empty)

    def __repr__(self) -> str:
        return self._notation(defaults=True)

    def __str__(self) -> str:
        return self._notation(defaults=False)

    def _notation(self, defaults: bool) -> str:
        """Return the notation that `parse_measure` reads, with or without default settings; settings of this measure come first."""
        ordered = sorted(fields(self), key=lambda field: field.name in ("empty", "ties", "column"))
        values = {field: getattr(self, field.name) for field in ordered if field.name != "k"}
        written = [
            (field.name, value) for field, value in values.items() if value != field.default or (defaults and field.name != "column")
        ]
        inside = ", ".join(f"{name}={_literal(value)}" for name, value in written)
        return self.name + (f"({inside})" if inside else "") + ("" if self.k is None else f"@{self.k}")

    def _expect(self, field: str, allowed: tuple[object, ...]) -> None:
        value = getattr(self, field)
        if not any(value == a and type(value) is type(a) for a in allowed):
            raise MeasureError(f"{self.name}: {field}={value!r} is not one of {', '.join(map(repr, allowed))}")

    def _expect_number(self, field: str, minimum: float = -math.inf, maximum: float = math.inf) -> None:
        value = getattr(self, field)
        if not is_finite_number(value) or not minimum <= value <= maximum:
            between = f" between {minimum:g} and {maximum:g}" if math.isfinite(maximum) else ""
            raise MeasureError(f"{self.name}: {field} must be a number{between}, got {value!r}")


def _is_measure(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Measure)


Measure.registry = Registry("measure", {}, "exactrank.measures", _is_measure, MeasureError, str.lower)


def _literal(value: object) -> str:
    """Return a setting in the notation of measures: 1.0 as 1, and a table of pairs as a dictionary."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return "{" + ", ".join(f"{_literal(k)}: {_literal(v)}" for k, v in value) + "}"
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_literal, value)) + "]"
    return repr(value)
