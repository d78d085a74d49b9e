"""Sums and spreads within queries: what a ranking sees of a number is only how it differs between documents of a query."""

from typing import Any

import numpy as np
import numpy.typing as npt

from exactrank.arrays import Boundaries, Matrix, PerDocument, PerQuery


def spread_to_documents(values: npt.NDArray[Any], indptr: Boundaries) -> npt.NDArray[Any]:
    """One value a query, repeated for each of its documents."""
    return np.repeat(values, np.diff(indptr), axis=0)


def centred(values: npt.NDArray[Any], indptr: Boundaries) -> npt.NDArray[np.float64]:
    """``values``, one or a row of them a document, less the mean of their query."""
    sizes = np.diff(indptr).reshape((-1,) + (1,) * (values.ndim - 1))
    means = np.add.reduceat(values.astype(np.float64), indptr[:-1], axis=0) / sizes
    return np.asarray(values - spread_to_documents(means, indptr))


def deviation(values: PerDocument | Matrix, indptr: Boundaries) -> float:
    """The standard deviation of ``values`` about the means of their queries."""
    return float(np.sqrt(np.mean(centred(values, indptr) ** 2)))


def query_sums(values: PerDocument, indptr: Boundaries) -> PerQuery:
    """The sum over each query's documents."""
    return np.asarray(np.add.reduceat(values, indptr[:-1]))
