"""All fits of a comparison: trials, then the final fit, of each contender on each division, as many at a time as there are workers.

Every result is a file, written by the process that made it, under a name that holds a hash of all that determines it: data, method,
settings, measures and seed. What is there is not done again, so a run that was broken off goes on where it was, and arrives at the
same numbers.
"""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from statistics import mean
from typing import Any

import xxhash

from exactrank import __version__
from exactrank.compare.contender import Contender
from exactrank.compare.divisions import DataSet, Division
from exactrank.compare.fitting import Job, file_stem
from exactrank.compare.records import read_record, to_record, write_record
from exactrank.compare.results import Fit, Trial
from exactrank.compare.tuning import Budget, best_trial, settings_of_trial
from exactrank.compare.workers import Ended, Server
from exactrank.errors import DataError
from exactrank.measures.base import Measure

#: Folders of results and of models.
FITS, MODELS = "fits", "models"
#: How the names of results end.
RESULT = re.compile(r"\.(trial\d+|final)\.[0-9a-f]{16}\.json$")
SECONDS_BETWEEN_LOOKS = 0.25


@dataclass(frozen=True)
class Advance:
    """How far a comparison has come."""

    share: float  #: of all work that is done, as far as can be told
    left: float | None  #: seconds, as far as can be told
    done: int  #: fits
    running: tuple[str, ...]


Told = Callable[[Advance], None]


def silent(advance: Advance) -> None:
    """Tells nobody."""


@dataclass(frozen=True)
class Race:
    """What is to be run; ``folder`` holds results, and models where they are wanted."""

    datasets: tuple[DataSet, ...]
    contenders: tuple[Contender, ...]
    measures: Mapping[str, Measure]
    budget: Budget
    seed: int
    workers: int
    threads: int  #: of each fit
    folder: Path
    limit: float | None = None  #: seconds that any one fit may take; None leaves it to the contenders
    finals: bool = True  #: False where only the trials are wanted

    def run(self, told: Told) -> "list[Heat]":
        """All heats, as far as they came before they were done or Ctrl-C broke them off."""
        heats = [
            Heat(self, (i, j), dataset, division, summary.checksum, contender)
            for i, dataset in enumerate(self.datasets)
            for j, (division, summary) in enumerate(zip(dataset.divisions, dataset.summary.folds, strict=True))
            for contender in self.contenders
        ]
        (self.folder / FITS).mkdir(parents=True, exist_ok=True)
        with suppress(KeyboardInterrupt):
            self._run(heats, told)
        return heats

    def _run(self, heats: "list[Heat]", told: Told) -> None:
        running: dict[int, tuple[Heat, Job]] = {}
        numbers = count()
        libraries = sorted({name for each in self.contenders for name in (type(each).__module__, *each.libraries)})
        with closing(Server(self.threads, self.folder / FITS / "log.txt", libraries)) as server:
            while True:
                for heat, job in _startable(heats, lambda: len(running) < self.workers):
                    number = next(numbers)
                    refused = server.start(number, job)
                    if refused is None:
                        running[number] = heat, job
                    else:
                        heat.hear(job, refused)
                if not running:
                    return
                told(_advance(heats, [job for _, job in running.values()], self.workers))
                answer = server.wait(SECONDS_BETWEEN_LOOKS)
                if answer is not None:
                    heat, job = running.pop(answer[0])
                    heat.hear(job, answer[1])


@dataclass
class Heat:
    """One contender on one division: its trials, then its final fit."""

    race: Race
    place: tuple[int, int]  #: of the data set and the division among all
    dataset: DataSet
    division: Division
    checksum: str
    contender: Contender
    trials: dict[int, Trial] = field(default_factory=dict)
    fit: Fit | None = None
    begun: int = 0
    since: dict[Path, float] = field(default_factory=dict)  #: when each running job began
    finishing: bool = False

    def next(self) -> Job | None:
        """The next job that can be started now."""
        if self.tries and self.race.budget.allows(self.begun, self.spent):
            self.begun += 1
            return self._begun(self._job(self.begun - 1))
        if self.since or self.finishing or not self.race.finals:
            return None
        self.finishing = True
        best = best_trial(self.tried)
        if self.trials and best is None:
            self.fit = self._with_trials(self._final({}).failed(self.trials[0].failed))
            return None
        return self._begun(self._final({} if best is None else best.settings))

    def hear(self, job: Job, ended: Ended | None = None) -> None:
        """Take the result of ``job``, whose process ended so (None: long ago)."""
        found = _result(job)
        if found is None:
            reason = self._reason(job, ended) if ended is not None else ""
            found = job.failed(reason, time.monotonic() - self.since[job.result])
            write_record(job.result, found)
        del self.since[job.result]
        if isinstance(found, Trial):
            self.trials[job.number] = found
        else:
            self.fit = self._with_trials(found)

    @property
    def spent(self) -> float:
        """Seconds of all trials, those that are running too."""
        now = time.monotonic()
        return sum(trial.seconds for trial in self.trials.values()) + sum(now - begun for begun in self.since.values())

    @property
    def tries(self) -> bool:
        """Is there anything to tune? A single trial would only come before the same fit."""
        return bool(self.contender.space) and not (self.race.finals and self.race.budget == Budget(trials=1))

    @property
    def tuned(self) -> bool:
        """Are all trials done that the budget allows?"""
        return not self.since and not (self.tries and self.race.budget.allows(self.begun, self.spent))

    @property
    def tried(self) -> tuple[Trial, ...]:
        """The trials that are done, by their numbers."""
        return tuple(self.trials[number] for number in sorted(self.trials))

    @property
    def limit(self) -> float | None:
        """Seconds that a single fit may take."""
        return self.race.limit if self.race.limit is not None else self.contender.limit(self.race.budget.seconds)

    def _reason(self, job: Job, ended: Ended) -> str:
        """Why ``job``, which ended so, has no result."""
        if job.result.exists():
            return "what it left as its result cannot be read; its settings, curve and weights must be as `Fitted` says"
        if not ended.late:
            return ended.reason
        if job.limit == self.limit:
            return f"killed after {job.limit:g} s, the limit of a single fit; --limit (limit=...) sets another"
        return f"ended after {job.limit:.0f} s, when its budget was spent"

    def _begun(self, job: Job) -> Job:
        self.since[job.result] = time.monotonic()
        return job

    def _job(self, number: int) -> Job:
        settings = settings_of_trial(self.contender.space, self.race.seed, number)
        measure = dict(list(self.race.measures.items())[:1])
        seconds, limit = self.race.budget.seconds, self.limit
        if seconds is None or number == 0:
            return self._made(f"trial{number}", settings, measure, number=number, limit=limit)
        left = max(1e-3, seconds - self.spent)
        limit = left if limit is None else min(limit, left)
        return self._made(f"trial{number}", settings, measure, number=number, limit=limit, budgeted=True)

    def _final(self, settings: Mapping[str, Any]) -> Job:
        return self._made("final", settings, self.race.measures, models=self.race.folder / MODELS, limit=self.limit)

    def _made(self, kind: str, settings: Mapping[str, Any], measures: Mapping[str, Measure], **more: Any) -> Job:
        race = self.race
        named = {name: repr(measure) for name, measure in measures.items()}
        determined = [__version__, self.checksum, self.contender.fingerprint, settings, named, race.seed]
        key = xxhash.xxh3_64(json.dumps(to_record(determined)).encode()).hexdigest()
        stem = file_stem(self.dataset.name, self.division.name, self.contender.name)
        result = race.folder / FITS / f"{stem}.{kind}.{key}.json"
        return Job(self.dataset.name, self.division, self.contender, settings, measures, race.seed, race.threads, result, **more)

    def _with_trials(self, fit: Any) -> Fit:
        made: Fit = replace(fit, trials=self.tried)
        return made


def _startable(heats: list[Heat], room: Callable[[], bool]) -> Iterator[tuple[Heat, Job]]:
    """Jobs to start, as long as there is room; what was done before is heard at once, but for failures, which are tried again.

    Division after division, so that what is there when it is broken off can be compared; of one the methods that take longest come
    first, so that no core is left alone with one of them in the end.
    """
    times = _times(heats)
    for heat in sorted(heats, key=lambda each: (each.place, -mean(times[each.contender.name] or [0.0]))):
        while room() and (job := heat.next()) is not None:
            if _to_do(job):
                yield heat, job
            else:
                heat.hear(job)
        if not room():
            return


def _to_do(job: Job) -> bool:
    """Has an earlier run left no result? A failure is none, and is forgotten, unless it spent a budget of seconds."""
    found = _result(job)
    if found is not None and (job.budgeted or not found.failed):
        return False
    job.result.unlink(missing_ok=True)
    return True


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


def _advance(heats: list[Heat], running: list[Job], workers: int) -> Advance:
    """What is done and what is left, by the mean time of fits of the same method, or of all where there are none yet."""
    times = _times(heats)
    everything = [each for found in times.values() for each in found]
    done = len(everything)
    names = tuple(f"{job.contender.name} {job.division.name}" for job in running)
    if not everything:
        return Advance(0.0, None, 0, names)
    overall = mean(everything)
    left = sum(_left(heat, times[heat.contender.name], overall) for heat in heats)
    return Advance(sum(everything) / (sum(everything) + left), left / workers, done, names)


def _left(heat: Heat, times: list[float], overall: float) -> float:
    """Seconds of work that a heat has before it."""
    if heat.fit is not None:
        return 0.0
    each = mean(times) if times else overall
    budget = heat.race.budget
    by_number = (budget.trials - len(heat.trials)) * each if budget.trials is not None else float("inf")
    by_time = budget.seconds - heat.spent if budget.seconds is not None else float("inf")
    tuning = max(0.0, min(by_number, by_time)) if heat.tries and not heat.finishing else 0.0
    return tuning + (each if heat.race.finals else 0.0)
