"""The position-based model: a document is clicked if it is looked at, which depends on its rank alone, and if it is relevant.

    P(click on document d of query q at rank k) = theta_k gamma_qd,    theta_1 = 1                              (1)

Only documents seen at several ranks, and clicked at one, tell theta from gamma: a document of one rank fits any theta. So only those
count here, and the ranks must hang together through them. Of n impressions of a cell c were clicked.

EM (Richardson, Dominowska & Ragno 2007; Chuklin, Markov & de Rijke 2015, section 4.2) shares what was not clicked among its causes,

    looked at = c + (n - c) theta (1 - gamma) / (1 - theta gamma)        theta_k = sum looked at / sum n         (2)
    relevant  = c + (n - c) gamma (1 - theta) / (1 - theta gamma)        gamma_qd = sum relevant / sum n         (3)

and never lowers the likelihood. It is slow, so every two steps are followed by a longer one along them (Varadhan & Roland 2008), which
is taken back where the likelihood would fall.

Mostly ranks are looked at about as a power of their depth. So what the log leaves in doubt is shrunk towards such a power, by empirical
Bayes (Efron & Morris 1973): with EM's answer normal about log theta, its precision F the information of the likelihood,

    log theta_k = -eta log(k / k_1) + delta_k,    delta_k normal with variance tau^2                             (4)

eta by least squares, and the mean over all tau by their restricted likelihood. Where the log contradicts any power only large tau are
likely, and EM's answer stays.

Intervention harvesting (Agarwal, Zaitsev, Wang, Li, Najork & Joachims 2019) compares the clicks of the same documents at two ranks. The
ratio here is that of Mantel & Haenszel (1959), which holds even with one impression per document and rank:

    a_jk = sum over documents seen at both of c_j n_k / (n_j + n_k),    theta_j / theta_k = a_jk / a_kj          (5)

All pairs of ranks give one curve by least squares of log theta, each weighted by a_jk a_kj / (a_jk + a_kj).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from exactrank.arrays import Floats, Rows
from exactrank.clicks.log import Cells, sums_of
from exactrank.errors import DataError
from exactrank.numerics import eigh, exp, log, log1p, matmul, norm, solve

CYCLES, TOLERANCE, LEAST = 1000, 1e-7, 1e-12
SPREADS = np.linspace(0.0, 2.0, 101)  #: the tau that are looked at


@dataclass(frozen=True, eq=False)
class Seen:
    """The cells that tell rank from relevance; ranks and pairs are numbered from 0 among those that are there."""

    ranks: Rows  #: as they are in the log
    rank: Rows
    pair: Rows
    impressions: Floats
    clicks: Floats
    which: Rows  #: of the log's cells

    def sampled(self, impressions: Floats, clicks: Floats) -> "Seen":
        """The same with other sums of all cells of the log."""
        return replace(self, impressions=impressions[self.which], clicks=clicks[self.which])


def seen_at_several(cells: Cells) -> Seen:
    """What the log tells; raises where that is not enough."""
    live = cells.impressions > 0
    pairs = len(cells.query)
    several = np.bincount(cells.pair[live], minlength=pairs) > 1
    if not several.any():
        raise DataError(
            "every document was seen at one rank only, so the log cannot tell position from relevance;"
            " log rankings that change (a second ranker, shuffled neighbours), or give the propensities"
        )
    ranks = np.unique(cells.rank[live])
    unclicked = ranks[np.bincount(cells.rank, cells.clicks)[ranks] == 0]
    if len(unclicked):
        raise DataError(
            f"rank {unclicked[0]} has no click, so its propensity would be 0;"
            f" leave out what is that deep (clicks.take(clicks.rank < {unclicked[0]})), or give the propensities"
        )
    clicked = np.bincount(cells.pair, cells.clicks, pairs) > 0
    which = np.flatnonzero(live & (several & clicked)[cells.pair])
    pair = np.unique(cells.pair[which], return_inverse=True)[1]
    seen = Seen(ranks, np.searchsorted(ranks, cells.rank[which]), pair, cells.impressions[which], cells.clicks[which], which)
    _check_connected(seen)
    return seen


def _check_connected(seen: Seen) -> None:
    """Raise unless each rank is compared with each other, directly or through others."""
    count = len(seen.ranks)
    size = count + (int(seen.pair.max()) + 1 if len(seen.pair) else 0)
    links = coo_array((np.ones(len(seen.rank)), (seen.rank, count + seen.pair)), (size, size))
    part = connected_components(links, directed=False)[1][:count]
    if np.any(part != part[0]):
        apart = seen.ranks[part != part[0]]
        raise DataError(
            f"no clicked document was seen both at rank {seen.ranks[0]} (or one compared with it) and at rank {apart[0]},"
            " so their propensities cannot be compared; log rankings that change more, leave deep ranks out, or give the propensities"
        )


def em(seen: Seen, start: Floats | None = None) -> tuple[Floats, list[float]]:
    """(2) and (3) until they stand still: theta, then gamma, and the log-likelihood after each cycle; from the theta of ``start``."""
    theta = 1.0 / np.sqrt(np.arange(1.0, len(seen.ranks) + 1)) if start is None else start
    total = np.maximum(np.bincount(seen.pair, seen.impressions), LEAST)
    both = np.append(theta, np.minimum(np.bincount(seen.pair, seen.clicks) / total, 0.5))
    history: list[float] = []
    for _ in range(CYCLES):
        once = _step(seen, both)
        twice = _step(seen, once)
        first, change = once - both, (twice - once) - (once - both)
        length = norm(first) / max(norm(change), LEAST)
        leapt = _step(seen, np.clip(both + 2 * length * first + length * length * change, LEAST, 1.0))
        kept, value = max(((each, likelihood(seen, each)) for each in (twice, leapt)), key=lambda pair: pair[1])
        history.append(value)
        moved, both = np.abs(kept - both)[: len(theta)].max(), kept
        if moved < TOLERANCE:
            break
    return both, history


def shrunk(seen: Seen, both: Floats) -> Floats:
    """(4): the propensity of each rank relative to the first one, from theta and gamma as EM found them."""
    information, axes = eigh(_information(seen, both)[1:, 1:])
    precision = np.maximum(information, 0.0)  # along these axes the errors of EM's answer do not depend on each other
    depth, answer = (matmul(axes, log(ratio)) for ratio in (seen.ranks[1:] / seen.ranks[0], both[1 : len(seen.ranks)] / both[0]))
    variance = SPREADS[:, np.newaxis] ** 2  # from here on a row for each tau
    certainty = precision / (1 + variance * precision)  # the inverse of the variance of the answer about the power
    weight = np.maximum(np.sum(certainty * depth**2, axis=1), LEAST)
    power = (np.sum(certainty * depth * answer, axis=1) / weight)[:, np.newaxis] * depth
    rest = answer - power
    unlikely = np.sum(log1p(variance * precision) + certainty * rest**2, axis=1) + log(weight)  # -2 log of the restricted likelihood
    curve = np.average(power + variance * certainty * rest, axis=0, weights=exp((unlikely.min() - unlikely) / 2))
    return np.append(1.0, exp(matmul(curve, axes)))


def _information(seen: Seen, both: Floats) -> Floats:
    """Of the likelihood on log theta, less what goes into log gamma."""
    count = len(seen.ranks)
    chance = both[:count][seen.rank] * both[count:][seen.pair]
    each = seen.impressions * chance / np.maximum(1 - chance, 1 / (seen.impressions + 1))  # n impressions cannot make surer than that
    by_pair = np.maximum(np.bincount(seen.pair, each, len(both) - count), LEAST)
    matrix = np.diag(sums_of(seen.rank, each - each * each / by_pair[seen.pair], count))
    for i, j in _compared(seen):
        shared = np.bincount(seen.rank[i] * count + seen.rank[j], each[i] * each[j] / by_pair[seen.pair[i]], count * count)
        matrix -= shared.reshape(count, count) + shared.reshape(count, count).T
    return matrix


def _compared(seen: Seen) -> Iterator[tuple[Rows, Rows]]:
    """Cells of the same pair at two ranks, the second of which is deeper: first all neighbours, then those one further apart, and so on."""
    for apart in range(1, len(seen.ranks)):  # cells are sorted by pair and rank
        i = np.flatnonzero(seen.pair[apart:] == seen.pair[:-apart])
        if len(i) == 0:
            return
        yield i, i + apart


def _step(seen: Seen, both: Floats) -> Floats:
    """One step of EM; ``both`` holds theta, then gamma."""
    count = len(seen.ranks)
    theta, gamma = both[:count][seen.rank], both[count:][seen.pair]
    missed = (seen.impressions - seen.clicks) / np.maximum(1 - theta * gamma, LEAST)
    looked, relevant = seen.clicks + missed * theta * (1 - gamma), seen.clicks + missed * gamma * (1 - theta)
    sides = ((seen.rank, looked, count), (seen.pair, relevant, len(both) - count))
    sums = [np.bincount(at, part, size) / np.maximum(np.bincount(at, seen.impressions, size), LEAST) for at, part, size in sides]
    return np.clip(np.concatenate(sums), LEAST, 1.0)


def likelihood(seen: Seen, both: Floats) -> float:
    """The logarithm of the likelihood of (1)."""
    chance = both[: len(seen.ranks)][seen.rank] * both[len(seen.ranks) :][seen.pair]
    missed = (seen.impressions - seen.clicks) * log(np.maximum(1 - chance, LEAST))
    return float(np.sum(seen.clicks * log(np.maximum(chance, LEAST)) + missed))


def harvest(seen: Seen) -> Floats:
    """(5) and the least squares of all pairs of ranks: the propensity of each rank, NaN where no clicks compare it with the first."""
    count = len(seen.ranks)
    a = np.zeros((count, count))
    for i, j in _compared(seen):
        total = np.maximum(seen.impressions[i] + seen.impressions[j], LEAST)
        for up, down in ((i, j), (j, i)):
            terms = seen.clicks[up] * seen.impressions[down] / total
            a += np.bincount(seen.rank[up] * count + seen.rank[down], terms, count * count).reshape(count, count)
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.nan_to_num(a * a.T / (a + a.T))
        ratio = np.where(weight > 0, log(a) - log(a.T), 0.0)
    laplacian = np.diag(weight.sum(axis=1)) - weight
    theta = np.append(1.0, exp(solve(laplacian[1:, 1:], (weight * ratio).sum(axis=1)[1:])))
    part = connected_components(weight > 0, directed=False)[1]
    return np.where(part == part[0], theta, np.nan)
