"""Trees on an engine: the same bits for any number of workers and any cut, as on one machine, and when workers are lost."""

import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import exactrank as xr
from exactrank.data.synthetic import CubicPolynomial
from exactrank.engine.engine import LocalEngine, partitioned
from exactrank.engine.partitions import query_range, read_shards
from exactrank.engine.together import LostWorkerError, together
from exactrank.errors import EngineError, LostWorkerWarning, SettingError
from exactrank.measures.parse import parse_measure
from exactrank.objectives.exact_sums import rounded
from exactrank.rankers.cluster_forest import Crews
from exactrank.rankers.lightgbm_library import sampled_rows
from exactrank.rankers.peers import LostRankError, Peers, listen
from exactrank.rankers.rank import Plan
from tests.dask_processes import ByHeartbeat, answering
from tests.events import HANGS, wait_until

from .test_tree_ensemble import same

pytest.importorskip("distributed", reason="needs Dask")


DATA, VALID = (CubicPolynomial(features=6, documents=20, noise=0.5, seed=seed).data(queries) for seed, queries in ((1, 2500), (2, 300)))


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    folder = tmp_path_factory.mktemp("shards")

    def written(data: xr.RankingData, *cuts: int) -> Any:
        paths = []
        for first, last in zip((0, *cuts), (*cuts, data.n_queries), strict=True):
            paths.append(folder / f"{id(data)}-{first}-{last}.xr")
            if not paths[-1].exists():
                xr.write(query_range(data, first, last), paths[-1])
        return read_shards(paths)

    return written


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, memory_limit=0, dashboard_address=None) as made,
        Client(made) as client,
    ):
        yield client


def engine_of(client: Any) -> Any:
    from exactrank.engine.dask import DaskEngine

    return DaskEngine(client, silence=HANGS)


def trained(make: Callable[..., Any], shards: Any, engine: Any = None, **more: Any) -> Any:
    return make(engine=engine).fit(shards, **more).model_


RANKERS = {
    "LambdaMART": partial(xr.LambdaMART, trees=8, threads=1),
    "sampled bins": partial(xr.LambdaMART, "AP(rel=3)", trees=5, threads=1, lightgbm={"bin_construct_sample_cnt": 5000}),
    "MART": partial(xr.MART, trees=8, threads=1, query_fraction=1.0),
    "DirectRankTrees": partial(xr.DirectRankTrees, trees=6, threads=1),
    "DirectRankTrees of AP": partial(xr.DirectRankTrees, "AP(rel=3)", trees=4, threads=1, search="all", query_fraction=1.0),
    "sampled lambdas": partial(xr.LambdaMART, trees=4, threads=1, lambdas="sampled", samples=2),
    "a bag of draws": partial(xr.LambdaMART, trees=3, threads=1, bags=2),
    "a bag of bootstrap samples": partial(xr.LambdaMART, trees=3, threads=1, bags=2, bagging="bootstrap"),
}


@pytest.mark.parametrize("name", RANKERS)
def test_two_ranks_grow_the_trees_of_one_machine(name: str, shards: Callable[..., Any]) -> None:
    ours = trained(RANKERS[name], shards(DATA, 1000), valid=VALID)
    theirs = RANKERS[name]().fit(DATA, valid=VALID).model_
    assert ours.predict(DATA).tobytes() == theirs.predict(DATA).tobytes()
    assert ours.training == theirs.training


@pytest.mark.parametrize("make", [xr.LambdaMART, xr.DirectRankTrees])
def test_grades_may_be_of_any_size(make: Any, shards: Callable[..., Any]) -> None:
    y = np.where(DATA.y > 1, DATA.y * np.random.default_rng(0).uniform(1, 9, DATA.n_documents), DATA.y - 1)
    y[30] = 61.5
    data = replace(DATA, y=y)
    make = partial(make, trees=4, threads=1)
    ours, theirs = trained(make, shards(data, 1000), valid=VALID), make().fit(data, valid=VALID).model_
    assert ours.predict(data).tobytes() == theirs.predict(data).tobytes()
    assert ours.training == theirs.training


@pytest.mark.parametrize("make", [xr.LambdaMART, xr.MART, xr.DirectRankTrees])
def test_a_cross_fitted_bag_is_that_of_one_machine(make: Any, shards: Callable[..., Any], cluster: Any) -> None:
    make = partial(make, trees=3, leaves=5, threads=1, bags=3, bagging="cross-fit")
    theirs = make().fit(DATA).model_
    for cuts, engine in (((1000,), None), ((700, 2100), engine_of(cluster))):
        ours = trained(make, shards(DATA, *cuts), engine)
        assert ours.predict(DATA).tobytes() == theirs.predict(DATA).tobytes()
        assert ours.training == theirs.training


def test_trees_learn_from_pairs_beside_the_grades(shards: Callable[..., Any]) -> None:
    rows = np.arange(40_000, DATA.n_documents, 7)
    pairs = xr.Preferences(rows, rows - rows % 20 + (rows + 3) % 20, np.linspace(0.5, 2, len(rows)))
    data = replace(DATA, y=np.where(DATA.y > 1, DATA.y, 0.0), preferences=pairs)
    make = partial(xr.LambdaMART, "PairwiseCorrect", trees=4, threads=1)
    ours, theirs = trained(make, shards(data, 1000, 2100), valid=VALID), make().fit(data, valid=VALID).model_
    assert ours.predict(data).tobytes() == theirs.predict(data).tobytes()
    assert ours.training == theirs.training


def test_trees_are_blended_with_a_linear_model(shards: Callable[..., Any]) -> None:
    make = partial(xr.Blend, members="ridge, lambdamart(trees=3, leaves=5)", bags=3, threads=1)
    ours, theirs = trained(make, shards(DATA, 1000)), make().fit(DATA).model_
    assert ours.predict(DATA).tobytes() == theirs.predict(DATA).tobytes()
    assert ours.training == theirs.training


@pytest.mark.parametrize("make", [xr.LambdaMART, xr.MART])
def test_trees_learn_from_a_column_beside_the_grades(make: Any, shards: Callable[..., Any]) -> None:
    data, valid = (replace(one, kept={"revenue": np.round(10 * np.abs(one.X[:, 0]) * one.y, 2)}) for one in (DATA, VALID))
    make = partial(make, "nDCG(column='revenue')@10", trees=4, threads=1)
    theirs = make().fit(data, valid=valid).model_
    for beside in (valid, shards(valid, 100)):
        ours = trained(make, shards(data, 1000), valid=beside)
        assert ours.predict(data).tobytes() == theirs.predict(data).tobytes()
        assert ours.training == theirs.training


@pytest.mark.parametrize("name", RANKERS)
def test_workers_grow_the_same_trees_for_any_cut(name: str, shards: Callable[..., Any], cluster: Any) -> None:
    # Leaves so small that min_documents decides: where ranks and a single machine may differ, ranks do not differ among themselves.
    make = partial(RANKERS[name], leaves=31, min_documents=60)
    here = trained(make, shards(DATA))
    for cuts in ((900,), (500, 2100)):
        there = trained(make, shards(DATA, *cuts), engine_of(cluster))
        assert same(there.scorer.table, here.scorer.table)
        assert there.training == here.training


@pytest.mark.parametrize("make", [xr.LambdaMART, xr.MART, xr.DirectRankTrees])
def test_weights_of_documents_and_means_for_missing_values(make: Any, shards: Callable[..., Any]) -> None:
    X, rng = DATA.X.copy(), np.random.default_rng(0)
    X[rng.random(X.shape) < 0.1] = np.nan
    data = replace(DATA, X=X, sample_weight=rng.uniform(0.5, 2.0, DATA.n_documents), query_weight=rng.uniform(0.5, 2.0, DATA.n_queries))
    make = partial(make, trees=4, threads=1, missing="mean")
    ours, theirs = trained(make, shards(data, 700, 1900), valid=VALID), make().fit(data, valid=VALID).model_
    assert ours.predict(data).tobytes() == theirs.predict(data).tobytes()
    assert ours.training == theirs.training


def test_early_stopping_goes_by_the_measure_on_validation_queries(shards: Callable[..., Any], cluster: Any) -> None:
    make = partial(xr.LambdaMART, trees=60, learning_rate=1.0, patience=3, threads=1)
    ours = trained(make, shards(DATA), engine_of(cluster), valid=VALID)
    theirs = make().fit(DATA, valid=VALID).model_
    assert ours.training == theirs.training
    assert ours.scorer.n_trees == theirs.scorer.n_trees < ours.training["steps"] < 60


def test_training_is_resumed_to_the_same_bits(
    shards: Callable[..., Any], cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exactrank.training.run.SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    monkeypatch.setattr("exactrank.training.run.TIMES_BETWEEN_CHECKPOINTS", 0)
    make = partial(xr.LambdaMART, trees=9, threads=1)
    whole = trained(make, shards(DATA), engine_of(cluster))
    path = tmp_path / "checkpoint.json"

    def keep(model: Any) -> None:
        model.save(path, force=True)
        if model.scorer.n_trees == 4:
            raise OSError("the client ends here")

    with pytest.raises(OSError, match="the client ends here"):
        trained(make, shards(DATA), engine_of(cluster), checkpoint=keep)
    again = trained(make, shards(DATA), engine_of(cluster), resume=xr.load(path))
    assert same(again.scorer.table, whole.scorer.table)
    assert again.training == whole.training


def test_a_forest_that_was_finished_is_taken_up_where_it_ended(shards: Callable[..., Any]) -> None:
    """As by a command that was killed when it had written its model, and by one that asks for more trees."""
    few, more = (partial(xr.LambdaMART, trees=trees, threads=1) for trees in (3, 5))
    finished = trained(few, shards(DATA, 900), valid=VALID)
    assert same(trained(few, shards(DATA, 900), valid=VALID, resume=finished).scorer.table, finished.scorer.table)
    assert same(trained(more, shards(DATA, 900), resume=finished).scorer.table, trained(more, shards(DATA)).scorer.table)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_a_lost_worker_changes_nothing(
    how: signal.Signals, shards: Callable[..., Any], cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = partial(xr.LambdaMART, trees=24, threads=1)
    whole = trained(make, shards(DATA))
    answering(cluster, 2)
    engine = Losing(cluster, tmp_path / "struck", how)
    monkeypatch.setattr("exactrank.engine.dask.time", engine)
    victim = cluster.run(ending, how, 200, engine.struck, workers=[engine.victim])[engine.victim]
    try:
        with pytest.warns(LostWorkerWarning, match="trees grow on from number [1-9]"):
            there = trained(make, shards(DATA), engine)
    finally:
        if how is signal.SIGSTOP:
            os.kill(victim, signal.SIGKILL)
    assert same(there.scorer.table, whole.scorer.table)
    answering(cluster, 2)


class Losing(ByHeartbeat):
    """Its first worker is to be killed or stopped; it is when the file ``struck`` is there."""

    def __init__(self, client: Any, struck: Path, how: signal.Signals) -> None:
        super().__init__(client)
        self.struck, self._how = struck, how
        self.victim = self.alive()[0]

    @property
    def stopped(self) -> str:  # type: ignore[override]
        return self.victim if self._how is signal.SIGSTOP and self.struck.exists() else ""


def ending(how: signal.Signals, times: int, struck: Path) -> int:
    """On a worker: it gets a signal when it is to hear from another for the ``times``-th time, in the midst of a tree; its process."""
    exchange, calls = Peers.exchange, count(1)

    def ended(self: Peers, *args: Any) -> Any:
        if next(calls) == times:
            struck.touch()
            os.kill(os.getpid(), how)
        return exchange(self, *args)

    Peers.exchange = ended  # type: ignore[method-assign]
    return os.getpid()


def test_ranks_do_not_wait_for_one_that_ended() -> None:
    listeners = [listen("127.0.0.1") for _ in range(2)]
    addresses = [each.getsockname() for each in listeners]
    made: dict[int, Peers] = {}
    threads = [threading.Thread(target=lambda r=r: made.update({r: Peers(r, listeners[r], addresses, bytes(16), HANGS)})) for r in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    made[1].close()
    with pytest.raises(LostRankError, match=r"rank 1 at 127\.0\.0\.1:\d+ has ended"):
        made[0].largest(1.0)
    made[0].close()


def test_a_rank_waits_for_the_others_up_to_its_limit_and_turns_strangers_away() -> None:
    import socket

    listener = listen("127.0.0.1")
    address = listener.getsockname()
    stranger = socket.create_connection(address)
    stranger.sendall(b"x" * 20)
    with pytest.raises(LostRankError, match=r"rank 1 did not call within 0\.3 s"):
        Peers(0, listener, [address, ("127.0.0.1", 1)], bytes(16), 0.3)
    assert stranger.recv(1) == b""
    stranger.close()


def test_sums_of_rounded_forces_are_exact() -> None:
    rng = np.random.default_rng(0)
    forces = rng.standard_normal(10_000) * 10.0 ** rng.integers(-6, 3, 10_000)
    found = rounded(forces, float(np.abs(forces).max()), len(forces)).astype(np.float32).astype(np.float64)
    sums = {rng.permutation(found).cumsum()[-1] for _ in range(5)} | {found[:313].sum() + found[313:].sum()}
    assert len(sums) == 1
    assert np.abs(found - forces).max() <= 1e-7 * np.abs(forces).max()


def test_rows_are_sampled_as_on_one_machine() -> None:
    assert sampled_rows({"seed": 3}, 1000).tolist() == list(range(1000))
    assert len(sampled_rows({"bin_construct_sample_cnt": 50, "seed": 3}, 1000)) == 50


def test_an_error_of_one_worker_is_told_as_it_is(cluster: Any, tmp_path: Path) -> None:
    path = tmp_path / "part.xr"
    xr.write(DATA, path)
    data = partitioned(read_shards([path]), engine_of(cluster))
    xr.write(VALID, path, force=True)
    ranker, measure, names = xr.LambdaMART(trees=3, threads=1), parse_measure("nDCG@10"), data.feature_names
    settings, objective = ranker._settings(names), ranker._objective(measure)
    plan = Plan(settings, [], names, objective, measure, ranker.draws(0), data.n_documents, data.weights, ranker.weigher)
    with pytest.raises(xr.DataError, match=r"part\.xr is not what it was"):
        Crews.begun(plan, data, "", 1)


def test_workers_that_are_lost_again_and_again_are_an_error(shards: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*args: object) -> Any:
        raise LostWorkerError("worker tcp://1 is gone")

    monkeypatch.setattr("exactrank.rankers.cluster_forest.together", lost)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LostWorkerWarning)
        with pytest.raises(EngineError, match="lost 5 times in a row, and no tree has grown: worker tcp://1 is gone"):
            trained(partial(xr.LambdaMART, trees=3, threads=1), shards(DATA))


def test_what_does_not_work_on_an_engine_says_so(shards: Callable[..., Any]) -> None:
    one = partial(xr.LambdaMART, trees=3, threads=1)
    with pytest.raises(SettingError, match="cross-fitted models of data in several files learn from it alone; leave out valid, or bags"):
        trained(partial(one, bags=3, bagging="cross-fit"), shards(DATA), valid=VALID)
    with pytest.raises(SettingError, match="leverage=2 is not known for data in several files; give leverage=0"):
        trained(partial(xr.DirectRankTrees, trees=3, leverage=2), shards(DATA))


def meet(path: Path, mode: int) -> bool:
    """Wait on a worker for the one that is done together with this, on another: a FIFO is open once both sides have opened it."""
    os.close(os.open(path, mode))
    return True


def test_two_clients_whose_ranks_wait_for_each_other_do_not_lock_each_other_out(cluster: Any, tmp_path: Path) -> None:
    """Each worker has one thread, and is asked by another client first."""
    answering(cluster, 2)
    hosts, asked, found = engine_of(cluster).alive(), threading.Barrier(2), dict[int, Any]()

    def ask(number: int) -> None:
        engine = engine_of(cluster)
        submitted = engine.submitted

        def in_turn(*args: Any, **more: Any) -> Any:
            future = submitted(*args, **more)
            wait_until(lambda: future.key in cluster.cluster.scheduler.tasks)
            asked.wait(HANGS)
            return future

        engine.submitted = in_turn
        path = tmp_path / str(number)
        os.mkfifo(path)
        work = {host: partial(meet, path, mode) for host, mode in zip(hosts[:: 1 - 2 * number], (os.O_RDONLY, os.O_WRONLY), strict=True)}
        found[number] = together(engine, work, "a meeting", lambda: None)

    threads = [threading.Thread(target=ask, args=(number,), daemon=True) for number in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(HANGS)
    assert found == {number: dict.fromkeys(hosts, True) for number in range(2)}


def test_work_together_is_done_here_without_a_cluster() -> None:
    assert together(LocalEngine(), {"": lambda: 3}, "a number", lambda: None) == {"": 3}


def test_workers_keep_memory_that_is_freed(cluster: Any) -> None:
    from exactrank.engine.allocation import keep_freed_memory

    assert set(cluster.run(keep_freed_memory).values()) == {os.uname().sysname == "Linux"}
