"""Means and spreads within queries: a ranking depends only on how a number differs between the documents of a query."""

from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import Boundaries, Matrix, PerDocument, PerQuery
from exactrank.data.blocks import wide_blocks
from exactrank.data.dataset import Dataset, EachBlock, Part, Score
from exactrank.data.ranking_data import RankingData


def center(values: npt.NDArray[np.float32 | np.float64], indptr: Boundaries, weight: PerDocument | None = None) -> npt.NDArray[np.float64]:
    """Return ``values``, one or one row per document, less the mean of their query, by the ``weight`` of documents if there is one."""
    doubles = values.astype(np.float64)
    share = None if weight is None else weight.reshape((-1,) + (1,) * (values.ndim - 1))
    sums = np.add.reduceat(doubles if share is None else doubles * share, indptr[:-1], axis=0)
    sizes = np.diff(indptr)
    counts = sizes.reshape((-1,) + (1,) * (values.ndim - 1)) if share is None else np.add.reduceat(share, indptr[:-1], axis=0)
    means = np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)
    doubles -= np.repeat(means, sizes, axis=0)
    return np.asarray(doubles)


def deviation(values: PerDocument | Matrix, indptr: Boundaries) -> float:
    """Return the standard deviation of ``values`` from the means of their queries."""
    return float(np.sqrt(np.sum(squares_by_block(values, indptr)) / len(values)))


def deviation_of(data: Dataset, score: Score) -> float:
    """Return the standard deviation of the scores of ``data`` from the means of their queries."""
    return float(np.sqrt(np.sum(data.ask(EachBlock(partial(_squares_of, score)))) / data.n_documents))


def _squares_of(score: Score, part: Part) -> list[float]:
    return squares_by_block(score(part.data), part.data.indptr)


def squares_by_block(values: PerDocument | Matrix, indptr: Boundaries) -> list[float]:
    """Return the sum over each wide block of the squared deviations of ``values`` from the means of their queries."""
    blocks = (indptr[first : last + 1] for first, last in pairwise(wide_blocks(indptr).tolist()))
    return [float(np.sum(center(values[ends[0] : ends[-1]], ends - ends[0]) ** 2)) for ends in blocks]


def spread_by_block(values: PerDocument, indptr: Boundaries, mean: float | None) -> list[float]:
    """Return the sum of ``values`` over each wide block; or, if there is a ``mean``, of the squared deviations from it."""
    blocks = (values[a:b].astype(np.float64) for a, b in pairwise(indptr[wide_blocks(indptr)].tolist()))
    return [float(block.sum() if mean is None else ((block - mean) ** 2).sum()) for block in blocks]


def pull_backs(data: RankingData, pull: PerDocument, threads: int) -> list[npt.NDArray[np.float64]]:
    """Return the sum of the documents' features over each wide block, each document times its ``pull``."""
    ends = data.indptr[wide_blocks(data.indptr)].tolist()
    return [_core.pulled_back(data.X[a:b], np.ascontiguousarray(pull[a:b]), threads) for a, b in pairwise(ends)]


def pair_counts(part: Part) -> PerQuery:
    """Return the number of pairs of documents with different grades of each query, plus the weights of its pairs beside the grades.

    >>> pair_counts(Part(RankingData.from_arrays(None, [0, 1, 1, 2, 3], group=[3, 2]))).tolist()
    [2.0, 1.0]
    """
    data, query = part.data, part.data.query_numbers
    grade = data.y[np.lexsort((data.y, query))]
    ends = 1 + np.flatnonzero(np.append((grade[1:] != grade[:-1]) | (query[1:] != query[:-1]), True))  # of runs of a grade
    alike = np.bincount(query[ends - 1], np.diff(ends, prepend=0).astype(np.float64) ** 2, data.n_queries)
    pairs = (data.sizes.astype(np.float64) ** 2 - alike) / 2
    if data.preferences is not None:
        query = np.searchsorted(data.indptr, data.preferences.better, side="right") - 1
        pairs += np.bincount(query, data.preferences.weight, data.n_queries)
    return np.asarray(pairs)
