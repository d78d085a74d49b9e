"""The one loop, the recorder and the combinators, on walks that have nothing to do with ranking.

The law of resuming: a composition of runs that is broken off after any step, written to JSON and taken up from there, arrives at the same
iterate, verdict and history as one without a break.
"""

import json
import signal
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import ClassVar
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from exactrank._support.serialize import from_record, storable, to_record
from exactrank.learning.optimizers.base import State, drawing_from, draws_of
from exactrank.learning.training.combinators import bags, phases, restarts, trials
from exactrank.learning.training.progress import Trained, Verdict
from exactrank.learning.training.run import Journal, Recorder, RootRecorder, Run
from exactrank.models.linear import Linear


@storable
@dataclass(frozen=True, kw_only=True)
class WalkState(State):
    draws: dict


@dataclass(frozen=True)
class Walk:
    """An optimizer that takes steps at random, up or down, in units of ``stride``."""

    asks: ClassVar[type] = object
    stride: float = 1.0

    def init(self, problem, theta, rng):
        return WalkState(theta, float(theta[0]), draws=draws_of(rng))

    def resume(self, problem, state, rng):
        return replace(state, steps=0, is_done=False, theta=state.theta - 1)

    def step(self, problem, state):
        rng = drawing_from(state.draws)
        theta = state.theta + self.stride * rng.integers(-1, 2, size=1)
        return WalkState(theta, float(theta[0]), state.steps + 1, bool(theta[0] >= problem), draws=draws_of(rng))


def judge(theta, value):
    return Verdict(float(theta[0]), None, float(theta[0]))


def walk(seed, steps, patience=None, stride=1.0):
    return lambda start, recorder: Run(Walk(stride), 6.0, start, judge, steps, seed, patience)(recorder)


def chained(runs):
    """Walks each of which goes on, with its draws, from one step below where the last one ended, which need not be its best."""
    return lambda start, recorder: restarts(
        [Run(Walk(stride), 6.0, start, judge, steps, 0, chain="chain") for steps, stride in runs], recorder, patience=2
    )


def leaves():
    return st.builds(walk, st.integers(0, 50), st.integers(0, 6), st.sampled_from([None, 1, 3]), st.sampled_from([1.0, 0.3]))


def moved(run, far, start, recorder):
    return run(start + far, recorder)


def compositions():
    """Runs from a start, of runs from a start, of ..."""

    def grown(inner):
        several = st.lists(inner, min_size=1, max_size=3)
        return st.one_of(
            several.map(lambda runs: lambda start, recorder: restarts([partial(run, start) for run in runs], recorder)),
            several.map(lambda runs: lambda start, recorder: phases(runs, start, recorder)),
            st.lists(st.tuples(st.integers(0, 4), st.sampled_from([1.0, 0.3])), min_size=1, max_size=4).map(chained),
            st.tuples(several, inner).map(
                lambda both: (
                    lambda start, recorder: trials(
                        [partial(run, start) for run in both[0]],
                        [partial(moved, both[1], number) for number in range(len(both[0]))],
                        recorder,
                    )
                )
            ),
        )

    return st.recursive(leaves(), grown, max_leaves=6)


class KilledError(Exception):
    pass


def started(run, recorder):
    trained = run(np.zeros(1), recorder.part(view=Linear))
    return replace(trained, iterate=Linear(trained.iterate))


def whole(run, journal=None, kill_at=None):
    """The result of a composition, as a scorer; and the journal as text if it was killed after hearing ``kill_at`` steps."""
    written, heard = [], 0

    def checkpoint(scorer, steps, result):
        nonlocal heard
        heard += 1
        written[:] = [json.dumps(to_record(vars(result)))]
        if heard == kill_at:
            raise KilledError

    root = RootRecorder(checkpoint=checkpoint, journal=journal or Journal())
    try:
        with patch.multiple("exactrank.learning.training.run", SECONDS_BETWEEN_CHECKPOINTS=0.0, TIMES_BETWEEN_CHECKPOINTS=0):
            trained = root.train(partial(started, run))
    except KilledError:
        return None, written[0]
    return (trained.iterate.weights.tolist(), trained.verdict, trained.steps, tuple(root.journal.history)), None


@given(compositions(), st.integers(1, 12))
@settings(max_examples=60, deadline=None)
def test_a_composition_that_is_broken_off_anywhere_arrives_at_the_same(run, kill_at):
    unbroken, _ = whole(run)
    result, journal = whole(run, kill_at=kill_at)
    for _ in unbroken[-1]:  # killed again and again, each time after at least one step more
        if result is None:
            result, journal = whole(run, Journal(**from_record(json.loads(journal), "here")), kill_at=kill_at)
    assert result == unbroken


@pytest.mark.parametrize(("owner", "name"), [(Recorder, "record"), (RootRecorder, "_save_step")])
@given(run=compositions(), after=st.integers(0, 12))
@settings(max_examples=30, deadline=None)
def test_ctrl_c_in_the_midst_of_a_step_loses_that_step_alone(owner, name, run, after):
    """It comes when the journal has the step already and the history has not, or when both have it."""
    steps, own, (unbroken, _) = count(), getattr(owner, name), whole(run)

    def interrupted(*args, **more):
        if next(steps) == after:
            raise KeyboardInterrupt
        own(*args, **more)

    root = RootRecorder()
    with patch.object(owner, name, interrupted), suppress(KeyboardInterrupt):
        root.train(partial(started, run))
    resumed, _ = whole(run, Journal(**from_record(json.loads(json.dumps(to_record(vars(root.resumable)))), "here")))
    assert resumed == unbroken


def test_the_best_iterate_is_kept_not_the_last():
    trained = walk(3, 6)(np.zeros(1), Recorder())
    path = [0.0]
    state = Walk().init(6.0, np.zeros(1), np.random.default_rng(3))
    for _ in range(6):
        state = Walk().step(6.0, state)
        path.append(float(state.theta[0]))
    assert path[-1] < max(path)  # else this test would say nothing
    assert trained.iterate[0] == trained.verdict.goodness == max(path)


@pytest.mark.parametrize("patience", [1, 2, 3])
def test_patience_counts_steps_without_a_better_iterate(patience):
    steps = []
    Run(Walk(), 6.0, np.zeros(1), judge, 100, 1, patience)(Recorder(above=lambda progress, *_: steps.append(progress.value)))
    best_at = int(np.argmax(steps))
    assert len(steps) == best_at + patience + 1


def test_a_chain_goes_on_from_the_last_state_and_another_does_not():
    def values(chain):
        steps = []
        root = RootRecorder(listener=lambda progress: steps.append(progress.value))
        runs = [Run(Walk(), 6.0, np.zeros(1), judge, 3, 4, chain=chain) for _ in range(2)]
        root.train(lambda recorder: restarts(runs, recorder.part(view=Linear)))
        return steps

    alone, chain = values(""), values("chain")
    assert alone[4:] == alone[:4] == chain[:4]
    assert chain[4] == chain[3] - 1 != alone[4]


def test_of_a_run_that_has_ended_its_result_alone_is_kept():
    """Not the state of its optimizer, which may be large; it is what a run that is taken up gives, without a step."""
    journal, runs = Journal(), [Run(Walk(), 6.0, np.zeros(1), judge, 4, seed) for seed in range(3)]
    best = restarts(runs, Recorder(journal))
    assert [type(kept) for kept in journal.entries.values()] == [Trained] * 3
    with patch.object(Walk, "step", side_effect=AssertionError), patch.object(Walk, "init", side_effect=AssertionError):
        assert vars(restarts(runs, Recorder(journal))) == vars(best)


def test_ctrl_c_gives_the_best_iterate_so_far_and_says_so():
    root = RootRecorder(listener=lambda progress: signal.raise_signal(signal.SIGINT) if progress.step == 3 else None)
    trained = root.train(lambda recorder: walk(3, 6)(np.zeros(1), recorder.part(view=Linear)))
    steps = [progress.value for progress in root.journal.history]
    assert root.interrupted
    assert len(steps) == 4
    assert trained.iterate.weights[0] == max(steps)


def test_ctrl_c_before_there_is_an_iterate_goes_on_to_the_caller():
    def interrupted(recorder):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        RootRecorder().train(interrupted)


def test_the_progress_of_parts_is_that_of_one_run():
    root = RootRecorder()
    runs = [partial(walk(seed, 4), np.zeros(1)) for seed in (1, 2, 3)]
    root.train(lambda recorder: restarts(runs, recorder.part(view=Linear)))
    steps = [progress.step for progress in root.journal.history]
    assert steps == sorted(steps)
    assert all(progress.step <= progress.steps for progress in root.journal.history)
    assert root.journal.history[-1].step == root.journal.history[-1].steps


def test_steps_tell_to_which_run_they_belong():
    """Restarts, trials and bags begin anew; a phase goes on where the one before ended."""

    def told(run):
        root = RootRecorder()
        root.train(lambda recorder: run(recorder.part(view=Linear)))
        return [(progress.run, progress.value) for progress in root.journal.history]

    starts = [partial(walk(seed, 2), np.zeros(1)) for seed in (1, 2)]
    result = told(partial(restarts, starts))
    assert [run for run, _ in result] == ["0/"] * 3 + ["1/"] * 3
    assert [value for _, value in result][::3] == [0.0, 0.0]
    assert {run for run, _ in told(partial(phases, [walk(1, 2), walk(2, 2)], np.zeros(1)))} == {""}
    assert [run for run, _ in told(lambda recorder: trials(starts, [walk(3, 1), walk(4, 1)], recorder))][-2:] == ["2/", "2/"]
    anew = told(lambda recorder: phases([lambda _, part: restarts(starts, part), walk(0, 1)], np.zeros(1), recorder))
    assert [run for run, _ in anew] == ["0/"] * 3 + ["1/"] * 3 + [""] * 2


def test_restarts_end_by_patience():
    made = []

    def run(number, recorder):
        made.append(number)
        return walk(0, 0)(np.array([-float(number)]), recorder)

    restarts([partial(run, number) for number in range(9)], Recorder(), patience=3)
    assert made == [0, 1, 2, 3]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_bag_is_the_mean_of_its_members(workers):
    def member(number, recorder):
        trained = walk(number, 0)(np.array([float(number), 1.0]), recorder.part(view=Linear))
        return replace(trained, iterate=Linear(trained.iterate))

    def verdict(scorer):
        return Verdict(float(scorer.weights[0]), None, 0.0)

    root = RootRecorder()
    trained = root.train(lambda recorder: bags([partial(member, number) for number in range(5)], verdict, recorder, workers))
    assert trained.iterate.weights.tolist() == [2.0, 1.0]
    assert trained.verdict.value == 2.0
