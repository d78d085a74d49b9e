"""Models of a cross-fit that are trained side by side: the same bits, histories and journals as one after the other, whatever ends them."""

from threading import Event

import numpy as np
import pytest

import exactrank as er
from exactrank.learning.training.ahead import running_ahead
from exactrank.learning.training.progress import Progress, Trained, Verdict
from exactrank.learning.training.run import Journal, Recorder
from tests.rankers.test_rankers import judged

MEMBERS = "directrank, lambdarank(max_iter=6), mart(trees=8, min_documents=2), smoothrank(max_iter=3)"


def blend(threads, **more):
    return er.Blend("nDCG@5", **({"members": MEMBERS, "bags": 4, "threads": threads} | more))


@pytest.mark.parametrize("threads", [2, 3, 16])
def test_side_by_side_gives_the_bits_and_the_history_of_one_after_the_other(threads):
    data = judged(queries=24, noise=2.0)
    ours, theirs = blend(threads).fit(data), blend(1).fit(data)
    assert ours.model_.scorer.to_record() == theirs.model_.scorer.to_record()
    assert ours.model_.training == theirs.model_.training
    assert list(ours.history_) == list(theirs.history_)
    assert np.array_equal(ours.oof_, theirs.oof_)


@pytest.mark.parametrize("after", [1, 7, 40])
def test_ctrl_c_keeps_what_it_does_in_one_thread_and_training_resumes_to_the_bit(after):
    data, models = judged(queries=24, noise=2.0), []
    for threads in (1, 3):
        steps = []

        def listener(progress, steps=steps):
            steps.append(progress)
            if len(steps) == after:
                raise KeyboardInterrupt

        with pytest.warns(er.errors.InterruptedWarning):
            models.append(blend(threads).fit(data, progress=listener).model_)
    first, second = models
    assert second.scorer.to_record() == first.scorer.to_record()
    assert second.run == first.run, "the same journal"
    resumed, unbroken = blend(2).fit(data, resume=second), blend(1).fit(data)
    assert resumed.model_.scorer.to_record() == unbroken.model_.scorer.to_record()
    assert list(resumed.history_) == list(unbroken.history_)


def stepping(steps, waits_for=None, reached=None):
    """A run that reports that many steps, once another is at work."""

    def run(recorder):
        if reached is not None:
            reached.set()
        if waits_for is not None:
            waits_for.wait()
        for step in range(1, steps + 1):
            recorder.record(Progress(step, steps, 0.0), Verdict(0.0, None, 0.0), lambda step=step: step)
        return Trained(steps, Verdict(0.0, None, 0.0), steps)

    return run


def test_runs_are_at_work_at_the_same_time_and_reported_in_order():
    """The first waits for the second, and is heard first all the same."""
    begun, steps = Event(), []
    recorder = Recorder(Journal(), lambda progress, *_: steps.append(progress.run))
    with running_ahead([stepping(2, waits_for=begun), stepping(3, reached=begun)], recorder, 2) as runs:
        ends = [run(recorder.part(number, 2, latest=True)) for number, run in enumerate(runs)]
    assert steps == ["0/"] * 2 + ["1/"] * 3
    assert [end.iterate for end in ends] == [2, 3]


def test_runs_that_nobody_hears_end():
    """A run without end does, once its caller has left; otherwise this test would not end."""
    recorder = Recorder(Journal(), lambda *_: None)
    with pytest.raises(RuntimeError, match="left"), running_ahead([stepping(1), stepping(10**12)], recorder, 2) as runs:
        runs[0](recorder.part(0, 2, latest=True))
        raise RuntimeError("left")


def test_a_run_that_fails_fails_where_it_is_called():
    def failing(recorder):
        raise er.errors.DataError("broken")

    recorder = Recorder(Journal(), lambda *_: None)
    with running_ahead([stepping(2), failing], recorder, 2) as runs:
        assert runs[0](recorder.part(0, 2, latest=True)).iterate == 2
        with pytest.raises(er.errors.DataError, match="broken"):
            runs[1](recorder.part(1, 2, latest=True))
