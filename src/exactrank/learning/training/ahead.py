"""Parallel runs: several in threads of their own, reported as if each began after the one before.

The caller of a run hears its steps in order, each with the journal's entries at that moment. So histories, checkpoints, time limits and
results after Ctrl-C have the same bits as if the runs were trained one after the other. Runs that are called later run ahead, and their
reports wait. All of them end at their next step when the caller leaves, for whatever reason.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Event
from typing import Generic

from exactrank._support.threads import Pool
from exactrank.learning.training.progress import It, Progress, Trained, Verdict
from exactrank.learning.training.run import Journal, Recorder, TrainingRun

Step = tuple[Progress, bool, Verdict, Callable[[], It], bool]  #: the arguments of `Recorder.above`


@contextmanager
def running_ahead(runs: Sequence[TrainingRun[It]], recorder: Recorder[It], workers: int) -> Iterator[Sequence[TrainingRun[It]]]:
    """Begin ``runs``, the parts of ``recorder``, in this number of threads, and yield runs that report them when they are called.

    With one worker each begins when it is called.
    """
    if workers <= 1:
        yield runs
        return
    stop = Event()
    runs_ahead = [_RunAhead(run, f"{recorder.place}/{number}", recorder.journal.entries, stop) for number, run in enumerate(runs)]
    with Pool(workers) as pool:
        try:
            for run_ahead in runs_ahead:
                pool.submit(run_ahead.train)
            yield runs_ahead
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)


class _Stopped(BaseException):
    """The caller has left."""


@dataclass(frozen=True, eq=False)
class _Report(Generic[It]):
    """A step, the result or the failure of a run, with its part of the journal at that moment."""

    entries: Mapping[str, object]
    step: Step[It] | None = None
    result: Trained[It] | None = None
    error: BaseException | None = None


class _RunAhead(Generic[It]):
    """A run at a ``place`` of the tree of recorders, trained in a thread of its own."""

    def __init__(self, run: TrainingRun[It], place: str, entries: Mapping[str, object], stop: Event) -> None:
        own_entries = {key: entry for key, entry in entries.items() if key == place or key.startswith((f"{place}/", f"{place}:"))}
        self._run, self._place, self._stop, self._journal = run, place, stop, Journal(own_entries)
        self._reports: SimpleQueue[_Report[It]] = SimpleQueue()

    def train(self) -> None:
        """Train, and put the steps into the queue."""
        entries = self._journal.entries

        def report(*step: *Step[It]) -> None:
            if self._stop.is_set():
                raise _Stopped
            self._reports.put(_Report(dict(entries), step))

        try:
            result = self._run(Recorder(self._journal, report, self._place, latest=True))
        except BaseException as error:  # raised again in the caller
            self._reports.put(_Report(dict(entries), error=error))
        else:
            self._reports.put(_Report(dict(entries), result=result))

    def __call__(self, recorder: Recorder[It]) -> Trained[It]:
        """Report the run to ``recorder``, whose latest iterate counts, and return its result."""
        while True:
            report = self._reports.get()
            recorder.journal.entries.update(report.entries)
            if report.error is not None:
                raise report.error
            if report.result is not None:
                return report.result
            if recorder.above is not None and report.step is not None:
                recorder.above(*report.step)
