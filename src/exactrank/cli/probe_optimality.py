"""The command that proves a linear model optimal, weight by weight, or says how it is not."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exactrank.cli.common import Force, Json, Reading, Source, Threads, command, load_model, read
from exactrank.cli.probe import Measured, probe, report

if TYPE_CHECKING:
    from exactrank.probe.optimality import Optimality


@command(probe)
def optimality(
    model: Annotated[Path, typer.Argument(help="A linear model of exactrank train, or JSON with weights by feature name.")],
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
    from exactrank.probe.optimality import optimality as examined

    def find() -> "Optimality":
        return examined(load_model(model), read(data, reading), measure=measure, threads=threads)

    report(find, lambda found: _print(found, top), as_json, plot, force)


def _print(found: "Optimality", top: int) -> None:
    from exactrank.cli.terminal import Table, show
    from exactrank.probe.optimality import interval

    hidden = len(found.per_weight) - top
    caption = f"and {hidden:,} more weights (--top)" if hidden > 0 else None
    table = Table("feature", "weight", "gain", "best within", "next interval", "free to move by", caption=caption)
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
