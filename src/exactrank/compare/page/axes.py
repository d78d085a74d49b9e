"""Scales from values to pixels, with ticks at round numbers, and the frame of a chart.

Ticks are multiples of 1, 2 or 5 times a power of ten (Heckbert 1990); on a logarithmic scale the powers of ten, and 2 and 5 times those
where there are few.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from markupsafe import Markup

from exactrank.compare.page.numbers import MINUS
from exactrank.compare.page.svg import FONT, element, shortened, text_width

TOP, RIGHT, BOTTOM = 24.0, 12.0, 22.0  #: margins, with room for the titles of the axes
TICK = 18.0  #: pixels for the labels of x
GAP = 6.0  #: between a tick and its label


@dataclass(frozen=True)
class Scale:
    """``low`` to ``high`` drawn from the pixel ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False
    many: int = 5  #: ticks, about; none where it is 0

    def __call__(self, value: float) -> float:
        low, high, at = (_log(v) if self.log else v for v in (self.low, self.high, value))
        return self.start + (at - low) / (high - low) * (self.end - self.start)

    @cached_property
    def ticks(self) -> tuple[float, ...]:
        """Round numbers from ``low`` to ``high``."""
        if not self.many:
            return ()
        return _log_ticks(self.low, self.high) if self.log else _ticks(self.low, self.high, self.many)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The ticks as text, all with the same number of decimals."""
        if self.log or not self.ticks:
            return tuple(f"{tick:,g}" if tick < 1e6 else f"{tick:.0e}" for tick in self.ticks)
        step = self.ticks[1] - self.ticks[0] if len(self.ticks) > 1 else max(abs(self.ticks[0]), 1e-12)
        if max(map(abs, self.ticks)) >= 1e6 or step < 1e-6:
            return tuple(f"{tick:.3g}".replace("-", MINUS) for tick in self.ticks)
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        return tuple(f"{tick:,.{decimals}f}".replace("-", MINUS) for tick in self.ticks)


def extent(values: Iterable[float | None], *, margin: float = 0.05, log: bool = False) -> tuple[float, float]:
    """The ends of a scale that shows all finite values with some room.

    >>> extent([1.0, None, 3.0, float("nan")]), extent([]), extent([2.0], margin=0)
    ((0.9, 3.1), (0.0, 1.0), (1.0, 3.0))
    """
    known = [v for v in values if v is not None and math.isfinite(v) and (v > 0 or not log)]
    if not known:
        return (0.1, 1.0) if log else (0.0, 1.0)
    low, high = min(known), max(known)
    if log:
        return (low / 1.3, high * 1.3)
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        room = abs(low) / 2 or 1.0
        return low - room, high + room
    return low - margin * (high - low), high + margin * (high - low)


@dataclass(frozen=True)
class Frame:
    """The axes of a chart: where its plot lies, its scales, titles and lines."""

    width: float
    height: float
    x: Scale
    y: Scale
    x_title: str
    y_title: str

    @classmethod
    def around(
        cls,
        size: tuple[float, float],
        x: tuple[float, float],
        y: tuple[float, float],
        titles: tuple[str, str],
        *,
        log: bool = False,
        many: int = 5,
    ) -> "Frame":
        """A frame with room for the labels of the y axis; ``log`` and ``many`` are about x."""
        width, height = size
        up = Scale(*y, height - BOTTOM - (TICK if many else 0), TOP)
        left = max((text_width(label) for label in up.labels), default=0) + GAP + 2
        return cls(width, height, Scale(*x, left, width - RIGHT, log, many), up, *titles)

    def draw(self) -> Markup:
        """Lines at the ticks of y, labels at those of both, and titles: that of y above the plot, where it needs no turning."""
        bottom, left = self.y.start, self.x.start
        parts = [
            element("text", shortened(self.y_title, self.width - 4), class_="title", x=2.0, y=FONT),
            element("text", shortened(self.x_title, self.x.end - 2), class_="title", x=self.x.end, y=self.height - 4, text_anchor="end"),
        ]
        for tick, label in zip(self.y.ticks, self.y.labels, strict=True):
            at = self.y(tick)
            parts.append(element("line", class_="grid", x1=left, x2=self.x.end, y1=at, y2=at))
            parts.append(element("text", label, class_="tick", x=left - GAP, y=at + 4, text_anchor="end"))
        for at, label in self._apart():
            parts.append(element("text", label, class_="tick", x=at, y=bottom + 16, text_anchor="middle"))
        if self.x.many:
            parts.append(element("line", class_="axis", x1=left, x2=self.x.end, y1=bottom, y2=bottom))
        return Markup("").join(parts)

    def _apart(self) -> list[tuple[float, str]]:
        """The labels of x that neither meet each other nor leave the chart."""
        kept: list[tuple[float, str]] = []
        taken = 0.0
        for tick, label in zip(self.x.ticks, self.x.labels, strict=True):
            at, half = self.x(tick), text_width(label) / 2
            if at - half >= taken and at + half <= self.width:
                kept.append((at, label))
                taken = at + half + GAP
        return kept


def _ticks(low: float, high: float, many: int) -> tuple[float, ...]:
    """Multiples of a round step.

    >>> _ticks(0.0, 1.0, 5), _ticks(0.713, 0.738, 5)
    ((0.0, 0.2, 0.4, 0.6, 0.8, 1.0), (0.715, 0.72, 0.725, 0.73, 0.735))
    """
    rough = (high - low) / many
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    digits = max(0, 1 - math.floor(math.log10(step)))
    return tuple(round(i * step, digits) + 0.0 for i in range(first, last + 1))


def _log_ticks(low: float, high: float) -> tuple[float, ...]:
    """Powers of ten, and 2 and 5 times those within three of them.

    >>> _log_ticks(0.5, 30)
    (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1, 2, 5) if math.log10(high / low) < 3 else (1,)
    return tuple(t for power in range(first, last + 1) for m in steps if low <= (t := float(f"{m}e{power}")) <= high)


def _log(value: float) -> float:
    return math.log10(value)
