"""Jumping points of the exact line search: a worked example, and how many a query has (Tan, Xia, Guo & Wang 2013, sections 2.2 and 3.3).

The example (Figure 1, Tables 1 and 2) has two queries of five documents, with the grades 1 2 0 1 2 and 0 0 2 1 1, and NDCG@3 along one
weight. Each document is a line

    s_j(alpha) = a_j alpha + b_j                                                                                (1)

and where the order of the first three changes there is a jumping point: p_1 .. p_5 of the first query, p_6 .. p_12 of the second.
The figure gives no numbers for its lines. `LINES` are some that cross in the order of both tables, with p_3 and p_10 next to each
other and NDCG@3 largest between p_3 and p_5, as the text says. Everything else follows. Ranks there begin at 0, with a discount of
1 / log2(1 + rank), so the first two count equally, as in LETOR.

On HP2003 and HP2004, whose queries have about 1,000 documents, they counted the points where the first 5 documents change along the
weight of the first feature, with the first m documents of each query (Table 12; `exactrank.inspect.jumping_points`). From m = 50 to 1,000

    the mean number rises by less than a factor of 2,    and from 500 to 1,000 by less than 1/10                (2)

("mildly increase, and converge"). All other weights are random, several times; the data is artificial, independent and mixed
(`artificial.mix_features`), or ``data``, without the queries that have fewer documents than the largest m.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from exactrank._support.numerics import log2, matmul, standard_normal
from exactrank._support.tables import Cell, Table
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError
from exactrank.inspect.jumping_points import jumping_points
from exactrank.learning.objectives.profile import line_search, profile
from exactrank.learning.objectives.step_function import StepFunction
from exactrank.measures.parse import parse_measure
from exactrank.reproduce.artificial import mix_features
from exactrank.reproduce.experiment import PUBLISHED, Experiment, OnFolds, Piece, Tell
from exactrank.reproduce.finding import Inequality, Panel, curves

K = 3
MEASURE = parse_measure(f"nDCG@{K}", "letor")
EXACT = 5e-4  #: published values have three decimals
COUNTED = "nDCG@5"
MILD, CONVERGED = 2.0, 1.1  #: of (2)
TABLE_12: Mapping[str, Sequence[float]] = PUBLISHED["jumping points"]["values"]
SIZES = (50, 100, 200, 500, 1000)  #: of the published counts


@dataclass(frozen=True, eq=False)
class Lines:
    """A query of the example."""

    grades: tuple[int, ...]
    a: tuple[float, ...]  #: slopes of (1)
    b: tuple[float, ...]
    first: int  #: the number of its first jumping point
    published: tuple[str, ...]  #: the documents in order, from left to right

    @property
    def data(self) -> RankingData:
        """The query alone."""
        return RankingData.from_arrays(None, self.grades, group=[len(self.grades)])

    def profile(self) -> StepFunction:
        """NDCG@3 along the weight."""
        return profile(self.data, self.b, self.a, MEASURE)

    def order(self, alpha: float) -> list[int]:
        """The documents by their scores."""
        return list(np.argsort(-(np.array(self.a) * alpha + np.array(self.b)), kind="stable"))

    def points(self) -> list[float]:
        """The jumping points, by looking at the order on both sides of each point where two lines meet."""
        a, b = np.array(self.a), np.array(self.b)
        i, j = np.triu_indices(len(a), 1)
        meet = a[i] != a[j]
        at = np.unique((b[j] - b[i])[meet] / (a[i] - a[j])[meet])
        between = [at[0] - 1, *((at[1:] + at[:-1]) / 2), at[-1] + 1]
        tops = [self.order(alpha)[:K] for alpha in between]
        return [float(p) for p, before, after in zip(at, tops[:-1], tops[1:], strict=True) if before != after]

    def columns(self) -> list[str]:
        """The documents in order, as the published tables list them."""
        points = self.points()
        orders = [self.order(points[0] - 1)]
        for low, high in zip(points, [*points[1:], points[-1] + 2], strict=True):
            column = orders[-1].copy()
            for rank, document in enumerate(self.order((low + high) / 2)[:K]):
                place = column.index(document)
                column[rank], column[place] = column[place], column[rank]
            orders.append(column)
        return ["".join(str(document + 1) for document in order) for order in orders]


LINES: Mapping[str, Lines] = {
    "q1": Lines((1, 2, 0, 1, 2), (-0.5, 0, 0, 0, 1), (9, 8, 4, 1, 0), 1, ("12345", "21345", "21543", "25143", "52143", "52341")),
    "q2": Lines(
        (0, 0, 2, 1, 1), (-8, 0, 0, 2, 1), (16, 12, 4, -2, -8), 6,
        ("12345", "21345", "23145", "23415", "24315", "42315", "42513", "45213"),
    ),
}  # fmt: skip
BEST = "p3", "p5"  #: NDCG@3 is largest between them
BEFORE, AFTER = 0.889, 1.0  #: NDCG@3 of the first query, before p3 and after it


@dataclass(frozen=True, kw_only=True)
class LineSearchExample(Experiment, name="line-search-example"):
    """The example; it has one size, and nothing in it is random."""

    def _pieces(self, tell: Tell) -> Iterator[Piece]:
        tell("exact line search of two queries")
        points = {f"p{lines.first + i}": p for lines in LINES.values() for i, p in enumerate(lines.points())}
        ends = min(points.values()) - 1, max(points.values()) + 1
        yield from checks_of(LINES)
        for name, lines in LINES.items():
            columns, f = lines.columns(), lines.profile()
            rows: list[list[Cell]] = [[str(rank), *(f"d{name[1]}{column[rank]}" for column in columns)] for rank in range(5)]
            rows.append(["NDCG@3", f(lines.points()[0] - 1), *(f(p + 1e-9) for p in lines.points())])
            numbers = range(lines.first, lines.first + len(columns) - 1)
            yield Table(f"Table {name[1]}: documents of {name}", ("rank", f"< p{lines.first}", *(f"> p{i}" for i in numbers)), rows)
            lines_by_document = {
                f"d{name[1]}{i}": (a * ends[0] + b, a * ends[1] + b) for i, (a, b) in enumerate(zip(lines.a, lines.b, strict=True), 1)
            }
            yield Panel(name, "alpha", "score", curves(lines_by_document, ends))
        mean, order = (LINES["q1"].profile() + LINES["q2"].profile()) * 0.5, sorted(points, key=lambda name: points[name])
        best = mean.best()
        low, high = (min(points, key=lambda name: abs(points[name] - end)) for end in (best.low, best.high))
        yield f"From left to right there are {', '.join(order)}; NDCG@3 is largest, {best.value:.4f}, between {low} and {high}."
        merged = [(name, points[name], mean(points[name] - 1e-9), mean(points[name] + 1e-9)) for name in order]
        yield Table("Both queries", ("jumping point", "alpha", "NDCG@3 before", "NDCG@3 after"), merged)
        x = np.linspace(*ends, 800)
        yield Panel("NDCG@3", "alpha", "NDCG@3, mean of both queries", curves({"both queries": mean(x)}, x))


def checks_of(queries: Mapping[str, Lines]) -> Iterator[Inequality]:
    """Yield what the paper says about the example."""
    for name, lines in queries.items():
        count = int(jumping_points(lines.data, lines.b, lines.a, MEASURE)[0])
        yield Inequality(f"{name}: as many jumping points as published (difference < 1)", abs(count - len(lines.published) + 1), 1)
        unlike = sum(a != b for a, b in zip_longest("".join(lines.columns()), "".join(lines.published)))
        yield Inequality(f"{name}: the documents are in the published order (cells that differ < 1)", unlike, 1)
    first, second = queries.values()
    _, before, low, _, high, *_ = first.points()
    for value, at, when in ((BEFORE, before, "before"), (AFTER, low, "after")):
        says = f"q1: NDCG@3 right {when} p3 is {value:g} (difference < {EXACT:g})"
        yield Inequality(says, abs(first.profile()(at + 1e-9) - value), EXACT)
    data = RankingData.from_arrays(None, (*first.grades, *second.grades), group=[5, 5])
    interval = line_search(data, (*first.b, *second.b), (*first.a, *second.a), MEASURE).interval
    off = max(abs(interval.low - low), abs(interval.high - high))
    yield Inequality(f"the exact line search finds the interval from {BEST[0]} to {BEST[1]} (its ends are off by < {EXACT:g})", off, EXACT)


@dataclass(frozen=True, kw_only=True)
class JumpingPointsTable(OnFolds, name="jumping-points", full={"queries": 150, "draws": 20}):
    """Queries cut to each of ``sizes`` documents, with each of ``draws`` random weights."""

    features: int = 64
    queries: int = 50
    sizes: tuple[int, ...] = SIZES
    draws: int = 5

    def _pieces(self, tell: Tell) -> Iterator[Piece]:
        counted: dict[str, tuple[float, ...]] = {}
        first, half, last = self.sizes[0], self.sizes[-2], self.sizes[-1]
        for name, data in self._sets():
            counts = counted[name] = tuple(self._count(name, data, size, tell) for size in self.sizes)
            rise, end = counts[-1] / counts[0], counts[-1] / counts[-2]
            yield Inequality(f"{name}: from {first} to {last:,} documents the number rises mildly (factor < {MILD:g})", rise, MILD)
            yield Inequality(f"{name}: from {half} to {last:,} documents it has converged (factor < {CONVERGED:g})", end, CONVERGED)
            says = f"{name}: fewer than {{:,.0f}} on {{}} documents, from where on an exhaustive search is faster (2 m log2 m)"
            bounds = [float(2 * size * log2(size)) for size in self.sizes]
            yield from (Inequality(says.format(*pair), v, pair[0]) for v, *pair in zip(counts, bounds, self.sizes, strict=True))
        yield f"With {', '.join(map(str, self.sizes))} documents per query the mean numbers of jumping points are:"
        yield from (f"{name}: {', '.join(f'{count:.1f}' for count in counts)}." for name, counts in counted.items())
        beside = {**counted, **(TABLE_12 if self.sizes == SIZES else {})}
        columns = ("set", *(f"m = {size:,}" for size in self.sizes))
        yield Table(f"Table 12: jumping points per query, {COUNTED}", columns, [[name, *counts] for name, counts in beside.items()])
        yield Panel(COUNTED, "documents per query", "jumping points per query", curves(beside, self.sizes), log="x")

    def _sets(self) -> Iterator[tuple[str, RankingData]]:
        for name, (fold, *_) in self.folders:
            long = fold.train.sizes >= self.sizes[-1]
            if not np.any(long):
                raise DataError(f"{name}: no training query of its first fold has {self.sizes[-1]} documents; give data with longer lists")
            yield name, fold.train.take_queries(long)
        if not self.data:
            data = self._source(documents=self.sizes[-1]).data(self.queries)
            yield from (("independent features", data), ("correlated features", mix_features(data, self.seed)))

    def _count(self, name: str, data: RankingData, size: int, tell: Tell) -> float:
        """The mean over queries and random weights."""
        tell(f"{name}, {size} documents per query")
        rows = np.concatenate([np.arange(start, start + size) for start in data.indptr[:-1]])
        X, cut = data.X[rows], RankingData.from_arrays(None, data.y[rows], group=[size] * data.n_queries)
        spread = X.std(axis=0)
        weights = standard_normal(np.random.default_rng(self.seed), (self.draws, X.shape[1])) / np.where(spread > 0, spread, np.inf)
        return float(
            np.mean([jumping_points(cut, scores, X[:, 0], COUNTED, threads=self.threads).mean() for scores in matmul(weights, X.T)])
        )
