"""The charts of a report as SVG: they need no script to be read, and take the width that there is.

A data set has differences from the baseline, nDCG by rank, differences query by query, training step by step and by time, weights of
features, and steps along a feature. A method without a chart is named with the reason.

The text about a point is its ``data-tip``; the page shows that of the point nearest to the mouse, or to the left and right of the last
one by the arrow keys. ``data-near`` says whether nearness counts across alone ("x") or both ways ("xy"). The points of a line are written
more briefly: ``data-at`` has the place of each, in shares of the plot, and the words for the gaps of ``data-say``.

Differences query by query are whole numbers of 1/`UNIT`, here and in the page's script, so that both draw the same.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from exactrank._support.arrays import PerQuery
from exactrank.compare.report.svg import (
    BOTTOM,
    GAP,
    SPAN,
    TICK,
    TOP,
    PixelScale,
    Span,
    axis_titles,
    chart,
    coordinate,
    element,
    extent,
    frame,
    look,
    marker,
    path,
    round_half_up,
    share,
    shorten,
    stairs,
    stretch,
    text_width,
    x_axis,
)
from exactrank.compare.report.tables import compact, interval, plain, probability, with_sign
from exactrank.compare.results import RANKS, DataSummary, Fit, Results, Slice
from exactrank.compare.standings import SharedValues, shared_values
from exactrank.compare.statistics import Pair

LINE_POINTS, LINE_TIPS, LINE_MARKERS = 100, 24, 6  #: of a long line that are drawn, described and marked
STEPS = 160  #: of a step function that are drawn
BAR, ROW = 18.0, 22.0  #: pixels for a bar, and for a row of differences
NAME = 128.0  #: pixels for a name beside a bar
BOLD = 1.15  #: width of bold text relative to plain
WHISKERS = 10  #: methods whose intervals can be distinguished; those of more are described, not drawn
FEATURES = 15
GRADES = 12  #: with a bar of their own
LOG_RATIO = 20.0  #: seconds that differ by more than this factor are drawn on a logarithmic scale
UNIT = 10_000
COLUMNS = 240  #: bars that can be distinguished side by side


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
class Figures:
    """Charts of one kind, and the methods without one, by the reason."""

    charts: Sequence[Figure] = ()
    without: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Dot:
    """A point of a line, the words about it, the ends of its interval, and the run that it belongs to."""

    x: float
    y: float
    words: Sequence[str]
    ends: Span | None = None
    run: str = ""


@dataclass(frozen=True)
class Line:
    """The points of the method of this number, and a sentence with gaps for their words; a ``faint`` line stands behind."""

    number: int
    dots: Sequence[Dot]
    say: str
    faint: bool = False


def difference_chart(pairs: Sequence[Pair], numbers: Mapping[str, int], measure: str, *, kind: str = "wide") -> Markup | None:
    """Draw each method's difference from the baseline with its interval, the best first; None if there is nothing to compare."""
    pairs = sorted((pair for pair in pairs if math.isfinite(pair.difference)), key=lambda pair: -pair.difference)
    if not pairs:
        return None
    brief = [with_sign(pair.difference) for pair in pairs]
    full = [f"{with_sign(pair.difference)} ({interval(pair.interval)})" for pair in pairs]
    left = min(NAME, 10 + BOLD * max(text_width(pair.first) for pair in pairs))
    right, wider = (BOLD * max(map(text_width, texts)) + 2 * GAP for texts in (brief, full))
    padding, base = (TOP, right, BOTTOM + TICK, left), pairs[0].second
    x = PixelScale(*extent([0.0, *(end for pair in pairs for end in (*pair.interval, pair.difference))]), 0.0, SPAN, many=4)
    rows = []
    for i, pair in enumerate(pairs):
        at, clear = ROW * (i + 0.5), pair.is_clear
        low, high = (share(x(end)) if math.isfinite(end) else None for end in pair.interval)
        tip = f"{pair.first} against {pair.second}\ndifference: {with_sign(pair.difference)}\n95%: {interval(pair.interval)}\n"
        tip += f"adjusted p: {probability(pair.adjusted[pair.marking_test])}\n{pair.wins} won, {pair.ties} tied, {pair.losses} lost"
        row = [
            element("text", shorten(pair.first, (left - GAP) / BOLD), class_="name", x=-GAP, y=at + 4),
            *([element("line", class_="whisker", x1=low, x2=high, y1=at, y2=at)] if low and high else []),
            marker(numbers[pair.first], share(x(pair.difference)), at),
            element("circle", class_="unseen", cx=share(x(pair.difference)), cy=at, r=6.0, data_tip=tip),
            element("text", brief[i], class_="few" if kind == "wide" else None, x="100%", dx=GAP, y=at + 4),
            *([element("text", full[i], class_="many", x="100%", dx=GAP, y=at + 4)] if kind == "wide" else []),
        ]
        rows.append(element("g", *row, class_=f"{look(numbers[pair.first])}{' clear' if clear else ''}"))
    parts = [
        axis_titles(("← worse    better →", f"difference of {measure} from {base}"), padding),
        x_axis(x, padding, kind),
        stretch(element("path", class_="grid", d="".join(f"M{round_half_up(x(tick))} 0V{SPAN:g}" for tick in x.ticks))),
        element("line", class_="zero", x1=share(x(0.0)), x2=share(x(0.0)), y1="0", y2="100%"),
        *rows,
    ]
    label = f"differences of {measure} from {base}"
    return chart(label, parts, padding, kind=f"{kind} rows", tall=ROW * len(pairs), wider=wider if kind == "wide" else None)


def rank_curves(comparison: Results, dataset: str, numbers: Mapping[str, int]) -> Drawing | None:
    """Draw nDCG at ranks 1 to 10 with intervals, methods a little apart at each rank; None if there are no values."""
    shared = {k: shared_values(comparison, dataset, f"nDCG@{k}") for k in RANKS}
    names = list(shared[1].values)
    if not names:
        return None
    apart = min(0.08, 0.6 / len(names))
    lines = []
    for i, name in enumerate(names):
        offset = (i - (len(names) - 1) / 2) * apart
        dots = [
            Dot(k + offset, mean, (str(k), plain(mean), plain(low), plain(high)), (low, high) if len(names) <= WHISKERS else None)
            for k, (mean, (low, high)) in ((k, shared[k].means[name]) for k in RANKS)
        ]
        lines.append(Line(numbers[name], dots, f"{name}\nnDCG@{{}}: {{}}\n95%: {{}} to {{}}"))
    return Drawing(names, line_chart(lines, f"nDCG at ranks 1 to 10 on {dataset}", ("rank", "nDCG"), kind="wide", many=len(RANKS) + 2))


def learning_curves(fits: Sequence[Fit], numbers: Mapping[str, int], measure: str) -> Figures:
    """Draw a small chart for each method with two steps or more: train behind, validation before, a mark where a run begins anew."""

    def reason(fit: Fit) -> str:
        if len(fit.curve) > 1:
            return ""
        if not fit.seconds:
            return "nothing was trained"
        return "it is solved in one step" if fit.curve else "it does not report its steps"

    figures = []
    for fit in (fit for fit in fits if len(fit.curve) > 1):
        train = [Dot(p.step, p.train, (f"{p.step:,}", plain(p.train)), run=p.run) for p in fit.curve]
        valid = [Dot(p.step, p.valid, (f"{p.step:,}", plain(p.valid)), run=p.run) for p in fit.curve if p.valid is not None]
        lines = [Line(numbers[fit.method], train, "step {}\ntrain: {}", faint=True)]
        lines += [Line(numbers[fit.method], valid, "step {}\nvalidation: {}")] if valid else []
        restarts = [b.step for a, b in pairwise(fit.curve) if a.run != b.run and b.run]
        note = (
            f"{len(restarts)} restarts, each marked by a line" if len(restarts) > 1 else "1 restart, marked by a line" if restarts else ""
        )
        figures.append(Figure(fit.method, line_chart(lines, f"training of {fit.method}", ("step", measure), restarts=restarts), note))
    return Figures(figures, _without(numbers, fits, reason))


def _without(names: Iterable[str], fits: Sequence[Fit], reason: Callable[[Fit], str]) -> dict[str, list[str]]:
    """Group the methods without a chart by the reason; ``reason`` returns "" for a fit with a chart."""
    by_method = {fit.method: fit for fit in fits}
    methods: dict[str, list[str]] = {}
    for name in names:
        fit = by_method.get(name)
        text = "it has not run yet" if fit is None else reason(fit)
        if text:
            methods.setdefault(f"its fit failed ({fit.failed})" if fit and fit.failed else text, []).append(name)
    return methods


def time_curves(fits: Sequence[Fit], numbers: Mapping[str, int], measure: str) -> Drawing | None:
    """Draw the measure on validation data against seconds, all methods together; None if no method reports it."""
    dots = {
        fit.method: [Dot(p.seconds, p.valid, (compact(p.seconds), plain(p.valid)), run=p.run) for p in fit.curve if p.valid is not None]
        for fit in fits
    }
    dots = {name: curve for name, curve in dots.items() if curve}
    if not dots:
        return None
    seconds = [dot.x for curve in dots.values() for dot in curve if dot.x > 0 and math.isfinite(dot.x)]
    log = bool(seconds) and max(seconds) > LOG_RATIO * min(seconds)
    lines = [Line(numbers[name], curve, f"{name}\n{{}} s: {{}}") for name, curve in dots.items()]
    titles = ("seconds of training", f"{measure}, validation")
    return Drawing(list(dots), line_chart(lines, f"{measure} on validation data against seconds", titles, kind="wide", log=log))


def weight_figures(fits: Sequence[Fit], numbers: Mapping[str, int]) -> Figures:
    """Draw the features that count most, for each method that has weights."""
    figures = []
    for method, weights in ((fit.method, fit.weights) for fit in fits if fit.weights and fit.weights.values):
        finite = [(name, v) for name, v in zip(weights.names, weights.values, strict=True) if math.isfinite(v)]
        top = sorted(finite, key=lambda pair: -abs(pair[1]))[:FEATURES]
        names, values = [name for name, _ in top] or ["none"], [v for _, v in top] or [0.0]
        label = f"features of {method} by {weights.kind}"
        bars = bar_chart(names, values, [compact(v) for v in values], label, number=numbers[method])
        left = len(weights.values) - len(top)
        figures.append(Figure(method, bars, weights.kind + (f"; {left:,} features with less are not shown" if left else "")))
    return Figures(figures, _without(numbers, fits, _no_weights))


def _no_weights(fit: Fit) -> str:
    if fit.weights and fit.weights.values:
        return ""
    return "its model has no weight per feature (a network or a sum of models has none)" if fit.seconds else "nothing was trained"


def slice_figures(fits: Sequence[Fit], numbers: Mapping[str, int], measure: str) -> Figures:
    """Draw the measure along one feature, for each method that has a slice."""

    def reason(fit: Fit) -> str:
        if fit.slice and fit.slice.high:
            return ""
        if fit.weights and fit.weights.values and not any(fit.weights.values):
            return "no feature counts in its model"
        constant = "the scores, or the feature that counts most, are constant or missing, or the measure has no exact steps"
        return _no_weights(fit) or constant

    figures = []
    for method, steps in ((fit.method, fit.slice) for fit in fits if fit.slice and fit.slice.high):
        value = max((high for a, b, high in zip(steps.edges, steps.edges[1:], steps.high, strict=False) if a <= 0 <= b), default=math.nan)
        at, best = best_step(steps)
        marks = [
            (0.0, value, "model", f"the model as it is\n{plain(value)}"),
            (at, best, "best-point", f"best, at {with_sign(at)}\n{plain(best)}"),
        ]
        caption = f"{method} along feature {steps.feature}"
        titles = f"multiple of feature {steps.feature} added", measure
        note = f"{steps.part} data: {plain(value)} at 0; best {plain(best)} at {with_sign(at)}, {with_sign(best - value)}"
        figures.append(Figure(caption, step_chart(steps, f"{measure} of {caption}", titles, look(numbers[method]), marks), note))
    return Figures(figures, _without(numbers, fits, reason))


def best_step(steps: Slice) -> tuple[float, float]:
    """Return the middle of the best step, and the value there; NaN if there is none.

    >>> best_step(Slice("f", "test", (-1.0, 0.5, 1.0), (0.1, 0.2), (0.1, 0.3)))
    (0.75, 0.3)
    """
    finite = [(high, -i) for i, high in enumerate(steps.high) if math.isfinite(high)]
    if not finite:
        return math.nan, math.nan
    value, at = max(finite)  # the first of the best
    return (steps.edges[-at] + steps.edges[1 - at]) / 2, value


@dataclass(frozen=True)
class WinLoss:
    """The differences of all methods from the baseline, query by query; the baseline has a place too, where it does not show."""

    baseline: str
    opponents: Sequence[tuple[str, str, Markup]]  #: name; wins, ties and losses; chart
    queries: int
    bars: int
    values: dict[str, Any]  #: for the script, which draws the differences from another baseline


def win_loss(shared: SharedValues, measure: str, pairs: Sequence[Pair], baseline: str) -> WinLoss | None:
    """Draw the differences of each method from the baseline on every query; None for fewer than two methods with values."""
    names = list(shared.values)
    if len(names) < 2:
        return None
    table = np.stack([shared.values[name] for name in names])
    rounded = np.rint(np.where(np.isfinite(table), table, np.nan) * UNIT)
    base = names.index(baseline) if baseline in names else 0
    counts = [[(0, 0, 0) for _ in names] for _ in names]  # wins, ties and losses of every method against every other
    for pair in pairs:
        i, j = names.index(pair.first), names.index(pair.second)
        counts[i][j], counts[j][i] = (pair.wins, pair.ties, pair.losses), (pair.losses, pair.ties, pair.wins)
    measured = rounded[:, np.isfinite(rounded).any(axis=0)]
    reach = 1.05 * (float((np.nanmax(measured, axis=0) - np.nanmin(measured, axis=0)).max(initial=0.0)) / UNIT or 1.0)
    opponents = []
    for name, values, against in zip(names, rounded, counts, strict=True):
        differences = (values - rounded[base]) / UNIT
        _, y, axes, padding = frame((0.0, 1.0), (-reach, reach), ("queries, best first", f"difference of {measure}"), many=0)
        areas = win_loss_areas(differences[drawn_places(differences)].tolist(), reach)
        paths = [element("path", class_=kind, d=d) for kind, d in zip(("win", "loss"), areas, strict=True)]
        zero = element("path", class_="axis", d=f"M0 {round_half_up(y(0.0))}H{SPAN:g}")
        label = f"{name} against {names[base]}, query by query"
        bars = chart(label, [axes, stretch(*paths, zero)], padding, near="x")
        opponents.append((name, "{} won, {} tied, {} lost".format(*against[base]), bars))
    queries = int(np.isfinite(rounded).all(axis=0).sum())
    for_script = {
        "names": names,
        "qid": shared.qid,
        "values": [[int(v) if math.isfinite(v) else None for v in row] for row in rounded.tolist()],
        "counts": counts,
        "unit": UNIT,
        "columns": COLUMNS,
        "span": SPAN,
        "reach": reach,
    }
    return WinLoss(names[base], opponents, queries, min(queries, COLUMNS), for_script)


def win_loss_areas(differences: Sequence[float], reach: float) -> tuple[str, str]:
    """Return the ``d`` of the areas above and below the line, of differences in order; the page's script has a twin of this.

    >>> win_loss_areas([0.5, 0.0, -1.0], 1.0)
    ('M0 1000V500H667V1000Z', 'M1333 1000V2000H2000V1000Z')
    """
    column, zero = SPAN / max(len(differences), 1), SPAN / 2
    areas = []
    for sign in (1, -1):
        bars = [(i, value) for i, value in enumerate(differences) if sign * value > 0]
        tops = "".join(f"V{round_half_up(zero * (1 - value / reach))}H{round_half_up((i + 1) * column)}" for i, value in bars)
        areas.append(f"M{round_half_up(bars[0][0] * column)} {zero:g}{tops}V{zero:g}Z" if bars else "")
    return areas[0], areas[1]


def drawn_places(differences: PerQuery) -> npt.NDArray[np.int64]:
    """Return the queries to draw, from the largest difference down: all, or `COLUMNS` of them, evenly spaced in that order.

    >>> drawn_places(np.array([0.5, np.nan, -1.0, 2.0])).tolist()
    [3, 0, 2]
    """
    order = np.argsort(-differences, kind="stable")
    order = order[np.isfinite(differences[order])]
    return order if len(order) <= COLUMNS else order[np.arange(COLUMNS) * (len(order) - 1) // (COLUMNS - 1)]


def line_chart(
    lines: Sequence[Line],
    label: str,
    titles: tuple[str, str],
    *,
    kind: str = "small",
    log: bool = False,
    many: int = 5,
    restarts: Sequence[float] = (),
) -> Markup:
    """Draw lines over a common scale, with whiskers where dots have intervals; ``log`` and ``many`` ticks are about x.

    Lines are thinned out to `LINE_POINTS`; a point that cannot be drawn leaves a gap, and so does a new run. ``restarts`` are marked.
    """

    def drawable(dot: Dot) -> bool:
        return math.isfinite(dot.y) and math.isfinite(dot.x) and (dot.x > 0 or not log)

    pieces: list[list[list[Dot]]] = []  # of each line
    for line in lines:
        dots = [line.dots[i] for i in _spread(len(line.dots), LINE_POINTS)]
        groups = groupby(dots, key=lambda dot: (dot.run, drawable(dot)))
        pieces.append([list(group) for (_, is_drawable), group in groups if is_drawable])
    dots = [dot for of_line in pieces for piece in of_line for dot in piece]
    heights = [y for dot in dots for y in (dot.y, *(dot.ends or ()))]
    x, y, axes, padding = frame(extent([dot.x for dot in dots], log=log), extent(heights), titles, log=log, many=many, kind=kind)
    marks = "".join(f"M{round_half_up(x(at))} 0V{SPAN:g}" for at in restarts)
    paths = [element("path", class_="restart", d=marks)] if marks else []
    for line, of_line in zip(lines, pieces, strict=True):
        d = "".join(path([(x(dot.x), y(dot.y)) for dot in piece]) for piece in of_line if len(piece) > 1)
        if d:
            paths.append(element("path", class_=f"line {'faint' if line.faint else look(line.number)}", d=d))
    points = [_points(line, of_line, x, y) for line, of_line in zip(lines, pieces, strict=True)]
    return chart(label, [axes, stretch(*paths), *points], padding, kind=kind)


def _points(line: Line, pieces: Sequence[Sequence[Dot]], x: PixelScale, y: PixelScale) -> Markup:
    """Draw whiskers and markers, also at points without a line, and attach the words about points."""
    dots, parts = [dot for piece in pieces for dot in piece], []
    for dot in dots:
        if dot.ends and all(map(math.isfinite, dot.ends)):
            at, (low, high) = share(x(dot.x)), (share(y(end)) for end in dot.ends)
            parts.append(element("line", class_="whisker", x1=at, x2=at, y1=low, y2=high))
    if not line.faint:
        spread = [dots[i] for i in _spread(len(dots), LINE_MARKERS if len(dots) > 2 * LINE_MARKERS else LINE_TIPS)]
        single = [piece[0] for piece in pieces if len(piece) == 1]
        parts += [marker(line.number, share(x(dot.x)), share(y(dot.y))) for dot in dict.fromkeys([*spread, *single])]
    described = [dots[i] for i in _spread(len(dots), LINE_TIPS)]
    places = ";".join(" ".join((share(x(dot.x))[:-1], share(y(dot.y))[:-1], *dot.words)) for dot in described)
    return element("g", *parts, class_=look(line.number), data_method=str(line.number), data_say=line.say, data_at=places)


def _spread(n: int, limit: int) -> list[int]:
    """Return at most ``limit`` of the numbers 0 to n - 1, evenly spaced, the ends among them.

    >>> _spread(3, 5), _spread(10, 4)
    ([0, 1, 2], [0, 3, 6, 9])
    """
    return list(range(n)) if n <= limit else [i * (n - 1) // (limit - 1) for i in range(limit)]


def bar_chart(names: Sequence[str], values: Sequence[float], texts: Sequence[str], label: str, *, number: int = 0) -> Markup:
    """Draw a bar to the right, or left if the value is below 0, for each name; ``texts`` are the values in writing."""
    values = [v if math.isfinite(v) else 0.0 for v in values]
    left, right = min(NAME, 10 + max(map(text_width, names))), max(map(text_width, texts), default=0.0) + GAP
    scale = PixelScale(min(0.0, *values), max(0.0, *values) or 1.0, 0.0, SPAN)
    titles, bars, numbers = [], [], []
    for i, (name, value, text) in enumerate(zip(names, values, texts, strict=True)):
        start, end = sorted((scale(0.0), scale(value)))
        short = shorten(name, left - GAP)
        tip = None if short == name else f"{name}\n{text}"
        titles.append(element("text", short, y=BAR * i + 13))
        bars.append(element("rect", x=share(start), y=BAR * i + 3, width=share(max(end - start, 2.0)), height=BAR - 6, data_tip=tip))
        numbers.append(element("text", text, x="100%", y=BAR * i + 13))
    parts = [
        element("g", *titles, class_="ys", transform=f"translate({-GAP:g} 0)"),
        element("g", *bars, class_=f"bars {look(number)}"),
        element("g", *numbers, class_="values", transform=f"translate({coordinate(right)} 0)"),
        element("line", class_="zero", x1=share(scale(0)), x2=share(scale(0)), y1="0", y2="100%"),
    ]
    return chart(label, parts, (2.0, right, 4.0, left), kind="rows", tall=BAR * len(names))


def grades_chart(data: DataSummary) -> Markup | None:
    """Draw the number of documents of each grade, those of all but the `GRADES` most frequent together."""
    grades = list(data.grades.items())
    if len(grades) > GRADES:
        frequent = sorted(grades, key=lambda pair: -pair[1])[: GRADES - 1]
        rest = sum(data.grades.values()) - sum(count for _, count in frequent)
        grades = [*(pair for pair in grades if pair in frequent), (f"{len(grades) - len(frequent):,} others", rest)]
    if not grades:
        return None
    counts = [count for _, count in grades]
    return bar_chart([name for name, _ in grades], counts, [f"{count:,}" for count in counts], f"documents of {data.name} by grade")


def step_chart(steps: Slice, label: str, titles: tuple[str, str], looks: str, marks: Sequence[tuple[float, float, str, str]]) -> Markup:
    """Draw the step function of a slice, as a band if there are too many steps; ``marks`` are points, their kinds and tips."""
    x, y, axes, padding = frame(extent(steps.edges, margin=0.0), extent([*steps.low, *steps.high], margin=0.1), titles)
    spans = [
        (a, b, low, high)
        for a, b, low, high in zip(steps.edges, steps.edges[1:], steps.low, steps.high, strict=False)
        if all(map(math.isfinite, (a, b, low, high)))
    ]
    parts = [axes]
    if spans:
        size = -(-len(spans) // STEPS)
        groups = [spans[i : i + size] for i in range(0, len(spans), size)]
        boxes = [(x(group[0][0]), x(group[-1][1]), y(min(s[2] for s in group)), y(max(s[3] for s in group))) for group in groups]
        upper = stairs([(a, b, high) for a, b, _, high in boxes])
        lower = stairs([(b, a, low) for a, b, low, _ in reversed(boxes)])
        is_band = any(round_half_up(low) != round_half_up(high) for *_, low, high in boxes)
        d, kind = (f"{upper}L{lower[1:]}Z", "area") if is_band else (upper, "line")
        parts.append(stretch(element("path", class_=f"{kind} {looks}", d=d)))
        for at, value, kind, tip in marks:
            if math.isfinite(value):
                parts.append(element("circle", class_=kind, cx=share(x(at)), cy=share(y(value)), r=4.0, data_tip=tip))
    return chart(label, parts, padding)
