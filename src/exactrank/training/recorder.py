"""The recorder: every run tells it of every step, and it does once for all what runs have in common.

It keeps the best iterate so far and the history, tells the listener, hands over checkpoints, and catches Ctrl-C. A composition of runs is
a tree of recorders: a part passes on what it hears, placed among the steps of the whole and seen as an iterate of the whole.

Resuming. The journal holds, by the place of a run in the tree, where it stands, or its result once it has ended. Everything that
combinators do follows from the results of their runs. So a composition that is run again with the journal of an earlier run finds what was
done, goes on in the middle of the run that was broken off, and arrives at the bits of a run without a break.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import numpy as np

from exactrank.optimizers.base import State
from exactrank.scorers.base import Scorer
from exactrank.stored import storable
from exactrank.training.progress import It, Listener, Progress, Trained, Verdict

J = TypeVar("J")
T = TypeVar("T")
SECONDS_BETWEEN_CHECKPOINTS = 1.0
#: Training goes on between two checkpoints for at least this multiple of the time that the first took.
TIMES_BETWEEN_CHECKPOINTS = 20


def _same(iterate: J) -> It:  # type: ignore[type-var]
    """As it is."""
    return iterate  # type: ignore[return-value]


@storable
@dataclass(frozen=True, eq=False)
class Standing(Generic[It]):
    """Where a run of the loop stands."""

    state: State[It]
    best: It
    verdict: Verdict  #: of the best
    stale: int  #: how many steps ago it was found


@dataclass(eq=False)
class Journal:
    """What there is to resume from; made from `record` where there was an earlier run."""

    entries: dict[str, object] = field(default_factory=dict)
    history: list[Progress] = field(default_factory=list)

    def to_value(self) -> dict[str, object]:
        """All of it, as `exactrank.stored` takes it."""
        return {"entries": dict(self.entries), "history": list(self.history)}


@dataclass(eq=False)
class Recorder(Generic[It]):
    """The recorder of one run, at its place in the whole; without an ``above`` it hears and tells nobody."""

    journal: Journal = field(default_factory=Journal)
    #: Who else hears: a step, is it new, the best so far, does that count whatever was better before.
    above: Callable[[Progress, bool, Verdict, Callable[[], It], bool], None] | None = None
    place: str = ""
    latest: bool = False  #: does what was heard last count, and not the best?
    made: int = 0  #: steps so far
    best: tuple[Verdict, Callable[[], It]] | None = None  #: made when it is asked for

    def heard(self, progress: Progress, verdict: Verdict, best: Callable[[], It], new: bool = True, latest: bool = False) -> None:
        """A step was made, and this is the best iterate of its run; it is not ``new`` where the journal has it already."""
        latest = latest or self.latest
        if self.best is None or latest or verdict.goodness > self.best[0].goodness:
            self.best = verdict, best
        self.made = progress.step
        if self.above is not None:
            self.above(progress, new, *self.best, latest)

    def part(self, number: int, parts: int, view: Callable[[J], It] = _same, latest: bool = False) -> "Recorder[J]":
        """The recorder of the run ``number`` of ``parts`` in turn; ``view`` makes an iterate of this run of one of that."""
        before = self.made

        def above(progress: Progress, new: bool, verdict: Verdict, best: Callable[[], J], latest: bool) -> None:
            placed = replace(progress, step=before + progress.step, steps=before + (parts - number) * progress.steps)
            self.heard(placed, verdict, lambda: view(best()), new, latest)

        return Recorder(self.journal, above, f"{self.place}/{number}", latest)

    def quiet(self, number: int) -> "Recorder[It]":
        """The recorder of a part that is kept in the journal as others are, but tells nobody of its steps."""
        return Recorder(self.journal, None, f"{self.place}/{number}")

    def apart(self, number: int) -> "Recorder[J]":
        """The recorder of a part that runs beside others in a thread of its own, of which only the result is kept."""
        return Recorder(Journal(dict(self.journal.entries)), None, f"{self.place}/{number}")

    def seen_as(self, view: Callable[[J], It]) -> "Recorder[J]":
        """The recorder of the only part of this run."""
        return self.part(0, 1, view)

    def remembers(self, name: str) -> bool:
        """Is there something of that name already, from before training was resumed?"""
        return f"{self.place}:{name}" in self.journal.entries

    def remembered(self, name: str, compute: Callable[[], T]) -> T:
        """What ``compute`` gives, which is not done again when training is resumed."""
        key = f"{self.place}:{name}"
        if key not in self.journal.entries:
            self.journal.entries[key] = compute()
        return self.journal.entries[key]  # type: ignore[return-value]

    def beside(self, name: str) -> str:
        """The key of something in the journal that this run shares with its neighbours."""
        return f"{self.place.rpartition('/')[0]}:{name}"

    @property
    def entry(self) -> object:
        """What the journal has of this run: where it stands, its result, or nothing."""
        return self.journal.entries.get(self.place)

    def keep(self, entry: Standing[It] | Trained[It]) -> None:
        """Put into the journal where this run stands, or its result."""
        self.journal.entries[self.place] = entry


Checkpoint = Callable[[Scorer, int, Journal], None]  #: gets the best scorer so far, after how many steps it was found, and the journal


@dataclass(eq=False)
class Root:
    """The top of the tree: what it hears goes into the history, to the listener and, about once a second, into a checkpoint."""

    listener: Listener | None = None
    checkpoint: Checkpoint | None = None
    journal: Journal = field(default_factory=Journal)
    interrupted: bool = False
    _due: float = -np.inf

    def train(self, run: Callable[["Recorder[Scorer]"], Trained[Scorer]]) -> Trained[Scorer]:
        """The result of ``run``; Ctrl-C gives the best so far, marked as interrupted, or goes on to the caller where there is none."""
        recorder: Recorder[Scorer] = Recorder(self.journal, self._heard)
        try:
            return run(recorder)
        except KeyboardInterrupt:
            if recorder.best is None:
                raise
            self.interrupted = True
            verdict, best = recorder.best
            return Trained(best(), verdict, recorder.made)

    def _heard(self, progress: Progress, new: bool, verdict: Verdict, best: Callable[[], Scorer], latest: bool) -> None:
        if not new:
            return
        self.journal.history.append(progress)
        start = time.monotonic()
        if self.checkpoint is not None and start >= self._due:
            self.checkpoint(best(), progress.step, self.journal)
            now = time.monotonic()
            self._due = now + max(SECONDS_BETWEEN_CHECKPOINTS, TIMES_BETWEEN_CHECKPOINTS * (now - start))
        if self.listener is not None:
            self.listener(progress)
