"""The position-based model: a document is clicked if it is looked at, which depends on its rank alone, and if it is relevant.

    P(click on document d of query q at rank k) = theta_k gamma_qd,    theta_1 = 1                              (1)

Only documents seen at several ranks, and clicked at one, distinguish theta from gamma: a document of one rank fits any theta. So only
these count here, and they must connect all ranks. Of n impressions of a cell c were clicked.

EM (Richardson, Dominowska & Ragno 2007; Chuklin, Markov & de Rijke 2015, section 4.2) divides impressions without a click by cause,

    looked at = c + (n - c) theta (1 - gamma) / (1 - theta gamma)        theta_k = sum looked at / sum n         (2)
    relevant  = c + (n - c) gamma (1 - theta) / (1 - theta gamma)        gamma_qd = sum relevant / sum n         (3)

and never lowers the likelihood. It is slow, so every two steps are followed by a longer one along them (Varadhan & Roland 2008), which
is taken back if the likelihood would fall.

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

from exactrank._support.arrays import Floats, Rows
from exactrank._support.numerics import eigh, exp, log, log1p, matmul, norm, solve
from exactrank.clicks.log import Cells, sums_of
from exactrank.errors import DataError

CYCLES, TOLERANCE, LEAST = 1000, 1e-7, 1e-12
SPREADS = np.linspace(0.0, 2.0, 101)  #: the tau that are averaged over


@dataclass(frozen=True, eq=False)
class ComparableCells:
    """Cells that distinguish rank from relevance; ranks and pairs are numbered consecutively from 0."""

    ranks: Rows  #: ranks in the log
    rank: Rows
    pair: Rows
    impressions: Floats
    clicks: Floats
    which: Rows  #: the numbers of these cells in the log

    def with_sums(self, impressions: Floats, clicks: Floats) -> "ComparableCells":
        """Return these cells with other sums, given for all cells of the log."""
        return replace(self, impressions=impressions[self.which], clicks=clicks[self.which])


def comparable_cells(cells: Cells) -> ComparableCells:
    """Return the cells of documents seen at several ranks; raise if they do not determine the propensities."""
    live = cells.impressions > 0
    pairs = len(cells.query)
    several = np.bincount(cells.pair[live], minlength=pairs) > 1
    if not several.any():
        raise DataError(
            "every document was seen at one rank only, so the log cannot tell position from relevance;"
            " log rankings that change (a second ranker, shuffled neighbors), or give the propensities"
        )
    ranks = np.unique(cells.rank[live])
    unclicked = ranks[np.bincount(cells.rank, cells.clicks)[ranks] == 0]
    if len(unclicked):
        raise DataError(
            f"rank {unclicked[0]} has no click, so its propensity would be 0;"
            f" leave out these and deeper ranks (clicks.take(clicks.rank < {unclicked[0]})), or give the propensities"
        )
    clicked = np.bincount(cells.pair, cells.clicks, pairs) > 0
    which = np.flatnonzero(live & (several & clicked)[cells.pair])
    pair = np.unique(cells.pair[which], return_inverse=True)[1]
    result = ComparableCells(ranks, np.searchsorted(ranks, cells.rank[which]), pair, cells.impressions[which], cells.clicks[which], which)
    _require_links(result)
    return result


def _require_links(cells: ComparableCells) -> None:
    """Raise unless all ranks are compared with each other, directly or through other ranks."""
    count = len(cells.ranks)
    size = count + (int(cells.pair.max()) + 1 if len(cells.pair) else 0)
    links = coo_array((np.ones(len(cells.rank)), (cells.rank, count + cells.pair)), (size, size))
    part = connected_components(links, directed=False)[1][:count]
    if np.any(part != part[0]):
        unlinked = cells.ranks[part != part[0]]
        raise DataError(
            f"no clicked document was seen both at rank {cells.ranks[0]} (or one compared with it) and at rank {unlinked[0]},"
            " so their propensities cannot be compared; log rankings that change more, leave deep ranks out, or give the propensities"
        )


def em(cells: ComparableCells, start: Floats | None = None) -> tuple[Floats, list[float]]:
    """Iterate (2) and (3) from theta ``start`` to convergence; return theta followed by gamma, and the log-likelihood per cycle."""
    theta = 1.0 / np.sqrt(np.arange(1.0, len(cells.ranks) + 1)) if start is None else start
    total = np.maximum(np.bincount(cells.pair, cells.impressions), LEAST)
    parameters = np.append(theta, np.minimum(np.bincount(cells.pair, cells.clicks) / total, 0.5))
    history: list[float] = []
    for _ in range(CYCLES):
        once = _step(cells, parameters)
        twice = _step(cells, once)
        first, change = once - parameters, (twice - once) - (once - parameters)
        length = norm(first) / max(norm(change), LEAST)
        extrapolated = _step(cells, np.clip(parameters + 2 * length * first + length * length * change, LEAST, 1.0))
        best_parameters, value = max(
            ((candidate, likelihood(cells, candidate)) for candidate in (twice, extrapolated)), key=lambda pair: pair[1]
        )
        history.append(value)
        theta_change, parameters = np.abs(best_parameters - parameters)[: len(theta)].max(), best_parameters
        if theta_change < TOLERANCE:
            break
    return parameters, history


def shrink(cells: ComparableCells, parameters: Floats) -> Floats:
    """Return the propensity (4) of each rank relative to the first, from EM's theta and gamma."""
    information, axes = eigh(_information(cells, parameters)[1:, 1:])
    precision = np.maximum(information, 0.0)  # along these axes the errors of EM's answer do not depend on each other
    depth, answer = (
        matmul(axes, log(ratio)) for ratio in (cells.ranks[1:] / cells.ranks[0], parameters[1 : len(cells.ranks)] / parameters[0])
    )
    variance = SPREADS[:, np.newaxis] ** 2  # from here on a row for each tau
    certainty = precision / (1 + variance * precision)  # the inverse of the variance of the answer about the power
    weight = np.maximum(np.sum(certainty * depth**2, axis=1), LEAST)
    power = (np.sum(certainty * depth * answer, axis=1) / weight)[:, np.newaxis] * depth
    rest = answer - power
    unlikely = np.sum(log1p(variance * precision) + certainty * rest**2, axis=1) + log(weight)  # -2 log of the restricted likelihood
    curve = np.average(power + variance * certainty * rest, axis=0, weights=exp((unlikely.min() - unlikely) / 2))
    return np.append(1.0, exp(matmul(curve, axes)))


def _information(cells: ComparableCells, parameters: Floats) -> Floats:
    """Return the information about log theta, less the part that log gamma takes."""
    count = len(cells.ranks)
    chance = parameters[:count][cells.rank] * parameters[count:][cells.pair]
    terms = cells.impressions * chance / np.maximum(1 - chance, 1 / (cells.impressions + 1))  # bounded by n impressions
    by_pair = np.maximum(np.bincount(cells.pair, terms, len(parameters) - count), LEAST)
    matrix = np.diag(sums_of(cells.rank, terms - terms * terms / by_pair[cells.pair], count))
    for i, j in _cell_pairs(cells):
        shared = np.bincount(cells.rank[i] * count + cells.rank[j], terms[i] * terms[j] / by_pair[cells.pair[i]], count * count)
        matrix -= shared.reshape(count, count) + shared.reshape(count, count).T
    return matrix


def _cell_pairs(cells: ComparableCells) -> Iterator[tuple[Rows, Rows]]:
    """Yield cells of the same pair at two ranks, the deeper second: first all neighbors, then those one rank further apart, and so on."""
    for distance in range(1, len(cells.ranks)):  # cells are sorted by pair and rank
        i = np.flatnonzero(cells.pair[distance:] == cells.pair[:-distance])
        if len(i) == 0:
            return
        yield i, i + distance


def _step(cells: ComparableCells, parameters: Floats) -> Floats:
    """Return ``parameters``, theta followed by gamma, after a step of EM."""
    count = len(cells.ranks)
    theta, gamma = parameters[:count][cells.rank], parameters[count:][cells.pair]
    missed = (cells.impressions - cells.clicks) / np.maximum(1 - theta * gamma, LEAST)
    examined, relevant = cells.clicks + missed * theta * (1 - gamma), cells.clicks + missed * gamma * (1 - theta)
    sides = ((cells.rank, examined, count), (cells.pair, relevant, len(parameters) - count))
    sums = [np.bincount(at, part, size) / np.maximum(np.bincount(at, cells.impressions, size), LEAST) for at, part, size in sides]
    return np.clip(np.concatenate(sums), LEAST, 1.0)


def likelihood(cells: ComparableCells, parameters: Floats) -> float:
    """Return the log-likelihood of (1)."""
    chance = parameters[: len(cells.ranks)][cells.rank] * parameters[len(cells.ranks) :][cells.pair]
    missed = (cells.impressions - cells.clicks) * log(np.maximum(1 - chance, LEAST))
    return float(np.sum(cells.clicks * log(np.maximum(chance, LEAST)) + missed))


def harvest(cells: ComparableCells) -> Floats:
    """Return propensities by (5) and least squares over all pairs of ranks; NaN if no clicks compare a rank with the first."""
    count = len(cells.ranks)
    a = np.zeros((count, count))
    for i, j in _cell_pairs(cells):
        total = np.maximum(cells.impressions[i] + cells.impressions[j], LEAST)
        for up, down in ((i, j), (j, i)):
            terms = cells.clicks[up] * cells.impressions[down] / total
            a += np.bincount(cells.rank[up] * count + cells.rank[down], terms, count * count).reshape(count, count)
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.nan_to_num(a * a.T / (a + a.T))
        ratio = np.where(weight > 0, log(a) - log(a.T), 0.0)
    laplacian = np.diag(weight.sum(axis=1)) - weight
    theta = np.append(1.0, exp(solve(laplacian[1:, 1:], (weight * ratio).sum(axis=1)[1:])))
    part = connected_components(weight > 0, directed=False)[1]
    return np.where(part == part[0], theta, np.nan)
