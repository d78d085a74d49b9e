"""A picture of the measure against the weight of two systems."""

from typing import TYPE_CHECKING

import numpy as np

from exactrank.fuse.problem import Sweep
from exactrank.pictures import caption

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from exactrank.fuse.fuse import Fusion

LINE, BEST, LEVEL = "#1f4e79", "#c0392b", "#7f7f7f"


def drawn(fusion: "Fusion", sweep: Sweep) -> "Figure":
    """The exact step function, where its optimum is and how sure, and the values of what needs no tuning."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    _draw_weights(axes, fusion, sweep)
    _draw_baselines(axes, fusion, sweep)
    axes.set(xlim=(0, 1), xlabel=_axis(fusion, sweep), ylabel=f"{fusion.measure}, mean over queries")
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(y=0.12)
    axes.legend(fontsize="small", frameon=False, loc="best")
    return figure


def _draw_weights(axes: "Axes", fusion: "Fusion", sweep: Sweep) -> None:
    """The measure by every weight, its best interval, and the interval of the bootstrap."""
    sweep.steps.plot(0.0, 1.0, ax=axes, color=LINE, linewidth=1.2, label="every weight, exactly")
    best = sweep.best
    second = _second(sweep)
    low, high = (0.0, 0.0) if fusion.bootstrap_interval is None else fusion.bootstrap_interval[second]
    if 0 <= low * sweep.end[second] < high * sweep.end[second]:  # negative weights may be spread over several axes
        axes.axvspan(low, high, color=BEST, alpha=0.08, linewidth=0, label="95% interval, by bootstrap")
    axes.axvspan(best.low, best.high, color=BEST, alpha=0.35, linewidth=1)  # an edge shows where it is too narrow to see
    axes.plot(best.middle(), fusion.value, "o", color=BEST, label=f"best: {fusion.value:.4f} at {best.middle():.4f}")


def _draw_baselines(axes: "Axes", fusion: "Fusion", sweep: Sweep) -> None:
    """Single systems at the ends, equal weights in the middle, and RRF, which has no place on the axis, as a level."""
    values = {row.name: row.mean for row in fusion.comparison}
    if np.all(sweep.start + sweep.end > 0):  # with a negative weight the axis holds neither
        for at, name in enumerate((fusion.systems[1 - _second(sweep)], fusion.systems[_second(sweep)])):
            axes.plot(
                at, values[name], "s^"[at], color="black", clip_on=False, zorder=3, label=f"{caption(name)} alone: {values[name]:.4f}"
            )
        axes.plot(0.5, values["CombSUM"], "D", color="black", label=f"equal weights: {values['CombSUM']:.4f}")
    axes.axhline(values["RRF (k=60)"], color=LEVEL, linewidth=1, linestyle="--", label=f"RRF (k=60): {values['RRF (k=60)']:.4f}")


def _second(sweep: Sweep) -> int:
    """The number of the system whose weight grows along the axis."""
    return int(np.argmax(np.abs(sweep.end)))


def _axis(fusion: "Fusion", sweep: Sweep) -> str:
    second = _second(sweep)
    sign, other = (" -" if side[j] < 0 else " " for side, j in ((sweep.end, second), (sweep.start, 1 - second)))
    grows, falls = caption(fusion.systems[second]), caption(fusion.systems[1 - second])
    return f"weight of{sign}{grows} (that of{other}{falls} is the rest to 1)"
