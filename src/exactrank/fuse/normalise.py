"""Scores of several systems made comparable, query by query.

With s the scores that one system gave the documents it retrieved for a query, n of them, and r their ranks (from 1, equal
scores sharing their mean rank):

    none              s                                                                                         (1)
    min-max           (s - min s) / (max s - min s),  1 where all are equal                                     (2)
    z-score           (s - mean s) / std s,           0 where all are equal                                     (3)
    rank              1 - (r - 1) / n                                                                           (4)
    reciprocal-rank   1 / (60 + r)                                          (Cormack, Clarke & Buettcher 2009)  (5)

A document that a system did not retrieve has no s. What stands in its place is said by ``absent``:

    worst   the lowest value that the system gave in that query: at best the document would have come last
    zero    0: nothing is added; with min-max the same as worst (but where all are equal), with z-score an average document
    drop    the document is not ranked at all: only documents that every system retrieved are

A document that no system retrieved is never ranked. A system that retrieved nothing for a query gives 0 to all its documents.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from exactrank.arrays import Boundaries, Matrix, PerDocument, Rows
from exactrank.data.precision import Offset
from exactrank.errors import DataError
from exactrank.fuse.tables import mean_ranks

SystemScores = npt.NDArray[np.float64]  #: systems x documents
Retrieved = npt.NDArray[np.bool_]  #: one a document
RRF_K = 60
ABSENT = ("worst", "zero", "drop")


@dataclass(frozen=True, eq=False)
class Lists:
    """What one system retrieved: queries with nothing are left out."""

    rows: Rows
    scores: PerDocument
    starts: Rows  #: where each query begins among the rows
    sizes: Rows
    queries: Rows  #: their numbers

    @classmethod
    def of(cls, scores: npt.NDArray[np.float32], present: Retrieved, indptr: Boundaries) -> "Lists":
        """The lists in a column of scores, where a document was retrieved."""
        sizes = np.add.reduceat(present, indptr[:-1], dtype=np.int64)
        queries = np.flatnonzero(sizes)
        rows = np.arange(len(scores)) if present.all() else np.flatnonzero(present)
        return cls(rows, scores[rows].astype(np.float64), (np.cumsum(sizes) - sizes)[queries], sizes[queries], queries)

    def each(self, per_query: npt.NDArray[Any]) -> PerDocument:
        """A query's number, given to each of its documents."""
        return np.repeat(np.asarray(per_query, np.float64), self.sizes)

    def ranks(self) -> PerDocument:
        """Ranks from 1; documents of equal score share the mean of theirs."""
        return mean_ranks(self.scores.astype(np.float32), self.starts, self.sizes)  # what was read, and half as much to sort


def _min_max(lists: Lists) -> PerDocument:  # (2)
    low, high = (function.reduceat(lists.scores, lists.starts) for function in (np.minimum, np.maximum))
    spread = high - low
    return (lists.scores - lists.each(np.where(spread > 0, low, low - 1))) / lists.each(np.where(spread > 0, spread, 1.0))


def _z_score(lists: Lists) -> PerDocument:  # (3)
    centred = lists.scores - lists.each(np.add.reduceat(lists.scores, lists.starts) / lists.sizes)
    spread = np.sqrt(np.add.reduceat(centred**2, lists.starts) / lists.sizes)
    varied = np.maximum.reduceat(lists.scores, lists.starts) > np.minimum.reduceat(lists.scores, lists.starts)
    return np.where(lists.each(varied) > 0, centred, 0.0) / lists.each(np.where(varied, spread, 1.0))


def _rank(lists: Lists) -> PerDocument:  # (4)
    return 1 - (lists.ranks() - 1) / lists.each(lists.sizes)


def _reciprocal_rank(lists: Lists) -> PerDocument:  # (5)
    return 1 / (RRF_K + lists.ranks())


NORMALISATIONS: Mapping[str, Callable[[Lists], PerDocument]] = {
    "none": lambda lists: lists.scores,
    "min-max": _min_max,
    "z-score": _z_score,
    "rank": _rank,
    "reciprocal-rank": _reciprocal_rank,
}


def check_policies(how: str, absent: str) -> None:
    """Raise where a normalisation or a policy for absent documents does not exist."""
    for name, given, known in (("normalise", how, list(NORMALISATIONS)), ("absent", absent, ABSENT)):
        if given not in known:
            raise DataError(f"{name}={given!r} is not one of {', '.join(known)}")


def normalised(X: Matrix, indptr: Boundaries, how: str, absent: str, offset: Offset | None = None) -> tuple[SystemScores, Retrieved]:
    """The systems' comparable scores, and which documents are ranked; a column of ``X`` is a system, NaN not retrieved.

    Scores are ``X`` plus ``offset``, of which (2) to (5) do not depend.

    >>> X = np.array([[4, 1], [2, np.nan], [3, 5], [np.nan, np.nan]], np.float32)
    >>> values, ranked = normalised(X, np.array([0, 4]), "min-max", "worst")
    >>> values.tolist(), ranked.tolist()
    ([[1.0, 0.0, 0.5, 0.0], [0.0, 0.0, 1.0, 0.0]], [True, True, True, False])
    """
    columns = np.ascontiguousarray(X.T)
    present = ~np.isnan(columns)
    values = np.empty(columns.shape)
    added = np.zeros(len(columns)) if offset is None or how != "none" else offset
    for scores, there, filled, constant in zip(columns, present, values, added, strict=True):
        lists = Lists.of(scores, there, indptr)
        found = NORMALISATIONS[how](lists)
        found = found + constant if constant else found
        filled[:] = 0.0
        if absent == "worst" and len(lists.rows) < len(X):
            lowest = np.zeros(len(indptr) - 1)
            lowest[lists.queries] = np.minimum.reduceat(found, lists.starts)
            filled[:] = np.repeat(lowest, np.diff(indptr))
        filled[lists.rows] = found
    return values, np.asarray(present.all(axis=0) if absent == "drop" else present.any(axis=0))
