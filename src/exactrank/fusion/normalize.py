"""Scores of several systems made comparable, query by query.

With s the scores that one system gave to the n documents it retrieved for a query, and r their ranks (from 1, equal scores sharing
their mean rank):

    none                   s                                                                                    (1)
    min-max                (s - min s) / (max s - min s),  1 where all are equal                                (2)
    z-score                (s - mean s) / std s,           0 where all are equal                                (3)
    l2                     s / sqrt(sum s^2),              0 where all are 0                                    (4)
    rank                   1 - (r - 1) / n                                                                      (5)
    reciprocal-rank(k=60)  1 / (k + r)                                      (Cormack, Clarke & Buettcher 2009)  (6)

and the normalizations of search engines, which the files in `engines` define. k is any whole number from 1 to 10,000.

A document that a system did not retrieve has no s. ``absent`` sets its value instead:

    worst        the lowest value that the system gave in that query: at best the document would have come last
    zero         0: nothing is added; with min-max the same as worst (unless all are equal), with z-score an average document
    zero-score   its value if the system had retrieved it with score 0; so it counts for min, max, mean and ranks too
    drop         none: only documents that every system retrieved are ranked

A document that no system retrieved is never ranked. A system that retrieved nothing for a query gives 0 to all its documents.
"""

import re
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import Boundaries, Matrix, PerDocument
from exactrank._support.text import did_you_mean
from exactrank.data.precision import Offset
from exactrank.errors import SettingError
from exactrank.fusion.engines import ENGINES
from exactrank.fusion.engines.base import Normalizer, raw
from exactrank.fusion.lists import ScoreLists, ordinal_ranks

SystemScores = npt.NDArray[np.float64]  #: systems x documents
Retrieved = npt.NDArray[np.bool_]  #: one per document
RRF_K, MOST_K = 60, 10_000
ABSENT = ("worst", "zero", "zero-score", "drop")
_NOTATION = re.compile(r"([a-z0-9-]+?)(?:\(k=([0-9]{1,5})\))?")


def _min_max(lists: ScoreLists, k: int) -> PerDocument:
    """(2)."""
    low, high = lists.low, lists.high
    varied = high > low
    return (lists.scores - lists.repeat(np.where(varied, low, low - 1))) / lists.repeat(np.where(varied, high - low, 1.0))


def _z_score(lists: ScoreLists, k: int) -> PerDocument:
    """(3)."""
    varied = lists.high > lists.low
    centered = lists.scores - lists.repeat(lists.mean(lists.scores))
    spread = np.sqrt(lists.mean(centered**2))
    return np.where(lists.repeat(varied), centered, 0.0) / lists.repeat(np.where(varied, spread, 1.0))


def _l2(lists: ScoreLists, k: int) -> PerDocument:
    """(4)."""
    norm = np.sqrt(np.add.reduceat(lists.scores**2, lists.starts))
    return lists.scores / lists.repeat(np.where(norm == 0, 1.0, norm))


def _rank(lists: ScoreLists, k: int) -> PerDocument:
    """(5)."""
    return 1 - (lists.ranks() - 1) / lists.repeat(lists.sizes.astype(np.float64))


def _reciprocal_rank(lists: ScoreLists, k: int) -> PerDocument:
    """(6)."""
    return 1 / (k + lists.ranks())


#: Normalizations that do not change if a constant is added to all scores.
_UNMOVED: Mapping[str, Normalizer] = {"min-max": _min_max, "z-score": _z_score, "rank": _rank, "reciprocal-rank": _reciprocal_rank}
_GENERAL: Mapping[str, Normalizer] = {"none": raw, "l2": _l2, **_UNMOVED}
#: All normalizations; reciprocal ranks take a constant.
NORMALIZATIONS: Mapping[str, Normalizer] = {
    **_GENERAL,
    **{name: normalizer for engine in ENGINES.values() for name, normalizer in engine.normalizations.items()},
}


def takes_constant(name: str) -> bool:
    """Return whether the normalization is a reciprocal rank, which has a constant."""
    return name.endswith(("reciprocal-rank", "-rrf"))


def parse_normalization(text: str) -> tuple[str, int]:
    """Return the name of a normalization and the constant of its reciprocal rank.

    >>> parse_normalization("min-max"), parse_normalization("reciprocal-rank(k=10)")
    (('min-max', 60), ('reciprocal-rank', 10))
    """
    match = _NOTATION.fullmatch(text)
    name, k = (match[1], match[2]) if match else (text, None)
    if name not in NORMALIZATIONS:
        raise SettingError(f"there is no normalization {text!r}{did_you_mean(text, NORMALIZATIONS)}; there are {', '.join(NORMALIZATIONS)}")
    if k is not None and not takes_constant(name):
        raise SettingError(f"normalize={text!r}: {name} has no constant; leave out (k={k})")
    if k is not None and not 1 <= int(k) <= MOST_K:
        raise SettingError(f"normalize={text!r}: k must be from 1 to {MOST_K:,}")
    return name, RRF_K if k is None else int(k)


def normalize_systems(
    X: Matrix, indptr: Boundaries, normalization: str, absent: str, offset: Offset | None = None
) -> tuple[SystemScores, Retrieved]:
    """Return the systems' comparable scores, and a mask of the ranked documents; columns of ``X`` are systems, NaN is not retrieved.

    Scores are ``X`` plus ``offset``.

    >>> X = np.array([[4, 1], [2, np.nan], [3, 5], [np.nan, np.nan]], np.float32)
    >>> values, ranked = normalize_systems(X, np.array([0, 4]), "min-max", "worst")
    >>> values.tolist(), ranked.tolist()
    ([[1.0, 0.0, 0.5, 0.0], [0.0, 0.0, 1.0, 0.0]], [True, True, True, False])
    """
    name, k = parse_normalization(normalization)
    columns = np.ascontiguousarray(X.T)
    present = ~np.isnan(columns)
    ranked = np.asarray(present.all(axis=0) if absent == "drop" else present.any(axis=0))
    values = np.zeros(columns.shape)
    added = np.zeros(len(columns)) if offset is None or (name in _UNMOVED and absent != "zero-score") else offset
    for scores, retrieved, output, constant in zip(columns, present, values, added, strict=True):
        in_list = ranked if absent == "zero-score" else retrieved
        sizes = np.add.reduceat(in_list, indptr[:-1], dtype=np.int64)
        queries = np.flatnonzero(sizes)  # without those that have no documents
        starts = (np.cumsum(sizes) - sizes)[queries]
        rows = np.arange(len(scores)) if in_list.all() else np.flatnonzero(in_list)
        list_scores = scores[rows].astype(np.float64)
        list_scores = list_scores + constant if constant else list_scores
        if absent == "zero-score":
            list_scores[~retrieved[rows]] = 0.0
        comparable = NORMALIZATIONS[name](ScoreLists(list_scores, starts, sizes[queries]), k)
        if absent == "worst" and len(rows) < len(X):
            lowest = np.zeros(len(indptr) - 1)
            lowest[queries] = np.minimum.reduceat(comparable, starts)
            output[:] = np.repeat(lowest, np.diff(indptr))
        output[rows] = comparable
    return values, ranked


def cut_lists(X: Matrix, indptr: Boundaries, depth: int) -> Matrix:
    """Return ``X`` with the first ``depth`` documents of each system's list; of equal scores the earlier row comes first.

    >>> cut_lists(np.array([[4, 1], [2, 2], [4, np.nan]], np.float32), np.array([0, 3]), 1).tolist()
    [[4.0, nan], [nan, 2.0], [nan, nan]]
    """
    shorter = X.copy()
    for column in shorter.T:
        retrieved = ~np.isnan(column)
        sizes = np.add.reduceat(retrieved, indptr[:-1], dtype=np.int64)
        rows = np.flatnonzero(retrieved)
        column[rows[ordinal_ranks(column[rows], np.cumsum(sizes) - sizes, sizes) > min(depth, len(X))]] = np.nan
    return shorter
