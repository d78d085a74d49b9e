"""Bootstrap intervals for weighted means over queries (Efron 1979).

Queries are drawn with replacement as many times as there are queries, and the mean taken; the interval holds the middle
``level`` of many such means. The same draws serve all measures, so their intervals can be compared.
"""

import warnings

import numpy as np
import numpy.typing as npt

from exactrank.arrays import PerQuery

RESAMPLES = 2000
#: How many drawn queries are held at a time.
DRAWS_AT_ONCE = 1 << 20


def bootstrap_intervals(
    values: npt.NDArray[np.float64], weight: PerQuery, *, level: float = 0.95, seed: int = 0
) -> npt.NDArray[np.float64]:
    """Lower and upper ends, one row a measure, for ``values`` of shape measures x queries; NaN values are left out."""
    queries = values.shape[1]
    counted = np.where(np.isnan(values), 0.0, 1.0) * weight
    sums = np.nan_to_num(values) * counted
    rng = np.random.default_rng(seed)
    means = []
    for resamples in _batches(queries):
        times = _times_drawn(rng.integers(0, queries, size=(resamples, queries)))
        with np.errstate(invalid="ignore", divide="ignore"):
            means.append(np.einsum("mq,rq->mr", sums, times) / np.einsum("mq,rq->mr", counted, times))
    tail = (1 - level) / 2
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN", RuntimeWarning)  # every query skipped: the ends are NaN, as the mean is
        return np.asarray(np.nanquantile(np.concatenate(means, axis=1), [tail, 1 - tail], axis=1).T)


def _times_drawn(drawn: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """How often each query is in each row of ``drawn``.

    >>> _times_drawn(np.array([[0, 2, 2], [1, 1, 1]])).tolist()
    [[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]
    """
    rows, queries = drawn.shape
    places = drawn + queries * np.arange(rows)[:, None]
    return np.bincount(places.ravel(), minlength=rows * queries).reshape(rows, queries).astype(np.float64)


def _batches(queries: int) -> list[int]:
    size = max(1, min(RESAMPLES, DRAWS_AT_ONCE // queries))
    return [size] * (RESAMPLES // size) + ([RESAMPLES % size] if RESAMPLES % size else [])
