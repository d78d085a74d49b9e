"""Linear DirectRank against other linear methods on large sets (Tan, Xia, Guo & Wang 2013, sections 3.1.2 and 3.3, Tables 5 to 8 and 13).

DirectRank is as published: one weight after another, from random starts, the middle of the best interval, the best iterate of all starts
by validation data. LambdaRank follows its gradient from random weights, one update per query. SmoothGrad (Le & Smola 2007) is the convex
bound on the measure, solved by a bundle, with the strength and A(r) that are best on validation data. AdaRank is as published with one
exception: features may be taken with a negative sign, since those of artificial data have no natural direction. Coordinate ascent and
RankBoost are RankLib's, RankCosine is the variant consistent with NDCG. Those called ours have our defaults.

Their sets are too large to include (Table 5). Here they are noisy cubic polynomials with features that are not mixed, since half of the
methods move one weight at a time; or ``data``: folders with Fold1, Fold2, ..., whose test queries are pooled.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactrank._support.arrays import PerQuery
from exactrank._support.tables import Cell, Table
from exactrank.data.folds import Fold
from exactrank.rankers.adarank import AdaRank
from exactrank.rankers.base import Ranker
from exactrank.rankers.coordinate_ascent import CoordinateAscent
from exactrank.rankers.directrank import DirectRank
from exactrank.rankers.lambdarank import LambdaRank
from exactrank.rankers.rankboost import RankBoost
from exactrank.rankers.rankcosine import RankCosine
from exactrank.rankers.structuredrank import StructuredRank
from exactrank.reproduce.artificial import Sizes
from exactrank.reproduce.experiment import (
    MICROSOFT,
    PUBLISHED,
    SIZES,
    YAHOO,
    AsYahooAndMicrosoft,
    OnFolds,
    Piece,
    Tell,
    fit_ranker,
    query_values,
    signed_rank,
)
from exactrank.reproduce.finding import Curve, Inequality, Panel, curves

OURS, BAGS, STRONGER, RESTED = "DirectRank", "DirectRank, ours", "LambdaRank, ours", "AdaRank, ours"
CUT, LEVEL, FASTER, CLIMBER = f"{OURS}@10", "LambdaRank", "SmoothGrad", "coordinate ascent"
PARTS = ("training", "validation", "test")
MEASURE = "nDCG@10"
NEAR = 0.005  #: of (1) and (2)
NONE = float("nan")  #: what is not published
TABLES = {YAHOO: f"Table 6: {YAHOO}", MICROSOFT: f"Table 7: {MICROSOFT}"}

#: By set and method: NDCG@10 of each of `PARTS`.
LARGE: Mapping[str, Mapping[str, Sequence[float]]] = {
    name: {method: [NONE if value is None else value for value in row] for method, row in methods.items()}
    for name, methods in PUBLISHED["large sets"]["values"].items()
}
#: By set: features, training queries, documents, documents per query.
STATISTICS: Mapping[str, str] = {YAHOO: "519, 19k, 473k, about 23", MICROSOFT: "136, 31k, 2M, about 72"}
#: By measure and method, on test data; None is not published.
ERR_MAP: Mapping[str, Mapping[str, float | None]] = PUBLISHED["ERR and MAP"]["values"]
HOURS: Mapping[str, float] = PUBLISHED["hours"]["values"]


METHODS: Mapping[str, Callable[..., Ranker]] = {
    OURS: lambda starts, **s: DirectRank(bags=0, start="random", restarts=starts, **s),
    LEVEL: lambda starts, **s: LambdaRank(start="random", solver="sgd", l2=0.0, **s),
    FASTER: lambda starts, **s: StructuredRank(bound="convex", A="auto", solver="bundle", **s),
    "AdaRank": lambda starts, **s: AdaRank(rest=0, standardize=False, **s),
    CLIMBER: lambda starts, **s: CoordinateAscent(restarts=starts, **s),
    "RankBoost": lambda starts, **s: RankBoost(**s),
    "RankCosine": lambda starts, **s: RankCosine(consistent=True, **s),
    BAGS: lambda starts, **s: DirectRank(bags=20, **s),
    STRONGER: lambda starts, **s: LambdaRank(**s),
    RESTED: lambda starts, **s: AdaRank(**s),
}


@dataclass(frozen=True, eq=False)
class Entry:
    """The values of one method on one set."""

    means: tuple[float, ...]  #: of each of `PARTS`; over folds where there are several
    test: PerQuery  #: of all folds
    seconds: float  #: of training, on all cores together


Entries = Mapping[str, Entry]  #: by method


def entries(name: str, folds: Sequence[Fold], methods: Iterable[str], measure: str, tell: Tell, **settings: Any) -> Entries:
    """Return the results of ``methods`` on the set called ``name``; a number after ``@`` is a cutoff of the measure, in training only."""
    results = {}
    for method in methods:
        tell(f"{name}, {measure}, {method}")
        kind, at, cutoff = method.partition("@")
        seconds, values = 0.0, []
        for fold in folds:
            start = time.process_time()
            ranker = fit_ranker(METHODS[kind](measure=measure + at + cutoff, **settings), fold.train, fold.valid)
            seconds += time.process_time() - start
            values.append([query_values(ranker, part, measure)[0] for part in (fold.train, fold.valid, fold.test)])
        means = np.mean([[each.mean() for each in parts] for parts in values], axis=0)
        results[method] = Entry(tuple(means.tolist()), np.concatenate([test for *_, test in values]), seconds)
    return results


def describe(name: str, measure: str, results: Entries) -> Iterator[Piece]:
    """Yield a sentence with the methods from the best to the worst on test data, and a panel with each method on each of `PARTS`."""
    order = sorted(results, key=lambda method: -results[method].means[-1])
    yield f"{name}, test data, from the best to the worst: " + ", ".join(f"{m} {results[m].means[-1]:.4f}" for m in order) + "."
    series = curves({method: entry.means for method, entry in results.items()}, (1.0, 2.0, 3.0))
    yield Panel(name, "training (1), validation (2) and test data (3)", measure, series)


@dataclass(frozen=True, kw_only=True)
class DirectRankLarge(AsYahooAndMicrosoft, name="directrank-large", full=SIZES | {"features": 136, "starts": 20}):
    """The methods by nDCG@10 on both sets, with ``mixed`` features or not (`artificial.mix_features`), or on the folds in ``data``.

    Where a published mean of DirectRank is above that of another method, ours must be too; nothing is checked about our defaults; and

        | nDCG@10 of DirectRank - nDCG@10 of RankCosine | < 1/200   on Yahoo's test data                        (1)
    """

    mixed: bool = False
    starts: int = 2

    def _pieces(self, tell: Tell) -> Iterator[Piece]:
        sizes: list[list[Cell]] = []
        for name, folds in self._sets(mixed=self.mixed):
            results = entries(name, folds, METHODS, MEASURE, tell, starts=self.starts, seed=self.seed, threads=self.threads)
            yield from large_checks(name, results)
            yield from describe(name, MEASURE, results)
            rows: list[list[Cell]] = []
            for method, entry in results.items():
                p = "" if method == OURS else f"{signed_rank(results[OURS].test, entry.test):.2g}"
                theirs = LARGE.get(name, {}).get(method, (NONE,) * 3)
                rows.append([method, *entry.means, p, *("" if value != value else value for value in theirs)])
            yield Table(
                f"{TABLES.get(name, name)}, {MEASURE}",
                ("method", *PARTS, f"p, {OURS} better", *(f"{part}, published" for part in PARTS)),
                rows,
            )
            train = folds[0].train
            counts = train.n_features, train.n_queries, train.n_documents, train.n_documents / train.n_queries
            sizes.append([name, *counts, STATISTICS.get(name, "")])
        yield Table("Table 5: the sets", ("set", "features", "training queries", "documents", "documents per query", "published"), sizes)


def large_checks(name: str, results: Entries) -> Iterator[Inequality]:
    """Yield what the tables say; other sets are checked like Microsoft's."""
    tables = LARGE.get(name, LARGE[MICROSOFT])
    for i, part in enumerate(PARTS):
        for method, means in tables.items():
            if means[i] < tables[OURS][i]:
                yield Inequality(f"{name}: {OURS} is above {method} ({part} data)", results[method].means[i], results[OURS].means[i])
    if name == YAHOO:
        apart = abs(results[OURS].means[-1] - results["RankCosine"].means[-1])
        yield Inequality(f"{name}: RankCosine is level with {OURS} (test data, difference < {NEAR:g})", apart, NEAR)


@dataclass(frozen=True, kw_only=True)
class AsYahoo(OnFolds):
    """Noisy data like Yahoo's, with ``queries`` queries for training, validation and test; or the folds in ``data``."""

    documents: int = 24
    noise: float = 1.0
    queries: Sizes = (2_000, 1_000, 1_000)

    def _sets(self) -> list[tuple[str, list[Fold]]]:
        return self.folders or [(YAHOO, [self._fold(self.queries, noise=self.noise)])]


@dataclass(frozen=True, kw_only=True)
class DirectRankERRMAP(AsYahoo, name="directrank-err-map", full={"features": 136, "queries": SIZES["yahoo"], "starts": 20}):
    """Measures that count every rank, ERR and MAP, as they are or cut at rank 10 in training (DirectRank@10), which is to be level:

    | ERR of DirectRank - ERR of LambdaRank | < 1/200   on test data                                        (2)
    """

    features: int = 30
    queries: Sizes = (800, 400, 1_000)
    starts: int = 1

    def _pieces(self, tell: Tell) -> Iterator[Piece]:
        for name, folds in self._sets():
            for measure, methods in ERR_MAP.items():
                results = entries(name, folds, methods, measure, tell, starts=self.starts, seed=self.seed, threads=self.threads)
                yield from err_map_checks(name, measure, results)
                yield from describe(f"{name}, {measure}", measure, results)
                rows: list[list[Cell]] = []
                for method, theirs in methods.items():
                    rows.append([method, *results[method].means, theirs if name == YAHOO and theirs is not None else ""])
                yield Table(f"Table 8: {name}, {measure}", ("method", *PARTS, "test, published"), rows)


def err_map_checks(name: str, measure: str, results: Entries) -> Iterator[Inequality]:
    """Above all except LambdaRank, and level with that; cut at rank 10, above coordinate ascent."""
    test = {method: entry.means[-1] for method, entry in results.items()}
    for ours, rival in ((OURS, "AdaRank"), (OURS, CLIMBER), (OURS, "RankBoost"), (CUT, CLIMBER)):
        yield Inequality(f"{name}: {ours} is above {rival} ({measure}, test data)", test[rival], test[ours])
    if measure == "ERR":
        apart = abs(test[OURS] - test[LEVEL])
        yield Inequality(f"{name}: {LEVEL} is level with {OURS} ({measure}, test data, difference < {NEAR:g})", apart, NEAR)


@dataclass(frozen=True, kw_only=True)
class DirectRankTimes(AsYahoo, name="directrank-times", full={"features": 136, "queries": SIZES["yahoo"]}):
    """The times of training, on one thread, from one start: SmoothGrad is faster than DirectRank, and the others are slower."""

    threads: int | None = 1

    def _pieces(self, tell: Tell) -> Iterator[Piece]:
        for name, folds in self._sets():
            results = entries(name, folds, HOURS, MEASURE, tell, starts=1, seed=self.seed, threads=self.threads)
            seconds = {method: entry.seconds for method, entry in results.items()}
            yield from times_checks(name, seconds)
            order = sorted(seconds, key=lambda method: seconds[method])
            yield f"{name}, from the fastest to the slowest: " + ", ".join(f"{m} {seconds[m]:.2g} s" for m in order) + "."
            rows = [(m, t, t / seconds[OURS], HOURS[m] / HOURS[OURS], results[m].means[-1]) for m, t in seconds.items()]
            columns = ("method", "seconds", f"relative to {OURS}", "relative, published", f"{MEASURE}, test data")
            yield Table(f"Table 13: {name}, one thread", columns, rows)
            # one line per method: what its time buys
            series = [Curve(method, (entry.seconds,) * 2, entry.means[::2]) for method, entry in results.items()]
            yield Panel(name, "seconds of training", f"{MEASURE}, training and test data", series, log="x")


def times_checks(name: str, seconds: Mapping[str, float]) -> Iterator[Inequality]:
    """The published order."""
    yield Inequality(f"{name}: {FASTER} is faster than {OURS} (seconds)", seconds[FASTER], seconds[OURS])
    for method in HOURS:
        if method not in (OURS, FASTER):
            yield Inequality(f"{name}: {OURS} is faster than {method} (seconds)", seconds[OURS], seconds[method])
