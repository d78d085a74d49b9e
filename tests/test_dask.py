"""A Dask cluster gives the bits of this process, whoever is lost on the way."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import exactrank as xr
from exactrank.engine.engine import LocalEngine, partitioned
from exactrank.engine.partitions import query_range, read_shards
from tests.test_engine import cut_into, made

distributed = pytest.importorskip("distributed", reason="Dask is not installed")


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    cut_into(made(8, 2500), folder, [900, 1300], 20_000)
    return read_shards(str(folder / "part-*.xr"))


@pytest.fixture(scope="module")
def whole():
    return made(8, 2500)


RANKERS = [xr.DirectRank(bags=0, max_iter=1), xr.LambdaRank(learning_rate=0.1, batch_size=2500, max_iter=3)]


def text(model):
    return json.dumps(model.scorer.to_record())


@pytest.mark.parametrize("ranker", RANKERS, ids=repr)
def test_a_model_of_the_cluster_is_that_of_this_process(client, shards, whole, ranker):
    engine = xr.DaskEngine(client)
    ours = ranker.set_params(engine=engine).fit(shards).model_
    theirs = ranker.set_params(engine=None).fit(whole).model_
    assert text(ours) == text(theirs)
    assert engine.received < 1_000_000 * engine.rounds
    assert xr.evaluate("nDCG@10", shards, ours, engine=engine).means == xr.evaluate("nDCG@10", whole, theirs.predict(whole)).means


def pid():
    return os.getpid()


@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_the_model_is_the_same_when_a_worker_is_lost(shards, whole, fault):
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as own,
        distributed.Client(own, set_as_default=False) as client,
    ):
        victim = sorted(client.run(pid).values())[0]
        ranker = xr.DirectRank(bags=0, max_iter=1, engine=xr.DaskEngine(client, silence=4.0), start="zero")
        steps = []

        def once(ask, data, question):
            steps.append(0)
            if len(steps) == 6:
                os.kill(victim, fault)
            return ask(data, question)

        ask = ranker.engine.ask
        ranker.engine.ask = lambda data, question: once(ask, data, question)
        try:
            ours = ranker.fit(shards).model_
        finally:
            if fault == signal.SIGSTOP:
                os.kill(victim, signal.SIGCONT)
        assert len(steps) > 6
        assert text(ours) == text(xr.DirectRank(bags=0, max_iter=1, start="zero").fit(whole).model_)


def test_a_file_that_vanished_is_named(client, tmp_path, whole):
    xr.write(query_range(whole, 0, 500), tmp_path / "part-0.xr")
    shards = read_shards(str(tmp_path / "part-0.xr"))
    data = partitioned(shards, xr.DaskEngine(client))
    (tmp_path / "part-0.xr").unlink()
    with pytest.raises(xr.DataError, match=r"part-0\.xr is not there; every worker must find each file under the same path"):
        data.ask(sizes)


def sizes(part):
    return part.data.sizes


def slow(part):
    time.sleep(5)


def test_a_round_that_takes_too_long_says_what_it_waits_for(client, shards):
    data = partitioned(shards, xr.DaskEngine(client, limit=2.0))
    with pytest.raises(xr.EngineError, match=r"has not given function of .*part-0000\.xr.* within 2 s"):
        data.ask(slow)


def test_two_clients_get_what_each_asks_for(cluster, client, shards):
    with distributed.Client(cluster, set_as_default=False) as other:
        engines = [xr.DaskEngine(client), xr.DaskEngine(other)]
        expected = [part.tolist() for part in partitioned(shards, LocalEngine(), 20_000).ask(sizes)]
        found = {}

        def ask(number):
            data = partitioned(shards, engines[number], 20_000)
            found[number] = [[part.tolist() for part in data.ask(sizes)] for _ in range(5)]

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert found == {0: [expected] * 5, 1: [expected] * 5}


def test_a_scheduler_that_is_gone_is_named(shards):
    scheduler = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        address = next(line.split()[-1] for line in scheduler.stderr if "Scheduler at" in line)
        with distributed.Client(address, set_as_default=False, timeout=20) as client:
            engine = xr.DaskEngine(client, silence=2.0)
            with pytest.raises(xr.EngineError, match=r"no worker of .* has shown a sign of life for 2 s; start workers there"):
                engine.map(abs, [1])
            scheduler.kill()
            scheduler.wait(20)
            deadline = time.monotonic() + 20
            while client.status == "running" and time.monotonic() < deadline:
                time.sleep(0.1)
            with pytest.raises(xr.EngineError, match=r"the scheduler at .* is gone; start it again, and go on from the checkpoint"):
                engine.map(abs, [1])
    finally:
        scheduler.kill()
        scheduler.wait(20)


def test_an_interrupted_fit_goes_on_to_the_same_bits(client, shards, whole):
    ranker = xr.LambdaRank(learning_rate=0.1, batch_size=2500, max_iter=6, start="random", engine=xr.DaskEngine(client))
    kept = []

    def stop(progress):
        if progress.step == 3:
            raise KeyboardInterrupt

    with pytest.warns(xr.InterruptedWarning):
        ranker.fit(shards, progress=stop, checkpoint=kept.append)
    resumed = ranker.fit(shards, resume=kept[-1]).model_
    assert text(resumed) == text(xr.LambdaRank(learning_rate=0.1, batch_size=2500, max_iter=6, start="random").fit(whole).model_)
