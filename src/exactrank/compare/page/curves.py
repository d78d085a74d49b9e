"""The charts that a data set has: nDCG by rank, training step by step and by time, what features count for, steps along a feature."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from exactrank.compare.page.charts import SMALL, Dot, Line, bar_chart, best_step, line_chart, step_at, step_chart
from exactrank.compare.page.numbers import compact, interval, plain, signed
from exactrank.compare.results import RANKS, Fit, Results, Slice, Weights
from exactrank.compare.standings import shared_values
from exactrank.measures.bootstrap import bootstrap_intervals
from exactrank.measures.bound import means_over_queries

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


def rank_curves(comparison: Results, dataset: str, numbers: Mapping[str, int]) -> Drawing | None:
    """nDCG at ranks 1 to 10 with intervals; methods stand a little apart at each rank. None where there are no values."""
    shared = {k: shared_values(comparison, dataset, f"nDCG@{k}") for k in RANKS}
    names = list(shared[1].values)
    if not names:
        return None
    table = np.stack([shared[k].values[name] for name in names for k in RANKS])
    weight = shared[1].weight
    shape = len(names), len(RANKS)
    means = means_over_queries(table, weight).reshape(shape).tolist()
    ends = bootstrap_intervals(table, weight).reshape(*shape, 2).tolist()
    apart = min(0.08, 0.6 / len(names))
    lines = []
    for i, name in enumerate(names):
        aside = (i - (len(names) - 1) / 2) * apart
        dots = [
            _rank_dot(name, k, aside, means[i][j], (ends[i][j][0], ends[i][j][1]), drawn=len(names) <= WHISKERS)
            for j, k in enumerate(RANKS)
        ]
        lines.append(Line(numbers[name], dots))
    return Drawing(names, line_chart(lines, f"nDCG at ranks 1 to 10 on {dataset}", ("rank", "nDCG"), many=len(RANKS) + 2))


def learning_curves(fits: Sequence[Fit], numbers: Mapping[str, int], measure: str) -> list[Figure]:
    """A small chart for each method that tells of two steps or more: train behind, validation before."""
    return [
        Figure(fit.method, line_chart(_steps(fit, numbers[fit.method]), f"training of {fit.method}", ("step", measure), size=SMALL))
        for fit in fits
        if len(fit.curve) > 1
    ]


def time_curves(fits: Sequence[Fit], numbers: Mapping[str, int], measure: str) -> Drawing | None:
    """The measure on validation data against seconds, all methods together; None where no method tells."""
    told = {fit.method: dots for fit in fits if (dots := _by_seconds(fit))}
    if not told:
        return None
    seconds = [dot.x for dots in told.values() for dot in dots if dot.x > 0 and math.isfinite(dot.x)]
    log = bool(seconds) and max(seconds) > APART * min(seconds)
    lines = [Line(numbers[name], dots) for name, dots in told.items()]
    titles = ("seconds of training", f"{measure}, validation")
    return Drawing(list(told), line_chart(lines, f"{measure} on validation data against seconds", titles, log=log))


def weight_figures(fits: Sequence[Fit], numbers: Mapping[str, int]) -> list[Figure]:
    """The features that count most, for each method that tells."""
    return [_weight_figure(fit.method, fit.weights, numbers[fit.method]) for fit in fits if fit.weights and fit.weights.values]


def slice_figures(fits: Sequence[Fit], numbers: Mapping[str, int], measure: str) -> list[Figure]:
    """The measure along one feature, for each method that has a slice."""
    return [_slice_figure(fit.method, fit.slice, numbers[fit.method], measure) for fit in fits if fit.slice and fit.slice.high]


def _rank_dot(name: str, k: int, aside: float, mean: float, ends: tuple[float, float], *, drawn: bool) -> Dot:
    tip = f"{name}\nnDCG@{k}: {plain(mean)}\n95%: {interval(ends)}"
    return Dot(k + aside, mean, tip, ends if drawn else None)


def _steps(fit: Fit, number: int) -> list[Line]:
    train = [Dot(p.step, p.train, f"step {p.step:,}\ntrain: {plain(p.train)}") for p in fit.curve]
    valid = [Dot(p.step, p.valid, f"step {p.step:,}\nvalidation: {plain(p.valid)}") for p in fit.curve if p.valid is not None]
    return [Line(number, train, faint=True), *([Line(number, valid)] if valid else [])]


def _by_seconds(fit: Fit) -> list[Dot]:
    return [Dot(p.seconds, p.valid, f"{fit.method}\n{compact(p.seconds)} s: {plain(p.valid)}") for p in fit.curve if p.valid is not None]


def _weight_figure(method: str, weights: Weights, number: int) -> Figure:
    known = [(name, v) for name, v in zip(weights.names, weights.values, strict=True) if math.isfinite(v)]
    top = sorted(known, key=lambda pair: -abs(pair[1]))[:FEATURES]
    names, values = [name for name, _ in top] or ["none"], [v for _, v in top] or [0.0]
    chart = bar_chart(names, values, [compact(v) for v in values], f"features of {method} by {weights.kind}", number=number)
    left = len(weights.values) - len(top)
    return Figure(method, chart, weights.kind + (f"; {left:,} features with less are not shown" if left else ""))


def _slice_figure(method: str, steps: Slice, number: int, measure: str) -> Figure:
    best, value, own = *best_step(steps), step_at(steps, 0.0)
    chart = step_chart(
        steps,
        f"{measure} of {method} along feature {steps.feature}",
        (f"multiple of feature {steps.feature} added", measure),
        number=number,
    )
    note = f"{steps.part} data: {plain(own)} at 0; best {plain(value)} at {signed(best)}, {signed(value - own)}"
    return Figure(f"{method} along feature {steps.feature}", chart, note)
