"""Structured NDCG against regression and RankSVM (Chapelle, Le & Smola 2007, sections 5.1 and 5.2, Figure 2).

Linear models, one for each k from 1 to 10. All three methods choose their settings by nDCG@k on validation data: structured NDCG
its strength, and the convex bound or the ramp; regression on the grades its ridge; RankSVM its strength. For test query q

    S_q = nDCG@1 + ... + nDCG@10                                                                                (1)
    p   = 2 P(rank sum of S_q - S'_q is as large by chance), at most 1                                          (2)

(2) is the two-sided p-value of Wilcoxon's signed-rank test where structured NDCG is ahead of the other, and 1 where it is behind.

Their sets are of web search: about 1,500 queries with 33 documents each, split 3:1:1, with A(r) = max(k + 1 - r, 0); and 1,000
queries each for training, validation and test, of 50 documents, with A(r) = 1/sqrt(r). Neither is public. Here they are artificial
data of these sizes with mixed features (`artificial.correlated`), or ``data``: folders with Fold1, Fold2, ... as LETOR has them, of
which the test queries are pooled.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.stats import wilcoxon

from exactrank.arrays import PerQuery
from exactrank.data.folds import Fold
from exactrank.measures.evaluate import evaluate
from exactrank.rankers.base import Ranker
from exactrank.rankers.ranksvm import RankSVM
from exactrank.rankers.ridge import Ridge
from exactrank.rankers.structuredrank import StructuredRank
from exactrank.reproduce.artificial import Sizes, correlated_parts, three_parts
from exactrank.reproduce.chosen import chosen
from exactrank.reproduce.duel import MEASURES, RANKS, Values
from exactrank.reproduce.experiment import OnFolds, Tell, silent
from exactrank.reproduce.finding import Check, Finding
from exactrank.reproduce.panels import Curve, Panel
from exactrank.table import Cell, Table

RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
SIGNIFICANT = 0.05
OURS, RIVALS = "structured NDCG", ("regression", "RankSVM")
ONE = "structured NDCG@10"  #: the model for k = 10, looked at by all k
METHODS = (OURS, *RIVALS, ONE)

Shape = Literal["linear", "sqrt"]


@dataclass(frozen=True, eq=False)
class Contest:
    """The three methods on one set."""

    name: str
    values: Mapping[str, Values]  #: by method: nDCG@k of each test query, a row a k
    bounds: Sequence[tuple[str, ...]]  #: that validation chose for each k, one a fold

    def mean(self, method: str) -> float:
        """Over k and test queries."""
        return float(self.values[method].mean())

    def p(self, rival: str) -> float:
        """(2)."""
        return signed_rank(self.values[OURS].sum(axis=0), self.values[rival].sum(axis=0))

    def checks(self) -> list[Check]:
        """Ahead of each rival, and not by chance."""
        ahead, surely = f"{self.name}: {OURS} is above {{}} (mean of nDCG@1 to 10)", f"{self.name}: not by chance, against {{}} (p)"
        means = [Check(ahead.format(rival), self.mean(rival), self.mean(OURS)) for rival in RIVALS]
        return means + [Check(surely.format(rival), self.p(rival), SIGNIFICANT) for rival in RIVALS]

    def table(self) -> Table:
        """By k, and over all."""
        means = np.stack([self.values[method].mean(axis=1) for method in METHODS], axis=1).tolist()
        rows: list[list[Cell]] = [[m, *at_k, _counted(bounds)] for m, at_k, bounds in zip(MEASURES, means, self.bounds, strict=True)]
        p = [f"p = {self.p(rival):.2g}" for rival in RIVALS]
        last: list[list[Cell]] = [["mean", *map(self.mean, METHODS), ""], ["ahead of it", "", *p, "", ""]]
        return Table(f"{self.name}, test data", ("measure", *METHODS, "bound"), rows + last)

    def panel(self) -> Panel:
        """By k."""
        curves = (Curve(method, RANKS, tuple(self.values[method].mean(axis=1).tolist())) for method in METHODS)
        return Panel(self.name, "k", "nDCG@k, test data", tuple(curves))

    def said(self) -> str:
        """In plain words."""
        gains = (f"{self.mean(OURS) / self.mean(rival) - 1:+.1%} on {rival} (p = {self.p(rival):.2g})" for rival in RIVALS)
        return f"{self.name}: over all k {OURS} gains {' and '.join(gains)}."


@dataclass(frozen=True, kw_only=True)
class StructuredNDCG(OnFolds, full={"features": 300, "web_1": (900, 300, 300), "web_2": (1_000, 1_000, 1_000)}):
    """Both web search sets, of ``documents`` a query in the second and two thirds as many in the first; or the folds in ``data``."""

    paper = "Chapelle, Le & Smola 2007"
    where = "Figure 2 (left and centre)"
    published = (
        "On two sets from web search structured NDCG gains about 2% of NDCG@1 to NDCG@10 on regression and on RankSVM."
        " P-values are 3% and 7% on the first set, below 1% on the second."
    )

    web_1: Sizes = (450, 300, 300)
    web_2: Sizes = (500, 1_000, 1_000)
    bound: Literal["auto", "convex", "ramp"] = "auto"

    @property
    def stages(self) -> int:
        return len(RANKS) * (sum(len(folds) for _, folds in self.given) or 2)

    def run(self, tell: Tell = silent) -> Finding:
        contests = [self._contest(*given, tell) for given in self._sets()]
        said, checks = (each.said() for each in contests), (each.checks() for each in contests)
        return self._finding(said, checks, (each.table() for each in contests), (each.panel() for each in contests))

    def _sets(self) -> list[tuple[str, Shape, list[Fold]]]:
        if self.data:
            return [(name, "linear", folds) for name, folds in self.given]
        first = self._artificial("as web search 1", max(1, self.documents * 2 // 3), self.web_1)
        second = self._artificial("as web search 2", self.documents, self.web_2)
        return [(first.name, "linear", [first]), (second.name, "sqrt", [second])]

    def _artificial(self, name: str, documents: int, sizes: Sizes) -> Fold:
        return replace(correlated_parts(three_parts(self._source(documents), sizes), self.seed), name=name)

    def _contest(self, name: str, A: Shape, folds: Sequence[Fold], tell: Tell) -> Contest:
        """All folds as one."""
        each = [self._on(fold, A, tell) for fold in folds]
        values = {method: np.concatenate([one.values[method] for one in each], axis=1) for method in METHODS}
        return Contest(name, values, [tuple(bound for (bound,) in at_k) for at_k in zip(*(one.bounds for one in each), strict=True)])

    def _on(self, fold: Fold, A: Shape, tell: Tell) -> Contest:
        by_k = [self._trained(k, A, fold, tell) for k in RANKS]
        own = {method: [by_rank(rankers[method], fold)[i] for i, rankers in enumerate(by_k)] for method in (OURS, *RIVALS)}
        values = {method: np.stack(rows) for method, rows in own.items()} | {ONE: by_rank(by_k[-1][OURS], fold)}
        return Contest(fold.name, values, [(_bound(rankers[OURS]),) for rankers in by_k])

    def _trained(self, k: int, A: Shape, fold: Fold, tell: Tell) -> dict[str, Ranker]:
        measure = f"nDCG@{k}"
        tell(f"{fold.name}, {measure}")
        ours = StructuredRank(measure=measure, A=A, bound=self.bound, seed=self.seed, threads=self.threads)
        svm = RankSVM(measure=measure, loss="hinge", seed=self.seed, threads=self.threads)
        return {OURS: chosen([ours], fold, silent), "regression": regression(measure, fold), "RankSVM": chosen([svm], fold, silent)}


def regression(measure: str, fold: Fold) -> Ranker:
    """On the grades, with the ridge that is best on validation data."""
    return chosen((Ridge(measure=measure, l2=ridge) for ridge in RIDGES), fold, silent)


def by_rank(ranker: Ranker, fold: Fold) -> Values:
    """nDCG@k of each test query, a row a k."""
    return evaluate(MEASURES, fold.test, ranker.predict(fold.test), threads=ranker.threads).per_query


def signed_rank(ours: PerQuery, theirs: PerQuery) -> float:
    """(2).

    >>> signed_rank(np.arange(1.0, 7.0), np.zeros(6)), signed_rank(np.zeros(6), np.arange(1.0, 7.0)), signed_rank(np.ones(6), np.ones(6))
    (0.03125, 1.0, 1.0)
    """
    if np.array_equal(ours, theirs):
        return 1.0
    return min(1.0, 2 * float(wilcoxon(ours, theirs, alternative="greater").pvalue))


def _bound(ranker: Ranker) -> str:
    """That it was trained on."""
    return str(ranker.model_.training.get("chosen", {}).get("bound", ranker.get_params()["bound"]))


def _counted(bounds: Sequence[str]) -> str:
    """In words.

    >>> _counted(["convex", "convex"]), _counted(["ramp", "convex", "ramp"])
    ('convex', '2 ramp, 1 convex')
    """
    kinds = dict.fromkeys(bounds)
    return bounds[0] if len(kinds) == 1 else ", ".join(f"{bounds.count(kind)} {kind}" for kind in kinds)
