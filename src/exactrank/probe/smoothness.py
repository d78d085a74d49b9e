"""How smooth a measure is as one weight of a model moves: `xr.smoothness` (Yue & Burges 2007, sections 5.3 and 5.4).

For a single query a measure is flat or jumps; over many queries the mean may look smooth. Their figures move one weight of a
trained net by a percentage of its value and keep the others fixed,

    f(p) = mean over queries of measure(scores with the weight w (1 + p/100)),    -percent <= p <= percent      (1)

for samples of 100, 1,000 and 10,000 queries. They sampled (1). Here it is the exact step function wherever scores are straight
lines in the weight: all weights of a linear model, and those from a network's hidden units to its output. Hidden weights are
sampled, on the grid that all curves are compared on. With v the values of (1) in turn, of all steps or on the grid,

    variation = sum of |v_i+1 - v_i| / (max v - min v)                                                          (2)

is 1 if the curve only rises or falls, at most 2 if it has one peak, and large if it is rough. Over all steps it does not
shrink as queries are added, since there are more of them, each smaller; on the grid it does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from exactrank.arguments import check_count, check_number
from exactrank.data.ranking_data import RankingData, check_data
from exactrank.errors import DataError, IncompatibleError
from exactrank.measures.base import Measure
from exactrank.measures.evaluate import evaluate
from exactrank.objectives.step_function import SAME_VALUE, Floats, StepFunction
from exactrank.pictures import Pictured
from exactrank.probe.probed import measure_of, model_of, rows_for
from exactrank.probe.weight_moves import Sample, Weight
from exactrank.scorers.linear import Linear
from exactrank.scorers.model import Model
from exactrank.scorers.network import Network
from exactrank.table import Shown, Table, Values, by_column, small_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from exactrank.pictures import Panels
    from exactrank.rankers.base import Ranker

MOST_POINTS = 1_000_000  #: of a grid
SAMPLES = (100, 1_000, 10_000)  #: of queries, as in the paper


@dataclass(frozen=True)
class Roughness:
    """How a curve goes up and down."""

    variation: float  #: (2); 0 where the curve is flat
    maxima: int  #: values above those before and after, the ends not counted

    @classmethod
    def of(cls, values: Floats) -> "Roughness":
        """Of values in turn.

        >>> Roughness.of(np.array([0.0, 1.0, 1.0, 0.5, 0.75, 0.0]))
        Roughness(variation=2.5, maxima=2)
        """
        changes = np.diff(values)
        changes = changes[np.abs(changes) > SAME_VALUE]
        span = float(np.ptp(values))
        variation = float(np.abs(changes).sum()) / span if len(changes) else 0.0
        return cls(variation, int(np.sum((changes[:-1] > 0) & (changes[1:] < 0))))


@dataclass(frozen=True)
class CurveSteps:
    """The single steps of a curve that is known exactly."""

    count: int
    largest: float  #: the largest change at one point
    all: Roughness


@dataclass(frozen=True)
class MeasureCurve:
    """(1) for one weight and one sample of queries."""

    weight: Weight
    queries: int
    value: float  #: of the measure, as the model is
    best: float  #: the largest value; of a sampled curve, on the grid
    low: float  #: it is reached between ``low`` and ``high`` percent
    high: float
    span: float  #: the largest value less the least
    grid: Roughness  #: as seen on the grid
    steps: CurveSteps | None  #: None: the curve was sampled
    values: tuple[float, ...]  #: on the grid

    @property
    def gain(self) -> float:
        """What moving the weight gains, at best."""
        return self.best - self.value if self.best - self.value > SAME_VALUE else 0.0


@dataclass(frozen=True, repr=False)
class Smoothness(Shown, Pictured):
    """How a measure changes with single weights of a model; build it with [`xr.smoothness`][exactrank.smoothness].

    Its picture has a column of Axes per sample: whole curves above, single steps around the model below. ``plot(ax=...)`` draws the whole
    curves of all queries alone.
    """

    measure: Measure
    percent: float  #: weights move by so much of their value, up and down
    curves: tuple[MeasureCurve, ...]  #: weight by weight, those of each sample together
    skipped: int  #: queries that do not count in the measure's mean, and are in no sample
    samples: Mapping[int, Sample] = field(compare=False)  #: by the number of queries; the last has all

    @property
    def grid(self) -> Floats:
        """The percentages at which all curves are compared."""
        return np.linspace(-self.percent, self.percent, len(self.curves[0].values))

    @property
    def spacing(self) -> float:
        """How far apart those are."""
        return 2 * self.percent / (len(self.grid) - 1)

    def of(self, queries: int) -> tuple[MeasureCurve, ...]:
        """The curves of one sample."""
        return tuple(curve for curve in self.curves if curve.queries == queries)

    @property
    def whole(self) -> tuple[MeasureCurve, ...]:
        """The curves of all queries."""
        return self.of(self.curves[-1].queries)

    @property
    def verdict(self) -> str:
        """What was found, in plain words."""
        curves = self.whole
        here, most = f"{self.measure} {curves[0].value:.4f} on {curves[0].queries:,} queries", max(curves, key=lambda curve: curve.gain)
        better = sum(curve.gain > 0 for curve in curves)
        if not better:
            top = f"{here}: no weight has a better value within {self.percent:g}% of its own."
        else:
            at = f"{(most.low + most.high) / 2:+.3g}% for {most.weight.name}"
            of = f"{better} of {len(curves)} weights have a better value within {self.percent:g}% of their own"
            top = f"{here}: {of}; the best, {at}, gains {most.gain:.2g}."
        medians = {size: float(np.median([curve.grid.variation for curve in self.of(size)])) for size in self.samples}
        few, many = min(medians), max(medians)
        trend = f"In steps of {self.spacing:.3g}% the middle curve goes up and down by"
        if few == many:
            return f"{top} {trend} {medians[many]:.1f} times its span."
        return f"{top} {trend} {medians[few]:.1f} times its span with {few:,} queries and {medians[many]:.1f} times with all {many:,}."

    def profile(self, weight: str, queries: int | None = None) -> StepFunction:
        """The exact step function (1) of a weight, over the sample of this many queries, by default all; its variable is p."""
        number = self.curves[-1].queries if queries is None else queries
        found = next((curve for curve in self.of(number) if curve.weight.name == weight), None)
        if found is None:
            raise DataError(
                f"there is no curve of {weight!r} on {number:,} queries; there are {', '.join(curve.weight.name for curve in self.whole)}"
                f" on {', '.join(f'{size:,}' for size in self.samples)} queries"
            )
        if found.steps is None:
            raise IncompatibleError(f"the scores are not straight lines in {weight!r}, so its curve was sampled; its values are in curves")
        return self.samples[number].profile(found.weight, self.percent)

    def to_json(self) -> dict[str, Any]:
        """All of it, ready for ``json.dumps``; ``steps`` of a sampled curve is None."""
        curves = []
        for curve in self.curves:
            weight = {"weight": curve.weight.name, "trained": curve.weight.value, "exact": curve.steps is not None, "gain": curve.gain}
            curves.append(weight | {name: value for name, value in asdict(curve).items() if name != "weight"})
        return {
            "measure": repr(self.measure),
            "percent": self.percent,
            "skipped_queries": self.skipped,
            "verdict": self.verdict,
            "grid": self.grid.tolist(),
            "curves": curves,
        }

    def _size(self, **options: Any) -> tuple[float, float]:
        return 1.4 + 3.6 * max(len(self.samples), 2), 9.2 if any(curve.steps is None for curve in self.curves) else 6.0

    def _fill(self, figure: "Figure", **options: Any) -> "Panels":
        from exactrank.probe.smoothness_picture import draw_samples

        return draw_samples(figure, self)

    def _draw(self, axes: "Axes", **options: Any) -> None:
        from exactrank.probe.smoothness_picture import draw_whole

        draw_whole(axes, self)

    def _columns(self) -> dict[str, Values]:
        own = by_column(self.curves, "queries", "value", "best", "low", "high", "gain", "span")
        seen: dict[str, Values] = {
            "variation": [curve.grid.variation for curve in self.curves],
            "maxima": [curve.grid.maxima for curve in self.curves],
        }
        steps: dict[str, Values] = {"steps": [None if curve.steps is None else curve.steps.count for curve in self.curves]}
        return {"weight": [curve.weight.name for curve in self.curves], **own, **seen, **steps}

    def _glance(self) -> Table:
        return small_table(self.verdict, list(self._columns().items()), len(self.curves))

    def __repr__(self) -> str:
        return f"Smoothness({self.verdict!r})"


def smoothness(
    model: "Model | Ranker",
    data: RankingData,
    *,
    measure: str | Measure | None = None,
    percent: float = 100.0,
    weights: int = 5,
    samples: Sequence[int] = SAMPLES,
    points: int = 101,
    seed: int = 0,
    threads: int | None = None,
) -> Smoothness:
    """Follow ``measure`` on ``data`` as single weights of a linear model or a network move by up to ``percent`` of their values.

    Of a linear model's weights, and of a network's hidden ones, the ``weights`` with the most influence are followed; of a network's
    output weights all are: on ``samples`` of the queries that are smaller than the data, drawn by ``seed``, and on all
    queries. Curves are compared on a grid of ``points``, where hidden weights are sampled; all others are known exactly.

    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.4, 0.5]], [0, 2, 1], group=[3], feature_names=["bm25", "dense"])
    >>> found = smoothness(Model(Linear(np.array([0.7, 0.5]))), data, measure="nDCG@10")
    >>> [(curve.weight.name, round(curve.low, 1), round(curve.high, 1), round(curve.gain, 4)) for curve in found.curves]
    [('bm25', -100.0, -40.5, 0.4131), ('dense', 68.0, 100.0, 0.4131)]
    """
    check_data(data)
    check_number("percent", percent, above=True)
    check_count("points", points, 3, MOST_POINTS)
    for name, least, number in (("weights", 1, weights), *(("samples", 1, each) for each in samples)):
        check_count(name, number, least)
    given = model_of(model)
    parsed = measure_of(given, measure)
    scorer = given.scorer
    if not isinstance(scorer, Linear | Network):
        raise IncompatibleError(f"a {scorer.kind} model has no weights to move; give a linear model or a network")
    values = evaluate(parsed, data, given.predict(data, threads), threads=threads)[str(parsed)].values
    counts = ~np.isnan(values) & (data.weights > 0)  # others are left out: samples of a size are samples of so many values
    if not np.any(counts):
        raise DataError(f"{parsed} skips every query of the data, so there is nothing to follow; give data with relevant documents")
    rows = rows_for(scorer, data.take_queries(counts))
    order = np.random.default_rng(seed).permutation(rows.n_queries)
    parts = [rows.take_queries(np.sort(order[:size])) for size in sorted(set(samples)) if size < rows.n_queries]
    drawn = {part.n_queries: Sample(parsed, scorer, part, threads) for part in [*parts, rows]}
    chosen = drawn[rows.n_queries].weights(weights)
    if not chosen:
        raise DataError(
            "every weight is 0, or its feature is the same in all documents of a query: there is nothing to move; train the model"
        )
    grid = np.linspace(-percent, percent, points)
    curves = tuple(_curve(sample, weight, grid) for sample in drawn.values() for weight in chosen)
    return Smoothness(parsed, percent, curves, data.n_queries - rows.n_queries, drawn)


def _curve(sample: Sample, weight: Weight, grid: Floats) -> MeasureCurve:
    """(1) of a weight; where scores are no straight lines, as far as the grid shows it."""
    if weight.straight:
        f = sample.profile(weight, float(grid[-1]))
        sizes, values, best = np.abs(np.diff(f.values)), f(grid), f.best(float(grid[0]), float(grid[-1]))
        steps = CurveSteps(int(np.sum(sizes > SAME_VALUE)), float(sizes.max(initial=0.0)), Roughness.of(f.values))
        found = f(0.0), best.value, best.low, best.high, float(np.ptp(f.values))
    else:
        values, here = np.split(sample.sampled(weight, np.append(grid, 0.0)), [len(grid)])
        top, steps = int(np.argmax(values)), None
        found = float(here[0]), float(values[top]), float(grid[top]), float(grid[top]), float(np.ptp(values))
    return MeasureCurve(weight, sample.data.n_queries, *found, Roughness.of(values), steps, tuple(values.tolist()))
