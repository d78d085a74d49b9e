"""How nDCG changes around a trained LambdaRank net (Yue & Burges 2007, sections 5.3 and 5.4, Figures 2 and 3).

Single weights move by up to 100% of their values, on samples of the training queries: the five weights with most say of a linear
net, and those from the hidden units to the output of a two-layer one (`exactrank.probe.smoothness`, which has the exact
curves). With v the values of a curve in turn, on a grid of steps of 2%, its roughness is how far it goes up and down beyond what
a single hill of its height would,

    roughness = (sum of |v_i+1 - v_i| - (max v - v_first) - (max v - v_last)) / (max v - min v)                 (1)

"The curve consistently becomes smoother as the query sample increases": (1), of the curve in the middle, falls from each sample
to the next larger one. "The local optimum found using the LambdaRank gradient corresponds very closely to a local optimum of
NDCG": over all queries and for every weight

    (best value in the window - value of the trained net) / (best - worst value in the window) < 1/10           (2)
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exactrank.data.folds import Fold
from exactrank.objectives.step_function import Floats
from exactrank.probe.smoothness import Curve as WeightCurve
from exactrank.probe.smoothness import Smoothness, smoothness
from exactrank.rankers.base import Ranker
from exactrank.rankers.lambdarank import LambdaRank
from exactrank.reproduce.artificial import three_parts
from exactrank.reproduce.chosen import as_published, chosen, net
from exactrank.reproduce.experiment import Experiment, Tell, silent
from exactrank.reproduce.finding import Check, Finding
from exactrank.reproduce.panels import Curve, Panel
from exactrank.table import Table

MOST = 5  #: weights of a linear net
NEAR = 0.1  #: of (2)


@dataclass(frozen=True, eq=False)
class Around:
    """What was found around one kind of net."""

    net: str
    found: Smoothness

    @property
    def sizes(self) -> list[int]:
        """Of the samples of queries, smallest first."""
        return sorted(self.found.samples)

    def curves(self, queries: int) -> Sequence[WeightCurve]:
        """Of one sample: those that are known exactly."""
        return [curve for curve in self.found.of(queries) if curve.steps is not None]

    def roughness(self, queries: int) -> float:
        """(1), of the curve in the middle."""
        return float(np.median([roughness(np.array(curve.values)) for curve in self.curves(queries)]))

    def missed(self, queries: int) -> float:
        """(2), the largest of all weights."""
        return max(curve.gain / curve.span if curve.span > 0 else 0.0 for curve in self.curves(queries))

    def checks(self) -> list[Check]:
        """Smoother from sample to sample, and at the top."""
        says = "{}: with {:,} queries curves are smoother than with {:,} (by roughness)"
        steps = zip(self.sizes, self.sizes[1:], strict=False)
        smoother = [Check(says.format(self.net, more, less), self.roughness(more), self.roughness(less)) for less, more in steps]
        top = f"{self.net}: the trained net misses less than {NEAR:g} of the span of every curve, on all queries"
        return [*smoother, Check(top, self.missed(self.sizes[-1]), NEAR)]

    def rows(self) -> list[tuple[str, int, float, float, float]]:
        """For the table."""
        largest = {
            size: float(np.median([c.steps.largest / c.span for c in self.curves(size) if c.steps and c.span])) for size in self.sizes
        }
        return [(self.net, size, self.roughness(size), largest[size], self.missed(size)) for size in self.sizes]

    def panels(self) -> list[Panel]:
        """One a sample."""
        grid = tuple(self.found.grid.tolist())
        return [
            Panel(
                f"{self.net}, {size:,} queries",
                "change of the weight (%)",
                str(self.found.measure),
                _drawn(self.curves(size), grid),
                mark=0.0,
            )
            for size in self.sizes
        ]

    def said(self) -> str:
        """In plain words."""
        first, last = self.sizes[0], self.sizes[-1]
        return (
            f"With {self.net} the roughness of the middle curve is {self.roughness(first):.2f} on {first:,} queries and"
            f" {self.roughness(last):.2f} on {last:,}, where the trained net is within {self.missed(last):.1%} of the span of every top."
        )


@dataclass(frozen=True, kw_only=True)
class SmoothWithQueries(Experiment, full={"rates": (1e-4, 1e-3, 3e-3, 1e-2), "epochs": 300}):
    """Nets trained on ``queries`` queries, looked at on these and on ``samples`` of them."""

    paper = "Yue & Burges 2007"
    where = "Figures 2 and 3"
    published = (
        "From 100 to 1,000 and 10,000 queries NDCG becomes smoother, as a function of single weights."
        " A trained LambdaRank net is at a local optimum of NDCG."
    )

    measure: str = "nDCG"
    queries: int = 10_000
    samples: tuple[int, ...] = (100, 1_000)
    hidden: tuple[int | None, ...] = (None, 10)
    rates: tuple[float, ...] = (1e-3,)
    epochs: int = 30

    @property
    def stages(self) -> int:
        return len(self.hidden) * (len(self.rates) + 1)

    def run(self, tell: Tell = silent) -> Finding:
        around = [self._around(hidden, tell) for hidden in self.hidden]
        columns = ("net", "queries", "roughness, middle curve", "largest step / span, middle curve", "missed / span, worst curve")
        table = Table("Curves of single weights", columns, [row for each in around for row in each.rows()])
        return self._finding((each.said() for each in around), (a.checks() for a in around), [table], (a.panels() for a in around))

    def _fold(self) -> Fold:
        return three_parts(self._source(), (self.queries, max(1, self.queries // 2), 1))

    def _around(self, hidden: int | None, tell: Tell) -> Around:
        fold = self._fold()
        model = chosen((self._ranker(hidden, rate) for rate in self.rates), fold, tell)
        tell(f"curves of {net(hidden)}")
        found = smoothness(
            model, fold.train, weights=MOST if hidden is None else 1, samples=self.samples, seed=self.seed, threads=self.threads
        )
        return Around(net(hidden), found)

    def _ranker(self, hidden: int | None, rate: float) -> Ranker:
        given = {"measure": self.measure, "hidden": hidden, "learning_rate": rate, "max_iter": self.epochs}
        return as_published(LambdaRank, **given, seed=self.seed, threads=self.threads)


def roughness(values: Floats) -> float:
    """(1).

    >>> roughness(np.array([0.0, 1.0, 0.5])), roughness(np.array([0.0, 0.5, 0.25, 1.0, 0.5]))
    (0.0, 0.5)
    """
    span, top = float(np.ptp(values)), float(values.max())
    hill = (top - values[0]) + (top - values[-1])
    return (float(np.abs(np.diff(values)).sum()) - float(hill)) / span if span > 0 else 0.0


def _drawn(curves: Sequence[WeightCurve], grid: tuple[float, ...]) -> tuple[Curve, ...]:
    return tuple(Curve(curve.weight.name, grid, curve.values) for curve in curves)
