"""Methods compared on the same queries with the same budget: `er.compare`.

For each data set and each division of its queries (`exactrank.compare.divisions`) every method is tuned on validation data, fitted with
the best settings, and measured on test data, each fit in a process of its own (`schedule`, `workers`, `fitting`). Tables, statistics
(`standings`) and the report are made from the `results`.
"""

import os
import platform
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version

from exactrank import __version__
from exactrank._support.libraries import library
from exactrank._support.progress_bars import ProgressLine, progress_listener
from exactrank.compare.cluster import Cluster
from exactrank.compare.comparison import Comparison
from exactrank.compare.contender import Contender
from exactrank.compare.contenders import contenders_of
from exactrank.compare.divisions import cache_folds, divide, with_machine
from exactrank.compare.folder import comparison_folder
from exactrank.compare.results import RECORD, MethodSummary, Results, read_record
from exactrank.compare.schedule import ProgressCallback, Schedule, checked_budget, checked_seconds, workers_and_threads
from exactrank.data.folds import Fold
from exactrank.data.ranking_data import RankingData, check_data
from exactrank.errors import DataError, InterruptedWarning
from exactrank.measures.base import Measure
from exactrank.measures.parse import listed_measures, parse_measure
from exactrank.models.estimators.adapter import Estimator

Data = RankingData | Sequence[Fold] | Fold
Method = str | Contender | Estimator
LIBRARIES = ("numpy", "scipy", "scikit-learn", "lightgbm", "xgboost", "xgboost-cpu", "catboost")

#: What fits in other processes and the report need; looked for before the first fit.
REPORT_LIBRARIES = ("jinja2", "latex2mathml", "cloudpickle")


def compare(
    data: Data | Mapping[str, Data],
    methods: Sequence[Method],
    measures: Sequence[str | Measure] | str | Measure = "nDCG@10",
    *,
    folds: int = 5,
    trials: int = 1,
    seconds: float | None = None,
    limit: float | None = None,
    machine: RankingData | None = None,
    baseline: str | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    force: bool = False,
    seed: int = 0,
    workers: int | None = None,
    threads: int | None = None,
    backend: Cluster | None = None,
    sources: Mapping[str, str] | None = None,
    command: str = "",
    progress: bool | ProgressCallback = False,
) -> Comparison:
    """Tune, fit and test every method on the same queries.

    Args:
        data: A `RankingData`, whose queries are divided into ``folds``; one `Fold`, or several; or a mapping of names to these.
        methods: Names such as ``"lambdamart"``, ``"small=lambdamart(leaves=7)"`` or ``"lightgbm"``; rankers; objects with
            ``fit`` and ``predict``, such as ``lightgbm.LGBMRanker()`` or a scikit-learn `Pipeline`; contenders of your own.
        measures: The first is trained and tuned on; all are reported.
        folds: Number of parts that the queries of a `RankingData` are divided into.
        trials: Number of settings that each method may try on each division, including its defaults.
        seconds: Seconds for the trials of each method on each division instead; with ``trials`` whichever ends first.
        limit: Maximum number of seconds of a single fit, trial or final; it is then killed with all its processes, and has failed. By
            default our rankers and classes have no limit, and a program has ``seconds``, or an hour without them.
        machine: Grades of a machine, such as a language model, with the features: of all queries that are tested, and of further ones.
            Test means and differences are then corrected for its errors. Each division's model also ranks the further queries, which no
            model is trained on; the machine's grades of other queries of ``data`` are not used.
        baseline: The method with which the others are compared; by default the first.
        out: A folder for fits, models, tables and the report, for one run at a time; without one no files are kept.
        resume: Continue the comparison in ``out``: finished fits are not repeated.
        force: Begin again in ``out``: the files of an earlier comparison are deleted or replaced, all others stay.
        seed: Seed of the division, the draws of settings, and the methods.
        workers: Number of fits at a time; by default as many as there are threads.
        threads: Number of threads in all; by default every core.
        backend: A [`DaskBackend`][exactrank.DaskBackend], whose workers then do the fits; without one this machine does. ``out`` must be
            a folder that all workers see under the same path.
        sources: Where each data set comes from, for the report.
        command: How the comparison was called, for the report.
        progress: True shows a progress bar in a terminal or a notebook; a function is called with the `Advance` a few times per second.

    Ctrl-C ends it early, with a warning; the finished fits are compared, and ``complete`` is False.
    """
    for name in REPORT_LIBRARIES:
        library(name, "comparisons", "report")
    contenders = _contenders(methods, baseline)
    named = {str(measure): parse_measure(measure) for measure in listed_measures(measures)}
    sets = data if isinstance(data, Mapping) else {"data": data}
    if not sets:
        raise DataError("there is no data; give a RankingData, folds, or a mapping of names to these")
    if machine is not None:
        check_data(machine, name="machine")
        if len(sets) > 1:
            raise DataError(f"machine has the grades of one data set, and there are {len(sets)}; compare them one after the other")
    budget = checked_budget(trials, seconds)
    checked_seconds("limit", limit)
    at_a_time, threads_per_fit = workers_and_threads(workers, threads, backend)
    start = time.monotonic()
    with comparison_folder(out, resume, force) as place:
        record = place.folder / RECORD
        earlier = read_record(Results, record).seconds if record.exists() else 0.0  # of earlier runs of the same comparison
        datasets = tuple(
            divide(name, queries, folds, seed, place.scratch)
            if isinstance(queries, RankingData)
            else cache_folds(name, [queries] if isinstance(queries, Fold) else queries, place.scratch)
            for name, queries in sets.items()
        )
        summaries = tuple(dataset.summary((sources or {}).get(dataset.name, "")) for dataset in datasets)
        if machine is not None:
            dataset, summary = with_machine(datasets[0], machine, place.scratch, seed)
            datasets, summaries = (dataset,), (replace(summaries[0], machine=summary),)
        schedule = Schedule(datasets, contenders, named, budget, seed, at_a_time, threads_per_fit, place.folder, limit, cluster=backend)
        with progress_listener(progress, "compare", ProgressLine.of) as report:
            method_runs = schedule.run(report)
        fits = tuple(run.fit for run in method_runs if run.fit is not None)
        comparison = Comparison(
            summaries,
            tuple(
                MethodSummary(method.name, method.about, repr(method), {name: str(choice) for name, choice in method.space.items()})
                for method in contenders
            ),
            {name: repr(measure) for name, measure in named.items()},
            baseline or contenders[0].name,
            fits,
            {"command": command} | _description(schedule, folds),
            len(fits) == len(method_runs),
            earlier + time.monotonic() - start,
        )
        if out is not None:
            comparison.write(place.folder, force=True)
    if not comparison.complete:
        warnings.warn("the comparison was interrupted; it holds the finished fits", InterruptedWarning, stacklevel=2)
    return comparison


def _contenders(methods: Sequence[Method], baseline: str | None) -> tuple[Contender, ...]:
    if isinstance(methods, str) or not methods:
        raise DataError("name at least one method in a list, e.g. ['directrank', 'lambdamart']")
    contenders = contenders_of(methods)
    names = [contender.name for contender in contenders]
    if baseline is not None and baseline not in names:
        raise DataError(f"the baseline {baseline!r} is not among the methods; they are {', '.join(names)}")
    return contenders


def _description(schedule: Schedule, folds: int) -> dict[str, object]:
    """Return everything that is needed to run the comparison again."""
    versions: dict[str, object] = {}
    for name in REPORT_LIBRARIES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return {
        "seed": schedule.seed,
        "trials": schedule.budget.trials,
        "seconds": schedule.budget.seconds,
        "limit": schedule.limit,
        "folds": folds,
        "workers": schedule.workers,
        "threads per fit": schedule.threads,
        "exactrank": __version__,
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "date": time.strftime("%Y-%m-%d %H:%M:%S%z"),
    } | versions
