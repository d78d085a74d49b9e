"""The tuning problem of scored documents without those that cannot matter; and the checks of its input.

A measure with a cutoff k depends only on the documents that reach rank k under some weights. If k documents never score below t,
a document that always scores below t never does. Scores are linear in the weights, so a document's least and largest score over all
weights are those at the corners, where one system alone has weight 1 (or -1), and

    t = the k-th largest, in a query, of the documents' least scores                                            (1)

costs no more than one evaluation at each corner. With two or three systems the remaining documents are filtered again in the same way for
small parts of the weights: a document stays if it stays for one part. Usually a few dozen of a thousand documents do. Relevant documents
always stay, since an ideal ranking has them.

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
from exactrank.fusion.normalize import Retrieved, SystemScores, normalize_systems
from exactrank.fusion.problem import FusionProblem, all_weights, halves, weighted_sum
from exactrank.measures.base import Measure
from exactrank.measures.binary import Binary
from exactrank.measures.families import Discounted

BLOCK = 1 << 16  #: documents
ROUNDING = 1e-6  #: of an engine's single precision
HALVINGS = {2: 1, 3: 4}  #: of the weights, by number of systems: three systems need many sweeps
T = TypeVar("T")


def blocks(indptr: Boundaries) -> Iterator[tuple[slice, Boundaries]]:
    """Yield the rows of some queries at a time, with their boundaries among those rows."""
    cuts = np.unique(np.append(np.searchsorted(indptr, np.arange(0, indptr[-1], BLOCK)), len(indptr) - 1))
    for first, last in pairwise(cuts.tolist()):
        yield slice(indptr[first], indptr[last]), indptr[first : last + 1] - indptr[first]


def by_blocks(work: Callable[[slice, Boundaries], T], indptr: Boundaries, threads: int | None) -> list[T]:
    """Return the results of ``work`` on each block."""
    with Pool(thread_count(threads)) as pool:
        return list(pool.map(lambda block: work(*block), blocks(indptr)))


def check_systems(data: RankingData, folds: int) -> None:
    """Raise if the systems cannot be fused, or the queries cannot be divided into ``folds``."""
    names = data.feature_names
    if folds > data.n_queries:
        raise DataError(f"{data.n_queries} queries cannot form {folds} folds; give folds={data.n_queries} or less, or 0 for none")
    if len(names) < 2:
        raise DataError(f"fusing needs at least two systems, got {', '.join(names) or 'none'}; give another run or column")
    facts = np.zeros((4, len(names)), bool)  # has scores, shares documents, orders documents, differs from the first system
    for rows, indptr in blocks(data.indptr):
        columns = np.ascontiguousarray(data.X[rows].T)
        present = ~np.isnan(columns)
        shared = present & (np.add.reduce(present, dtype=np.int16) > 1)
        low = np.minimum.reduceat(np.where(present, columns, np.float32(np.inf)), indptr[:-1], axis=1)
        high = np.maximum.reduceat(np.where(present, columns, np.float32(-np.inf)), indptr[:-1], axis=1)
        differs = (present != present[0]) | (present & (columns != columns[0]))
        facts |= np.array([fact.any(axis=1) for fact in (present, shared, low < high, differs)])
        if facts[:3].all() and facts[3].any():  # the first blocks usually suffice
            return
    if not facts[0].all():
        raise DataError(f"system {names[int(np.argmin(facts[0]))]!r} has no score for any document; leave it out")
    for j, name in enumerate(names):
        if not facts[1, j]:
            ours, theirs = ~np.isnan(data.X[:, j]), ~np.isnan(np.delete(data.X, j, axis=1)).all(axis=1)
            ids = None if data.docid is None else [data.docid.tolist()[int(np.argmax(rows))] for rows in (ours, theirs)]
            example = "" if ids is None else f" (it has {ids[0]!r}, another {ids[1]!r})"
            raise DataError(
                f"system {name!r} retrieved no document that another system retrieved{example}; check that all use the same document ids"
            )
        if not facts[2, j]:
            raise DataError(f"system {name!r} gives all documents of a query the same score, so it ranks nothing; leave it out")
    raise DataError(f"systems {', '.join(names)} have the same scores throughout; fuse systems that differ")


def check_relevance(problem: FusionProblem, data: RankingData) -> None:
    """Raise if every ranking of the retrieved documents has the same value: there is nothing to tune."""
    if data.y.min() == data.y.max():
        raise DataError(f"all documents have grade {data.y[0]:g}, so all rankings are equally good; judge some as better than others")
    if isinstance(problem.measure, Discounted | Binary) and not np.any(problem.measure.usefulness(problem.data.y[problem.ranked]) > 0):
        raise DataError(f"no document that was retrieved is relevant by {problem.measure}; check the judgments and the document ids")


def with_grades_of(data: RankingData, measure: Measure) -> tuple[RankingData, Measure]:
    """Return data with the column that ``measure`` reads as grades, and the measure of grades; then systems can be selected safely."""
    return (data, measure) if measure.column is None else (replace(data, y=measure.grades(data)), replace(measure, column=None))


def problem_of(
    data: RankingData, measure: Measure, normalize: str, absent: str, nonnegative: bool = True, threads: int | None = None
) -> FusionProblem:
    """Return the tuning problem of ``data``, which has one feature per system, without the documents that cannot matter."""

    def prepare(rows: slice, indptr: Boundaries) -> tuple[Rows, SystemScores, Retrieved]:
        values, ranked = normalize_systems(data.X[rows], indptr, normalize, absent, data.offset)
        candidates = _candidates(measure, nonnegative, values, ranked, data.y[rows], indptr)
        return candidates + rows.start, values[:, candidates], ranked[candidates]

    rows, values, ranked = (np.concatenate(parts, axis=-1) for parts in zip(*by_blocks(prepare, data.indptr, threads), strict=True))
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


def _candidates(measure: Measure, nonnegative: bool, values: SystemScores, ranked: Retrieved, y: PerDocument, indptr: Boundaries) -> Rows:
    """Return the documents that some weights may bring to the first k ranks, and all relevant ones."""
    documents = np.arange(len(y))
    if measure.k is None or measure.ties == "docid" or not isinstance(measure, Discounted | Binary):
        return documents
    useful = measure.usefulness(y) > 0
    corners = values if nonnegative else np.concatenate([values, -values])
    candidates = documents[_may_reach(corners, ranked, indptr, measure.k) | useful]
    cells = all_weights(len(values), nonnegative)
    if not cells:
        return candidates
    for _ in range(HALVINGS[len(values)]):
        cells = [half for cell in cells for half in halves(cell)]
    candidate_values, candidate_ranked, bounds = values[:, candidates], ranked[candidates], np.searchsorted(candidates, indptr)
    needed = useful[candidates]
    for cell in cells:
        at_corners = np.stack([weighted_sum(corner, candidate_values) for corner in cell])
        needed |= _may_reach(at_corners, candidate_ranked, bounds, measure.k)
    return candidates[needed]


def _may_reach(at_corners: SystemScores, ranked: Retrieved, indptr: Boundaries, k: int) -> Retrieved:
    """Return whether each document may be among the first ``k`` somewhere between the corners, given its scores there."""
    lowest, highest = (np.where(ranked, extreme.reduce(at_corners), -np.inf) for extreme in (np.minimum, np.maximum))
    threshold = kth_largest(lowest, indptr, k)  # (1)
    threshold -= ROUNDING * np.abs(threshold, out=np.zeros_like(threshold), where=np.isfinite(threshold))
    return np.asarray(highest >= np.repeat(threshold, np.diff(indptr)))
