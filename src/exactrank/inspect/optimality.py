"""Exact test of whether a linear model can be improved by changing a single weight: `er.inspect.optimality`.

With all weights but one fixed, the measure is a step function of that one (Tan, Xia, Guo & Wang 2013, section 2.1),

    f_j(v) = mean over queries of measure(X w'),   w'_j = v,   w'_i = w_i for all other i                       (1)

and all of it is computed: its intervals, and the value in each. So the answer is exact, not sampled. A model w with value f(w) is

    a coordinatewise maximum   if no interval of any f_j has a value above f(w)                                 (2)
    a local one                if no interval next to the one around w_j has                                    (3)

where values that differ by at most 1e-12 count as equal. Coordinate ascent by exact line search ends at (2) (their Theorem 2). It
does not follow that no other weights are better: changing two at once may gain.

f(w) is the value that `evaluate` returns, even if w ties documents and the measure differs on both sides of it. Elsewhere
only intervals count: the value at a point where documents tie depends on how ties are broken, so no such
point counts as better. Nor does an interval that is no wider than the rounding error of scores and weights.
"""

import math
import os
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from exactrank._support.arrays import Floats
from exactrank._support.pictures import COLORS, INK, QUIET, Plottable, caption, draw_steps
from exactrank._support.tables import ROWS, Table, Tabular, Values, by_column, small_table
from exactrank.data.ranking_data import RankingData, check_data
from exactrank.errors import DataError, IncompatibleError
from exactrank.inspect.probed import measure_of, model_of, rows_for
from exactrank.learning.objectives.linear_profile import LinearProfile, ProfilePoint
from exactrank.learning.objectives.step_function import LEAST_WIDTH, SAME_VALUE, StepFunction
from exactrank.measures.base import Measure
from exactrank.measures.evaluate import measure_scores
from exactrank.models.linear import Linear
from exactrank.models.model import Model

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from exactrank._support.pictures import Panels
    from exactrank.rankers.base import Ranker

DRAWN = 3  #: weights in a picture by default
MIDDLE_SHARE = 0.8  #: a picture shows this share of the breakpoints, those in the middle
NEAR = 8  #: breakpoints on each side of the weight in the close-up
FAR = 20  #: a best interval this many times farther away is drawn on another scale
COLUMNS = 1500  #: a picture is about this many pixels wide
TICKS = 5  #: the maximum on an axis of weights, whose labels may be long
MIN_LABEL_DISTANCE = 0.17  #: the least distance between two labels, as a share of the axis
COLUMN_NAMES = ("feature", "weight", "gain", "low", "high", "local_gain", "flat_low", "flat_high", "margin")


@dataclass(frozen=True)
class WeightOptimality:
    """Largest gain from changing one weight alone, and how far it can move before the measure changes.

    Intervals are of values of the weight, and open; an end may be infinite.
    """

    feature: str
    weight: float
    gain: float  #: the best value of any interval minus the model's; below 0 if only the tied documents of the model are better
    low: float  #: the best value is reached between ``low`` and ``high``; without a gain, the interval around the weight
    high: float
    local_gain: float  #: the gain of the better neighboring interval; below 0 if both are worse, 0 if there is none
    flat_low: float  #: the measure keeps its value between ``flat_low`` and ``flat_high``
    flat_high: float

    @property
    def margin(self) -> float:
        """Return how far the weight can move in either direction before the measure changes."""
        return min(self.weight - self.flat_low, self.flat_high - self.weight)


@dataclass(frozen=True, repr=False)
class Optimality(Tabular, Plottable):
    """Test of whether a model is a coordinatewise maximum, with proof; the result of [`optimality`][exactrank.inspect.optimality]."""

    measure: Measure
    value: float  #: value of the measure on the data, with the model as it is
    per_weight: tuple[WeightOptimality, ...]  #: in the order of the model's features
    place: ProfilePoint = field(compare=False)  #: recomputes the step functions, which are not stored

    @property
    def coordinatewise_maximum(self) -> bool:
        """Answer to (2): true if changing a single weight cannot raise the measure."""
        return all(weight.gain <= 0 for weight in self.per_weight)

    @property
    def local(self) -> bool:
        """Answer to (3): true if no neighboring interval of any weight is better."""
        return all(weight.local_gain <= 0 for weight in self.per_weight)

    @property
    def best(self) -> WeightOptimality:
        """Return the weight whose change gains most."""
        return self.ranked()[0]

    @property
    def verdict(self) -> str:
        """The result in a sentence."""
        current, best = f"{self.measure} {self.value:.4f}", self.best
        if self.coordinatewise_maximum:
            return f"{current} is a coordinatewise maximum: no change of a single weight raises it."
        kind = "a local maximum but not a coordinatewise one" if self.local else "not a coordinatewise maximum"
        step = f"from {best.weight:.4g} into {interval(best.low, best.high)}"
        return f"{current} is {kind}: moving the weight of {best.feature} {step} raises it by {best.gain:.4g}."

    def ranked(self) -> list[WeightOptimality]:
        """Return the weights by decreasing gain; equal gains by increasing margin."""
        return sorted(self.per_weight, key=lambda weight: (-round(weight.gain, 12), weight.margin))

    def profile(self, feature: str) -> StepFunction:
        """Return the exact step function (1) of a feature's weight; its variable is the change of the weight, v - w_j."""
        names = [weight.feature for weight in self.per_weight]
        if feature not in names:
            raise DataError(f"the model has no feature {feature!r}; there are {', '.join(names[:8])}{', ...' * (len(names) > 8)}")
        return self.place.profile(names.index(feature))

    def to_json(self) -> dict[str, object]:
        """Return everything in a form for ``json.dumps``; an infinite end is None."""
        return {
            "measure": repr(self.measure),
            "value": self.value,
            "coordinatewise_maximum": self.coordinatewise_maximum,
            "local": self.local,
            "best": _plain(self.best),
            "per_weight": [_plain(weight) for weight in self.per_weight],
        }

    def plot(
        self, ax: "Axes | None" = None, path: str | os.PathLike[str] | None = None, *, weights: int = DRAWN, force: bool = False
    ) -> "Panels":
        """Draw the step functions of the ``weights`` that gain most, or of the largest if none gains, each as a whole and as a close-up.

        ``ax`` gets only the whole step function of the first. ``path`` also writes the figure, as PNG, SVG or PDF by the suffix; ``force``
        replaces an existing file. Returns the Axes, a row of two per weight.
        """
        if weights < 1:
            raise DataError(f"weights must be at least 1, got {weights}")
        return self._plot(ax, path, force, weights=weights)

    def _weights_to_draw(self, weights: int) -> list[WeightOptimality]:
        gaining = [weight for weight in self.ranked() if weight.gain > 0]
        return (gaining or sorted(self.per_weight, key=lambda weight: -abs(weight.weight)))[:weights]

    def _size(self, weights: int = DRAWN, **_: object) -> tuple[float, float]:
        return 10.4, 1.2 + 2.4 * len(self._weights_to_draw(weights))

    def _fill(self, figure: "Figure", weights: int = DRAWN, **_: object) -> "Panels":
        selection = self._weights_to_draw(weights)
        panels = figure.subplots(len(selection), 2, squeeze=False)
        for (whole_axes, close_axes), weight in zip(panels, selection, strict=True):
            f = self.profile(weight.feature)
            _draw_whole(whole_axes, f, self, weight)
            position = int(np.searchsorted(f.breakpoints, 0.0))
            close = _pad_range([weight.weight, *(f.breakpoints[max(position - NEAR, 0) : position + NEAR] + weight.weight).tolist()])
            _draw_steps(close_axes, f, self, weight, np.array(close))
            close_axes.ticklabel_format(axis="both", useOffset=False)
            whole_axes.set_ylabel(str(self.measure))
        panels[0, 0].set_title("all but the far ends")
        panels[0, 1].set_title("close up")
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        figure.suptitle(caption(self.verdict, 400), wrap=True)
        return panels

    def _draw(self, axes: "Axes", **_: object) -> None:
        weight = self._weights_to_draw(1)[0]
        _draw_whole(axes, self.profile(weight.feature), self, weight)
        axes.set_ylabel(str(self.measure))
        axes.legend()

    def _columns(self) -> dict[str, Values]:
        return by_column(self.per_weight, *COLUMN_NAMES)

    def _glance(self) -> Table:
        return small_table(self.verdict, list(by_column(self.ranked()[:ROWS], *COLUMN_NAMES).items()), len(self.per_weight))

    def __repr__(self) -> str:
        return f"Optimality({self.verdict!r})"


def optimality(
    data: RankingData, model: "Model | Ranker", *, measure: str | Measure | None = None, threads: int | None = None
) -> Optimality:
    """Prove or refute that no change of a single weight of a linear model raises ``measure`` on ``data``.

    ``model`` comes from [`er.load`][exactrank.load], wherever it was trained, or is a fitted ranker. The measure is
    by default the one that it was trained on.

    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.4, 0.5]], [0, 2, 1], group=[3], feature_names=["bm25", "dense"])
    >>> optimality(data, Model(Linear(np.array([1.0, 0.5]))), measure="nDCG@10")
    Optimality('nDCG@10 0.5869 is not a coordinatewise maximum: moving the weight of dense from 0.5 into (1.2, inf) raises it by 0.4131.')
    >>> optimality(data, Model(Linear(np.array([0.2, 0.5]))), measure="nDCG@10")
    Optimality('nDCG@10 1.0000 is a coordinatewise maximum: no change of a single weight raises it.')
    """
    check_data(data)
    trained = model_of(model)
    linear = trained.scorer
    if not isinstance(linear, Linear):
        remedy = "give a linear model" + (
            "; inspect smoothness (er.inspect.smoothness) looks at networks" if linear.kind == "network" else ""
        )
        raise IncompatibleError(f"a {linear.kind} model has no weight per feature, so there are no step functions; {remedy}")
    parsed = measure_of(trained, measure)
    scores = trained.predict(data, threads)
    value = measure_scores(data, scores, parsed, threads=threads).means[str(parsed)]
    if math.isnan(value):
        raise DataError(
            f"{parsed} skips every query of the data, so the measure has no value; give data with relevant documents, or empty=0"
        )
    rows = rows_for(linear, data)
    place = LinearProfile.of(parsed.over(rows, threads=threads)).at(linear.weights)
    size = float(np.abs(scores).max())
    return Optimality(parsed, value, tuple(_examine_weight(place, rows, j, value, size) for j in range(rows.n_features)), place)


def interval(low: float, high: float) -> str:
    """Format an interval with as many digits as its two ends need to differ.

    >>> interval(0.5, math.inf), interval(0.123456, 0.123458)
    ('(0.5, inf)', '(0.123456, 0.123458)')
    """
    digits = next((n for n in range(4, 17) if low == high or f"{low:.{n}g}" != f"{high:.{n}g}"), 17)
    return f"({low:.{digits}g}, {high:.{digits}g})"


def _examine_weight(place: ProfilePoint, data: RankingData, j: int, value: float, size: float) -> WeightOptimality:
    """Analyze the weight of feature ``j`` by its step function (1); ``size`` is that of the largest score."""
    weight, tolerance = float(place.theta[j]), SAME_VALUE * max(1.0, abs(value))
    steepest = float(np.abs(data.X[:, j]).max())
    f, size = place.profile(j), max(abs(weight), size / steepest if steepest > 0 else 0.0)
    # Intervals that rounding of numbers of this size can create do not count, except the one around 0.
    ends = np.concatenate([[-math.inf], f.breakpoints, [math.inf]])
    low, high = ends[:-1], ends[1:]
    wide = np.isinf(high - low) | (high - low > LEAST_WIDTH * np.maximum(np.maximum(np.abs(low), np.abs(high)), size))
    counting = np.flatnonzero(wide | ((low < 0) & (high > 0)))
    left_breakpoints = counting[1:] - 1  # the breakpoint on the left of each interval except the first
    f = StepFunction(f.breakpoints[left_breakpoints], f.values[counting], f.at[left_breakpoints])
    first, last = (int(np.searchsorted(f.breakpoints, 0.0, side)) for side in ("left", "right"))
    left, beyond_left = _flat(-f.breakpoints[:first][::-1], f.values[: first + 1][::-1], f.at[:first][::-1], value, tolerance)
    right, beyond_right = _flat(f.breakpoints[last:], f.values[last:], f.at[last:], value, tolerance)
    best = f.best()
    changes = best.value - value, max(beyond_left, beyond_right) - value
    gain, local_gain = (0.0 if abs(change) <= tolerance or math.isinf(change) else change for change in changes)
    ends_of_best = (best.low, best.high) if gain > 0 else (-left, right)
    return WeightOptimality(
        data.feature_names[j], weight, gain, weight + ends_of_best[0], weight + ends_of_best[1], local_gain, weight - left, weight + right
    )


def _flat(points: Floats, values: Floats, at: Floats, value: float, tolerance: float) -> tuple[float, float]:
    """Return how far to one side of the weight the measure keeps ``value``, and the next value; -inf if it never changes.

    ``points`` lead away from 0, with ``values`` between and ``at`` them.
    """
    unchanged = np.abs(values - value) <= tolerance
    unchanged[1:] &= np.abs(at - value) <= tolerance
    if np.all(unchanged):
        return math.inf, -math.inf
    end = int(np.argmin(unchanged))
    return float(points[end - 1]) if end else 0.0, float(values[end])


def _plain(weight: WeightOptimality) -> dict[str, object]:
    return {name: None if isinstance(number, float) and math.isinf(number) else number for name, number in asdict(weight).items()}


def _draw_whole(axes: "Axes", f: StepFunction, result: Optimality, weight: WeightOptimality) -> None:
    """Draw most breakpoints and the best interval; if that is far away, the axis is nearly logarithmic beyond the breakpoints."""
    ends = np.quantile(f.breakpoints, [(1 - MIDDLE_SHARE) / 2, (1 + MIDDLE_SHARE) / 2]) if len(f.breakpoints) else np.zeros(1)
    middle = _pad_range([weight.weight, *(ends + weight.weight).tolist()])
    low, high = _pad_range([*middle, *(end for end in (weight.low, weight.high) if math.isfinite(end))])
    linear = max(map(abs, middle))
    if max(abs(low), abs(high)) < FAR * linear:
        _draw_steps(axes, f, result, weight, np.linspace(low, high, COLUMNS))
    else:
        axes.set_xscale("asinh", linear_width=linear)  # functions of the C library are fine here: a drawing decides nothing
        _draw_steps(axes, f, result, weight, linear * np.sinh(np.linspace(np.arcsinh(low / linear), np.arcsinh(high / linear), COLUMNS)))


def _draw_steps(axes: "Axes", f: StepFunction, result: Optimality, weight: WeightOptimality, columns: Floats) -> None:
    """Draw the steps between the ends of ``columns``; if there are more steps than columns, the range in each column."""
    low, high = float(columns[0]), float(columns[-1])
    draw_steps(axes, f.breakpoints + weight.weight, f.values, columns, label="every value (exact)")
    axes.axhline(result.value, color=QUIET, linewidth=0.8, linestyle="--", zorder=0)
    axes.axvspan(*np.clip([weight.flat_low, weight.flat_high], low, high), color=QUIET, alpha=0.25, label="same value as now")
    axes.plot(weight.weight, result.value, "o", color=INK, label="the model")
    if weight.gain > 0 and weight.low < high and weight.high > low:
        ends = np.clip([weight.low, weight.high], low, high)
        axes.axvspan(*ends, color=COLORS[1], alpha=0.25)
        axes.plot(ends.mean(), result.value + weight.gain, "^", color=COLORS[1], label="best interval")
    axes.set_xlim(low, high)
    axes.margins(y=0.12)
    axes.set_xlabel(f"weight of {caption(weight.feature)}")
    if axes.get_xscale() == "linear":
        axes.locator_params(axis="x", nbins=TICKS)
    else:
        _thin_ticks(axes)


def _thin_ticks(axes: "Axes") -> None:
    """Remove tick labels that would overlap others; 0 and the outer ones stay."""
    low, high = axes.get_xlim()
    places = [place for place in axes.get_xticks().tolist() if low <= place <= high]
    scaled = (axes.transData + axes.transAxes.inverted()).transform([(place, 0.0) for place in places])[:, 0].tolist() if places else []
    labels: dict[float, float] = {}
    for place, at in sorted(zip(places, scaled, strict=True), key=lambda pair: (pair[0] != 0, -abs(pair[0]))):
        if all(abs(at - other) >= MIN_LABEL_DISTANCE for other in labels.values()):
            labels[place] = at
    axes.set_xticks(sorted(labels))


def _pad_range(numbers: list[float]) -> tuple[float, float]:
    padding = 0.08 * (max(numbers) - min(numbers)) or max(abs(numbers[0]), 1.0)
    return min(numbers) - padding, max(numbers) + padding
