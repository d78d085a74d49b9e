"""``exactrank tune METHOD``: find the settings that do best on validation queries, and train the model with them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exactrank.cli.cluster import Dask, cluster_at
from exactrank.cli.common import Force, Json, Reading, Seed, Source, json_number, measure_option, print_json, print_note, print_text, read
from exactrank.cli.compare import AllThreads, MLflow, Seconds, Trials, Workers
from exactrank.cli.names import complete_ranker

if TYPE_CHECKING:
    from exactrank.compare.tune import Tuned

SHOWN = 10  #: trials in the table


def tune(
    method: Annotated[
        str, typer.Argument(autocompletion=complete_ranker, help="A ranker, with settings to keep if you like: 'lambdamart(trees=200)'.")
    ],
    data: Source,
    out: Annotated[Path, typer.Option(help="Where the model goes; - is standard output.")],
    reading: Reading,
    valid: Annotated[Path | None, typer.Option(help="Validation data. [default: cross-validation by query]")] = None,
    measure: Annotated[str, measure_option("The measure to train and tune on.")] = "nDCG@10",
    folds: Annotated[int, typer.Option(min=2, help="Parts into which the queries are divided if there is no validation data.")] = 5,
    trials: Trials = 20,
    seconds: Seconds = None,
    force: Force = False,
    workers: Workers = None,
    threads: AllThreads = None,
    dask: Dask = None,
    seed: Seed = 0,
    mlflow: MLflow = None,
    as_json: Json = False,
) -> None:
    """Try settings of a method on validation queries, and write the model with the best ones."""
    from exactrank._support.files import is_stream, whole_file
    from exactrank.compare.contenders import find_contender
    from exactrank.compare.schedule import checked_budget
    from exactrank.compare.tune import tune as tune_method
    from exactrank.errors import IncompatibleError
    from exactrank.measures.parse import parse_measure

    parse_measure(measure)
    find_contender(method)
    checked_budget(trials, seconds)
    if mlflow is not None:
        from exactrank.compare.tracking import check_tracking, log_tuning

        if is_stream(out):
            raise IncompatibleError(f"--mlflow logs the model's file, but --out {out} is standard output; give a path")
        check_tracking(mlflow)
    if dask is not None and is_stream(out):
        raise IncompatibleError(f"--dask keeps the data of trials beside the model, but --out {out} is standard output; give a path")
    with cluster_at(dask) as backend, whole_file(out, force=force) as file:
        train, held_out = read(data, reading), None if valid is None else read(valid, reading)
        tuned = tune_method(
            train, method, measure, valid=held_out, folds=folds, trials=trials, seconds=seconds, seed=seed, workers=workers,
            threads=threads, backend=backend,
            scratch=None if backend is None else out.resolve().parent, progress=not as_json,
        )  # fmt: skip
        file.write(tuned.ranker.model_.to_bytes())
    _show(tuned, out, as_json)
    if mlflow is not None:
        log_tuning(tuned, out, mlflow)
    if not tuned.complete:
        print_note(f"interrupted; {out} has the best settings of the {len(tuned.trials)} trials that were finished")
        raise typer.Exit(1)


def _show(tuned: "Tuned", out: Path, as_json: bool) -> None:
    from exactrank._support.tables import Cell, Table
    from exactrank.cli.terminal import width_and_color

    if as_json:
        trials = [{"settings": t.settings, "value": json_number(t.valid), "seconds": t.seconds, "failed": t.failed} for t in tuned.trials]
        value = json_number(tuned.best.valid)
        print_json({"path": str(out), "measure": tuned.measure, "settings": tuned.settings, "value": value, "trials": trials})
        return
    best = sorted(tuned.trials, key=lambda trial: -1.0 if trial.valid is None else trial.valid, reverse=True)[:SHOWN]
    rows: list[list[Cell]] = []
    for t in best:
        settings = [f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}" for name, value in t.settings.items()]
        rows.append([t.failed or float(t.valid or 0.0), f"{t.seconds:.1f}", ", ".join(settings) or "the defaults"])
    note = f"The best of {len(tuned.trials)} trials; {out} has the settings of the first."
    table = Table(f"{tuned.ranker.name}, {tuned.measure} on validation queries", ("validation", "s", "settings"), rows, note)
    print_text(table.text(*width_and_color()))
