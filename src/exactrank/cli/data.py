"""Commands on data: describe it, convert it, make it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exactrank.cli.cluster import shards_at
from exactrank.cli.common import (
    Force,
    Json,
    LogReading,
    Seed,
    Source,
    StrictReading,
    Threads,
    on_disk,
    print_json,
    read,
    report_written,
    say,
)

if TYPE_CHECKING:
    from exactrank.cli.terminal import Cell
    from exactrank.clicks.simulate import Simulated
    from exactrank.data.describe import Summary
    from exactrank.data.formats.base import ReadOptions
    from exactrank.data.ranking_data import RankingData

Target = Annotated[
    Path,
    typer.Argument(help="Output; its suffix (.xr, .txt, .txt.gz, .parquet, .csv) names the format. - is standard output, as LETOR text."),
]


class ClickModel(StrEnum):
    """How artificial users click."""

    PBM = "pbm"
    CASCADE = "cascade"


def info(
    data: Annotated[Path, typer.Argument(help="Any data file, a click log, or a folder with Fold1, Fold2, ...")],
    reading: StrictReading,
    columns: LogReading,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Show what ranking data holds: queries, documents, features, grades, list lengths, what is odd in it. Or what a click log holds."""
    from exactrank.cli.clicks import describe_log
    from exactrank.clicks.files import is_click_log
    from exactrank.data.describe import describe
    from exactrank.data.folds import read_folds

    named = replace(columns, query=reading.columns.query, doc=reading.columns.doc)
    if is_click_log(data, named):
        describe_log(data, named, threads, as_json)
        return
    if data.is_dir():
        folds = read_folds(data, keep_missing=reading.keep_missing, threads=threads)
        parts = {f"{fold.name}/{part}": getattr(fold, part) for fold in folds for part in ("train", "valid", "test")}
    else:
        parts = {str(data): read(data, reading)}
    summaries = {name: describe(part, threads) for name, part in parts.items()}
    if as_json:
        shown = {}
        for name, summary in summaries.items():
            grades = {f"{grade:g}": count for grade, count in summary.grades.items()}
            lengths = dict(zip(("min", "median", "max"), summary.list_lengths, strict=True))
            shown[name] = asdict(summary) | {"grades": grades, "list_lengths": lengths}
        print_json(shown if data.is_dir() else next(iter(shown.values())))
    else:
        _print_summaries(summaries)


def convert(
    source: Source,
    target: Target,
    reading: StrictReading,
    columns: Annotated[
        bool, typer.Option("--columns", help="Keep the features by column, too, for DirectRank on an .xr cache larger than memory.")
    ] = False,
    run: Annotated[list[Path] | None, typer.Option(help="TREC run that becomes a feature of the qrels in SOURCE; repeatable.")] = None,
    shards: Annotated[
        int | None, typer.Option(min=1, max=9999, help="Write this number of caches and their list into the folder TARGET, for a cluster.")
    ] = None,
    force: Force = False,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Convert ranking data between formats, block by block: data larger than memory goes through."""
    from exactrank._support.files import output_folder, scratch_folder
    from exactrank.data import files as formats
    from exactrank.errors import SettingError

    if shards is not None:
        if columns:
            raise SettingError("--columns keeps the features of one cache by column, and workers need no such copy; leave it out")
        from exactrank.data.write_shards import replaced, write_shards

        replaced(target, force)  # before the work
        with on_disk(source) as file, output_folder(target), scratch_folder(target) as scratch:
            whole = scratch / "whole.xr"
            _converted(file, whole, reading, run)
            report_written(write_shards(formats.read(whole), target, shards, force=force), formats.read(whole).n_documents, as_json)
        return
    with on_disk(source) as file, _counted(f"Converting {source.name}", None, quiet=as_json) as count:
        _converted(file, target, reading, run, columns, force, count)
    report_written(target, count.rows, as_json)


def _converted(
    source: Path,
    target: Path,
    reading: "ReadOptions",
    run: list[Path] | None,
    columns: bool = False,
    force: bool = False,
    count: Callable[[int], None] = lambda rows: None,
) -> None:
    """One file to one file, which is opened before the work."""
    from exactrank.data import files as formats
    from exactrank.data.formats import trec
    from exactrank.data.formats.stream import stream_of
    from exactrank.data.write_shards import stream_of_shards

    with formats.stream_writer(target, force=force) as write_to:
        if run:
            stream = stream_of(trec.from_trec(trec.read_qrels(source), [trec.read_run(path) for path in run]))
        else:
            several = shards_at(source, False, reading)
            stream = formats.stream(source, reading) if several is None else stream_of_shards(several)
        write_to(replace(stream, columns=columns), count)


def pairs(
    pairs: Annotated[Path, typer.Argument(help="Pairs: a CSV, TSV or Parquet file with the columns query_id, better, worse and weight.")],
    data: Source,
    out: Annotated[Path, typer.Option(help="Where the data with its pairs goes, an .xr cache; with --bradley-terry any format.")],
    reading: StrictReading,
    bradley_terry: Annotated[
        bool, typer.Option("--bradley-terry", help="Make grades of the pairs, which any ranker takes, by a Bradley-Terry fit.")
    ] = False,
    prior: Annotated[float, typer.Option(help="Bradley-Terry: precision of the prior on the strengths of documents.")] = 0.1,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Put pairs of documents that a judge has ordered ("this one before that one") beside the features and grades of ranking data."""
    from exactrank.data import files as formats
    from exactrank.data.formats.stream import stream_of

    with formats.stream_writer(out, force=force) as write_to:
        judged = read(data, reading, pairs)
        if bradley_terry:
            from exactrank.learning.objectives.bradley_terry import bradley_terry as fitted

            judged = fitted(judged, prior=prior).judged
        write_to(stream_of(judged), lambda rows: None)
    report_written(out, judged.n_documents, as_json)


def generate(
    target: Target,
    queries: Annotated[int, typer.Option(min=1, help="How many queries.")] = 1000,
    first: Annotated[int, typer.Option(min=1, help="Id of the first query; disjoint ranges make training and test sets.")] = 1,
    documents: Annotated[int, typer.Option(min=1, help="Documents a query.")] = 50,
    features: Annotated[int, typer.Option(min=1, help="Dimension of the documents.")] = 50,
    grades: Annotated[int, typer.Option(min=2, help="Number of grades.")] = 5,
    noise: Annotated[float, typer.Option(help="Noise, in standard deviations of the target.")] = 0.0,
    clicks: Annotated[ClickModel | None, typer.Option(help="Also simulate clicks by this model, and write them to --log.")] = None,
    log: Annotated[Path | None, typer.Option(help="Output for the click log (.parquet or .csv).")] = None,
    sessions: Annotated[int, typer.Option(min=1, help="Clicks: sessions per query.")] = 100,
    shown: Annotated[int, typer.Option(min=1, help="Clicks: documents on a page.")] = 10,
    propensity: Annotated[str, typer.Option(help="Clicks: how likely each rank is looked at in the position-based model.")] = "1/k",
    seed: Seed = 0,
    force: Force = False,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Make artificial data: random cubic polynomials of Gaussian vectors (Burges et al. 2006, section 6.3.1)."""
    from exactrank.clicks.simulate import simulate_clicks
    from exactrank.data import files as formats
    from exactrank.data.synthetic import CubicPolynomial
    from exactrank.errors import DataError

    source = CubicPolynomial(features, documents, grades, noise, seed, threads, document_ids=clicks is not None)
    if clicks is not None:
        simulated = partial(simulate_clicks, model=clicks.value, sessions=sessions, shown=shown, propensity=propensity, seed=seed)
        _generate_clicks(target, log, source.data(queries, first), simulated, force, as_json)
        return
    if log is not None:
        raise DataError("--log is for clicks; give --clicks pbm or --clicks cascade with it")
    with _counted("Generating", queries * documents, quiet=as_json) as count:
        formats.write_stream(source.stream(queries, first), target, force=force, progress=count)
    report_written(target, count.rows, as_json)


def _generate_clicks(
    target: Path, log: Path | None, data: "RankingData", simulate: "Callable[[RankingData], Simulated]", force: bool, as_json: bool
) -> None:
    """Write the data and the log, and say what the true propensities are."""
    from exactrank.cli.clicks import print_propensities
    from exactrank.clicks.files import log_writer
    from exactrank.data import files as formats
    from exactrank.data.formats.stream import stream_of
    from exactrank.errors import DataError

    if log is None:
        raise DataError("give --log FILE for the clicks (.parquet or .csv)")
    with formats.stream_writer(target, force=force) as write_to, log_writer(log, force=force) as write_log:
        made = simulate(data)
        write_to(stream_of(data), lambda rows: None)
        write_log(made.clicks)
    if as_json:
        counts = {"impressions": made.clicks.n_impressions, "clicks": int(made.clicks.clicked.sum())}
        print_json({"path": str(target), "log": str(log), "documents": data.n_documents} | counts | made.propensities.to_json())
        return
    print_propensities(made.propensities)
    report_written(target, data.n_documents, as_json)
    say(f"{log}: {made.clicks.n_impressions:,} impressions, {int(made.clicks.clicked.sum()):,} clicked")


@contextmanager
def _counted(what: str, total: int | None, *, quiet: bool) -> "Iterator[Count]":
    """Counts documents, and shows how many there are."""
    from exactrank._support.progress_bars import ProgressLine, progress_bar

    with progress_bar(what, quiet=quiet) as draw:
        yield Count(lambda rows: draw(ProgressLine(None if total is None else rows / total, f"{rows:,} documents")))


@dataclass
class Count:
    """The number of documents that went by."""

    told: Callable[[int], None]
    rows: int = 0

    def __call__(self, rows: int) -> None:
        """Some more went by."""
        self.rows += rows
        self.told(self.rows)


def _print_summaries(summaries: dict[str, "Summary"]) -> None:
    from exactrank.cli.terminal import PlainTable, show

    if len(summaries) == 1:
        ((name, summary),) = summaries.items()
        table = PlainTable("", "", title=name, show_header=False)
        table.columns[1].justify = "right"
        for label, value in _shown(summary).items():
            table.row(label, value)
    else:
        table = PlainTable("", "queries", "documents", "features", "a query", "single grade", "none relevant", "missing")
        for name, summary in summaries.items():
            counts = (summary.queries, summary.documents, summary.features)
            odd = (summary.single_grade_queries, summary.irrelevant_queries, sum(summary.missing_values.values()))
            table.row(name, *(f"{n:,}" for n in counts), _lengths(summary), *(f"{n:,}" for n in odd))
    show(table)


def _shown(summary: "Summary") -> dict[str, "Cell"]:
    """The rows about a single data set."""
    from exactrank.data.alignment import name_list

    grades = [f"{grade:g}: {count:,} ({count / summary.documents:.1%})" for grade, count in summary.grades.items()]
    missing = [f"{name}: {count:,}" for name, count in summary.missing_values.items()]
    levels = [f"{name}: {count:,} levels" for name, count in summary.categories.items()]
    extra = [f"{name}: {low:g} to {high:g}" for name, (low, high) in summary.extra_columns.items()]
    return {
        "queries": f"{summary.queries:,}",
        "documents": f"{summary.documents:,}",
        "features": f"{summary.features:,}",
        "documents per query (min / median / max)": _lengths(summary),
        "grades": grades if len(grades) <= 12 else [*grades[:5], f"... {len(grades) - 10} more ...", *grades[-5:]],
        "queries of a single grade": f"{summary.single_grade_queries:,}",
        "queries without a relevant document": f"{summary.irrelevant_queries:,}",
        "constant features": name_list(summary.constant_features),
        "missing values": f"{sum(summary.missing_values.values()):,}" + (f" ({name_list(missing)})" if missing else ""),
        **({"categories": name_list(levels)} if levels else {}),
        "queries interleaved in the input": "yes" if summary.interleaved else "no",
        "weights": ", ".join(summary.weights) or "none",
        **({"pairs": f"{summary.pairs:,}"} if summary.pairs else {}),
        **({"extra columns": name_list(extra)} if extra else {}),
        "document ids": "yes" if summary.has_docid else "no",
    }


def _lengths(summary: "Summary") -> str:
    least, median, most = summary.list_lengths
    return f"{least:,} / {median:g} / {most:,}"
