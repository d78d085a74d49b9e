"""``exactrank compare``: methods on the same queries, tuned with the same budget, with statistics and a report.

``exactrank demo`` does so with five methods, and LightGBM if it is installed, on artificial data.
"""

import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exactrank.cli.cluster import Dask, cluster_at
from exactrank.cli.common import Force, Json, Machine, Reading, Seed, measure_option, print_json, print_line, print_note, print_text, read
from exactrank.cli.names import complete_methods

if TYPE_CHECKING:
    from exactrank.compare.compare import Data
    from exactrank.compare.comparison import Comparison
    from exactrank.compare.contender import Contender
    from exactrank.compare.contenders.program import Program
    from exactrank.data.formats.base import ReadOptions

Trials = Annotated[int, typer.Option(min=1, help="Number of settings that each method may try on validation data, including its defaults.")]
Seconds = Annotated[float | None, typer.Option(help="Seconds of trials per method and fold, in place of --trials.")]
Limit = Annotated[
    float | None,
    typer.Option(help="Kill a fit after this number of seconds. [default: for programs --seconds or 3600, for others none]"),
]
Strict = Annotated[bool, typer.Option("--strict", help="End with 1 if any fit failed; without it only if no method finished.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Fits at a time, each in a process. [default: one per core]")]
AllThreads = Annotated[int | None, typer.Option(min=1, help="Threads of all fits together. [default: all cores]")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue with the fits in the folder; the numbers stay the same.")]
MLflow = Annotated[str | None, typer.Option("--mlflow", help="Log to this MLflow tracking URI, e.g. sqlite:///mlflow.db.")]

SHORT = 300  #: characters of an error on stderr; the tables show more
QUERIES, TRIALS = 300, 3  #: of the demo
METHODS = ("blend=blend(members='all', bags=5)", "ridge", "directrank", "lambdarank", "lambdamart")
PEER = "lightgbm"  #: another method of the demo, if it is installed
MEASURES = ("nDCG@10", "nDCG@1", "AP(rel=3)")


def compare(
    data: Annotated[
        list[Path],
        typer.Argument(
            help="Data sets: a file whose queries are divided into folds, or a folder with Fold1, Fold2, ... (or train, vali, test)."
            " With --parts the files of one data set."
        ),
    ],
    reading: Reading,
    methods: Annotated[
        str,
        typer.Option(
            metavar="METHOD,...",
            autocompletion=complete_methods,
            help="Methods to fit, e.g. ridge,'small=lambdamart(leaves=7)',lightgbm, package.module:Class. exactrank methods lists them.",
        ),
    ] = "",
    out: Annotated[
        Path | None, typer.Option(help="Folder for the report, tables, models and every fit; not needed for runs alone.")
    ] = None,
    run: Annotated[
        list[str] | None, typer.Option(help="TREC run of DATA, or NAME=FILE; repeatable. Without methods runs are compared as they are.")
    ] = None,
    measure: Annotated[
        list[str] | None,
        measure_option("The first is trained and tuned on, all are reported; repeatable. [default: nDCG@10]"),
    ] = None,
    parts: Annotated[
        bool,
        typer.Option(
            "--parts",
            help="DATA are the parts of one data set, as LETOR's S1 to S5: in each turn two parts validate and test, the others train.",
        ),
    ] = False,
    folds: Annotated[int, typer.Option(min=3, help="Parts into which the queries of a file are divided.")] = 5,
    trials: Trials = 1,
    seconds: Seconds = None,
    limit: Limit = None,
    valid: Annotated[Path | None, typer.Option(help="Validation data; DATA is then the training data.")] = None,
    test: Annotated[Path | None, typer.Option(help="Test data; DATA is then the training data.")] = None,
    scores: Annotated[
        list[str] | None, typer.Option(metavar="NAME=FILE", help="Scores, one per line of DATA; FILE may contain {dataset} and {fold}.")
    ] = None,
    program: Annotated[
        list[str] | None, typer.Option(metavar="NAME=COMMAND", help="A program that takes {train} {valid} {test} and writes {scores}.")
    ] = None,
    machine: Machine = None,
    baseline: Annotated[str | None, typer.Option(help="The method that others are compared with. [default: the first]")] = None,
    resume: Resume = False,
    force: Force = False,
    workers: Workers = None,
    threads: AllThreads = None,
    dask: Dask = None,
    seed: Seed = 0,
    strict: Strict = False,
    mlflow: MLflow = None,
    as_json: Json = False,
) -> None:
    """Compare methods that are tuned and tested on the same queries, or runs, with statistics and a report."""
    from exactrank.compare.compare import compare as compare_methods
    from exactrank.compare.contenders.program import Program
    from exactrank.compare.folder import comparison_folder
    from exactrank.compare.schedule import checked_budget, checked_seconds
    from exactrank.errors import DataError
    from exactrank.measures.parse import parse_measure

    rankings = [_name_and_value(text, "--scores") for text in scores or []] + _names_of_runs(run or [])
    programs = [Program(*_name_and_value(text, "--program")) for text in program or []]
    measures = measure or ["nDCG@10"]
    for name in measures:
        parse_measure(name)
    if mlflow is not None:
        _check_tracking(mlflow, out)
    if rankings and not methods.strip() and not programs:
        idle = {"--valid": valid, "--test": test, "--seconds": seconds, "--limit": limit, "--workers": workers,
                "--dask": dask, "--resume": resume or None, "--parts": parts or None,
                "--trials": None if trials == 1 else trials, "--folds": None if folds == 5 else folds}  # fmt: skip
        comparison = _compare_runs(data, rankings, measures, idle, out, reading, force, baseline, seed, threads, machine)
    else:
        contenders = _contenders(methods, rankings, programs)
        if out is None:
            raise DataError("methods are fitted, and their models go to a folder; give --out FOLDER")
        checked_budget(trials, seconds)
        checked_seconds("limit", limit)
        with (
            cluster_at(dask) as backend,
            _interruptible(out),
            comparison_folder(out if dask is None else out.resolve(), resume, force) as place,
        ):
            sets, sources = _datasets(data, valid, test, parts, reading)
            comparison = compare_methods(
                sets, contenders, measures, folds=folds, trials=trials, seconds=seconds, limit=limit, baseline=baseline, out=place,
                machine=None if machine is None else read(machine, reading),
                seed=seed, workers=workers, threads=threads, backend=backend, sources=sources,
                command=_command(), progress=not as_json,
            )  # fmt: skip
    _show(comparison, out, as_json)
    if mlflow is not None and out is not None:
        from exactrank.compare.tracking import log_comparison

        log_comparison(comparison, out, mlflow)
    _finish(comparison, strict)


def _check_tracking(uri: str, out: Path | None) -> None:
    from exactrank.compare.tracking import check_tracking
    from exactrank.errors import DataError

    check_tracking(uri)
    if out is None:
        raise DataError("--mlflow logs the files of the report; give --out FOLDER")


def _contenders(methods: str, scores: list[tuple[str, str]], programs: list["Program"]) -> list["Contender"]:
    """Return the contenders, in the order of the table."""
    from exactrank.compare.contenders import find_contender
    from exactrank.compare.contenders.scores import ScoresFile
    from exactrank.errors import DataError
    from exactrank.rankers.notation import split_methods

    names = split_methods(methods) if methods.strip() else []
    if not names and not programs:
        raise DataError("there is nothing to compare; name --methods to fit, or give --run FILE for each run of DATA")
    return [*map(find_contender, names), *(ScoresFile(*pair) for pair in scores), *programs]


def _command() -> str:
    return shlex.join(["exactrank", *sys.argv[1:]])


def _compare_runs(
    data: list[Path],
    runs: list[tuple[str, str]],
    measures: list[str],
    idle: Mapping[str, object],
    report: Path | None,
    reading: "ReadOptions",
    force: bool,
    baseline: str | None,
    seed: int,
    threads: int | None,
    machine: Path | None,
) -> "Comparison":
    """Compare runs without fitting anything; ``idle`` options, which have an effect on fits only, are refused."""
    from exactrank.compare.folder import comparison_folder
    from exactrank.compare.runs import compare_runs
    from exactrank.errors import DataError, SettingError

    refused = [option for option, value in idle.items() if value is not None]
    if refused:
        raise SettingError(f"{', '.join(refused)}: nothing is fitted where runs are compared as they are; leave it out, or name --methods")
    if len(data) != 1:
        raise DataError(f"runs are of one data set, but there are {len(data)}; compare them one after the other")
    names = [name for name, _ in runs]
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"two runs are called {name!r}; give one another name, e.g. --run other=FILE")

    with nullcontext() if report is None else comparison_folder(report, False, force) as place:
        comparison = compare_runs(
            read(data[0], reading), dict(runs), measures, machine=None if machine is None else read(machine, reading),
            baseline=baseline, seed=seed, threads=threads, dataset=_name(data[0]),
            source=str(data[0]), command=_command(),
        )  # fmt: skip
        if place is not None:
            comparison.write(place.folder, force=True)
    return comparison


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("exactrank-demo"),
    resume: Resume = False,
    force: Force = False,
    threads: AllThreads = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Compare five methods, and LightGBM if it is installed, on artificial data: prints a table and writes a report into a folder."""
    from exactrank.compare.compare import compare as compare_methods
    from exactrank.compare.folder import comparison_folder
    from exactrank.data.synthetic import CubicPolynomial

    methods = METHODS if find_spec(PEER) is None else (*METHODS, PEER)
    source = CubicPolynomial(features=15, documents=25, noise=0.5, seed=seed, threads=threads)
    if not as_json:
        typer.echo(f"{QUERIES} artificial queries of {source.documents} documents; {', '.join(methods)}", err=True)
    with _interruptible(out), comparison_folder(out, resume, force) as place:
        comparison = compare_methods(
            {"artificial": source.data(QUERIES)}, methods, MEASURES, folds=3, trials=TRIALS, out=place, seed=seed, threads=threads,
            sources={"artificial": repr(source)}, command=_command(), progress=not as_json,
        )  # fmt: skip
    _show(comparison, out, as_json)
    _finish(comparison)


def _show(comparison: "Comparison", report: Path | None, as_json: bool) -> None:
    """Print the tables and the path of the report; on stderr a line for each method that failed, and a line about an interruption."""
    from exactrank._support.text import clip
    from exactrank.cli.terminal import width_and_color
    from exactrank.compare.standings import efforts

    if as_json:
        print_json(comparison.to_json())
    else:
        width, color = width_and_color()
        print_text(comparison.to_text(width, color=color))
        if report is not None:
            print_line(f"{report / 'report.html'}: the report; tables, models and all numbers are beside it")
    for data in comparison.datasets:
        for effort in efforts(comparison, data.name):
            if effort.failed:
                print_note(f"{effort.method} failed on {data.name}: {clip(effort.failed.splitlines()[0], SHORT)}")
    if not comparison.complete and report is not None:
        _report_interruption(report)


def _finish(comparison: "Comparison", strict: bool = False) -> None:
    """Exit with 1 if the comparison was interrupted or no method finished on any data set, or, if ``strict``, if any fit failed."""
    from exactrank.compare.standings import efforts

    failed = [bool(effort.failed) for data in comparison.datasets for effort in efforts(comparison, data.name)]
    if not comparison.complete or all(failed) or (strict and any(failed)):
        raise typer.Exit(1)


@contextmanager
def _interruptible(report: Path) -> Iterator[None]:
    """Report Ctrl-C before or after the fits as one during them."""
    try:
        yield
    except KeyboardInterrupt:
        _report_interruption(report)
        raise typer.Exit(1) from None


def _report_interruption(report: Path) -> None:
    state = f"{report} holds the finished fits; the same command with --resume continues" if report.exists() else "nothing was written"
    print_note(f"interrupted; {state}")


def _name_and_value(text: str, option: str) -> tuple[str, str]:
    from exactrank.errors import DataError

    name, equals, value = text.partition("=")
    if not name.strip() or not equals or not value.strip():
        raise DataError(f"{option} {text!r} is not NAME=VALUE; write e.g. {option} bm25=bm25.txt")
    return name.strip(), value.strip()


def _names_of_runs(texts: list[str]) -> list[tuple[str, str]]:
    """Return the name and the path of each run; a run that is given without a name is named by its file."""
    from exactrank.compare.runs import run_names

    plain = [text for text in texts if "=" not in text or Path(text).exists()]
    names = dict(zip(plain, run_names(plain), strict=True))
    return [(names[text], text) if text in names else _name_and_value(text, "--run") for text in texts]


def _datasets(
    paths: list[Path], valid: Path | None, test: Path | None, parts: bool, options: "ReadOptions"
) -> "tuple[dict[str, Data], dict[str, str]]":
    """Return the data sets by their names, and the source of each."""
    from exactrank.data.folds import Fold, read_folds, rotate_parts
    from exactrank.errors import DataError

    if (valid is None) != (test is None):
        raise DataError("--valid and --test go together: give both, or neither to have the queries of DATA divided into folds")
    if parts:
        if valid is not None:
            raise DataError("--parts divides DATA into training, validation and test data; leave out --valid and --test")
        name = paths[0].resolve().parent.name or "parts"
        return {name: rotate_parts(paths, options)}, {name: ", ".join(map(str, paths))}
    if valid is not None and test is not None:
        if len(paths) != 1:
            raise DataError(f"--valid and --test go with one training set, but there are {len(paths)}")
        fold = Fold("given", *(read(path, options) for path in (paths[0], valid, test)))
        return {_name(paths[0]): fold}, {_name(paths[0]): f"{paths[0]}, {valid}, {test}"}
    sets: dict[str, Data] = {}
    for path in paths:
        if _name(path) in sets:
            raise DataError(f"two data sets are called {_name(path)}; rename one, or pass --parts if they are parts of one data set")
        if path.is_dir():
            sets[_name(path)] = read_folds(path, keep_missing=options.keep_missing, threads=options.threads)
        else:
            sets[_name(path)] = read(path, options)
    return sets, {_name(path): str(path) for path in paths}


def _name(path: Path) -> str:
    """Return the name of a data set: its file without suffixes, or its folder."""
    return path.resolve().name.partition(".")[0] if path.is_file() else path.resolve().name
