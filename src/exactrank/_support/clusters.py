"""Clusters of observations that depend on each other, such as the queries of one user or the pages of one session."""

from collections.abc import Iterable

import numpy as np

from exactrank._support.arguments import checked_list
from exactrank._support.arrays import Floats, Rows
from exactrank.errors import DataError


def cluster_numbers(clusters: Iterable[object], queries: int) -> Rows:
    """Return the number of the cluster of each query, from 0 in the order of their first queries; ``clusters`` has the name of each.

    >>> cluster_numbers(["ann", "bob", "ann"], 3).tolist()
    [0, 1, 0]
    """
    names = clusters.tolist() if isinstance(clusters, np.ndarray) else checked_list("clusters", clusters, "the cluster of each query")
    if len(names) != queries:
        raise DataError(f"there are {len(names)} clusters for {queries} queries; give the cluster of each query")
    missing = next((place for place, name in enumerate(names) if name is None or name != name), None)
    if missing is not None:
        raise DataError(f"query {missing} (from 0) has no cluster, {names[missing]!r}; give one of its own to a query without others")
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)


def cluster_sums(values: Floats, number: Rows) -> Floats:
    """Return the sums of the last axis of ``values`` over the queries of each cluster.

    >>> cluster_sums(np.array([1.0, 2.0, 3.0]), np.array([0, 1, 0])).tolist()
    [4.0, 2.0]
    """
    count = int(number.max(initial=-1)) + 1
    sums = np.array([np.bincount(number, row, count) for row in values.reshape(-1, len(number))], np.float64)
    return sums.reshape(*values.shape[:-1], count)
