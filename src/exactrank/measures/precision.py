"""Precision and recall at a cutoff.

    P@k = (relevant documents among the first k) / k          R@k = (relevant among the first k) / (relevant)

``norm='list'`` divides P by the length of a list shorter than k, as XGBoost does.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from exactrank.arrays import PerDocument
from exactrank.errors import MeasureError
from exactrank.measures.binary import Binary
from exactrank.measures.families import Positional


@dataclass(frozen=True, repr=False)
class Counted(Binary, Positional):
    """The number of relevant documents among the first ``k``, over something."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k is None:
            raise MeasureError(f"{self.name} needs a cutoff; write e.g. {self.name}@10")

    def discounts(self, n: int) -> PerDocument:
        return np.ones(n)


@dataclass(frozen=True, repr=False)
class Precision(Counted):
    """The share of the first ``k`` ranks that hold a relevant document."""

    norm: Literal["cutoff", "list"] = "cutoff"

    name: ClassVar[str] = "P"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect("norm", ("cutoff", "list"))

    @property
    def normaliser(self) -> Literal["one", "length"]:
        return "length" if self.norm == "list" else "one"

    def discounts(self, n: int) -> PerDocument:
        return np.full(n, 1.0 if self.norm == "list" else 1 / self.cutoff)


@dataclass(frozen=True, repr=False)
class Recall(Counted):
    """The share of the relevant documents that are among the first ``k``."""

    name: ClassVar[str] = "R"

    @property
    def normaliser(self) -> Literal["total"]:
        return "total"
