"""A Dask cluster gives the bits of this process, whoever is lost on the way."""

import json
import logging
import os
import signal
import threading
from contextlib import closing, contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

import exactrank as er
from exactrank.data.backend import LocalBackend
from exactrank.data.dataset import EachPart
from exactrank.data.sharded import open_shards
from exactrank.data.shards import query_range, read_shards
from tests.backends.dask_processes import ByHeartbeat, answering, dask, scheduler_and_address
from tests.backends.test_engine import cut_into, made
from tests.events import HANGS, Gate, wait_at, wait_until

distributed = pytest.importorskip("distributed", reason="Dask is not installed")


@pytest.fixture(scope="module")
def cluster():
    quiet = {"dashboard_address": ":0", "scheduler_kwargs": {"dashboard": False}, "silence_logs": logging.CRITICAL}
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, memory_limit=0, **quiet) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster, set_as_default=False) as client:
        answering(client, 2)
        yield client


@pytest.fixture
def by_heartbeat(client, monkeypatch):
    """An engine whose clock goes by the heartbeats of its workers."""
    engine = ByHeartbeat(client)
    monkeypatch.setattr("exactrank.backends.dask.time", engine)
    return engine


@contextmanager
def odd_worker(client, preload):
    """A third worker, which runs ``preload`` before anything else."""
    with dask("worker", client.scheduler.address, "--no-nanny", "--nthreads", "1", "--preload", preload) as process:
        client.wait_for_workers(3, timeout=HANGS)
        yield process
    wait_until(lambda: len(client.scheduler_info()["workers"]) <= 2)


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    cut_into(made(8, 2500), folder, [900, 1300], 20_000)
    return read_shards(str(folder / "part-*.xr"))


@pytest.fixture(scope="module")
def whole():
    return made(8, 2500)


RANKERS = [er.DirectRank(bags=0, max_iter=1), er.LambdaRank(learning_rate=0.1, batch_size=2500, max_iter=3)]


def text(model):
    return json.dumps(model.scorer.to_record())


@pytest.mark.parametrize("ranker", RANKERS, ids=repr)
def test_a_model_of_the_cluster_is_that_of_this_process(client, shards, whole, ranker):
    engine = er.DaskBackend(client)
    ours = ranker.set_params(backend=engine).fit(shards).model_
    theirs = ranker.set_params(backend=None).fit(whole).model_
    assert text(ours) == text(theirs)
    assert engine.received < 1_000_000 * engine.rounds
    assert er.evaluate(shards, ours, "nDCG@10", backend=engine).means == er.evaluate(whole, theirs.predict(whole), "nDCG@10").means


@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_the_model_is_the_same_when_a_worker_is_lost_in_the_midst_of_a_round(client, shards, whole, fault, tmp_path, monkeypatch):
    engine = Striking(client, 6, fault, tmp_path / "struck")
    monkeypatch.setattr("exactrank.backends.dask.time", engine)
    try:
        ours = er.DirectRank(bags=0, max_iter=1, backend=engine, start="zero").fit(shards).model_
    finally:
        if fault == signal.SIGSTOP:
            os.kill(int(engine.struck.read_text()), signal.SIGKILL)
    assert engine.rounds > 6
    assert text(ours) == text(er.DirectRank(bags=0, max_iter=1, start="zero").fit(whole).model_)
    assert engine.struck.exists()


class Striking(ByHeartbeat):
    """The worker that is first to be asked the n-th question gets a signal; the file ``struck`` then has its process."""

    def __init__(self, client, n, fault, struck):
        super().__init__(client)
        self._n, self._fault, self.struck = n, fault, struck
        self._addresses = {str(process): address for address, process in client.run(os.getpid).items()}

    @property
    def stopped(self):
        if self._fault == signal.SIGKILL or not self.struck.exists():
            return ""
        return self._addresses.get(self.struck.read_text(), "")

    def ask(self, data, question):
        return super().ask(data, Deadly(question, self._fault, self.struck) if self.rounds + 1 == self._n else question)


@dataclass(frozen=True)
class Deadly:
    """A question; who is first to be asked dies of it."""

    question: object
    fault: signal.Signals
    struck: Path

    def ask(self, part):
        with suppress(FileExistsError), self.struck.open("x") as file:
            file.write(str(os.getpid()))
            file.flush()
            os.kill(os.getpid(), self.fault)
        return self.question.ask(part)

    def combine(self, answers):
        return self.question.combine(answers)


def test_a_task_that_dask_has_moved_to_a_hanging_worker_is_given_to_another(client, by_heartbeat, monkeypatch):
    """As it does where the one that was asked has more to do: it takes the other for idle."""
    hanging, other = by_heartbeat.alive()
    process, submit, asked = client.run(os.getpid)[hanging], by_heartbeat.submit, []

    def moved(work, worker=None, elsewhere=True):
        asked.append(worker)
        by_heartbeat.stopped = hanging  # which is noticed when it has been asked
        return submit(work, hanging if len(asked) == 3 else worker, elsewhere)

    monkeypatch.setattr(by_heartbeat, "submit", moved)
    os.kill(process, signal.SIGSTOP)
    try:
        assert by_heartbeat.map(abs, [-1, -2]) == [1, 2]
    finally:
        os.kill(process, signal.SIGKILL)
    assert asked == [hanging, other, other, other]


def test_a_file_that_vanished_is_named(client, tmp_path, whole):
    er.write(query_range(whole, 0, 500), tmp_path / "part-0.xr")
    shards = read_shards(str(tmp_path / "part-0.xr"))
    data = open_shards(shards, er.DaskBackend(client))
    (tmp_path / "part-0.xr").unlink()
    with pytest.raises(er.errors.DataError, match=r"part-0\.xr is not there; every worker must find each file under the same path"):
        data.ask(EachPart(sizes))


def sizes(part):
    return part.data.sizes


def test_a_round_that_takes_too_long_says_what_it_waits_for(client, shards, tmp_path):
    engine, path = er.DaskBackend(client), tmp_path / "gate"
    data = open_shards(shards, engine)
    engine.limit = 0.1
    with closing(Gate(path)), pytest.raises(er.errors.EngineError, match=r"has not given EachPart of .*part-0000\.xr.* within 0\.1 s"):
        data.ask(EachPart(lambda part: wait_at(path)))


def test_two_clients_get_what_each_asks_for(cluster, client, shards):
    with distributed.Client(cluster, set_as_default=False) as other:
        engines = [er.DaskBackend(client), er.DaskBackend(other)]
        expected = [part.tolist() for part in open_shards(shards, LocalBackend(), 20_000).ask(EachPart(sizes))]
        results = {}

        def ask(number):
            data = open_shards(shards, engines[number], 20_000)
            results[number] = [[part.tolist() for part in data.ask(EachPart(sizes))] for _ in range(5)]

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANGS)
        assert results == {0: [expected] * 5, 1: [expected] * 5}


@pytest.mark.parametrize(
    ("fault", "message", "ranker"),
    [
        (signal.SIGKILL, "is gone", er.LambdaRank(learning_rate=0.1, batch_size=2500, max_iter=6, start="random")),
        (signal.SIGSTOP, r"has not answered for 0\.5 s", er.LambdaMART(trees=12, threads=1, bags=0)),
    ],
    ids=["killed", "stopped"],
)
def test_a_scheduler_that_is_lost_in_training_is_named_and_training_resumed(shards, whole, fault, message, ranker, monkeypatch):
    monkeypatch.setattr("exactrank.learning.training.run.SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    monkeypatch.setattr("exactrank.learning.training.run.TIMES_BETWEEN_CHECKPOINTS", 0)
    models = []

    def keep(model):
        models.append(model)
        if len(models) == 2:
            scheduler.send_signal(fault)
            if fault == signal.SIGKILL:
                wait_until(lambda: client.status != "running")
            engine.silence = 0.5  # nobody will answer, however long it waits

    with scheduler_and_address() as (scheduler, address), distributed.Client(address, set_as_default=False, timeout=HANGS) as client:
        engine = ByHeartbeat(client)
        with (
            monkeypatch.context() as patched,
            pytest.raises(er.errors.EngineError, match=r"no worker of .* has shown a sign of life for 600 s; start workers there"),
        ):
            patched.setattr("exactrank.backends.dask.time", engine)
            engine.map(abs, [1])
        with dask("worker", address, "--no-nanny", "--nthreads", "1"):
            client.wait_for_workers(1, timeout=HANGS)
            engine = er.DaskBackend(client, silence=HANGS)
            ranker.set_params(backend=engine)
            with pytest.raises(
                er.errors.EngineError, match=rf"the scheduler at .* {message}; start it again, and go on from the checkpoint"
            ):
                ranker.fit(shards, checkpoint=keep)
        scheduler.kill()
    resumed = ranker.set_params(backend=None).fit(shards, resume=models[-1]).model_
    assert text(resumed) == text(ranker.fit(shards).model_)


@pytest.mark.parametrize(("status", "message"), [("running", "has not answered for 2 s"), ("connecting", "is gone")])
def test_a_scheduler_that_is_lost_while_it_is_asked_is_named(status, message):
    class Asked:
        """A client that hears nothing, and then knows why."""

        scheduler, status = SimpleNamespace(address="tcp://a:1", identity=None), "running"

        def sync(self, *args, **more):
            self.status = status
            raise TimeoutError

    with pytest.raises(er.errors.EngineError, match=f"the scheduler at tcp://a:1 {message}; start it again, and go on from the checkpoint"):
        er.DaskBackend(Asked(), silence=2.0).alive()


def test_a_worker_of_another_version_is_named(client):
    message = r"worker tcp://.* has exactrank 0\.0\.1, and the client has .*; install the same version on both"
    with odd_worker(client, "import exactrank; exactrank.__version__ = '0.0.1'"), pytest.raises(er.errors.IncompatibleError, match=message):
        er.DaskBackend(client).map(abs, [1, 2, 3])


def test_a_worker_without_exactrank_is_told_what_to_install(client):
    message = "a worker cannot import .*exactrank.*; install exactrank .*, as here, on every worker"
    with odd_worker(client, "import sys; sys.modules['exactrank'] = None"), pytest.raises(er.errors.IncompatibleError, match=message):
        er.DaskBackend(client).map(abs, [1, 2, 3])


def test_a_worker_that_does_not_see_the_files_is_named(client, shards):
    hidden = "import os.path; os.path.isfile = lambda path, isfile=os.path.isfile: not str(path).endswith('.xr') and isfile(path)"
    message = r"worker tcp://.*: .*part-000\d\.xr is not there; every worker must find each file under the same path"
    with odd_worker(client, hidden), pytest.raises(er.errors.DataError, match=message):
        open_shards(shards, er.DaskBackend(client))


def recurse(number):
    return recurse(number)


def test_a_recursion_without_an_end_is_an_error(client):
    with pytest.raises(er.errors.EngineError, match=r"worker tcp://.*: maximum recursion depth exceeded"):
        er.DaskBackend(client).map(recurse, [1])


def end_the_process(number):
    os._exit(1)


def test_workers_that_die_of_a_task_are_an_error(cluster, client, monkeypatch):
    """As nannies end those whose memory is full."""
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    with pytest.raises(er.errors.EngineError, match=r"1 results of end_the_process: each worker of .* died, 1 in a row, .* --memory-limit"):
        er.DaskBackend(client).map(end_the_process, [1])


def set_status(name, dask_worker):
    dask_worker.status = distributed.core.Status[name]


def test_workers_whose_memory_is_full_are_passed_over(client, by_heartbeat):
    first, second = by_heartbeat.alive()

    def pause(address):
        client.run(set_status, "paused", workers=[address])
        wait_until(lambda: by_heartbeat.facts()[address]["status"] == "paused")

    try:
        pause(first)
        assert by_heartbeat.map(abs, [-1, -2]) == [1, 2]
        assert by_heartbeat.status == "1 worker, 0.0 MB"
        pause(second)
        with pytest.raises(er.errors.EngineError, match=r"all workers of .* are paused, since their memory is nearly full; start more"):
            by_heartbeat.map(abs, [-1, -2])
    finally:
        client.run(set_status, "running", workers=[first, second])


def test_an_answer_that_is_not_handed_over_is_asked_for_again(client, monkeypatch):
    engine = er.DaskBackend(client)
    gather, tries = engine.gather, []

    def once(futures, limit):
        tries.append(limit)
        if len(tries) == 1:
            raise TimeoutError
        return gather(futures, limit)

    monkeypatch.setattr(engine, "gather", once)
    assert engine.map(abs, [-1, -2]) == [1, 2]
    assert tries == [30.0, 60.0]


def test_a_cluster_that_is_lost_after_training_costs_no_model(client, shards, monkeypatch):
    engine = er.DaskBackend(client)
    data = open_shards(shards, engine)
    monkeypatch.setattr(engine, "silence", 0.1)
    monkeypatch.setattr(engine, "facts", dict)
    engine.forget(data)
    with pytest.raises(er.errors.EngineError, match="no worker of"):
        engine.alive()


def test_two_clients_train_at_once_on_other_data_and_measures(cluster, client, shards, whole, tmp_path):
    other = made(9, 800, weights=True)
    cut_into(other, tmp_path, [300], 20_000)
    with distributed.Client(cluster, set_as_default=False) as second:
        work = [
            (er.LambdaRank(learning_rate=0.1, batch_size=2500, max_iter=2), shards, whole, client),
            (er.AdaRank("AP", max_iter=2), read_shards(str(tmp_path / "part-*.xr")), other, second),
        ]
        results = {}

        def fit(number):
            ranker, data, _, own = work[number]
            results[number] = text(copy(ranker).set_params(backend=er.DaskBackend(own)).fit(data).model_)

        threads = [threading.Thread(target=fit, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANGS)
    assert results == {number: text(ranker.fit(data).model_) for number, (ranker, _, data, _) in enumerate(work)}


def test_an_interrupted_fit_goes_on_to_the_same_bits(client, shards, whole):
    ranker = er.LambdaRank(learning_rate=0.1, batch_size=2500, max_iter=6, start="random", backend=er.DaskBackend(client))
    models = []

    def stop(progress):
        if progress.step == 3:
            raise KeyboardInterrupt

    with pytest.warns(er.errors.InterruptedWarning):
        ranker.fit(shards, progress=stop, checkpoint=models.append)
    resumed = ranker.fit(shards, resume=models[-1]).model_
    assert text(resumed) == text(er.LambdaRank(learning_rate=0.1, batch_size=2500, max_iter=6, start="random").fit(whole).model_)
