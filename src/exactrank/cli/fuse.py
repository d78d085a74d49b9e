"""The command that tunes the weights of a hybrid search."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exactrank.cli.common import Force, Json, Seed, StrictReading, Threads, optional_file, print_json, read
from exactrank.cli.probe import picture

if TYPE_CHECKING:
    from exactrank.fuse.fuse import Fusion

Absent = Annotated[
    str, typer.Option(help="A document that a system did not retrieve gets its worst score, zero, or is not ranked: worst, zero, drop.")
]
Cells = Annotated[
    int | None,
    typer.Option(min=1, help="Triangles that the certificate of three systems may look at. \\[default: as many as take some seconds]"),
]


def fuse(
    data: Annotated[Path, typer.Argument(help="TREC qrels, with --run; or any data with a feature a system, with --system.")],
    reading: StrictReading,
    run: Annotated[list[Path] | None, typer.Option(help="TREC run of a system, named by its file; repeatable.")] = None,
    system: Annotated[list[str] | None, typer.Option(help="Feature or column with a system's scores; repeatable.")] = None,
    measure: Annotated[str, typer.Option("--measure", "-m", help="What to tune for, e.g. nDCG@10 or 'AP(rel=2)'.")] = "nDCG@10",
    normalise: Annotated[str, typer.Option(help="none, min-max, z-score, rank or reciprocal-rank, per system and query.")] = "min-max",
    absent: Absent = "worst",
    allow_negative: Annotated[bool, typer.Option("--allow-negative", help="Weights may be negative.")] = False,
    folds: Annotated[int, typer.Option(help="Folds of the cross-validation by query; 0: none.")] = 5,
    bootstrap: Annotated[int, typer.Option(help="Samples of the bootstrap over queries; 0: none.")] = 200,
    cells: Cells = None,
    out: Annotated[Path | None, typer.Option(help="Write the weights and all results to this JSON file; - is standard output.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the measure against the weight of two systems: .png, .svg or .pdf.")] = None,
    force: Force = False,
    seed: Seed = 0,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Tune the weights of a hybrid search: the global optimum for two systems, certified for three."""
    from exactrank.errors import DataError, IncompatibleError
    from exactrank.fuse.fuse import fuse as fused, systems_from_runs

    runs, names = run or [], system or []
    if plot is not None and plot == out:
        raise DataError(f"two outputs would go to {plot}; give each a path of its own")
    if plot is not None and len(runs or names) > 2:
        raise IncompatibleError(
            f"--plot draws the weight of one system against another, but there are {len(runs or names)}; fuse two, or leave it out"
        )
    with optional_file(out, force) as file, picture(plot, force) as draw:
        if bool(runs) == bool(names):
            both = " only one of them" if runs else ""
            raise DataError(
                f"give{both} --run FILE for each system of the qrels in DATA, or --system NAME for each feature of DATA to fuse"
            )
        if runs:
            judged = systems_from_runs(data, runs)
        else:
            judged = read(data, replace(reading, columns=replace(reading.columns, features=tuple(names))))
        result = fused(
            judged, systems=system, measure=measure, normalise=normalise, absent=absent, nonnegative=not allow_negative,
            folds=folds, bootstrap=bootstrap, cells=cells, seed=seed, threads=threads,
        )  # fmt: skip
        if draw is not None:
            draw(result.figure())
        if file is not None:
            file.write((json.dumps(result.to_json(), indent=2, allow_nan=False) + "\n").encode())
    if as_json:
        print_json(result.to_json())
    else:
        _print(result)


def _print(result: "Fusion") -> None:
    from exactrank.cli.terminal import Table, show

    weights = Table("system", "weight", "same value within", "95% interval", title="weights")
    intervals = result.bootstrap_interval or (None,) * len(result.systems)
    for name, weight, flat, interval in zip(result.systems, result.weights, result.interval, intervals, strict=True):
        weights.row(name, f"{weight:.4f}", _range(flat), _range(interval))
    caption = "gain: what the tuned weights have over it, held out" if result.cross_validated is not None else None
    table = Table("ranking", str(result.measure), "95% interval", "gain", "95% interval", title="comparison", caption=caption)
    for row in result.comparison:
        gain = "" if row.gain is None else f"{row.gain:+.4f}"
        table.row(row.name, f"{row.mean:.4f}", _range(row.interval), gain, _range(row.gain_interval, sign="+"))
    verdict, known = f"{result.measure} {result.value:.4f} is", result.certificate
    if result.optimum == "global":
        verdict += " the global optimum: all weights were swept."
    elif known is not None:
        verdict += f" within {known.gap:.4f} of the optimum: no weights have more than {known.upper:.4f} ({known.cells:,} triangles)."
    else:
        verdict += " a local optimum: no single weight has anything better."
    show(weights, verdict, table)


def _range(ends: tuple[float, float] | None, sign: str = "") -> str:
    return "" if ends is None else f"{ends[0]:{sign}.4f} .. {ends[1]:{sign}.4f}"
