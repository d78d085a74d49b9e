"""The command that trades two measures off against each other."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exactrank.cli.common import (
    Force,
    Json,
    Reading,
    Seed,
    Systems,
    Threads,
    load_model,
    measure_option,
    optional_file,
    picture,
    print_json,
    read,
)
from exactrank.cli.fuse import Runs, judged_runs

if TYPE_CHECKING:
    from exactrank.fusion.front import ParetoFront

SHOWN = 20  #: points in the table


def pareto(
    data: Annotated[
        Path, typer.Argument(help="TREC qrels, with --run; or any data, with --model, or with --system and one feature per system.")
    ],
    reading: Reading,
    measure: Annotated[list[str], measure_option("The two measures, e.g. -m nDCG@10 -m revenue@10.")],
    run: Runs = None,
    system: Systems = None,
    model: Annotated[Path | None, typer.Option(help="A linear model, whose weights are varied.")] = None,
    normalize: Annotated[str, typer.Option(help="Normalization of the systems' scores, as in exactrank fuse.")] = "min-max",
    absent: Annotated[str, typer.Option(help="Value of a document that a system did not retrieve, as in exactrank fuse.")] = "worst",
    allow_negative: Annotated[bool, typer.Option("--allow-negative", help="Weights of systems may be negative.")] = False,
    points: Annotated[
        int, typer.Option(min=0, help="Number of levels of the second measure to search at, for more than two systems.")
    ] = 10,
    save: Annotated[Path | None, typer.Option(help="Write the points with their weights to this CSV file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the front: .png, .svg or .pdf.")] = None,
    force: Force = False,
    seed: Seed = 0,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Compute the Pareto front of two measures: the weights of systems or of a linear model that trade one for the other."""
    from exactrank.errors import DataError
    from exactrank.fusion.pareto import pareto as pareto_front, two_measures

    two_measures(measure)
    if sum(map(bool, (run, system, model))) != 1:
        raise DataError("give one of --run NAME=FILE for each system of the qrels in DATA, --system NAME for each feature, or --model FILE")
    with optional_file(save, force) as file, picture(plot, force) as draw:
        if run:
            judged = judged_runs(data, run)
        else:
            features = tuple(system) if system else reading.columns.features
            judged = read(data, replace(reading, columns=replace(reading.columns, features=features)))
        front = pareto_front(
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
    for index in np.unique(np.linspace(0, len(front) - 1, SHOWN).round().astype(int)).tolist():
        weights = sorted(zip(front.names, front.weights[index].tolist(), strict=True), key=lambda pair: -abs(pair[1]))
        text = ", ".join(f"{name} {weight:.4g}" for name, weight in weights[:4]) + (", ..." if len(weights) > 4 else "")
        table.row(*(f"{value:.4f}" for value in front.values[index]), text)
    selection = f", {SHOWN} of them shown" if len(front) > SHOWN else ""
    verdict = "all weights were swept" if front.complete else "exact at each point; other weights may be better"
    show(table, f"{len(front):,} points{selection}: {verdict}.")
