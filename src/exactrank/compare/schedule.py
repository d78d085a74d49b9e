"""The schedule of a comparison: for each method on each division trials, then the final fit, as many fits at a time as there are workers.

Every result is a file, written by the process that made it, under a name that holds a hash of everything that determines it: data,
method, settings, measures and seed. Finished fits are not repeated, so an interrupted comparison continues where it stopped, and gives
the same numbers.

The first settings to try are the defaults, the others are draws from the space of the method, each determined by the seed and its number
alone. So trials may run side by side in any order, and a larger budget adds trials to the same ones (random search, Bergstra & Bengio
2012). The draws are those of scikit-learn's ``ParameterSampler``.
"""

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean

import numpy as np
import xxhash
from sklearn.model_selection import ParameterSampler

from exactrank import __version__
from exactrank._support.json_values import encode_record
from exactrank._support.progress_bars import Advance
from exactrank._support.settings import Space
from exactrank._support.threads import thread_count
from exactrank.compare.cluster import Cluster, ClusterServer, count_slots
from exactrank.compare.contender import Contender
from exactrank.compare.divisions import CachedDivision, DataSet
from exactrank.compare.fitting import FitJob, file_stem
from exactrank.compare.results import Fit, Settings, Trial, read_record, write_record
from exactrank.compare.workers import ForkServer, ProcessExit
from exactrank.errors import DataError
from exactrank.measures.base import Measure

#: Folders of results and of models.
FITS, MODELS = "fits", "models"
#: The end of the names of results.
RESULT = re.compile(r"\.(trial\d+|final)\.[0-9a-f]{16}\.json$")
SECONDS_BETWEEN_LOOKS = 0.25
#: Larger numbers are a mistake.
MOST_TRIALS, MOST_SECONDS = 1_000_000, 1e8


@dataclass(frozen=True)
class TuningBudget:
    """The tuning budget of each method on each division: a number of trials, or of seconds, or both."""

    trials: int | None = None
    seconds: float | None = None

    def allows(self, started: int, seconds: float) -> bool:
        """Return whether another trial may start after ``started`` trials, which took ``seconds`` seconds; the first one always may."""
        if self.trials is None and self.seconds is None:
            return False
        return started == 0 or ((self.trials is None or started < self.trials) and (self.seconds is None or seconds < self.seconds))


def checked_budget(trials: int, seconds: float | None) -> TuningBudget:
    """Return the budget of ``trials``, or of ``seconds`` if they are given, or of both if there is to be more than one trial too."""
    if not 1 <= trials <= MOST_TRIALS:
        raise DataError(f"trials must be from 1 to {MOST_TRIALS:,}; got {trials}")
    checked_seconds("seconds", seconds)
    return TuningBudget(trials, seconds) if seconds is None or trials > 1 else TuningBudget(None, seconds)


def checked_seconds(name: str, seconds: float | None) -> float | None:
    """Return ``seconds`` after a check that they are above 0 and not absurdly many."""
    if seconds is not None and not 0.0 < seconds <= MOST_SECONDS:  # NaN is refused too
        raise DataError(f"{name} must be above 0 and at most {MOST_SECONDS:g}; got {seconds:g}; leave it out for no limit")
    return seconds


def workers_and_threads(workers: int | None, threads: int | None, cluster: Cluster | None = None) -> tuple[int, int]:
    """Return the number of fits at a time and the threads per fit; by default each fit has one thread.

    The threads of a ``cluster`` are those of all its workers.
    """
    if cluster is not None:
        cores = count_slots(cluster)
        at_a_time = cores if workers is None else min(cores, workers)
        return at_a_time, (cores if threads is None else threads) // at_a_time or 1
    cores = thread_count(threads)
    at_a_time = cores if workers is None else min(cores, thread_count(workers))
    return at_a_time, cores // at_a_time


def settings_of_trial(space: Space, seed: int, number: int) -> dict[str, object]:
    """Return the settings of trial ``number``; the first one leaves all at their defaults.

    >>> settings_of_trial({"leaves": [7, 15, 31]}, seed=0, number=0), settings_of_trial({"leaves": [7, 15, 31]}, seed=0, number=1)
    ({}, {'leaves': 7})
    """
    if number == 0 or not space:
        return {}
    state = np.random.RandomState(np.random.SeedSequence([seed, number]).generate_state(4))
    draw = next(iter(ParameterSampler(dict(space), 1, random_state=state)))
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in draw.items()}


def best_trial(trials: Sequence[Trial]) -> Trial | None:
    """Return the trial with the best value on validation data, the first of equals; None if all failed."""
    return max(
        (trial for trial in trials if trial.valid is not None and not trial.failed), key=lambda trial: trial.valid or 0.0, default=None
    )


ProgressCallback = Callable[[Advance], None]


@dataclass(frozen=True)
class Schedule:
    """The fits of a comparison or of tuning; ``folder`` holds their results, and the models of final fits."""

    datasets: tuple[DataSet, ...]
    contenders: tuple[Contender, ...]
    measures: Mapping[str, Measure]
    budget: TuningBudget
    seed: int
    workers: int
    threads: int  #: per fit
    folder: Path
    limit: float | None = None  #: seconds that any one fit may take; None leaves it to the contenders
    finals: bool = True  #: False if only the trials are needed
    cluster: Cluster | None = None  #: whose workers do the fits; None: processes of this machine

    def run(self, report: ProgressCallback | None) -> "list[MethodRun]":
        """Run all methods on all divisions; partial if interrupted by Ctrl-C."""
        runs = [
            MethodRun(self, (i, j), dataset.name, division, contender)
            for i, dataset in enumerate(self.datasets)
            for j, division in enumerate(dataset.divisions)
            for contender in self.contenders
        ]
        (self.folder / FITS).mkdir(parents=True, exist_ok=True)
        libraries = sorted({name for contender in self.contenders for name in (type(contender).__module__, *contender.libraries)})
        server: ForkServer | ClusterServer
        if self.cluster is not None:
            server = ClusterServer(self.cluster, self.threads, self.folder / FITS, libraries)
        else:
            server = ForkServer(self.threads, self.folder / FITS / "log.txt", libraries)
        running: dict[str, tuple[MethodRun, FitJob]] = {}
        with suppress(KeyboardInterrupt), closing(server):
            while True:
                self._start(runs, running, server)
                if not running:
                    break
                if report is not None:
                    report(self._advance(runs, [job for _, job in running.values()]))
                answer = server.wait(SECONDS_BETWEEN_LOOKS)
                if answer is not None:
                    method_run, job = running.pop(answer[0])
                    method_run.finish(job, answer[1])
        return runs

    def _start(self, runs: "list[MethodRun]", running: "dict[str, tuple[MethodRun, FitJob]]", server: ForkServer | ClusterServer) -> None:
        """Start jobs until all workers are busy; results of an earlier run are taken at once.

        A failed fit is tried again, unless it used up a budget of seconds. One division comes after another, so that an interrupted
        comparison has complete divisions. On each division the slowest methods come first, so that they do not run alone at the end.
        """
        times = _times(runs)
        for run in sorted(runs, key=lambda run: (run.place, -mean(times[run.contender.name] or [0.0]))):
            while len(running) < self.workers and (job := run.next_job()) is not None:
                earlier = _read_result(job)
                if earlier is not None and (not earlier.failed or (job.is_trial and job.number and self.budget.seconds is not None)):
                    run.take(job, earlier)
                    continue
                job.result.unlink(missing_ok=True)
                refusal = server.start(job.result.name, job.run, job.limit)
                if refusal is None:
                    running[job.result.name] = run, job
                else:
                    run.finish(job, refusal)

    def _advance(self, runs: "list[MethodRun]", running: list[FitJob]) -> Advance:
        """Estimate the work that is left by the mean time of the fits of each method, or of all fits if it has none yet."""
        times = _times(runs)
        all_times = [seconds for times_of_method in times.values() for seconds in times_of_method]
        names = tuple(f"{job.contender.name} {job.division.name}" for job in running)
        if not all_times:
            return Advance(0.0, None, 0, names)
        left = 0.0
        for run in runs:
            seconds_per_fit = mean(times[run.contender.name] or all_times)
            if run.is_tuned and not run.finishing:
                by_number = (self.budget.trials - len(run.trials)) * seconds_per_fit if self.budget.trials is not None else float("inf")
                by_time = self.budget.seconds - run.tuning_seconds if self.budget.seconds is not None else float("inf")
                left += max(0.0, min(by_number, by_time))
            if self.finals and run.fit is None:
                left += seconds_per_fit
        return Advance(sum(all_times) / (sum(all_times) + left), left / self.workers, len(all_times), names)


@dataclass
class MethodRun:
    """A method on one division: its trials, then its final fit."""

    schedule: Schedule
    place: tuple[int, int]  #: numbers of the data set and of the division
    dataset: str
    division: CachedDivision
    contender: Contender
    trials: dict[int, Trial] = field(default_factory=dict)
    fit: Fit | None = None
    started: int = 0  #: number of trials
    start_times: dict[Path, float] = field(default_factory=dict)  #: of the running jobs
    finishing: bool = False

    def next_job(self) -> FitJob | None:
        """Return the next job that can start now."""
        if self.may_try:
            job = self._job(self.started, settings_of_trial(self.contender.space, self.schedule.seed, self.started))
            self.started += 1
        elif self.start_times or self.finishing or not self.schedule.finals:
            return None
        else:
            self.finishing = True
            best = best_trial(self.finished_trials)
            job = self._job(None, {} if best is None else best.settings)
            if self.trials and best is None:
                self.take(job, job.failure(self.trials[0].failed))
                return None
        self.start_times[job.result] = time.monotonic()
        return job

    def finish(self, job: FitJob, process_exit: ProcessExit) -> None:
        """Take the result of ``job``, whose process has ended."""
        result = _read_result(job)
        if result is None:
            if job.result.exists():
                reason = "its result cannot be read; its settings, curve and weights must be as `Fitted` says"
            elif not process_exit.timed_out:
                reason = process_exit.reason
            elif job.limit == self.limit:
                reason = f"killed after {job.limit:g} s, the limit of a single fit; limit=... (--limit) sets another"
            else:
                reason = f"ended after {job.limit:.0f} s, when its budget was spent"
            result = job.failure(reason, time.monotonic() - self.start_times[job.result])
            write_record(job.result, result)
        self.take(job, result)

    def take(self, job: FitJob, result: Trial | Fit) -> None:
        """Store the result of ``job``."""
        self.start_times.pop(job.result, None)
        if isinstance(result, Trial):
            self.trials[job.number] = result
        else:
            self.fit = replace(result, trials=self.finished_trials)

    @property
    def limit(self) -> float | None:
        """Seconds that a single fit may take."""
        schedule = self.schedule
        return self.contender.limit(schedule.budget.seconds) if schedule.limit is None else schedule.limit

    @property
    def tuning_seconds(self) -> float:
        """Seconds of all trials, including those that are running."""
        now = time.monotonic()
        return sum(trial.seconds for trial in self.trials.values()) + sum(now - start for start in self.start_times.values())

    @property
    def is_tuned(self) -> bool:
        """True if there is anything to tune; a single trial would only repeat the final fit."""
        return bool(self.contender.space) and not (self.schedule.finals and self.schedule.budget == TuningBudget(trials=1))

    @property
    def may_try(self) -> bool:
        """True if the budget allows another trial."""
        return self.is_tuned and self.schedule.budget.allows(self.started, self.tuning_seconds)

    @property
    def finished_trials(self) -> tuple[Trial, ...]:
        """The finished trials in the order of their numbers."""
        return tuple(self.trials[number] for number in sorted(self.trials))

    def _job(self, number: int | None, settings: Settings) -> FitJob:
        """Return the job of the trial of this number, or of the final fit for None."""
        schedule, limit, is_final = self.schedule, self.limit, number is None
        measures = dict(list(schedule.measures.items())[: None if is_final else 1])
        if number and schedule.budget.seconds is not None:
            left = max(1e-3, schedule.budget.seconds - self.tuning_seconds)
            limit = left if limit is None else min(limit, left)
        definitions = {name: repr(measure) for name, measure in measures.items()}
        inputs = [__version__, self.division.checksum, self.contender.fingerprint, settings, definitions, schedule.seed]
        key = xxhash.xxh3_64(json.dumps(encode_record(inputs)).encode()).hexdigest()
        stem = file_stem(self.dataset, self.division.name, self.contender.name)
        return FitJob(
            self.dataset,
            self.division,
            self.contender,
            settings,
            measures,
            schedule.seed,
            schedule.threads,
            result=schedule.folder / FITS / f"{stem}.{'final' if is_final else f'trial{number}'}.{key}.json",
            models=schedule.folder / MODELS if is_final else None,
            number=number or 0,
            limit=limit,
        )


def _read_result(job: FitJob) -> Trial | Fit | None:
    """Return the result of ``job``; None if there is none, or one that cannot be read."""
    with suppress(FileNotFoundError, DataError):
        return read_record(Trial, job.result) if job.is_trial else read_record(Fit, job.result)
    return None


def _times(runs: "list[MethodRun]") -> dict[str, list[float]]:
    """Return the seconds of all finished fits by method."""
    times: dict[str, list[float]] = {}
    for run in runs:
        seconds = [trial.seconds for trial in run.trials.values()] + ([run.fit.seconds] if run.fit else [])
        times.setdefault(run.contender.name, []).extend(seconds)
    return times
