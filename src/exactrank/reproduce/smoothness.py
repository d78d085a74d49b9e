"""The change of nDCG around a trained LambdaRank net (Yue & Burges 2007, sections 5.3 and 5.4).

Single weights move by up to 100% of their values, on samples of the training queries: the five most influential weights of a linear
net, and those from the hidden units to the output of a two-layer one (`exactrank.inspect.smoothness`, which has the exact
curves; Figures 2 and 3). With v the successive values of a curve, on a grid of steps of 2%, its roughness is how far it goes up and
down beyond what a single hill of its height would,

    roughness = (sum of |v_i+1 - v_i| - (max v - v_first) - (max v - v_last)) / (max v - min v)                 (1)

"The curve consistently becomes smoother as the query sample increases": (1), for the median curve, falls from each sample
to the next larger one. "The local optimum found using the LambdaRank gradient corresponds very closely to a local optimum of
NDCG": over all queries and for every weight

    (best value in the window - value of the trained net) / (best - worst value in the window) < 1/10           (2)

On data like that of web search the output weights of a two-layer net are examined again, with a section of their curves magnified
(Figures 4 and 5). "Relatively smooth on a macro scale", for the median curve:

    roughness on a grid of 2% < 1/10,    roughness of all steps within 2% of the weight > 1                     (3)

"Numerous smaller local optima even when averaged over 10,000 queries": each curve has more than 10 maxima, which are counted exactly.

For a linear net (2) has an exact answer: with all other weights held,

    gain_j = largest nDCG for any value of weight j - nDCG of the net                                           (4)

is computed without sampling (`exactrank.inspect.optimality`), on the training queries. "Very closely" is checked as

    largest gain_j < 1/1000 for LambdaRank,    and below that of RankNet                                        (5)

RankNet, which does not know NDCG, is the control that the paper does not have.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from exactrank._support.arrays import Floats
from exactrank._support.tables import Cell, Table
from exactrank.inspect.optimality import optimality
from exactrank.inspect.smoothness import Roughness, Smoothness, WeightCurve, smoothness
from exactrank.learning.objectives.step_function import SAME_VALUE
from exactrank.measures import Measure
from exactrank.rankers.lambdarank import LambdaRank
from exactrank.reproduce.artificial import Sizes
from exactrank.reproduce.experiment import NETS_NDCG, Piece, Tell, WithNets, net
from exactrank.reproduce.finding import Inequality, Panel, curves
from exactrank.reproduce.lambdarank_duels import RIVALS

MOST = 5  #: weights of a linear net
NEAR = 0.1  #: of (2) and (3)
NUMEROUS = 10  #: maxima
SECTION = 2.0  #: percent of the weight, in the magnified section
POINTS = 801  #: of a curve there
CLOSE = 1e-3  #: of (5)
LEAST = 1e-7  #: the smallest gain that is drawn


def roughness(values: Floats) -> float:
    """(1).

    >>> roughness(np.array([0.0, 1.0, 0.5])), roughness(np.array([0.0, 0.5, 0.25, 1.0, 0.5]))
    (0.0, 0.5)
    """
    span, top = float(np.ptp(values)), float(values.max())
    hill = (top - values[0]) + (top - values[-1])
    return (float(np.abs(np.diff(values)).sum()) - float(hill)) / span if span > 0 else 0.0


@dataclass(frozen=True, kw_only=True)
class SmoothWithQueries(WithNets, name="smoothness", full={"rates": (1e-4, 1e-3, 3e-3, 1e-2), "epochs": 300}):
    """Nets trained on ``queries`` queries, examined on these and on ``samples`` of them."""

    measure: Measure = NETS_NDCG
    queries: int = 10_000
    samples: tuple[int, ...] = (100, 1_000)
    hidden: tuple[int | None, ...] = (None, 10)
    rates: tuple[float, ...] = (1e-3,)
    epochs: int = 30

    def _pieces(self, tell: Tell) -> Iterator[Piece]:
        rows = []
        for hidden in self.hidden:
            kind, surroundings = net(hidden), self._around(hidden, tell)
            sizes = sorted(surroundings.samples)
            exact = {size: _exact(surroundings, size) for size in sizes}
            rough = {size: float(np.median([roughness(np.array(curve.values)) for curve in exact[size]])) for size in sizes}
            missed = {size: max(curve.gain / curve.span if curve.span > 0 else 0.0 for curve in exact[size]) for size in sizes}
            for size in sizes:
                largest = float(np.median([curve.steps.largest / curve.span for curve in exact[size] if curve.steps and curve.span]))
                rows.append((kind, size, rough[size], largest, missed[size]))
                yield _panel(kind, surroundings, size)
            for fewer, size in pairwise(sizes):
                says = f"{kind}: with {size:,} queries curves are smoother than with {fewer:,} (by roughness)"
                yield Inequality(says, rough[size], rough[fewer])
            first, last = sizes[0], sizes[-1]
            yield Inequality(
                f"{kind}: the trained net misses less than {NEAR:g} of the span of every curve, on all queries", missed[last], NEAR
            )
            yield (
                f"With {kind} the roughness of the median curve is {rough[first]:.2f} on {first:,} queries and"
                f" {rough[last]:.2f} on {last:,}, where the trained net is within {missed[last]:.1%} of the span of every top."
            )
        columns = ("net", "queries", "roughness, median curve", "largest step / span, median curve", "missed / span, worst curve")
        yield Table("Curves of single weights", columns, rows)

    def _around(self, hidden: int | None, tell: Tell, *, mixed: bool = False) -> Smoothness:
        """The curves around a net with that number of hidden units."""
        fold = self._fold((self.queries, max(1, self.queries // 2), 1), mixed=mixed)
        model = self._net(LambdaRank, fold, tell, measure=self.measure, hidden=hidden)
        tell(f"curves of {net(hidden)}")
        count = MOST if hidden is None else 1
        return smoothness(fold.train, model, weights=count, samples=self.samples, seed=self.seed, threads=self.threads)


def _exact(surroundings: Smoothness, queries: int) -> Sequence[WeightCurve]:
    """The curves of one sample that are known exactly."""
    return [curve for curve in surroundings.of(queries) if curve.steps is not None]


def _panel(kind: str, surroundings: Smoothness, queries: int) -> Panel:
    series = curves({curve.weight.name: curve.values for curve in _exact(surroundings, queries)}, surroundings.grid.tolist())
    return Panel(f"{kind}, {queries:,} queries", "change of the weight (%)", surroundings.measure.name, series, mark=0.0)


@dataclass(frozen=True, kw_only=True)
class SmoothOnWeb(SmoothWithQueries, name="smoothness-web", full={"features": 367, "rates": (1e-4, 1e-3, 3e-3, 1e-2), "epochs": 300}):
    """A net of ``hidden`` units, trained and examined on ``queries`` queries."""

    documents: int = 26
    samples: tuple[int, ...] = ()
    hidden: tuple[int | None, ...] = (10,)

    def _pieces(self, tell: Tell) -> Iterator[Piece]:
        surroundings = self._around(self.hidden[0], tell, mixed=True)
        size, grid = max(surroundings.samples), np.linspace(-SECTION, SECTION, POINTS)
        rows, near = [], {}
        for curve in _exact(surroundings, size):
            f = surroundings.profile(curve.weight.name)
            first, last = np.searchsorted(f.breakpoints, [-SECTION, SECTION])
            sizes = np.abs(np.diff(f.values))
            rough = roughness(np.array(curve.values)), roughness(f.values[first : last + 1])
            steps, share = int(np.sum(sizes > SAME_VALUE)), float(sizes.max(initial=0.0)) / (curve.span or 1.0)
            rows.append((curve.weight.name, *rough, Roughness.of(f.values).maxima, steps, share))
            near[curve.weight.name] = f(grid).tolist()
        _, coarse, section, maxima, _, largest = zip(*rows, strict=True)
        yield from section_checks(coarse, section, maxima)
        yield (
            f"The roughness of the median curve is {np.median(coarse):.3f} on the grid and {np.median(section):.1f} within {SECTION:g}% of"
            f" the weight; curves have {min(maxima):,} maxima or more, and their largest steps are {np.median(largest):.2%} of the span."
        )
        columns = ("weight", "roughness, grid of 2%", f"roughness within {SECTION:g}%", "maxima", "steps", "largest step / span")
        yield Table("Curves of the output weights", columns, rows)
        yield _panel(net(self.hidden[0]), surroundings, size)
        series = curves(near, grid.tolist())
        yield Panel(f"within {SECTION:g}%", "change of the weight (%)", surroundings.measure.name, series, mark=0.0)


def section_checks(coarse: Sequence[float], section: Sequence[float], maxima: Sequence[int]) -> list[Inequality]:
    """Return (3) of the roughness of curves on the grid and within the section, and numerous maxima."""
    return [
        Inequality(f"on a grid of 2% the median curve is smooth (roughness < {NEAR:g})", float(np.median(coarse)), NEAR),
        Inequality(f"within {SECTION:g}% it is not (1 < roughness of all steps)", 1.0, float(np.median(section))),
        Inequality(f"every curve has numerous maxima (more than {NUMEROUS})", float(NUMEROUS), float(min(maxima))),
    ]


@dataclass(frozen=True, kw_only=True)
class LambdaRankOptimality(WithNets, name="lambdarank-optimality", full={"queries": (10_000, 5_000, 1), "epochs": 300}):
    """Linear nets, trained and examined on the first of ``queries``; the second choose rate and epoch."""

    measure: Measure = NETS_NDCG
    queries: Sizes = (2_000, 1_000, 1)
    rates: tuple[float, ...] = (1e-4, 1e-3, 1e-2)
    epochs: int = 40

    def _pieces(self, tell: Tell) -> Iterator[Piece]:
        fold = self._fold(self.queries)
        gains: dict[str, list[float]] = {}  # (4), largest first
        rows: list[list[Cell]] = []
        for kind in RIVALS:
            name, best = kind.__name__, self._net(kind, fold, tell, measure=self.measure)
            tell(f"{name}: exact curves of {self.features} weights")
            optimum = optimality(fold.train, best, threads=self.threads)
            yield f"{name}: {optimum.verdict}"
            gains[name] = [weight.gain for weight in optimum.ranked()]
            positive = np.maximum(gains[name], 0.0)
            rows.append([name, optimum.value, positive.max(), float(np.median(positive)), int(np.sum(positive == 0))])
        yield from optimality_checks(gains)
        columns = ("net", "nDCG", "largest gain", "median gain", "weights at their best")
        yield Table("What single weights gain, training data", columns, rows)
        series = curves({name: np.maximum(each, LEAST) for name, each in gains.items()})
        yield Panel("what a single weight gains", "weights, by gain", "gain of nDCG, training data", series, log="y")


def optimality_checks(by_ranker: Mapping[str, Sequence[float]]) -> list[Inequality]:
    """Return (5)."""
    ours, control = (max(by_ranker[name]) for name in ("LambdaRank", "RankNet"))
    return [
        Inequality(f"LambdaRank: no single weight gains more than {CLOSE:g} (largest gain)", ours, CLOSE),
        Inequality("control: RankNet has more to gain (largest gain)", ours, control),
    ]
