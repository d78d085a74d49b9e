"""Comparisons and tuning on a cluster: the results of local processes, also when a worker is lost."""

import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import exactrank as xr
from exactrank.compare.cluster import ClusterServer
from exactrank.data.synthetic import CubicPolynomial

pytest.importorskip("distributed", reason="needs Dask")
DATA = CubicPolynomial(features=4, documents=8, noise=0.5, seed=1).data(60)
METHODS = ["ridge", "small=lambdamart(trees=5, leaves=4)"]


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    from distributed import Client, LocalCluster

    from exactrank.engine.dask import DaskEngine

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as made,
        Client(made) as client,
    ):
        yield DaskEngine(client)


def numbers(found: Any) -> list[Any]:
    return [(fit.dataset, fit.fold, fit.method, fit.failed, fit.settings, fit.test, fit.valid) for fit in found.fits]


def test_a_comparison_on_a_cluster_has_the_numbers_of_one_here(engine: Any, tmp_path: Path) -> None:
    ours = xr.compare(DATA, METHODS, folds=3, out=tmp_path / "there", engine=engine)
    theirs = xr.compare(DATA, METHODS, folds=3, threads=1)
    assert not any(fit.failed for fit in ours.fits)
    assert numbers(ours) == numbers(theirs)
    assert ours.run["workers"] == 2
    begun = sorted((tmp_path / "there/fits").glob("*.json"))
    times = [path.stat().st_mtime_ns for path in begun]
    again = xr.compare(DATA, METHODS, folds=3, out=tmp_path / "there", engine=engine, resume=True)
    assert numbers(again) == numbers(ours)
    assert [path.stat().st_mtime_ns for path in begun] == times  # nothing was done again


def test_tuning_on_a_cluster_finds_what_it_finds_here(engine: Any, tmp_path: Path) -> None:
    ours = xr.tune("lambdamart(trees=5)", DATA, folds=2, trials=2, threads=2, engine=engine, scratch=tmp_path)
    theirs = xr.tune("lambdamart(trees=5)", DATA, folds=2, trials=2, threads=1)
    assert [(trial.settings, trial.valid) for trial in ours.trials] == [(trial.settings, trial.valid) for trial in theirs.trials]
    assert ours.ranker.predict(DATA).tobytes() == theirs.ranker.predict(DATA).tobytes()


def sleep_and_write(path: Path, seconds: float) -> None:
    with open(f"{path}.begun", "a") as file:
        file.write(f"{os.getpid()}\n")
    time.sleep(seconds)
    path.write_text("done")


def ended(server: ClusterServer, seconds: float = 60.0) -> Any:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = server.wait(0.5)
        if found is not None:
            return found
    raise AssertionError(f"no fit ended within {seconds} s")


def begun(path: Path, times: int = 1) -> list[str]:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if Path(f"{path}.begun").exists() and len(lines := Path(f"{path}.begun").read_text().split()) >= times:
            return lines
        time.sleep(0.05)
    raise AssertionError("the fit did not begin")


def test_the_fit_of_a_lost_worker_is_done_by_another(engine: Any, tmp_path: Path) -> None:
    server = ClusterServer(engine, 1, tmp_path)
    path = tmp_path / "result"
    server.start("fit", lambda: sleep_and_write(path, 3.0), None)
    begun(path)
    where = next(address for address, tasks in engine.client.processing().items() if tasks)
    os.kill(engine.client.run(os.getpid)[where], signal.SIGKILL)
    name, how = ended(server)
    assert (name, how.status, path.read_text()) == ("fit", 0, "done")
    assert len(begun(path, 2)) == 2
    server.close()
    engine.client.wait_for_workers(2, timeout=30)


def test_fits_end_by_their_limit_and_when_nobody_wants_them(engine: Any, tmp_path: Path) -> None:
    server = ClusterServer(engine, 1, tmp_path)
    server.start("late", lambda: sleep_and_write(tmp_path / "late", 60.0), 1.0)
    assert ended(server)[1].late
    path = tmp_path / "unwanted"
    server.start("unwanted", lambda: sleep_and_write(path, 60.0), None)
    (process,) = map(int, begun(path))
    os.kill(process, 0)
    server.close()
    until = time.monotonic() + 30
    with pytest.raises(ProcessLookupError):
        while time.monotonic() < until:
            os.kill(process, 0)
            time.sleep(0.05)


def test_what_cannot_be_sent_and_folders_that_workers_do_not_see(engine: Any, tmp_path: Path) -> None:
    server = ClusterServer(engine, 1, tmp_path)
    lock = threading.Lock()
    refused = server.start("lock", lambda: lock.acquire() and None, None)
    assert refused is not None
    assert "cannot be sent to another process" in refused.reason
    elsewhere = ClusterServer(engine, 1, tmp_path / "elsewhere")
    elsewhere.start("fit", lambda: None, None)
    assert re.search("does not see .*elsewhere; give .* a folder that all workers share", ended(elsewhere)[1].reason)
