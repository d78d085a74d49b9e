"""How many jumping points a query has (Tan, Xia, Guo & Wang 2013, section 3.3, Table 12).

On HP2003 and HP2004, whose queries have about 1,000 documents, they counted the points where the first 5 documents change along the
weight of the first feature, with the first m documents of each query (`exactrank.probe.jumping_points`). From m = 50 to 1,000

    the mean number rises by less than a factor of 2,    and from 500 to 1,000 by less than 1/10                (1)

where the number of documents rises by factors of 20 and 2: "mildly increase, and converge after the document size is larger than
500". They do not say at which weights. Here all other weights are random, several times; data is artificial, independent and mixed
(`artificial.correlated`), or ``data``, of which queries with fewer documents than the largest m are left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError
from exactrank.probe.jumping_points import jumping_points
from exactrank.reproduce.artificial import correlated
from exactrank.reproduce.experiment import OnFolds, Tell, silent
from exactrank.reproduce.finding import Check, Finding
from exactrank.reproduce.panels import Curve, Panel
from exactrank.table import Cell, Table

MEASURE = "nDCG@5"
MILD, CONVERGED = 2.0, 1.1  #: of (1)
PUBLISHED: Mapping[str, tuple[float, ...]] = {
    "HP2003, published": (44.20, 50.42, 53.74, 64.60, 66.32),
    "HP2004, published": (40.76, 52.05, 59.18, 63.09, 65.11),
}
SIZES = (50, 100, 200, 500, 1000)  #: of the published counts


@dataclass(frozen=True, kw_only=True)
class JumpingPointsTable(OnFolds, full={"queries": 150, "draws": 20}):
    """Queries cut to each of ``sizes`` documents, with each of ``draws`` random weights."""

    paper = "Tan, Xia, Guo & Wang 2013"
    where = "Table 12"
    published = (
        "With the cutoff 5 the number of jumping points of a query rises mildly with its documents, and converges. From 50 to 1,000"
        " documents it is 44 to 66 on HP2003 and 41 to 65 on HP2004."
    )

    features: int = 64
    queries: int = 50
    sizes: tuple[int, ...] = SIZES
    draws: int = 5

    @property
    def stages(self) -> int:
        return len(self.sizes) * (len(self.data) or 2)

    def run(self, tell: Tell = silent) -> Finding:
        counted = {name: [self._counted(name, data, size, tell) for size in self.sizes] for name, data in self._sets()}
        checks = (self._checks(*each) for each in counted.items())
        found = " ".join(f"{name}: {', '.join(f'{count:.1f}' for count in counts)}." for name, counts in counted.items())
        words = f"With {', '.join(map(str, self.sizes))} documents a query the mean numbers of jumping points are: {found}"
        return self._finding(words, checks, [self._table(counted)], [self._panel(counted)])

    def _sets(self) -> Iterator[tuple[str, RankingData]]:
        for name, (fold, *_) in self.given:
            long = fold.train.sizes >= self.sizes[-1]
            if not np.any(long):
                raise DataError(f"{name}: no training query of its first fold has {self.sizes[-1]} documents; give data with longer lists")
            yield name, fold.train.take_queries(long)
        if not self.data:
            drawn = self._source(self.sizes[-1]).data(self.queries)
            yield from (("independent features", drawn), ("correlated features", correlated(drawn, self.seed)))

    def _counted(self, name: str, data: RankingData, size: int, tell: Tell) -> float:
        """The mean over queries and random weights."""
        tell(f"{name}, {size} documents a query")
        rows = np.concatenate([np.arange(start, start + size) for start in data.indptr[:-1]])
        X = data.X[rows]
        cut = RankingData.from_arrays(None, data.y[rows], group=[size] * data.n_queries)
        rng = np.random.default_rng(self.seed)
        spread = X.std(axis=0)
        weights = rng.standard_normal((self.draws, X.shape[1])) / np.where(spread > 0, spread, np.inf)
        counts = [jumping_points(MEASURE, cut, X @ w, X[:, 0], threads=self.threads).mean() for w in weights]
        return float(np.mean(counts))

    def _checks(self, name: str, counts: Sequence[float]) -> list[Check]:
        first, *_, before, last = counts
        few, half, all_ = self.sizes[0], self.sizes[-2], self.sizes[-1]
        return [
            Check(f"{name}: from {few} to {all_:,} documents the number rises mildly (factor < {MILD:g})", last / first, MILD),
            Check(f"{name}: from {half} to {all_:,} documents it has converged (factor < {CONVERGED:g})", last / before, CONVERGED),
        ]

    def _table(self, counted: Mapping[str, Sequence[float]]) -> Table:
        rows: list[list[Cell]] = [[name, *counts] for name, counts in self._beside(counted).items()]
        return Table(f"Jumping points a query, {MEASURE}", ("set", *(f"m = {size:,}" for size in self.sizes)), rows)

    def _panel(self, counted: Mapping[str, Sequence[float]]) -> Panel:
        curves = (Curve(name, self.sizes, tuple(counts)) for name, counts in self._beside(counted).items())
        return Panel(MEASURE, "documents a query", "jumping points a query", tuple(curves), log="x")

    def _beside(self, counted: Mapping[str, Sequence[float]]) -> dict[str, Sequence[float]]:
        """What was counted, beside what was published of the same sizes."""
        return {**counted, **(PUBLISHED if self.sizes == SIZES else {})}
