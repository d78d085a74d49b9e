"""``exactrank clicks``: data for training from a click log, with the propensities that its grades are made of."""

from contextlib import nullcontext
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from exactrank.cli.common import (
    Force,
    Json,
    LogReading,
    Seed,
    StrictReading,
    Threads,
    number,
    on_disk,
    print_json,
    read,
    report_written,
    say,
)

if TYPE_CHECKING:
    from exactrank.clicks.log import Clicks, ClickSummary
    from exactrank.clicks.propensities import Propensities

SHOWN = 20  # ranks


class Unknown(StrEnum):
    """What becomes of documents of the log that have no features."""

    ERROR = "error"
    DROP = "drop"


PropensityOption = Annotated[
    str, typer.Option(help="harvest, em, cascade, dbn, 1/k, 1/k^0.7, or a file: CSV with rank and propensity, or JSON of a command.")
]
ClipOption = Annotated[float, typer.Option(help="Propensities below this count as this.")]
UnknownOption = Annotated[Unknown, typer.Option(help="Documents of the log that the data lacks: an error, or left out.")]


def clicks(
    log: Annotated[Path, typer.Argument(help="Click log: .parquet, .csv or .tsv (also .gz), one row per impression.")],
    features: Annotated[Path, typer.Argument(help="Features by query id and document id: any data file; it needs no grades.")],
    out: Annotated[Path, typer.Option(help="Output; its suffix (.xr, .parquet, .csv) names the format.")],
    reading: StrictReading,
    columns: LogReading,
    propensity: PropensityOption = "harvest",
    clip: ClipOption = 0.05,
    unknown: UnknownOption = Unknown.ERROR,
    bootstrap: Annotated[int, typer.Option(min=0, help="Bootstrap samples for the intervals; 0: none.")] = 200,
    plot: Annotated[Path | None, typer.Option(help="Picture of the propensities (.png, .svg, .pdf).")] = None,
    seed: Seed = 0,
    force: Force = False,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Make data for training from clicks: grades are clicks / propensity, query weights are impressions."""
    from exactrank._support.pictures import picture_file
    from exactrank.data import files as formats
    from exactrank.data.formats.stream import stream_of

    pictured = nullcontext() if plot is None else picture_file(plot, force=force)
    with formats.stream_writer(out, force=force) as write_to, pictured as draw:
        shown = read_log(log, replace(columns, query=reading.columns.query, doc=reading.columns.doc), threads)
        curve = asked_propensities(shown, propensity, bootstrap, seed)
        table = read(features, replace(reading, columns=replace(reading.columns, graded=False)))
        data = shown.to_data(table, curve, clip=clip, unknown=unknown.value)
        write_to(stream_of(data), lambda rows: None)
        if draw is not None:
            draw(curve.figure())
    clipped = float(shown.weights[curve.at(shown.rank) < clip].sum() / shown.weights.sum())
    unseen = table.n_documents - data.n_documents
    if as_json:
        print_json({"path": str(out), "documents": data.n_documents, "never_shown": unseen, "clipped": clipped} | curve.to_json())
        return
    print_propensities(curve)
    say(f"impressions with a clipped propensity: {clipped:.1%}; documents never shown, which are left out: {unseen:,}")
    report_written(out, data.n_documents, as_json)


def read_log(path: Path, columns: Any, threads: int | None) -> "Clicks":
    """A click log by its path, which may be standard input."""
    from exactrank.clicks.files import read_clicks

    with on_disk(path) as file:
        return read_clicks(file, columns=columns, threads=threads)


def asked_propensities(log: "Clicks", asked: str, bootstrap: int = 0, seed: int = 0) -> "Propensities":
    """By a method, or from a file."""
    from exactrank.clicks.propensities import read_propensities

    return log.propensities(read_propensities(asked) if Path(asked).is_file() else asked, bootstrap=bootstrap, seed=seed)


def print_propensities(curve: "Propensities") -> None:
    """The curve as a table."""
    from exactrank.cli.terminal import PlainTable, show

    table = PlainTable("rank", "propensity", *([] if curve.low is None else ["95% interval"]), title=f"propensities ({curve.method})")
    for row in curve.to_json()["propensities"][:SHOWN]:
        ends = [] if curve.low is None else [" to ".join("-" if row[end] is None else f"{row[end]:.3f}" for end in ("low", "high"))]
        table.row(str(row["rank"]), f"{row['propensity']:.3f}", *ends)
    show(table)


def describe_log(path: Path, columns: Any, threads: int | None, as_json: bool) -> None:
    """What ``exactrank info`` says of a click log."""
    summary = read_log(path, columns, threads).describe()
    if as_json:
        ranks = [vars(each) | {"rate": number(each.rate)} for each in summary.by_rank]
        times = {end: None if getattr(summary, end) is None else str(getattr(summary, end)) for end in ("first", "last")}
        print_json(vars(summary) | {"by_rank": ranks} | times)
        return
    _print_summary(str(path), summary)


def _print_summary(name: str, summary: "ClickSummary") -> None:
    from exactrank.cli.terminal import Cell, PlainTable, show

    table = PlainTable("", "", title=f"{name}: a click log", show_header=False)
    table.columns[1].justify = "right"
    rates = [f"{each.rank}: {each.rate:.2%} of {each.impressions:,g}" for each in summary.by_rank]
    several = f"{summary.at_several_ranks:,} of {summary.pairs:,} ({summary.at_several_ranks / summary.pairs:.1%})"
    shown: dict[str, Cell] = {
        "queries": f"{summary.queries:,}",
        "documents": f"{summary.documents:,}",
        "sessions": "none" if summary.sessions is None else f"{summary.sessions:,}",
        "impressions": f"{summary.impressions:,.10g}",
        "clicks": f"{summary.clicks:,.10g} ({summary.clicks / summary.impressions:.2%})" if summary.impressions else "0",
        "click-through rate by rank": rates if len(rates) <= SHOWN else [*rates[:SHOWN], f"... {len(rates) - SHOWN} more"],
        "documents seen at several ranks": several,
        **({} if summary.first is None else {"time": f"{summary.first} to {summary.last}"}),
    }
    for label, value in shown.items():
        table.row(label, value)
    show(table)
