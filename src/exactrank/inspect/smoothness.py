"""Smoothness of a measure as one weight of a model moves: `er.inspect.smoothness` (Yue & Burges 2007, sections 5.3 and 5.4).

For a single query a measure is constant or jumps; over many queries the mean may look smooth. Their figures move one weight of a
trained network by a percentage of its value and keep the others fixed,

    f(p) = mean over queries of measure(scores with the weight w (1 + p/100)),    -percent <= p <= percent      (1)

for samples of 100, 1,000 and 10,000 queries. They sampled (1). Here it is the exact step function if the scores are linear in the
weight: for all weights of a linear model, and for those from a network's hidden units to its output. Hidden weights are sampled on
the grid on which all curves are compared. With v the successive values of (1), of all steps or on the grid,

    variation = sum of |v_i+1 - v_i| / (max v - min v)                                                          (2)

is 1 if the curve only rises or only falls, at most 2 if it has one peak, and large if it is rough. Over all steps it does not
shrink as queries are added, since there are more steps, each smaller; on the grid it does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from exactrank._support.arguments import check_count, check_number
from exactrank._support.arrays import Floats
from exactrank._support.pictures import Plottable
from exactrank._support.tables import Table, Tabular, Values, by_column, small_table
from exactrank.data.ranking_data import RankingData, check_data
from exactrank.errors import DataError, IncompatibleError
from exactrank.inspect.probed import measure_of, model_of, rows_for
from exactrank.inspect.weight_moves import Sample, Weight
from exactrank.learning.objectives.step_function import SAME_VALUE, StepFunction
from exactrank.measures.base import Measure
from exactrank.measures.evaluate import measure_scores
from exactrank.models.linear import Linear
from exactrank.models.model import Model
from exactrank.models.network import Network

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from exactrank._support.pictures import Panels
    from exactrank.rankers.base import Ranker

MAX_POINTS = 1_000_000  #: of a grid
SAMPLES = (100, 1_000, 10_000)  #: of queries, as in the paper


@dataclass(frozen=True)
class Roughness:
    """Roughness of a curve."""

    variation: float  #: (2); 0 if the curve is flat
    maxima: int  #: number of values above both neighbors, without the ends

    @classmethod
    def of(cls, values: Floats) -> "Roughness":
        """Compute the roughness of successive ``values``.

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
    """The steps of a curve that is known exactly."""

    count: int
    largest: float  #: the largest change at one point
    all: Roughness


@dataclass(frozen=True)
class WeightCurve:
    """Curve (1) of a weight on a sample of queries."""

    weight: Weight
    queries: int
    value: float  #: value of the measure with the model as it is
    best: float  #: the largest value; for a sampled curve, on the grid
    low: float  #: the largest value is reached between ``low`` and ``high`` percent
    high: float
    span: float  #: the largest value minus the least
    grid: Roughness  #: roughness on the grid
    steps: CurveSteps | None  #: None: the curve was sampled
    values: tuple[float, ...]  #: on the grid

    @property
    def gain(self) -> float:
        """The largest gain from moving the weight."""
        return self.best - self.value if self.best - self.value > SAME_VALUE else 0.0


@dataclass(frozen=True, repr=False)
class Smoothness(Tabular, Plottable):
    """Curves of a measure as single weights of a model move; build it with [`er.inspect.smoothness`][exactrank.inspect.smoothness].

    Its picture has a column of Axes per sample: whole curves above, single steps around the model below. ``plot(ax=...)`` draws only the
    whole curves of all queries.
    """

    measure: Measure
    percent: float  #: weights move up and down by up to this percentage of their value
    curves: tuple[WeightCurve, ...]  #: sample by sample, and weight by weight within each
    skipped: int  #: queries that do not count in the measure's mean, and are not sampled
    samples: Mapping[int, Sample] = field(compare=False)  #: samples by number of queries; the last has all queries

    @property
    def grid(self) -> Floats:
        """The percentages at which all curves are compared."""
        return np.linspace(-self.percent, self.percent, len(self.curves[0].values))

    @property
    def spacing(self) -> float:
        """The distance between these percentages."""
        return 2 * self.percent / (len(self.grid) - 1)

    def of(self, queries: int) -> tuple[WeightCurve, ...]:
        """Return the curves of the sample of this many queries."""
        return tuple(curve for curve in self.curves if curve.queries == queries)

    @property
    def whole(self) -> tuple[WeightCurve, ...]:
        """The curves of all queries."""
        return self.of(self.curves[-1].queries)

    @property
    def verdict(self) -> str:
        """The result in words."""
        curves = self.whole
        current = f"{self.measure} {curves[0].value:.4f} on {curves[0].queries:,} queries"
        best_curve = max(curves, key=lambda curve: curve.gain)
        n_better = sum(curve.gain > 0 for curve in curves)
        if not n_better:
            summary = f"{current}: no weight has a better value within {self.percent:g}% of its own."
        else:
            best_move = f"{(best_curve.low + best_curve.high) / 2:+.3g}% for {best_curve.weight.name}"
            of = f"{n_better} of {len(curves)} weights have a better value within {self.percent:g}% of their own"
            summary = f"{current}: {of}; the best, {best_move}, gains {best_curve.gain:.2g}."
        medians = {size: float(np.median([curve.grid.variation for curve in self.of(size)])) for size in self.samples}
        few_queries, all_queries = min(medians), max(medians)
        trend = f"In steps of {self.spacing:.3g}% the middle curve goes up and down by"
        if few_queries == all_queries:
            return f"{summary} {trend} {medians[all_queries]:.1f} times its span."
        rest = f"{medians[few_queries]:.1f} times its span with {few_queries:,} queries"
        return f"{summary} {trend} {rest} and {medians[all_queries]:.1f} times with all {all_queries:,}."

    def profile(self, weight: str, queries: int | None = None) -> StepFunction:
        """Return the exact step function (1) of a weight over the sample of this many queries, by default all; its variable is p."""
        number = self.curves[-1].queries if queries is None else queries
        curve = next((candidate for candidate in self.of(number) if candidate.weight.name == weight), None)
        if curve is None:
            raise DataError(
                f"there is no curve of {weight!r} on {number:,} queries; there are {', '.join(other.weight.name for other in self.whole)}"
                f" on {', '.join(f'{size:,}' for size in self.samples)} queries"
            )
        if curve.steps is None:
            raise IncompatibleError(f"the scores are not linear in {weight!r}, so its curve was sampled; see its values in curves")
        return self.samples[number].profile(curve.weight, self.percent)

    def to_json(self) -> dict[str, object]:
        """Return everything in a form for ``json.dumps``; ``steps`` of a sampled curve is None."""
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

    def _size(self, **options: object) -> tuple[float, float]:
        return 1.4 + 3.6 * max(len(self.samples), 2), 9.2 if any(curve.steps is None for curve in self.curves) else 6.0

    def _fill(self, figure: "Figure", **options: object) -> "Panels":
        from exactrank.inspect.smoothness_picture import draw_samples

        return draw_samples(figure, self)

    def _draw(self, axes: "Axes", **options: object) -> None:
        from exactrank.inspect.smoothness_picture import draw_whole

        draw_whole(axes, self)

    def _columns(self) -> dict[str, Values]:
        fields = by_column(self.curves, "queries", "value", "best", "low", "high", "gain", "span")
        roughness: dict[str, Values] = {
            "variation": [curve.grid.variation for curve in self.curves],
            "maxima": [curve.grid.maxima for curve in self.curves],
        }
        steps: dict[str, Values] = {"steps": [None if curve.steps is None else curve.steps.count for curve in self.curves]}
        return {"weight": [curve.weight.name for curve in self.curves], **fields, **roughness, **steps}

    def _glance(self) -> Table:
        return small_table(self.verdict, list(self._columns().items()), len(self.curves))

    def __repr__(self) -> str:
        return f"Smoothness({self.verdict!r})"


def smoothness(
    data: RankingData,
    model: "Model | Ranker",
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

    The ``weights`` most influential weights of a linear model, or of a network's hidden layer, are followed, and all output weights of a
    network. This is done on ``samples`` of the queries that are smaller than the data, drawn by ``seed``, and on all queries. Curves are
    compared on a grid of ``points``, on which hidden weights are sampled; all others are known exactly.

    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.4, 0.5]], [0, 2, 1], group=[3], feature_names=["bm25", "dense"])
    >>> result = smoothness(data, Model(Linear(np.array([0.7, 0.5]))), measure="nDCG@10")
    >>> [(curve.weight.name, round(curve.low, 1), round(curve.high, 1), round(curve.gain, 4)) for curve in result.curves]
    [('bm25', -100.0, -40.5, 0.4131), ('dense', 68.0, 100.0, 0.4131)]
    """
    check_data(data)
    check_number("percent", percent, above=True)
    check_count("points", points, 3, MAX_POINTS)
    for name, least, number in (("weights", 1, weights), *(("samples", 1, size) for size in samples)):
        check_count(name, number, least)
    trained = model_of(model)
    parsed = measure_of(trained, measure)
    scorer = trained.scorer
    if not isinstance(scorer, Linear | Network):
        raise IncompatibleError(f"a {scorer.kind} model has no weights to move; give a linear model or a network")
    values = measure_scores(data, trained.predict(data, threads), parsed, threads=threads)[str(parsed)].values
    counts = ~np.isnan(values) & (data.weights > 0)  # the others are left out, so that a sample of n queries has n values
    if not np.any(counts):
        raise DataError(f"{parsed} skips every query of the data, so the measure has no value; give data with relevant documents")
    rows = rows_for(scorer, data.take_queries(counts))
    order = np.random.default_rng(seed).permutation(rows.n_queries)
    parts = [rows.take_queries(np.sort(order[:size])) for size in sorted(set(samples)) if size < rows.n_queries]
    sample_by_size = {part.n_queries: Sample(parsed, scorer, part, threads) for part in [*parts, rows]}
    weights_to_move = sample_by_size[rows.n_queries].weights(weights)
    if not weights_to_move:
        raise DataError("every weight is 0, or its feature is constant within queries, so no weight changes a ranking; train the model")
    grid = np.linspace(-percent, percent, points)
    curves = tuple(_curve(sample, weight, grid) for sample in sample_by_size.values() for weight in weights_to_move)
    return Smoothness(parsed, percent, curves, data.n_queries - rows.n_queries, sample_by_size)


def _curve(sample: Sample, weight: Weight, grid: Floats) -> WeightCurve:
    """Return curve (1) of a weight: exact if the scores are linear in it, otherwise sampled on the grid."""
    if weight.is_linear:
        f = sample.profile(weight, float(grid[-1]))
        sizes, values, best = np.abs(np.diff(f.values)), f(grid), f.best(float(grid[0]), float(grid[-1]))
        steps = CurveSteps(int(np.sum(sizes > SAME_VALUE)), float(sizes.max(initial=0.0)), Roughness.of(f.values))
        extremes = f(0.0), best.value, best.low, best.high, float(np.ptp(f.values))
    else:
        values, model_value = np.split(sample.sample_values(weight, np.append(grid, 0.0)), [len(grid)])
        top, steps = int(np.argmax(values)), None
        extremes = float(model_value[0]), float(values[top]), float(grid[top]), float(grid[top]), float(np.ptp(values))
    return WeightCurve(weight, sample.data.n_queries, *extremes, Roughness.of(values), steps, tuple(values.tolist()))
