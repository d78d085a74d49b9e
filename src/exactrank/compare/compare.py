"""Methods compared on the same queries with the same budget: `xr.compare`.

For each data set and each division of its queries (`exactrank.compare.divisions`) every method is tuned on validation
data, fitted with the settings that did best, and measured on test data, each fit in a process of its own (`race`,
`workers`, `fitting`). The result (`results`) is what tables, statistics (`standings`) and the report are made of.
"""

import os
import platform
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from exactrank import __version__
from exactrank.compare.comparison import Comparison
from exactrank.compare.contender import Contender
from exactrank.compare.contenders import as_contender
from exactrank.compare.divisions import dealt, given
from exactrank.compare.folder import workplace
from exactrank.compare.race import Race, Told, checked_budget, checked_seconds, silent, workers_and_threads
from exactrank.compare.results import RECORD, MethodSummary, Results, read_record
from exactrank.data.folds import Fold
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError
from exactrank.measures.base import Measure
from exactrank.measures.parse import parse_measure
from exactrank.rankers.base import Ranker

Data = RankingData | Sequence[Fold] | Fold
Method = str | Ranker | Contender
LIBRARIES = ("numpy", "scipy", "scikit-learn", "lightgbm", "xgboost", "xgboost-cpu", "catboost")


def compare(
    data: Data | Mapping[str, Data],
    methods: Sequence[Method],
    measures: Sequence[str | Measure] | str | Measure = "nDCG@10",
    *,
    folds: int = 5,
    trials: int = 1,
    seconds: float | None = None,
    limit: float | None = None,
    baseline: str | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    force: bool = False,
    seed: int = 0,
    workers: int | None = None,
    threads: int | None = None,
    sources: Mapping[str, str] | None = None,
    command: str = "",
    told: Told = silent,
) -> Comparison:
    """Tune, fit and test every method on the same queries.

    Args:
        data: A `RankingData`, whose queries are dealt into ``folds``; one `Fold`, or several; or such by their names.
        methods: Names such as ``"lambdamart"``, ``"small=lambdamart(leaves=7)"`` or ``"lightgbm"``; rankers; contenders of your own.
        measures: The first is trained and tuned on; all are reported.
        folds: How many parts the queries of a `RankingData` are dealt into.
        trials: Settings that each method may try on each division, its defaults among them.
        seconds: Seconds of trials that each method is given on each division instead; with ``trials`` whichever ends first.
        limit: Seconds that any single fit may take, trial or final; it is then killed with all that it started, and has failed. By
            default our rankers and classes have no limit, and a program has ``seconds``, or an hour without them.
        baseline: The method that others are held against; by default the first.
        out: A folder for fits, models, tables and the report, of one run at a time; without one nothing is kept.
        resume: Go on with what is in ``out``: fits that are there are not done again.
        force: Begin again in ``out``: what an earlier comparison left there is deleted, its files are replaced, all else stays.
        seed: Of the division, the draws of settings, and the methods.
        workers: Fits at a time; by default as many as there are threads.
        threads: In all; by default every core.
        sources: Where each data set comes from, for the report.
        command: How the comparison was called, for the report.
        told: Hears how far it has come.

    Ctrl-C ends it early; what is finished is compared, and ``complete`` is False.
    """
    contenders = _contenders(methods, baseline)
    listed = [measures] if isinstance(measures, str | Measure) else list(measures)
    if not listed:
        raise DataError("name at least one measure, e.g. nDCG@10")
    named = {str(measure): parse_measure(measure) for measure in listed}
    sets = data if isinstance(data, Mapping) else {"data": data}
    if not sets:
        raise DataError("there is no data; give a RankingData, folds, or such by their names")
    budget, most = checked_budget(trials, seconds), checked_seconds("limit", limit)
    at_a_time, each = workers_and_threads(workers, threads)
    begun = time.monotonic()
    with workplace(out, resume, force) as place:
        record = place.folder / RECORD
        earlier = read_record(Results, record).seconds if record.exists() else 0.0  # that earlier runs of the same comparison took
        datasets = tuple(
            dealt(name, own, folds, seed, place.scratch)
            if isinstance(own, RankingData)
            else given(name, [own] if isinstance(own, Fold) else list(own), place.scratch)
            for name, own in sets.items()
        )
        summaries = tuple(dataset.summary((sources or {}).get(dataset.name, "")) for dataset in datasets)
        race = Race(datasets, contenders, named, budget, seed, at_a_time, each, place.folder, most)
        heats = race.run(told)
        fits = tuple(heat.fit for heat in heats if heat.fit is not None)
        found = Comparison(
            summaries,
            tuple(
                MethodSummary(own.name, own.about, repr(own), {name: str(choice) for name, choice in own.space.items()})
                for own in contenders
            ),
            {name: repr(measure) for name, measure in named.items()},
            baseline or contenders[0].name,
            fits,
            {"command": command} | _how(race, folds),
            len(fits) == len(heats),
            earlier + time.monotonic() - begun,
        )
        if out is not None:
            found.write(place.folder, force=True)
    return found


def _contenders(methods: Sequence[Method], baseline: str | None) -> tuple[Contender, ...]:
    if isinstance(methods, str) or not methods:
        raise DataError("name at least one method in a list, e.g. ['directrank', 'lambdamart']")
    found = tuple(as_contender(method) for method in methods)
    names = [contender.name for contender in found]
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"two methods are called {name!r}; give one another name, e.g. 'other={name}(...)'")
    if baseline is not None and baseline not in names:
        raise DataError(f"the baseline {baseline!r} is not among the methods; they are {', '.join(names)}")
    return found


def _how(race: Race, folds: int) -> dict[str, Any]:
    """What it takes to run the comparison again."""
    versions = {}
    for name in LIBRARIES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return {
        "seed": race.seed,
        "trials": race.budget.trials,
        "seconds": race.budget.seconds,
        "limit": race.limit,
        "folds": folds,
        "workers": race.workers,
        "threads a fit": race.threads,
        "exactrank": __version__,
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "date": time.strftime("%Y-%m-%d %H:%M:%S%z"),
    } | versions
