"""The command that follows a measure as single weights of a model move."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exactrank.cli.common import Force, Json, Reading, Seed, Source, Threads, command, load_model, read
from exactrank.cli.probe import Measured, probe, report

if TYPE_CHECKING:
    from exactrank.cli.terminal import Table
    from exactrank.probe.smoothness import Smoothness

Model = Annotated[Path, typer.Argument(help="A linear model or network of exactrank train, or JSON with weights by feature name.")]
Samples = Annotated[
    list[int] | None,
    typer.Option("--sample", min=1, help="Also follow it on so many of the queries; repeatable. \\[default: 100, 1000, 10000]"),
]


@command(probe)
def smoothness(
    model: Model,
    data: Source,
    reading: Reading,
    measure: Measured = None,
    percent: Annotated[float, typer.Option(help="Move each weight by up to so many percent of its value, up and down.")] = 100.0,
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
    from exactrank.probe.smoothness import SAMPLES
    from exactrank.probe.smoothness import smoothness as followed

    def find() -> "Smoothness":
        return followed(
            load_model(model), read(data, reading), measure=measure, percent=percent, weights=weights,
            samples=sample or SAMPLES, points=points, seed=seed, threads=threads,
        )  # fmt: skip

    report(find, _print, as_json, plot, force)


def _print(found: "Smoothness") -> None:
    from exactrank.cli.terminal import show

    show(_by_sample(found), _by_weight(found), found.verdict)


def _by_sample(found: "Smoothness") -> "Table":
    """The middle curve of each sample."""
    from statistics import median

    from exactrank.cli.terminal import Table

    table = Table(
        "queries", str(found.measure), "steps", "largest step", "maxima", *_on_grid(found), title="by number of queries (medians)"
    )
    for size in found.samples:
        curves = found.of(size)
        steps = [curve.steps for curve in curves if curve.steps is not None]
        table.row(
            f"{size:,}",
            f"{curves[0].value:.4f}",
            f"{median(each.count for each in steps):,.0f}",
            f"{median(each.largest for each in steps):.1e}",
            f"{median(each.all.maxima for each in steps):,.0f}",
            f"{median(curve.grid.variation for curve in curves):.1f}",
            f"{median(curve.grid.maxima for curve in curves):.0f}",
        )
    return table


def _by_weight(found: "Smoothness") -> "Table":
    """The curves of all queries."""
    from exactrank.cli.terminal import Table

    table = Table(
        "weight", "trained", "gain", "best at (%)", "span", "steps", *_on_grid(found), title=f"all {found.whole[0].queries:,} queries"
    )
    for curve in found.whole:
        table.row(
            curve.weight.name,
            f"{curve.weight.value:.3g}",
            f"{curve.gain:+.1e}" if curve.gain else "none",
            f"{(curve.low + curve.high) / 2:+.2f}" if curve.gain else "",
            f"{curve.span:.4f}",
            "sampled" if curve.steps is None else f"{curve.steps.count:,}",
            f"{curve.grid.variation:.1f}",
            f"{curve.grid.maxima}",
        )
    return table


def _on_grid(found: "Smoothness") -> tuple[str, str]:
    return f"variation ({found.spacing:.3g}%)", f"maxima ({found.spacing:.3g}%)"
