"""``exactrank reproduce``: list the published experiments, or run one again and write its finding."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exactrank._support.text import printable
from exactrank.cli.common import Force, Json, Seed, Threads, print_json, print_line, print_note, print_text

if TYPE_CHECKING:
    from exactrank.reproduce.experiment import Experiment, Tell

Name = Annotated[str | None, typer.Argument(help="The experiment; without one, all are listed.")]
Out = Annotated[Path | None, typer.Option(help="Folder for the report, its numbers and its figure.")]
Full = Annotated[bool, typer.Option("--full", help="Run it on the scale of the paper.")]
Data = Annotated[list[Path] | None, typer.Option(help="Folder with Fold1, Fold2, ... to use in place of artificial data; repeatable.")]


def reproduce(
    name: Name = None,
    out: Out = None,
    full: Full = False,
    data: Data = None,
    seed: Seed = 0,
    threads: Threads = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Run a published experiment again, and check whether its finding holds."""
    from exactrank.errors import DataError, IncompatibleError
    from exactrank.reproduce import find_experiment
    from exactrank.reproduce.experiment import OnFolds
    from exactrank.reproduce.finding import finding_files

    if name is None:
        _list(as_json)
        return
    kind = find_experiment(name)
    if out is None:
        raise DataError(f"give --out FOLDER for the report of {name}, its numbers and its figure")
    experiment = kind.full(seed) if full else kind(seed=seed)
    experiment = experiment if threads is None else replace(experiment, threads=threads)
    if data:
        if not isinstance(experiment, OnFolds):
            raise IncompatibleError(f"{experiment.name} runs on artificial data only; leave --data out")
        experiment = replace(experiment, data=tuple(map(str, data)))
    start = time.perf_counter()
    try:
        with finding_files(name, out, force=force) as keep:
            with _progress(experiment, quiet=as_json) as tell:
                finding = experiment.run(tell)
            paths = keep(finding)
    except KeyboardInterrupt:
        print_note("interrupted; nothing was written")
        raise typer.Exit(1) from None
    seconds = time.perf_counter() - start
    if as_json:
        print_json(finding.to_json() | {"paths": [str(path) for path in paths], "seconds": round(seconds, 3)})
        return
    print_text(printable(finding.to_markdown(), lines=True))
    print_line(f"The published finding {finding.verdict}.")
    print_line(f"{', '.join(map(str, paths))}: {seconds:.0f} s")


def _list(as_json: bool) -> None:
    from exactrank.reproduce import EXPERIMENTS, find_experiment

    kinds = [find_experiment(name) for name in EXPERIMENTS]
    if as_json:
        print_json([{part: getattr(kind, part) for part in ("name", "paper", "where", "published")} for kind in kinds])
        return
    from exactrank.cli.terminal import PlainTable, show

    table = PlainTable("experiment", "where", "published")
    for kind in kinds:
        table.row(kind.name, f"{kind.paper}, {', '.join(kind.where)}", kind.published.partition(". ")[0].removesuffix("."))
    show(table)


@contextmanager
def _progress(experiment: "Experiment", *, quiet: bool) -> Iterator["Tell"]:
    """Draw a line with the next piece of work; these differ too much in length for a share of them to mean anything."""
    from exactrank._support.progress_bars import ProgressLine, progress_bar

    with progress_bar(experiment.name, quiet=quiet) as draw:
        yield lambda line: draw(ProgressLine(None, line))
