"""Evaluation with few human and many machine grades: the bias-corrected mean (Angelopoulos, Duchi & Zrnic 2023, "PPI++").

n queries have grades of people and of a machine, such as a language model; N further queries have grades of the machine alone. With H the
measure of a query by the human grades and M by those of the machine,

    mean(l) = l/N sum_further M + 1/n sum_human (H - l M)                                                      (1)
    variance(l) = Var_human(H - l M) / n + l^2 Var_further(M) / N                                              (2)
    l = Cov_human(H, M) / ((1 + n/N) Var_human(M)),  at least 0 and at most 1                                  (3)

(1) is unbiased for every l, however wrong the machine is, if the human-graded queries are a random sample of all queries. (3) minimizes
(2), so the interval is about as wide as that of the human grades alone or narrower; l = 0 is the mean of the human grades. Covariance and
variance are of the same queries, so that with few of them their errors cancel. The interval is

    mean +- t sqrt(variance),   (2)^2 / degrees = (Var_human / n)^2 / (n - 1) + (l^2 Var_further / N)^2 / (N - 1)    (4)

with the quantile t of Student's distribution (Welch 1947). Variances are those of influences, n w_q (x_q - mean) / sum w, which for equal
weights are deviations from the mean. The machine grades are *worth* n variance(0) / variance(l) human-graded queries in all.

How far two judges agree is Cohen's kappa with quadratic weights (Cohen 1968). Of the documents that both have graded, with a and b their
grades,

    kappa = 1 - mean (a - b)^2 / (var a + var b + (mean a - mean b)^2) = 2 cov(a, b) / (var a + var b + (mean a - mean b)^2)     (5)

The denominator is the mean of (a - b)^2 for independent judges with the same shares of grades. The interval of kappa is a bootstrap over
queries, since documents of one query are not independent.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import PerDocument, PerQuery
from exactrank._support.distributions import t_quantile, two_sided_t
from exactrank._support.numerics import matmul
from exactrank._support.tables import Tabular, Values
from exactrank.data.dataset import Mask
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError
from exactrank.measures.base import Measure
from exactrank.measures.bound import means_over_queries

Floats = npt.NDArray[np.float64]
LEVEL = 0.95
RESAMPLES = 2000  #: of kappa
MOST_GRADES = 20  #: different grades up to which the agreement has a table
#: Machine grades that narrow the interval by less than this part are said to add nothing.
LITTLE = 0.05
LEAST_QUERIES = 2  #: of an interval


@dataclass(frozen=True)
class CorrectedMean:
    """The mean (1) with its interval (4); ``human`` is that of the human grades alone."""

    mean: float
    standard_error: float
    interval: tuple[float, float]
    machine_weight: float  #: l of (1)
    human_queries: int  #: n
    further_queries: int  #: N, graded by the machine alone
    degrees: float  #: of freedom, of (4)
    human: "CorrectedMean | None" = None  #: without the machine's grades; None if that is this

    @property
    def worth(self) -> float:
        """The number of human-graded queries whose mean would be as precise."""
        if self.human is None:
            return float(self.human_queries)
        if not self.standard_error:
            return math.inf if self.human.standard_error else float(self.human_queries)
        return self.human_queries * (self.human.standard_error / self.standard_error) ** 2

    @property
    def p(self) -> float:
        """Two-sided p-value of the mean against 0, by (4); NaN if there is a mean without any variance."""
        if not self.standard_error:
            return math.nan if self.mean else 1.0
        return two_sided_t(self.mean / self.standard_error, self.degrees)

    @property
    def remark(self) -> str:
        """A sentence on what the machine's grades add."""
        if self.human is None or self.worth < self.human_queries * (1 + LITTLE):
            return f"the machine's grades add nothing to those of {self.human_queries} queries by people"
        return f"as good as {self.worth:,.0f} queries graded by people; there are {self.human_queries:,}"

    def __repr__(self) -> str:
        low, high = self.interval
        return f"{self.mean:.4f} [{low:.4f}, {high:.4f}], {self.remark}"


def corrected_mean(
    human: PerQuery,
    machine: PerQuery,
    further: PerQuery,
    *,
    weight: PerQuery | None = None,
    further_weight: PerQuery | None = None,
    machine_weight: float | None = None,
    level: float = LEVEL,
) -> CorrectedMean:
    """Return (1) of values per query, or of the differences of two rankings.

    ``human`` and ``machine`` are values of the same queries in the same order, by human and by machine grades; ``further`` are values of
    the queries that only the machine has graded. Queries with NaN are skipped. ``weight`` and ``further_weight`` are weights of queries.
    ``machine_weight`` is l, by default (3).

    >>> corrected_mean(np.array([0.2, 0.5, 0.9, 0.7]), np.array([0.3, 0.5, 0.8, 0.8]), np.array([0.3, 0.4, 0.6, 0.7, 0.8, 0.8]))
    0.5750 [0.3520, 0.7980], as good as 10 queries graded by people; there are 4
    """
    if machine_weight is not None and not 0 <= machine_weight <= 1:
        raise DataError(f"machine_weight={machine_weight}: expected a number from 0 to 1, or None to choose it")
    pairs, weights = _without_missing(np.stack([human, machine]), weight)
    (further_values,), further_weights = _without_missing(np.asarray(further, np.float64)[None], further_weight)
    for count, graded in ((len(weights), "by people"), (len(further_weights), "by the machine alone")):
        if count < LEAST_QUERIES:
            raise DataError(f"{count} queries graded {graded} count; an interval takes at least {LEAST_QUERIES}")
    share = _best_machine_weight(pairs, weights, len(further_values)) if machine_weight is None else machine_weight

    def at(share: float, human_mean: CorrectedMean | None) -> CorrectedMean:
        mean = _mean(pairs[0] - share * pairs[1], weights) + share * _mean(further_values, further_weights)
        errors = _influences(pairs[0] - share * pairs[1], weights), share * _influences(further_values, further_weights)
        parts = [float(np.sum(error**2)) / ((len(error) - 1) * len(error)) for error in errors]
        variance = math.fsum(parts)
        degrees = (
            variance**2 / math.fsum(part**2 / (len(error) - 1) for part, error in zip(parts, errors, strict=True)) if variance else 1.0
        )
        half = t_quantile((1 + level) / 2, degrees) * math.sqrt(variance)
        return CorrectedMean(
            mean, math.sqrt(variance), (mean - half, mean + half), share, len(weights), len(further_weights), degrees, human_mean
        )

    uncorrected = at(0.0, None)
    return at(share, uncorrected)


def _without_missing(values: Floats, weight: PerQuery | None) -> tuple[Floats, PerQuery]:
    """Return the columns of ``values`` that have no NaN and a positive weight, and their weights."""
    weights = np.ones(values.shape[1]) if weight is None else np.asarray(weight, np.float64)
    if weights.shape != values.shape[1:]:
        raise DataError(f"there are {len(weights)} weights for {values.shape[1]} queries; give one per query")
    counts = ~np.isnan(values).any(axis=0) & (weights > 0)
    return np.ascontiguousarray(values[:, counts]), weights[counts]


def _mean(values: PerQuery, weights: PerQuery) -> float:
    return float(means_over_queries(values[None], weights)[0])


def _influences(values: PerQuery, weights: PerQuery) -> PerQuery:
    """Return how far each query moves the mean, times the number of queries."""
    return weights * (values - _mean(values, weights)) * (len(weights) / float(np.sum(weights)))


def _best_machine_weight(pairs: Floats, weights: PerQuery, further: int) -> float:
    """Return (3) for ``further`` queries."""
    human, machine = (_influences(row, weights) for row in pairs)
    squares = float(np.sum(machine**2))
    return min(1.0, max(0.0, float(np.sum(human * machine)) / ((1 + len(human) / further) * squares))) if squares else 0.0


# ---- agreement


@dataclass(frozen=True, repr=False)
class Agreement(Tabular):
    """Agreement of people and a machine on the documents that both have graded."""

    documents: int
    kappa: float  #: (5); 1 is full agreement, 0 that of chance; NaN if neither judge ever varies
    interval: tuple[float, float]  #: of kappa, 95%
    bias: float  #: the mean of the machine's grade minus the human one
    grades: tuple[float, ...]  #: of the rows and columns of the table
    table: tuple[tuple[int, ...], ...]  #: documents by human grade (rows) and machine grade (columns); empty if grades are many

    def __repr__(self) -> str:
        low, high = self.interval
        return f"Agreement(kappa={self.kappa:.3f} [{low:.3f}, {high:.3f}], bias={self.bias:+.3f}, {self.documents:,} documents)"

    def _columns(self) -> dict[str, Values]:
        names = [f"machine {grade:g}" for grade in self.grades]
        return {"human": list(self.grades)} | dict(zip(names, map(list, zip(*self.table, strict=True)), strict=True))


def agreement(data: RankingData, machine: RankingData, *, seed: int = 0) -> Agreement | None:
    """Return the agreement (5) of the grades of ``data``, by people, with those of ``machine``; None without a common document.

    Documents are matched by the ids of queries and documents. Without document ids a query must have the same documents in the same order.
    """
    query, ours, theirs = _common_grades(data, machine)
    if not len(query):
        return None
    terms = np.stack([np.ones(len(ours)), ours, theirs, ours**2, theirs**2, ours * theirs])
    _, number = np.unique(query, return_inverse=True)
    queries = int(number.max()) + 1
    sums = np.stack([np.bincount(number, term, queries) for term in terms])
    rng = np.random.default_rng(seed)
    times = np.stack([np.bincount(rng.integers(0, queries, queries), minlength=queries) for _ in range(RESAMPLES)]).astype(np.float64)
    kappas = _kappa(matmul(times, sums.T).T)
    kappas = kappas[~np.isnan(kappas)]
    low, high = np.quantile(kappas, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist() if len(kappas) else (math.nan, math.nan)
    grades = np.unique(np.concatenate([ours, theirs]))
    table = tuple(tuple(int(np.sum((ours == a) & (theirs == b))) for b in grades) for a in grades) if len(grades) <= MOST_GRADES else ()
    kappa = float(_kappa(sums.sum(axis=1, keepdims=True))[0])
    return Agreement(len(ours), kappa, (low, high), float(np.mean(theirs - ours)), tuple(grades.tolist()) if table else (), table)


def _kappa(sums: Floats) -> PerQuery:
    """Return (5) of the rows of ``sums``: of 1, a, b, a^2, b^2 and ab."""
    n, a, b, aa, bb, ab = sums
    with np.errstate(invalid="ignore", divide="ignore"):
        apart = aa - 2 * ab + bb
        chance = aa + bb - 2 * a * b / n
        return np.where(chance > 0, 1 - apart / chance, np.nan)


def _common_grades(data: RankingData, machine: RankingData) -> tuple[PerDocument, PerDocument, PerDocument]:
    """Return the number of the query of each document that both have graded, the human grade and the machine's."""
    places = {str(query): place for place, query in enumerate(machine.qid.tolist())}
    rows: list[tuple[int, float, float]] = []
    ours, theirs = data.docid, machine.docid
    our_ids, their_ids = None if ours is None else ours.tolist(), None if theirs is None else theirs.tolist()
    for number, query in enumerate(data.qid.tolist()):
        place = places[str(query)]
        first, last = data.indptr[number : number + 2].tolist()
        start, stop = machine.indptr[place : place + 2].tolist()
        if our_ids is not None and their_ids is not None:
            graded = dict(zip(their_ids[start:stop], machine.y[start:stop].tolist(), strict=True))
            pairs = [(data.y[row], graded[our_ids[row]]) for row in range(first, last) if our_ids[row] in graded]
        elif last - first == stop - start:
            pairs = list(zip(data.y[first:last].tolist(), machine.y[start:stop].tolist(), strict=True))
        else:
            raise DataError(
                f"query {query!r} has {last - first} documents by people and {stop - start} by the machine, and no document ids say which"
                " are the same; give both docid"
            )
        rows += [(number, float(human), float(other)) for human, other in pairs if human >= 0 and other >= 0]  # -1 is unjudged
    numbers = np.array(rows, np.float64).reshape(-1, 3)
    return numbers[:, 0], numbers[:, 1], numbers[:, 2]


# ---- correction


@dataclass(frozen=True, eq=False, repr=False)
class Correction(Tabular):
    """The bias-corrected means of an evaluation, and how far the machine agrees with people."""

    means: Mapping[str, CorrectedMean]  #: by the names of the measures
    agreement: Agreement | None  #: None if people and the machine have graded no document in common

    def _columns(self) -> dict[str, Values]:
        means = self.means.values()
        return {
            "measure": list(self.means),
            "mean": [corrected.mean for corrected in means],
            "low": [corrected.interval[0] for corrected in means],
            "high": [corrected.interval[1] for corrected in means],
            "human_mean": [corrected.human.mean for corrected in means if corrected.human is not None],
            "machine_weight": [corrected.machine_weight for corrected in means],
            "worth": [corrected.worth for corrected in means],
        }

    def __repr__(self) -> str:
        return "Correction(" + "; ".join(f"{name} {corrected!r}" for name, corrected in self.means.items()) + ")"


def correct(
    measures: Mapping[str, Measure],
    data: RankingData,
    values: Floats,
    machine: RankingData,
    machine_values: Floats,
    *,
    seed: int = 0,
) -> Correction:
    """Correct the means of ``values``, by human grades, with ``machine_values`` of more queries.

    Both hold a row per measure and a column per query of their data.
    """
    shared, is_further = places_of_queries(data, machine), further_queries(data, machine)
    means = {
        name: corrected_mean(
            human,
            by_machine[shared],
            by_machine[is_further],
            weight=data.query_weight,
            further_weight=None if machine.query_weight is None else machine.query_weight[is_further],
        )
        for name, human, by_machine in zip(measures, values, machine_values, strict=True)
    }
    return Correction(means, agreement(data, machine, seed=seed))


def further_queries(data: RankingData, machine: RankingData) -> Mask:
    """Return a mask of the queries of ``machine`` that ``data``, by people, does not have; at least one is needed."""
    is_further = np.ones(machine.n_queries, np.bool_)
    is_further[places_of_queries(data, machine)] = False
    if not is_further.any():
        raise DataError("the machine has graded no query beyond those of people, so there is nothing to gain; leave machine out")
    return is_further


def places_of_queries(data: RankingData, machine: RankingData) -> npt.NDArray[np.int64]:
    """Return the place of each query of ``data`` among those of ``machine``; ids are compared as strings."""
    places = {str(query): place for place, query in enumerate(machine.qid.tolist())}
    queries = [str(query) for query in data.qid.tolist()]
    lacking = [query for query in queries if query not in places]
    if len(lacking) == len(queries):
        raise DataError(
            f"the machine has graded none of the queries that people have (such as {queries[0]!r}); give grades of the same topics"
        )
    if lacking:
        raise DataError(
            f"the machine has not graded {len(lacking)} of the {len(queries)} queries that people have (such as {lacking[0]!r}); its errors"
            " are measured on those that both have: let it grade them too, or leave them out"
        )
    return np.array([places[query] for query in queries], np.int64)
