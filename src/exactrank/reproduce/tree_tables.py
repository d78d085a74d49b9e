"""DirectRank with regression trees against MART and LambdaMART (Tan, Xia, Guo & Wang 2013, sections 2.4 and 3.2, Tables 9 and 10).

All three grow up to 1000 trees with the same number of leaves; validation data decides how many are kept. DirectRank's are MART's, fitted
to the residuals of the grades by least squares, each with a weight that the exact line search chooses,

    s <- s + alpha_t tree_t,    alpha_t = argmax of  nDCG@k(s + alpha tree_t)  in [0.1, 0.5]                    (1)

MART and LambdaMART take alpha_t = 0.1 (the paper does not state its rate). A constant alpha_t = 0.5, the longest step of (1), is the
control: what it gains as well comes from longer steps, not from searching them.

Their sets, 19 thousand queries of Yahoo with 23 documents each and 31 thousand of Microsoft with 72, are too large to include.
Here they are noisy cubic polynomials with as many documents per query and features that are not mixed, because trees split one feature at
a time; or ``data``: folders with Fold1, Fold2, ... as in Microsoft's set, whose test queries are pooled.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from exactrank._support.tables import Cell, Table
from exactrank.data.folds import Fold
from exactrank.models.tree_ensemble import TreeEnsemble
from exactrank.rankers.boosted import BoostedRanker
from exactrank.rankers.directrank_trees import DirectRankTrees
from exactrank.rankers.lambdamart import LambdaMART
from exactrank.rankers.mart import MART
from exactrank.reproduce.artificial import Sizes
from exactrank.reproduce.experiment import MICROSOFT, SIZES, YAHOO, AsYahooAndMicrosoft, Piece, Tell, Values, fitted, judged, signed_rank
from exactrank.reproduce.finding import Inequality, Panel, curves

MEASURES = ("nDCG@1", "nDCG@10")
LOW, HIGH = 0.1, 0.5
OURS, RIVALS, CONTROL = "DirectRank", ("MART", "LambdaMART"), f"MART, rate {HIGH}"
METHODS = (OURS, *RIVALS, CONTROL)

#: By set, leaves and method: NDCG@1 and NDCG@10.
PUBLISHED: Mapping[tuple[str, int, str], tuple[float, float]] = {
    (YAHOO, 10, "MART"): (0.7084, 0.7768),
    (YAHOO, 10, "LambdaMART"): (0.7167, 0.7791),
    (YAHOO, 10, OURS): (0.7199, 0.7810),
    (MICROSOFT, 10, "MART"): (0.4582, 0.4887),
    (MICROSOFT, 10, "LambdaMART"): (0.4602, 0.4943),
    (MICROSOFT, 10, OURS): (0.4894, 0.4985),
    (MICROSOFT, 30, "MART"): (0.4823, 0.4994),
    (MICROSOFT, 30, "LambdaMART"): (0.4830, 0.4997),
    (MICROSOFT, 30, OURS): (0.4917, 0.5055),
    (MICROSOFT, 50, "MART"): (0.4744, 0.5022),
    (MICROSOFT, 50, "LambdaMART"): (0.4883, 0.5006),
    (MICROSOFT, 50, OURS): (0.4911, 0.5061),
}


@dataclass(frozen=True, eq=False)
class GrownMethod:
    """One method with one number of leaves, trained on each of `MEASURES`."""

    values: Values  #: the measure of each test query, one row per measure
    trees: float  #: kept for nDCG@10, mean over folds
    climb: tuple[float, ...]  #: nDCG@10 on the first fold's validation data, after each tree
    weights: tuple[float, ...]  #: alpha_t of (1), of the trees that the first fold kept for nDCG@10


@dataclass(frozen=True, eq=False)
class Contest:
    """All methods with all numbers of leaves on one set."""

    name: str
    grown: Mapping[tuple[int, str], GrownMethod]  #: by leaves and method

    @property
    def leaves(self) -> tuple[int, ...]:
        """The maximum numbers of leaves, in ascending order."""
        return tuple(sorted({leaves for leaves, _ in self.grown}))

    def means(self, method: str) -> Values:
        """One row per measure, one column per number of leaves."""
        return np.stack([self.grown[leaves, method].values.mean(axis=1) for leaves in self.leaves], axis=1)

    @property
    def rivals(self) -> Values:
        """The means of the better of DirectRank's rivals."""
        return np.asarray(np.max([self.means(rival) for rival in RIVALS], axis=0))

    def checks(self) -> Iterator[Inequality]:
        """What the paper says about its tables, and a check against the control, which the paper does not have."""
        ours, rivals, control = self.means(OURS), self.rivals, self.means(CONTROL)
        for i, measure in enumerate(MEASURES):
            for j, leaves in enumerate(self.leaves):
                says = f"{self.name}, {leaves} leaves: {OURS} is above {' and '.join(RIVALS)} ({measure})"
                yield Inequality(says, rivals[i, j], ours[i, j])
            says = f"{self.name}, control: it is above {CONTROL} too ({measure}, mean over leaves)"
            yield Inequality(says, control[i].mean(), ours[i].mean())
        if len(self.leaves) == 1:
            return
        few, *_, most = self.leaves
        lead, *others = ours[0] - rivals[0]
        yield Inequality(f"{self.name}: its lead is largest with {few} leaves (nDCG@1)", max(others), lead)
        for rival in RIVALS:
            theirs = self.means(rival)[0]
            yield Inequality(f"{self.name}: {rival} improves from {few} to {most} leaves (nDCG@1)", theirs[0], theirs[-1])
            says = f"{self.name}: {OURS} changes less than {rival} with the leaves (nDCG@1, most - least)"
            yield Inequality(says, np.ptp(ours[0]), np.ptp(theirs))

    def table(self) -> Table:
        """By leaves and method."""
        rows: list[list[Cell]] = []
        for (leaves, method), grown in self.grown.items():
            cells: list[Cell] = []
            for ours, theirs in zip(self.grown[leaves, OURS].values, grown.values, strict=True):
                cells += [theirs.mean(), "" if method == OURS else f"{signed_rank(ours, theirs):.2g}"]
            rows.append([leaves, method, *cells, round(grown.trees), *PUBLISHED.get((self.name, leaves, method), ("", ""))])
        shown = [column for measure in MEASURES for column in (measure, "p, DirectRank better")]
        columns = ("leaves", "method", *shown, "trees", *(f"{measure}, published" for measure in MEASURES))
        return Table(f"{self.name}, test data", columns, rows)

    def panels(self) -> Iterator[Panel]:
        """By trees, and where there are several numbers of leaves, by leaves."""
        few = self.leaves[0]
        climbs = curves({method: self.grown[few, method].climb for method in METHODS})
        yield Panel(f"{self.name}, {few} leaves", "trees", f"{MEASURES[-1]}, validation data", climbs, log="x")
        weights = curves({OURS: self.grown[few, OURS].weights})
        yield Panel(f"{self.name}, {few} leaves, for {MEASURES[-1]}", "tree", "weight", weights)
        for i, measure in enumerate(MEASURES if len(self.leaves) > 1 else ()):
            drawn = curves({method: self.means(method)[i] for method in METHODS}, map(float, self.leaves))
            yield Panel(self.name, "leaves", f"{measure}, test data", drawn)

    def said(self) -> str:
        """In plain words."""
        ours, few = self.means(OURS), self.leaves[0]
        pairs = zip(MEASURES, (ours - self.rivals).mean(axis=1), (ours - self.means(CONTROL)).mean(axis=1), strict=True)
        leads = "; ".join(f"{measure} {lead:+.4f} and {control:+.4f}" for measure, lead, control in pairs)
        grown, mart = self.grown[few, OURS], self.grown[few, RIVALS[0]]
        return (
            f"{self.name}: {OURS} against the better of {' and '.join(RIVALS)}, and against {CONTROL}, mean over leaves: {leads}."
            f" With {few} leaves, for {MEASURES[-1]}, its mean weight is {np.mean(grown.weights):.2f},"
            f" and {_passing(mart.climb, grown.climb)}."
        )


@dataclass(frozen=True, kw_only=True)
class TreeTables(AsYahooAndMicrosoft, name="tree-tables", full=SIZES | {"trees": 1_000}):
    """All methods on both sets, or on the folds in ``data``; on Yahoo's with the fewest leaves."""

    where = "Tables 9 and 10"
    published = (
        "With trees DirectRank is above MART and LambdaMART on Yahoo's and on Microsoft's data, in NDCG@1 most clearly with few leaves."
        " With more leaves the other two improve in NDCG@1; DirectRank is more stable."
    )

    features: int = 20
    yahoo: Sizes = (6_000, 1_000, 2_000)
    microsoft: Sizes = (2_000, 1_000, 2_000)
    leaves: tuple[int, ...] = (10, 30, 50)
    trees: int = 300

    @property
    def stages(self) -> int:
        contests = len(self.given) * len(self.leaves) or len(self.leaves[:1]) + len(self.leaves)
        return len(METHODS) * contests

    def _found(self, tell: Tell) -> Iterator[Piece]:
        for name, folds in self._sets():
            grown = {}
            for leaves in self.leaves if self.data or name != YAHOO else self.leaves[:1]:
                for method in METHODS:
                    tell(f"{name}, {leaves} leaves, {method}")
                    each = [self._grown(method, leaves, fold) for fold in folds]
                    values, trees = np.concatenate([one.values for one in each], axis=1), float(np.mean([one.trees for one in each]))
                    grown[leaves, method] = GrownMethod(values, trees, each[0].climb, each[0].weights)
            contest = Contest(name, grown)
            yield contest.said()
            yield from contest.checks()
            yield contest.table()
            yield from contest.panels()

    def _grown(self, method: str, leaves: int, fold: Fold) -> GrownMethod:
        rankers = [fitted(self._ranker(method, measure, leaves), fold.train, fold.valid) for measure in MEASURES]
        values = np.stack([judged(ranker, fold.test, ranker.measure)[0] for ranker in rankers])
        weights = cast(TreeEnsemble, rankers[-1].model_.scorer).shrinkage.tolist()
        return GrownMethod(values, len(weights), tuple(progress.valid or 0.0 for progress in rankers[-1].history_), tuple(weights))

    def _ranker(self, method: str, measure: str, leaves: int) -> BoostedRanker:
        given: dict[str, Any] = {"measure": measure, "bags": 0, "shape": "best-first", "leaves": leaves, "depth": None, "bins": 255}
        given |= {"trees": self.trees, "patience": self.trees}
        given |= {"min_documents": 20, "min_curvature": 1e-3, "l2": 0.0, "feature_fraction": 1.0, "query_fraction": 1.0}
        given |= {"seed": self.seed, "threads": self.threads}
        if method == OURS:
            return DirectRankTrees(follow="grades", search="all", low=LOW, high=HIGH, smoothing=1.0, leverage=0, **given)
        if method == "LambdaMART":
            return LambdaMART(lambdas="logistic", neighbors=None, truncation=None, near=0.0, learning_rate=LOW, **given)
        return MART(within=False, learning_rate=HIGH if method == CONTROL else LOW, **given)


def _passing(mart: Sequence[float], ours: Sequence[float]) -> str:
    """The number of trees from which MART, at its best so far, is above DirectRank on validation data.

    >>> _passing([0.1, 0.3, 0.2, 0.5], [0.2, 0.2, 0.4, 0.1]), _passing([0.1, 0.2], [0.3])
    ('MART overtakes it at 4 trees (validation data)', 'MART does not overtake it (validation data)')
    """
    length = min(len(mart), len(ours))
    behind = np.flatnonzero(np.maximum.accumulate(mart[:length]) <= np.maximum.accumulate(ours[:length]))
    first = behind[-1] + 2 if behind.size else 1
    return f"MART {f'overtakes it at {first} trees' if first <= length else 'does not overtake it'} (validation data)"
