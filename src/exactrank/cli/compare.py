"""``exactrank compare``: methods on the same queries, tuned with the same budget, with statistics and a report.

``exactrank demo`` does so with six methods on artificial data, in under a minute.
"""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from exactrank.cli.cluster import Dask, backend_at
from exactrank.cli.common import Force, Json, Reading, Seed, measure_option, print_json, read, say, tell, write
from exactrank.cli.completion import complete_methods

if TYPE_CHECKING:
    from exactrank.backends.dask import DaskBackend
    from exactrank.compare.compare import Data
    from exactrank.compare.comparison import Comparison
    from exactrank.compare.contender import Contender
    from exactrank.compare.contenders.program import Program
    from exactrank.data.formats.base import ReadOptions

Trials = Annotated[int, typer.Option(min=1, help="Settings that each method may try on validation data, its defaults among them.")]
Seconds = Annotated[float | None, typer.Option(help="Seconds of trials for each method and fold, in place of --trials.")]
Limit = Annotated[
    float | None,
    typer.Option(help="Seconds that any single fit may take, then it is killed. [default: programs --seconds or 3600, others none]"),
]
Strict = Annotated[bool, typer.Option("--strict", help="End with 1 if any fit failed; without it only if no method finished.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Fits at a time, each in a process. [default: one a core]")]
AllThreads = Annotated[int | None, typer.Option(min=1, help="Threads of all fits together. [default: all cores]")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with what is in the folder, to the same numbers.")]
MLflow = Annotated[str | None, typer.Option("--mlflow", help="Log to this MLflow tracking URI, e.g. sqlite:///mlflow.db.")]

SHORT = 300  #: characters of a reason on stderr; the tables have more
QUERIES, TRIALS = 300, 3  #: of the demo
METHODS = ("blend=blend(members='all', bags=5)", "ridge", "directrank", "lambdarank", "lambdamart", "lightgbm")
MEASURES = ("nDCG@10", "nDCG@1", "AP(rel=3)")


def compare(
    data: Annotated[
        list[Path],
        typer.Argument(
            help="Data sets: a file whose queries are dealt into folds, or a folder with Fold1, Fold2, ... (or train, vali, test)."
            " With --parts the files of one data set."
        ),
    ],
    reading: Reading,
    methods: Annotated[
        str,
        typer.Option(
            metavar="METHOD,...",
            autocompletion=complete_methods,
            help="e.g. ridge,'small=lambdamart(leaves=7)',lightgbm; also package.module:Class. exactrank methods lists them.",
        ),
    ] = "",
    out: Annotated[Path | None, typer.Option(help="Folder for the report, tables, models and every fit; runs alone need none.")] = None,
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
            help="DATA are the parts of one data set, as LETOR's S1 to S5: in turn all but two train, the next validates, the last tests.",
        ),
    ] = False,
    folds: Annotated[int, typer.Option(min=3, help="Parts into which the queries of a file are dealt.")] = 5,
    trials: Trials = 1,
    seconds: Seconds = None,
    limit: Limit = None,
    valid: Annotated[Path | None, typer.Option(help="Validation data; DATA is then the training data.")] = None,
    test: Annotated[Path | None, typer.Option(help="Test data; DATA is then the training data.")] = None,
    scores: Annotated[
        list[str] | None, typer.Option(help="NAME=FILE: scores to compare with, one a line of DATA; {dataset} and {fold} may be in FILE.")
    ] = None,
    program: Annotated[
        list[str] | None, typer.Option(help="NAME=COMMAND: a program that takes {train} {valid} {test} and writes {scores}.")
    ] = None,
    baseline: Annotated[str | None, typer.Option(help="The method that others are held against. [default: the first]")] = None,
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
    """Compare methods, tuned on validation queries and tested on the same ones, or runs; with statistics and a report."""
    from exactrank.compare.compare import compare as compared
    from exactrank.compare.contenders.program import Program
    from exactrank.compare.folder import workplace
    from exactrank.compare.race import checked_budget, checked_seconds
    from exactrank.errors import DataError
    from exactrank.measures.parse import parse_measure

    named = [_named(text, "--scores") for text in scores or []] + _named_runs(run or [])
    programs = [Program(*_named(text, "--program")) for text in program or []]
    listed = measure or ["nDCG@10"]
    for name in listed:
        parse_measure(name)
    if mlflow is not None:
        _check_tracking(mlflow, out)
    if named and not methods.strip() and not programs:
        idle = {"--valid": valid, "--test": test, "--seconds": seconds, "--limit": limit, "--workers": workers,
                "--dask": dask, "--resume": resume or None, "--parts": parts or None,
                "--trials": None if trials == 1 else trials, "--folds": None if folds == 5 else folds}  # fmt: skip
        found = _compared_runs(data, named, listed, idle, out, reading, force=force, baseline=baseline, seed=seed, threads=threads)
    else:
        contenders = _contenders(methods, named, programs)
        if out is None:
            raise DataError("methods are fitted, and their models go to a folder; give --out FOLDER")
        checked_budget(trials, seconds)
        checked_seconds("limit", limit)
        with (
            backend_at(dask, None) as backend,
            _interruptible(out),
            workplace(out if dask is None else out.resolve(), resume, force) as place,
        ):
            sets, sources = _datasets(data, valid, test, parts, reading)
            found = compared(
                sets, contenders, listed, folds=folds, trials=trials, seconds=seconds, limit=limit, baseline=baseline, out=place,
                seed=seed, workers=workers, threads=threads, backend=cast("DaskBackend | None", backend), sources=sources,
                command=_command(), progress=not as_json,
            )  # fmt: skip
    _show(found, out, as_json)
    if mlflow is not None and out is not None:
        from exactrank.compare.tracking import log_comparison

        log_comparison(found, out, mlflow)
    _finish(found, strict)


def _check_tracking(uri: str, out: Path | None) -> None:
    from exactrank.compare.tracking import check_tracking
    from exactrank.errors import DataError

    check_tracking(uri)
    if out is None:
        raise DataError("--mlflow logs the files of the report; give --out FOLDER")


def _contenders(methods: str, scores: list[tuple[str, str]], programs: list["Program"]) -> list["Contender"]:
    """All that is compared, in the order of the table."""
    from exactrank.compare.contenders import find_contender
    from exactrank.compare.contenders.scores import ScoresFile
    from exactrank.errors import DataError
    from exactrank.rankers.notation import split_methods

    listed = split_methods(methods) if methods.strip() else []
    if not listed and not programs:
        raise DataError("there is nothing to compare; name --methods to fit, or give --run FILE for each run of DATA")
    return [*map(find_contender, listed), *(ScoresFile(*each) for each in scores), *programs]


def _command() -> str:
    return shlex.join(["exactrank", *sys.argv[1:]])


def _compared_runs(
    data: list[Path],
    runs: list[tuple[str, str]],
    measures: list[str],
    idle: dict[str, Any],
    report: Path | None,
    reading: "ReadOptions",
    *,
    force: bool,
    **settings: Any,
) -> "Comparison":
    """Runs as they are; options that fits would have are refused, for they have no effect."""
    from exactrank.compare.folder import workplace
    from exactrank.compare.runs import compare_runs
    from exactrank.errors import DataError, SettingError

    given = [option for option, value in idle.items() if value is not None]
    if given:
        raise SettingError(f"{', '.join(given)}: nothing is fitted where runs are compared as they are; leave it out, or name --methods")
    if len(data) != 1:
        raise DataError(f"runs are of one data set, but there are {len(data)}; compare them one after the other")
    names = [name for name, _ in runs]
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"two runs are called {name!r}; give one another name, e.g. --run other=FILE")

    def found() -> "Comparison":
        whole = read(data[0], reading)
        return compare_runs(whole, dict(runs), measures, dataset=_name(data[0]), source=str(data[0]), command=_command(), **settings)

    if report is None:
        return found()
    with workplace(report, False, force) as place:
        made = found()
        made.write(place.folder, force=True)
    return made


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("exactrank-demo"),
    resume: Resume = False,
    force: Force = False,
    threads: AllThreads = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Compare six methods on artificial data: the table here, the report in a folder; takes under a minute."""
    from exactrank.compare.compare import compare as compared
    from exactrank.compare.folder import workplace
    from exactrank.data.synthetic import CubicPolynomial

    source = CubicPolynomial(features=15, documents=25, noise=0.5, seed=seed, threads=threads)
    if not as_json:
        typer.echo(f"{QUERIES} artificial queries of {source.documents} documents; {', '.join(METHODS)}", err=True)
    with _interruptible(out), workplace(out, resume, force) as place:
        found = compared(
            {"artificial": source.data(QUERIES)}, METHODS, MEASURES, folds=3, trials=TRIALS, out=place, seed=seed, threads=threads,
            sources={"artificial": repr(source)}, command=_command(), progress=not as_json,
        )  # fmt: skip
    _show(found, out, as_json)
    _finish(found)


def _show(found: "Comparison", report: Path | None, as_json: bool) -> None:
    """The tables, and where the rest is; on stderr a line for each method that failed, and one if not all is finished."""
    from exactrank._support.text import clip
    from exactrank.cli.terminal import width_and_color
    from exactrank.compare.standings import efforts

    if as_json:
        print_json(found.to_json())
    else:
        width, color = width_and_color()
        write(found.to_text(width, color=color))
        if report is not None:
            say(f"{report / 'report.html'}: the report; tables, models and all numbers are beside it")
    for data in found.datasets:
        for effort in efforts(found, data.name):
            if effort.failed:
                tell(f"{effort.method} failed on {data.name}: {clip(effort.failed.splitlines()[0], SHORT)}")
    if not found.complete and report is not None:
        _tell_interrupted(report)


def _finish(found: "Comparison", strict: bool = False) -> None:
    """End with 1 where the comparison was broken off, where no method finished on any data set, and if ``strict`` where any fit failed."""
    from exactrank.compare.standings import efforts

    failed = [bool(effort.failed) for data in found.datasets for effort in efforts(found, data.name)]
    if not found.complete or all(failed) or (strict and any(failed)):
        raise typer.Exit(1)


@contextmanager
def _interruptible(report: Path) -> Iterator[None]:
    """Ctrl-C before or after the fits ends with a line and 1, too."""
    try:
        yield
    except KeyboardInterrupt:
        _tell_interrupted(report)
        raise typer.Exit(1) from None


def _tell_interrupted(report: Path) -> None:
    left = f"{report} holds what is finished, and the same command with --resume goes on" if report.exists() else "nothing was written"
    tell(f"interrupted; {left}")


def _named(text: str, option: str) -> tuple[str, str]:
    from exactrank.errors import DataError

    name, equals, value = text.partition("=")
    if not name.strip() or not equals or not value.strip():
        raise DataError(f"{option} {text!r} is not NAME=VALUE; write e.g. {option} bm25=bm25.txt")
    return name.strip(), value.strip()


def _named_runs(texts: list[str]) -> list[tuple[str, str]]:
    """The name and the path of each run: as they are given, or the name by the file."""
    from exactrank.compare.runs import run_names

    plain = [text for text in texts if "=" not in text or Path(text).exists()]
    names = dict(zip(plain, run_names(plain), strict=True))
    return [(names[text], text) if text in names else _named(text, "--run") for text in texts]


def _datasets(
    paths: list[Path], valid: Path | None, test: Path | None, parts: bool, options: "ReadOptions"
) -> "tuple[dict[str, Data], dict[str, str]]":
    """The data sets by their names, and where each comes from."""
    from exactrank.data.folds import Fold, read_folds, rotate_parts
    from exactrank.errors import DataError

    if (valid is None) != (test is None):
        raise DataError("--valid and --test go together: give both, or neither to have the queries of DATA dealt into folds")
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
    found: dict[str, Any] = {}
    for path in paths:
        if _name(path) in found:
            raise DataError(f"two data sets are called {_name(path)}; rename one, or pass --parts if they are parts of one data set")
        if path.is_dir():
            found[_name(path)] = read_folds(path, keep_missing=options.keep_missing, threads=options.threads)
        else:
            found[_name(path)] = read(path, options)
    return found, {_name(path): str(path) for path in paths}


def _name(path: Path) -> str:
    """What a data set is called: its file without suffixes, or its folder."""
    return path.resolve().name.partition(".")[0] if path.is_file() else path.resolve().name
