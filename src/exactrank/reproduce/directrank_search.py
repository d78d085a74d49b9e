"""DirectRank's search: order of the weights, consistency and starts (Tan, Xia, Guo & Wang 2013, sections 2.2, 2.5 and 3.3).

The weights are searched in turn (cyclic), or all are tried and the best step is taken (greedy): "the greedy approach shows no obvious
improvement compared to the cyclic way, and is much slower",

    nDCG of greedy - nDCG of cyclic < 1/200 on training data,    searches of greedy > searches of cyclic        (1)

Theorem 1: the largest NDCG of n queries converges to the largest expected NDCG. For models of the first n queries, of more and more, the
value on the training queries and that on many other queries must approach each other, and the latter rise,

    train_n - test_n falls,    test_n rises                                                                     (2)

"Our algorithm might not be that sensitive to the initial point, when the data is large enough": over models from random starts

    standard deviation / mean < 1/100,    and less than with a tenth of the training queries                    (3)

on test data. The sets are those of `exactrank.reproduce.directrank_linear`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from exactrank._support.tables import Table
from exactrank.data.folds import Fold
from exactrank.data.ranking_data import RankingData
from exactrank.rankers.directrank import DirectRank
from exactrank.reproduce.artificial import Sizes
from exactrank.reproduce.directrank_linear import MEASURE, AsYahoo
from exactrank.reproduce.experiment import MICROSOFT, SIZES, YAHOO, AsYahooAndMicrosoft, Experiment, Piece, Tell, fit_ranker
from exactrank.reproduce.finding import Inequality, Panel, curves

OBVIOUS = 0.005  #: of (1)
Order = Literal["cyclic", "greedy"]
STABLE = 0.01  #: of (3)
FEWER = 10  #: times fewer queries
#: Mean and standard deviation.
SECTION_3_3: Mapping[str, tuple[float, float]] = {YAHOO: (0.756, 0.0023), MICROSOFT: (0.457, 0.0026)}
ORDERS: tuple[Order, ...] = ("cyclic", "greedy")


@dataclass(frozen=True, kw_only=True)
class DirectRankOrder(AsYahoo, name="directrank-order", full={"features": 136, "queries": (19_944, 2_994, 6_983)}):
    """Both orders from the same ``starts``; a round of greedy tries all weights, and moves one."""

    features: int = 20
    queries: Sizes = (500, 250, 500)
    starts: int = 3

    def _pieces(self, tell: Tell) -> Iterator[Piece]:
        for name, folds in self._sets():
            means = {}
            for order in ORDERS:
                values = []
                for start in range(self.starts):
                    tell(f"{name}, {order}, start {start + 1}")
                    values += [self._search(order, fold, start) for fold in folds]
                means[order] = np.mean(values, axis=0).tolist()
            (cyclic, _, cyclic_searches), (greedy, _, greedy_searches) = means.values()
            says = f"{name}: greedy is no obvious improvement (training {MEASURE}, difference < {OBVIOUS:g})"
            yield Inequality(says, greedy - cyclic, OBVIOUS)
            yield Inequality(f"{name}: greedy is slower (line searches)", cyclic_searches, greedy_searches)
            yield f"{name}: greedy {greedy:.4f} after {greedy_searches:,.0f} searches, cyclic {cyclic:.4f} after {cyclic_searches:,.0f}."
            columns = ("order", "training", "test", "line searches")
            yield Table(f"{name}, {MEASURE}", columns, [[order, *numbers] for order, numbers in means.items()])
            series = curves({order: numbers[:2] for order, numbers in means.items()}, (1.0, 2.0))
            yield Panel(name, "training (1) and test data (2)", MEASURE, series)

    def _search(self, order: Order, fold: Fold, start: int) -> tuple[float, float, int]:
        """Return the values on training and test data, and the number of line searches."""
        weights, seed = fold.train.n_features, self.seed * self.starts + start
        rounds = 10 * weights if order == "greedy" else None
        ranker = DirectRank(measure=MEASURE, bags=0, start="random", order=order, max_iter=rounds, seed=seed, threads=self.threads)
        fit_ranker(ranker, fold.train)
        return ranker.score(fold.train), ranker.score(fold.test), ranker.history_[-1].step * weights


@dataclass(frozen=True, kw_only=True)
class DirectRankConsistency(Experiment, name="directrank-consistency", full={"train": (100, 1_000, 10_000, 100_000), "test": 20_000}):
    """Models of the first of each number of ``train`` queries, by one start, judged on ``test`` other queries."""

    features: int = 20
    documents: int = 24
    train: tuple[int, ...] = (30, 100, 300, 1_000, 3_000)
    test: int = 5_000

    def _pieces(self, tell: Tell) -> Iterator[Piece]:
        source, rows = self._source(noise=1.0), []
        test = source.data(self.test, max(self.train) + 1)
        for queries in self.train:
            tell(f"{queries:,} training queries")
            train, ranker = source.data(queries), DirectRank(measure=MEASURE, bags=0, seed=self.seed, threads=self.threads)
            fit_ranker(ranker, train)
            rows.append((queries, ranker.score(train), ranker.score(test)))
        for (fewer, train_value, test_value), (queries, next_train_value, next_test_value) in pairwise(rows):
            says = f"from {fewer:,} to {queries:,} training queries"
            yield Inequality(
                f"{says} training and test data approach each other", next_train_value - next_test_value, train_value - test_value
            )
            yield Inequality(f"{says} test data improves", test_value, next_test_value)
        yield "Training minus test data: " + ", ".join(f"{a - b:+.4f} with {n:,}" for n, a, b in rows) + " queries."
        yield Table(MEASURE, ("training queries", "training data", "test data"), rows)
        series = {"training data": [row[1] for row in rows], "test data": [row[2] for row in rows]}
        yield Panel("DirectRank", "training queries", MEASURE, curves(series, map(float, self.train)), log="x")


def start_checks(name: str, full_values: Sequence[float], tenth_values: Sequence[float]) -> list[Inequality]:
    """Return (3) for models from different starts, trained on all queries and on a tenth of them."""
    spread, wider = (float(np.std(values) / np.mean(values)) for values in (full_values, tenth_values))
    return [
        Inequality(f"{name}: the start matters little (standard deviation / mean < {STABLE:g})", spread, STABLE),
        Inequality(f"{name}: less than with a tenth of the queries (standard deviation / mean)", spread, wider),
    ]


@dataclass(frozen=True, kw_only=True)
class DirectRankStarts(AsYahooAndMicrosoft, name="directrank-starts", full=SIZES | {"features": 136, "starts": 100}):
    """``starts`` models of each set, or of the folds in ``data``."""

    yahoo: Sizes = (2_000, 500, 2_000)
    microsoft: Sizes = (1_000, 500, 2_000)
    starts: int = 8

    def _pieces(self, tell: Tell) -> Iterator[Piece]:
        rows = []
        for name, folds in self._sets():
            by_start = []
            for start in range(self.starts):
                values = []  # with all training queries and with few, and how many rounds the first took
                for fold in folds:
                    tell(f"{name}, start {start + 1}")
                    fewer = fold.train.take_queries(np.arange(max(1, fold.train.n_queries // FEWER)))
                    rankers = [self._train(train, fold.valid, start) for train in (fold.train, fewer)]
                    values.append([*(ranker.score(fold.test) for ranker in rankers), rankers[0].history_[-1].step])
                by_start.append(np.mean(values, axis=0).tolist())
            full_values, tenth_values, rounds = zip(*by_start, strict=True)
            yield from start_checks(name, full_values, tenth_values)
            ours, theirs = (f"{np.mean(values):.4f} +- {np.std(values):.4f}" for values in (full_values, tenth_values))
            yield f"{name}: {ours} with all training queries, {theirs} with a tenth; {np.mean(rounds):.0f} rounds on average."
            for queries, means, published in (("all", full_values, SECTION_3_3.get(name, ("", ""))), ("a tenth", tenth_values, ("", ""))):
                spread = float(np.mean(means)), float(np.std(means)), min(means), max(means)
                rows.append([name, queries, len(means), *spread, *published])
            series = curves({"all training queries": sorted(full_values), "a tenth": sorted(tenth_values)})
            yield Panel(name, "starts, from the worst to the best", f"{MEASURE}, test data", series)
        columns = ("set", "training queries", "starts", "mean", "standard deviation", "worst", "best", "mean, published", "sd, published")
        yield Table(f"{MEASURE}, test data", columns, rows)

    def _train(self, train: RankingData, valid: RankingData, start: int) -> DirectRank:
        ranker = DirectRank(measure=MEASURE, bags=0, start="random", seed=self.seed * self.starts + start, threads=self.threads)
        return fit_ranker(ranker, train, valid)
