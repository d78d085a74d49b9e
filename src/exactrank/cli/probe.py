"""The commands that look closely at a model or a lambda function; each of the others is in a file of its own."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exactrank.cli.common import Force, Json, Reading, Source, Threads, app, command, load_model, print_json, read

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from exactrank.probe.optimality import Optimality

Measured = Annotated[
    str | None, typer.Option("--measure", "-m", help="What to look at, e.g. nDCG@10. \\[default: what the model was trained on]")
]

probe = typer.Typer(no_args_is_help=True)
app.add_typer(probe, name="probe", help="Look closely at a model or a lambda function.")


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

    with picture(plot, force) as draw:
        found = examined(load_model(model), read(data, reading), measure=measure, threads=threads)
        if draw is not None:
            draw(found.figure())
    if as_json:
        print_json(found.to_json())
    else:
        _print(found, top)


def picture(plot: Path | None, force: bool) -> "AbstractContextManager[Callable[[Figure], None] | None]":
    """What draws to ``plot``, opened before the work; None where no picture is asked for."""
    from exactrank.pictures import picture_file

    return nullcontext() if plot is None else picture_file(plot, force=force)


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
