"""The picture of `xr.smoothness`, after Figures 2 to 5 of Yue & Burges (2007): a column for each sample of queries.

The rows: whole curves that are known exactly; the single steps around the model; and a network's hidden weights, whose curves
are sampled.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from exactrank.pictures import caption, outline

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from exactrank.probe.smoothness import Curve, Smoothness

NEAR = 12  #: steps on each side of the model, of the curve in the middle
COLUMNS = 800  #: a panel has about so many pixels across


def drawn(found: "Smoothness") -> "Figure":
    """The picture."""
    from matplotlib.figure import Figure

    sampled = any(curve.steps is None for curve in found.curves)
    heights = [5.6, 3.2] if sampled else [5.6]
    figure = Figure(figsize=(1.4 + 3.6 * max(len(found.samples), 2), sum(heights) + 0.4), layout="constrained")
    parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    _draw_exact(parts[0], found)
    if sampled:
        panels = parts[1].subplots(1, len(found.samples), squeeze=False)[0]
        for axes, queries in zip(panels, found.samples, strict=True):
            curves = [curve for curve in found.of(queries) if curve.steps is None]
            for curve in curves:
                axes.plot(found.grid, curve.values, marker=".", markersize=2, linewidth=0.8, label=caption(curve.weight.name))
            _mark(axes, curves[0].value)
        _finish(parts[1], panels, found, "change of the hidden weight (%)", f"sampled: {len(found.grid)} points")
    figure.suptitle(f"{found.measure} as one weight of the model moves", fontsize="medium")
    return figure


def _draw_exact(part: "Figure | SubFigure", found: "Smoothness") -> None:
    panels = part.subplots(2, len(found.samples), squeeze=False)
    for (whole, near), queries in zip(panels.T, found.samples, strict=True):
        curves = [curve for curve in found.of(queries) if curve.steps is not None]
        steps = [found.profile(curve.weight.name, queries) for curve in curves]
        away = [np.sort(np.abs(f.breakpoints)) for f in steps]  # from the model; about NEAR steps on each side are within reach
        reach = min(found.percent, float(np.median([far[2 * NEAR] if len(far) > 2 * NEAR else found.percent for far in away])))
        for curve, f in zip(curves, steps, strict=True):
            _draw_steps(whole, curve, outline(f.breakpoints, f.values, np.linspace(-found.percent, found.percent, COLUMNS)))
            _draw_steps(near, curve, outline(f.breakpoints, f.values - curve.value, np.array([-reach, reach])))
        _mark(whole, curves[0].value)
        _mark(near, 0.0)
        near.ticklabel_format(axis="y", style="sci", scilimits=(-2, 2))
    panels[1, 0].set_ylabel("close up: less the model's")
    _finish(part, panels[0], found, "change of the weight (%)", "exact: every step")


def _draw_steps(axes: "Axes", curve: "Curve", steps: Any) -> None:
    edges, least, most = steps
    colour = axes.stairs(most, edges, baseline=None, linewidth=1.0, label=caption(curve.weight.name)).get_edgecolor()
    axes.stairs(most, edges, baseline=least, fill=True, color=colour)
    axes.update_datalim([(edges[0], least.min()), (edges[-1], most.max())])


def _mark(axes: "Axes", value: float) -> None:
    axes.plot(0.0, value, "o", color="black", markersize=4, label="the model", zorder=3)
    axes.use_sticky_edges = False
    axes.margins(x=0, y=0.06)
    axes.locator_params(axis="x", nbins=4)


def _finish(part: "Figure | SubFigure", panels: "Sequence[Axes]", found: "Smoothness", across: str, legend: str) -> None:
    """One scale for all panels, and what they show in words."""
    ends = np.array([axes.get_ylim() for axes in panels])
    for axes, queries in zip(panels, found.samples, strict=True):
        axes.set_ylim(ends[:, 0].min(), ends[:, 1].max())
        axes.set_title(f"{queries:,} queries", fontsize="medium")
    panels[0].set_ylabel(str(found.measure))
    part.supxlabel(across, fontsize="medium")
    handles, labels = panels[0].get_legend_handles_labels()
    part.legend(handles, labels, title=legend, loc="outside right center", frameon=False, fontsize="small", title_fontsize="small")
