"""Users who read down from the top: the cascade model and the simplified dynamic Bayesian network.

The cascade (Craswell, Zoeter, Taylor & Ramsey 2008) ends with the first click, so a rank is examined if nothing above it was clicked:

    e_k = impressions at k below no click / impressions at k                                                    (1)

In the dynamic Bayesian network of Chapelle & Zhang (2009), in the simplified form of their algorithm 1, a click ends the visit only if
it satisfies. All documents down to the last click were examined, or all of the page without clicks. With the attractiveness a and the
satisfaction s of each document of a query,

    a = clicks / impressions examined,    s = last clicks / clicks,    e_1 = 1,    e_{k+1} = e_k (1 - a_k s_k)  (2)

The curve is the mean of e over the impressions of each rank. Here how far users read depends on what they find, so it is a mean over
queries of different difficulty, and not one number that holds for each.
"""

import numpy as np

from exactrank._support.arrays import Floats, Rows, group_numbers
from exactrank._support.numerics import exp, log as logarithm
from exactrank.clicks.log import Clicks, list_starts
from exactrank.errors import DataError


def cascade(log: Clicks, weights: Floats) -> Floats:
    """Return (1) of each rank of the log."""
    starts = list_starts(log, "cascade")
    before = _running_sums(log.clicked.astype(np.float64), starts) - log.clicked  # clicks above
    return _by_rank(log, before == 0, weights)


def dbn(log: Clicks, weights: Floats) -> Floats:
    """Return (2) of each rank of the log."""
    starts = list_starts(log, "dbn")
    ends = np.append(starts[1:], log.n_impressions)
    total = np.add.reduceat(log.clicked.astype(np.int64), starts)
    page = group_numbers(ends - starts)
    until = _running_sums(log.clicked.astype(np.float64), starts)
    examined = (until - log.clicked < total[page]) | (total[page] == 0)
    last = log.clicked & (until == total[page])
    cells = log.cells
    pair = cells.pair[cells.cell]
    impressions, final = (np.bincount(pair, weights * chosen, len(cells.query)) for chosen in (examined, last))
    ended = np.divide(final, impressions, out=np.zeros_like(final), where=impressions > 0)  # a s, where the clicks cancel
    log_survival = logarithm(np.maximum(1 - ended[pair], np.finfo(float).tiny))
    return _by_rank(log, exp(_running_sums(log_survival, starts) - log_survival), weights)


def check_cascade(log: Clicks) -> None:
    """Raise if many pages have several clicks, which the cascade cannot have."""
    clicks = np.add.reduceat(log.clicked.astype(np.int64), list_starts(log, "cascade"))
    share = float(np.mean(clicks > 1))
    if share > 0.05:
        raise DataError(f"{share:.0%} of the pages have several clicks, but the cascade model ends with the first; use dbn, or em")


def _running_sums(values: Floats, starts: Rows) -> Floats:
    """Return running sums that start anew at each of ``starts``."""
    sums = np.cumsum(values)
    offset = np.append(0.0, sums)[starts]
    return np.asarray(sums - np.repeat(offset, np.diff(np.append(starts, len(values)))))


def _by_rank(log: Clicks, examined: Floats, weights: Floats) -> Floats:
    sums, total = np.bincount(log.rank, weights * examined), np.bincount(log.rank, weights)
    ranks = np.unique(log.rank)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(sums[ranks] / total[ranks])
