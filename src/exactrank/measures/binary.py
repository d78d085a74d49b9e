"""Measures of binary relevance: a document is relevant if its grade is at least ``rel``.

    P@k = (relevant documents among the first k) / k          R@k = (relevant among the first k) / (relevant)
    RBP = (1 - p) sum_r [y_r >= rel] p^(r-1)                  a reader goes on with probability p (Moffat & Zobel 2008)
    AP@k = sum_{r<=k} [y_r >= rel] C_r / r / N                C_r = relevant documents down to rank r
    RR = 1 / (rank of the first relevant document)            Success@k = [that rank <= k]

P with ``norm='list'`` divides by the length of a list shorter than k, as XGBoost does. AP is the precision at each relevant document,
averaged over the relevant ones: N is their number (``norm='total'``, as in trec_eval), or at most k (``norm='cutoff'``, as in LightGBM
and XGBoost). RR and Success are cascades that always stop at the first relevant document; winner-takes-all (WTA) is Success@1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import PerDocument
from exactrank._support.numerics import power
from exactrank.data.dataset import Dataset
from exactrank.errors import MeasureError
from exactrank.measures.base import Measure
from exactrank.measures.families import Cascade, Positional, mirror


@dataclass(frozen=True, repr=False)
class Binary(Measure):
    """A measure for which a document is relevant if its grade is at least ``rel``."""

    rel: float = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect_number("rel")

    @property
    def native_gain(self) -> _core.Gain | None:
        """[y >= rel] as a gain of the kernels."""
        return _core.Gain("threshold", self.rel)

    def _relevance(self, rank: str = "r") -> str:
        return rf"[y_{rank} \ge {self.rel:g}]"

    def usefulness(self, y: PerDocument) -> PerDocument:
        """[y >= rel]"""
        return (y >= self.rel).astype(np.float64)


@dataclass(frozen=True, repr=False)
class Counted(Binary, Positional):
    """The number of relevant documents among the first ``k``, divided by a normalizer."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k is None:
            raise MeasureError(f"{self.name} needs a cutoff; write e.g. {self.name}@10")

    def discounts(self, n: int) -> PerDocument:
        return np.full(n, 1 / self.cutoff if self.normalizer == "one" else 1.0)


@dataclass(frozen=True, repr=False)
class Precision(Counted):
    """The share of the first ``k`` ranks that hold a relevant document."""

    norm: Literal["cutoff", "list"] = "cutoff"

    name: ClassVar[str] = "P"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect("norm", ("cutoff", "list"))

    @property
    def equations(self) -> tuple[str, ...]:
        length = "k" if self.norm == "cutoff" else "n"
        return (rf"\text{{P@}}k = \frac{{1}}{{{length}}} {self._sum_over_ranks} {self._relevance()}",)

    @property
    def symbols(self) -> str:
        return "n is k, or the number of documents where that is smaller." if self.norm == "list" else ""

    @property
    def normalizer(self) -> Literal["one", "length"]:
        return "length" if self.norm == "list" else "one"


@dataclass(frozen=True, repr=False)
class Recall(Counted):
    """The share of the relevant documents that are among the first ``k``."""

    name: ClassVar[str] = "R"
    normalizer = "total"

    @property
    def equations(self) -> tuple[str, ...]:
        relevant = self._relevance()
        return (rf"\text{{R@}}k = \frac{{{self._sum_over_ranks} {relevant}}}{{\sum_r {relevant}}}",)


@dataclass(frozen=True, repr=False)
class RBP(Binary, Positional):
    """Rank-biased precision with persistence ``p``."""

    p: float = 0.8

    name: ClassVar[str] = "RBP"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect_number("p", minimum=0, maximum=1)
        if self.p in (0, 1):
            raise MeasureError(f"RBP: p must lie between 0 and 1, got {self.p}")

    @property
    def equations(self) -> tuple[str, ...]:
        p = f"{self.p:g}"
        return (f"{self._symbol('RBP')} = (1 - {p}) {self._sum_over_ranks} {self._relevance()} {p}^{{r - 1}}",)

    def discounts(self, n: int) -> PerDocument:
        return (1 - self.p) * power(self.p, np.arange(n))


@dataclass(frozen=True, repr=False)
class RR(Binary, Cascade):
    """Reciprocal rank; its mean over queries is MRR."""

    name: ClassVar[str] = "RR"
    aliases: ClassVar[Mapping[str, Mapping[str, Any]]] = {"MRR": {}}

    @property
    def equations(self) -> tuple[str, ...]:
        return (rf"{self._symbol('RR')} = \frac{{1}}{{r}}",)

    @property
    def symbols(self) -> str:
        return "r is the first rank with a relevant document."

    def discounts(self, n: int) -> PerDocument:
        return 1 / np.arange(1, n + 1)


@dataclass(frozen=True, repr=False)
class Success(Binary, Cascade):
    """1 if there is a relevant document among the first ``k``, otherwise 0."""

    name: ClassVar[str] = "Success"
    aliases: ClassVar[Mapping[str, Mapping[str, Any]]] = {"Hit": {}, "WTA": {"k": 1}}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k is None:
            raise MeasureError("Success needs a cutoff; write e.g. Success@10, or WTA for Success@1")

    @property
    def equations(self) -> tuple[str, ...]:
        return (rf"\text{{Success@}}k = \max_{{r \le k}} {self._relevance()}",)

    def discounts(self, n: int) -> PerDocument:
        return np.ones(n)


@dataclass(frozen=True, repr=False)
class AP(Binary):
    """Average precision; its mean over queries is MAP."""

    norm: Literal["total", "cutoff"] = "total"

    name: ClassVar[str] = "AP"
    aliases: ClassVar[Mapping[str, Mapping[str, Any]]] = {"MAP": {}}

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect("norm", ("total", "cutoff"))

    @property
    def equations(self) -> tuple[str, ...]:
        mean = rf"{self._symbol('AP')} = \frac{{1}}{{N}} {self._sum_over_ranks} {self._relevance()} \frac{{C_r}}{{r}}"
        return mean, rf"C_r = \sum_{{t \le r}} {self._relevance('t')}"

    @property
    def symbols(self) -> str:
        return f"N is the number of relevant documents{', at most k' if self.norm == 'cutoff' else ''}."

    def kernel(self, y: PerDocument, longest: int) -> tuple[_core.Kernel, PerDocument]:
        return _core.average_precision(self.rel, self.cutoff, self.norm == "cutoff", self.empty_value), y

    def swap_deltas(self, y: npt.ArrayLike) -> npt.NDArray[np.float64]:
        u = self.usefulness(np.asarray(y, np.float64))
        relevant = u.sum()
        if relevant == 0:
            return np.zeros((len(u), len(u)))
        ranks = np.arange(1, len(u) + 1)
        weight = np.where(ranks <= self.cutoff, 1 / ranks, 0.0)
        relevant_above = np.cumsum(u)
        before = np.cumsum(u * weight) - u * weight
        between = before[None, :] - (before + u * weight)[:, None]  # sum over i < r < j
        omega = (weight * (relevant_above - u + 1))[:, None] - (weight * relevant_above)[None, :] + between
        normalizer = min(relevant, self.cutoff) if self.norm == "cutoff" else relevant
        return mirror((u[None, :] - u[:, None]) * omega / normalizer)


def threshold_remarks(measures: Mapping[str, Measure], data: Dataset) -> dict[str, str]:
    """Return a sentence on each measure whose threshold of relevance is above every grade, although grades differ."""
    thresholds = {name: measure for name, measure in measures.items() if isinstance(measure, Binary) and measure.column is None}
    largest = data.grades_and_pairs[0].max() if thresholds else 0.0
    return {
        name: f"{name} counts documents with a grade of at least {measure.rel:g} as relevant, and the largest grade is {largest:g}; lower"
        f" the threshold, e.g. {replace(measure, rel=float(f'{largest / 2:.1g}'))}"
        for name, measure in thresholds.items()
        if 0 < largest < measure.rel
    }
