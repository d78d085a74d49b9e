"""The command that trades two measures off against each other."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exactrank.cli.common import Force, Json, Reading, Seed, Threads, load_model, measure_option, optional_file, print_json, read
from exactrank.cli.fuse import Runs, judged_runs
from exactrank.cli.inspect import picture

if TYPE_CHECKING:
    from exactrank.fusion.front import ParetoFront

SHOWN = 20  #: points in the table


def pareto(
    data: Annotated[Path, typer.Argument(help="TREC qrels, with --run; any data with a feature a system, with --system, or with --model.")],
    reading: Reading,
    measure: Annotated[list[str], measure_option("The two measures, e.g. -m nDCG@10 -m revenue@10.")],
    run: Runs = None,
    system: Annotated[list[str] | None, typer.Option(help="Feature or column with a system's scores; repeatable.")] = None,
    model: Annotated[Path | None, typer.Option(help="A linear model, whose weights to trade off.")] = None,
    normalize: Annotated[str, typer.Option(help="How the scores of systems are made comparable, as in exactrank fuse.")] = "min-max",
    absent: Annotated[
        str, typer.Option(help="What a document gets from a system that did not retrieve it, as in exactrank fuse.")
    ] = "worst",
    allow_negative: Annotated[bool, typer.Option("--allow-negative", help="Weights of systems may be negative.")] = False,
    points: Annotated[int, typer.Option(min=0, help="Levels of the second measure to search at, beyond two systems.")] = 10,
    save: Annotated[Path | None, typer.Option(help="Write the points with their weights to this CSV file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the front: .png, .svg or .pdf.")] = None,
    force: Force = False,
    seed: Seed = 0,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Trade two measures off: the Pareto front of the weights of systems or of a linear model."""
    from exactrank.errors import DataError
    from exactrank.fusion.pareto import pareto as traded, two_measures

    two_measures(measure)
    if sum(bool(given) for given in (run, system, model)) != 1:
        raise DataError("give one of --run NAME=FILE for each system of the qrels in DATA, --system NAME for each feature, or --model FILE")
    with optional_file(save, force) as file, picture(plot, force) as draw:
        if run:
            judged = judged_runs(data, run)
        else:
            features = tuple(system) if system else reading.columns.features
            judged = read(data, replace(reading, columns=replace(reading.columns, features=features)))
        front = traded(
            judged, list(judged.feature_names) if run else system or load_model(Path(str(model)), judged.n_features), measure,
            normalize=normalize, absent=absent, nonnegative=not allow_negative, points=points, seed=seed, threads=threads,
        )  # fmt: skip
        if draw is not None:
            draw(front.figure())
        if file is not None:
            file.write(front.to_bytes())
    if as_json:
        print_json(front.to_json())
        return
    _print(front)


def _print(front: "ParetoFront") -> None:
    import numpy as np

    from exactrank.cli.terminal import PlainTable, show

    table = PlainTable(*front.measures, "weights", title="front")
    for number in np.unique(np.linspace(0, len(front) - 1, SHOWN).round().astype(int)).tolist():
        weights = sorted(zip(front.names, front.weights[number].tolist(), strict=True), key=lambda pair: -abs(pair[1]))
        named = ", ".join(f"{name} {weight:.4g}" for name, weight in weights[:4]) + (", ..." if len(weights) > 4 else "")
        table.row(*(f"{value:.4f}" for value in front.values[number]), named)
    some = f", {SHOWN} of them here" if len(front) > SHOWN else ""
    known = "all weights were swept" if front.complete else "exact at each point; other weights may be better"
    show(table, f"{len(front):,} points{some}: {known}.")
