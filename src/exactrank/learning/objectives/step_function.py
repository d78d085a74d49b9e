"""Functions of one variable that are constant between finitely many points.

Along a ray s + alpha t of score vectors a ranking measure changes only where two documents swap ranks (Tan,
Xia, Guo & Wang 2013, section 2.1), so it is

    f(alpha) = values[i]  for breakpoints[i - 1] < alpha < breakpoints[i]                                       (1)
    f(breakpoints[i]) = at[i]                                                                                   (2)

(2) needs its own numbers: at breakpoints documents are tied, and the tie policy decides.
"""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import Floats
from exactrank._support.pictures import COLORS, Plottable, draw_steps
from exactrank._support.tables import Tabular, Values

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from exactrank._support.pictures import Panels

#: Values closer than this are equal: sums over queries differ by their rounding.
SAME_VALUE = 1e-12
#: An interval narrower than this, relative to its ends, may be an artifact of rounding.
LEAST_WIDTH = 2.0**-40
COLUMNS = 1500  #: a picture has about this many pixels across


@dataclass(frozen=True)
class Interval:
    """An open interval on which a step function has one value."""

    low: float
    high: float
    value: float

    def middle(self, scale: float = 1.0) -> float:
        """Return the midpoint; of an unbounded interval a point at a distance of at least ``scale`` from its end.

        >>> Interval(2.0, math.inf, 0.5).middle()
        4.0
        """
        if math.isinf(self.low) and math.isinf(self.high):
            return 0.0
        if math.isinf(self.high):
            return self.low + max(abs(self.low), scale)
        if math.isinf(self.low):
            return self.high - max(abs(self.high), scale)
        return self.low + (self.high - self.low) / 2

    def __contains__(self, alpha: float) -> bool:
        return self.low < alpha < self.high

    @property
    def is_unbounded(self) -> bool:
        """True if the interval is infinite on a side."""
        return math.isinf(self.high - self.low)


@dataclass(frozen=True, eq=False, repr=False)
class StepFunction(Tabular, Plottable):
    """A function that is constant between ``breakpoints``, (1), with values of their own ``at`` them, (2).

    >>> f = StepFunction(np.array([0.0, 1.0]), np.array([0.2, 0.6, 0.4]), np.array([0.5, 0.6]))
    >>> f(0.5), f(1.0), f([-3.0, 0.0, 2.0]).tolist()
    (0.6, 0.6, [0.2, 0.5, 0.4])
    >>> f.best()
    Interval(low=0.0, high=1.0, value=0.6)
    """

    breakpoints: Floats  #: in ascending order
    values: Floats  #: one more than there are breakpoints
    at: Floats  #: one per breakpoint

    def __post_init__(self) -> None:
        for name in ("breakpoints", "values", "at"):
            array = np.array(getattr(self, name), np.float64)
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        n = len(self.breakpoints)
        if self.values.shape != (n + 1,) or self.at.shape != (n,) or not np.all(np.diff(self.breakpoints) > 0):
            raise ValueError(
                f"{n} rising breakpoints need {n + 1} values between and {n} at them, got {len(self.values)} and {len(self.at)}"
            )

    @overload
    def __call__(self, alpha: float) -> float: ...
    @overload
    def __call__(self, alpha: npt.ArrayLike) -> Floats: ...
    def __call__(self, alpha: npt.ArrayLike) -> float | Floats:
        """Return the value at ``alpha``, a number or an array."""
        points = np.asarray(alpha, np.float64)
        left, right = (np.searchsorted(self.breakpoints, points, side) for side in ("left", "right"))
        if not len(self.breakpoints):
            values = np.full(points.shape, self.values[0])
        else:
            values = np.where(left < right, self.at[np.minimum(left, len(self.at) - 1)], self.values[left])
        return values if points.ndim else float(values)

    def __add__(self, function: "StepFunction") -> "StepFunction":
        """Return the sum, whose breakpoints are those of both."""
        f, g = with_common_breakpoints([self, function])
        return StepFunction(f.breakpoints, f.values + g.values, f.at + g.at)

    def __mul__(self, factor: float) -> "StepFunction":
        return StepFunction(self.breakpoints, self.values * factor, self.at * factor)

    __rmul__ = __mul__

    def __repr__(self) -> str:
        best = self.best()
        return f"StepFunction({len(self.breakpoints):,} breakpoints, best {best.value:.6g} on ({best.low:.6g}, {best.high:.6g}))"

    def best(self, low: float = -math.inf, high: float = math.inf) -> Interval:
        """Return the interval between ``low`` and ``high`` with the largest value; among equals the widest bounded one.

        Values at breakpoints, where documents tie, do not count. Nor do intervals that are no wider than a rounding error, unless there
        are no others.
        """
        if not low < high:
            raise ValueError(f"an interval needs low < high, got {low} and {high}")
        first, last = np.searchsorted(self.breakpoints, low, "right"), np.searchsorted(self.breakpoints, high, "left")
        ends = np.concatenate([[low], self.breakpoints[first:last], [high]])
        values = self.values[first : last + 1]
        width = np.diff(ends)
        size = np.maximum(*(np.abs(np.where(np.isinf(e), 0.0, e)) for e in (ends[:-1], ends[1:])))
        values = np.where(width > LEAST_WIDTH * size, values, -np.inf) if np.any(width > LEAST_WIDTH * size) else values
        widest = np.where(values >= values.max() - SAME_VALUE, np.where(np.isinf(width), 0.0, width), -1.0)
        number = int(np.argmax(widest))
        return Interval(float(ends[number]), float(ends[number + 1]), float(values[number]))

    def part(self, low: float, high: float) -> "StepFunction":
        """Return the function between ``low`` and ``high``."""
        first, last = np.searchsorted(self.breakpoints, low, "left"), np.searchsorted(self.breakpoints, high, "right")
        return StepFunction(self.breakpoints[first:last], self.values[first : last + 1], self.at[first:last])

    def _columns(self) -> dict[str, Values]:
        ends = np.concatenate([[-math.inf], self.breakpoints, [math.inf]])
        return {"low": ends[:-1], "high": ends[1:], "value": self.values}

    def plot(
        self,
        ax: "Axes | None" = None,
        path: str | os.PathLike[str] | None = None,
        *,
        low: float | None = None,
        high: float | None = None,
        force: bool = False,
        **style: object,
    ) -> "Panels":
        """Draw the function between ``low`` and ``high``, by default around the middle 90% of its breakpoints; return the Axes.

        It is drawn into ``ax`` as a line of this ``style`` (color, label, ...), or with its best interval into a new figure. ``path`` also
        writes the figure, as PNG, SVG or PDF by the suffix; ``force`` replaces an existing file.
        """
        return self._plot(ax, path, force, low=low, high=high, best=ax is None, **style)

    def _draw(
        self, axes: "Axes", low: float | None = None, high: float | None = None, best: bool = True, color: str = COLORS[0], **style: object
    ) -> None:
        ends = np.quantile(self.breakpoints, [0.05, 0.95]) if len(self.breakpoints) else np.zeros(2)
        margin = 0.05 * float(ends[1] - ends[0]) or 1.0
        left, right = float(ends[0]) - margin if low is None else low, float(ends[1]) + margin if high is None else high
        if not left < right:
            raise ValueError(f"a picture needs low < high, got {left} and {right}")
        draw_steps(
            axes, self.breakpoints, self.values, np.linspace(left, right, COLUMNS), color=color, **{"label": "every value, exactly"} | style
        )
        axes.set_xlabel("alpha")
        if best:
            top = self.best(left, right)
            axes.axvspan(top.low, top.high, color=COLORS[1], alpha=0.2, linewidth=1)
            axes.plot(top.middle(), top.value, "o", color=COLORS[1], label=f"best: {top.value:.4f} at {top.middle():.4g}")
            axes.set(xlim=(left, right), ylabel="value")
            axes.margins(y=0.08)
            axes.legend()


def with_common_breakpoints(functions: Sequence[StepFunction]) -> list[StepFunction]:
    """Return the same ``functions``, each with the breakpoints of all of them."""
    points = np.unique(np.concatenate([f.breakpoints for f in functions]))
    return [StepFunction(points, f.values[np.append(np.searchsorted(f.breakpoints, points), -1)], f(points)) for f in functions]
