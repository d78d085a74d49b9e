"""Means and spreads within queries: a ranking depends only on how a number differs between the documents of a query."""

from typing import Any

import numpy as np
import numpy.typing as npt

from exactrank.arrays import Boundaries, Matrix, PerDocument


def centred(values: npt.NDArray[Any], indptr: Boundaries, weight: PerDocument | None = None) -> npt.NDArray[np.float64]:
    """``values``, one or a row of them per document, less the mean of their query, by the documents' ``weight`` where there is one."""
    doubles = values.astype(np.float64)
    share = None if weight is None else weight.reshape((-1,) + (1,) * (values.ndim - 1))
    sums = np.add.reduceat(doubles if share is None else doubles * share, indptr[:-1], axis=0)
    sizes = np.diff(indptr)
    counts = sizes.reshape((-1,) + (1,) * (values.ndim - 1)) if share is None else np.add.reduceat(share, indptr[:-1], axis=0)
    means = np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)
    doubles -= np.repeat(means, sizes, axis=0)
    return np.asarray(doubles)


def deviation(values: PerDocument | Matrix, indptr: Boundaries) -> float:
    """The standard deviation of ``values`` about the means of their queries."""
    return float(np.sqrt(np.mean(centred(values, indptr) ** 2)))
