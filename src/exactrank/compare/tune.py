"""The settings of one method, chosen by the measure on validation queries: `xr.tune`.

Trial 0 is the method as it is; the others draw from its space (`exactrank.compare.race`). Validation data is given, or
the queries are dealt into folds, each of which judges models of all others; a trial is then worth the mean over the folds

    V(settings) = 1/K sum_k measure(fold k, model trained without fold k)                                       (1)

The model that is kept has the best settings, and is trained on the training data; without validation data one fold is held out for the
methods that choose when to stop by it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactrank.compare.contender import Task
from exactrank.compare.contenders import as_contender
from exactrank.compare.contenders.ranker import RankerContender
from exactrank.compare.divisions import dealt, given
from exactrank.compare.race import Race, Told, best_trial, checked_budget, silent, workers_and_threads
from exactrank.compare.results import Trial
from exactrank.data.alignment import aligned
from exactrank.data.folds import Fold
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError, IncompatibleError
from exactrank.files import scratch_folder
from exactrank.measures.base import Measure
from exactrank.measures.parse import parse_measure
from exactrank.rankers.base import Ranker
from exactrank.threads import thread_count


@dataclass(frozen=True, eq=False)
class Tuned:
    """The best settings that were found, the model that has them, and all that was tried."""

    ranker: Ranker  #: fitted
    best: Trial
    trials: tuple[Trial, ...]
    complete: bool = True  #: False where Ctrl-C ended the trials

    @property
    def settings(self) -> dict[str, Any]:
        """What to set; everything else stays as it was."""
        return dict(self.best.settings)


def tune(
    method: str | Ranker,
    data: RankingData,
    measure: str | Measure = "nDCG@10",
    *,
    valid: RankingData | None = None,
    folds: int = 5,
    trials: int = 20,
    seconds: float | None = None,
    seed: int = 0,
    workers: int | None = None,
    threads: int | None = None,
    told: Told = silent,
) -> Tuned:
    """Try settings of ``method``, and fit it with the best.

    ``valid`` judges the trials; without it the queries of ``data`` are dealt into ``folds``, (1). ``seconds`` is a budget in place of
    ``trials`` (with both, whichever ends first), for each fold. Ctrl-C ends the trials; the best so far is taken.
    """
    contender, name = as_contender(method), str(measure)
    if not isinstance(contender, RankerContender):
        raise IncompatibleError(f"{contender.name} is no ranker of exactrank; compare tunes others too")
    if not contender.space:
        raise DataError(f"{contender.name} has nothing to tune: the settings of its space are all given")
    budget, (at_a_time, each) = checked_budget(trials, seconds), workers_and_threads(workers, threads)
    with scratch_folder() as scratch:
        cached = scratch / "data"
        cached.mkdir()
        if valid is None:
            divided = dealt(contender.name, data, folds, seed, cached, tested=False)
        else:  # there is no test, so what judges stands in its place
            judge = aligned(valid, data.feature_names, "the training data")
            divided = given(contender.name, [Fold("given", data, judge, judge)], cached)
        named = {name: parse_measure(measure)}
        race = Race((divided,), (contender,), named, budget, seed, at_a_time, each, scratch, finals=False)
        heats = race.run(told)
        found = _over_folds([heat.tried for heat in heats])
        if not found:
            raise KeyboardInterrupt  # it came before any trial was finished
        best = best_trial(found)
        if best is None:
            raise DataError(f"{contender.name} could not be fitted: {found[0].failed}")
        last = divided.divisions[-1]
        task = Task(contender.name, last.read(), last.test.rows, name, seed, thread_count(threads))
        return Tuned(contender.fit(task, best.settings).ranker, best, found, not any(heat.since or heat.more for heat in heats))


def _over_folds(tried: Sequence[Sequence[Trial]]) -> tuple[Trial, ...]:
    """Each trial that every fold has finished, by (1); it failed if it failed on one."""
    found = []
    for same in zip(*tried, strict=False):
        failed = next((trial.failed for trial in same if trial.failed), "")
        value = None if failed else float(np.mean([trial.valid for trial in same]))
        found.append(Trial(same[0].settings, value, sum(trial.seconds for trial in same), failed))
    return tuple(found)
