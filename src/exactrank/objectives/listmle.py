"""ListMLE: the likelihood of the ideal ranking (Xia, Liu, Wang, Zhang & Li 2008).

Under the model of Plackett and Luce documents are drawn one by one with chances in proportion to e^s. With documents in the
order of their grades, best first, the negated loss of a query is

    value = sum_{j <= k} log e^{s_j} / sum_{l >= j} e^{s_l}                                                     (1)

over all ranks, or over the first k alone: the top-k ListMLE of Xia, Liu & Li (2009). It is concave. Documents of one grade
have no ideal order among themselves; here they get a random one, the same for every question, so that the order of the input
gives nothing away. A query with a single grade has no ideal ranking at all, and contributes nothing.
"""

from dataclasses import dataclass

import numpy as np

from exactrank import _core
from exactrank.data.ranking_data import RankingData
from exactrank.errors import SettingError
from exactrank.measures.base import NO_CUTOFF


@dataclass(frozen=True)
class ListMLE:
    """(1) over the first ``k`` ranks, None for all; ``seed`` draws the order of documents of one grade."""

    k: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.k is not None and not 1 <= self.k < NO_CUTOFF:
            raise SettingError(f"k must be at least 1, or None for all ranks; got {self.k}")
        if self.seed < 0:
            raise SettingError(f"a seed must be at least 0, got {self.seed}")

    def on(self, data: RankingData) -> _core.Objective:
        """Itself on ``data``."""
        starts, sizes = data.indptr[:-1], data.sizes
        query = np.repeat(np.arange(data.n_queries), data.sizes)
        chance = np.random.default_rng(self.seed).random(data.n_documents)
        ideal = np.lexsort((chance, -data.y, query)) - np.repeat(starts, data.sizes)
        one_grade = np.maximum.reduceat(data.y, starts) == np.minimum.reduceat(data.y, starts)
        top = np.where(one_grade, 0, np.minimum(sizes, self.k or NO_CUTOFF))
        return _core.listmle(ideal.astype(np.int32), top.astype(np.int32), data.indptr)
