"""The picture of a fusion of two systems: the exact step function of the measure against the weight."""

from typing import TYPE_CHECKING

import numpy as np

from exactrank._support.pictures import COLORS, INK, QUIET, caption, draw_steps
from exactrank.fusion.problem import Sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from exactrank.fusion.fusion import Fusion

BEST = COLORS[1]
COLUMNS = 1500  #: a picture has about this many pixels across


def draw_weights(axes: "Axes", fusion: "Fusion", sweep: Sweep) -> None:
    """The exact step function, where its optimum is and how sure, and the values of what needs no tuning."""
    best = sweep.best
    second = int(np.argmax(np.abs(sweep.end)))  # the number of the system whose weight grows along the axis
    falls, grows = fusion.systems[1 - second], fusion.systems[second]

    draw_steps(axes, sweep.steps.breakpoints, sweep.steps.values, np.linspace(0.0, 1.0, COLUMNS), label="every weight, exactly")
    low, high = (0.0, 0.0) if fusion.bootstrap_interval is None else fusion.bootstrap_interval[second]
    if 0 <= low * sweep.end[second] < high * sweep.end[second]:  # negative weights may be spread over several axes
        axes.axvspan(low, high, color=BEST, alpha=0.08, linewidth=0, label="95% interval, by bootstrap")
    axes.axvspan(best.low, best.high, color=BEST, alpha=0.35, linewidth=1)  # an edge shows where it is too narrow to see
    axes.plot(best.middle(), fusion.value, "o", color=BEST, label=f"best: {fusion.value:.4f} at {best.middle():.4f}")

    values = {row.name: row.mean for row in fusion.comparison}
    if np.all(sweep.start + sweep.end > 0):  # with a negative weight the axis has no system alone, nor equal weights
        for at, name in enumerate((falls, grows)):
            shown = f"{caption(name)} alone: {values[name]:.4f}"
            axes.plot(at, values[name], "s^"[at], color=INK, clip_on=False, zorder=3, label=shown)
        axes.plot(0.5, values["CombSUM"], "D", color=INK, label=f"equal weights: {values['CombSUM']:.4f}")
    rrf = values["RRF (k=60)"]  # which has no place on the axis
    axes.axhline(rrf, color=QUIET, linewidth=1, linestyle="--", label=f"RRF (k=60): {rrf:.4f}")

    sign, other = (" -" if side[j] < 0 else " " for side, j in ((sweep.end, second), (sweep.start, 1 - second)))
    weight = f"weight of{sign}{caption(grows)} (that of{other}{caption(falls)} is 1 minus this)"
    axes.set(xlim=(0, 1), xlabel=weight, ylabel=f"{fusion.measure}, mean over queries")
    axes.margins(y=0.12)
    if fusion.constraints:  # where one is missed, the function falls below the picture
        kept = [*sweep.steps.values[sweep.steps.values >= 0], *values.values()]
        axes.set_ylim(min(kept) - 0.12 * (max(kept) - min(kept) + 1e-3))
    axes.legend(loc="best", frameon=True, framealpha=0.8, edgecolor="none")
