"""Losses: functions of the scores of a query's documents, one class each with its equations.

They are objectives (`exactrank.learning.objectives.score_space`), which are maximized: a loss is negated.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np

from exactrank import _core
from exactrank._support.arguments import check_number
from exactrank._support.arrays import PerDocument, PerQuery
from exactrank._support.numerics import exp
from exactrank.data.dataset import Concatenated, Dataset
from exactrank.data.ranking_data import RankingData
from exactrank.errors import IncompatibleError, SettingError
from exactrank.learning.objectives.bounded_gain import MOST, bound_exponents, training_kernel
from exactrank.learning.objectives.exact_sums import mean_grade
from exactrank.learning.objectives.score_space import read_measure
from exactrank.learning.objectives.within_query import center, pair_counts
from exactrank.measures.base import NO_CUTOFF, Measure
from exactrank.measures.families import Positional
from exactrank.measures.graded import DCG, NDCG

Loss = Literal["hinge", "squared-hinge"]
Normalize = Literal["query", "pairs"]


@dataclass(frozen=True)
class ListNetLoss:
    """ListNet: cross entropy of top-one probabilities (Cao, Qin, Liu, Tsai & Li 2007).

    Scores give each document a probability to be drawn first, and so do grades; the former should match the latter:

        loss = -sum_i t_i log p_i,    p_i = e^{s_i} / sum_l e^{s_l}                                                 (1)
        t_i = e^{y_i} / sum_l e^{y_l}                  target="softmax", as published                               (2)
        t_i = u_i / sum_l u_l,  u = 2^y - 1            target="gain": the share of the query's gain                 (3)

    The loss is convex, with its minimum where p = t: under (2) at scores equal to the grades. There it is the entropy of t, not 0. A
    query without any gain has no (3), and contributes nothing. Grades further apart than `bounded_gain.MOST` are scaled down.

    Its curvature is p (1 - p).
    """

    target: Literal["softmax", "gain"] = "softmax"

    def __post_init__(self) -> None:
        if self.target not in ("softmax", "gain"):
            raise SettingError(f'target={self.target!r} is not one of "softmax", "gain"')

    def on(self, data: RankingData) -> _core.Objective:
        starts = data.indptr[:-1]
        if self.target == "softmax":  # over e^y of the query's best document
            below = data.y - np.repeat(np.maximum.reduceat(data.y, starts), data.sizes)
            mass = exp(below * (MOST / max(MOST, data.grade_range[1] - data.grade_range[0])))
        else:
            mass = DCG().usefulness(bound_exponents(DCG(), data.y, data.grade_range[1])[1])
        return _core.listnet(_over_sums(mass, np.add.reduceat(mass, starts), data))


def _over_sums(values: PerDocument, sums: PerQuery, data: RankingData) -> PerDocument:
    """Return ``values`` divided by the number of their query, where that is above 0."""
    return np.asarray(values / np.repeat(np.where(sums > 0, sums, 1.0), data.sizes))


@dataclass(frozen=True)
class ListMLELoss:
    """ListMLE: the likelihood of the ideal ranking (Xia, Liu, Wang, Zhang & Li 2008).

    Under the Plackett-Luce model documents are drawn one by one with probabilities proportional to e^s. With documents in the
    order of their grades, best first, the negated loss of a query is

        value = sum_{j <= k} log e^{s_j} / sum_{l >= j} e^{s_l}                                                     (1)

    over all ranks, or over the first k alone: the top-k ListMLE of Xia, Liu & Li (2009). It is concave. Documents of one grade
    have no ideal order among themselves; here they get a random one, always the same, so that the order of the input
    reveals nothing. A query with a single grade has no ideal ranking at all, and contributes nothing.

    ``k`` is None for all ranks; ``seed`` draws the order of documents of one grade, by their number from ``first`` on.
    """

    k: int | None = None
    seed: int = 0
    first: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        if self.k is not None and not 1 <= self.k < NO_CUTOFF:
            raise SettingError(f"k must be at least 1, or None for all ranks; got {self.k}")
        if self.seed < 0:
            raise SettingError(f"a seed must be at least 0, got {self.seed}")

    def on(self, data: RankingData) -> _core.Objective:
        starts, sizes = data.indptr[:-1], data.sizes
        query = data.query_numbers
        chance = random_from(self.first, self.seed, data.n_documents)
        ideal = np.lexsort((chance, -data.y, query)) - np.repeat(starts, data.sizes)
        one_grade = np.maximum.reduceat(data.y, starts) == np.minimum.reduceat(data.y, starts)
        top = np.where(one_grade, 0, np.minimum(sizes, self.k or NO_CUTOFF))
        return _core.listmle(ideal.astype(np.int32), top.astype(np.int32), data.indptr)

    def for_part(self, query: int, document: int) -> "ListMLELoss":
        return replace(self, first=document)


def random_from(first: int, seed: int, count: int) -> PerDocument:
    """Return ``count`` of the random numbers that ``seed`` draws, beginning with number ``first``.

    >>> bool(np.all(random_from(3, 7, 2) == random_from(0, 7, 5)[3:]))
    True
    """
    bits = np.random.PCG64(seed)
    bits.advance(first)
    return np.random.Generator(bits).random(count)


@dataclass(frozen=True)
class RankCosineLoss:
    """RankCosine: the angle between scores and grades (Qin, Zhang, Tsai, Wang, Liu & Li 2008).

        loss = 1/2 (1 - cos(g, s)),    cos(g, s) = g . s / (|g| |s|)                                                (1)

    Here s and g, the grades, are first centered within the query: a ranker's scores have no natural zero, so the loss should not
    change when all scores of a query rise together, and its slopes sum to zero. It is then 0 only if the scores are a positive
    multiple of the grades plus a constant, and 1 if a negative one.

    Of losses that replace nDCG, (1) is not consistent: the scores of the least expected loss need not rank by expected nDCG, for
    |g| differs between judgments. Ravikumar, Tewari & Yang (2011) divide by the ideal DCG instead:

        loss = 1/2 (1 - G . s / (|G|_D |s|)),    G_i = 2^{y_i} - 1,    |G|_D = max over orders of sum_r G_r / log2(1 + r)    (2)

    The expected loss is then least where s points along the mean of G / |G|_D, whose order is the best for nDCG. Centered scores
    (G . s is then the same for a centered G) keep that order. Since |G|_D >= |G|, (2) lies between 0 and 1, but reaches neither.

    Where all scores of a query are equal there is no angle. The cosine counts as 0 there, its mean over all directions, so the
    loss is 1/2; and the slope points at the target, as at distance 1 and a right angle to it, so that training leaves the point.
    A query with a single grade, or for (2) nothing useful, contributes nothing. The loss is not convex and no curvature is given.

    It is (1), or (2) where ``consistent``.
    """

    consistent: bool = False

    def on(self, data: RankingData) -> _core.Objective:
        starts, target = data.indptr[:-1], data.y
        if self.consistent:
            kernel, grades = training_kernel(NDCG(), data)
            target = _core.worths(kernel, grades, data.indptr)
        # Taking off the least first makes equal values exactly 0 when centered.
        target = center(target - np.repeat(np.minimum.reduceat(target, starts), data.sizes), data.indptr)
        if not self.consistent:
            target = _over_sums(target, np.maximum.reduceat(np.abs(target), starts), data)  # so that squares neither overflow nor vanish
            target = _over_sums(target, np.sqrt(np.add.reduceat(target**2, starts)), data)
        return _core.rank_cosine(target)


@dataclass(frozen=True)
class SmoothMeasure:
    """Smoothed measures: every rank held by all documents in part, as in SmoothRank (Chapelle & Wu 2010).

    A positional measure is a sum over ranks of the discount d_j times the gain of the document there. With d(j) the document at
    rank j, let document i hold a share h_ij of rank j:

        h_ij = e^{-(s_i - s_d(j))^2 / sigma} / sum_l e^{-(s_l - s_d(j))^2 / sigma}                                  (1)
        value = sum_{j <= k} d_j sum_i g_i h_ij                                                                     (2)

    where g is the usefulness over the measure's normalizer: the gain over the ideal DCG for nDCG. As sigma goes to 0 the value
    approaches the measure; a large sigma smooths away its steps, so methods start there and lower sigma. The slope is the full one,
    also through s_d(j), with the order held fixed; documents of equal score share the discounts of their ranks. If all scores of
    a query are equal the slope is 0: start elsewhere.

    A query without useful documents, or with a single one, teaches nothing: its value is 0. No curvature is given.

    ``sigma`` is in units of squared score.
    """

    remedy: ClassVar[str] = "give the measure a cutoff, e.g. nDCG@10: the cost then grows with it, not with the length of queries"

    measure: Measure
    sigma: float = 1.0

    def __post_init__(self) -> None:
        read_measure(self)
        if not isinstance(self.measure, Positional) or self.measure.normalizer == "mean_ideal":
            raise IncompatibleError(f"{self.measure} is not a sum over ranks, so it cannot be smoothed; use nDCG, DCG, P, R or RBP")
        check_number("sigma", self.sigma, above=True)

    def pairs(self, data: RankingData) -> float:
        """Return the number of pairs of a rank and a document in one pass."""
        sizes = data.sizes
        return float((np.minimum(sizes, self.measure.cutoff) * sizes).sum())

    def on(self, data: RankingData) -> _core.Objective:
        kernel, grades = training_kernel(self.measure, data)
        return _core.smooth_measure(kernel, _core.worths(kernel, grades, data.indptr), self.sigma)


@dataclass(frozen=True)
class ApproxNDCGLoss:
    """ApproxNDCG: nDCG with soft ranks (Qin, Liu & Li 2010).

    A rank is 1 plus the number of documents above; a logistic function of steepness alpha counts them softly:

        rank_i = 1 + sum_{j != i} 1 / (1 + e^{alpha (s_i - s_j)})                                                   (1)
        value = sum_i g_i / log2(1 + rank_i),    g the gains over the ideal DCG                                     (2)

    As alpha grows the value approaches nDCG if no scores are equal. The published ApproxNDCG has no cutoff, and neither has
    this one: (2) and the ideal go over all documents, whatever the measure's ``k`` and ``short``; only its gain counts. The
    slope needs all pairs of a useful document and any other.

    A query without useful documents, or with a single one, teaches nothing: its value is 0. No curvature is given.
    """

    remedy: ClassVar[str] = "leave out documents of grade 0 from long queries, or use SmoothRank with a cutoff"

    measure: NDCG
    alpha: float = 10.0

    def __post_init__(self) -> None:
        read_measure(self)
        if not isinstance(self.measure, NDCG):
            raise IncompatibleError(f"ApproxNDCG approximates nDCG, not {self.measure}; use nDCG, or SmoothMeasure for P, R, DCG or RBP")
        if self.measure.discount != "log2":
            raise IncompatibleError(f"soft ranks have no discount {self.measure.discount!r}; use discount='log2', or SmoothMeasure")
        check_number("alpha", self.alpha, above=True)

    def pairs(self, data: RankingData) -> float:
        """Return the number of pairs of a document with a gain and another one in one pass."""
        _, grades = bound_exponents(self.measure, data.y, data.grade_range[1])
        useful = np.add.reduceat(self.measure.usefulness(grades) > 0, data.indptr[:-1], dtype=np.float64)
        return float((useful * data.sizes).sum())

    def on(self, data: RankingData) -> _core.Objective:
        kernel, grades = training_kernel(replace(self.measure, k=None), data)
        return _core.approx_ndcg(_core.worths(kernel, grades, data.indptr), self.alpha)


@dataclass(frozen=True)
class PairHinge:
    """The hinge loss of pairs: RankSVM (Herbrich, Graepel & Obermayer 2000; Joachims 2002).

    The scores of two documents of one query, i of a better grade than j, should differ by a margin of 1:

        loss_q = 1/P_q sum_{i, j: y_i > y_j} h(1 - (s_i - s_j)),    h(z) = max(0, z) or max(0, z)^2                 (1)

    The square comes without a factor of 1/2, as in Chapelle & Keerthi (2010) and Lee & Lin (2014). Both are convex. The plain hinge
    has kinks: a pair exactly at the margin counts as separated, which gives one of the possible slopes.

    P_q is the number of the query's pairs, so that queries count equally, or the (weighted) mean number of pairs over all queries, so
    that pairs do, as in the papers above: then the mean loss of all queries is the mean over all pairs. A query of one grade
    contributes nothing.

    Pairs that the data has beside its grades (`exactrank.data.preferences`) are added to (1), each times its weight, and P_q grows by
    these weights.

    No list of pairs of grades is made: the time is O(n log n) for n documents and the memory O(n), whatever the number of different grades.

    ``normalize`` says what counts equally. If the data is a part of the whole, ``mean_pairs`` is that of the whole.
    """

    loss: Loss = "squared-hinge"
    normalize: Normalize = "query"
    mean_pairs: float | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.loss not in ("hinge", "squared-hinge"):
            raise SettingError(f'loss={self.loss!r} is not one of "hinge", "squared-hinge"')
        if self.normalize not in ("query", "pairs"):
            raise SettingError(f'normalize={self.normalize!r} is not one of "query", "pairs"')

    def on(self, data: RankingData) -> _core.Objective:
        pairs = self.with_mean_pairs(data).mean_pairs or 0.0
        return _core.pair_hinge(data.y, data.indptr, self.loss == "squared-hinge", pairs, data.native_preferences)

    def with_mean_pairs(self, data: Dataset) -> "PairHinge":
        """Return the loss with the mean number of pairs of all queries, if it depends on that."""
        if self.normalize == "query" or self.mean_pairs is not None:
            return self
        counts = data.ask(Concatenated(pair_counts))
        return replace(self, mean_pairs=float(np.sum(counts * (data.weights / data.weights.mean())) / len(counts)))


@dataclass(frozen=True)
class SquaredError:
    """Squared error on the grades, for trees.

        value = -1/2 sum_i r_i^2,    r_i = y_i - mean - s_i,    mean that of all grades                              (1)
        r_i <- r_i - (mean of r over the query of i)                                                               (2)

    A constant added to all scores changes no ranking; the mean of the grades is subtracted so that scores may start at 0. Nor does a
    constant added to the scores of one query: (2) leaves it free, so that no tree is spent on differences between queries.

    Both means weight documents and queries. The weight of a document in (1) itself is multiplied by the forest
    (`exactrank.learning.trees.part`), as for all objectives; so a document of weight 2 is two documents.

    It is (1), or ``within`` queries (2); its curvature is 1. If the data is a part of the whole, ``mean`` is that of the whole.
    """

    within: bool = False
    mean: float | None = None

    def on(self, data: RankingData) -> _core.Objective:
        return _core.squared_error(np.ascontiguousarray(data.y), self.shares(data), self.center(data))

    def center(self, data: RankingData) -> float:
        """Return the mean of all grades."""
        return mean_grade(data) if self.mean is None else self.mean

    def shares(self, data: RankingData) -> PerDocument | None:
        """Return the weight of its query over that of the document, for each document, for (2)."""
        if not self.within:
            return None
        share = np.ones(data.n_documents) if data.sample_weight is None else data.sample_weight
        totals = np.repeat(np.add.reduceat(share, data.indptr[:-1]), data.sizes)
        return np.asarray(np.divide(totals, share, out=np.full(data.n_documents, np.inf), where=share > 0))
