"""Run one experiment: ``python -m exactrank.workbench.reproduce NAME --out FOLDER [--full] [--data FOLDS] [--seed N] [--force]``."""

import time
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from exactrank.errors import ExactRankError, IncompatibleError
from exactrank.workbench.reproduce import EXPERIMENTS, find_experiment
from exactrank.workbench.reproduce.experiment import Experiment
from exactrank.workbench.reproduce.finding import check_targets


def main(
    name: Annotated[str, typer.Argument(help="One of " + ", ".join(EXPERIMENTS) + ".")],
    out: Annotated[Path, typer.Option(help="Folder for the report, its numbers and its figure.")],
    full: Annotated[bool, typer.Option("--full", help="On the scale of the paper.")] = False,
    data: Annotated[Path | None, typer.Option(help="Folder with Fold1, Fold2, ... to take in place of artificial data.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace outputs that exist.")] = False,
) -> None:
    """Run a published experiment again."""
    try:
        kind = find_experiment(name)
        check_targets(name, out, force)
        start = time.perf_counter()
        experiment = kind.full(seed) if full else kind(seed=seed)
        finding = _on(experiment, data).run(lambda line: typer.echo(f"{line} ...", err=True))
        paths = finding.write(out, force=force)
    except (ExactRankError, OSError) as error:
        typer.echo(f"exactrank: {error}", err=True)
        raise typer.Exit(2 if isinstance(error, ExactRankError) else 1) from None
    typer.echo(finding.to_markdown())
    typer.echo(f"{', '.join(map(str, paths))}: {time.perf_counter() - start:.0f} s")


def _on(experiment: Experiment, data: Path | None) -> Experiment:
    """The experiment on the folds in ``data``, if there are any."""
    if data is None:
        return experiment
    if "data" not in {field.name for field in fields(experiment)}:
        raise IncompatibleError(f"{experiment.name} is run on artificial data alone; leave --data out")
    given: dict[str, Any] = {"data": str(data)}
    return replace(experiment, **given)


if __name__ == "__main__":
    typer.run(main)
