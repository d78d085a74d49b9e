"""DirectRank with regression trees against MART and LambdaMART (Tan, Xia, Guo & Wang 2013, sections 2.4 and 3.2, Tables 9 and 10).

All three grow up to 1000 trees with the same number of leaves; validation data decides how many are kept. DirectRank's are MART's, fitted
to the residuals of the grades by least squares, each with a weight that the exact line search chooses,

    s <- s + alpha_t tree_t,    alpha_t = argmax of  nDCG@k(s + alpha tree_t), clipped to [0.1, 0.5]            (1)

MART and LambdaMART take alpha_t = 0.1 (the paper does not state its rate). A constant alpha_t = 0.5, the longest step of (1), is the
control: what it gains as well comes from longer steps, not from searching them. *Within* is the argmax in [0.1, 0.5].

Here the sets are noisy cubic polynomials with features that are not mixed, because trees split one feature at a time; or ``data``: folders
with Fold1, Fold2, ..., whose test queries are pooled.
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
from exactrank.reproduce.experiment import (
    MICROSOFT,
    PUBLISHED,
    SIZES,
    YAHOO,
    AsYahooAndMicrosoft,
    Piece,
    Tell,
    Values,
    fit_ranker,
    query_values,
    signed_rank,
)
from exactrank.reproduce.finding import Inequality, Panel, curves

MEASURES = ("nDCG@1", "nDCG@10")
LOW, HIGH = 0.1, 0.5
OURS, RIVALS, CONTROL = "DirectRank", ("MART", "LambdaMART"), f"MART, rate {HIGH}"
WITHIN = f"{OURS}, within"
METHODS = (OURS, *RIVALS, CONTROL, WITHIN)
TABLES = {YAHOO: f"Table 9: {YAHOO}", MICROSOFT: f"Table 10: {MICROSOFT}"}

#: By set, leaves and method: NDCG@1 and NDCG@10.
TABLES_9_AND_10: Mapping[tuple[str, int, str], Sequence[float]] = {
    (name, leaves, method): values for name, leaves, method, *values in PUBLISHED["trees"]["values"]
}


@dataclass(frozen=True, eq=False)
class GrownMethod:
    """The results of one method with one number of leaves, trained on each of `MEASURES`."""

    values: Values  #: the measure of each test query, one row per measure
    trees: float  #: kept for nDCG@10, mean over folds
    climb: tuple[float, ...]  #: nDCG@10 on the first fold's validation data, after each tree
    weights: tuple[float, ...]  #: alpha_t of (1), of the trees that the first fold kept for nDCG@10


@dataclass(frozen=True, eq=False)
class Contest:
    """The methods with all numbers of leaves on one set."""

    name: str
    grown: Mapping[tuple[int, str], GrownMethod]  #: by leaves and method

    @property
    def leaves(self) -> tuple[int, ...]:
        """The maximum numbers of leaves, in ascending order."""
        return tuple(sorted({leaves for leaves, _ in self.grown}))

    def means(self, method: str) -> Values:
        """The means, in one row per measure and one column per number of leaves."""
        return np.stack([self.grown[leaves, method].values.mean(axis=1) for leaves in self.leaves], axis=1)

    @property
    def rivals(self) -> Values:
        """The means of the better of DirectRank's rivals."""
        return np.asarray(np.max([self.means(rival) for rival in RIVALS], axis=0))

    def checks(self) -> Iterator[Inequality]:
        """Yield what the paper says about its tables, and a check against the control, which the paper does not have."""
        ours, rivals, control = self.means(OURS), self.rivals, self.means(CONTROL)
        for i, measure in enumerate(MEASURES):
            for j, leaves in enumerate(self.leaves):
                says = f"{self.name}, {leaves} leaves: {OURS} is above {' and '.join(RIVALS)} ({measure})"
                yield Inequality(says, rivals[i, j], ours[i, j])
            says = f"{self.name}, control: it is above {CONTROL} too ({measure}, mean over leaves)"
            yield Inequality(says, control[i].mean(), ours[i].mean())
        if len(self.leaves) == 1:
            return
        first, *_, last = self.leaves
        lead, *later_leads = ours[0] - rivals[0]
        yield Inequality(f"{self.name}: its lead is largest with {first} leaves (nDCG@1)", max(later_leads), lead)
        for rival in RIVALS:
            theirs = self.means(rival)[0]
            yield Inequality(f"{self.name}: {rival} improves from {first} to {last} leaves (nDCG@1)", theirs[0], theirs[-1])
            says = f"{self.name}: {OURS} changes less than {rival} with the leaves (nDCG@1, most - least)"
            yield Inequality(says, np.ptp(ours[0]), np.ptp(theirs))

    def table(self) -> Table:
        """The means by leaves and method."""
        rows: list[list[Cell]] = []
        for (leaves, method), grown in self.grown.items():
            cells: list[Cell] = []
            for ours, theirs in zip(self.grown[leaves, OURS].values, grown.values, strict=True):
                cells += [theirs.mean(), "" if method == OURS else f"{signed_rank(ours, theirs):.2g}"]
            rows.append([leaves, method, *cells, round(grown.trees), *TABLES_9_AND_10.get((self.name, leaves, method), ("", ""))])
        titles = [column for measure in MEASURES for column in (measure, "p, DirectRank better")]
        columns = ("leaves", "method", *titles, "trees", *(f"{measure}, published" for measure in MEASURES))
        return Table(f"{TABLES.get(self.name, self.name)}, test data", columns, rows)

    def panels(self) -> Iterator[Panel]:
        """Yield the values by trees, and where there are several numbers of leaves, by leaves."""
        first = self.leaves[0]
        climbs = curves({method: self.grown[first, method].climb for method in METHODS})
        yield Panel(f"{self.name}, {first} leaves", "trees", f"{MEASURES[-1]}, validation data", climbs, log="x")
        weights = curves({OURS: self.grown[first, OURS].weights})
        yield Panel(f"{self.name}, {first} leaves, for {MEASURES[-1]}", "tree", "weight", weights)
        for i, measure in enumerate(MEASURES if len(self.leaves) > 1 else ()):
            series = curves({method: self.means(method)[i] for method in METHODS}, map(float, self.leaves))
            yield Panel(self.name, "leaves", f"{measure}, test data", series)

    def sentence(self) -> str:
        """The leads in one sentence."""
        ours, first = self.means(OURS), self.leaves[0]
        pairs = zip(MEASURES, (ours - self.rivals).mean(axis=1), (ours - self.means(CONTROL)).mean(axis=1), strict=True)
        leads = "; ".join(f"{measure} {lead:+.4f} and {control:+.4f}" for measure, lead, control in pairs)
        grown, mart = self.grown[first, OURS], self.grown[first, RIVALS[0]]
        return (
            f"{self.name}: {OURS} against the better of {' and '.join(RIVALS)}, and against {CONTROL}, mean over leaves: {leads}."
            f" With {first} leaves, for {MEASURES[-1]}, its mean weight is {np.mean(grown.weights):.2f},"
            f" and {_passing(mart.climb, grown.climb)}."
        )


@dataclass(frozen=True, kw_only=True)
class TreeTables(AsYahooAndMicrosoft, name="tree-tables", full=SIZES | {"trees": 1_000}):
    """The methods on both sets, or on the folds in ``data``; on Yahoo's with the fewest leaves."""

    features: int = 20
    yahoo: Sizes = (6_000, 1_000, 2_000)
    microsoft: Sizes = (2_000, 1_000, 2_000)
    leaves: tuple[int, ...] = (10, 30, 50)
    trees: int = 300

    def _pieces(self, tell: Tell) -> Iterator[Piece]:
        for name, folds in self._sets():
            grown = {}
            for leaves in self.leaves if self.data or name != YAHOO else self.leaves[:1]:
                for method in METHODS:
                    tell(f"{name}, {leaves} leaves, {method}")
                    models = [self._grow(method, leaves, fold) for fold in folds]
                    values, trees = np.concatenate([m.values for m in models], axis=1), float(np.mean([m.trees for m in models]))
                    grown[leaves, method] = GrownMethod(values, trees, models[0].climb, models[0].weights)
            contest = Contest(name, grown)
            yield contest.sentence()
            yield from contest.checks()
            yield contest.table()
            yield from contest.panels()

    def _grow(self, method: str, leaves: int, fold: Fold) -> GrownMethod:
        rankers = [fit_ranker(self._ranker(method, measure, leaves), fold.train, fold.valid) for measure in MEASURES]
        values = np.stack([query_values(ranker, fold.test, ranker.measure)[0] for ranker in rankers])
        weights = cast(TreeEnsemble, rankers[-1].model_.scorer).shrinkage.tolist()
        return GrownMethod(values, len(weights), tuple(progress.valid or 0.0 for progress in rankers[-1].history_), tuple(weights))

    def _ranker(self, method: str, measure: str, leaves: int) -> BoostedRanker:
        settings: dict[str, Any] = {"measure": measure, "bags": 0, "shape": "best-first", "leaves": leaves, "depth": None, "bins": 255}
        settings |= {"trees": self.trees, "patience": self.trees}
        settings |= {"min_documents": 20, "min_curvature": 1e-3, "l2": 0.0, "feature_fraction": 1.0, "query_fraction": 1.0}
        settings |= {"seed": self.seed, "threads": self.threads}
        if method in (OURS, WITHIN):
            return DirectRankTrees(
                clip=method == OURS, follow="grades", search="all", low=LOW, high=HIGH, smoothing=1.0, leverage=0, **settings
            )
        if method == "LambdaMART":
            return LambdaMART(lambdas="logistic", neighbors=None, truncation=None, near=0.0, learning_rate=LOW, **settings)
        return MART(within=False, learning_rate=HIGH if method == CONTROL else LOW, **settings)


def _passing(mart: Sequence[float], ours: Sequence[float]) -> str:
    """The number of trees from which MART, at its best so far, is above DirectRank on validation data.

    >>> _passing([0.1, 0.3, 0.2, 0.5], [0.2, 0.2, 0.4, 0.1]), _passing([0.1, 0.2], [0.3])
    ('MART overtakes it at 4 trees (validation data)', 'MART does not overtake it (validation data)')
    """
    length = min(len(mart), len(ours))
    behind = np.flatnonzero(np.maximum.accumulate(mart[:length]) <= np.maximum.accumulate(ours[:length]))
    first = behind[-1] + 2 if behind.size else 1
    return f"MART {f'overtakes it at {first} trees' if first <= length else 'does not overtake it'} (validation data)"
