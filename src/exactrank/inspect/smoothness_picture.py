"""Picture of `er.inspect.smoothness`, after Figures 2 to 5 of Yue & Burges (2007): a column for each sample of queries.

The rows: whole curves that are known exactly; the single steps around the model; and a network's hidden weights, whose curves
are sampled.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import Floats
from exactrank._support.pictures import COLORS, INK, caption, draw_steps
from exactrank.learning.objectives.step_function import StepFunction

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from exactrank.inspect.smoothness import Smoothness, WeightCurve

NEAR = 12  #: steps of the median curve on each side of the model
COLUMNS = 800  #: a panel is about this many pixels wide


def draw_samples(figure: "Figure", result: "Smoothness") -> "npt.NDArray[Any]":
    """Draw the whole picture, and return the Axes of all panels row by row."""
    sampled = any(curve.steps is None for curve in result.curves)
    heights = [5.6, 3.2] if sampled else [5.6]
    parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    panels = _draw_exact(parts[0], result)
    if sampled:
        last = parts[1].subplots(1, len(result.samples), squeeze=False)
        for axes, queries in zip(last[0], result.samples, strict=True):
            _draw_points(axes, result, queries)
        _finish(parts[1], last[0], result, "change of the hidden weight (%)", f"sampled: {len(result.grid)} points")
        panels = np.concatenate([panels, last])
    figure.suptitle(f"{result.measure} as one weight of the model moves")
    return panels


def draw_whole(axes: "Axes", result: "Smoothness") -> None:
    """Draw the exact curves of all queries into a single Axes."""
    queries = result.whole[0].queries
    _draw_curves(axes, result, queries)
    axes.set(xlabel="change of the weight (%)", ylabel=str(result.measure), title=f"{queries:,} queries")
    axes.legend()


def _draw_exact(part: "SubFigure", result: "Smoothness") -> "npt.NDArray[Any]":
    panels: npt.NDArray[Any] = part.subplots(2, len(result.samples), squeeze=False)
    for (whole_axes, close_axes), queries in zip(panels.T, result.samples, strict=True):
        _draw_curves(whole_axes, result, queries)
        curves, steps = _exact(result, queries)
        distances = [np.sort(np.abs(f.breakpoints)) for f in steps]  # from the model; the range shown holds about NEAR steps on each side
        reach = min(result.percent, float(np.median([far[2 * NEAR] if len(far) > 2 * NEAR else result.percent for far in distances])))
        for number, (curve, f) in enumerate(zip(curves, steps, strict=True)):
            _draw_steps(close_axes, number, curve, f.breakpoints, f.values - curve.value, np.array([-reach, reach]))
        _mark(close_axes, 0.0)
        close_axes.ticklabel_format(axis="y", style="sci", scilimits=(-2, 2))
    panels[1, 0].set_ylabel("close up: less the model's")
    _finish(part, panels[0], result, "change of the weight (%)", "exact: every step")
    return panels


def _exact(result: "Smoothness", queries: int) -> "tuple[list[WeightCurve], list[StepFunction]]":
    """Return the curves of a sample that are known exactly, and their step functions."""
    curves = [curve for curve in result.of(queries) if curve.steps is not None]
    return curves, [result.profile(curve.weight.name, queries) for curve in curves]


def _draw_curves(axes: "Axes", result: "Smoothness", queries: int) -> None:
    curves, steps = _exact(result, queries)
    for number, (curve, f) in enumerate(zip(curves, steps, strict=True)):
        _draw_steps(axes, number, curve, f.breakpoints, f.values, np.linspace(-result.percent, result.percent, COLUMNS))
    _mark(axes, curves[0].value)


def _draw_points(axes: "Axes", result: "Smoothness", queries: int) -> None:
    curves = [curve for curve in result.of(queries) if curve.steps is None]
    for curve in curves:
        axes.plot(result.grid, curve.values, marker=".", markersize=2, linewidth=0.8, label=caption(curve.weight.name))
    _mark(axes, curves[0].value)


def _draw_steps(axes: "Axes", number: int, curve: "WeightCurve", points: Floats, values: Floats, columns: Floats) -> None:
    draw_steps(axes, points, values, columns, color=COLORS[number % len(COLORS)], label=caption(curve.weight.name))


def _mark(axes: "Axes", value: float) -> None:
    axes.plot(0.0, value, "o", color=INK, markersize=4, label="the model", zorder=3)
    axes.use_sticky_edges = False
    axes.margins(x=0, y=0.06)
    axes.locator_params(axis="x", nbins=4)


def _finish(part: "Figure | SubFigure", panels: "Sequence[Axes]", result: "Smoothness", across: str, legend: str) -> None:
    """Set the same scale for all panels, and label them."""
    ends = np.array([axes.get_ylim() for axes in panels])
    for axes, queries in zip(panels, result.samples, strict=True):
        axes.set_ylim(ends[:, 0].min(), ends[:, 1].max())
        axes.set_title(f"{queries:,} queries")
    panels[0].set_ylabel(str(result.measure))
    part.supxlabel(across)
    handles, labels = panels[0].get_legend_handles_labels()
    part.legend(handles, labels, title=legend, loc="outside right center", title_fontsize="small")
