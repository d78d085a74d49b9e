"""The figure of an experiment: panels of curves, with intervals where there are some."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Numbers = tuple[float, ...]
ACROSS = 3  #: panels in a row


@dataclass(frozen=True)
class Curve:
    """Points that are joined."""

    label: str
    x: Numbers
    y: Numbers
    low: Numbers | None = None  #: where an interval around each y ends
    high: Numbers | None = None


@dataclass(frozen=True)
class Panel:
    """Curves that share their axes."""

    title: str
    x: str
    y: str
    curves: tuple[Curve, ...]
    log: str = ""  #: which axes are logarithmic: "x", "y" or "xy"
    mark: float | None = None  #: a line across, at this x


def draw(panels: tuple[Panel, ...], file: BinaryIO) -> None:
    """Write ``panels``, a few in a row, as a PNG picture."""
    from matplotlib.figure import Figure

    across = min(ACROSS, len(panels))
    down = -(-len(panels) // across)
    figure = Figure(figsize=(max(5.5, 4.2 * across), 3.6 * down), layout="constrained")
    places = figure.subplots(down, across, squeeze=False).ravel()
    for axes, panel in zip(places, panels, strict=False):
        _draw_panel(axes, panel)
    for axes in places[len(panels) :]:
        axes.set_visible(False)
    figure.savefig(file, format="png", dpi=150)


def _draw_panel(axes: "Axes", panel: Panel) -> None:
    for curve in panel.curves:
        marker = "." if len(curve.x) <= 20 else None
        if curve.low is None or curve.high is None:
            axes.plot(curve.x, curve.y, marker=marker, linewidth=1.2, label=curve.label)
        else:
            ends = [[y - e for y, e in zip(curve.y, curve.low, strict=True)], [e - y for y, e in zip(curve.y, curve.high, strict=True)]]
            axes.errorbar(curve.x, curve.y, yerr=ends, marker=marker, linewidth=1.2, elinewidth=0.8, capsize=2, label=curve.label)
    for axis in panel.log:
        axes.set(**{f"{axis}scale": "log"})
    if panel.mark is not None:
        axes.axvline(panel.mark, color="black", linewidth=0.6, linestyle=":")
    axes.set(xlabel=panel.x, ylabel=panel.y)
    axes.set_title(panel.title, fontsize="medium")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize="small", frameon=False)
