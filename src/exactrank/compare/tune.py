"""The settings of one method, chosen by the measure on validation queries: `er.tune`.

Trial 0 is the method as it is; the others draw from its space (`exactrank.compare.race`). Validation data is given, or
the queries are divided into folds, each of which judges models of all others; the value of a trial is then the mean over the folds

    V(settings) = 1/K sum_k measure(fold k, model trained without fold k)                                       (1)

A cross-fitted ranker is trained on fold k too, which is then judged by scores out of fold: those of models that have not seen the query.

The final model has the best settings, and is trained on the training data; without validation data one fold is held out for
methods that stop early. A cross-fitted one learns from that fold, or from the validation data, as well.
"""

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from exactrank._support.files import scratch_folder
from exactrank._support.progress_bars import ProgressLine, progress_listener
from exactrank._support.tables import Tabular, Values, by_column
from exactrank._support.text import settings_text
from exactrank._support.threads import thread_count
from exactrank.compare.cluster import Cluster
from exactrank.compare.contender import ContenderTask
from exactrank.compare.contenders import as_contender
from exactrank.compare.contenders.ranker import RankerContender
from exactrank.compare.divisions import dealt, given
from exactrank.compare.race import Race, Told, best_trial, checked_budget, workers_and_threads
from exactrank.compare.results import Trial
from exactrank.data.alignment import align_features
from exactrank.data.folds import Fold
from exactrank.data.ranking_data import RankingData, check_data
from exactrank.errors import DataError, IncompatibleError, InterruptedWarning
from exactrank.measures.base import Measure
from exactrank.measures.parse import parse_measure
from exactrank.rankers.base import Ranker


@dataclass(frozen=True, eq=False, repr=False)
class Tuned(Tabular):
    """The best settings found, the model that has them, and all trials."""

    ranker: Ranker  #: fitted
    best: Trial
    trials: tuple[Trial, ...]
    complete: bool = True  #: False where Ctrl-C ended the trials

    @property
    def settings(self) -> dict[str, Any]:
        """The settings to change; all others stay as they were."""
        return dict(self.best.settings)

    def __repr__(self) -> str:
        best = f"best of {len(self.trials):,} trials {self.best.valid:.4f}: {settings_text(self.settings)}"
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
    progress: bool | Told = False,
) -> Tuned:
    """Try settings of ``method``, and fit it with the best.

    ``valid`` judges the trials; without it the queries of ``data`` are divided into ``folds``, (1). ``seconds`` is a budget instead of
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
    budget, (at_a_time, each) = checked_budget(trials, seconds), workers_and_threads(workers, threads, backend)
    with scratch_folder(None if scratch is None else Path(scratch)) as place:
        cached = place / "data"
        cached.mkdir()
        if valid is None:
            divided = dealt(contender.name, data, folds, seed, cached, tested=False)
        else:  # there is no test, so what judges stands in its place
            judge = align_features(valid, data.feature_names, "the training data", data.levels)
            divided = given(contender.name, [Fold("given", data, judge, judge)], cached)
        named = {name: parse_measure(measure)}
        race = Race((divided,), (contender,), named, budget, seed, at_a_time, each, place, finals=False, cluster=backend)
        with progress_listener(progress, "tune", ProgressLine.of) as told:
            heats = race.run(told)
        found = _over_folds([heat.tried for heat in heats])
        if not found:
            raise KeyboardInterrupt  # it came before any trial was finished
        best = best_trial(found)
        if best is None:
            raise DataError(f"{contender.name} could not be fitted: {found[0].failed}")
        last = divided.divisions[-1]
        task = ContenderTask(contender.name, last.read(), last.test.rows, name, seed, thread_count(threads))
        complete = not any(heat.since or heat.more for heat in heats)
        if not complete:
            warnings.warn(f"tuning was interrupted; the best of {len(found)} trials is taken", InterruptedWarning, stacklevel=2)
        return Tuned(contender.fit(task, best.settings).ranker, best, found, complete)


def _over_folds(tried: Sequence[Sequence[Trial]]) -> tuple[Trial, ...]:
    """Each trial that every fold has finished, by (1); it failed if it failed on one."""
    found = []
    for same in zip(*tried, strict=False):
        failed = next((trial.failed for trial in same if trial.failed), "")
        value = None if failed else float(np.mean([trial.valid for trial in same]))
        found.append(Trial(same[0].settings, value, sum(trial.seconds for trial in same), failed))
    return tuple(found)
