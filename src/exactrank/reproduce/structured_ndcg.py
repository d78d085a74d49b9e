"""Structured NDCG against regression and RankSVM (Chapelle, Le & Smola 2007, sections 5.1 and 5.2, Figure 2).

Linear models, one for each k from 1 to 10. All methods choose their settings by nDCG@k on validation data: structured NDCG, by the convex
bound, its strength; regression on the grades its ridge; RankSVM its strength. Regression is plain, with one intercept, or centered within
queries as our `exactrank.rankers.ridge` is. For test query q

    S_q = nDCG@1 + ... + nDCG@10                                                                                (1)
    p   = 2 P(rank sum of S_q - S'_q is as large by chance), at most 1                                          (2)

"We also tried to take A to be the discount function D but the results were not as good": for k = 10 there is such a model too, and one for
which validation data chooses the convex bound or the ramp, which is our default.

(2) is the two-sided p-value of Wilcoxon's signed-rank test where structured NDCG is better than the other, and 1 where it is worse.

Their sets from web search are not public: the first has A(r) = max(k + 1 - r, 0), the second A(r) = 1/sqrt(r). Here they are artificial
data of these sizes with mixed features (`artificial.mix_features`), or ``data``: folders with Fold1, Fold2, ..., whose test queries are
pooled.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from exactrank._support.tables import Cell, Table
from exactrank.data.folds import Fold
from exactrank.data.ranking_data import RankingData
from exactrank.rankers.base import Ranker
from exactrank.rankers.ranksvm import RankSVM
from exactrank.rankers.ridge import Ridge
from exactrank.rankers.structuredrank import StructuredRank
from exactrank.reproduce.artificial import Sizes
from exactrank.reproduce.experiment import MEASURES, RANKS, OnFolds, Piece, Tell, Values, choose_best, fit_ranker, query_values, signed_rank
from exactrank.reproduce.finding import Inequality, Panel, curves

RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
SIGNIFICANT = 0.05
OURS, RIVALS = "structured NDCG", ("regression", "centered regression", "RankSVM")
#: Models for k = 10, evaluated at all k: as `OURS`; with A = D; with either bound.
AT_10 = ONE, DISCOUNT, EITHER = "structured NDCG@10", "A = D, @10", "either bound, @10"
METHODS = (OURS, *RIVALS, *AT_10)

Shape = Literal["linear", "sqrt"]


@dataclass(frozen=True, eq=False)
class BoundContest:
    """The three methods on one set."""

    name: str
    values: Mapping[str, Values]  #: by method: nDCG@k of each test query, one row per k

    def mean(self, method: str) -> float:
        """Over k and test queries."""
        return float(self.values[method].mean())

    def p(self, rival: str) -> float:
        """(2)."""
        return signed_rank(self.values[OURS].sum(axis=0), self.values[rival].sum(axis=0))

    def checks(self) -> list[Inequality]:
        """Return that it is significantly better than each rival."""
        ahead, surely = f"{self.name}: {OURS} is above {{}} (mean of nDCG@1 to 10)", f"{self.name}: significantly above {{}} (p)"
        means = [Inequality(ahead.format(rival), self.mean(rival), self.mean(OURS)) for rival in RIVALS]
        means += [Inequality(surely.format(rival), self.p(rival), SIGNIFICANT) for rival in RIVALS]
        return [
            *means,
            Inequality(f"{self.name}: A = D is not as good (mean of nDCG@1 to 10, models for k = 10)", self.mean(DISCOUNT), self.mean(ONE)),
        ]

    def describe(self) -> Iterator[Piece]:
        """Yield everything except the inequalities."""
        p = {rival: f"p = {self.p(rival):.2g}" for rival in RIVALS}
        gains = (f"{self.mean(OURS) / self.mean(rival) - 1:+.1%} over {rival} ({p[rival]})" for rival in RIVALS)
        yield f"{self.name}: over all k {OURS} gains {' and '.join(gains)}."
        by_k = {method: self.values[method].mean(axis=1).tolist() for method in METHODS}
        rows: list[list[Cell]] = [list(row) for row in zip(MEASURES, *by_k.values(), strict=True)]
        rows += [["mean", *map(self.mean, METHODS)], [f"{OURS} better", "", *p.values(), *("" for _ in AT_10)]]
        yield Table(f"{self.name}, test data", ("measure", *METHODS), rows)
        yield Panel(self.name, "k", "nDCG@k, test data", curves(by_k))


@dataclass(frozen=True, kw_only=True)
class StructuredNDCG(OnFolds, name="structured-ndcg", full={"features": 300, "web_1": (900, 300, 300), "web_2": (1_000, 1_000, 1_000)}):
    """Both web search sets, with ``documents`` per query in the second and two thirds as many in the first; or the folds in ``data``."""

    web_1: Sizes = (450, 300, 300)
    web_2: Sizes = (500, 1_000, 1_000)

    def _pieces(self, tell: Tell) -> Iterator[Piece]:
        sets: list[tuple[str, Shape, list[Fold]]] = [(name, "linear", folds) for name, folds in self.folders]
        if not self.data:
            first = self._fold(self.web_1, mixed=True, documents=max(1, self.documents * 2 // 3))
            sets += [("as web search 1", "linear", [replace(first, name="as web search 1")])]
            sets += [("as web search 2", "sqrt", [replace(self._fold(self.web_2, mixed=True), name="as web search 2")])]
        for name, A, folds in sets:
            values: dict[str, list[Values]] = {method: [] for method in METHODS}
            for fold in folds:
                by_k = [self._train(k, A, fold, tell) for k in RANKS]
                for method in (OURS, *RIVALS):
                    values[method].append(np.stack([query_values(rankers[method], fold.test)[i] for i, rankers in enumerate(by_k)]))
                for method in AT_10:
                    ranker = by_k[-1][OURS] if method == ONE else self._fit_bound(RANKS[-1], A, fold, method)
                    values[method].append(query_values(ranker, fold.test))
            contest = BoundContest(name, {method: np.concatenate(parts, axis=1) for method, parts in values.items()})
            yield from contest.checks()
            yield from contest.describe()

    def _train(self, k: int, A: Shape, fold: Fold, tell: Tell) -> dict[str, Ranker]:
        measure = f"nDCG@{k}"
        tell(f"{fold.name}, {measure}")
        svm = RankSVM(measure=measure, loss="hinge", seed=self.seed, threads=self.threads)
        regressions = (regression(measure, fold, plain=True), regression(measure, fold))
        return dict(zip((OURS, *RIVALS), (self._fit_bound(k, A, fold), *regressions, fit_ranker(svm, fold.train, fold.valid)), strict=True))

    def _fit_bound(self, k: int, A: Shape, fold: Fold, method: str = OURS) -> Ranker:
        shape: Literal["linear", "sqrt", "discount"] = "discount" if method == DISCOUNT else A
        bound: Literal["auto", "convex"] = "auto" if method == EITHER else "convex"
        ranker = StructuredRank(measure=f"nDCG@{k}", A=shape, bound=bound, seed=self.seed, threads=self.threads)
        return fit_ranker(ranker, fold.train, fold.valid)


def regression(measure: str, fold: Fold, *, plain: bool = False) -> Ranker:
    """Regress the grades, centered within queries or ``plain``, with the ridge that is best on validation data."""
    train = fold.train
    if plain:  # as if all documents were of one query, so that there is one intercept
        train = RankingData.from_arrays(train.X, train.y, group=[train.n_documents], feature_names=train.feature_names)
    return choose_best((Ridge(measure=measure, l2=ridge) for ridge in RIDGES), replace(fold, train=train))
