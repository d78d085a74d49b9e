"""The commands that look closely at a model or a lambda function."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer

from exactrank.cli.common import Force, Json, Reading, Seed, Source, Threads, load_model, measure_option, print_json, read

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from exactrank.inspect.forces import Forces, Quantity
    from exactrank.inspect.importance import Importance
    from exactrank.inspect.optimality import Optimality
    from exactrank.inspect.smoothness import Smoothness
    from exactrank.learning.objectives.lambdas import Link
    from exactrank.learning.objectives.score_space import Objective

Measured = Annotated[str | None, measure_option("What to look at, e.g. nDCG@10. [default: what the model was trained on]")]
AnyModel = Annotated[Path, typer.Argument(help="A model of exactrank train, of any kind, or JSON with weights by feature name.")]
LinearModel = Annotated[Path, typer.Argument(help="A linear model of exactrank train, or JSON with weights by feature name.")]
WeightModel = Annotated[Path, typer.Argument(help="A linear model or network of exactrank train, or JSON with weights by feature name.")]
Samples = Annotated[
    list[int] | None,
    typer.Option("--sample", min=1, help="Also follow it on this number of queries; repeatable. [default: 100, 1000, 10000]"),
]


class LambdaName(StrEnum):
    """The lambda functions."""

    LOGISTIC = "logistic"
    STEP = "step"
    SPRING = "spring"
    FINITE_DIFFERENCE = "finite-difference"


Lambdas = Annotated[LambdaName, typer.Option(help="How a pair's force depends on its scores, or the measure's finite differences.")]
Weighing = Annotated[str, measure_option("Whose changes weigh the pairs, e.g. nDCG@10; none: all weigh the same.")]
Margin = Annotated[float, typer.Option(help="Step and spring forces act until scores are so far apart; the step of finite differences.")]
Neighbors = Annotated[int | None, typer.Option(min=1, help="Only documents at most this number of ranks apart push each other.")]
Truncation = Annotated[int | None, typer.Option(min=1, help="One of a pair must be among this number of first ranks.")]

QUESTIONS: "Final[dict[Quantity, str]]" = {
    "imbalance": "do the forces of a query sum to zero?",
    "asymmetry": "is the Jacobian symmetric?",
    "circulation": "is no work left over around closed paths?",
    "concavity": "is the Hessian positive semidefinite?",
    "rise": "do forces never grow along a path?",
}


def picture(plot: Path | None, force: bool) -> "AbstractContextManager[Callable[[Figure], None] | None]":
    """What draws to ``plot``, opened before the work; None where no picture is asked for."""
    from exactrank._support.pictures import picture_file

    return nullcontext() if plot is None else picture_file(plot, force=force)


def optimality(
    model: LinearModel,
    data: Source,
    reading: Reading,
    measure: Measured = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the measure against the weights that gain most: .png, .svg or .pdf.")] = None,
    force: Force = False,
    top: Annotated[int, typer.Option(min=1, help="How many weights the table shows.")] = 10,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Prove or refute that no change of a single weight of a linear model raises the measure."""
    from exactrank.inspect.optimality import optimality as examined

    with picture(plot, force) as draw:
        judged = read(data, reading)
        found = examined(judged, load_model(model, judged.n_features), measure=measure, threads=threads)
        if draw is not None:
            draw(found.figure())
    if as_json:
        print_json(found.to_json())
    else:
        _print_optimality(found, top)


def _print_optimality(found: "Optimality", top: int) -> None:
    from exactrank.cli.terminal import PlainTable, show
    from exactrank.inspect.optimality import interval

    hidden = len(found.per_weight) - top
    caption = f"and {hidden:,} more weights (--top)" if hidden > 0 else None
    table = PlainTable("feature", "weight", "gain", "best within", "next interval", "free to move by", caption=caption)
    for weight in found.ranked()[:top]:
        table.row(
            weight.feature,
            f"{weight.weight:.4g}",
            f"{weight.gain:+.4f}" if weight.gain else "none",
            interval(weight.low, weight.high) if weight.gain > 0 else "",
            f"{weight.local_gain:+.4f}",
            f"{weight.flat_low - weight.weight:.2g} .. {weight.flat_high - weight.weight:+.2g}",
        )
    show(table, found.verdict)


def forces(
    data: Source,
    reading: Reading,
    lambdas: Lambdas = LambdaName.LOGISTIC,
    measure: Weighing = "nDCG",
    margin: Margin = 1.0,
    neighbors: Neighbors = None,
    truncation: Truncation = None,
    model: Annotated[Path | None, typer.Option(help="Look around the scores of this model. [default: random scores]")] = None,
    queries: Annotated[int, typer.Option(min=1, help="Number of queries to look at.")] = 20,
    seed: Seed = 0,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Ask whether a lambda function is the slope of a cost, and whether that is convex."""
    from exactrank.errors import DataError
    from exactrank.inspect.forces import forces as examined
    from exactrank.learning.objectives.lambdas import FiniteDifference, Lambdas as PairLambdas
    from exactrank.measures.parse import parse_measure

    weighing = None if measure == "none" else parse_measure(measure)
    objective: Objective
    if lambdas is not LambdaName.FINITE_DIFFERENCE:
        objective = PairLambdas(weighing, cast("Link", lambdas.value), margin, neighbors, truncation)
    elif weighing is None or neighbors is not None or truncation is not None:
        raise DataError("--lambdas finite-difference has no pairs: it needs a --measure, and takes no --neighbors or --truncation")
    else:
        objective = FiniteDifference(weighing, margin)
    judged = read(data, reading)
    loaded = None if model is None else load_model(model, judged.n_features)
    scores = None if loaded is None else loaded.predict(judged, threads)
    found = examined(judged, objective, scores, queries=queries, seed=seed, threads=threads)
    if as_json:
        print_json(found.to_json())
    else:
        _print_forces(found)


def _print_forces(found: "Forces") -> None:
    from exactrank.cli.terminal import PlainTable, show
    from exactrank.inspect.force_field import NIL

    table = PlainTable("question", "answer", "at worst", "error", "query")
    for quantity, question in QUESTIONS.items():
        worst, answer = found.worst(quantity), found.nil(quantity)
        estimate = getattr(worst, quantity)
        said = {True: "yes", False: "no", None: "cannot be decided"}[answer]
        size = f"{estimate.value:.2g}" if estimate.value >= NIL else f"<{NIL:.0e}"  # digits below would be those of rounding
        error = f"{estimate.error:.2g}" if estimate.error >= NIL else ""
        table.row(question, said, size, error, "" if answer else str(worst.query))
    how = f"{len(found.per_query):,} queries, {found.loops:,} closed paths, differentiated {'exactly' if found.exact else 'numerically'}"
    left_out = ", ".join(f"{count:,} ({reason})" for reason, count in found.left_out.items())
    show(table, how + (f"; left out: {left_out}" if left_out else ""), found.verdict)


def importance(
    model: AnyModel,
    data: Source,
    reading: Reading,
    measure: Measured = None,
    repeats: Annotated[int, typer.Option(min=1, help="How many times the values of each feature are exchanged.")] = 5,
    plot: Annotated[Path | None, typer.Option(help="Draw the largest drops: .png, .svg or .pdf.")] = None,
    force: Force = False,
    top: Annotated[int, typer.Option(min=1, help="How many features the table and the picture show.")] = 20,
    seed: Seed = 0,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Find how far the measure falls when the values of a feature are exchanged at random within queries."""
    from exactrank.inspect.importance import importance as examined

    with picture(plot, force) as draw:
        judged = read(data, reading)
        found = examined(judged, load_model(model, judged.n_features), measure, repeats=repeats, seed=seed, threads=threads)
        if draw is not None:
            draw(found.figure(features=top))
    if as_json:
        print_json(found.to_json())
    else:
        _print_importance(found, top)


def _print_importance(found: "Importance", top: int) -> None:
    from exactrank.cli.terminal import PlainTable, show

    of_trees = found.per_feature[0].gain is not None
    hidden = len(found.per_feature) - top
    caption = f"and {hidden:,} more features (--top)" if hidden > 0 else None
    table = PlainTable("feature", "drop", "error", *(("gain", "splits") if of_trees else ()), caption=caption)
    for feature in found.ranked()[:top]:
        drop = "none" if feature.idle else f"{feature.drop:.4f}"
        error = f"{feature.error:.4f}" if feature.error > 0 else ""
        table.row(feature.feature, drop, error, *([] if feature.gain is None else [f"{feature.gain:.4g}", f"{feature.splits:,}"]))
    show(table, found.verdict)


def smoothness(
    model: WeightModel,
    data: Source,
    reading: Reading,
    measure: Measured = None,
    percent: Annotated[float, typer.Option(help="Move each weight by up to this percentage of its value, up and down.")] = 100.0,
    weights: Annotated[int, typer.Option(min=1, help="How many weights of a linear model, or hidden ones of a network.")] = 5,
    sample: Samples = None,
    points: Annotated[int, typer.Option(min=3, help="Points of the grid on which curves are compared and hidden weights sampled.")] = 101,
    plot: Annotated[Path | None, typer.Option(help="Draw the curves: .png, .svg or .pdf.")] = None,
    force: Force = False,
    seed: Seed = 0,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Follow the measure as single weights of a linear model or a network move, on few queries and on many."""
    from exactrank.inspect.smoothness import SAMPLES, smoothness as followed

    with picture(plot, force) as draw:
        judged = read(data, reading)
        found = followed(
            judged, load_model(model, judged.n_features), measure=measure, percent=percent, weights=weights,
            samples=sample or SAMPLES, points=points, seed=seed, threads=threads,
        )  # fmt: skip
        if draw is not None:
            draw(found.figure())
    if as_json:
        print_json(found.to_json())
    else:
        _print_smoothness(found)


def _print_smoothness(found: "Smoothness") -> None:
    """The middle curve of each sample, and the curves of all queries."""
    from exactrank.cli.terminal import PlainTable, show

    on_grid = f"variation ({found.spacing:.3g}%)", f"maxima ({found.spacing:.3g}%)"
    of_sample = "queries", str(found.measure), "steps", "largest step", "maxima"
    by_sample = PlainTable(*of_sample, *on_grid, title="by number of queries (medians)")
    for size in found.samples:
        curves = found.of(size)
        steps = [curve.steps for curve in curves if curve.steps is not None]
        by_sample.row(
            f"{size:,}",
            f"{curves[0].value:.4f}",
            f"{median(each.count for each in steps):,.0f}",
            f"{median(each.largest for each in steps):.1e}",
            f"{median(each.all.maxima for each in steps):,.0f}",
            f"{median(curve.grid.variation for curve in curves):.1f}",
            f"{median(curve.grid.maxima for curve in curves):.0f}",
        )
    of_weight = "weight", "trained", "gain", "best at (%)", "span", "steps"
    by_weight = PlainTable(*of_weight, *on_grid, title=f"all {found.whole[0].queries:,} queries")
    for curve in found.whole:
        by_weight.row(
            curve.weight.name,
            f"{curve.weight.value:.3g}",
            f"{curve.gain:+.1e}" if curve.gain else "none",
            f"{(curve.low + curve.high) / 2:+.2f}" if curve.gain else "",
            f"{curve.span:.4f}",
            "sampled" if curve.steps is None else f"{curve.steps.count:,}",
            f"{curve.grid.variation:.1f}",
            f"{curve.grid.maxima}",
        )
    show(by_sample, by_weight, found.verdict)
