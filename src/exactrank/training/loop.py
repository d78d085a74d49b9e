"""The one loop: it steps an optimizer, lets the judge say what each iterate is worth, and keeps the best.

It ends when the optimizer is done, the maximum number of steps is made, or nothing better was found for a while. What it knows is in the
recorder after every step, so it can be broken off there and resumed to the bit.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, TypeVar, cast

import numpy as np

from exactrank.optimizers.base import Duality, Optimizer, Redrawn, Resumable, State, fitting
from exactrank.training.progress import It, Progress, Trained, Verdict
from exactrank.training.recorder import Recorder, Standing

P = TypeVar("P")
S = TypeVar("S")


@dataclass(frozen=True, eq=False)
class Run(Generic[P, It, S]):
    """``optimizer`` on ``problem`` from ``start``, judged by ``judge``; a function of the recorder.

    ``patience`` ends it after that many steps in turn without a better iterate. ``seed`` is that of the optimizer's draws, or their
    generator. A problem that is `Redrawn` gets new draws for each step, by its number. Neighbouring runs of one ``chain`` each go
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
        """The best iterate."""
        entry = recorder.entry
        if isinstance(entry, Trained):
            self._tell(recorder, entry.steps, entry.iterate, entry.verdict, entry.verdict, None, new=False)
            return entry
        if isinstance(entry, Standing):
            now = entry
            self._tell(recorder, now.state.steps, now.best, now.verdict, now.verdict, None, new=False)
        else:
            now = self._stand(recorder, self._begun(recorder), None)
        while not self._over(now):
            now = self._stand(recorder, self.optimizer.step(self._drawn(now.state.steps), cast(S, now.state)), now)
        trained = Trained(now.best, now.verdict, now.state.steps, now.state.trouble, duality=now.state.duality)
        recorder.keep(trained)
        if self.chain:
            recorder.journal.entries[recorder.beside(self.chain)] = now.state
        return trained

    @cached_property
    def _drawn(self) -> Callable[[int], P]:
        """The problem of each step; whether it is drawn anew is asked once, since a protocol answers slowly."""
        problem = self.problem
        return problem.drawn if isinstance(problem, Redrawn) else lambda step: problem

    def _begun(self, recorder: Recorder[It]) -> S:
        rng, before = np.random.default_rng(self.seed), recorder.journal.entries.get(recorder.beside(self.chain))
        if before is None or not self.chain:
            return self.optimizer.init(self._drawn(0), self.start, rng)
        return cast(Resumable[P, It, S], self.optimizer).resumed(self._drawn(0), cast(S, before), rng)

    def _over(self, now: Standing[It]) -> bool:
        waited = self.patience is not None and now.stale >= self.patience
        return now.state.done or now.state.steps >= self.max_steps or waited

    def _stand(self, recorder: Recorder[It], reached: S, before: Standing[It] | None) -> Standing[It]:
        """Where the run stands at the state that it ``reached``, which everybody gets to know."""
        state = cast(State[It], reached)
        verdict = self.judge(state.theta, state.value)
        if before is None or verdict.goodness > before.verdict.goodness:
            now = Standing(state, state.theta, verdict, 0)
        else:
            now = replace(before, state=state, stale=before.stale + 1)
        recorder.keep(now)
        self._tell(recorder, state.steps, now.best, now.verdict, verdict, state.duality)
        return now

    def _tell(
        self, recorder: Recorder[It], step: int, best: It, of_best: Verdict, verdict: Verdict, duality: Duality | None, new: bool = True
    ) -> None:
        recorder.heard(Progress(step, self.max_steps, verdict.value, verdict.valid, duality), of_best, lambda: best, new)
