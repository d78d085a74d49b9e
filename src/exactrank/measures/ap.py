"""Average precision: the precision at each relevant document, averaged over the relevant ones.

    AP@k = sum_{r<=k} [y_r >= rel] C_r / r / N,    C_r = relevant documents down to rank r

N is the number of relevant documents (``norm='total'``, as trec_eval), or that but at most k (``norm='cutoff'``, as
LightGBM and XGBoost). The mean over queries is MAP.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import PerDocument
from exactrank.measures.binary import Binary
from exactrank.measures.families import mirrored


@dataclass(frozen=True, repr=False)
class AP(Binary):
    """Average precision."""

    norm: Literal["total", "cutoff"] = "total"

    name: ClassVar[str] = "AP"
    aliases: ClassVar[Mapping[str, Mapping[str, Any]]] = {"MAP": {}}

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect("norm", ("total", "cutoff"))

    def kernel(self, y: PerDocument, longest: int) -> tuple[_core.Kernel, PerDocument]:
        return _core.average_precision(self.rel, self.cutoff, self.norm == "cutoff", self.empty_value), y

    def swap_deltas(self, y: npt.ArrayLike) -> npt.NDArray[np.float64]:
        u = self.usefulness(np.asarray(y, np.float64))
        relevant = u.sum()
        if relevant == 0:
            return np.zeros((len(u), len(u)))
        ranks = np.arange(1, len(u) + 1)
        weight = np.where(ranks <= self.cutoff, 1 / ranks, 0.0)
        found = np.cumsum(u)
        before = np.cumsum(u * weight) - u * weight
        between = before[None, :] - (before + u * weight)[:, None]  # sum over i < r < j
        omega = (weight * (found - u + 1))[:, None] - (weight * found)[None, :] + between
        most = min(relevant, self.cutoff) if self.norm == "cutoff" else relevant
        return mirrored((u[None, :] - u[:, None]) * omega / most)
