"""Runs and scores compared as they are, with the statistics and the report of a comparison: `er.compare_runs`.

Nothing is fitted: each run is measured as by `er.evaluate`, on the judged documents and on the others that it retrieved, which
count as not relevant and keep their ranks, as in trec_eval. So the values of a run do not depend on the other runs.
"""

import os
import platform
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from exactrank import __version__
from exactrank._support.arguments import checked_list
from exactrank._support.arrays import Rows
from exactrank._support.files import checked_path
from exactrank.compare.comparison import Comparison
from exactrank.compare.corrected import summarize_machine
from exactrank.compare.results import RANKS, DataSummary, Fit, FoldSummary, MachineSummary, MethodSummary, PartSummary
from exactrank.data.formats.trec import RetrievalRun, scores_of
from exactrank.data.ranking_data import RankingData, check_data, checksum
from exactrank.data.scores import read_scores
from exactrank.errors import DataError
from exactrank.measures.base import Measure
from exactrank.measures.evaluate import Evaluation, counts_all, measure_scores, named_measures
from exactrank.measures.machine_grades import further_queries, places_of_queries
from exactrank.measures.parse import parse_measure

Ranking = RetrievalRun | str | os.PathLike[str] | npt.ArrayLike
WHOLE = "all queries"  #: the only division


def compare_runs(
    data: RankingData,
    runs: Mapping[str, Ranking] | Sequence[str | os.PathLike[str]],
    measures: Sequence[str | Measure] | str | Measure = "nDCG@10",
    *,
    preset: str | None = None,
    complete: bool | None = None,
    machine: RankingData | tuple[RankingData, Mapping[str, Ranking]] | None = None,
    baseline: str | None = None,
    dataset: str = "data",
    source: str = "",
    command: str = "",
    seed: int = 0,
    threads: int | None = None,
) -> Comparison:
    """Compare runs on the same judged queries, with intervals, paired tests and letters of significance.

    ``runs`` maps names to what [`er.read_run`][exactrank.read_run] gives, paths of runs or of files with one score per line, or scores of
    the rows of ``data``; a list is named by its paths. ``data`` has the judgments, e.g. ``er.read("test.qrels")``. ``measures``,
    ``preset`` and ``complete`` are as in [`er.evaluate`][exactrank.evaluate], and so are the numbers. The result prints as a table, and
    writes the report.

    ``machine`` has the grades of a machine, such as a language model, for the queries of ``data`` and for more; beside a mapping of names
    to rankings of its documents, where the ``runs`` do not hold these. Means and differences are then corrected for its errors, as by
    `er.evaluate`.

    >>> data = RankingData.from_arrays(None, [1, 0, 0, 1], qid=[1, 1, 2, 2], docid=["a", "b", "a", "b"])
    >>> comparison = compare_runs(data, {"good": [2, 1, 1, 2], "bad": [1, 2, 2, 1]}, "RR")
    >>> [fit.test["RR"] for fit in comparison.fits]
    [(1.0, 1.0), (0.5, 0.5)]
    """
    check_data(data)
    start, rankings = time.monotonic(), _by_name(runs)
    if baseline is not None and baseline not in rankings:
        raise DataError(f"the baseline {baseline!r} is not among the runs; they are {', '.join(rankings)}")
    reported = named_measures(measures, preset)
    needed = {f"nDCG@{k}": parse_measure(f"nDCG@{k}", preset) for k in RANKS} | reported
    graded, machine_runs = _machine_grades(machine, rankings)
    summary, places = _summary_and_places(data, graded, seed)
    measured = partial(measure_scores, measures=list(needed.values()), complete=counts_all(preset, complete), threads=threads)
    fits, methods = [], []
    for name, ranking in rankings.items():
        rows, scores, about = _scores(data, ranking)
        settings: dict[str, object] = {"path": str(ranking)} if isinstance(ranking, str | os.PathLike) else {}
        settings["unjudged"] = rows.n_documents - data.n_documents
        result = measured(rows, scores)
        by_machine = {} if graded is None else _values(measured(*_scores(graded, machine_runs[name])[:2]), needed, places)
        remarks = {key: result.remarks[str(measure)] for key, measure in reported.items() if str(measure) in result.remarks}
        fits.append(Fit(dataset, WHOLE, name, settings, test=_values(result, needed), machine=by_machine, remarks=remarks))
        methods.append(MethodSummary(name, about, name, {}))
    grades, counts = np.unique(data.y, return_counts=True)
    weight = None if data.query_weight is None else tuple(data.query_weight.tolist())
    empty, test = PartSummary(0, 0), PartSummary(data.n_queries, data.n_documents)
    fold = FoldSummary(WHOLE, empty, empty, test, tuple(map(str, data.qid.tolist())), weight, checksum(data))
    by_grade = {f"{grade:g}": int(count) for grade, count in zip(grades, counts, strict=True)}
    options = {"command": command, "preset": preset, "complete": complete, "seed": seed}
    versions = {"exactrank": __version__, "python": platform.python_version(), "date": time.strftime("%Y-%m-%d %H:%M:%S%z")}
    return Comparison(
        (DataSummary(dataset, source, data.n_queries, data.n_documents, data.n_features, by_grade, (fold,), summary),),
        tuple(methods),
        {name: repr(measure) for name, measure in reported.items()},
        baseline or next(iter(rankings)),
        tuple(fits),
        {name: value for name, value in options.items() if value not in (None, "")} | versions,
        True,
        time.monotonic() - start,
    )


def _values(evaluation: Evaluation, measures: Mapping[str, Measure], places: Rows | None = None) -> dict[str, tuple[float, ...]]:
    """Return the values of queries, or of those at ``places``, by the names of the measures, two of which may stand for the same one."""
    queries = slice(None) if places is None else places
    return {name: tuple(evaluation[str(measure)].values[queries].tolist()) for name, measure in measures.items()}


def _summary_and_places(data: RankingData, machine: RankingData | None, seed: int) -> tuple[MachineSummary | None, Rows | None]:
    """Return the summary of a machine's grades, and the places in it of the queries of ``data`` and then of all further ones."""
    if machine is None:
        return None, None
    is_further = further_queries(data, machine)
    places = np.append(places_of_queries(data, machine), np.flatnonzero(is_further))
    return summarize_machine(data, machine, is_further, seed=seed), places


def _machine_grades(
    machine: RankingData | tuple[RankingData, Mapping[str, Ranking]] | None, runs: Mapping[str, Ranking]
) -> tuple[RankingData | None, Mapping[str, Ranking]]:
    """Return the machine's grades, and a ranking of its documents for each of the ``runs``."""
    graded, machine_runs = machine if isinstance(machine, tuple) else (machine, runs)
    if graded is None:
        return None, runs
    check_data(graded, name="machine")
    lacking = [name for name in runs if name not in machine_runs]
    if lacking:
        raise DataError(f"machine has no ranking called {lacking[0]!r}; give one of its documents for each of {', '.join(runs)}")
    arrays = [name for name in runs if not isinstance(machine_runs[name], RetrievalRun | str | os.PathLike)]
    if arrays and machine_runs is runs:
        raise DataError(f"{arrays[0]!r} has scores of the rows of data alone; give machine=(grades, {{{arrays[0]!r}: scores of its rows}})")
    return graded, machine_runs


def _scores(data: RankingData, ranking: Ranking) -> tuple[RankingData, npt.ArrayLike, str]:
    """Return the documents of a ranking, their scores, and a line about their source."""
    if isinstance(ranking, RetrievalRun):
        return *scores_of(data, ranking), f"The run {ranking.tag!r}"
    if isinstance(ranking, str | os.PathLike):
        return *read_scores(ranking, data), f"Scores from {os.fspath(ranking)}"
    return data, ranking, "Scores as given"


def run_names(paths: Sequence[str | os.PathLike[str]]) -> list[str]:
    """Return the names of runs: their files without suffixes, or the whole paths if those are not distinct.

    >>> run_names(["a/bm25.run.gz", "dense.run"]), run_names(["a/bm25.run", "b/bm25.run"])
    (['bm25', 'dense'], ['a/bm25.run', 'b/bm25.run'])
    """
    short = [checked_path(path).name.partition(".")[0] or Path(path).name for path in paths]
    return short if len(set(short)) == len(short) else [os.fspath(path) for path in paths]


def _by_name(runs: Mapping[str, Ranking] | Sequence[str | os.PathLike[str]]) -> dict[str, Ranking]:
    runs = runs if isinstance(runs, str | Mapping) else checked_list("runs", runs, "a list of files, or a mapping of names to runs")
    if isinstance(runs, str) or not len(runs):
        raise DataError("give at least one run in a list or a mapping, e.g. {'bm25': 'bm25.run', 'dense': 'dense.run'}")
    if isinstance(runs, Mapping):
        return dict(runs)
    names = run_names(runs)
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise DataError(f"{repeated} occurs twice; give each run once, or a mapping with a name for each")
    return dict(zip(names, runs, strict=True))
