"""Data in several files gives the bits of the whole: for every question, any cut and any order of arrival."""

import json
import pickle
import random
from contextlib import contextmanager
from unittest.mock import patch

import cloudpickle
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as er
from exactrank.data.backend import LocalBackend, Round, answer_round
from exactrank.data.blocks import wide_blocks
from exactrank.data.dataset import EachPart, Part
from exactrank.data.folds import BootstrapWeights
from exactrank.data.formats import cache
from exactrank.data.sharded import ShardedData, open_shards
from exactrank.data.shards import begins_of, manifest_of, query_range, read_shards
from exactrank.learning.objectives import summed_steps
from exactrank.learning.objectives.linear_profile import LinearProfile
from exactrank.learning.objectives.softmax import SoftmaxLikelihood
from exactrank.learning.optimizers.coordinate import CoordinateSearch, Limits
from exactrank.learning.training.combinators import bootstrap
from exactrank.measures.ties import worst_tie_order
from exactrank.rankers.training_data import training_data


class Shuffled(LocalBackend):
    """Answers as workers give them: packed, in any order, of partitions that were loaded anew."""

    def ask(self, data, question):
        packed, results = cloudpickle.dumps(question), {}
        for partition in random.sample(data.partitions, len(data.partitions)):
            results |= dict(pickle.loads(answer_round(Round(data.key, (partition,), packed))))
        return [results[partition.number] for partition in data.partitions]


def made(seed, queries=2500, weights=False, ties=False):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 45, queries)
    X = rng.normal(size=(sizes.sum(), 3)).astype(np.float32)
    X = np.round(X) if ties else X
    y = np.clip(np.round(X[:, 0] + rng.normal(size=len(X)) + 1), 0, 4)
    return er.RankingData.from_arrays(X, y, group=sizes, query_weight=rng.uniform(0.1, 3, queries) if weights else None)


def cut_into(data, folder, ends, most, engine=None):
    for number, (first, last) in enumerate(zip([0, *ends], [*ends, data.n_queries], strict=True)):
        er.write(query_range(data, first, last), folder / f"part-{number:04}.xr", force=True)
    return open_shards(read_shards(str(folder / "part-*.xr")), engine or Shuffled(), most)


ends = st.lists(st.integers(1, 1199), min_size=1, max_size=4, unique=True).map(sorted)


@pytest.mark.parametrize("name", ["nDCG@10", "AP", "ERR", "P@5", "RR", "Bpref", "DCG@3", "RBP", "MeanNDCG@10"])
def test_measures_of_partitions_are_those_of_the_whole(tmp_path, name):
    data = made(0, weights=True)
    model = er.Model(er.models.Linear(np.array([1.0, 0.5, -0.25]), data.feature_names))
    cut_into(data, tmp_path, [700, 701, 2000], 20_000)
    ours = er.evaluate(read_shards(str(tmp_path / "part-*.xr")), model, name, backend=Shuffled())
    theirs = er.evaluate(data, model.predict(data), name)
    assert ours.means == theirs.means
    np.testing.assert_array_equal(ours.per_query, theirs.per_query)


SEARCHED = [
    "nDCG@10",
    "P@3",
    "nDCG(ties='expected')@5",
    "AP",
    "ERR@5",
    "RR",
    "Bpref",
    "AP(ties='expected', empty='skip')",
    "PairwiseCorrect",
]


@contextmanager
def sums_first(events, bins):
    """Parts that have more than this number of ``events`` where the optimum can be give sums of them, in this number of ``bins``."""
    with patch.object(summed_steps, "MOST_EVENTS", events), patch.object(summed_steps, "NARROW_BINS", bins):
        yield


narrowing = st.sampled_from([(1 << 14, 1 << 13), (0, 2), (0, 64), (3, 8192), (40, 100)])


@settings(max_examples=16, deadline=None)
@given(
    ends, st.integers(0, 99), st.booleans(), st.booleans(), st.sampled_from(SEARCHED), st.sampled_from(["middle", "likelihood"]), narrowing
)
def test_line_searches_over_partitions_are_those_of_the_whole(tmp_path_factory, ends, seed, weights, ties, name, point, narrow):
    with sums_first(*narrow):
        check_line_searches(tmp_path_factory, ends, made(seed, 1200, weights, ties), name, point)


def check_line_searches(tmp_path_factory, ends, whole, name, point):
    data = cut_into(whole, tmp_path_factory.mktemp("cut"), ends, 20_000)
    ours = training_data(data, None, "error", 1, None).data
    theirs = training_data(whole, None, "error", 1).data
    measure = worst_tie_order(er.parse_measure(name))
    profile = LinearProfile.of(measure.over(theirs, threads=1), point)
    parts = LinearProfile.of(measure.over(ours, threads=1), point)
    here, there = profile.at(np.zeros(3)), parts.at(np.zeros(3))
    for k, (low, high) in [(0, (-np.inf, np.inf)), (1, (-0.5, 0.25)), (2, (0.0, np.inf)), (np.array([0.3, 0.1, 1.0]), (-np.inf, np.inf))]:
        assert here.value == there.value
        best = here.best(k, low, high)
        assert there.best(k, low, high) == best
        assert here.choose_alpha(k, best) == there.choose_alpha(k, best)
        here, there = here.move(k, here.choose_alpha(k, best)), there.move(k, there.choose_alpha(k, best))
    same_steps(here.profile(1), there.profile(1))
    soft = [SoftmaxLikelihood(measure.over(each, threads=1), 0.01).value_and_slope(np.array([0.1, 0.2, 0.3])) for each in (theirs, ours)]
    assert soft[0][0] == soft[1][0]
    np.testing.assert_array_equal(soft[0][1], soft[1][1])
    for a, b in zip(theirs.moments, ours.moments, strict=True):
        np.testing.assert_array_equal(a, b)


class Distant(Shuffled):
    """Workers far away: a round takes as long as work on very many documents."""

    documents_per_round = 1 << 40

    def __init__(self):
        self.rounds = 0

    def ask(self, data, question):
        self.rounds += 1
        return super().ask(data, question)


@settings(max_examples=5, deadline=None)
@given(
    ends, st.integers(0, 99), st.booleans(), st.sampled_from(["nDCG@10", "AP"]), st.sampled_from(["cyclic", "random", "greedy"]), narrowing
)
def test_several_lines_at_once_lead_where_one_after_the_other_does(tmp_path_factory, ends, seed, ties, name, order, narrow):
    whole, measure, engine = made(seed, 1200, True, ties), worst_tie_order(er.parse_measure(name)), Distant()
    data = cut_into(whole, tmp_path_factory.mktemp("cut"), ends, 20_000, engine)
    here = LinearProfile.of(measure.over(whole, threads=1))
    there = LinearProfile.of(measure.over(data, threads=1))
    search, states = CoordinateSearch(order, Limits(window=3.0)), []
    for problem in (here, there):
        with sums_first(*narrow):
            state = search.init(problem, np.array([1.0, 0.1, 0.0]), np.random.default_rng(seed))
            states.append([state := search.step(problem, state) for _ in range(3)])
    for ours, theirs in zip(*states, strict=True):
        np.testing.assert_array_equal(ours.theta, theirs.theta)
        assert ours.value == theirs.value


def test_searches_that_lead_nowhere_share_their_rounds(tmp_path):
    whole, measure, engine = made(0, 1200), worst_tie_order(er.parse_measure("nDCG@10")), Distant()
    data = cut_into(whole, tmp_path, [600], 20_000, engine)
    problem = LinearProfile.of(measure.over(data, threads=1))
    problem.announce(directions := [0, 1, 2, np.array([1.0, 2.0, 0.0]), np.array([0.0, 2.0, 1.0])], lambda direction, theta: (-1e-9, 1e-9))
    place = problem.at(np.array([1.0, 0.1, 0.0]))
    before, results = engine.rounds, [place.best(direction, -1e-9, 1e-9) for direction in directions]
    assert engine.rounds - before == 5  # events of the first; outlines and events of two; and of another two
    alone = LinearProfile.of(measure.over(data, threads=1)).at(place.theta)
    assert results == [alone.best(direction, -1e-9, 1e-9) for direction in directions]


def test_partitions_end_where_files_do_unless_a_wide_block_spans_two():
    indptr = 5000 * np.arange(17)  # a wide block has four of these queries
    assert begins_of(indptr, np.array([8, 16]), limit=10**9) == [0, 8]
    assert begins_of(indptr, np.array([6, 16]), limit=10**9) == [0, 4, 8]
    assert begins_of(indptr, np.array([16]), limit=40_000) == [0, 8]


def same_steps(first, second):
    for name in ("breakpoints", "values", "at"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


@settings(max_examples=6, deadline=None)
@given(ends, st.integers(0, 99), st.booleans(), st.sampled_from(["nDCG@10", "AP", "ERR"]))
def test_searches_of_a_bootstrap_sample_are_those_of_the_whole(tmp_path_factory, ends, seed, left_out, name):
    whole, measure = made(seed, 1200, True), worst_tie_order(er.parse_measure(name))
    data = cut_into(whole, tmp_path_factory.mktemp("cut"), ends, 20_000)
    draw = BootstrapWeights((seed, 3), whole.n_queries, left_out)
    weights = bootstrap(whole, np.random.default_rng([seed, 3]))[int(left_out)]
    np.testing.assert_array_equal(measure.over(data, draw).weights, weights)
    here, there = (LinearProfile.of(measure.over(each, draw, 1)).at(np.ones(3)) for each in (whole, data))
    assert here.value == there.value
    assert here.best(1) == there.best(1)


def minus_first(data):
    return -data.X[:, 0]


@settings(max_examples=10, deadline=None)
@given(ends, st.integers(0, 99), st.sampled_from([*SEARCHED, "DCG@3", "RBP", "R@5"]), st.booleans(), st.data())
def test_profiles_of_partitions_are_those_of_the_whole(tmp_path_factory, ends, seed, name, weights, drawn):
    whole, folder = made(seed, 1200, weights), tmp_path_factory.mktemp("cut")
    cut_into(whole, folder, ends, 20_000)
    shards = read_shards(str(folder / "part-*.xr"))
    model = er.Model(er.models.Linear(np.array([1.0, 0.5, -0.25]), whole.feature_names))
    weight = drawn.draw(st.sampled_from([None, np.arange(whole.n_queries) % 3]))
    for direction, numbers in [("x1", whole.X[:, 1]), (minus_first, -whole.X[:, 0]), (model, model.predict(whole))]:
        ours, theirs = ((direction, shards), (numbers, whole))
        arguments = {"weight": weight, "low": -2.0, "high": 0.5}
        of_parts = er.profile(shards, model, direction, name, backend=Shuffled(), **arguments)
        same_steps(of_parts, er.profile(whole, model.predict(whole), numbers, name, **arguments))
        same_steps(of_parts, er.profile(whole, model, direction, name, **arguments))
        arguments |= drawn.draw(st.sampled_from([{}, {"point": "likelihood"}, {"low": 0.1}]))
        results = [er.line_search(data, model, along, name, **arguments) for along, data in (ours, theirs)]
        assert results[0] == results[1]


def test_the_outline_along_the_next_weight_comes_with_the_value_of_a_step(tmp_path):
    asked = []

    class Heard(Shuffled):
        def ask(self, data, question):
            asked.append(type(question).__name__)
            return super().ask(data, question)

    whole = made(7, 1200)
    data = training_data(cut_into(whole, tmp_path, [900], 20_000, Heard()), None, "error", 1, None).data
    theirs, measure = training_data(whole, None, "error", 1).data, worst_tie_order(er.parse_measure("nDCG@10"))
    here = LinearProfile.of(measure.over(theirs, threads=1)).at(np.zeros(3))
    parts = LinearProfile.of(measure.over(data, threads=1))
    limits = Limits(low=-2.0, high=3.0)
    parts.announce([2, 0, 1], limits.along)
    there = parts.at(np.zeros(3))
    for k, outlines in [(2, 0), (0, 0), (0, 1), (1, 0)]:  # 0 is asked for twice, where 1 was foreseen
        asked.clear()
        ends = limits.along(k, here.theta)
        best = here.best(k, *ends)
        assert there.best(k, *ends) == best
        assert asked.count("ValueAndOutlines") == outlines
        assert asked.count("RequestedEvents") == 1
        here, there = here.move(k, here.choose_alpha(k, best)), there.move(k, there.choose_alpha(k, best))
        assert here.value == there.value


RANKERS = [
    er.DirectRank(bags=0, max_iter=2),
    er.DirectRank(bags=0, max_iter=1, start="ridge", solver="powell"),
    er.DirectRank("P@5", bags=0, max_iter=1, start="random", order="random"),
    er.DirectRank(bags=3, share=0.5),
    er.DirectRank("AP", bags=2, start="zero", max_iter=2),
    er.DirectRank("AP", bags=0, max_iter=2),
    er.DirectRank("ERR", bags=0, max_iter=1, point="likelihood", nonnegative=True),
    er.DirectRank("nDCG@10 subject to P@5 >= 0.5", bags=0, max_iter=1, start="zero"),
    er.DirectRank("nDCG@10 subject to P(rel=3)@5 <= 0.3", bags=0, max_iter=1),
    er.LambdaRank(learning_rate=0.1, batch_size=5000, max_iter=5),
    er.LambdaRank("ERR", learning_rate=0.1, batch_size=5000, max_iter=3, hidden=3, start="random"),
    er.LambdaRank(learning_rate=0.1, batch_size=5000, max_iter=2, polish="directrank", polish_iter=1),
    er.LambdaRank("AP", learning_rate=0.1, batch_size=5000, max_iter=2, hidden=2, start="random", polish="directrank", polish_iter=1),
    er.RankNet(max_iter=4),
    er.ListNet(max_iter=4),
    er.SmoothRank(max_iter=3),
    er.RankCosine(max_iter=4),
    er.ApproxNDCG(max_iter=4),
    er.AdaRank(max_iter=4),
    er.AdaRank("AP", max_iter=3, nonnegative=True, rest=0),
    er.CoordinateAscent(restarts=2, max_iter=1, tries=4),
    er.CoordinateAscent("ERR", restarts=1, max_iter=1, tries=3, standardize=False),
    er.SPSARank(max_iter=5),
    er.SPSARank("RR", max_iter=2, hidden=2, restarts=2),
    er.SPSARank(max_iter=2, solver="fdsa", start="ridge"),
    er.SPSARank("AP", max_iter=1, solver="fdsa", hidden=2),
]


@pytest.mark.parametrize("ranker", RANKERS, ids=repr)
def test_a_model_of_partitions_is_that_of_the_whole(tmp_path, ranker):
    whole = made(3, weights=True)
    cut_into(whole, tmp_path, [311, 1600], 20_000)
    theirs = ranker.fit(whole).model_
    ours = ranker.set_params(backend=Shuffled()).fit(read_shards(str(tmp_path / "part-*.xr"))).model_
    assert json.dumps(ours.scorer.to_record()) == json.dumps(theirs.scorer.to_record())
    assert ours.training == theirs.training


@pytest.mark.parametrize(
    "more", [{"systems": ["x0", "x2"]}, {"nonnegative": False, "measure": "AP"}, {"measure": "P@3 subject to DCG(column='x1')@3 >= 0"}]
)
def test_a_fusion_of_partitions_is_that_of_the_whole(tmp_path, more):
    drawn = made(9, 400)
    X = np.where(np.random.default_rng(9).random(drawn.X.shape) < 0.2, np.nan, np.abs(drawn.X)).astype(np.float32)
    X[:, 1] = np.abs(drawn.X[:, 1])
    whole = er.RankingData.from_arrays(X, drawn.y, group=drawn.sizes)
    cut_into(whole, tmp_path, [150, 151], 2_000)
    ours, theirs = (er.fuse(data, folds=2, bootstrap=10, **more) for data in (read_shards(str(tmp_path / "part-*.xr")), whole))
    assert ours.to_json() == theirs.to_json()


def test_partitions_begin_where_blocks_do_and_are_of_one_file_if_possible(tmp_path):
    whole = made(1)
    data = cut_into(whole, tmp_path, [700, 701, 2000], 20_000)
    assert {partition.first for partition in data.partitions} <= set(wide_blocks(whole.indptr).tolist())
    assert sum(partition.queries for partition in data.partitions) == whole.n_queries
    assert all(len(p.pieces) == 1 or p.queries <= np.diff(wide_blocks(whole.indptr)).max() for p in data.partitions)
    loaded = np.concatenate([partition.load().X for partition in data.partitions])
    np.testing.assert_array_equal(loaded, whole.X)


def test_a_manifest_names_the_files_and_a_file_that_changed_or_vanished_is_named(tmp_path):
    whole = made(2, 1200)
    data = cut_into(whole, tmp_path, [600], 5_000, LocalBackend())
    shards = [er.data.shards.Shard(f"part-{n:04}.xr", len(d.sizes), int(d.sizes.sum()), d.checksum) for n, d in enumerate(data.facts)]
    (tmp_path / "shards.json").write_text(manifest_of(shards))
    assert open_shards(read_shards(tmp_path), LocalBackend()).n_queries == 1200
    for path in (tmp_path, tmp_path / "shards.json"):
        with pytest.raises(er.errors.DataError, match=r"stands for data in several files; read it with er\.read_shards"):
            er.read(path)
    assert open_shards(read_shards(f"file://{tmp_path}/part-*.xr"), LocalBackend()).n_queries == 1200
    er.write(query_range(whole, 0, 500), tmp_path / "part-0001.xr", force=True)
    with pytest.raises(er.errors.DataError, match=r"part-0001\.xr is not what it was"):
        open_shards(read_shards(tmp_path), LocalBackend())
    with pytest.raises(er.errors.DataError, match=r"part-0001\.xr is not what it was"):
        data.ask(EachPart(_queries))
    (tmp_path / "part-0001.xr").unlink()
    with pytest.raises(er.errors.DataError, match=r"part-0001\.xr is not there"):
        data.ask(EachPart(_queries))


def test_a_damaged_byte_is_refused_before_the_first_result_that_uses_it(tmp_path, monkeypatch):
    monkeypatch.setattr("exactrank.data.formats.cache.SMALL_FILE", 0)  # mapped, as large files are
    for name in ("cache", "cache_footer"):
        monkeypatch.setattr(f"exactrank.data.formats.{name}.BLOCK", 1024)
    data = cut_into(whole := made(0, 1200), tmp_path, [], 4000)
    path, model = tmp_path / "part-0000.xr", er.Ridge().fit(whole).model_
    content = bytearray(path.read_bytes())
    content[cache.X_OFFSET + whole.X.nbytes - 9] ^= 1
    path.write_bytes(content)
    assert len(data.partitions) > 1
    data.partitions[0].load()  # the damage is elsewhere
    with pytest.raises(er.errors.DataError, match=r"part-0000\.xr: its section 'X' is damaged \(checksum"):
        data.partitions[-1].load()
    shards = read_shards(str(tmp_path / "part-*.xr"))
    for use in (lambda: er.evaluate(shards, model, "nDCG@10"), lambda: er.Ridge().fit(shards)):
        with pytest.raises(er.errors.DataError, match=r"part-0000\.xr: its section 'X' is damaged \(checksum"):
            use()


def _queries(part: Part) -> int:
    return part.data.n_queries


def test_files_that_do_not_fit_together_are_named(tmp_path):
    whole = made(4, 300)
    er.write(query_range(whole, 0, 200), tmp_path / "part-0.xr")
    er.write(query_range(whole, 100, 300), tmp_path / "part-1.xr")
    with pytest.raises(er.errors.DataError, match=r"query 100 lies in .*part-0\.xr and .*part-1\.xr"):
        open_shards(read_shards(str(tmp_path / "part-*.xr")), LocalBackend())
    other = er.RankingData.from_arrays([[1.0]], [1], group=[1])
    er.write(other, tmp_path / "part-1.xr", force=True)
    with pytest.raises(er.errors.DataError, match=r"part-1\.xr and .*part-0\.xr differ in their features"):
        open_shards(read_shards(str(tmp_path / "part-*.xr")), LocalBackend())
    with pytest.raises(er.errors.DataError, match="there is no such file; check the pattern"):
        read_shards(str(tmp_path / "none-*.xr"))


def test_what_cannot_train_on_partitions_says_what_can(tmp_path):
    er.write(made(5, 300), tmp_path / "part-0.xr")
    shards = read_shards(str(tmp_path / "part-*.xr"))
    with pytest.raises(er.errors.DataError, match=r"scores must be a model, the name of a feature, or a function of a part of the data"):
        er.profile(shards, [1], [1], "nDCG")
    with pytest.raises(er.errors.IncompatibleError, match=r"CudaBackend\(\) computes on data in one file; er.read one file"):
        er.line_search(shards, "x0", "x1", "nDCG", backend=er.CudaBackend())


def test_partitioned_data_knows_nothing_of_documents(tmp_path):
    data = cut_into(made(6, 300), tmp_path, [100], 5_000)
    assert isinstance(data, ShardedData)
    assert not hasattr(data, "X")
    assert not hasattr(data, "y")
