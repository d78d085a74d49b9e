"""Commands on data: ``info`` describes it, ``convert`` and ``pairs`` write it, ``generate`` makes it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

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
    print_json,
    print_line,
    read,
    regular_file,
    report_file,
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


def info(
    data: Annotated[Path, typer.Argument(help="Any data file, a click log, or a folder with Fold1, Fold2, ...")],
    reading: StrictReading,
    columns: LogReading,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Describe ranking data: queries, documents, features, grades, list lengths, irregularities. A click log is described, too."""
    from exactrank.cli.clicks import describe_log
    from exactrank.clicks.files import is_click_log
    from exactrank.data.describe import describe
    from exactrank.data.folds import read_folds

    log_columns = replace(columns, query=reading.columns.query, doc=reading.columns.doc)
    if is_click_log(data, log_columns):
        describe_log(data, log_columns, threads, as_json)
        return
    if data.is_dir():
        folds = read_folds(data, keep_missing=reading.keep_missing, threads=threads)
        parts = {f"{fold.name}/{part}": getattr(fold, part) for fold in folds for part in ("train", "valid", "test")}
    else:
        parts = {str(data): read(data, reading)}
    summaries = {name: describe(part, threads) for name, part in parts.items()}
    if as_json:
        records = {}
        for name, summary in summaries.items():
            grades = {f"{grade:g}": count for grade, count in summary.grades.items()}
            lengths = dict(zip(("min", "median", "max"), summary.list_lengths, strict=True))
            records[name] = asdict(summary) | {"grades": grades, "list_lengths": lengths}
        print_json(records if data.is_dir() else next(iter(records.values())))
    else:
        _print_summaries(summaries)


def convert(
    source: Source,
    target: Target,
    reading: StrictReading,
    columns: Annotated[
        bool, typer.Option("--columns", help="Also keep the features by column, for DirectRank on an .xr cache larger than memory.")
    ] = False,
    run: Annotated[list[Path] | None, typer.Option(help="TREC run that becomes a feature of the qrels in SOURCE; repeatable.")] = None,
    shards: Annotated[
        int | None,
        typer.Option(min=1, max=9999, help="Write this number of caches, and a list of them, into the folder TARGET, for a cluster."),
    ] = None,
    force: Force = False,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Convert ranking data between formats, block by block, so that data may be larger than memory."""
    from exactrank._support.files import output_folder, scratch_folder
    from exactrank.data import files as formats
    from exactrank.errors import SettingError

    if shards is not None:
        if columns:
            raise SettingError("--columns keeps the features of one cache by column, and workers need no such copy; leave it out")
        from exactrank.data.write_shards import replaceable_files, write_shards

        replaceable_files(target, force)  # before the work
        with regular_file(source) as file, output_folder(target), scratch_folder(target) as scratch:
            cache = scratch / "whole.xr"
            _convert(file, cache, reading, run)
            report_file(write_shards(formats.read(cache), target, shards, force=force), formats.read(cache).n_documents, as_json)
        return
    with regular_file(source) as file, _counter(f"Converting {source.name}", None, quiet=as_json) as count:
        _convert(file, target, reading, run, columns, force, count)
    report_file(target, count.rows, as_json)


def _convert(
    source: Path,
    target: Path,
    reading: "ReadOptions",
    run: list[Path] | None,
    columns: bool = False,
    force: bool = False,
    count: Callable[[int], None] = lambda rows: None,
) -> None:
    """Convert one file to another, which is opened before the work."""
    from exactrank.data import files as formats
    from exactrank.data.formats import trec
    from exactrank.data.formats.base import stream_of
    from exactrank.data.write_shards import stream_of_shards

    with formats.stream_writer(target, force=force) as write_stream:
        if run:
            stream = stream_of(trec.from_trec(trec.read_qrels(source), [trec.read_run(path) for path in run]))
        else:
            shards = shards_at(source, False, reading)
            stream = formats.stream(source, reading) if shards is None else stream_of_shards(shards)
        write_stream(replace(stream, columns=columns), count)


def pairs(
    pairs: Annotated[Path, typer.Argument(help="Pairs: a CSV, TSV or Parquet file with the columns query_id, better, worse and weight.")],
    data: Source,
    out: Annotated[Path, typer.Option(help="Output with the pairs, an .xr cache; with --bradley-terry any format.")],
    reading: StrictReading,
    bradley_terry: Annotated[
        bool, typer.Option("--bradley-terry", help="Turn the pairs into grades, which any ranker takes, by a Bradley-Terry fit.")
    ] = False,
    prior: Annotated[float, typer.Option(help="Bradley-Terry: precision of the prior on the strengths of documents.")] = 0.1,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Join pairs of documents that a judge has ordered ("this one before that one") to the features and grades of ranking data."""
    from exactrank.data import files as formats
    from exactrank.data.formats.base import stream_of

    with formats.stream_writer(out, force=force) as write_stream:
        judged = read(data, reading, pairs)
        if bradley_terry:
            from exactrank.learning.objectives.bradley_terry import bradley_terry as fit_strengths

            judged = fit_strengths(judged, prior=prior).judged
        write_stream(stream_of(judged), lambda rows: None)
    report_file(out, judged.n_documents, as_json)


def generate(
    target: Target,
    queries: Annotated[int, typer.Option(min=1, help="Number of queries.")] = 1000,
    first: Annotated[int, typer.Option(min=1, help="Id of the first query; disjoint ranges make training and test sets.")] = 1,
    documents: Annotated[int, typer.Option(min=1, help="Number of documents per query.")] = 50,
    features: Annotated[int, typer.Option(min=1, help="Number of features per document.")] = 50,
    grades: Annotated[int, typer.Option(min=2, help="Number of grades.")] = 5,
    noise: Annotated[float, typer.Option(help="Noise, in standard deviations of the target.")] = 0.0,
    clicks: Annotated[
        Literal["pbm", "cascade"] | None, typer.Option(help="Also simulate clicks by this model, and write them to --log.")
    ] = None,
    log: Annotated[Path | None, typer.Option(help="Output for the click log (.parquet or .csv).")] = None,
    sessions: Annotated[int, typer.Option(min=1, help="Clicks: sessions per query.")] = 100,
    page_size: Annotated[int, typer.Option(min=1, help="Clicks: documents on a page.")] = 10,
    propensity: Annotated[
        str, typer.Option(help="Clicks: the probability that a user of the position-based model looks at each rank.")
    ] = "1/k",
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
        simulated = partial(simulate_clicks, model=clicks, sessions=sessions, page_size=page_size, propensity=propensity, seed=seed)
        _generate_clicks(target, log, source.data(queries, first), simulated, force, as_json)
        return
    if log is not None:
        raise DataError("--log is for clicks; give --clicks pbm or --clicks cascade with it")
    with _counter("Generating", queries * documents, quiet=as_json) as count:
        formats.write_stream(source.stream(queries, first), target, force=force, progress=count)
    report_file(target, count.rows, as_json)


def _generate_clicks(
    target: Path, log: Path | None, data: "RankingData", simulate: "Callable[[RankingData], Simulated]", force: bool, as_json: bool
) -> None:
    """Write the data and the log, and print the true propensities."""
    from exactrank.cli.clicks import print_propensities
    from exactrank.clicks.files import log_writer
    from exactrank.data import files as formats
    from exactrank.data.formats.base import stream_of
    from exactrank.errors import DataError

    if log is None:
        raise DataError("give --log FILE for the clicks (.parquet or .csv)")
    with formats.stream_writer(target, force=force) as write_stream, log_writer(log, force=force) as write_log:
        simulated = simulate(data)
        write_stream(stream_of(data), lambda rows: None)
        write_log(simulated.clicks)
    if as_json:
        counts = {"impressions": simulated.clicks.n_impressions, "clicks": int(simulated.clicks.clicked.sum())}
        print_json({"path": str(target), "log": str(log), "documents": data.n_documents} | counts | simulated.propensities.to_json())
        return
    print_propensities(simulated.propensities)
    report_file(target, data.n_documents, as_json)
    print_line(f"{log}: {simulated.clicks.n_impressions:,} impressions, {int(simulated.clicks.clicked.sum()):,} clicked")


@contextmanager
def _counter(title: str, total: int | None, *, quiet: bool) -> "Iterator[Counter]":
    """Yield a counter of documents that draws a progress bar."""
    from exactrank._support.progress_bars import ProgressLine, progress_bar

    with progress_bar(title, quiet=quiet) as draw:
        yield Counter(lambda rows: draw(ProgressLine(None if total is None else rows / total, f"{rows:,} documents")))


@dataclass
class Counter:
    """The number of documents that were written so far."""

    show: Callable[[int], None]
    rows: int = 0

    def __call__(self, rows: int) -> None:
        """Add ``rows`` to the number, and show it."""
        self.rows += rows
        self.show(self.rows)


def _print_summaries(summaries: dict[str, "Summary"]) -> None:
    from exactrank.cli.terminal import PlainTable, show

    if len(summaries) == 1:
        ((name, summary),) = summaries.items()
        table = PlainTable("", "", title=name, show_header=False)
        table.columns[1].justify = "right"
        for label, value in _rows(summary).items():
            table.row(label, value)
    else:
        table = PlainTable("", "queries", "documents", "features", "per query", "single grade", "none relevant", "missing")
        for name, summary in summaries.items():
            counts = (summary.queries, summary.documents, summary.features)
            odd = (summary.single_grade_queries, summary.irrelevant_queries, sum(summary.missing_values.values()))
            table.row(name, *(f"{n:,}" for n in counts), _lengths(summary), *(f"{n:,}" for n in odd))
    show(table)


def _rows(summary: "Summary") -> dict[str, "Cell"]:
    """Return the rows of the table about a single data set."""
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
        "queries without a grade of at least 1": f"{summary.irrelevant_queries:,}",
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
    shortest, median, longest = summary.list_lengths
    return f"{shortest:,} / {median:g} / {longest:,}"
