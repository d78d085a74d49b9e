"""SVG: elements as text that is escaped exactly once, how methods look, and scales with the axes of a chart.

A method is told from others by colour, dash and marker, the same in every chart. Colours are those of Okabe & Ito (2008), which the
colour-blind can tell apart, without yellow, which is pale on white. With 7 colours, 3 dashes and 5 markers two methods of fewer than 105
differ in one of them at least.

Ticks are multiples of 1, 2 or 5 times a power of ten (Heckbert 1990); on a logarithmic scale the powers of ten, and 2 and 5 times those
where there are few.
"""

import math
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from markupsafe import Markup

from exactrank.compare.page.table import MINUS
from exactrank.text import printable

Span = tuple[float, float]  #: the ends of a scale, or width and height
FONT = 12.0  #: pixels, in all charts
TOP, RIGHT, BOTTOM = 24.0, 12.0, 22.0  #: margins of a chart, with room for the titles of the axes
TICK = 18.0  #: pixels for the labels of x
GAP = 6.0  #: between a tick and its label
COLOURS, DASHES = 7, 3
_NARROW, _BROAD = set("iljtfrI.,:;'|!()[] "), set("mwMW@%+=<>~\u2014\u2026\u2212")
_SHAPES: dict[str, list[tuple[float, float]]] = {  # around 0, of about equal area
    "square": [(-3.1, -3.1), (3.1, -3.1), (3.1, 3.1), (-3.1, 3.1)],
    "triangle": [(0, -4.2), (4, 3), (-4, 3)],
    "diamond": [(0, -4.4), (4.4, 0), (0, 4.4), (-4.4, 0)],
    "nabla": [(0, 4.2), (4, -3), (-4, -3)],
}
MARKERS = ("circle", *_SHAPES)


def shown(value: Any) -> Any:
    """Text with an escape for each character that has no shape; all else, and what is HTML already, as it is."""
    return printable(value, lines=True) if type(value) is str else value


def element(name: str, *children: str, **attributes: str | float | None) -> Markup:
    """``class_`` is written class and ``data_tip`` data-tip; None leaves an attribute out.

    >>> element("text", "a < b", class_="tick", x=1 / 3)
    Markup('<text class="tick" x="0.33">a &lt; b</text>')
    """
    given = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), coordinate(value) if isinstance(value, float) else shown(value))
        for key, value in attributes.items()
        if value is not None
    )
    return Markup("<{}{}>{}</{}>").format(Markup(name), given, Markup("").join(map(shown, children)), Markup(name))


def coordinate(value: float) -> str:
    """As few digits as a screen shows.

    >>> coordinate(10.0), coordinate(-0.001), coordinate(1.256)
    ('10', '0', '1.26')
    """
    return f"{value:z.2f}".rstrip("0").rstrip(".")


def path(points: list[tuple[float, float]]) -> str:
    """The ``d`` of a line through points.

    >>> path([(0, 1), (2.5, 3)])
    'M0 1L2.5 3'
    """
    return "M" + "L".join(f"{coordinate(x)} {coordinate(y)}" for x, y in points)


def text_width(text: str) -> float:
    """About how many pixels a text takes in a sans-serif font; rather too many than too few."""
    return FONT * sum(map(_character_width, text))


def _character_width(c: str) -> float:
    if unicodedata.combining(c):
        return 0.0
    if unicodedata.east_asian_width(c) in "WF":
        return 1.05
    if c in _BROAD:
        return 0.95
    return 0.36 if c in _NARROW else 0.7 if c.isupper() else 0.6


def shortened(text: str, width: float) -> str:
    """The text, or as much of it as fits with an ellipsis.

    >>> shortened("title", 100), shortened("a very long name indeed", 60)
    ('title', 'a very l…')
    """
    if text_width(text) <= width:
        return text
    fitting = bisect_right(range(len(text)), width, key=lambda n: text_width(text[:n] + "…"))
    return text[: max(fitting - 1, 0)] + "…"


def look(number: int) -> str:
    """The classes of a method's line.

    >>> look(0), look(8)
    ('colour-0 dash-0', 'colour-1 dash-1')
    """
    return f"colour-{number % COLOURS} dash-{number // COLOURS % DASHES}"


def marker(number: int, x: float, y: float, tip: str | None = None) -> Markup:
    """The marker of a method at a point; ``tip`` is said about it."""
    classes, shape = f"marker colour-{number % COLOURS}", MARKERS[number % len(MARKERS)]
    if shape == "circle":
        return element("circle", class_=classes, cx=x, cy=y, r=3.4, data_tip=tip)
    return element("path", class_=classes, d=path([(x + a, y + b) for a, b in _SHAPES[shape]]) + "Z", data_tip=tip)


def sample(number: int) -> Markup:
    """A piece of a method's line, for a legend."""
    parts = element("path", class_=f"line {look(number)}", d="M1 7L33 7"), marker(number, 17.0, 7.0)
    return element("svg", *parts, class_="sample", viewBox="0 0 34 14", width="34", height="14", aria_hidden="true")


def chart(size: Span, label: str, parts: Sequence[Markup], *, near: str = "xy", **where: str) -> Markup:
    """The whole picture; the keyboard can reach it."""
    box = f"0 0 {size[0]:g} {size[1]:g}"
    return element("svg", *parts, class_="chart", viewBox=box, role="img", aria_label=label, tabindex="0", data_near=near, **where)


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
        values = self.low, self.high, value
        low, high, at = map(math.log10, values) if self.log else values
        return self.start + (at - low) / (high - low) * (self.end - self.start)

    @cached_property
    def ticks(self) -> tuple[float, ...]:
        """Round numbers from ``low`` to ``high``: multiples of a step, or on a logarithmic scale powers of ten.

        >>> Scale(0.713, 0.738, 0, 1).ticks, Scale(0.5, 30, 0, 1, log=True).ticks
        ((0.715, 0.72, 0.725, 0.73, 0.735), (0.5, 1.0, 2.0, 5.0, 10.0, 20.0))
        """
        if not self.many:
            return ()
        if self.log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            steps = (1, 2, 5) if math.log10(self.high / self.low) < 3 else (1,)
            return tuple(t for power in powers for m in steps if self.low <= (t := float(f"{m}e{power}")) <= self.high)
        rough = (self.high - self.low) / self.many
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * (1 - 1e-9))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        digits = max(0, 1 - math.floor(math.log10(step)))
        return tuple(round(i * step, digits) + 0.0 for i in range(first, last + 1))

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


def extent(values: Iterable[float | None], *, margin: float = 0.05, log: bool = False) -> Span:
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
    flat = high - low <= 1e-9 * max(abs(low), abs(high))
    room = (abs(low) / 2 or 1.0) if flat else margin * (high - low)
    return low - room, high + room


def framed(
    size: Span, x_ends: Span, y_ends: Span, titles: tuple[str, str], *, log: bool = False, many: int = 5
) -> tuple[Scale, Scale, Markup]:
    """The scales of x and y in a chart, with room for the labels of y, and its axes; ``log`` and ``many`` are about x.

    There are lines at the ticks of y, and labels at those of both, but none of x that would meet another or leave the chart. The title of
    y stands above the plot, where it needs no turning.
    """
    width, height = size
    y = Scale(*y_ends, height - BOTTOM - (TICK if many else 0), TOP)
    left, right = max(map(text_width, y.labels), default=0) + GAP + 2, width - RIGHT
    x = Scale(*x_ends, left, right, log, many)
    parts = [
        element("text", shortened(titles[1], width - 4), class_="title", x=2.0, y=FONT),
        element("text", shortened(titles[0], right - 2), class_="title", x=right, y=height - 4, text_anchor="end"),
    ]
    for tick, label in zip(y.ticks, y.labels, strict=True):
        parts.append(element("line", class_="grid", x1=left, x2=right, y1=y(tick), y2=y(tick)))
        parts.append(element("text", label, class_="tick", x=left - GAP, y=y(tick) + 4, text_anchor="end"))
    taken = 0.0
    for tick, label in zip(x.ticks, x.labels, strict=True):
        at, half = x(tick), text_width(label) / 2
        if at - half >= taken and at + half <= width:
            parts.append(element("text", label, class_="tick", x=at, y=y.start + 16, text_anchor="middle"))
            taken = at + half + GAP
    if many:
        parts.append(element("line", class_="axis", x1=left, x2=right, y1=y.start, y2=y.start))
    return x, y, Markup("").join(parts)
