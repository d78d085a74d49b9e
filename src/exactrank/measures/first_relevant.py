"""Measures of where the first relevant document stands.

    RR = 1 / (its rank)                       Success@k = [its rank <= k]

Both are cascades that stop for certain at the first relevant document. Winner-takes-all (WTA) is Success@1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from exactrank.arrays import PerDocument
from exactrank.errors import MeasureError
from exactrank.measures.binary import Binary
from exactrank.measures.families import Cascade


@dataclass(frozen=True, repr=False)
class RR(Binary, Cascade):
    """Reciprocal rank; its mean over queries is MRR."""

    name: ClassVar[str] = "RR"
    aliases: ClassVar[Mapping[str, Mapping[str, Any]]] = {"MRR": {}}

    def discounts(self, n: int) -> PerDocument:
        return 1 / np.arange(1, n + 1)


@dataclass(frozen=True, repr=False)
class Success(Binary, Cascade):
    """Is there a relevant document among the first ``k``?"""

    name: ClassVar[str] = "Success"
    aliases: ClassVar[Mapping[str, Mapping[str, Any]]] = {"WTA": {"k": 1}}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k is None:
            raise MeasureError("Success needs a cutoff; write e.g. Success@10, or WTA for Success@1")

    def discounts(self, n: int) -> PerDocument:
        return np.ones(n)
