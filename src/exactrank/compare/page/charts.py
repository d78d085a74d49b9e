"""The charts of a report as SVG: they need no script to be read, and take the width that there is.

A data set has differences from the baseline, nDCG by rank, training step by step and by time, what features count for, and steps along a
feature. A method of which a chart cannot be drawn is named with the reason.

What is said about a point is its ``data-tip``; the page shows that of the point nearest to the mouse, or to the left and right of the last
one by the arrow keys. ``data-near`` tells whether nearness counts across alone ("x") or both ways ("xy"). The points of a line are held
more briefly: ``data-at`` has the place of each, in shares of the plot, and what goes into the gaps of ``data-say``.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise

import numpy as np
from markupsafe import Markup

from exactrank.compare.page.svg import (
    BOTTOM,
    GAP,
    SPAN,
    TICK,
    TOP,
    PixelScale,
    Span,
    chart,
    coordinate,
    element,
    extent,
    framed,
    look,
    marker,
    path,
    share,
    shortened,
    stairs,
    stretched,
    text_width,
    titled,
    whole,
    x_axis,
)
from exactrank.compare.page.table import compact, interval, plain, probability, signed
from exactrank.compare.results import RANKS, Fit, Results, Slice
from exactrank.compare.standings import LEVEL, MARKING_TEST, shared_values
from exactrank.compare.statistics.pairs import Pair
from exactrank.measures.bound import means_over_queries
from exactrank.measures.evaluate import bootstrap_intervals

LINE_POINTS, LINE_TIPS, LINE_MARKERS = 100, 24, 6  #: of a long line that are drawn, said and marked
STEPS = 160  #: of a step function that are drawn
BAR, ROW = 18.0, 22.0  #: pixels for a bar, and for a row of differences
NAME = 128.0  #: pixels for a name beside a bar
BOLD = 1.15  #: how much wider bold text is
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
class Figures:
    """Charts of one kind, and why some methods have none: reasons with the names of the methods."""

    charts: Sequence[Figure] = ()
    without: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Dot:
    """A point of a line, what is said about it, the ends of its interval, and the run that it belongs to."""

    x: float
    y: float
    said: Sequence[str]
    ends: Span | None = None
    run: str = ""


@dataclass(frozen=True)
class Line:
    """The points of the method of this number, and the words around what is said of each; a ``faint`` one stands behind."""

    number: int
    dots: Sequence[Dot]
    say: str
    faint: bool = False


def difference_chart(pairs: Sequence[Pair], numbers: Mapping[str, int], measure: str, *, kind: str = "wide") -> Markup | None:
    """Each method's difference from the baseline with its interval, the best first; None where there is nothing to compare."""
    known = [pair for pair in pairs if math.isfinite(pair.difference)]
    if not known:
        return None
    known.sort(key=lambda pair: -pair.difference)
    brief = [signed(pair.difference) for pair in known]
    full = [f"{signed(pair.difference)} ({interval(pair.interval)})" for pair in known]
    left = min(NAME, 10 + BOLD * max(text_width(pair.first) for pair in known))
    right, wider = (BOLD * max(map(text_width, texts)) + 2 * GAP for texts in (brief, full))
    padding, base = (TOP, right, BOTTOM + TICK, left), known[0].second
    x = PixelScale(*extent([0.0, *(end for pair in known for end in (*pair.interval, pair.difference))]), 0.0, SPAN, many=4)
    rows = []
    for i, (pair, short, long) in enumerate(zip(known, brief, full, strict=True)):
        clear = pair.adjusted[MARKING_TEST] < LEVEL
        rows.append(_difference(pair, x, i, numbers[pair.first], left, (short, long if kind == "wide" else ""), clear))
    parts = [
        titled(("← worse    better →", f"difference of {measure} from {base}"), padding),
        x_axis(x, padding, kind),
        stretched(element("path", class_="grid", d="".join(f"M{whole(x(tick))} 0V{SPAN:g}" for tick in x.ticks))),
        element("line", class_="zero", x1=share(x(0.0)), x2=share(x(0.0)), y1="0", y2="100%"),
        *rows,
    ]
    label = f"differences of {measure} from {base}"
    return chart(label, parts, padding, kind=f"{kind} rows", tall=ROW * len(known), wider=wider if kind == "wide" else None)


def _difference(pair: Pair, x: PixelScale, row: int, number: int, left: float, texts: tuple[str, str], clear: bool) -> Markup:
    """A row: name, interval, difference, and both as text; bold where the difference is significant."""
    at, where = ROW * (row + 0.5), f"{look(number)}{' clear' if clear else ''}"
    low, high = (share(x(end)) if math.isfinite(end) else None for end in pair.interval)
    tip = f"{pair.first} against {pair.second}\ndifference: {signed(pair.difference)}\n95%: {interval(pair.interval)}\n"
    tip += f"adjusted p: {probability(pair.adjusted[MARKING_TEST])}\n{pair.wins} won, {pair.ties} tied, {pair.losses} lost"
    brief, full = texts
    parts = [
        element("text", shortened(pair.first, (left - GAP) / BOLD), class_="name", x=-GAP, y=at + 4),
        *([element("line", class_="whisker", x1=low, x2=high, y1=at, y2=at)] if low and high else []),
        marker(number, share(x(pair.difference)), at),
        element("circle", class_="unseen", cx=share(x(pair.difference)), cy=at, r=6.0, data_tip=tip),
        element("text", brief, class_="few" if full else None, x="100%", dx=GAP, y=at + 4),
        *([element("text", full, class_="many", x="100%", dx=GAP, y=at + 4)] if full else []),
    ]
    return element("g", *parts, class_=where)


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
            aside = (i - (len(names) - 1) / 2) * apart
            said = str(k), plain(mean), plain(low), plain(high)
            dots.append(Dot(k + aside, mean, said, (low, high) if len(names) <= WHISKERS else None))
        lines.append(Line(numbers[name], dots, f"{name}\nnDCG@{{}}: {{}}\n95%: {{}} to {{}}"))
    return Drawing(names, line_chart(lines, f"nDCG at ranks 1 to 10 on {dataset}", ("rank", "nDCG"), kind="wide", many=len(RANKS) + 2))


def learning_curves(fits: Sequence[Fit], numbers: Mapping[str, int], measure: str) -> Figures:
    """A small chart for each method that tells of two steps or more: train behind, validation before, a mark where a run begins anew."""
    figures = []
    for fit in (fit for fit in fits if len(fit.curve) > 1):
        train = [Dot(p.step, p.train, (f"{p.step:,}", plain(p.train)), run=p.run) for p in fit.curve]
        valid = [Dot(p.step, p.valid, (f"{p.step:,}", plain(p.valid)), run=p.run) for p in fit.curve if p.valid is not None]
        lines = [Line(numbers[fit.method], train, "step {}\ntrain: {}", faint=True)]
        lines += [Line(numbers[fit.method], valid, "step {}\nvalidation: {}")] if valid else []
        begun = [b.step for a, b in pairwise(fit.curve) if a.run != b.run and b.run]
        note = f"{len(begun)} restarts, each marked by a line" if len(begun) > 1 else "1 restart, marked by a line" if begun else ""
        figures.append(Figure(fit.method, line_chart(lines, f"training of {fit.method}", ("step", measure), begun=begun), note))
    return Figures(figures, _without(numbers, fits, lambda fit: len(fit.curve) > 1, _no_curve))


def _no_curve(fit: Fit) -> str:
    if not fit.seconds:
        return "nothing was trained"
    return "it is solved in one step" if fit.curve else "it does not report its steps"


def _without(names: Iterable[str], fits: Sequence[Fit], has: Callable[[Fit], bool], why: Callable[[Fit], str]) -> dict[str, list[str]]:
    """The methods that have no chart, by the reason."""
    found: dict[str, list[str]] = {}
    done = {fit.method: fit for fit in fits}
    for name in names:
        fit = done.get(name)
        if fit is None or not has(fit):
            reason = "it has not run yet" if fit is None else f"its fit failed ({fit.failed})" if fit.failed else why(fit)
            found.setdefault(reason, []).append(name)
    return found


def time_curves(fits: Sequence[Fit], numbers: Mapping[str, int], measure: str) -> Drawing | None:
    """The measure on validation data against seconds, all methods together; None where no method tells."""
    told = {}
    for fit in fits:
        known = [(p.seconds, p.valid, p.run) for p in fit.curve if p.valid is not None]
        if known:
            told[fit.method] = [Dot(seconds, valid, (compact(seconds), plain(valid)), run=run) for seconds, valid, run in known]
    if not told:
        return None
    seconds = [dot.x for dots in told.values() for dot in dots if dot.x > 0 and math.isfinite(dot.x)]
    log = bool(seconds) and max(seconds) > APART * min(seconds)
    lines = [Line(numbers[name], dots, f"{name}\n{{}} s: {{}}") for name, dots in told.items()]
    titles = ("seconds of training", f"{measure}, validation")
    return Drawing(list(told), line_chart(lines, f"{measure} on validation data against seconds", titles, kind="wide", log=log))


def weight_figures(fits: Sequence[Fit], numbers: Mapping[str, int]) -> Figures:
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
    return Figures(figures, _without(numbers, fits, lambda fit: bool(fit.weights and fit.weights.values), _no_weights))


def _no_weights(fit: Fit) -> str:
    return "its model has no weight per feature (a network or a sum of models has none)" if fit.seconds else "nothing was trained"


def slice_figures(fits: Sequence[Fit], numbers: Mapping[str, int], measure: str) -> Figures:
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
    return Figures(figures, _without(numbers, fits, lambda fit: bool(fit.slice and fit.slice.high), _no_slice))


def _no_slice(fit: Fit) -> str:
    if fit.weights is None or not fit.weights.values:
        return _no_weights(fit)
    if not any(fit.weights.values):
        return "no feature counts in its model"
    return "the scores, or the feature that counts most, are constant or missing, or the measure has no exact steps"


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
    lines: Sequence[Line],
    label: str,
    titles: tuple[str, str],
    *,
    kind: str = "small",
    log: bool = False,
    many: int = 5,
    begun: Sequence[float] = (),
) -> Markup:
    """Lines over a common scale, with whiskers where dots have intervals; ``log`` and ``many`` ticks are about x.

    Lines are thinned out to `LINE_POINTS`; what cannot be drawn leaves a gap, and so does a new run. Where one has ``begun`` stands a
    mark.
    """

    def drawable(dot: Dot) -> bool:
        return math.isfinite(dot.y) and math.isfinite(dot.x) and (dot.x > 0 or not log)

    shown = []
    for line in lines:
        dots = [line.dots[i] for i in _spread(len(line.dots), LINE_POINTS)]
        split = groupby(dots, key=lambda dot: (dot.run, drawable(dot)))
        shown.append((line, list(filter(drawable, dots)), [list(piece) for (_, known), piece in split if known]))
    dots = [dot for _, drawn, _ in shown for dot in drawn]
    heights = [y for dot in dots for y in (dot.y, *(dot.ends or ()))]
    x, y, axes, padding = framed(extent([dot.x for dot in dots], log=log), extent(heights), titles, log=log, many=many, kind=kind)
    marks = "".join(f"M{whole(x(at))} 0V{SPAN:g}" for at in begun)
    paths = [element("path", class_="restart", d=marks)] if marks else []
    for line, _, pieces in shown:
        d = "".join(path([(x(dot.x), y(dot.y)) for dot in piece]) for piece in pieces if len(piece) > 1)
        if d:
            paths.append(element("path", class_=f"line {'faint' if line.faint else look(line.number)}", d=d))
    return chart(
        label, [axes, stretched(*paths), *(_marks(line, drawn, pieces, x, y) for line, drawn, pieces in shown)], padding, kind=kind
    )


def _marks(line: Line, dots: Sequence[Dot], pieces: Sequence[Sequence[Dot]], x: PixelScale, y: PixelScale) -> Markup:
    """Whiskers, markers, also at points that no line goes through, and what is said about points."""
    parts = []
    for dot in dots:
        if dot.ends and all(map(math.isfinite, dot.ends)):
            at, (low, high) = share(x(dot.x)), (share(y(end)) for end in dot.ends)
            parts.append(element("line", class_="whisker", x1=at, x2=at, y1=low, y2=high))
    some = [dots[i] for i in _spread(len(dots), LINE_MARKERS if len(dots) > 2 * LINE_MARKERS else LINE_TIPS)]
    alone = [piece[0] for piece in pieces if len(piece) == 1]
    if not line.faint:
        parts += [marker(line.number, share(x(dot.x)), share(y(dot.y))) for dot in dict.fromkeys([*some, *alone])]
    said = [dots[i] for i in _spread(len(dots), LINE_TIPS)]
    told = ";".join(" ".join((share(x(dot.x))[:-1], share(y(dot.y))[:-1], *dot.said)) for dot in said)
    return element("g", *parts, class_=look(line.number), data_method=str(line.number), data_say=line.say, data_at=told)


def _spread(n: int, most: int) -> list[int]:
    """At most so many of 0 to n - 1, the ends among them.

    >>> _spread(3, 5), _spread(10, 4)
    ([0, 1, 2], [0, 3, 6, 9])
    """
    return list(range(n)) if n <= most else [i * (n - 1) // (most - 1) for i in range(most)]


def bar_chart(names: Sequence[str], values: Sequence[float], texts: Sequence[str], label: str, *, number: int = 0) -> Markup:
    """A bar to the right, or left where the value is below 0, for each name; ``texts`` are the values as they are written."""
    known = [v if math.isfinite(v) else 0.0 for v in values]
    left, right = min(NAME, 10 + max(map(text_width, names))), max(map(text_width, texts), default=0.0) + GAP
    scale = PixelScale(min(0.0, *known), max(0.0, *known) or 1.0, 0.0, SPAN)
    titles, bars, numbers = [], [], []
    for i, (name, value, text) in enumerate(zip(names, known, texts, strict=True)):
        start, end = sorted((scale(0.0), scale(value)))
        short = shortened(name, left - GAP)
        cut = {} if short == name else {"data_tip": f"{name}\n{text}"}
        titles.append(element("text", short, y=BAR * i + 13))
        bars.append(element("rect", x=share(start), y=BAR * i + 3, width=share(max(end - start, 2.0)), height=BAR - 6, **cut))
        numbers.append(element("text", text, x="100%", y=BAR * i + 13))
    parts = [
        element("g", *titles, class_="ys", transform=f"translate({-GAP:g} 0)"),
        element("g", *bars, class_=f"bars {look(number)}"),
        element("g", *numbers, class_="values", transform=f"translate({coordinate(right)} 0)"),
        element("line", class_="zero", x1=share(scale(0)), x2=share(scale(0)), y1="0", y2="100%"),
    ]
    return chart(label, parts, (2.0, right, 4.0, left), kind="rows", tall=BAR * len(names))


def step_chart(steps: Slice, label: str, titles: tuple[str, str], looks: str, marks: Sequence[tuple[float, float, str, str]]) -> Markup:
    """The step function of a slice, a band where steps are too many to be drawn one by one; ``marks`` are points, their kinds and tips."""
    x, y, axes, padding = framed(extent(steps.edges, margin=0.0), extent([*steps.low, *steps.high], margin=0.1), titles)
    spans = [
        (a, b, low, high)
        for a, b, low, high in zip(steps.edges, steps.edges[1:], steps.low, steps.high, strict=False)
        if all(map(math.isfinite, (a, b, low, high)))
    ]
    together = -(-len(spans) // STEPS)
    joined = [spans[i : i + together] for i in range(0, len(spans), max(together, 1))]
    drawn = [(x(own[0][0]), x(own[-1][1]), y(min(s[2] for s in own)), y(max(s[3] for s in own))) for own in joined]
    parts = [axes]
    if drawn:
        upper = stairs([(a, b, high) for a, b, _, high in drawn])
        lower = stairs([(b, a, low) for a, b, low, _ in reversed(drawn)])
        band = any(whole(low) != whole(high) for *_, low, high in drawn)
        line = (
            element("path", class_=f"area {looks}", d=f"{upper}L{lower[1:]}Z") if band else element("path", class_=f"line {looks}", d=upper)
        )
        parts.append(stretched(line))
        for at, value, kind, tip in marks:
            if math.isfinite(value):
                parts.append(element("circle", class_=kind, cx=share(x(at)), cy=share(y(value)), r=4.0, data_tip=tip))
    return chart(label, parts, padding)
