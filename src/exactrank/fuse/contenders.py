"""The problem of tuning, made from scored documents without those that cannot matter.

A measure with a cutoff k sees only the documents that reach rank k under some weights. If k documents never score below t, then
one that always scores below t never does. Scores are linear in the weights, so a document's least and largest score over all
weights are those at the corners, one system alone with weight 1 (or -1), and

    t = the k-th largest, in a query, of the documents' least scores                                            (1)

costs no more than a look at each corner. Of what is left, two and three systems see the same done for small parts of the weights
(`cells.py`): a document stays if it stays in one of them. Usually a few dozens of a thousand documents do. Useful documents stay in
any case, since an ideal ranking has them.

Queries are handled in blocks that fit into the processor's cache, several at a time.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

import numpy as np

from exactrank.arrays import Boundaries, PerDocument, Rows
from exactrank.data.ranking_data import RankingData
from exactrank.fuse.cells import small_cells
from exactrank.fuse.normalise import Retrieved, SystemScores, check_policies, normalised
from exactrank.fuse.problem import Problem, weighted_sum
from exactrank.fuse.tables import kth_largest
from exactrank.measures.base import Measure
from exactrank.measures.binary import Binary
from exactrank.measures.families import Discounted
from exactrank.threads import Pool, thread_count

BLOCK = 1 << 16  #: documents
ROUNDING = 1e-9
HALVED = {2: 1, 3: 4}  #: times, the weights of so many systems: three are swept often
T = TypeVar("T")


def blocks(indptr: Boundaries) -> Iterator[tuple[slice, Boundaries]]:
    """The rows of some queries at a time, with their boundaries among those rows."""
    cuts = np.unique(np.append(np.searchsorted(indptr, np.arange(0, indptr[-1], BLOCK)), len(indptr) - 1))
    for first, last in pairwise(cuts.tolist()):
        yield slice(indptr[first], indptr[last]), indptr[first : last + 1] - indptr[first]


def by_blocks(work: Callable[[slice, Boundaries], T], indptr: Boundaries, threads: int | None) -> list[T]:
    """``work`` on each of the blocks."""
    with Pool(thread_count(threads)) as pool:
        return list(pool.map(lambda block: work(*block), blocks(indptr)))


@dataclass(frozen=True)
class Fusing:
    """How systems become a problem: what is measured, and how their scores are made comparable."""

    measure: Measure
    normalise: str
    absent: str
    nonnegative: bool = True
    threads: int | None = None

    def __post_init__(self) -> None:
        check_policies(self.normalise, self.absent)

    def problem(self, data: RankingData) -> Problem:
        """The problem that ``data`` poses, a feature a system, without the documents that cannot matter."""

        def contending(rows: slice, indptr: Boundaries) -> tuple[Rows, SystemScores, Retrieved]:
            values, ranked = normalised(data.X[rows], indptr, self.normalise, self.absent, data.offset)
            kept = self._contenders(values, ranked, data.y[rows], indptr)
            return kept + rows.start, values[:, kept], ranked[kept]

        blocks = by_blocks(contending, data.indptr, self.threads)
        rows, values, ranked = (np.concatenate(parts, axis=-1) for parts in zip(*blocks, strict=True))
        bare = replace(
            data,
            X=np.empty((len(rows), 0), np.float32),
            y=data.y[rows],
            indptr=np.searchsorted(rows, data.indptr),
            feature_names=(),
            docid=data.docid if self.measure.ties == "docid" else None,
            comment=None,
            sample_weight=None,
            offset=None,
        )
        return Problem(self.measure, bare, values, ranked, self.nonnegative, self.threads)

    def _contenders(self, values: SystemScores, ranked: Retrieved, y: PerDocument, indptr: Boundaries) -> Rows:
        """The documents that some weights may bring to the first k ranks, and the useful ones."""
        measure, everyone = self.measure, np.arange(len(y))
        if measure.k is None or measure.ties == "docid" or not isinstance(measure, Discounted | Binary):
            return everyone
        useful = measure.usefulness(y) > 0
        corners = values if self.nonnegative else np.concatenate([values, -values])
        some = everyone[reaching(corners, ranked, indptr, measure.k) | useful]
        cells = small_cells(len(values), self.nonnegative, HALVED.get(len(values), 0))
        if not cells:
            return some
        left, among, bounds = values[:, some], ranked[some], np.searchsorted(some, indptr)
        needed = useful[some]
        for cell in cells:
            needed |= reaching(np.stack([weighted_sum(corner, left) for corner in cell]), among, bounds, measure.k)
        return some[needed]


def reaching(at_corners: SystemScores, ranked: Retrieved, indptr: Boundaries, k: int) -> Retrieved:
    """The documents that may be among the first ``k`` somewhere between corners with the given scores."""
    least, most = (np.where(ranked, extreme.reduce(at_corners), -np.inf) for extreme in (np.minimum, np.maximum))
    enough = kth_largest(least, indptr, k)  # (1)
    enough -= ROUNDING * np.abs(enough, out=np.zeros_like(enough), where=np.isfinite(enough))
    return np.asarray(most >= np.repeat(enough, np.diff(indptr)))
