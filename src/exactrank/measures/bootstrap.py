"""Intervals of means over queries, by drawing queries again (Efron 1979)."""

import warnings

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import PerQuery, Rows
from exactrank._support.clusters import cluster_sums
from exactrank._support.numerics import matmul

RESAMPLES = 2000
MOST_RESAMPLES = 100_000  #: allowed by settings; intervals no longer change by then
DRAWS_AT_ONCE = 1 << 18  #: drawn queries in memory


def bootstrap_intervals(
    values: npt.NDArray[np.float64], weight: PerQuery, *, clusters: Rows | None = None, level: float = 0.95, seed: int = 0
) -> npt.NDArray[np.float64]:
    """Return bootstrap intervals of weighted means over queries (Efron 1979): lower and upper ends, one row per measure.

    ``values`` are measures x queries; NaN is left out. Queries are drawn with replacement, as many as there are; the interval holds the
    middle ``level`` of the means of many such samples. All measures use the same samples, so intervals can be compared. With the number of
    the cluster of each query, whole clusters are drawn.
    """
    counted = np.where(np.isnan(values), 0.0, 1.0) * weight
    sums = np.nan_to_num(values) * counted
    if clusters is not None:
        counted, sums = cluster_sums(counted, clusters), cluster_sums(sums, clusters)
    queries = sums.shape[1]
    rng = np.random.default_rng(seed)
    at_once = max(1, min(RESAMPLES, DRAWS_AT_ONCE // queries))
    means = []
    for first in range(0, RESAMPLES, at_once):
        rows = min(at_once, RESAMPLES - first)
        places = rng.integers(0, queries, size=(rows, queries)) + queries * np.arange(rows)[:, None]
        times = np.bincount(places.ravel(), minlength=rows * queries).reshape(rows, queries).astype(np.float64)  # draws of each query
        with np.errstate(invalid="ignore", divide="ignore"):
            means.append(np.stack([matmul(times, total) / matmul(times, share) for total, share in zip(sums, counted, strict=True)]))
    tail = (1 - level) / 2
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN", RuntimeWarning)  # if all queries are skipped, the ends are NaN, like the mean
        return np.asarray(np.nanquantile(np.concatenate(means, axis=1), [tail, 1 - tail], axis=1).T)
