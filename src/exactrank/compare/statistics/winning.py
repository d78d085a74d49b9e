"""Winning numbers: how often a method beats another, over several data sets (Liu 2011, section 11.2; Tan, Xia, Guo & Wang 2013).

With M_i(j) the measure of method i on data set j,

    S_i = sum_j sum_k [M_i(j) > M_k(j)]                                                                               (1)

With n data sets, m methods and no ties all S_i add up to n m (m - 1) / 2; each tie takes one away. The number counts a win by a hair like
any other, so it orders methods and tests nothing.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from exactrank.errors import DataError


def winning_numbers(values: Mapping[str, Sequence[float]]) -> dict[str, int]:
    """(1), of values by method, one for each data set in the same order; NaN, a set without the method, neither wins nor is beaten.

    >>> winning_numbers({"ListNet": [0.348, 0.444], "RankSVM": [0.346, 0.444], "FRank": [0.269, float("nan")]})
    {'ListNet': 2, 'RankSVM': 1, 'FRank': 0}
    """
    lengths = {name: len(own) for name, own in values.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"methods have values for different numbers of data sets: {lengths}; put NaN where one is missing")
    table = np.array(list(values.values()), np.float64)
    return {name: int(np.count_nonzero(own > table)) for name, own in zip(values, table, strict=True)}
