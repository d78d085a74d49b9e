"""What fusing refuses, with the remedy: systems that cannot be told apart or that have nothing to do with each other."""

import numpy as np
import numpy.typing as npt

from exactrank.arrays import Boundaries, Matrix
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError
from exactrank.fuse.contenders import blocks
from exactrank.fuse.problem import Problem
from exactrank.measures.binary import Binary
from exactrank.measures.families import Discounted


def check_systems(data: RankingData, folds: int) -> None:
    """Raise where the systems cannot be fused, or the queries not be dealt into ``folds``."""
    names = data.feature_names
    if folds > data.n_queries:
        raise DataError(f"{data.n_queries} queries cannot be dealt into {folds} folds; give folds={data.n_queries} or less, or 0 for none")
    if len(names) < 2:
        raise DataError(f"fusing needs at least two systems, got {', '.join(names) or 'none'}; give another run or column")
    present, shared, varied, differs = _known(data)
    if not present.all():
        raise DataError(f"system {names[int(np.argmin(present))]!r} has no score for any document; leave it out")
    for j, name in enumerate(names):
        if not shared[j]:
            raise DataError(
                f"system {name!r} retrieved no document that another system retrieved{_example(data, j)}; "
                "check that all name documents in the same way"
            )
        if not varied[j]:
            raise DataError(f"system {name!r} gives all documents of a query the same score, which ranks nothing; leave it out")
    if not differs.any():
        raise DataError(f"systems {', '.join(names)} have the same scores throughout; fuse systems that differ")


def _known(data: RankingData) -> npt.NDArray[np.bool_]:
    """The facts of all queries; the first that show them all are enough."""
    known = np.zeros((4, data.n_features), bool)
    for rows, indptr in blocks(data.indptr):
        known |= _facts(data.X[rows], indptr)
        if known[:3].all() and known[3].any():
            break
    return known


def _facts(X: Matrix, indptr: Boundaries) -> npt.NDArray[np.bool_]:
    """Whether each system retrieved something, something that another did too, gave different scores, and differs from the first."""
    columns = np.ascontiguousarray(X.T)
    present = ~np.isnan(columns)
    shared = present & (np.add.reduce(present, dtype=np.int16) > 1)
    low = np.minimum.reduceat(np.where(present, columns, np.float32(np.inf)), indptr[:-1], axis=1)
    high = np.maximum.reduceat(np.where(present, columns, np.float32(-np.inf)), indptr[:-1], axis=1)
    differs = (present != present[0]) | (present & (columns != columns[0]))
    return np.array([present.any(axis=1), shared.any(axis=1), (low < high).any(axis=1), differs.any(axis=1)])


def check_relevance(problem: Problem, data: RankingData) -> None:
    """Raise where every ranking of what was retrieved has the same value: there is nothing to tune."""
    if data.y.min() == data.y.max():
        raise DataError(f"all documents have grade {data.y[0]:g}, so every ranking is as good; judge some as better than others")
    if isinstance(problem.measure, Discounted | Binary) and not np.any(problem.measure.usefulness(problem.data.y[problem.ranked]) > 0):
        raise DataError(f"no document that was retrieved is relevant by {problem.measure}; check the judgments and the document ids")


def _example(data: RankingData, j: int) -> str:
    if data.docid is None:
        return ""
    ours, theirs = ~np.isnan(data.X[:, j]), ~np.isnan(np.delete(data.X, j, axis=1)).all(axis=1)
    names = [data.docid.tolist()[int(np.argmax(rows))] for rows in (ours, theirs)]
    return f" (it has {names[0]!r}, another {names[1]!r})"
