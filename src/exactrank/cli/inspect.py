"""The commands that examine a model or a lambda function."""

from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from exactrank.cli.common import Force, Json, Reading, Seed, Source, Threads, load_model, measure_option, picture, print_json, read

if TYPE_CHECKING:
    from exactrank.inspect.forces import Forces, Quantity
    from exactrank.inspect.importance import Importance
    from exactrank.inspect.optimality import Optimality
    from exactrank.inspect.smoothness import Smoothness
    from exactrank.learning.objectives.score_space import Objective

Measured = Annotated[str | None, measure_option("The measure to examine, e.g. nDCG@10. [default: the measure the model was trained on]")]
AnyModel = Annotated[Path, typer.Argument(help="A model of exactrank train, of any kind, or JSON with weights by feature name.")]
LinearModel = Annotated[Path, typer.Argument(help="A linear model of exactrank train, or JSON with weights by feature name.")]
WeightModel = Annotated[Path, typer.Argument(help="A linear model or network of exactrank train, or JSON with weights by feature name.")]
Samples = Annotated[
    list[int] | None,
    typer.Option("--sample", min=1, help="Also follow the measure on this number of queries; repeatable. [default: 100, 1000, 10000]"),
]


Lambdas = Annotated[
    Literal["logistic", "step", "spring", "finite-difference"],
    typer.Option(help="How a pair's force depends on its scores, or the measure's finite differences."),
]
Weighing = Annotated[str, measure_option("Measure whose changes weigh the pairs, e.g. nDCG@10; none: equal weights.")]
Margin = Annotated[
    float, typer.Option(help="Difference of scores up to which step and spring forces act; for finite differences, their step.")
]
Neighbors = Annotated[int | None, typer.Option(min=1, help="Maximum difference of ranks of two documents that push each other.")]
Truncation = Annotated[int | None, typer.Option(min=1, help="At least one document of a pair must be among this number of first ranks.")]

QUESTIONS: "Final[dict[Quantity, str]]" = {
    "imbalance": "do the forces of a query sum to zero?",
    "asymmetry": "is the Jacobian symmetric?",
    "circulation": "is no work left over around closed paths?",
    "concavity": "is the Hessian positive semidefinite?",
    "rise": "do forces never grow along a path?",
}


def optimality(
    model: LinearModel,
    data: Source,
    reading: Reading,
    measure: Measured = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the measure against the weights that gain the most: .png, .svg or .pdf.")] = None,
    force: Force = False,
    top: Annotated[int, typer.Option(min=1, help="Number of weights in the table.")] = 10,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Prove or refute that no change of a single weight of a linear model raises the measure."""
    from exactrank.inspect.optimality import optimality as examine

    with picture(plot, force) as draw:
        judged = read(data, reading)
        result = examine(judged, load_model(model, judged.n_features), measure=measure, threads=threads)
        if draw is not None:
            draw(result.figure())
    print_json(result.to_json()) if as_json else _print_optimality(result, top)


def _print_optimality(result: "Optimality", top: int) -> None:
    from exactrank.cli.terminal import PlainTable, show
    from exactrank.inspect.optimality import interval

    hidden = len(result.per_weight) - top
    caption = f"and {hidden:,} more weights (--top)" if hidden > 0 else None
    table = PlainTable("feature", "weight", "gain", "best within", "next interval", "free to move by", caption=caption)
    for weight in result.ranked()[:top]:
        table.row(
            weight.feature,
            f"{weight.weight:.4g}",
            f"{weight.gain:+.4f}" if weight.gain else "none",
            interval(weight.low, weight.high) if weight.gain > 0 else "",
            f"{weight.local_gain:+.4f}",
            f"{weight.flat_low - weight.weight:.2g} .. {weight.flat_high - weight.weight:+.2g}",
        )
    show(table, result.verdict)


def forces(
    data: Source,
    reading: Reading,
    lambdas: Lambdas = "logistic",
    measure: Weighing = "nDCG",
    margin: Margin = 1.0,
    neighbors: Neighbors = None,
    truncation: Truncation = None,
    model: Annotated[Path | None, typer.Option(help="Examine forces around the scores of this model. [default: random scores]")] = None,
    queries: Annotated[int, typer.Option(min=1, help="Number of queries to examine.")] = 20,
    seed: Seed = 0,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Decide whether a lambda function is the gradient of a cost, and whether that cost is convex."""
    from exactrank.errors import DataError
    from exactrank.inspect.forces import forces as examine
    from exactrank.learning.objectives.lambdas import FiniteDifference, Lambdas as PairLambdas
    from exactrank.measures.parse import parse_measure

    weighing = None if measure == "none" else parse_measure(measure)
    objective: Objective
    if lambdas != "finite-difference":
        objective = PairLambdas(weighing, lambdas, margin, neighbors, truncation)
    elif weighing is None or neighbors is not None or truncation is not None:
        raise DataError("--lambdas finite-difference has no pairs: it needs a --measure, and neither --neighbors nor --truncation")
    else:
        objective = FiniteDifference(weighing, margin)
    judged = read(data, reading)
    loaded = None if model is None else load_model(model, judged.n_features)
    scores = None if loaded is None else loaded.predict(judged, threads)
    result = examine(judged, objective, scores, queries=queries, seed=seed, threads=threads)
    print_json(result.to_json()) if as_json else _print_forces(result)


def _print_forces(result: "Forces") -> None:
    from exactrank.cli.terminal import PlainTable, show
    from exactrank.inspect.force_field import NIL

    table = PlainTable("question", "answer", "at worst", "error", "query")
    for quantity, question in QUESTIONS.items():
        worst, answer = result.worst(quantity), result.nil(quantity)
        estimate = getattr(worst, quantity)
        answer_text = {True: "yes", False: "no", None: "cannot be decided"}[answer]
        size = f"{estimate.value:.2g}" if estimate.value >= NIL else f"<{NIL:.0e}"  # digits below would be those of rounding
        error = f"{estimate.error:.2g}" if estimate.error >= NIL else ""
        table.row(question, answer_text, size, error, "" if answer else str(worst.query))
    method = "exactly" if result.exact else "numerically"
    basis = f"{len(result.per_query):,} queries, {result.loops:,} closed paths, differentiated {method}"
    left_out = ", ".join(f"{count:,} ({reason})" for reason, count in result.left_out.items())
    show(table, basis + (f"; left out: {left_out}" if left_out else ""), result.verdict)


def importance(
    model: AnyModel,
    data: Source,
    reading: Reading,
    measure: Measured = None,
    repeats: Annotated[int, typer.Option(min=1, help="Number of times that the values of each feature are exchanged.")] = 5,
    plot: Annotated[Path | None, typer.Option(help="Draw the largest drops: .png, .svg or .pdf.")] = None,
    force: Force = False,
    top: Annotated[int, typer.Option(min=1, help="Number of features in the table and in the picture.")] = 20,
    seed: Seed = 0,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Compute how far the measure falls when the values of a feature are exchanged at random within queries."""
    from exactrank.inspect.importance import importance as examine

    with picture(plot, force) as draw:
        judged = read(data, reading)
        result = examine(judged, load_model(model, judged.n_features), measure, repeats=repeats, seed=seed, threads=threads)
        if draw is not None:
            draw(result.figure(features=top))
    print_json(result.to_json()) if as_json else _print_importance(result, top)


def _print_importance(result: "Importance", top: int) -> None:
    from exactrank.cli.terminal import PlainTable, show

    of_trees = result.per_feature[0].gain is not None
    hidden = len(result.per_feature) - top
    caption = f"and {hidden:,} more features (--top)" if hidden > 0 else None
    table = PlainTable("feature", "drop", "error", *(("gain", "splits") if of_trees else ()), caption=caption)
    for feature in result.ranked()[:top]:
        drop = "none" if feature.idle else f"{feature.drop:.4f}"
        error = f"{feature.error:.4f}" if feature.error > 0 else ""
        table.row(feature.feature, drop, error, *([] if feature.gain is None else [f"{feature.gain:.4g}", f"{feature.splits:,}"]))
    show(table, result.verdict)


def smoothness(
    model: WeightModel,
    data: Source,
    reading: Reading,
    measure: Measured = None,
    percent: Annotated[float, typer.Option(help="Move each weight by up to this percentage of its value, up and down.")] = 100.0,
    weights: Annotated[int, typer.Option(min=1, help="Number of weights to follow, of a linear model or of a network's hidden layer.")] = 5,
    sample: Samples = None,
    points: Annotated[
        int, typer.Option(min=3, help="Points of the grid on which curves are compared and hidden weights are sampled.")
    ] = 101,
    plot: Annotated[Path | None, typer.Option(help="Draw the curves: .png, .svg or .pdf.")] = None,
    force: Force = False,
    seed: Seed = 0,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Follow the measure as single weights of a linear model or a network move, on few queries and on many."""
    from exactrank.inspect.smoothness import SAMPLES, smoothness as examine

    with picture(plot, force) as draw:
        judged = read(data, reading)
        result = examine(
            judged, load_model(model, judged.n_features), measure=measure, percent=percent, weights=weights,
            samples=sample or SAMPLES, points=points, seed=seed, threads=threads,
        )  # fmt: skip
        if draw is not None:
            draw(result.figure())
    print_json(result.to_json()) if as_json else _print_smoothness(result)


def _print_smoothness(result: "Smoothness") -> None:
    """Print the median curve of each sample, and the curves on all queries."""
    from exactrank.cli.terminal import PlainTable, show

    grid_columns = f"variation ({result.spacing:.3g}%)", f"maxima ({result.spacing:.3g}%)"
    sample_columns = "queries", str(result.measure), "steps", "largest step", "maxima"
    by_sample = PlainTable(*sample_columns, *grid_columns, title="by number of queries (medians)")
    for size in result.samples:
        curves = result.of(size)
        steps = [curve.steps for curve in curves if curve.steps is not None]
        by_sample.row(
            f"{size:,}",
            f"{curves[0].value:.4f}",
            f"{median(curve.count for curve in steps):,.0f}",
            f"{median(curve.largest for curve in steps):.1e}",
            f"{median(curve.all.maxima for curve in steps):,.0f}",
            f"{median(curve.grid.variation for curve in curves):.1f}",
            f"{median(curve.grid.maxima for curve in curves):.0f}",
        )
    weight_columns = "weight", "trained", "gain", "best at (%)", "span", "steps"
    by_weight = PlainTable(*weight_columns, *grid_columns, title=f"all {result.whole[0].queries:,} queries")
    for curve in result.whole:
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
    show(by_sample, by_weight, result.verdict)
