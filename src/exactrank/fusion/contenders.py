"""The problem of tuning, made from scored documents without those that cannot matter; and what fusing refuses, with the remedy.

A measure with a cutoff k depends only on the documents that reach rank k under some weights. If k documents never score below t,
one that always scores below t never does. Scores are linear in the weights, so a document's least and largest score over all
weights are those at the corners, one system alone with weight 1 (or -1), and

    t = the k-th largest, in a query, of the documents' least scores                                            (1)

costs no more than one evaluation at each corner. With two or three systems the rest is filtered again in the same way for small parts of
the weights: a document stays if it stays in one of them. Usually a few dozen of a thousand documents do. Useful documents stay in
any case, since an ideal ranking has them.

Queries are handled in blocks that fit into the processor's cache, several at a time.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

import numpy as np

from exactrank._support.arrays import Boundaries, PerDocument, Rows
from exactrank._support.threads import Pool, thread_count
from exactrank.data.extra_columns import take_extra_columns
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError
from exactrank.fusion.lists import kth_largest
from exactrank.fusion.normalize import Retrieved, SystemScores, normalized
from exactrank.fusion.problem import FusionProblem, all_weights, halves, weighted_sum
from exactrank.measures.base import Measure
from exactrank.measures.binary import Binary
from exactrank.measures.families import Discounted

BLOCK = 1 << 16  #: documents
ROUNDING = 1e-6  #: of an engine's single precision
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


def check_systems(data: RankingData, folds: int) -> None:
    """Raise if the systems cannot be fused, or the queries cannot be divided into ``folds``."""
    names = data.feature_names
    if folds > data.n_queries:
        raise DataError(f"{data.n_queries} queries cannot form {folds} folds; give folds={data.n_queries} or less, or 0 for none")
    if len(names) < 2:
        raise DataError(f"fusing needs at least two systems, got {', '.join(names) or 'none'}; give another run or column")
    known = np.zeros((4, len(names)), bool)
    for rows, indptr in blocks(data.indptr):
        columns = np.ascontiguousarray(data.X[rows].T)
        present = ~np.isnan(columns)
        shared = present & (np.add.reduce(present, dtype=np.int16) > 1)
        low = np.minimum.reduceat(np.where(present, columns, np.float32(np.inf)), indptr[:-1], axis=1)
        high = np.maximum.reduceat(np.where(present, columns, np.float32(-np.inf)), indptr[:-1], axis=1)
        differs = (present != present[0]) | (present & (columns != columns[0]))
        known |= np.array([fact.any(axis=1) for fact in (present, shared, low < high, differs)])
        if known[:3].all() and known[3].any():  # the first blocks that show it all are enough
            return
    if not known[0].all():
        raise DataError(f"system {names[int(np.argmin(known[0]))]!r} has no score for any document; leave it out")
    for j, name in enumerate(names):
        if not known[1, j]:
            ours, theirs = ~np.isnan(data.X[:, j]), ~np.isnan(np.delete(data.X, j, axis=1)).all(axis=1)
            ids = None if data.docid is None else [data.docid.tolist()[int(np.argmax(rows))] for rows in (ours, theirs)]
            example = "" if ids is None else f" (it has {ids[0]!r}, another {ids[1]!r})"
            raise DataError(
                f"system {name!r} retrieved no document that another system retrieved{example}; check that all use the same document ids"
            )
        if not known[2, j]:
            raise DataError(f"system {name!r} gives all documents of a query the same score, so it ranks nothing; leave it out")
    raise DataError(f"systems {', '.join(names)} have the same scores throughout; fuse systems that differ")


def check_relevance(problem: FusionProblem, data: RankingData) -> None:
    """Raise if every ranking of the retrieved documents has the same value: there is nothing to tune."""
    if data.y.min() == data.y.max():
        raise DataError(f"all documents have grade {data.y[0]:g}, so all rankings are equally good; judge some as better than others")
    if isinstance(problem.measure, Discounted | Binary) and not np.any(problem.measure.usefulness(problem.data.y[problem.ranked]) > 0):
        raise DataError(f"no document that was retrieved is relevant by {problem.measure}; check the judgments and the document ids")


def regraded(data: RankingData, measure: Measure) -> tuple[RankingData, Measure]:
    """Data whose grades are what ``measure`` reads, and the measure of these: systems may be taken from it without losing a column."""
    return (data, measure) if measure.column is None else (replace(data, y=measure.grades(data)), replace(measure, column=None))


def problem_of(
    data: RankingData, measure: Measure, normalize: str, absent: str, nonnegative: bool = True, threads: int | None = None
) -> FusionProblem:
    """The problem that ``data`` poses, with one feature per system, without the documents that cannot matter."""

    def contending(rows: slice, indptr: Boundaries) -> tuple[Rows, SystemScores, Retrieved]:
        values, ranked = normalized(data.X[rows], indptr, normalize, absent, data.offset)
        kept = _contenders(measure, nonnegative, values, ranked, data.y[rows], indptr)
        return kept + rows.start, values[:, kept], ranked[kept]

    rows, values, ranked = (np.concatenate(parts, axis=-1) for parts in zip(*by_blocks(contending, data.indptr, threads), strict=True))
    bare = replace(
        data,
        X=np.empty((len(rows), 0), np.float32),
        y=data.y[rows],
        indptr=np.searchsorted(rows, data.indptr),
        feature_names=(),
        docid=data.docid if measure.ties == "docid" else None,
        comment=None,
        sample_weight=None,
        offset=None,
        levels={},
        extra_columns=take_extra_columns(data.extra_columns, rows),
    )
    return FusionProblem(measure, bare, values, ranked, nonnegative, threads)


def _contenders(measure: Measure, nonnegative: bool, values: SystemScores, ranked: Retrieved, y: PerDocument, indptr: Boundaries) -> Rows:
    """The documents that some weights may bring to the first k ranks, and the useful ones."""
    everyone = np.arange(len(y))
    if measure.k is None or measure.ties == "docid" or not isinstance(measure, Discounted | Binary):
        return everyone
    useful = measure.usefulness(y) > 0
    corners = values if nonnegative else np.concatenate([values, -values])
    some = everyone[_reaching(corners, ranked, indptr, measure.k) | useful]
    cells = all_weights(len(values), nonnegative)
    if not cells:
        return some
    for _ in range(HALVED[len(values)]):
        cells = [half for cell in cells for half in halves(cell)]
    left, among, bounds = values[:, some], ranked[some], np.searchsorted(some, indptr)
    needed = useful[some]
    for cell in cells:
        needed |= _reaching(np.stack([weighted_sum(corner, left) for corner in cell]), among, bounds, measure.k)
    return some[needed]


def _reaching(at_corners: SystemScores, ranked: Retrieved, indptr: Boundaries, k: int) -> Retrieved:
    """The documents that may be among the first ``k`` somewhere between corners with the given scores."""
    least, most = (np.where(ranked, extreme.reduce(at_corners), -np.inf) for extreme in (np.minimum, np.maximum))
    enough = kth_largest(least, indptr, k)  # (1)
    enough -= ROUNDING * np.abs(enough, out=np.zeros_like(enough), where=np.isfinite(enough))
    return np.asarray(most >= np.repeat(enough, np.diff(indptr)))
