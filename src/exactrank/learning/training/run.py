"""Runs: the one loop that steps an optimizer, and the recorder to which every run reports every step.

The loop lets the judge evaluate each iterate and keeps one of them (`exactrank.learning.training.selection`). It ends when the optimizer is
done, after the maximum number of steps, or if no step was the best for a while.

The recorder does what all runs have in common: it keeps an iterate by the same rules, and the history, calls the listener, hands over
checkpoints, and catches Ctrl-C. A composition of runs is a tree of recorders: a part passes on what is reported to it, with its place among
the steps of the whole, and its iterate as one of the whole.

Resuming. The journal holds, by the place of a run in the tree, its state after its last step, or its result once it has ended.
Everything that combinators do follows from the results of their runs. So a composition that is run again with the journal of an earlier
run finds the finished runs there, continues in the middle of the interrupted run, and gives the same bits as a run without a break.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

from exactrank._support.serialize import storable
from exactrank.learning.optimizers.base import Optimizer, Redrawn, Resumable, State, fitting
from exactrank.learning.training.progress import It, Listener, Progress, Trained, Verdict
from exactrank.learning.training.selection import Choice, StepChoice, alternatives
from exactrank.models.base import Scorer

J = TypeVar("J")
P = TypeVar("P")
S = TypeVar("S", bound=State[Any])
T = TypeVar("T")
#: Hears of a step, whether it is new, the verdict on the iterate that is kept, this iterate, and whether it is kept in any case.
Listening = Callable[[Progress, bool, Verdict, Callable[[], It], bool], None]
TrainingRun = Callable[["Recorder[It]"], Trained[It]]
SECONDS_BETWEEN_CHECKPOINTS = 1.0
#: Training goes on between two checkpoints for at least this multiple of the time that the first took: they take less than 2%.
TIMES_BETWEEN_CHECKPOINTS = 50


def identity(iterate: J) -> It:  # type: ignore[type-var]
    """Return the iterate itself."""
    return iterate  # type: ignore[return-value]


@storable
@dataclass(frozen=True, eq=False)
class RunState(Generic[It, S]):
    """The state of a run after a step."""

    state: S  #: of the optimizer
    choice: StepChoice[It]  #: of the iterates so far, by the numbers of their steps

    def result(self) -> Trained[It]:
        """Return the result of the run if it ends here."""
        choice, state = self.choice, self.state
        steps = {choice.best_number: choice.best, choice.number: choice.verdict}
        compared = alternatives([f"step {step:,}" for step in steps], list(steps.values()), len(steps) - 1)
        return Trained(choice.candidate, choice.verdict, state.steps, state.trouble, duality=state.duality, alternatives=compared)


@dataclass(eq=False)
class Journal:
    """The results and states of runs, from which training is resumed."""

    entries: dict[str, Any] = field(default_factory=dict)  #: values that are storable, by the place of their run
    history: list[Progress] = field(default_factory=list)


@dataclass(eq=False)
class Recorder(Generic[It]):
    """The recorder of one run, at its place in the whole; what it records is passed on to ``above``."""

    journal: Journal = field(default_factory=Journal)
    above: Listening[It] | None = None
    place: str = ""
    latest: bool = False  #: True if the last iterate is kept, whatever selection would keep
    steps: int = 0  #: so far
    choice: Choice[Callable[[], It]] | None = None  #: of the iterates so far; each is made when first used

    def record(self, progress: Progress, verdict: Verdict, best: Callable[[], It], new: bool = True, latest: bool = False) -> None:
        """Record a step, after which its run keeps the iterate ``best``; the step is not ``new`` if the journal has it already."""
        latest = latest or self.latest
        self.choice = Choice.of(best, verdict) if self.choice is None or latest else self.choice.after(best, verdict)
        self.steps = progress.step
        if self.above is not None:
            self.above(progress, new, self.choice.verdict, self.choice.candidate, latest)

    def part(
        self, number: int = 0, parts: int = 1, view: Callable[[J], It] = identity, latest: bool = False, goes_on: bool = False
    ) -> "Recorder[J]":
        """Return the recorder of run ``number`` of ``parts``; ``view`` converts its iterates to those of this run.

        If there are several runs, each is named in the progress of its steps, unless it ``goes_on`` from the end of the one before.
        """
        before, name = self.steps, f"{number}/" if parts > 1 and not goes_on else ""

        def above(progress: Progress, new: bool, verdict: Verdict, best: Callable[[], J], latest: bool) -> None:
            steps = before + (parts - number) * progress.steps
            placed = replace(progress, step=before + progress.step, steps=steps, run=name + progress.run)
            self.record(placed, verdict, lambda: view(best()), new, latest)

        return Recorder(self.journal, above, f"{self.place}/{number}", latest)

    def remember(self, name: str, compute: Callable[[], T]) -> T:
        """Return the result of ``compute``, which is not computed again when training is resumed."""
        key = f"{self.place}:{name}"
        if key not in self.journal.entries:
            self.journal.entries[key] = compute()
        result: T = self.journal.entries[key]
        return result

    def record_result(self, iterate: It, judge: Callable[[It], Verdict], step: int, steps: int, name: str = "verdict") -> Verdict:
        """Record an ``iterate`` that is finished after this ``step``, and return its verdict, which is remembered by ``name``."""
        new = f"{self.place}:{name}" not in self.journal.entries
        verdict = self.remember(name, lambda: judge(iterate))
        self.record(Progress(step, steps, verdict.value, verdict.valid), verdict, lambda: iterate, new)
        return verdict

    def shared_key(self, name: str) -> str:
        """Return the key of a journal entry that this run shares with its neighbors."""
        return f"{self.place.rpartition('/')[0]}:{name}"


@dataclass(frozen=True, eq=False)
class Run(Generic[P, It, S]):
    """A run of ``optimizer`` on ``problem`` from ``start``; a function of the recorder.

    ``judge`` evaluates an iterate, given its objective. ``patience`` ends the run after this number of steps without a better one. ``seed``
    is that of the optimizer's draws, or their generator. A problem that is `Redrawn` gets new draws for each step, by its number.
    Neighboring runs of one ``chain`` each continue from the state in which the one before ended, so their problems must be similar.
    """

    optimizer: Optimizer[P, It, S]
    problem: P
    start: It
    judge: Callable[[It, float], Verdict]
    max_steps: int
    seed: int | list[int] | np.random.Generator = 0
    patience: int | None = None
    chain: str = ""

    def __post_init__(self) -> None:
        fitting(self.optimizer, self.problem)

    def __call__(self, recorder: Recorder[It]) -> Trained[It]:
        """Run, and return the iterate that is kept."""
        entries, problem, optimizer = recorder.journal.entries, self.problem, self.optimizer
        # Looked up once, since protocols are slow: does the problem draw anew for each step?
        redraw = problem.with_draws if isinstance(problem, Redrawn) else lambda step: problem
        entry = entries.get(recorder.place)
        if isinstance(entry, Trained | RunState):
            trained = entry if isinstance(entry, Trained) else entry.result()
            progress = Progress(trained.steps, self.max_steps, trained.verdict.value, trained.verdict.valid)
            recorder.record(progress, trained.verdict, partial(identity, trained.iterate), new=False)
        if isinstance(entry, Trained):
            return entry
        now: RunState[It, S]
        if isinstance(entry, RunState):
            now = entry
        else:
            rng, before = np.random.default_rng(self.seed), entries.get(recorder.shared_key(self.chain)) if self.chain else None
            if before is not None:
                assert isinstance(optimizer, Resumable)
                now = self._advance(recorder, optimizer.resume(redraw(0), before, rng), None)
            else:
                now = self._advance(recorder, optimizer.init(redraw(0), self.start, rng), None)
        while not (
            now.state.is_done
            or now.state.steps >= self.max_steps
            or (self.patience is not None and now.state.steps - now.choice.best_number >= self.patience)
        ):
            now = self._advance(recorder, optimizer.step(redraw(now.state.steps), now.state), now)
        result = entries[recorder.place] = now.result()
        if self.chain:
            entries[recorder.shared_key(self.chain)] = now.state
        return result

    def _advance(self, recorder: Recorder[It], state: S, before: RunState[It, S] | None) -> RunState[It, S]:
        """Return the state of the run after a step that led to ``state``, and record it."""
        verdict = self.judge(state.theta, state.value)
        step = (state.theta, verdict, state.steps)
        now = RunState(state, StepChoice.of(*step) if before is None else before.choice.after(*step))
        recorder.journal.entries[recorder.place] = now
        progress = Progress(state.steps, self.max_steps, verdict.value, verdict.valid, state.duality)
        recorder.record(progress, now.choice.verdict, lambda: now.choice.candidate)
        return now


Checkpoint = Callable[[Scorer, int, Journal], None]  #: gets the best scorer so far, the number of steps, and the journal


@dataclass(eq=False)
class RootRecorder:
    """The root of the tree of recorders: steps go into the history, to the listener and, about once a second, into a checkpoint."""

    listener: Listener | None = None
    checkpoint: Checkpoint | None = None
    journal: Journal = field(default_factory=Journal)
    interrupted: bool = False
    _due: float = -np.inf
    _last_step: tuple[dict[str, Any], int] = field(default_factory=lambda: ({}, 0))  #: entries and number of steps after it

    @property
    def resumable(self) -> Journal:
        """The journal after the last recorded step: Ctrl-C may come in the middle of the next one."""
        entries, steps = self._last_step
        return Journal(entries, self.journal.history[:steps])

    def _save_step(self) -> None:
        self._last_step = dict(self.journal.entries), len(self.journal.history)

    def train(self, run: TrainingRun[Scorer]) -> Trained[Scorer]:
        """Return the result of ``run``. After Ctrl-C it is the best so far, marked as interrupted; without any, the exception goes on."""
        recorder: Recorder[Scorer] = Recorder(self.journal, self._record)
        self._save_step()
        try:
            return run(recorder)
        except KeyboardInterrupt:
            if recorder.choice is None:
                raise
            self.interrupted = True
            return Trained(recorder.choice.candidate(), recorder.choice.verdict, recorder.steps)

    def _record(self, progress: Progress, new: bool, verdict: Verdict, best: Callable[[], Scorer], latest: bool) -> None:
        if not new:
            return
        self.journal.history.append(progress)
        self._save_step()
        start = time.monotonic()
        if self.checkpoint is not None and start >= self._due:
            self.checkpoint(best(), progress.step, self.journal)
            now = time.monotonic()
            self._due = now + max(SECONDS_BETWEEN_CHECKPOINTS, TIMES_BETWEEN_CHECKPOINTS * (now - start))
        if self.listener is not None:
            self.listener(progress)
