"""Trees on an engine: the same bits for any number of workers and any cut, as on one machine, and when workers are lost."""

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import exactrank as er
from exactrank.data import backend as backend_module
from exactrank.data.shards import query_range, read_shards
from exactrank.data.synthetic import CubicPolynomial
from exactrank.errors import SettingError
from exactrank.learning.objectives.exact_sums import round_for_sums
from exactrank.learning.objectives.score_space import by_query
from exactrank.learning.trees import part as forest_part
from exactrank.learning.trees.forest import Forest
from exactrank.models.tree_table import TreeTable
from tests.backends.dask_processes import ByHeartbeat, answering
from tests.events import HANGS
from tests.models.test_tree_ensemble import same

pytest.importorskip("distributed", reason="needs Dask")


DATA, VALID = (CubicPolynomial(features=6, documents=20, noise=0.5, seed=seed).data(queries) for seed, queries in ((1, 2500), (2, 300)))


def with_holes(data: er.RankingData, seed: int) -> er.RankingData:
    """Return ``data`` with missing values, weights of queries and of documents, and a feature of categories that matter."""
    rng, X = np.random.default_rng(seed), data.X.copy()
    X[:, 5] = np.minimum(data.y + rng.integers(0, 3, len(X)), 6)
    X[rng.random(X.shape) < 0.1] = np.nan
    weights = {"sample_weight": rng.integers(0, 4, data.n_documents) / 2, "query_weight": rng.uniform(0.5, 2.0, data.n_queries)}
    return replace(data, X=X, levels={data.feature_names[5]: tuple("abcdefg")}, **weights)


NAMES = DATA.feature_names
HOLES, VALID_HOLES = (with_holes(data, seed) for seed, data in enumerate((DATA, VALID)))


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    folder = tmp_path_factory.mktemp("shards")

    def written(data: er.RankingData, *cuts: int) -> Any:
        paths = []
        for first, last in zip((0, *cuts), (*cuts, data.n_queries), strict=True):
            paths.append(folder / f"{id(data)}-{first}-{last}.xr")
            if not paths[-1].exists():
                er.write(query_range(data, first, last), paths[-1])
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
    from exactrank.backends.dask import DaskBackend

    return DaskBackend(client, silence=HANGS)


def trained(make: Callable[..., Any], shards: Any, engine: Any = None, **more: Any) -> Any:
    return make(backend=engine).fit(shards, **more).model_


SMALL_LEAVES = {"leaves": 31, "min_documents": 60}  #: so small that min_documents decides
RANKERS = {
    "LambdaMART": partial(er.LambdaMART, trees=8, threads=1),
    "few bins": partial(er.LambdaMART, "AP(rel=3)", trees=5, threads=1, bins=7, **SMALL_LEAVES),
    "MART": partial(er.MART, trees=8, threads=1, query_fraction=1.0, **SMALL_LEAVES),
    "DirectRankTrees": partial(er.DirectRankTrees, trees=6, threads=1),
    "DirectRankTrees of AP": partial(er.DirectRankTrees, "AP(rel=3)", trees=4, threads=1, search="all", query_fraction=1.0),
    "sampled lambdas": partial(er.LambdaMART, trees=4, threads=1, lambdas="sampled", samples=2),
    "draws in each node": partial(er.LambdaMART, trees=5, threads=1, extra=True, node_features=0.5, split_noise=0.5, **SMALL_LEAVES),
    "restrictions": partial(
        er.MART,
        trees=5,
        threads=1,
        monotone={NAMES[0]: 1},
        interactions=[NAMES[:2]],
        path_smoothing=5.0,
        l1=0.1,
        min_curvature=80.0,
        **SMALL_LEAVES,
    ),
    "symmetric": partial(er.LambdaMART, trees=5, threads=1, shape="symmetric", depth=4, split_noise=0.2, feature_fraction=1.0, l2=2.0),
    "symmetric, many bins": partial(er.MART, trees=4, threads=1, shape="symmetric", bins=1000, extra=True, max_step=0.5, min_gain=0.1),
    "a bag of draws": partial(er.LambdaMART, trees=3, threads=1, bags=2, bagging="draws"),
    "a bag of bootstrap samples": partial(er.DirectRankTrees, trees=3, threads=1, bags=2, bagging="bootstrap"),
}


@pytest.mark.parametrize("data", ["plain", "holes"])
@pytest.mark.parametrize("name", RANKERS)
def test_trees_are_those_of_one_machine_for_any_cut(name: str, data: str, shards: Callable[..., Any], cluster: Any) -> None:
    """With categories, missing values and weights, too."""
    train, valid = (DATA, VALID) if data == "plain" else (HOLES, VALID_HOLES)
    theirs = RANKERS[name]().fit(train, valid=valid).model_
    for cuts, engine in (((1000,), None), ((500, 2100), engine_of(cluster))):
        ours = trained(RANKERS[name], shards(train, *cuts), engine, valid=valid)
        assert same(ours.scorer.table, theirs.scorer.table)
        assert ours.training == theirs.training


@pytest.mark.parametrize(("make", "most"), [(er.MART, 9.5), (partial(er.LambdaMART, query_fraction=1.0), 10.0)], ids=["MART", "LambdaMART"])
def test_a_tree_takes_few_rounds(make: Any, most: float, shards: Callable[..., Any], cluster: Any) -> None:
    """One per level, and one for all leaves; the scores, and the forces and root of the next tree, come together, unless units change."""
    rounds = []
    for trees in (2, 10):
        engine = engine_of(cluster)
        table = trained(partial(make, trees=trees, leaves=31, threads=1), shards(DATA, 900), engine).scorer.table
        assert np.all(np.diff(table.start) == 30)
        rounds.append(engine.rounds)
    levels = [depth(table, tree) for tree in range(2, 10)]
    assert sum(levels) <= rounds[1] - rounds[0] - 8 <= sum(levels) + 4
    assert (rounds[1] - rounds[0]) / 8 <= most


def depth(table: TreeTable, tree: int) -> int:
    """Return on how many levels a tree has splits."""
    first, last = table.start[tree : tree + 2]
    level = np.ones(last - first, int)
    for split, children in enumerate(zip(table.left[first:last], table.right[first:last], strict=True)):
        for child in children:
            if child >= 0:
                level[child] = level[split] + 1
    return int(level.max())


@pytest.mark.parametrize("change", [{"slope": 0.5}, {"curvature": 4.0}, {"flat": True}], ids=str)
@pytest.mark.parametrize("name", ["LambdaMART", "MART"])
def test_a_tree_may_begin_otherwise_than_expected(
    name: str, change: dict[str, Any], shards: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts answer the first round before all units are known; if these differ from those of the tree before, they are asked again."""
    asked, call, expected_after = list[str](), forest_part.TreeQuestion.ask, Forest._expected_after

    def wrong(self: Forest, state: forest_part.TreeState) -> forest_part.TreeState | None:
        expected = expected_after(self, state)
        if expected is None:
            return None
        units = replace(
            expected.units, **{unit: getattr(expected.units, unit) * factor for unit, factor in change.items() if unit != "flat"}
        )
        return replace(expected, units=units, flat="flat" in change)

    def listed(self: forest_part.TreeQuestion, part: Any) -> object:
        asked.append(self.what)
        return call(self, part)

    make, cut = RANKERS[name], shards(DATA, 1000)
    monkeypatch.setattr(forest_part.TreeQuestion, "ask", listed)
    whole = trained(make, cut, valid=VALID)
    usual = asked.count("histograms")
    monkeypatch.setattr(Forest, "_expected_after", wrong)
    ours = trained(make, cut, valid=VALID)
    assert same(ours.scorer.table, whole.scorer.table)
    assert ours.training == whole.training
    assert asked.count("histograms") > 2 * usual


@dataclass(frozen=True)
class FailingForces:
    """Forces that are not numbers once there is a tree."""

    conservative = False

    def on(self, data: er.RankingData) -> Any:
        def answer(number: int, scores: Any) -> Any:
            grades = data.y[data.indptr[number] : data.indptr[number + 1]]
            return 0.0, np.where(scores == 0, grades.mean() - grades, np.nan), np.ones(len(scores))

        return by_query(answer)


def test_an_error_in_the_forces_of_the_next_tree_comes_after_this_one(shards: Callable[..., Any]) -> None:
    """Parts compute forces before it is known whether there will be another tree."""
    make, reported = partial(er.LambdaMART, lambdas=FailingForces(), trees=3, leaves=4, threads=1), []
    few = replace(DATA, y=np.minimum(DATA.y, 1.0))
    for data in (few, shards(few, 1000)):
        steps: list[Any] = []
        with pytest.raises(er.errors.DataError, match="FailingForces gives forces that are not finite numbers after 1 trees"):
            trained(make, data, progress=steps.append)
        reported.append(len(steps))
    assert reported[0] == reported[1] > 0
    assert trained(partial(make, trees=1), shards(few, 1000)).scorer.n_trees == 1


def test_no_split_is_possible(shards: Callable[..., Any]) -> None:
    make = partial(er.MART, trees=3, min_documents=DATA.n_documents, threads=1)
    for data in (DATA, shards(DATA, 1000)):
        with pytest.warns(ConvergenceWarning, match="no split is possible"):
            assert not trained(make, data).predict(DATA).any()


@pytest.mark.parametrize("make", [er.LambdaMART, er.DirectRankTrees])
def test_grades_may_be_of_any_size(make: Any, shards: Callable[..., Any]) -> None:
    y = np.where(DATA.y > 1, DATA.y * np.random.default_rng(0).uniform(1, 9, DATA.n_documents), DATA.y - 1)
    y[30] = 61.5
    data = replace(DATA, y=y)
    make = partial(make, trees=4, threads=1)
    ours, theirs = trained(make, shards(data, 1000), valid=VALID), make().fit(data, valid=VALID).model_
    assert ours.predict(data).tobytes() == theirs.predict(data).tobytes()
    assert ours.training == theirs.training


@pytest.mark.parametrize("make", [er.LambdaMART, er.MART, er.DirectRankTrees])
def test_a_cross_fitted_bag_is_that_of_one_machine(make: Any, shards: Callable[..., Any], cluster: Any) -> None:
    make = partial(make, trees=3, leaves=5, threads=1, bags=3, bagging="cross-fit")
    theirs = make().fit(DATA).model_
    for cuts, engine in (((1000,), None), ((700, 2100), engine_of(cluster))):
        ours = trained(make, shards(DATA, *cuts), engine)
        assert ours.predict(DATA).tobytes() == theirs.predict(DATA).tobytes()
        assert ours.training == theirs.training


def test_trees_learn_from_pairs_beside_the_grades(shards: Callable[..., Any]) -> None:
    rows = np.arange(40_000, DATA.n_documents, 7)
    pairs = er.pairs.Preferences(rows, rows - rows % 20 + (rows + 3) % 20, np.linspace(0.5, 2, len(rows)))
    data = replace(DATA, y=np.where(DATA.y > 1, DATA.y, 0.0), preferences=pairs)
    make = partial(er.LambdaMART, "PairwiseCorrect", trees=4, threads=1)
    ours, theirs = trained(make, shards(data, 1000, 2100), valid=VALID), make().fit(data, valid=VALID).model_
    assert ours.predict(data).tobytes() == theirs.predict(data).tobytes()
    assert ours.training == theirs.training


def test_trees_are_blended_with_a_linear_model(shards: Callable[..., Any]) -> None:
    make = partial(er.Blend, members="ridge, lambdamart(trees=3, leaves=5)", bags=3, threads=1)
    ours, theirs = trained(make, shards(DATA, 1000)), make().fit(DATA).model_
    assert ours.predict(DATA).tobytes() == theirs.predict(DATA).tobytes()
    assert ours.training == theirs.training


@pytest.mark.parametrize("make", [er.LambdaMART, er.MART])
def test_trees_learn_from_a_column_beside_the_grades(make: Any, shards: Callable[..., Any]) -> None:
    data, valid = (replace(one, extra_columns={"revenue": np.round(10 * np.abs(one.X[:, 0]) * one.y, 2)}) for one in (DATA, VALID))
    make = partial(make, "nDCG(column='revenue')@10", trees=4, threads=1)
    theirs = make().fit(data, valid=valid).model_
    for beside in (valid, shards(valid, 100)):
        ours = trained(make, shards(data, 1000), valid=beside)
        assert ours.predict(data).tobytes() == theirs.predict(data).tobytes()
        assert ours.training == theirs.training


@pytest.mark.parametrize("make", [er.LambdaMART, er.MART, er.DirectRankTrees])
def test_weights_of_documents_and_means_for_missing_values(make: Any, shards: Callable[..., Any]) -> None:
    X, rng = DATA.X.copy(), np.random.default_rng(0)
    X[rng.random(X.shape) < 0.1] = np.nan
    data = replace(DATA, X=X, sample_weight=rng.uniform(0.5, 2.0, DATA.n_documents), query_weight=rng.uniform(0.5, 2.0, DATA.n_queries))
    make = partial(make, trees=4, threads=1, missing="mean")
    ours, theirs = trained(make, shards(data, 700, 1900), valid=VALID), make().fit(data, valid=VALID).model_
    assert ours.predict(data).tobytes() == theirs.predict(data).tobytes()
    assert ours.training == theirs.training


def test_early_stopping_goes_by_the_measure_on_validation_queries(shards: Callable[..., Any], cluster: Any) -> None:
    make = partial(er.LambdaMART, trees=60, learning_rate=1.0, patience=3, threads=1)
    ours = trained(make, shards(DATA), engine_of(cluster), valid=VALID)
    theirs = make().fit(DATA, valid=VALID).model_
    assert ours.training == theirs.training
    assert ours.scorer.n_trees == theirs.scorer.n_trees < ours.training["steps"] < 60


def test_training_is_resumed_to_the_same_bits(
    shards: Callable[..., Any], cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exactrank.learning.training.run.SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    monkeypatch.setattr("exactrank.learning.training.run.TIMES_BETWEEN_CHECKPOINTS", 0)
    make = partial(er.LambdaMART, trees=9, threads=1)
    whole = trained(make, shards(DATA), engine_of(cluster))
    path = tmp_path / "checkpoint.json"

    def keep(model: Any) -> None:
        model.save(path, force=True)
        if model.scorer.n_trees == 4:
            raise OSError("the client ends here")

    with pytest.raises(OSError, match="the client ends here"):
        trained(make, shards(DATA), engine_of(cluster), checkpoint=keep)
    again = trained(make, shards(DATA), engine_of(cluster), resume=er.load(path))
    assert same(again.scorer.table, whole.scorer.table)
    assert again.training == whole.training


def test_a_forest_that_was_finished_is_taken_up_where_it_ended(shards: Callable[..., Any]) -> None:
    """As by a command that was killed when it had written its model, and by one that asks for more trees."""
    few, more = (partial(er.LambdaMART, trees=trees, threads=1) for trees in (3, 5))
    finished = trained(few, shards(DATA, 900), valid=VALID)
    assert same(trained(few, shards(DATA, 900), valid=VALID, resume=finished).scorer.table, finished.scorer.table)
    assert same(trained(more, shards(DATA, 900), resume=finished).scorer.table, trained(more, shards(DATA)).scorer.table)


@pytest.mark.parametrize("name", ["LambdaMART", "DirectRankTrees"])
@pytest.mark.parametrize("what", ["histograms", "add"])
def test_a_lost_state_costs_a_repeated_round(name: str, what: str, shards: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """One of two parts has lost its scores whenever it is asked this for the third time; what the other did is done again."""
    make, cut, asked, call = RANKERS[name], shards(DATA, 1000), count(1), forest_part.TreeQuestion.ask
    whole = trained(make, cut, valid=VALID)

    def forgetful(self: forest_part.TreeQuestion, part: Any) -> object:
        if part.first and self.what == what and self.history is None and next(asked) % 3 == 0:
            part.memo.clear()
        return call(self, part)

    monkeypatch.setattr(forest_part.TreeQuestion, "ask", forgetful)
    ours = trained(make, cut, valid=VALID)
    assert next(asked) > 3
    assert same(ours.scorer.table, whole.scorer.table)
    assert ours.training == whole.training


def test_a_state_lost_in_a_line_search_costs_another_search(shards: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    make, cut, asked, settled = RANKERS["DirectRankTrees"], shards(DATA, 1000), count(1), forest_part.TreeQuestion.settle
    whole = trained(make, cut)

    def forgetful(self: forest_part.TreeQuestion, part: Any) -> Any:
        if part.first and self.history is None and next(asked) % 2 == 0:
            part.memo.clear()
        return settled(self, part)

    monkeypatch.setattr(forest_part.TreeQuestion, "settle", forgetful)
    assert same(trained(make, cut).scorer.table, whole.scorer.table)
    assert next(asked) > 4


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
@pytest.mark.parametrize("where", ["ask", "settle"], ids=["in a tree", "in a line search"])
def test_a_lost_worker_changes_nothing(
    where: str, how: signal.Signals, shards: Callable[..., Any], cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = partial(er.DirectRankTrees, trees=8, threads=1)
    whole = trained(make, shards(DATA))
    answering(cluster, 2)
    engine = Losing(cluster, tmp_path / "struck", how)
    monkeypatch.setattr("exactrank.backends.dask.time", engine)
    times = 40 if where == "ask" else 10
    victim = cluster.run(ending, where, how, times, engine.struck, workers=[engine.victim])[engine.victim]
    try:
        there = trained(make, shards(DATA), engine)
    finally:
        if how is signal.SIGSTOP:
            os.kill(victim, signal.SIGKILL)
    assert engine.struck.exists()
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


def ending(where: str, how: signal.Signals, times: int, struck: Path) -> int:
    """On a worker: it gets a signal when this method of questions is called for the ``times``-th time; return its process."""
    method, calls = getattr(forest_part.TreeQuestion, where), count(1)

    def ended(self: forest_part.TreeQuestion, *args: Any) -> Any:
        if next(calls) == times:
            struck.touch()
            os.kill(os.getpid(), how)
        return method(self, *args)

    setattr(forest_part.TreeQuestion, where, ended)
    return os.getpid()


def test_sums_of_rounded_forces_are_exact() -> None:
    rng = np.random.default_rng(0)
    forces = rng.standard_normal(10_000) * 10.0 ** rng.integers(-6, 3, 10_000)
    result = round_for_sums(forces, float(np.abs(forces).max()), len(forces)).astype(np.float32).astype(np.float64)
    sums = {rng.permutation(result).cumsum()[-1] for _ in range(5)} | {result[:313].sum() + result[313:].sum()}
    assert len(sums) == 1
    assert np.abs(result - forces).max() <= 1e-7 * np.abs(forces).max()


def test_an_error_of_one_worker_is_told_as_it_is(cluster: Any, tmp_path: Path) -> None:
    path, engine = tmp_path / "part.xr", engine_of(cluster)
    er.write(DATA, path)

    def change(progress: Any) -> None:
        er.write(VALID, path, force=True)
        cluster.run(forget_partitions)

    with pytest.raises(er.errors.DataError, match=r"worker tcp://.*part\.xr is not what it was"):
        trained(partial(er.LambdaMART, trees=3, threads=1), read_shards([path]), engine, progress=change)


def forget_partitions() -> None:
    """Forget, on a worker, all partitions that it holds."""
    backend_module._holders.clear()


def test_what_does_not_work_on_an_engine_says_so(shards: Callable[..., Any]) -> None:
    first = partial(er.LambdaMART, trees=3, threads=1)
    with pytest.raises(SettingError, match="cross-fitted models of data in several files learn from it alone; leave out valid, or bags"):
        trained(partial(first, bags=3, bagging="cross-fit"), shards(DATA), valid=VALID)
    with pytest.raises(SettingError, match="leverage=2 is not known for data in several files; give leverage=0"):
        trained(partial(er.DirectRankTrees, trees=3, leverage=2), shards(DATA))


def test_workers_keep_memory_that_is_freed(cluster: Any) -> None:
    from exactrank.backends.dask import keep_freed_memory

    assert set(cluster.run(keep_freed_memory).values()) == {os.uname().sysname == "Linux"}
