"""A pool goes on with the threads there are."""

import threading
from concurrent.futures import CancelledError

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import exactrank as er
from exactrank._support.threads import Pool
from tests.events import HANGS


@pytest.fixture(params=[0, 1, 2, 9])
def most(request, monkeypatch):
    """How many threads can be started."""
    started, start = [], threading.Thread.start

    def limited(thread):
        if len(started) >= request.param:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    return request.param


def test_all_work_is_done_once_and_in_order(most):
    done = []

    def work(number):
        done.append(number)
        return -number

    with Pool(4) as pool:
        assert list(pool.map(work, range(200))) == [-number for number in range(200)]
    assert sorted(done) == list(range(200))


def test_errors_reach_the_caller(most):
    with Pool(2) as pool:
        job = pool.submit(lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            job.result()


def test_what_has_not_begun_can_be_cancelled():
    held, begun = threading.Event(), threading.Event()

    def hold():
        begun.set()
        return held.wait(HANGS)

    with Pool(1) as pool:
        first = pool.submit(hold)
        assert begun.wait(HANGS)
        second = pool.submit(lambda: 1)
        assert second.cancel()
        held.set()
        assert first.result()
    with pytest.raises(CancelledError):
        second.result()


@pytest.mark.parametrize("ranker", [er.Ridge(), er.DirectRank(max_iter=1, bags=0)], ids=lambda ranker: type(ranker).__name__)
def test_the_model_does_not_depend_on_the_threads_of_blas(ranker):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 100)).astype(np.float32)  # smaller products have one thread anyway
    data = er.RankingData.from_arrays(X, (X[:, :3].sum(1) + rng.normal(size=8000) > 1).astype(int), group=[20] * 400)
    results = []
    for count in (1, 2):
        with threadpool_limits(count, user_api="blas"):
            results.append(ranker.fit(data).weights_)
    assert results[0].tobytes() == results[1].tobytes()
