"""The command that evaluates scores."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from exactrank.cli.common import Json, Seed, Source, StrictReading, Threads, app, command, number, print_json, read

if TYPE_CHECKING:
    from exactrank.measures.evaluate import Evaluation


@command(app)
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
    from exactrank.data.scores import feature_scores, read_scores
    from exactrank.errors import DataError
    from exactrank.measures.evaluate import evaluate as evaluated
    from exactrank.measures.parse import parse_measure
    from exactrank.measures.presets import default_measures

    asked = measure or default_measures(preset)
    for name in asked:
        parse_measure(name, preset)
    if (scores is None) == (feature is None):
        raise DataError("give a SCORES file or --feature NAME" + (", not both" if scores else " to say what ranks the documents"))
    judged = read(data, reading)
    if scores is not None:
        judged, values = read_scores(scores, judged)
    else:
        values = feature_scores(judged, str(feature))
    result = evaluated(asked, judged, values, preset=preset, complete=complete, seed=seed, threads=threads)
    if as_json:
        print_json(_evaluation_json(result, per_query))
    else:
        _print_evaluation(result, per_query)


def _evaluation_json(result: "Evaluation", per_query: bool) -> dict[str, Any]:
    def one(name: str) -> dict[str, Any]:
        values, (low, high) = result[name].values, result.intervals[name]
        skipped = int((values != values).sum())
        shown = {
            "definition": repr(result.measures[name]),
            "mean": number(result.means[name]),
            "interval": [number(low), number(high)],
            "queries": len(values) - skipped,
            "skipped": skipped,
        }
        return shown | ({"per_query": {str(q): number(v) for q, v in zip(result.qid.tolist(), values, strict=True)}} if per_query else {})

    return {"measures": {name: one(name) for name in result}}


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
