"""Comparisons and tuning on a cluster: the results of local processes, also when a worker is lost."""

import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import exactrank as er
from exactrank.compare.cluster import ClusterServer
from exactrank.data.synthetic import CubicPolynomial
from tests.backends.dask_processes import answering
from tests.events import HANGS, Gate, Letterbox, gone, post, wait_at

pytest.importorskip("distributed", reason="needs Dask")
DATA = CubicPolynomial(features=4, documents=8, noise=0.5, seed=1).data(60)
METHODS = ["ridge", "small=lambdamart(trees=5, leaves=4)"]


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    from distributed import Client, LocalCluster

    from exactrank.backends.dask import DaskBackend

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, memory_limit=0, dashboard_address=None) as made,
        Client(made) as client,
    ):
        yield DaskBackend(client, silence=HANGS)


def numbers(result: Any) -> list[Any]:
    return [(fit.dataset, fit.fold, fit.method, fit.failed, fit.settings, fit.test, fit.valid) for fit in result.fits]


def test_a_comparison_on_a_cluster_has_the_numbers_of_one_here(engine: Any, tmp_path: Path) -> None:
    ours = er.compare(DATA, METHODS, folds=3, out=tmp_path / "there", backend=engine)
    theirs = er.compare(DATA, METHODS, folds=3, threads=1)
    assert not any(fit.failed for fit in ours.fits)
    assert numbers(ours) == numbers(theirs)
    assert ours.run["workers"] == 2
    begun = sorted((tmp_path / "there/fits").glob("*.json"))
    times = [path.stat().st_mtime_ns for path in begun]
    again = er.compare(DATA, METHODS, folds=3, out=tmp_path / "there", backend=engine, resume=True)
    assert numbers(again) == numbers(ours)
    assert [path.stat().st_mtime_ns for path in begun] == times  # nothing was done again


def test_tuning_on_a_cluster_finds_what_it_finds_here(engine: Any, tmp_path: Path) -> None:
    ours = er.tune(DATA, "lambdamart(trees=5)", folds=2, trials=2, threads=2, backend=engine, scratch=tmp_path)
    theirs = er.tune(DATA, "lambdamart(trees=5)", folds=2, trials=2, threads=1)
    assert [(trial.settings, trial.valid) for trial in ours.trials] == [(trial.settings, trial.valid) for trial in theirs.trials]
    assert ours.ranker.predict(DATA).tobytes() == theirs.ranker.predict(DATA).tobytes()


def wait_and_write(folder: Path) -> None:
    post(folder / "begun", os.getpid())
    wait_at(folder / "gate")
    (folder / "result").write_text("done")


@pytest.fixture
def begun(tmp_path: Path) -> Iterator[Letterbox]:
    """A letterbox to which each fit posts its process when it begins."""
    with closing(Letterbox(tmp_path / "begun")) as letterbox:
        yield letterbox


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    """A gate at which all fits wait."""
    with closing(Gate(tmp_path / "gate")) as gate:
        yield gate


def ended(server: ClusterServer) -> Any:
    result = server.wait(HANGS)
    assert result is not None
    return result


def test_the_fit_of_a_lost_worker_is_done_by_another(engine: Any, begun: Letterbox, gate: Gate, tmp_path: Path) -> None:
    server = ClusterServer(engine, 1, tmp_path)
    server.start("fit", partial(wait_and_write, tmp_path), None)
    first = begun.line()
    where = next(address for address, tasks in engine.client.processing().items() if tasks)
    os.kill(engine.client.run(os.getpid)[where], signal.SIGKILL)
    assert begun.line() != first
    gate.open()
    name, how = ended(server)
    assert (name, how.status, (tmp_path / "result").read_text()) == ("fit", 0, "done")
    server.close()
    answering(engine.client, 2)


@pytest.mark.usefixtures("gate")
def test_fits_end_by_their_limit_and_when_nobody_wants_them(engine: Any, begun: Letterbox, tmp_path: Path) -> None:
    server = ClusterServer(engine, 1, tmp_path)
    server.start("late", partial(wait_at, tmp_path / "gate"), 0.2)
    assert ended(server)[1].timed_out
    server.start("unwanted", partial(wait_and_write, tmp_path), None)
    process = int(begun.line())
    os.kill(process, 0)
    server.close()
    assert gone(process)


def test_what_cannot_be_sent_and_folders_that_workers_do_not_see(engine: Any, tmp_path: Path) -> None:
    server = ClusterServer(engine, 1, tmp_path)
    lock = threading.Lock()
    refused = server.start("lock", lambda: lock.acquire() and None, None)
    assert refused is not None
    assert "cannot be sent to another process" in refused.reason
    elsewhere = ClusterServer(engine, 1, tmp_path / "elsewhere")
    elsewhere.start("fit", lambda: None, None)
    assert re.search("does not see .*elsewhere; give .* a folder that all workers share", ended(elsewhere)[1].reason)
