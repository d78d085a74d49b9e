"""Runs: the one loop that steps an optimizer, and the recorder to which every run reports every step.

The loop lets the judge evaluate each iterate and keeps one of them (`exactrank.learning.training.selection`). It ends when the optimizer is
done, the maximum number of steps is reached, or no step was better than all before for a while.

The recorder does what all runs have in common: it keeps an iterate in the same way, and the history, calls the listener, hands over
checkpoints, and catches Ctrl-C. A composition of runs is a tree of recorders: a part passes on what is reported to it, placed among the
steps of the whole and seen as an iterate of the whole.

Resuming. The journal holds, by the place of a run in the tree, its state after its last step, or its result once it has ended.
Everything that combinators do follows from the results of their runs. So a composition that is run again with the journal of an earlier
run finds what was done, goes on in the middle of the interrupted run, and gives the same bits as a run without a break.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic, TypeVar, cast

import numpy as np

from exactrank._support.serialize import storable
from exactrank.learning.optimizers.base import Optimizer, Redrawn, Resumable, State, fitting
from exactrank.learning.training.progress import It, Listener, Progress, Trained, Verdict
from exactrank.learning.training.selection import Choice, StepChoice, alternatives
from exactrank.models.base import Scorer

J = TypeVar("J")
P = TypeVar("P")
S = TypeVar("S")
T = TypeVar("T")
SECONDS_BETWEEN_CHECKPOINTS = 1.0
#: Training goes on between two checkpoints for at least this multiple of the time that the first took: less than 2% is spent on them.
TIMES_BETWEEN_CHECKPOINTS = 50


def same(iterate: J) -> It:  # type: ignore[type-var]
    """As it is."""
    return iterate  # type: ignore[return-value]


@storable
@dataclass(frozen=True, eq=False)
class Standing(Generic[It]):
    """Where a run of the loop stands."""

    state: State[It]
    choice: StepChoice[It]  #: of the iterates so far, by the numbers of their steps

    @property
    def stale(self) -> int:
        """How many steps ago the best step was."""
        return self.state.steps - self.choice.best_number

    def result(self) -> Trained[It]:
        """Return the result of the run if it ends here."""
        choice, state = self.choice, self.state
        steps = {choice.best_number: choice.best, choice.number: choice.verdict}
        compared = alternatives([f"step {step:,}" for step in steps], list(steps.values()), len(steps) - 1)
        return Trained(choice.candidate, choice.verdict, state.steps, state.trouble, duality=state.duality, alternatives=compared)


@dataclass(eq=False)
class Journal:
    """What there is to resume from; made from its record where there was an earlier run."""

    entries: dict[str, object] = field(default_factory=dict)
    history: list[Progress] = field(default_factory=list)


@dataclass(eq=False)
class Recorder(Generic[It]):
    """The recorder of one run, at its place in the whole; without an ``above`` it hears and tells nobody."""

    journal: Journal = field(default_factory=Journal)
    #: Who else hears: a step, is it new, what is kept so far, does that count whatever was better before.
    above: Callable[[Progress, bool, Verdict, Callable[[], It], bool], None] | None = None
    place: str = ""
    latest: bool = False  #: does what was heard last count, and not what selection keeps?
    made: int = 0  #: steps so far
    choice: Choice[Callable[[], It]] | None = None  #: of the iterates so far; each is made when first used

    def heard(self, progress: Progress, verdict: Verdict, best: Callable[[], It], new: bool = True, latest: bool = False) -> None:
        """A step was made, and its run keeps the iterate ``best``; the step is not ``new`` where the journal has it already."""
        latest = latest or self.latest
        self.choice = Choice.of(best, verdict) if self.choice is None or latest else self.choice.after(best, verdict)
        self.made = progress.step
        if self.above is not None:
            self.above(progress, new, self.choice.verdict, self.choice.candidate, latest)

    def part(
        self, number: int = 0, parts: int = 1, view: Callable[[J], It] = same, latest: bool = False, goes_on: bool = False
    ) -> "Recorder[J]":
        """The recorder of the run ``number`` of ``parts`` in turn; ``view`` makes an iterate of this run of one of that.

        Of several runs each is named in what is told of its steps, unless it ``goes_on`` where the one before ended.
        """
        before, name = self.made, f"{number}/" if parts > 1 and not goes_on else ""

        def above(progress: Progress, new: bool, verdict: Verdict, best: Callable[[], J], latest: bool) -> None:
            steps = before + (parts - number) * progress.steps
            placed = replace(progress, step=before + progress.step, steps=steps, run=name + progress.run)
            self.heard(placed, verdict, lambda: view(best()), new, latest)

        return Recorder(self.journal, above, f"{self.place}/{number}", latest)

    def remembered(self, name: str, compute: Callable[[], T]) -> T:
        """What ``compute`` gives, which is not done again when training is resumed."""
        key = f"{self.place}:{name}"
        if key not in self.journal.entries:
            self.journal.entries[key] = compute()
        return self.journal.entries[key]  # type: ignore[return-value]

    def finished(self, iterate: It, judge: Callable[[It], Verdict], step: int, steps: int, name: str = "verdict") -> Verdict:
        """What ``judge`` says of an ``iterate`` that is there after that ``step``, remembered by ``name``; everybody hears of it."""
        new = f"{self.place}:{name}" not in self.journal.entries
        verdict = self.remembered(name, lambda: judge(iterate))
        self.heard(Progress(step, steps, verdict.value, verdict.valid), verdict, lambda: iterate, new)
        return verdict

    def beside(self, name: str) -> str:
        """The key of something in the journal that this run shares with its neighbors."""
        return f"{self.place.rpartition('/')[0]}:{name}"


@dataclass(frozen=True, eq=False)
class Run(Generic[P, It, S]):
    """``optimizer`` on ``problem`` from ``start``, judged by ``judge``; a function of the recorder.

    ``patience`` ends it after that many steps in a row without a better one. ``seed`` is that of the optimizer's draws, or
    their generator. A problem that is `Redrawn` gets new draws for each step, by its number. Neighboring runs of one ``chain`` each go
    on from the state in which the one before ended: their problems must differ in little.
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
        """The iterate that is kept."""
        entries, problem = recorder.journal.entries, self.problem
        # Whether the problem is drawn anew for each step is asked once, since a protocol answers slowly.
        drawn = problem.with_draws if isinstance(problem, Redrawn) else lambda step: problem
        now = entries.get(recorder.place)
        if isinstance(now, Trained | Standing):
            trained = now if isinstance(now, Trained) else now.result()
            told = Progress(trained.steps, self.max_steps, trained.verdict.value, trained.verdict.valid)
            recorder.heard(told, trained.verdict, partial(same, trained.iterate), new=False)
            if isinstance(now, Trained):
                return now
        else:
            rng, before = np.random.default_rng(self.seed), entries.get(recorder.beside(self.chain)) if self.chain else None
            if before is None:
                begun = self.optimizer.init(drawn(0), self.start, rng)
            else:
                begun = cast(Resumable[P, It, S], self.optimizer).resume(drawn(0), cast(S, before), rng)
            now = self._stand(recorder, begun, None)
        while not now.state.is_done and now.state.steps < self.max_steps and (self.patience is None or now.stale < self.patience):
            now = self._stand(recorder, self.optimizer.step(drawn(now.state.steps), cast(S, now.state)), now)
        trained = entries[recorder.place] = now.result()
        if self.chain:
            entries[recorder.beside(self.chain)] = now.state
        return trained

    def _stand(self, recorder: Recorder[It], reached: S, before: Standing[It] | None) -> Standing[It]:
        """Where the run stands at the state that it ``reached``, which everybody gets to know."""
        state = cast(State[It], reached)
        verdict = self.judge(state.theta, state.value)
        one = (state.theta, verdict, state.steps)
        now = Standing(state, StepChoice.of(*one) if before is None else before.choice.after(*one))
        recorder.journal.entries[recorder.place] = now
        progress = Progress(state.steps, self.max_steps, verdict.value, verdict.valid, state.duality)
        recorder.heard(progress, now.choice.verdict, lambda: now.choice.candidate)
        return now


Checkpoint = Callable[[Scorer, int, Journal], None]  #: gets the best scorer so far, after how many steps it was found, and the journal


@dataclass(eq=False)
class Root:
    """The top of the tree: what it hears goes into the history, to the listener and, about once a second, into a checkpoint."""

    listener: Listener | None = None
    checkpoint: Checkpoint | None = None
    journal: Journal = field(default_factory=Journal)
    interrupted: bool = False
    _due: float = -np.inf
    _settled: tuple[dict[str, object], int] = field(default_factory=lambda: ({}, 0))  #: entries after the last step, and how many steps

    @property
    def resumable(self) -> Journal:
        """The journal after the last step that was heard: Ctrl-C may come in the midst of the next."""
        entries, steps = self._settled
        return Journal(entries, self.journal.history[:steps])

    def _settle(self) -> None:
        self._settled = dict(self.journal.entries), len(self.journal.history)

    def train(self, run: Callable[["Recorder[Scorer]"], Trained[Scorer]]) -> Trained[Scorer]:
        """The result of ``run``; Ctrl-C gives the best so far, marked as interrupted, or goes on to the caller where there is none."""
        recorder: Recorder[Scorer] = Recorder(self.journal, self._heard)
        self._settle()
        try:
            return run(recorder)
        except KeyboardInterrupt:
            if recorder.choice is None:
                raise
            self.interrupted = True
            return Trained(recorder.choice.candidate(), recorder.choice.verdict, recorder.made)

    def _heard(self, progress: Progress, new: bool, verdict: Verdict, best: Callable[[], Scorer], latest: bool) -> None:
        if not new:
            return
        self.journal.history.append(progress)
        self._settle()
        start = time.monotonic()
        if self.checkpoint is not None and start >= self._due:
            self.checkpoint(best(), progress.step, self.journal)
            now = time.monotonic()
            self._due = now + max(SECONDS_BETWEEN_CHECKPOINTS, TIMES_BETWEEN_CHECKPOINTS * (now - start))
        if self.listener is not None:
            self.listener(progress)
