"""The charts of a report as SVG: they need no script to be read, and scale to the width that there is.

What is said about a point is its ``data-tip``; the page shows that of the point nearest to the mouse, or to the left and right of the last
one by the arrow keys. ``data-near`` tells whether nearness counts across alone ("x") or both ways ("xy").
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from markupsafe import Markup

from exactrank.arrays import PerQuery
from exactrank.compare.page.axes import GAP, Frame, Scale, extent
from exactrank.compare.page.numbers import plain, signed
from exactrank.compare.page.style import look, marker
from exactrank.compare.page.svg import element, path, shortened, text_width
from exactrank.compare.results import Slice

WIDE, SMALL = (440.0, 290.0), (320.0, 200.0)
LINE_POINTS, LINE_TIPS, LINE_MARKERS = 120, 30, 6  #: of a long line that are drawn, said and marked
COLUMNS = 240  #: bars that can be told apart side by side
BAR = 18.0  #: pixels for a bar and its label


@dataclass(frozen=True)
class Dot:
    """A point of a line, what is said about it, and the ends of its interval."""

    x: float
    y: float
    tip: str
    ends: tuple[float, float] | None = None


@dataclass(frozen=True)
class Line:
    """The points of the method of this number; a ``faint`` one stands behind."""

    number: int
    dots: Sequence[Dot]
    faint: bool = False


def line_chart(
    lines: Sequence[Line], label: str, titles: tuple[str, str], *, size: tuple[float, float] = WIDE, log: bool = False, many: int = 5
) -> Markup:
    """Lines over a common scale, with whiskers where dots have intervals; ``log`` and ``many`` ticks are about x."""
    shown = [Line(line.number, _seen(line.dots, log), line.faint) for line in lines]
    dots = [dot for line in shown for dot in line.dots]
    heights = [y for dot in dots for y in (dot.y, *(dot.ends or ()))]
    frame = Frame.around(size, extent([dot.x for dot in dots], log=log), extent(heights), titles, log=log, many=many)
    return _chart(size, label, [frame.draw(), *(_line(line, frame) for line in shown)])


def win_loss_chart(differences: PerQuery, tips: Sequence[str], reach: float, label: str, title: str) -> Markup:
    """Differences from the largest to the smallest as bars up and down, on a scale from -``reach`` to ``reach``.

    The attributes ``data-left``, ``data-across``, ``data-zero`` and ``data-unit`` let the page's script draw other differences into it.
    """
    frame = Frame.around(SMALL, (0.0, 1.0), (-1.05 * reach, 1.05 * reach), ("queries, best first", title), many=0)
    zero, unit = frame.y(0.0), frame.y(0.0) - frame.y(1.0)
    order = drawn_places(differences)
    width = (frame.x.end - frame.x.start) / max(len(order), 1)
    bars = [_bar(frame.x.start + i * width, width, zero, unit * float(differences[at]), tips[at]) for i, at in enumerate(order.tolist())]
    where = {"data_left": frame.x.start, "data_across": frame.x.end - frame.x.start, "data_zero": zero, "data_unit": unit}
    exact = {name: repr(value) for name, value in where.items()}
    body = [frame.draw(), element("line", class_="axis", x1=frame.x.start, x2=frame.x.end, y1=zero, y2=zero)]
    return _chart(SMALL, label, [*body, element("g", *bars, class_="bars")], near="x", **exact)


def drawn_places(differences: PerQuery) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Which queries are drawn, from the largest difference down: all, or `COLUMNS` of them that are evenly spaced in that order.

    >>> drawn_places(np.array([0.5, np.nan, -1.0, 2.0])).tolist()
    [3, 0, 2]
    """
    order = np.argsort(-differences, kind="stable")
    order = order[np.isfinite(differences[order])]
    if len(order) <= COLUMNS:
        return order
    return order[np.arange(COLUMNS) * (len(order) - 1) // (COLUMNS - 1)]


def bar_chart(names: Sequence[str], values: Sequence[float], texts: Sequence[str], label: str, *, number: int = 0) -> Markup:
    """A bar to the right, or left where the value is below 0, for each name; ``texts`` are the values as they are written."""
    width, height = SMALL[0], BAR * len(names) + 4
    known = [v if math.isfinite(v) else 0.0 for v in values]
    right = max((text_width(text) for text in texts), default=0.0)
    scale = Scale(min(0.0, *known), max(0.0, *known) or 1.0, min(0.4 * width, 10 + max(map(text_width, names))), width - right - GAP)
    rows = [_row(i, name, value, text, scale, number, width) for i, (name, value, text) in enumerate(zip(names, known, texts, strict=True))]
    zero = element("line", class_="axis", x1=scale(0), x2=scale(0), y1=1.0, y2=height - 2)
    return _chart((width, height), label, [*rows, zero])


def step_chart(steps: Slice, label: str, titles: tuple[str, str], *, number: int = 0) -> Markup:
    """The step function of a slice; a bar where steps are too many to be drawn one by one; the model at 0 and the best point marked."""
    frame = Frame.around(SMALL, extent(steps.edges, margin=0.0), extent([*steps.low, *steps.high], margin=0.1), titles)
    spans = [
        (frame.x(a), frame.x(b), frame.y(low), frame.y(high))
        for a, b, low, high in zip(steps.edges, steps.edges[1:], steps.low, steps.high, strict=False)
        if all(map(math.isfinite, (a, b, low, high)))
    ]
    if not spans:
        return _chart(SMALL, label, [frame.draw()])
    top = [point for a, b, _, high in spans for point in ((a, high), (b, high))]
    under = [point for a, b, low, _ in reversed(spans) for point in ((b, low), (a, low))]
    area = element("path", class_=f"area {look(number)}", d=path(top + under) + "Z")
    return _chart(SMALL, label, [frame.draw(), area, element("path", class_=f"line {look(number)}", d=path(top)), *_marks(steps, frame)])


def best_step(steps: Slice) -> tuple[float, float]:
    """The middle of the best step, and the value there; NaN where there is none.

    >>> best_step(Slice("f", "test", (-1.0, 0.5, 1.0), (0.1, 0.2), (0.1, 0.3)))
    (0.75, 0.3)
    """
    known = [(high, i) for i, high in enumerate(steps.high) if math.isfinite(high)]
    if not known:
        return math.nan, math.nan
    value, at = max(known, key=lambda pair: (pair[0], -pair[1]))
    return (steps.edges[at] + steps.edges[at + 1]) / 2, value


def step_at(steps: Slice, x: float) -> float:
    """The (largest) value at x.

    >>> step_at(Slice("f", "test", (-1.0, 0.5, 1.0), (0.1, 0.2), (0.1, 0.3)), 0.0)
    0.1
    """
    found = [high for a, b, high in zip(steps.edges, steps.edges[1:], steps.high, strict=False) if a <= x <= b]
    return max(found, default=math.nan)


def _chart(size: tuple[float, float], label: str, parts: Sequence[Markup], *, near: str = "xy", **where: str) -> Markup:
    """The whole picture; the keyboard can reach it."""
    box = f"0 0 {size[0]:g} {size[1]:g}"
    return element("svg", *parts, class_="chart", viewBox=box, role="img", aria_label=label, tabindex="0", data_near=near, **where)


def _seen(dots: Sequence[Dot], log: bool) -> list[Dot]:
    """Those that can be drawn, thinned out to `LINE_POINTS`; a gap stays one."""
    drawn = [dot if math.isfinite(dot.y) and math.isfinite(dot.x) and (dot.x > 0 or not log) else Dot(dot.x, math.nan, "") for dot in dots]
    return [drawn[i] for i in _spread(len(drawn), LINE_POINTS)]


def _spread(n: int, most: int) -> list[int]:
    """At most so many of 0 to n - 1, the ends among them.

    >>> _spread(3, 5), _spread(10, 4)
    ([0, 1, 2], [0, 3, 6, 9])
    """
    return list(range(n)) if n <= most else [i * (n - 1) // (most - 1) for i in range(most)]


def _line(line: Line, frame: Frame) -> Markup:
    parts = [element("path", class_=f"line {'faint' if line.faint else look(line.number)}", d=d) for d in _pieces(line.dots, frame)]
    parts += [_whisker(dot, dot.ends, line.number, frame) for dot in line.dots if dot.ends and all(map(math.isfinite, dot.ends))]
    said = set(_spread(len(line.dots), LINE_TIPS))
    marked = set(_spread(len(line.dots), LINE_MARKERS)) if len(line.dots) > 2 * LINE_MARKERS else said
    for i in sorted(said | marked):
        dot = line.dots[i]
        if math.isfinite(dot.y):
            parts.append(_point(line, dot, frame, marked=i in marked and not line.faint))
    return element("g", *parts, data_method=str(line.number))


def _pieces(dots: Sequence[Dot], frame: Frame) -> Iterator[str]:
    """The paths between gaps."""
    for known, piece in groupby(dots, key=lambda dot: math.isfinite(dot.y)):
        if known:
            yield path([(frame.x(dot.x), frame.y(dot.y)) for dot in piece])


def _point(line: Line, dot: Dot, frame: Frame, *, marked: bool) -> Markup:
    x, y = frame.x(dot.x), frame.y(dot.y)
    return marker(line.number, x, y, dot.tip) if marked else element("circle", class_="unseen", cx=x, cy=y, r=2.0, data_tip=dot.tip)


def _whisker(dot: Dot, ends: tuple[float, float], number: int, frame: Frame) -> Markup:
    x = frame.x(dot.x)
    return element("line", class_=f"whisker {look(number)}", x1=x, x2=x, y1=frame.y(ends[0]), y2=frame.y(ends[1]))


def _bar(left: float, width: float, zero: float, height: float, tip: str) -> Markup:
    """A bar up from zero where the height is above 0, else down; the page's script has a twin of this."""
    kind = "win" if height > 0 else "loss" if height < 0 else "tie"
    return element("rect", class_=kind, x=left, y=zero - max(height, 0.0), width=0.85 * width, height=abs(height), data_tip=tip)


def _row(i: int, name: str, value: float, text: str, scale: Scale, number: int, width: float) -> Markup:
    """A name, its bar and its value, each in its own column."""
    y = BAR * i + 2
    start, end = sorted((scale(0.0), scale(value)))
    tip = f"{name}\n{text}"
    return Markup("").join(
        [
            element("text", shortened(name, scale.start - GAP), class_="tick", x=scale.start - GAP, y=y + 12, text_anchor="end"),
            element("rect", class_=f"bar {look(number)}", x=start, y=y + 2, width=max(end - start, 0.5), height=BAR - 6, data_tip=tip),
            element("text", text, class_="tick", x=width, y=y + 12, text_anchor="end"),
        ]
    )


def _marks(steps: Slice, frame: Frame) -> list[Markup]:
    """The model as it is, and the best point."""
    best, value = best_step(steps)
    marks = [
        (0.0, step_at(steps, 0.0), "model", f"the model as it is\n{plain(step_at(steps, 0.0))}"),
        (best, value, "best-point", f"best, at {signed(best)}\n{plain(value)}"),
    ]
    return [
        element("circle", class_=kind, cx=frame.x(x), cy=frame.y(y), r=4.0, data_tip=tip) for x, y, kind, tip in marks if math.isfinite(y)
    ]
