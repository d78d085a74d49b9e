"""The settings of one method, chosen by the measure on validation queries: `er.tune`.

Trial 0 has the method's own settings; the others draw from its space (`exactrank.compare.schedule`). The caller gives validation data, or
the queries are divided into folds, each of which validates models of all others; the value of a trial is then the mean over the folds

    V(settings) = 1/K sum_k measure(fold k, model trained without fold k)                                       (1)

A cross-fitted ranker is trained on fold k too, which is then measured by scores out of fold: those of models that have not seen the query.

The final model has the best settings, and is trained on the training data; without validation data one fold is held out for
methods that stop early. A cross-fitted one learns from that fold, or from the validation data, as well.
"""

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from exactrank._support.files import scratch_folder
from exactrank._support.progress_bars import ProgressLine, progress_listener
from exactrank._support.tables import Tabular, Values, by_column
from exactrank._support.text import settings_text
from exactrank._support.threads import thread_count
from exactrank.compare.cluster import Cluster
from exactrank.compare.contender import ContenderTask, TrainingCurve
from exactrank.compare.contenders import as_contender
from exactrank.compare.contenders.ranker import RankerContender
from exactrank.compare.divisions import cache_folds, divide
from exactrank.compare.results import Trial
from exactrank.compare.schedule import ProgressCallback, Schedule, best_trial, checked_budget, workers_and_threads
from exactrank.data.alignment import align_features
from exactrank.data.folds import Fold
from exactrank.data.ranking_data import RankingData, check_data
from exactrank.errors import DataError, IncompatibleError, InterruptedWarning
from exactrank.measures.base import Measure
from exactrank.measures.parse import parse_measure
from exactrank.measures.ties import worst_tie_order
from exactrank.rankers.base import Ranker


@dataclass(frozen=True, eq=False, repr=False)
class Tuned(Tabular):
    """The best settings of a tuning, the model that has them, and all trials."""

    ranker: Ranker  #: fitted
    best: Trial
    trials: tuple[Trial, ...]
    measure: str  #: of the values of the trials, where tied documents count in their worst order
    complete: bool = True  #: False where Ctrl-C ended the trials

    @property
    def settings(self) -> dict[str, object]:
        """The settings to change; all others keep their values."""
        return dict(self.best.settings)

    def __repr__(self) -> str:
        best = f"best of {len(self.trials):,} trials {self.measure} {self.best.valid:.4f}: {settings_text(self.settings)}"
        return f"Tuned({type(self.ranker).__name__}, {best})"

    def _columns(self) -> dict[str, Values]:
        names = dict.fromkeys(name for trial in self.trials for name in trial.settings)
        settings: dict[str, Values] = {name: [trial.settings.get(name) for trial in self.trials] for name in names}
        return by_column(self.trials, "valid", "seconds") | settings | by_column(self.trials, "failed")


def tune(
    data: RankingData,
    method: str | Ranker,
    measure: str | Measure = "nDCG@10",
    *,
    valid: RankingData | None = None,
    folds: int = 5,
    trials: int = 20,
    seconds: float | None = None,
    seed: int = 0,
    workers: int | None = None,
    threads: int | None = None,
    backend: Cluster | None = None,
    scratch: str | os.PathLike[str] | None = None,
    progress: bool | ProgressCallback = False,
) -> Tuned:
    """Try settings of ``method``, and fit it with the best.

    Trials are measured on ``valid``; without it the queries of ``data`` are divided into ``folds``, (1). ``seconds`` is a budget instead of
    ``trials`` (with both, whichever ends first), for each fold. ``progress=True`` shows a progress bar in a terminal or
    a notebook; a function is called with the `Advance` a few times per second. Ctrl-C ends the trials, with a warning; the best so far is
    used. With ``backend``, a [`DaskBackend`][exactrank.DaskBackend], its workers do the trials; ``scratch`` is then a folder that all
    see under the same path, for files that are gone afterwards.
    """
    check_data(data)
    contender, name = as_contender(method), str(measure)
    if not isinstance(contender, RankerContender):
        raise IncompatibleError(f"{contender.name} is not a ranker of exactrank; compare tunes others too")
    if not contender.space:
        raise DataError(f"{contender.name} has nothing to tune: all settings of its space are fixed")
    budget, (at_a_time, threads_per_fit) = checked_budget(trials, seconds), workers_and_threads(workers, threads, backend)
    with scratch_folder(None if scratch is None else Path(scratch)) as folder:
        caches = folder / "data"
        caches.mkdir()
        if valid is None:
            dataset = divide(contender.name, data, folds, seed, caches, tested=False)
        else:  # nothing is tested, so the validation data also stands for the test part
            valid = align_features(valid, data.feature_names, "the training data", data.levels)
            dataset = cache_folds(contender.name, [Fold("given", data, valid, valid)], caches)
        measures = {name: parse_measure(measure)}
        schedule = Schedule(
            (dataset,), (contender,), measures, budget, seed, at_a_time, threads_per_fit, folder, finals=False, cluster=backend
        )
        with progress_listener(progress, "tune", ProgressLine.of) as report:
            method_runs = schedule.run(report)
        mean_trials = _mean_over_folds([run.finished_trials for run in method_runs])
        if not mean_trials:
            raise KeyboardInterrupt  # it came before any trial was finished
        best = best_trial(mean_trials)
        if best is None:
            raise DataError(f"{contender.name} could not be fitted: {mean_trials[0].failed}")
        last = dataset.divisions[-1]
        task = ContenderTask(contender.name, last.read(), last.test.rows, name, seed, thread_count(threads))
        complete = not any(run.start_times or run.may_try for run in method_runs)
        if not complete:
            warnings.warn(f"tuning was interrupted; the best of {len(mean_trials)} trials is taken", InterruptedWarning, stacklevel=2)
        ranker = contender.fit_ranker(task, best.settings, TrainingCurve())
        return Tuned(ranker, best, mean_trials, str(worst_tie_order(measures[name])), complete)


def _mean_over_folds(trials_by_fold: Sequence[Sequence[Trial]]) -> tuple[Trial, ...]:
    """Return the trials that every fold has finished, with their values by (1); a trial failed if it failed on one fold."""
    means = []
    for trials in zip(*trials_by_fold, strict=False):
        failed = next((trial.failed for trial in trials if trial.failed), "")
        value = None if failed else float(np.mean([trial.valid for trial in trials]))
        means.append(Trial(trials[0].settings, value, sum(trial.seconds for trial in trials), failed))
    return tuple(means)
