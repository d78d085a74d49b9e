"""The commands that tune the weights of a hybrid search, and that fuse new results with them."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exactrank._support.text import printable
from exactrank.cli.cluster import shards_at
from exactrank.cli.common import (
    Force,
    HighestGrade,
    Json,
    Machine,
    Seed,
    StrictReading,
    Systems,
    Threads,
    UnjudgedOption,
    measure_option,
    optional_file,
    picture,
    print_json,
    print_line,
    print_text,
    read,
    report_file,
)

if TYPE_CHECKING:
    from exactrank._support.json_values import JSONValue
    from exactrank.cli.terminal import PlainTable
    from exactrank.data.ranking_data import RankingData
    from exactrank.data.shards import Shards
    from exactrank.fusion.fusion import Fusion
    from exactrank.fusion.resample import RankingComparison

Runs = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=FILE", help="TREC run of a system, which is named by its file if NAME= is missing; repeatable."),
]
Normalize = Annotated[
    str | None,
    typer.Option(
        help="Normalization of scores per system and query: none, min-max, z-score, l2, rank, reciprocal-rank(k=60), or an engine's own;"
        " all: the best of them. [default: min-max, or the engine's]"
    ),
]
Absent = Annotated[
    str | None,
    typer.Option(
        help="Value of a document that a system did not retrieve: worst (the system's worst value), zero, zero-score (the value of score"
        " 0), or drop (it is not ranked). [default: worst, or the engine's]"
    ),
]
Engine = Annotated[
    str | None,
    typer.Option(
        "--for",
        help="Tune what this engine computes, and write its configuration: elasticsearch, elasticsearch-rrf, opensearch, opensearch-rrf,"
        " vespa, qdrant or weaviate.",
    ),
]
Depth = Annotated[int | None, typer.Option(min=1, help="Maximum number of documents of each system's list. [default: all; 100 with --for]")]
Cells = Annotated[
    int | None,
    typer.Option(min=1, help="Maximum number of triangles in the certificate of three systems. [default: as many as take a few seconds]"),
]
By = Annotated[
    Path | None,
    typer.Option(help="CSV with a column query_id and one per feature of the queries, on which the weights may depend."),
]
Save = Annotated[Path | None, typer.Option(help="Write the weights and all results to this JSON file; - is standard output.")]
Config = Annotated[Path | None, typer.Option(help="Write the engine's configuration to this file. [default: print it]")]


def fuse(
    data: Annotated[
        Path, typer.Argument(help="TREC qrels, with --run; or, with --system, any data with one feature per system, also in several files.")
    ],
    reading: StrictReading,
    run: Runs = None,
    system: Systems = None,
    measure: Annotated[
        str, measure_option("The measure to tune for, e.g. nDCG@10, 'AP(rel=2)' or 'nDCG@10 subject to R@100 >= 0.8'.")
    ] = "nDCG@10",
    machine: Machine = None,
    engine: Engine = None,
    depth: Depth = None,
    normalize: Normalize = None,
    absent: Absent = None,
    allow_negative: Annotated[bool, typer.Option("--allow-negative", help="Weights may be negative.")] = False,
    by: By = None,
    folds: Annotated[int, typer.Option(help="Folds of the cross-validation by query; 0: none.")] = 5,
    bootstrap: Annotated[int, typer.Option(help="Samples of the bootstrap over queries; 0: none.")] = 200,
    cells: Cells = None,
    unjudged: UnjudgedOption = "zero",
    highest_grade: HighestGrade = None,
    save: Save = None,
    config: Config = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the measure against the weight of two systems: .png, .svg or .pdf.")] = None,
    force: Force = False,
    seed: Seed = 0,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Tune the weights of a hybrid search: the global optimum for two systems, certified for three."""
    from exactrank.errors import DataError, IncompatibleError
    from exactrank.fusion.by_query import read_query_features
    from exactrank.fusion.fuse import fuse as fuse_systems

    outputs = [path for path in (save, config, plot) if path is not None]
    if len(set(outputs)) < len(outputs):
        raise DataError(f"two outputs would go to {max(outputs, key=outputs.count)}; give each output its own path")
    if config is not None and engine is None:
        raise IncompatibleError("--config writes the configuration of an engine; name the engine with --for")
    count = len(run or system or ())
    if plot is not None and count > 2:
        raise IncompatibleError(f"--plot draws the weight of one system against another, but there are {count}; fuse two, or leave it out")
    with optional_file(save, force) as file, optional_file(config, force) as config_file, picture(plot, force) as draw:
        if bool(run) == bool(system):
            only = " only one of them:" if run else ""
            raise DataError(
                f"give{only} --run NAME=FILE for each system of the qrels in DATA, or --system NAME for each feature of DATA to fuse"
            )
        judged: RankingData | Shards
        if run:
            judged, graded = judged_runs(data, run), None if machine is None else judged_runs(machine, run)
        else:
            options = replace(reading, columns=replace(reading.columns, features=tuple(system or ())))
            judged = shards_at(data, False, options) or read(data, options)
            graded = None if machine is None else read(machine, options)
        query_features = None if by is None else read_query_features(by)
        result = fuse_systems(
            judged, machine=graded, systems=system, measure=measure, engine=engine, depth=depth, normalize=normalize, absent=absent,
            nonnegative=not allow_negative, by=query_features, folds=folds, bootstrap=bootstrap, cells=cells, unjudged=unjudged,
            highest_grade=highest_grade, seed=seed, threads=threads, progress=not as_json,
        )  # fmt: skip
        if draw is not None:
            draw(result.figure())
        if file is not None:
            file.write(result.to_bytes())
        if config_file is not None:
            config_file.write(result.configuration().encode("utf-8", "backslashreplace"))
    if as_json:
        print_json(result.to_json() | _json_bounds(result))
        return
    _print(result)
    _print_bounds(result)
    if engine is not None and config is None:
        print_line(f"configuration of {engine}:")
        print_text(printable(result.configuration().rstrip("\n"), lines=True))


def apply(
    fusion: Annotated[Path, typer.Argument(help="A file of exactrank fuse --save.")],
    out: Annotated[Path, typer.Option(help="Where the fused run goes, as gzip if it ends in .gz; - is standard output.")],
    run: Runs = None,
    by: By = None,
    tag: Annotated[str, typer.Option(help="The name of the fused run, in its last column.")] = "fusion",
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Fuse new runs of the same systems with tuned weights into one run; no judgments are needed."""
    import numpy as np

    from exactrank._support.files import whole_file
    from exactrank.data.formats.run_file import write_lines
    from exactrank.fusion.by_query import read_query_features
    from exactrank.fusion.fusion import Fusion
    from exactrank.loading import load

    with whole_file(out, force=force) as file:
        runs = named_runs(run or [])
        data, scores = load(fusion, kind=Fusion).apply_to_runs(runs, None if by is None else read_query_features(by))
        write_lines(file, data, scores, tag, compress=out.suffix == ".gz")
    report_file(out, int(np.isfinite(scores).sum()), as_json)


def judged_runs(qrels: Path, runs: list[str]) -> "RankingData":
    """Read the runs as systems of the queries that the qrels judge."""
    from exactrank.fusion.systems import systems_from_runs

    return systems_from_runs(qrels, named_runs(runs))


def named_runs(runs: list[str]) -> dict[str, str]:
    """Return the files of systems by their names; a name has no slash, so ``./a=b.run`` is a file.

    >>> named_runs(["bm25=a.run", "runs/dense.run"])
    {'bm25': 'a.run', 'dense': 'runs/dense.run'}
    """
    from exactrank.fusion.systems import distinct, system_name

    names, paths = [], []
    for run in runs:
        name, equals, path = run.partition("=")
        has_name = bool(equals) and "/" not in name
        names.append(name if has_name else system_name(run))
        paths.append(path if has_name else run)
    distinct(names)
    return dict(zip(names, paths, strict=True))


def _print(result: "Fusion") -> None:
    from exactrank.cli.terminal import PlainTable, show

    weights = PlainTable("system", "weight", "same value within", "95% interval", title="weights")
    intervals = result.bootstrap_interval or (None,) * len(result.systems)
    for name, weight, flat, interval in zip(result.systems, result.weights, result.interval, intervals, strict=True):
        weights.row(name, f"{weight:.4f}", _range(flat), _range(interval))
    caption = "gain: of the tuned weights over it, on held-out queries" if result.cross_validated is not None else None
    tables = [_comparison_table("ranking", "comparison", caption, result.comparison, result)]
    if result.normalizations:
        caption = f"on held-out queries; gain: of {result.normalize} over it"
        tables.append(_comparison_table("normalization", "normalizations", caption, result.normalizations, result))
    normalization = f"with {result.normalize} " if result.normalizations else ""
    verdict, certificate = f"{result.measure} {result.value:.4f} {normalization}is", result.certificate
    if result.by is not None and result.by.is_kept:
        verdict += " that of weights by query, which move from those above."
    elif result.optimum == "global":
        verdict += " the global optimum: all weights were swept."
    elif certificate is not None:
        bound = f"no weights reach more than {certificate.upper:.4f} ({certificate.cells:,} triangles)"
        verdict += f" within {certificate.gap:.4f} of the optimum: {bound}."
    else:
        verdict += " a local optimum: no change of a single weight improves it."
    by_query = [] if result.by is None else [f"{result.by.remark[0].upper()}{result.by.remark[1:]}."]
    constraints = [f"{constraint} holds: {value:.4f}." for constraint, value in result.constraints.items()]
    corrected = [] if result.machine is None else [f"Corrected by the machine's grades: {result.machine.remark}."]
    show(weights, " ".join([verdict, *constraints, *by_query, *corrected]), *tables)


def _weight_of_second(result: "Fusion") -> float:
    """Return the weight along the axis of a sweep."""
    assert result.sweep is not None
    return result.sweep.best.middle()


def _print_bounds(result: "Fusion") -> None:
    from exactrank.cli.terminal import show

    if result.bounds is not None:
        low, high = result.bounds.at(_weight_of_second(result))
        first, last = result.bounds.possible
        show(
            f"For all grades of unjudged documents up to {result.bounds.highest:g} it lies between {low:.4f} and {high:.4f}, and weights of"
            f" {result.systems[1]} from {first:.4f} to {last:.4f} may be the best."
        )


def _json_bounds(result: "Fusion") -> "dict[str, JSONValue]":
    if result.bounds is None:
        return {}
    bounds: dict[str, JSONValue] = {
        "highest_grade": result.bounds.highest,
        "at_optimum": list(result.bounds.at(_weight_of_second(result))),
        "possible": list(result.bounds.possible),
    }
    return {"bounds": bounds}


def _comparison_table(kind: str, title: str, caption: str | None, rows: "tuple[RankingComparison, ...]", result: "Fusion") -> "PlainTable":
    from exactrank.cli.terminal import PlainTable

    table = PlainTable(kind, str(result.measure), "95% interval", "gain", "95% interval", title=title, caption=caption)
    for row in rows:
        gain = "" if row.gain is None else f"{row.gain:+.4f}"
        table.row(row.name, f"{row.mean:.4f}", _range(row.interval), gain, _range(row.gain_interval, sign="+"))
    return table


def _range(ends: tuple[float, float] | None, sign: str = "") -> str:
    return "" if ends is None else f"{ends[0]:{sign}.4f} .. {ends[1]:{sign}.4f}"
