"""The command that says how much a model's ranking rests on each feature."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exactrank.cli.common import Force, Json, Reading, Seed, Source, Threads, command, load_model, read
from exactrank.cli.probe import Measured, probe, report

if TYPE_CHECKING:
    from exactrank.probe.importance import FeatureImportance, Importance

Model = Annotated[Path, typer.Argument(help="A model of exactrank train, of any kind, or JSON with weights by feature name.")]


@command(probe)
def importance(
    model: Model,
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
    from exactrank.probe.importance import importance as examined

    def find() -> "Importance":
        return examined(load_model(model), read(data, reading), measure, repeats=repeats, seed=seed, threads=threads)

    report(find, lambda found: _print(found, top), as_json, plot, force, features=top)


def _print(found: "Importance", top: int) -> None:
    from exactrank.cli.terminal import Table, show

    of_trees = found.per_feature[0].gain is not None
    hidden = len(found.per_feature) - top
    caption = f"and {hidden:,} more features (--top)" if hidden > 0 else None
    table = Table("feature", "drop", "error", *(("gain", "splits") if of_trees else ()), caption=caption)
    for feature in found.ranked()[:top]:
        table.row(feature.feature, *_numbers(feature))
    show(table, found.verdict)


def _numbers(feature: "FeatureImportance") -> list[str]:
    drop = "none" if feature.idle else f"{feature.drop:.4f}"
    error = f"{feature.error:.4f}" if feature.error > 0 else ""
    return [drop, error, *([] if feature.gain is None else [f"{feature.gain:.4g}", f"{feature.splits:,}"])]
