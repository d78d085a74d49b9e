"""All fits of a comparison: trials, then the final fit, of each contender on each division, as many at a time as there are workers.

Every result is a file, written by the process that made it, under a name that holds a hash of all that determines it: data, method,
settings, measures and seed. Finished fits are not repeated, so an interrupted run continues where it was, and gives the
same numbers.

Settings to try are the defaults first, then draws from the space of the method, each determined by the seed and its number alone.
So trials may run side by side in any order, and more of them later: trial n is the same (random search, Bergstra & Bengio 2012). The
draws are those of scikit-learn's ``ParameterSampler``.
"""

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import xxhash
from sklearn.model_selection import ParameterSampler

from exactrank import __version__
from exactrank._support.progress_bars import Advance
from exactrank._support.settings import Space
from exactrank._support.threads import thread_count
from exactrank.compare.cluster import Cluster, ClusterServer, slots
from exactrank.compare.contender import Contender
from exactrank.compare.divisions import CachedDivision, DataSet
from exactrank.compare.fitting import Job, file_stem
from exactrank.compare.results import Fit, Trial, read_record, to_record, write_record
from exactrank.compare.workers import Ended, Server
from exactrank.errors import DataError
from exactrank.measures.base import Measure

#: Folders of results and of models.
FITS, MODELS = "fits", "models"
#: How the names of results end.
RESULT = re.compile(r"\.(trial\d+|final)\.[0-9a-f]{16}\.json$")
SECONDS_BETWEEN_LOOKS = 0.25
#: More are a mistake.
MOST_TRIALS, MOST_SECONDS = 1_000_000, 1e8


@dataclass(frozen=True)
class TuningBudget:
    """The tuning budget of each method on each division: a number of trials, or of seconds."""

    trials: int | None = None
    seconds: float | None = None

    def allows(self, begun: int, spent: float) -> bool:
        """Another trial after ``begun`` ones, which took ``spent`` seconds so far? The first one is always allowed."""
        if self.trials is None and self.seconds is None:
            return False
        return begun == 0 or ((self.trials is None or begun < self.trials) and (self.seconds is None or spent < self.seconds))


def checked_budget(trials: int, seconds: float | None) -> TuningBudget:
    """A number of trials, or of seconds; both where more than the first trial is asked for."""
    if not 1 <= trials <= MOST_TRIALS:
        raise DataError(f"trials must be from 1 to {MOST_TRIALS:,}; got {trials}")
    checked_seconds("seconds", seconds)
    return TuningBudget(trials, seconds) if seconds is None or trials > 1 else TuningBudget(None, seconds)


def checked_seconds(name: str, seconds: float | None) -> float | None:
    """``seconds``, after a check that they are above 0 and not absurdly many."""
    if seconds is not None and not 0.0 < seconds <= MOST_SECONDS:  # NaN is refused too
        raise DataError(f"{name} must be above 0 and at most {MOST_SECONDS:g}; got {seconds:g}; leave it out for no limit")
    return seconds


def workers_and_threads(workers: int | None, threads: int | None, cluster: Cluster | None = None) -> tuple[int, int]:
    """Fits at a time, by default as many as there are threads, and the threads of each; of a cluster those of all its workers."""
    if cluster is not None:
        cores = slots(cluster)
        at_a_time = cores if workers is None else min(cores, workers)
        return at_a_time, (cores if threads is None else threads) // at_a_time or 1
    cores = thread_count(threads)
    at_a_time = cores if workers is None else min(cores, thread_count(workers))
    return at_a_time, cores // at_a_time


def settings_of_trial(space: Space, seed: int, number: int) -> dict[str, Any]:
    """What trial ``number`` sets; the first one leaves everything as it is.

    >>> settings_of_trial({"leaves": [7, 15, 31]}, seed=0, number=0), settings_of_trial({"leaves": [7, 15, 31]}, seed=0, number=1)
    ({}, {'leaves': 7})
    """
    if number == 0 or not space:
        return {}
    state = np.random.RandomState(np.random.SeedSequence([seed, number]).generate_state(4))
    drawn = next(iter(ParameterSampler(dict(space), 1, random_state=state)))
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in drawn.items()}


def best_trial(trials: Sequence[Trial]) -> Trial | None:
    """The one that did best on validation data, the first of equals; None where all failed."""
    valued = [trial for trial in trials if trial.valid is not None and not trial.failed]
    return max(valued, key=lambda trial: trial.valid or 0.0, default=None)


Told = Callable[[Advance], None]


@dataclass(frozen=True)
class Race:
    """What is to be run; ``folder`` holds results, and models where they are wanted."""

    datasets: tuple[DataSet, ...]
    contenders: tuple[Contender, ...]
    measures: Mapping[str, Measure]
    budget: TuningBudget
    seed: int
    workers: int
    threads: int  #: of each fit
    folder: Path
    limit: float | None = None  #: seconds that any one fit may take; None leaves it to the contenders
    finals: bool = True  #: False where only the trials are wanted
    cluster: Cluster | None = None  #: whose workers do the fits; None: processes of this machine

    def run(self, told: Told | None) -> "list[Heat]":
        """All heats, as far as they came before they were done or Ctrl-C broke them off."""
        limits = [own.limit(self.budget.seconds) if self.limit is None else self.limit for own in self.contenders]
        heats = [
            Heat(self, (i, j), dataset.name, division, contender, limit)
            for i, dataset in enumerate(self.datasets)
            for j, division in enumerate(dataset.divisions)
            for contender, limit in zip(self.contenders, limits, strict=True)
        ]
        (self.folder / FITS).mkdir(parents=True, exist_ok=True)
        libraries = sorted({name for each in self.contenders for name in (type(each).__module__, *each.libraries)})
        running: dict[str, tuple[Heat, Job]] = {}
        with suppress(KeyboardInterrupt), closing(self._server(libraries)) as server:
            while True:
                self._start(heats, running, server)
                if not running:
                    break
                if told is not None:
                    told(self._advance(heats, [job for _, job in running.values()]))
                answer = server.wait(SECONDS_BETWEEN_LOOKS)
                if answer is not None:
                    heat, job = running.pop(answer[0])
                    heat.hear(job, answer[1])
        return heats

    def _server(self, libraries: Sequence[str]) -> Server | ClusterServer:
        """Who starts fits."""
        if self.cluster is not None:
            return ClusterServer(self.cluster, self.threads, self.folder / FITS, libraries)
        return Server(self.threads, self.folder / FITS / "log.txt", libraries)

    def _start(self, heats: "list[Heat]", running: "dict[str, tuple[Heat, Job]]", server: Server | ClusterServer) -> None:
        """Start jobs as long as there is room; what was done before is heard at once.

        A failure is tried again, unless it spent a budget of seconds. Division after division, so that what is there when it is broken
        off can be compared; of one the methods that take longest come first, so that no core is left alone with one of them in the end.
        """
        times = _times(heats)
        for heat in sorted(heats, key=lambda each: (each.place, -mean(times[each.contender.name] or [0.0]))):
            while len(running) < self.workers and (job := heat.next()) is not None:
                earlier = _result(job)
                if earlier is not None and (not earlier.failed or (job.trial and job.number and self.budget.seconds is not None)):
                    heat.take(job, earlier)
                    continue
                job.result.unlink(missing_ok=True)
                refused = server.start(job.result.name, job.run, job.limit)
                if refused is None:
                    running[job.result.name] = heat, job
                else:
                    heat.hear(job, refused)

    def _advance(self, heats: "list[Heat]", running: list[Job]) -> Advance:
        """What is done and what is left, by the mean time of fits of the same method, or of all where there are none yet."""
        times = _times(heats)
        everything = [each for found in times.values() for each in found]
        names = tuple(f"{job.contender.name} {job.division.name}" for job in running)
        if not everything:
            return Advance(0.0, None, 0, names)
        left = 0.0
        for heat in heats:
            each = mean(times[heat.contender.name] or everything)
            if heat.tries and not heat.finishing:
                by_number = (self.budget.trials - len(heat.trials)) * each if self.budget.trials is not None else float("inf")
                by_time = self.budget.seconds - heat.spent if self.budget.seconds is not None else float("inf")
                left += max(0.0, min(by_number, by_time))
            if self.finals and heat.fit is None:
                left += each
        return Advance(sum(everything) / (sum(everything) + left), left / self.workers, len(everything), names)


@dataclass
class Heat:
    """One contender on one division: its trials, then its final fit."""

    race: Race
    place: tuple[int, int]  #: of the data set and the division among all
    dataset: str
    division: CachedDivision
    contender: Contender
    limit: float | None  #: seconds that a single fit may take
    trials: dict[int, Trial] = field(default_factory=dict)
    fit: Fit | None = None
    begun: int = 0
    since: dict[Path, float] = field(default_factory=dict)  #: when each running job began
    finishing: bool = False

    def next(self) -> Job | None:
        """The next job that can be started now."""
        if self.more:
            job = self._job(self.begun, settings_of_trial(self.contender.space, self.race.seed, self.begun))
            self.begun += 1
        elif self.since or self.finishing or not self.race.finals:
            return None
        else:
            self.finishing = True
            best = best_trial(self.tried)
            job = self._job(None, {} if best is None else best.settings)
            if self.trials and best is None:
                self.take(job, job.failed(self.trials[0].failed))
                return None
        self.since[job.result] = time.monotonic()
        return job

    def hear(self, job: Job, ended: Ended) -> None:
        """Take the result of ``job``, whose process ended so."""
        found = _result(job)
        if found is None:
            if job.result.exists():
                reason = "its result cannot be read; its settings, curve and weights must be as `Fitted` says"
            elif not ended.late:
                reason = ended.reason
            elif job.limit == self.limit:
                reason = f"killed after {job.limit:g} s, the limit of a single fit; --limit (limit=...) sets another"
            else:
                reason = f"ended after {job.limit:.0f} s, when its budget was spent"
            found = job.failed(reason, time.monotonic() - self.since[job.result])
            write_record(job.result, found)
        self.take(job, found)

    def take(self, job: Job, found: Trial | Fit) -> None:
        """Take what ``job`` came to."""
        self.since.pop(job.result, None)
        if isinstance(found, Trial):
            self.trials[job.number] = found
        else:
            self.fit = replace(found, trials=self.tried)

    @property
    def spent(self) -> float:
        """Seconds of all trials, those that are running too."""
        now = time.monotonic()
        return sum(trial.seconds for trial in self.trials.values()) + sum(now - begun for begun in self.since.values())

    @property
    def tries(self) -> bool:
        """Is there anything to tune? A single trial would only come before the same fit."""
        return bool(self.contender.space) and not (self.race.finals and self.race.budget == TuningBudget(trials=1))

    @property
    def more(self) -> bool:
        """Does the budget allow another trial?"""
        return self.tries and self.race.budget.allows(self.begun, self.spent)

    @property
    def tried(self) -> tuple[Trial, ...]:
        """The trials that are done, by their numbers."""
        return tuple(self.trials[number] for number in sorted(self.trials))

    def _job(self, number: int | None, settings: Mapping[str, Any]) -> Job:
        """The trial of this number; None is the final fit."""
        race, limit, final = self.race, self.limit, number is None
        measures = dict(list(race.measures.items())[: None if final else 1])
        if number and race.budget.seconds is not None:
            left = max(1e-3, race.budget.seconds - self.spent)
            limit = left if limit is None else min(limit, left)
        named = {name: repr(measure) for name, measure in measures.items()}
        determined = [__version__, self.division.checksum, self.contender.fingerprint, settings, named, race.seed]
        key = xxhash.xxh3_64(json.dumps(to_record(determined)).encode()).hexdigest()
        stem = file_stem(self.dataset, self.division.name, self.contender.name)
        result = race.folder / FITS / f"{stem}.{'final' if final else f'trial{number}'}.{key}.json"
        models = race.folder / MODELS if final else None
        return Job(
            self.dataset, self.division, self.contender, settings, measures, race.seed, race.threads, result, models, number or 0, limit
        )


def _result(job: Job) -> Trial | Fit | None:
    """What ``job`` has left; None where there is nothing, or something that cannot be read."""
    with suppress(FileNotFoundError, DataError):
        return read_record(Trial, job.result) if job.trial else read_record(Fit, job.result)
    return None


def _times(heats: list[Heat]) -> dict[str, list[float]]:
    """The seconds of all fits so far, by method."""
    times: dict[str, list[float]] = {}
    for heat in heats:
        found = [trial.seconds for trial in heat.trials.values()] + ([heat.fit.seconds] if heat.fit else [])
        times.setdefault(heat.contender.name, []).extend(found)
    return times
