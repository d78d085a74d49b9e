"""SVG: elements as text that is escaped exactly once, how methods look, and scales with the axes of a chart.

A chart takes the width that there is: points stand at shares of its plot, while texts and markers keep their size. Lines are drawn in a
square of `SPAN` by `SPAN` that is stretched over the plot, without the width of their strokes. Where a label may meet its neighbor on a
phone there are two sets of them, of which the page shows one.

A method is recognized by color, dash and marker, the same in every chart. Colors are those of Okabe & Ito (2008), which the
color-blind can tell apart, without yellow, which is pale on white. With 7 colors, 3 dashes and 5 markers two methods of fewer than 105
differ in one of them at least.

Ticks are multiples of 1, 2 or 5 times a power of ten (Heckbert 1990); on a logarithmic scale the powers of ten, and 2 and 5 times those
where there are few.
"""

import math
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import TypeVar

from markupsafe import Markup

from exactrank._support import numerics
from exactrank._support.text import printable
from exactrank.compare.report.tables import MINUS

Span = tuple[float, float]  #: the ends of a scale
Point = tuple[float, float]
Padding = tuple[float, float, float, float]  #: pixels around a plot: top, right, bottom, left
SPAN = 2000.0  #: width and height of a plot, in units of its lines
FONT = 12.0  #: pixels, in all charts
NARROW, WIDE = 318.0, 700.0  #: pixels of the narrowest chart, and of the narrowest that shows more labels
TOP, RIGHT, BOTTOM = 24.0, 14.0, 22.0  #: pixels around a plot, with room for the titles of the axes
TICK = 18.0  #: pixels for the labels of x
GAP = 6.0  #: between a tick and its label
COLORS, DASHES = 7, 3
_NARROW, _BROAD = set("iljtfrI.,:;'|!()[] "), set("mwMW@%+=<>~\u2014\u2026\u2212")
_SHAPES: dict[str, list[tuple[float, float]]] = {  # around 0, of about equal area
    "square": [(-3.1, -3.1), (3.1, -3.1), (3.1, 3.1), (-3.1, 3.1)],
    "triangle": [(0, -4.2), (4, 3), (-4, 3)],
    "diamond": [(0, -4.4), (4.4, 0), (0, 4.4), (-4.4, 0)],
    "nabla": [(0, 4.2), (4, -3), (-4, -3)],
}
MARKERS = ("circle", *_SHAPES)
T = TypeVar("T")


def escape_shapeless(value: T) -> T | str:
    """Return text with an escape for each character that has no shape; other values, and HTML, as they are."""
    return printable(value, lines=True) if isinstance(value, str) and not isinstance(value, Markup) else value


def element(name: str, *children: str, **attributes: str | float | None) -> Markup:
    """Return an element; ``class_`` is written class and ``data_tip`` data-tip, and None leaves an attribute out.

    >>> element("text", "a < b", class_="tick", x=1 / 3)
    Markup('<text class="tick" x="0.33">a &lt; b</text>')
    """
    inside = Markup("").join(
        Markup(' {}="{}"').format(
            key.rstrip("_").replace("_", "-"), coordinate(value) if isinstance(value, float) else escape_shapeless(value)
        )
        for key, value in attributes.items()
        if value is not None
    )
    return Markup("<{}{}>{}</{}>").format(Markup(name), inside, Markup("").join(map(escape_shapeless, children)), Markup(name))


def coordinate(value: float) -> str:
    """Write a coordinate with as few digits as a screen shows.

    >>> coordinate(10.0), coordinate(-0.001), coordinate(1.256)
    ('10', '0', '1.26')
    """
    return f"{value:z.2f}".rstrip("0").rstrip(".")


def share(at: float) -> str:
    """Write a place on a plot as a share of its width or height.

    >>> share(500.0), share(1 / 3 * SPAN)
    ('25%', '33.33%')
    """
    return coordinate(100 * at / SPAN) + "%"


def path(points: Sequence[Point]) -> str:
    """Return the ``d`` of a line through points, in whole units.

    >>> path([(0, 1), (2.5, 3), (2.6, 3.2)])
    'M0 1L3 3'
    """
    places = [f"{round_half_up(x)} {round_half_up(y)}" for x, y in points]
    return "M" + "L".join(place for i, place in enumerate(places) if i == 0 or place != places[i - 1])


def stairs(spans: Sequence[tuple[float, float, float]]) -> str:
    """Return the ``d`` of steps that join: each from x to x at a height.

    >>> stairs([(0, 10, 5), (10, 20, 7), (20, 30, 7)])
    'M0 5H10V7H30'
    """
    levels = [(round_half_up(y), round_half_up(b)) for _, b, y in spans]
    steps = [f"V{y}H{b}" for (y, b), (after, _) in zip(levels, [*levels[1:], (None, 0)], strict=True) if y != after]
    return f"M{round_half_up(spans[0][0])} {levels[0][0]}{''.join(steps).removeprefix(f'V{levels[0][0]}')}"


def round_half_up(value: float) -> int:
    """Return the nearest whole number, halves up, as the page's script does."""
    return math.floor(value + 0.5)


def text_width(text: str) -> float:
    """Estimate the pixels of a text in a sans-serif font, rather too many than too few."""

    def width(c: str) -> float:
        if unicodedata.combining(c):
            return 0.0
        if unicodedata.east_asian_width(c) in "WF":
            return 1.05
        if c in _BROAD:
            return 0.95
        return 0.36 if c in _NARROW else 0.7 if c.isupper() else 0.6

    return FONT * math.fsum(map(width, text))


def shorten(text: str, width: float) -> str:
    """Return the text, or as much of it as fits with an ellipsis.

    >>> shorten("title", 100), shorten("a very long name indeed", 60)
    ('title', 'a very l…')
    """
    if text_width(text) <= width:
        return text
    fitting = bisect_right(range(len(text)), width, key=lambda n: text_width(text[:n] + "…"))
    return text[: max(fitting - 1, 0)] + "…"


def look(number: int) -> str:
    """Return the style classes of a method's line.

    >>> look(0), look(8)
    ('color-0 dash-0', 'color-1 dash-1')
    """
    return f"color-{number % COLORS} dash-{number // COLORS % DASHES}"


def marker(number: int, x: str | float, y: str | float) -> Markup:
    """Draw the marker of a method; its color is that of the group that it stands in."""
    return element("use", href=f"#{MARKERS[number % len(MARKERS)]}", x=x, y=y)


def shapes() -> Markup:
    """Define the markers, once per page."""
    paths = [element("path", id=name, d="M" + "L".join(f"{x} {y}" for x, y in points) + "Z") for name, points in _SHAPES.items()]
    return element("svg", element("defs", element("circle", id="circle", r=3.4), *paths), class_="shapes", aria_hidden="true")


def sample(number: int) -> Markup:
    """Draw a piece of a method's line, for a legend."""
    parts = element("path", class_="line", d="M1 7L33 7"), marker(number, 17.0, 7.0)
    return element("svg", *parts, class_=f"sample {look(number)}", viewBox="0 0 34 14", width="34", height="14", aria_hidden="true")


def stretch(*lines: Markup) -> Markup:
    """Draw lines, in units of `SPAN`, over the whole plot."""
    return element("svg", *lines, viewBox=f"0 0 {SPAN:g} {SPAN:g}", preserveAspectRatio="none")


def chart(
    label: str,
    parts: Sequence[Markup],
    padding: Padding,
    *,
    kind: str = "small",
    tall: float | None = None,
    wider: float | None = None,
    near: str = "xy",
) -> Markup:
    """Return the complete chart, which the keyboard can reach; ``kind`` is "wide" if more labels fit on a wide page.

    ``tall`` is the height of the plot in pixels, if its content decides it; ``wider`` is the padding on the right of a wide page.
    """
    top, right, bottom, left = map(coordinate, padding)
    style = f"--pad:{top}px {right}px {bottom}px {left}px"
    style += "" if wider is None else f";--wide-pad:{top}px {coordinate(wider)}px {bottom}px {left}px"
    style += "" if tall is None else f";--tall:{coordinate(tall)}px"
    svg = element("svg", *parts)
    return element("div", svg, class_=f"chart {kind}", style=style, role="img", aria_label=label, tabindex="0", data_near=near)


@dataclass(frozen=True)
class PixelScale:
    """A scale that draws ``low`` to ``high`` from the pixel ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False
    many: int = 5  #: approximate number of ticks; 0 for none

    def __call__(self, value: float) -> float:
        low, high, at = self.low, self.high, value
        if self.log:
            low, high, at = numerics.log((low, high, at)).tolist()
        return self.start + (at - low) / (high - low) * (self.end - self.start)

    @cached_property
    def ticks(self) -> tuple[float, ...]:
        """Round numbers from ``low`` to ``high``: multiples of a step, or on a logarithmic scale powers of ten.

        >>> PixelScale(0.713, 0.738, 0, 1).ticks, PixelScale(0.5, 30, 0, 1, log=True).ticks
        ((0.715, 0.72, 0.725, 0.73, 0.735), (0.5, 1.0, 2.0, 5.0, 10.0, 20.0))
        """
        if not self.many:
            return ()
        if self.log:
            powers = range(_exponent(self.low), _exponent(self.high) + 2)
            steps = (1, 2, 5) if self.high / self.low < 1000 else (1,)
            return tuple(t for power in powers for m in steps if self.low <= (t := float(f"{m}e{power}")) <= self.high)
        rough = (self.high - self.low) / self.many
        power = float(f"1e{_exponent(rough)}")
        step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * (1 - 1e-9))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        digits = max(0, 1 - _exponent(step))
        return tuple(round(i * step, digits) + 0.0 for i in range(first, last + 1))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Ticks as text with a common number of decimals."""
        if self.log or not self.ticks:
            return tuple(f"{tick:,g}" if tick < 1e6 else f"{tick:.0e}" for tick in self.ticks)
        step = self.ticks[1] - self.ticks[0] if len(self.ticks) > 1 else max(abs(self.ticks[0]), 1e-12)
        if max(map(abs, self.ticks)) >= 1e6 or step < 1e-6:
            return tuple(f"{tick:.3g}".replace("-", MINUS) for tick in self.ticks)
        decimals = max(0, -_exponent(step))
        return tuple(f"{tick:,.{decimals}f}".replace("-", MINUS) for tick in self.ticks)


def _exponent(value: float) -> int:
    """Return the largest power of ten that is not above ``value``, except for rounding.

    >>> _exponent(0.05), _exponent(1e-6), _exponent(1000.0)
    (-2, -6, 3)
    """
    return Decimal(value * (1 + 1e-9)).adjusted()


def extent(values: Iterable[float | None], *, margin: float = 0.05, log: bool = False) -> Span:
    """Return the ends of a scale that shows all finite values with some room.

    >>> extent([1.0, None, 3.0, float("nan")]), extent([]), extent([2.0], margin=0)
    ((0.9, 3.1), (0.0, 1.0), (1.0, 3.0))
    """
    drawable = [v for v in values if v is not None and math.isfinite(v) and (v > 0 or not log)]
    if not drawable:
        return (0.1, 1.0) if log else (0.0, 1.0)
    low, high = min(drawable), max(drawable)
    if log:
        return (low / 1.3, high * 1.3)
    flat = high - low <= 1e-9 * max(abs(low), abs(high))
    room = (abs(low) / 2 or 1.0) if flat else margin * (high - low)
    return low - room, high + room


def frame(
    x_ends: Span, y_ends: Span, titles: tuple[str, str], *, log: bool = False, many: int = 5, kind: str = "small"
) -> tuple[PixelScale, PixelScale, Markup, Padding]:
    """Return the scales of x and y, the axes, and the padding for their labels; ``log`` and ``many`` ticks are about x.

    There are lines at the ticks of y, and labels at those of both, except for labels of x that would meet another or leave the chart.
    """
    y = PixelScale(*y_ends, SPAN, 0.0)
    padding = TOP, RIGHT, BOTTOM + (TICK if many else 0.0), max(map(text_width, y.labels), default=0.0) + GAP + 2
    x = PixelScale(*x_ends, 0.0, SPAN, log, many)
    grid = "".join(f"M0 {round_half_up(y(tick))}H{SPAN:g}" for tick in y.ticks)
    labels = [element("text", label, y=share(y(tick))) for tick, label in zip(y.ticks, y.labels, strict=True)]
    parts = [
        stretch(*([element("path", class_="grid", d=grid)] if grid else [])),
        axis_titles(titles, padding),
        element("g", *labels, class_="ys", transform=f"translate({-GAP:g} 4)"),
        x_axis(x, padding, kind) if many else Markup(""),
    ]
    return x, y, Markup("").join(parts), padding


def axis_titles(titles: tuple[str, str], padding: Padding) -> Markup:
    """Draw the titles of x, under the plot on its right, and of y, above it on its left, where it needs no turning."""
    below, above = (shorten(title, NARROW - RIGHT - 4) for title in titles)
    top, _, bottom, left = padding
    return element("text", above, class_="title", x=2 - left, y=FONT - top) + element(
        "text", below, class_="title end", x="100%", y="100%", dy=bottom - 4
    )


def x_axis(x: PixelScale, padding: Padding, kind: str) -> Markup:
    """Draw the line under a plot, with the labels that fit in the narrowest; a wide chart also has those that fit in a wide one."""
    sets = [("few" if kind == "wide" else "", x, NARROW)]
    if kind == "wide":
        sets.append(("many", replace(x, many=max(x.many, 12)), WIDE))
    parts = [stretch(element("path", class_="axis", d=f"M0 {SPAN:g}H{SPAN:g}"))]
    for name, scale, width in sets:
        across, last, labels = width - padding[1] - padding[3], -padding[3], []
        for tick, label in zip(scale.ticks, scale.labels, strict=True):
            at, half = scale(tick) / SPAN * across, text_width(label) / 2
            if at - half >= last and at + half <= across + padding[1]:
                labels.append(element("text", label, x=share(scale(tick)), y="100%"))
                last = at + half + GAP
        parts.append(element("g", *labels, class_=f"xs {name}".strip(), transform="translate(0 16)"))
    return Markup("").join(parts)
