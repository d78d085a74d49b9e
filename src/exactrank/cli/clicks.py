"""``exactrank clicks``: data for training from a click log, with the propensities that its grades are computed from."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from exactrank.cli.common import (
    Force,
    Json,
    LogReading,
    Seed,
    StrictReading,
    Threads,
    json_number,
    picture,
    print_json,
    print_line,
    read,
    regular_file,
    report_file,
)

if TYPE_CHECKING:
    from exactrank.clicks.log import ClickColumns, Clicks, ClickSummary
    from exactrank.clicks.propensities import Propensities

SHOWN = 20  #: ranks in a table


PropensityOption = Annotated[
    str, typer.Option(help="Propensities: harvest, em, cascade, dbn, 1/k, 1/k^0.7, or a file, CSV with rank and propensity or JSON.")
]
ClipOption = Annotated[float, typer.Option(help="Raise smaller propensities to this value.")]
UnknownOption = Annotated[
    Literal["error", "drop"], typer.Option(help="Treat documents of the log that the data lacks as an error, or leave them out.")
]


def clicks(
    log: Annotated[Path, typer.Argument(help="Click log: .parquet, .csv or .tsv (also .gz), one row per impression.")],
    features: Annotated[Path, typer.Argument(help="Features by query id and document id: any data file; it needs no grades.")],
    out: Annotated[Path, typer.Option(help="Output; its suffix (.xr, .parquet, .csv) names the format.")],
    reading: StrictReading,
    columns: LogReading,
    propensity: PropensityOption = "harvest",
    clip: ClipOption = 0.05,
    unknown: UnknownOption = "error",
    bootstrap: Annotated[int, typer.Option(min=0, help="Bootstrap samples for the intervals; 0: none.")] = 200,
    plot: Annotated[Path | None, typer.Option(help="Picture of the propensities (.png, .svg, .pdf).")] = None,
    seed: Seed = 0,
    force: Force = False,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Make training data from clicks: a grade is clicks / propensity, and a query's weight is its number of impressions."""
    from exactrank.data import files as formats
    from exactrank.data.formats.base import stream_of

    with formats.stream_writer(out, force=force) as write_stream, picture(plot, force) as draw:
        clicks = read_log(log, replace(columns, query=reading.columns.query, doc=reading.columns.doc), threads)
        curve = find_propensities(clicks, propensity, bootstrap, seed)
        table = read(features, replace(reading, columns=replace(reading.columns, graded=False)))
        data = clicks.to_data(table, curve, clip=clip, unknown=unknown)
        write_stream(stream_of(data), lambda rows: None)
        if draw is not None:
            draw(curve.figure())
    clipped = float(clicks.weights[curve.at(clicks.rank) < clip].sum() / clicks.weights.sum())
    unseen = table.n_documents - data.n_documents
    if as_json:
        print_json({"path": str(out), "documents": data.n_documents, "never_shown": unseen, "clipped": clipped} | curve.to_json())
        return
    print_propensities(curve)
    print_line(f"impressions with a clipped propensity: {clipped:.1%}; documents never shown, which are left out: {unseen:,}")
    report_file(out, data.n_documents, as_json)


def read_log(path: Path, columns: "ClickColumns", threads: int | None) -> "Clicks":
    """Read a click log, which may come from standard input."""
    from exactrank.clicks.files import read_clicks

    with regular_file(path) as file:
        return read_clicks(file, columns=columns, threads=threads)


def find_propensities(log: "Clicks", propensity: str, bootstrap: int = 0, seed: int = 0) -> "Propensities":
    """Estimate propensities by a method, or read them if ``propensity`` names a file."""
    from exactrank.clicks.propensities import read_propensities

    return log.propensities(read_propensities(propensity) if Path(propensity).is_file() else propensity, bootstrap=bootstrap, seed=seed)


def print_propensities(curve: "Propensities") -> None:
    """Print the curve as a table."""
    from exactrank.cli.terminal import PlainTable, show

    table = PlainTable("rank", "propensity", *([] if curve.low is None else ["95% interval"]), title=f"propensities ({curve.method})")
    for row in curve.to_json()["propensities"][:SHOWN]:
        ends = [] if curve.low is None else [" to ".join("-" if row[end] is None else f"{row[end]:.3f}" for end in ("low", "high"))]
        table.row(str(row["rank"]), f"{row['propensity']:.3f}", *ends)
    show(table)


def describe_log(path: Path, columns: "ClickColumns", threads: int | None, as_json: bool) -> None:
    """Print the summary of a click log for ``exactrank info``."""
    summary = read_log(path, columns, threads).describe()
    if as_json:
        ranks = [vars(rank) | {"rate": json_number(rank.rate)} for rank in summary.by_rank]
        times = {end: None if getattr(summary, end) is None else str(getattr(summary, end)) for end in ("first", "last")}
        print_json(vars(summary) | {"by_rank": ranks} | times)
        return
    _print_summary(str(path), summary)


def _print_summary(name: str, summary: "ClickSummary") -> None:
    from exactrank.cli.terminal import Cell, PlainTable, show

    table = PlainTable("", "", title=f"{name}: a click log", show_header=False)
    table.columns[1].justify = "right"
    rates = [f"{rank.rank}: {rank.rate:.2%} of {rank.impressions:,g}" for rank in summary.by_rank]
    several = f"{summary.at_several_ranks:,} of {summary.pairs:,} ({summary.at_several_ranks / summary.pairs:.1%})"
    rows: dict[str, Cell] = {
        "queries": f"{summary.queries:,}",
        "documents": f"{summary.documents:,}",
        "sessions": "none" if summary.sessions is None else f"{summary.sessions:,}",
        "impressions": f"{summary.impressions:,.10g}",
        "clicks": f"{summary.clicks:,.10g} ({summary.clicks / summary.impressions:.2%})" if summary.impressions else "0",
        "click-through rate by rank": rates if len(rates) <= SHOWN else [*rates[:SHOWN], f"... {len(rates) - SHOWN} more"],
        "documents seen at several ranks": several,
        **({} if summary.first is None else {"time": f"{summary.first} to {summary.last}"}),
    }
    for label, value in rows.items():
        table.row(label, value)
    show(table)
