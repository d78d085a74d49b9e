"""The charts of a report as SVG: they need no script to be read, and scale to the width that there is.

A data set has nDCG by rank, training step by step and by time, what features count for, and steps along a feature.

What is said about a point is its ``data-tip``; the page shows that of the point nearest to the mouse, or to the left and right of the last
one by the arrow keys. ``data-near`` tells whether nearness counts across alone ("x") or both ways ("xy").
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from markupsafe import Markup

from exactrank.compare.page.svg import GAP, Scale, Span, chart, element, extent, framed, look, marker, path, shortened, text_width
from exactrank.compare.page.table import compact, interval, plain, signed
from exactrank.compare.results import RANKS, Fit, Results, Slice
from exactrank.compare.standings import shared_values
from exactrank.measures.bound import means_over_queries
from exactrank.measures.evaluate import bootstrap_intervals

WIDE, SMALL = (440.0, 290.0), (320.0, 200.0)
LINE_POINTS, LINE_TIPS, LINE_MARKERS = 120, 30, 6  #: of a long line that are drawn, said and marked
BAR = 18.0  #: pixels for a bar and its label
WHISKERS = 10  #: methods whose intervals can be told apart; those of more are said, not drawn
FEATURES = 15
APART = 20.0  #: seconds that differ by more than this factor are drawn on a logarithmic scale


@dataclass(frozen=True)
class Figure:
    """A chart, its title and a line under it."""

    title: str
    chart: Markup
    note: str = ""


@dataclass(frozen=True)
class Drawing:
    """A chart of several methods, which a legend names."""

    names: Sequence[str]
    chart: Markup


@dataclass(frozen=True)
class Dot:
    """A point of a line, what is said about it, and the ends of its interval."""

    x: float
    y: float
    tip: str
    ends: Span | None = None


@dataclass(frozen=True)
class Line:
    """The points of the method of this number; a ``faint`` one stands behind."""

    number: int
    dots: Sequence[Dot]
    faint: bool = False


def rank_curves(comparison: Results, dataset: str, numbers: Mapping[str, int]) -> Drawing | None:
    """nDCG at ranks 1 to 10 with intervals; methods stand a little apart at each rank. None where there are no values."""
    shared = {k: shared_values(comparison, dataset, f"nDCG@{k}") for k in RANKS}
    names, weight = list(shared[1].values), shared[1].weight
    if not names:
        return None
    table = np.stack([shared[k].values[name] for name in names for k in RANKS])
    shape = len(names), len(RANKS)
    means = means_over_queries(table, weight).reshape(shape).tolist()
    ends = bootstrap_intervals(table, weight).reshape(*shape, 2).tolist()
    apart = min(0.08, 0.6 / len(names))
    lines = []
    for i, name in enumerate(names):
        dots = []
        for k, mean, (low, high) in zip(RANKS, means[i], ends[i], strict=True):
            tip = f"{name}\nnDCG@{k}: {plain(mean)}\n95%: {interval((low, high))}"
            aside = (i - (len(names) - 1) / 2) * apart
            dots.append(Dot(k + aside, mean, tip, (low, high) if len(names) <= WHISKERS else None))
        lines.append(Line(numbers[name], dots))
    return Drawing(names, line_chart(lines, f"nDCG at ranks 1 to 10 on {dataset}", ("rank", "nDCG"), many=len(RANKS) + 2))


def learning_curves(fits: Sequence[Fit], numbers: Mapping[str, int], measure: str) -> list[Figure]:
    """A small chart for each method that tells of two steps or more: train behind, validation before."""
    figures = []
    for fit in (fit for fit in fits if len(fit.curve) > 1):
        train = [Dot(p.step, p.train, f"step {p.step:,}\ntrain: {plain(p.train)}") for p in fit.curve]
        valid = [Dot(p.step, p.valid, f"step {p.step:,}\nvalidation: {plain(p.valid)}") for p in fit.curve if p.valid is not None]
        lines = [Line(numbers[fit.method], train, faint=True), *([Line(numbers[fit.method], valid)] if valid else [])]
        figures.append(Figure(fit.method, line_chart(lines, f"training of {fit.method}", ("step", measure), size=SMALL)))
    return figures


def time_curves(fits: Sequence[Fit], numbers: Mapping[str, int], measure: str) -> Drawing | None:
    """The measure on validation data against seconds, all methods together; None where no method tells."""
    told = {}
    for fit in fits:
        known = [(p.seconds, p.valid) for p in fit.curve if p.valid is not None]
        if known:
            told[fit.method] = [Dot(seconds, valid, f"{fit.method}\n{compact(seconds)} s: {plain(valid)}") for seconds, valid in known]
    if not told:
        return None
    seconds = [dot.x for dots in told.values() for dot in dots if dot.x > 0 and math.isfinite(dot.x)]
    log = bool(seconds) and max(seconds) > APART * min(seconds)
    lines = [Line(numbers[name], dots) for name, dots in told.items()]
    titles = ("seconds of training", f"{measure}, validation")
    return Drawing(list(told), line_chart(lines, f"{measure} on validation data against seconds", titles, log=log))


def weight_figures(fits: Sequence[Fit], numbers: Mapping[str, int]) -> list[Figure]:
    """The features that count most, for each method that tells."""
    figures = []
    for method, weights in ((fit.method, fit.weights) for fit in fits if fit.weights and fit.weights.values):
        known = [(name, v) for name, v in zip(weights.names, weights.values, strict=True) if math.isfinite(v)]
        top = sorted(known, key=lambda pair: -abs(pair[1]))[:FEATURES]
        names, values = [name for name, _ in top] or ["none"], [v for _, v in top] or [0.0]
        label = f"features of {method} by {weights.kind}"
        drawn = bar_chart(names, values, [compact(v) for v in values], label, number=numbers[method])
        left = len(weights.values) - len(top)
        figures.append(Figure(method, drawn, weights.kind + (f"; {left:,} features with less are not shown" if left else "")))
    return figures


def slice_figures(fits: Sequence[Fit], numbers: Mapping[str, int], measure: str) -> list[Figure]:
    """The measure along one feature, for each method that has a slice."""
    figures = []
    for method, steps in ((fit.method, fit.slice) for fit in fits if fit.slice and fit.slice.high):
        own = max((high for a, b, high in zip(steps.edges, steps.edges[1:], steps.high, strict=False) if a <= 0 <= b), default=math.nan)
        best, value = best_step(steps)
        marks = [
            (0.0, own, "model", f"the model as it is\n{plain(own)}"),
            (best, value, "best-point", f"best, at {signed(best)}\n{plain(value)}"),
        ]
        where = f"{method} along feature {steps.feature}"
        titles = f"multiple of feature {steps.feature} added", measure
        note = f"{steps.part} data: {plain(own)} at 0; best {plain(value)} at {signed(best)}, {signed(value - own)}"
        figures.append(Figure(where, step_chart(steps, f"{measure} of {where}", titles, look(numbers[method]), marks), note))
    return figures


def best_step(steps: Slice) -> tuple[float, float]:
    """The middle of the best step, and the value there; NaN where there is none.

    >>> best_step(Slice("f", "test", (-1.0, 0.5, 1.0), (0.1, 0.2), (0.1, 0.3)))
    (0.75, 0.3)
    """
    known = [(high, -i) for i, high in enumerate(steps.high) if math.isfinite(high)]
    if not known:
        return math.nan, math.nan
    value, at = max(known)  # the first of the best
    return (steps.edges[-at] + steps.edges[1 - at]) / 2, value


def line_chart(
    lines: Sequence[Line], label: str, titles: tuple[str, str], *, size: Span = WIDE, log: bool = False, many: int = 5
) -> Markup:
    """Lines over a common scale, with whiskers where dots have intervals; ``log`` and ``many`` ticks are about x.

    Lines are thinned out to `LINE_POINTS`; what cannot be drawn leaves a gap.
    """
    shown = []
    for line in lines:
        dots = [line.dots[i] for i in _spread(len(line.dots), LINE_POINTS)]
        drawn = [math.isfinite(dot.y) and math.isfinite(dot.x) and (dot.x > 0 or not log) for dot in dots]
        shown.append(
            Line(line.number, [dot if own else Dot(dot.x, math.nan, "") for dot, own in zip(dots, drawn, strict=True)], line.faint)
        )
    dots = [dot for line in shown for dot in line.dots]
    heights = [y for dot in dots for y in (dot.y, *(dot.ends or ()))]
    x, y, axes = framed(size, extent([dot.x for dot in dots], log=log), extent(heights), titles, log=log, many=many)
    return chart(size, label, [axes, *(_line(line, x, y) for line in shown)])


def _line(line: Line, x: Scale, y: Scale) -> Markup:
    parts = []
    for known, piece in groupby(line.dots, key=lambda dot: math.isfinite(dot.y)):
        if known:
            d = path([(x(dot.x), y(dot.y)) for dot in piece])
            parts.append(element("path", class_=f"line {'faint' if line.faint else look(line.number)}", d=d))
    for dot in line.dots:
        if dot.ends and all(map(math.isfinite, dot.ends)):
            at, (low, high) = x(dot.x), map(y, dot.ends)
            parts.append(element("line", class_=f"whisker {look(line.number)}", x1=at, x2=at, y1=low, y2=high))
    said = set(_spread(len(line.dots), LINE_TIPS))
    marked = set(_spread(len(line.dots), LINE_MARKERS)) if len(line.dots) > 2 * LINE_MARKERS else said
    for i, dot in enumerate(line.dots):
        if not math.isfinite(dot.y):
            continue
        if i in marked and not line.faint:
            parts.append(marker(line.number, x(dot.x), y(dot.y), dot.tip))
        elif i in said | marked:
            parts.append(element("circle", class_="unseen", cx=x(dot.x), cy=y(dot.y), r=2.0, data_tip=dot.tip))
    return element("g", *parts, data_method=str(line.number))


def _spread(n: int, most: int) -> list[int]:
    """At most so many of 0 to n - 1, the ends among them.

    >>> _spread(3, 5), _spread(10, 4)
    ([0, 1, 2], [0, 3, 6, 9])
    """
    return list(range(n)) if n <= most else [i * (n - 1) // (most - 1) for i in range(most)]


def bar_chart(names: Sequence[str], values: Sequence[float], texts: Sequence[str], label: str, *, number: int = 0) -> Markup:
    """A bar to the right, or left where the value is below 0, for each name; ``texts`` are the values as they are written."""
    width, height = SMALL[0], BAR * len(names) + 4
    known = [v if math.isfinite(v) else 0.0 for v in values]
    left, right = min(0.4 * width, 10 + max(map(text_width, names))), width - max(map(text_width, texts), default=0.0) - GAP
    scale = Scale(min(0.0, *known), max(0.0, *known) or 1.0, left, right)
    parts = []
    for i, (name, value, text) in enumerate(zip(names, known, texts, strict=True)):
        y = BAR * i + 2
        start, end = sorted((scale(0.0), scale(value)))
        size = {"width": max(end - start, 0.5), "height": BAR - 6}
        parts.append(element("text", shortened(name, left - GAP), class_="tick", x=left - GAP, y=y + 12, text_anchor="end"))
        parts.append(element("rect", class_=f"bar {look(number)}", x=start, y=y + 2, **size, data_tip=f"{name}\n{text}"))
        parts.append(element("text", text, class_="tick", x=width, y=y + 12, text_anchor="end"))
    zero = element("line", class_="axis", x1=scale(0), x2=scale(0), y1=1.0, y2=height - 2)
    return chart((width, height), label, [*parts, zero])


def step_chart(steps: Slice, label: str, titles: tuple[str, str], looks: str, marks: Sequence[tuple[float, float, str, str]]) -> Markup:
    """The step function of a slice, a bar where steps are too many to be drawn one by one; ``marks`` are points, their kinds and tips."""
    x, y, axes = framed(SMALL, extent(steps.edges, margin=0.0), extent([*steps.low, *steps.high], margin=0.1), titles)
    spans = [
        (x(a), x(b), y(low), y(high))
        for a, b, low, high in zip(steps.edges, steps.edges[1:], steps.low, steps.high, strict=False)
        if all(map(math.isfinite, (a, b, low, high)))
    ]
    if not spans:
        return chart(SMALL, label, [axes])
    top = [point for a, b, _, high in spans for point in ((a, high), (b, high))]
    under = [point for a, b, low, _ in reversed(spans) for point in ((b, low), (a, low))]
    parts = [element("path", class_=f"area {looks}", d=path(top + under) + "Z"), element("path", class_=f"line {looks}", d=path(top))]
    for at, value, kind, tip in marks:
        if math.isfinite(value):
            parts.append(element("circle", class_=kind, cx=x(at), cy=y(value), r=4.0, data_tip=tip))
    return chart(SMALL, label, [axes, *parts])
