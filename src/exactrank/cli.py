"""The command line: strings in, library calls, tables or JSON out.

Exit codes: 0 done, 1 the job failed, 2 bad usage or input. Errors go to stderr without a traceback (``--debug`` shows it).
Library modules are imported inside the commands, so that ``--help`` answers at once.
"""

import functools
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from exactrank.data.describe import Summary
    from exactrank.data.format import ReadOptions
    from exactrank.data.ranking_data import RankingData
    from exactrank.measures.evaluate import Evaluation

app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help="Learning to rank, trained on the measure you report."
)

Source = Annotated[Path, typer.Argument(help="LETOR text (also .gz), .xr cache, .parquet, .csv or TREC qrels.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Native threads; results do not depend on it. \\[default: all cores]")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")]
Missing = Annotated[bool, typer.Option("--missing", help="Text: keep nan, inf and NULL as missing values.")]
QueryColumn = Annotated[str, typer.Option(help="Tables: the column of query ids.")]
DocColumn = Annotated[str, typer.Option(help="Tables: the column of document ids.")]
RelevanceColumn = Annotated[str, typer.Option(help="Tables: the column of grades.")]


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Registers a command and turns its errors into a line on stderr and an exit code."""

    @functools.wraps(function)
    def guarded(*, debug: bool, **arguments: Any) -> None:
        from exactrank.errors import ExactRankError

        try:
            function(**arguments)
        except (ExactRankError, OSError, MemoryError) as error:
            if debug:
                raise
            if isinstance(error, BrokenPipeError):  # the reader of our output left; nothing more to say
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                raise typer.Exit(1) from None
            typer.echo(f"exactrank: {error or type(error).__name__}", err=True)
            raise typer.Exit(2 if isinstance(error, ExactRankError) else 1) from None

    option = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
    signature = inspect.signature(function)
    flag = inspect.Parameter("debug", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=option)
    guarded.__signature__ = signature.replace(parameters=[*signature.parameters.values(), flag])  # type: ignore[attr-defined]
    app.command()(guarded)
    return guarded


@command
def info(
    data: Annotated[Path, typer.Argument(help="Any data file, or a folder with Fold1, Fold2, ...")],
    missing: Missing = False,
    query_column: QueryColumn = "query_id",
    doc_column: DocColumn = "doc_id",
    relevance_column: RelevanceColumn = "relevance",
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Show what ranking data holds: queries, documents, features, grades, list lengths, what is odd in it."""
    from exactrank.data.describe import describe
    from exactrank.data.folds import read_folds

    if data.is_dir():
        folds = read_folds(data, missing=missing, threads=threads)
        parts = {f"{fold.name}/{part}": getattr(fold, part) for fold in folds for part in ("train", "valid", "test")}
    else:
        parts = {str(data): _read(data, _options(missing, query_column, doc_column, relevance_column, threads))}
    summaries = {name: describe(part, threads) for name, part in parts.items()}
    if as_json:
        shown = {name: _summary_json(summary) for name, summary in summaries.items()}
        _print_json(shown if data.is_dir() else next(iter(shown.values())))
    else:
        _print_summaries(summaries)


@command
def convert(
    source: Source,
    target: Annotated[Path, typer.Argument(help="Output; its suffix (.xr, .txt, .txt.gz, .parquet, .csv) names the format.")],
    run: Annotated[list[Path] | None, typer.Option(help="TREC run that becomes a feature of the qrels in SOURCE; repeatable.")] = None,
    force: Force = False,
    missing: Missing = False,
    query_column: QueryColumn = "query_id",
    doc_column: DocColumn = "doc_id",
    relevance_column: RelevanceColumn = "relevance",
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Convert ranking data between formats, block by block: data larger than memory goes through."""
    from exactrank.data import formats, trec
    from exactrank.data.stream import stream_of
    from exactrank.files import refuse_existing

    if not force:
        refuse_existing(target)
    options = _options(missing, query_column, doc_column, relevance_column, threads)
    if run:
        stream = stream_of(trec.from_trec(trec.read_qrels(source), [trec.read_run(path) for path in run]))
    else:
        stream = formats.stream(source, options)
    with _progress(f"Converting {source.name}", None, quiet=as_json) as advance:
        rows = _Counter(advance)
        formats.write_stream(stream, target, force=force, progress=rows)
    _report_written(target, rows.total, as_json)


@command
def generate(
    target: Annotated[Path, typer.Argument(help="Output; its suffix (.xr, .txt, .txt.gz, .parquet, .csv) names the format.")],
    queries: Annotated[int, typer.Option(min=1, help="How many queries.")] = 1000,
    first: Annotated[int, typer.Option(min=1, help="Id of the first query; disjoint ranges make training and test sets.")] = 1,
    documents: Annotated[int, typer.Option(min=1, help="Documents a query.")] = 50,
    features: Annotated[int, typer.Option(min=1, help="Dimension of the documents.")] = 50,
    grades: Annotated[int, typer.Option(min=2, help="Number of grades.")] = 5,
    noise: Annotated[float, typer.Option(help="Noise, in standard deviations of the target.")] = 0.0,
    seed: Seed = 0,
    force: Force = False,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Make artificial data: random cubic polynomials of Gaussian vectors (Burges et al. 2006, section 6.3.1)."""
    from exactrank.data import formats
    from exactrank.workbench.synthetic import CubicPolynomial

    source = CubicPolynomial(features, documents, grades, noise, seed, threads)
    with _progress("Generating", queries * documents, quiet=as_json) as advance:
        rows = _Counter(advance)
        formats.write_stream(source.stream(queries, first), target, force=force, progress=rows)
    _report_written(target, rows.total, as_json)


@command
def evaluate(
    data: Source,
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
    missing: Missing = False,
    query_column: QueryColumn = "query_id",
    doc_column: DocColumn = "doc_id",
    relevance_column: RelevanceColumn = "relevance",
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
    judged = _read(data, _options(missing, query_column, doc_column, relevance_column, threads))
    if scores is not None:
        judged, values = read_scores(scores, judged)
    else:
        values = feature_scores(judged, str(feature))
    result = evaluated(asked, judged, values, preset=preset, complete=complete, seed=seed, threads=threads)
    if as_json:
        _print_json(_evaluation_json(result, per_query))
    else:
        _print_evaluation(result, per_query)


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        from exactrank import __version__

        typer.echo(f"exactrank {__version__}")
        raise typer.Exit


def main() -> None:
    """The entry point of the ``exactrank`` command."""
    app()


class _Counter:
    """Counts rows and passes them on to a progress bar."""

    def __init__(self, advance: Callable[[int], None]) -> None:
        self.total = 0
        self._advance = advance

    def __call__(self, rows: int) -> None:
        self.total += rows
        self._advance(rows)


def _options(missing: bool, query: str, doc: str, relevance: str, threads: int | None) -> "ReadOptions":
    from exactrank.data.format import Columns, ReadOptions

    return ReadOptions(missing=missing, columns=Columns(query, doc, relevance), verify=True, threads=threads)


def _read(path: Path, options: "ReadOptions") -> "RankingData":
    from exactrank.data.formats import read

    return read(path, missing=options.missing, columns=options.columns, verify=options.verify, threads=options.threads)


@contextmanager
def _progress(what: str, total: int | None, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A bar on stderr where someone watches it."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TextColumn("documents"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda rows: bar.advance(task, rows)


def _report_written(target: Path, rows: int, as_json: bool) -> None:
    size = target.stat().st_size
    if as_json:
        _print_json({"path": str(target), "documents": rows, "bytes": size})
    else:
        typer.echo(f"{target}: {rows:,} documents, {size:,} bytes")


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, allow_nan=False))


def _summary_json(summary: "Summary") -> dict[str, Any]:
    from dataclasses import asdict

    shown = asdict(summary)
    shown["grades"] = {f"{grade:g}": count for grade, count in summary.grades.items()}
    shown["list_lengths"] = dict(zip(("min", "median", "max"), summary.list_lengths, strict=True))
    return shown


def _print_summaries(summaries: dict[str, "Summary"]) -> None:
    from rich.console import Console
    from rich.table import Table

    if len(summaries) == 1:
        table = Table(title=next(iter(summaries)), show_header=False)
        table.add_column()
        table.add_column(justify="right")
        for label, value in _summary_rows(next(iter(summaries.values()))).items():
            table.add_row(label, value)
    else:
        table = Table("", "queries", "documents", "features", "a query", "single grade", "none relevant", "missing")
        for name, summary in summaries.items():
            least, median, most = summary.list_lengths
            counts = (summary.queries, summary.documents, summary.features)
            odd = (summary.single_grade_queries, summary.irrelevant_queries, sum(summary.missing_values.values()))
            table.add_row(name, *(f"{n:,}" for n in counts), f"{least:,} / {median:g} / {most:,}", *(f"{n:,}" for n in odd))
    Console().print(table)


def _summary_rows(summary: "Summary") -> dict[str, str]:
    grades = [f"{grade:g}: {count:,} ({count / summary.documents:.1%})" for grade, count in summary.grades.items()]
    least, median, most = summary.list_lengths
    missing = [f"{name}: {count:,}" for name, count in summary.missing_values.items()]
    return {
        "queries": f"{summary.queries:,}",
        "documents": f"{summary.documents:,}",
        "features": f"{summary.features:,}",
        "documents a query (min / median / max)": f"{least:,} / {median:g} / {most:,}",
        "grades": "\n".join(grades if len(grades) <= 12 else [*grades[:5], f"... {len(grades) - 10} more ...", *grades[-5:]]),
        "queries of a single grade": f"{summary.single_grade_queries:,}",
        "queries without a relevant document": f"{summary.irrelevant_queries:,}",
        "constant features": _listed(summary.constant_features),
        "missing values": f"{sum(summary.missing_values.values()):,}" + (f" ({_listed(missing)})" if missing else ""),
        "queries interleaved in the input": "yes" if summary.interleaved else "no",
        "weights": ", ".join(summary.weights) or "none",
        "document ids": "yes" if summary.has_docid else "no",
    }


def _listed(names: tuple[str, ...] | list[str], most: int = 8) -> str:
    if not names:
        return "none"
    return ", ".join(names[:most]) + (f", ... ({len(names):,} in all)" if len(names) > most else "")


def _number(value: float) -> float | None:
    """A number as JSON has it: NaN is null."""
    return None if value != value else float(value)


def _evaluation_json(result: "Evaluation", per_query: bool) -> dict[str, Any]:
    def one(name: str) -> dict[str, Any]:
        values, (low, high) = result[name].values, result.intervals[name]
        skipped = int((values != values).sum())
        shown = {
            "definition": repr(result.measures[name]),
            "mean": _number(result.means[name]),
            "interval": [_number(low), _number(high)],
            "queries": len(values) - skipped,
            "skipped": skipped,
        }
        return shown | ({"per_query": {str(q): _number(v) for q, v in zip(result.qid.tolist(), values, strict=True)}} if per_query else {})

    return {"measures": {name: one(name) for name in result}}


def _print_evaluation(result: "Evaluation", per_query: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if per_query:
        rows = Table("query", *result)
        for q, values in zip(result.qid.tolist(), result.per_query.T, strict=True):
            rows.add_row(str(q), *("skipped" if v != v else f"{v:.4f}" for v in values))
        console.print(rows)
    table = Table("measure", "mean", "95% interval", "queries", "definition")
    for name, measure in result.measures.items():
        low, high = result.intervals[name]
        counted = int((result[name].values == result[name].values).sum())
        table.add_row(name, f"{result.means[name]:.4f}", f"{low:.4f} .. {high:.4f}", f"{counted:,}", repr(measure))
    console.print(table)
