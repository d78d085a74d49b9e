"""The commands that score documents by a model, and that evaluate scores."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from exactrank.cli.common import (
    Force,
    Json,
    Reading,
    Seed,
    Source,
    StrictReading,
    Threads,
    load_model,
    number,
    optional_file,
    print_json,
    read,
    report_written,
    write,
)

if TYPE_CHECKING:
    from exactrank.measures.evaluate import Evaluation


def predict(
    model: Annotated[Path, typer.Argument(help="A model of exactrank train, or JSON with weights by feature name.")],
    data: Source,
    reading: Reading,
    out: Annotated[Path | None, typer.Option(help="Where the scores go; - is standard output. \\[default: stdout]")] = None,
    force: Force = False,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Score documents by a model: one score a line, in the order of DATA."""
    with optional_file(out, force) as file:
        scores = load_model(model).predict(read(data, reading), threads).tolist()
        if file is not None:
            file.writelines(f"{score!r}\n".encode() for score in scores)
    if out is not None:
        report_written(out, len(scores), as_json)
    elif as_json:
        print_json({"scores": scores})
    else:
        write("\n".join(map(repr, scores)))


def evaluate(
    data: Source,
    reading: StrictReading,
    scores: Annotated[Path | None, typer.Argument(help="One score a line in the order of DATA, or a TREC run.")] = None,
    measure: Annotated[
        list[str] | None, typer.Option("--measure", "-m", help="e.g. nDCG@10, 'AP(rel=2)'; repeatable. \\[default: nDCG@10, AP, RR]")
    ] = None,
    feature: Annotated[str | None, typer.Option(help="Score by this feature of DATA instead of a file.")] = None,
    preset: Annotated[str | None, typer.Option(help="Conventions of letor, trec_eval, lightgbm, xgboost or sklearn.")] = None,
    complete: Annotated[
        bool | None, typer.Option("--complete/--retrieved-only", help="Count queries with nothing retrieved, or leave them out.")
    ] = None,
    per_query: Annotated[bool, typer.Option("--per-query", "-q", help="Also show each query.")] = False,
    seed: Seed = 0,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Evaluate scores by any measures, with 95% intervals; every number is printed with its exact definition."""
    import numpy as np

    from exactrank.data.scores import read_scores
    from exactrank.errors import DataError
    from exactrank.measures.evaluate import evaluate as evaluated
    from exactrank.measures.parse import default_measures, parse_measure

    asked = measure or default_measures(preset)
    for name in asked:
        parse_measure(name, preset)
    if (scores is None) == (feature is None):
        raise DataError("give a SCORES file or --feature NAME" + (", not both" if scores else " to say what ranks the documents"))
    judged = read(data, reading)
    if scores is not None:
        judged, values = read_scores(scores, judged)
    else:
        column = judged.feature(str(feature))
        values = np.where(np.isnan(column), -np.inf, column)  # missing values count as not retrieved
    result = evaluated(asked, judged, values, preset=preset, complete=complete, seed=seed, threads=threads)
    if as_json:
        measures: dict[str, Any] = {}
        for name in result:
            each, (low, high) = result[name].values, result.intervals[name]
            skipped = int((each != each).sum())
            measures[name] = {
                "definition": repr(result.measures[name]),
                "mean": number(result.means[name]),
                "interval": [number(low), number(high)],
                "queries": len(each) - skipped,
                "skipped": skipped,
            }
            if per_query:
                measures[name]["per_query"] = {str(q): number(v) for q, v in zip(result.qid.tolist(), each, strict=True)}
        print_json({"measures": measures})
    else:
        _print_evaluation(result, per_query)


def _print_evaluation(result: "Evaluation", per_query: bool) -> None:
    from exactrank.cli.terminal import Table, show

    if per_query:
        rows = Table("query", *result)
        for q, values in zip(result.qid.tolist(), result.per_query.T, strict=True):
            rows.row(str(q), *("skipped" if v != v else f"{v:.4f}" for v in values))
        show(rows)
    table = Table("measure", "mean", "95% interval", "queries", "definition")
    for name, measure in result.measures.items():
        low, high = result.intervals[name]
        counted = int((result[name].values == result[name].values).sum())
        table.row(name, f"{result.means[name]:.4f}", f"{low:.4f} .. {high:.4f}", f"{counted:,}", repr(measure))
    show(table)
