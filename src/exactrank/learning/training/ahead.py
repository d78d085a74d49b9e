"""Runs side by side: several in threads of their own, reported as if each began when the one before had ended.

Whoever calls a run hears its steps in order, and with each step gets the journal's entries as they were after it. So histories,
checkpoints, time limits and what is kept after Ctrl-C are to the bit those of one run after the other. Runs that are called later are ahead
meanwhile; what they report waits. All of them end at their next step when the caller leaves, whatever the reason.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Event
from typing import Any, Generic

from exactrank._support.threads import Pool
from exactrank.learning.training.progress import It, Trained
from exactrank.learning.training.run import Journal, Recorder

Part = Callable[[Recorder[It]], Trained[It]]


@contextmanager
def running_ahead(runs: Sequence[Part[It]], recorder: Recorder[It], workers: int) -> Iterator[Sequence[Part[It]]]:
    """Begin ``runs``, the parts of ``recorder`` by their numbers, in that many threads, and give what reports each when it is called.

    With one worker they begin when they are called.
    """
    if workers <= 1:
        yield runs
        return
    stop = Event()
    begun = [_Ahead(run, f"{recorder.place}/{number}", recorder.journal.entries, stop) for number, run in enumerate(runs)]
    with Pool(workers) as pool:
        try:
            for one in begun:
                pool.submit(one.train)
            yield begun
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)


class _Stopped(BaseException):
    """Nobody hears the run any more."""


@dataclass(frozen=True, eq=False)
class _Report(Generic[It]):
    """What a run tells: a step, as recorders pass it on, its result, or why it failed; and its part of the journal at that moment."""

    entries: Mapping[str, object]
    step: tuple[Any, ...] | None = None
    result: Trained[It] | None = None
    error: BaseException | None = None


class _Ahead(Generic[It]):
    """A run at a ``place`` of the tree of recorders."""

    def __init__(self, run: Part[It], place: str, entries: Mapping[str, object], stop: Event) -> None:
        own = {key: entry for key, entry in entries.items() if key == place or key.startswith((f"{place}/", f"{place}:"))}
        self._run, self._place, self._stop, self._journal = run, place, stop, Journal(own)
        self._reports: SimpleQueue[_Report[It]] = SimpleQueue()

    def train(self) -> None:
        """Run, in a thread of its own."""
        entries = self._journal.entries

        def heard(*step: object) -> None:
            if self._stop.is_set():
                raise _Stopped
            self._reports.put(_Report(dict(entries), step))

        try:
            result = self._run(Recorder(self._journal, heard, self._place, latest=True))
        except BaseException as error:  # which is the caller's
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
