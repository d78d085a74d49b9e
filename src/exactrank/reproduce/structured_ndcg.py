"""Structured NDCG against regression and RankSVM (Chapelle, Le & Smola 2007, sections 5.1 and 5.2, Figure 2).

Linear models, one for each k from 1 to 10. All three methods choose their settings by nDCG@k on validation data: structured NDCG
its strength, and the convex bound or the ramp; regression on the grades its ridge; RankSVM its strength. For test query q

    S_q = nDCG@1 + ... + nDCG@10                                                                                (1)
    p   = 2 P(rank sum of S_q - S'_q is as large by chance), at most 1                                          (2)

(2) is the two-sided p-value of Wilcoxon's signed-rank test where structured NDCG is better than the other, and 1 where it is worse.

Their sets are from web search: about 1,500 queries with 33 documents each, split 3:1:1, with A(r) = max(k + 1 - r, 0); and 1,000
queries each for training, validation and test, with 50 documents, with A(r) = 1/sqrt(r). Neither is public. Here they are artificial
data of these sizes with mixed features (`artificial.correlated`), or ``data``: folders with Fold1, Fold2, ... as in LETOR, whose
test queries are pooled.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from exactrank._support.tables import Cell, Table
from exactrank.data.folds import Fold
from exactrank.rankers.base import Ranker
from exactrank.rankers.ranksvm import RankSVM
from exactrank.rankers.ridge import Ridge
from exactrank.rankers.structuredrank import StructuredRank
from exactrank.reproduce.artificial import Sizes
from exactrank.reproduce.experiment import MEASURES, RANKS, OnFolds, Piece, Tell, Values, chosen, fitted, judged, signed_rank
from exactrank.reproduce.finding import Inequality, Panel, curves

RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
SIGNIFICANT = 0.05
OURS, RIVALS = "structured NDCG", ("regression", "RankSVM")
ONE = "structured NDCG@10"  #: the model for k = 10, evaluated at all k
METHODS = (OURS, *RIVALS, ONE)

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
        """Significantly better than each rival."""
        ahead, surely = f"{self.name}: {OURS} is above {{}} (mean of nDCG@1 to 10)", f"{self.name}: significantly above {{}} (p)"
        means = [Inequality(ahead.format(rival), self.mean(rival), self.mean(OURS)) for rival in RIVALS]
        return means + [Inequality(surely.format(rival), self.p(rival), SIGNIFICANT) for rival in RIVALS]

    def shown(self, bounds: Sequence[str]) -> Iterator[Piece]:
        """Everything except the inequalities; ``bounds`` are those that validation chose, one per k."""
        p = {rival: f"p = {self.p(rival):.2g}" for rival in RIVALS}
        gains = (f"{self.mean(OURS) / self.mean(rival) - 1:+.1%} over {rival} ({p[rival]})" for rival in RIVALS)
        yield f"{self.name}: over all k {OURS} gains {' and '.join(gains)}."
        by_k = {method: self.values[method].mean(axis=1).tolist() for method in METHODS}
        rows: list[list[Cell]] = [list(row) for row in zip(MEASURES, *by_k.values(), bounds, strict=True)]
        rows += [["mean", *map(self.mean, METHODS), ""], [f"{OURS} better", "", *p.values(), "", ""]]
        yield Table(f"{self.name}, test data", ("measure", *METHODS, "bound"), rows)
        yield Panel(self.name, "k", "nDCG@k, test data", curves(by_k))


@dataclass(frozen=True, kw_only=True)
class StructuredNDCG(OnFolds, name="structured-ndcg", full={"features": 300, "web_1": (900, 300, 300), "web_2": (1_000, 1_000, 1_000)}):
    """Both web search sets, with ``documents`` per query in the second and two thirds as many in the first; or the folds in ``data``."""

    paper = "Chapelle, Le & Smola 2007"
    where = "Figure 2 (left and center)"
    published = (
        "On two sets from web search structured NDCG gains about 2% of NDCG@1 to NDCG@10 over regression and RankSVM."
        " P-values are 3% and 7% on the first set, below 1% on the second."
    )

    web_1: Sizes = (450, 300, 300)
    web_2: Sizes = (500, 1_000, 1_000)
    bound: Literal["auto", "convex", "ramp"] = "auto"

    @property
    def stages(self) -> int:
        return len(RANKS) * (sum(len(folds) for _, folds in self.given) or 2)

    def _found(self, tell: Tell) -> Iterator[Piece]:
        sets: list[tuple[str, Shape, list[Fold]]] = [(name, "linear", folds) for name, folds in self.given]
        if not self.data:
            first = self._fold(self.web_1, mixed=True, documents=max(1, self.documents * 2 // 3))
            sets += [("as web search 1", "linear", [replace(first, name="as web search 1")])]
            sets += [("as web search 2", "sqrt", [replace(self._fold(self.web_2, mixed=True), name="as web search 2")])]
        for name, A, folds in sets:
            values: dict[str, list[Values]] = {method: [] for method in METHODS}
            bounds: list[list[str]] = [[] for _ in RANKS]
            for fold in folds:
                by_k = [self._trained(k, A, fold, tell) for k in RANKS]
                for method in (OURS, *RIVALS):
                    values[method].append(np.stack([judged(rankers[method], fold.test)[i] for i, rankers in enumerate(by_k)]))
                values[ONE].append(judged(by_k[-1][OURS], fold.test))
                for each, rankers in zip(bounds, by_k, strict=True):
                    choice = rankers[OURS].model_.training.get("chosen", {})
                    each.append(str(choice.get("bound", self.bound)))
            contest = BoundContest(name, {method: np.concatenate(each, axis=1) for method, each in values.items()})
            yield from contest.checks()
            yield from contest.shown([_counted(each) for each in bounds])

    def _trained(self, k: int, A: Shape, fold: Fold, tell: Tell) -> dict[str, Ranker]:
        measure = f"nDCG@{k}"
        tell(f"{fold.name}, {measure}")
        ours = StructuredRank(measure=measure, A=A, bound=self.bound, seed=self.seed, threads=self.threads)
        svm = RankSVM(measure=measure, loss="hinge", seed=self.seed, threads=self.threads)
        ours, svm = (fitted(ranker, fold.train, fold.valid) for ranker in (ours, svm))
        return {OURS: ours, "regression": regression(measure, fold), "RankSVM": svm}


def regression(measure: str, fold: Fold) -> Ranker:
    """On the grades, with the ridge that is best on validation data."""
    return chosen((Ridge(measure=measure, l2=ridge) for ridge in RIDGES), fold)


def _counted(bounds: Sequence[str]) -> str:
    """In words.

    >>> _counted(["convex", "convex"]), _counted(["ramp", "convex", "ramp"])
    ('convex', '2 ramp, 1 convex')
    """
    kinds = dict.fromkeys(bounds)
    return bounds[0] if len(kinds) == 1 else ", ".join(f"{bounds.count(kind)} {kind}" for kind in kinds)
