"""The curves of a measure over single weights, against evaluation with the weight changed."""

import json
import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from typer.testing import CliRunner

import exactrank as er
from exactrank.cli import app
from exactrank.errors import DataError, IncompatibleError, SettingError
from exactrank.inspect.smoothness import Roughness, smoothness
from exactrank.models.network import Network
from tests.reference import profile as reference

NAMES = ("bm25", "dense", "length")
SEEDS = st.integers(0, 2**32 - 1)


def judged(seed=0, queries=12, documents=8):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(queries * documents, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, 0.0]).astype(np.float32)
    y = np.clip(np.round(X @ [1.0, -0.07, 2.0] + rng.normal(scale=0.8, size=len(X)) + 0.7), 0, 3)
    return er.RankingData.from_arrays(X, y, group=[documents] * queries, feature_names=NAMES)


def linear(weights=(1.0, -0.05, 3.0), measure="nDCG@5"):
    return er.Model(er.models.Linear(np.array(weights), NAMES), measure)


def network(seed=0, units=4, measure="nDCG@5"):
    rng = np.random.default_rng(seed)
    weights, bias, output = rng.normal(size=(units, 3)), rng.normal(size=units), rng.normal(size=units)
    return er.Model(Network(weights, bias, output, np.array([0.1, 5.0, 0.0]), np.array([1.0, 10.0, 0.1]), NAMES), measure)


def changed(model, weight, percent):
    """The model with one weight so many percent larger."""
    scorer, factor = model.scorer, 1 + percent / 100
    name = {("linear", 1): "weights", ("network", 1): "output", ("network", 2): "weights"}[scorer.kind, len(weight.place)]
    values = getattr(scorer, name).copy()
    values[weight.place if len(weight.place) > 1 else weight.place[0]] *= factor
    return replace(model, scorer=replace(scorer, **{name: values}))


def value_of(model, data, measure="nDCG@5"):
    return er.evaluate(data, model.predict(data), [measure]).means[measure]


# ---- the curves


@given(SEEDS, st.sampled_from([linear(), network()]), st.sampled_from(["nDCG@5", "AP", "ERR@3"]), st.sampled_from([7.0, 100.0, 250.0]))
@settings(max_examples=20)
def test_curves_equal_evaluation_with_the_weight_changed(seed, model, measure, percent):
    result = smoothness(judged(seed), model, measure=measure, percent=percent, samples=[5], points=9, seed=seed % 7)
    for curve in result.curves:
        data = result.samples[curve.queries].data
        assert curve.value == pytest.approx(value_of(model, data, measure), abs=1e-12)
        theirs = [value_of(changed(model, curve.weight, p), data, measure) for p in result.grid]
        assert curve.values == pytest.approx(theirs, abs=1e-12)
        assert curve.grid == Roughness.of(np.array(curve.values))


@given(SEEDS, st.sampled_from([linear(), network(units=2)]))
@settings(max_examples=8)
def test_steps_equal_brute_force(seed, model):
    result = smoothness(judged(seed, queries=3, documents=7), model, samples=[2], points=5)
    for curve in (each for each in result.curves if each.steps is not None):
        sample = result.samples[curve.queries]
        f = reference.profile(result.measure, sample.data, sample.scores, sample.direction(curve.weight))
        inside = np.abs(f.breakpoints) <= result.percent
        first = int(np.argmax(inside)) if np.any(inside) else len(f.breakpoints)
        values = f.values[first : first + inside.sum() + 1]
        jumps = np.abs(np.diff(values))
        assert curve.steps.count == np.sum(jumps > 1e-12)
        assert curve.steps.largest == pytest.approx(jumps.max(initial=0.0), abs=1e-12)
        assert (curve.best, curve.span) == (pytest.approx(values.max(), abs=1e-12), pytest.approx(np.ptp(values), abs=1e-12))
        assert curve.gain == pytest.approx(max(0.0, values.max() - curve.value), abs=1e-12)


@given(SEEDS)
@settings(max_examples=15)
def test_the_best_is_where_it_is_said_to_be(seed):
    model, data = network(seed), judged(seed)
    result = smoothness(data, model, samples=[], points=5)
    for curve in result.curves:
        assert -100 <= curve.low <= curve.high <= 100
        assert value_of(changed(model, curve.weight, (curve.low + curve.high) / 2), data) == pytest.approx(curve.best, abs=1e-12)
        assert curve.best >= max(curve.values) - 1e-12


@given(SEEDS)
@settings(max_examples=10)
def test_gains_are_among_those_that_optimality_knows(seed):
    data, model = judged(seed), linear()
    gains = {weight.feature: weight.gain for weight in er.inspect.optimality(data, model).per_weight}
    near, far = (smoothness(data, model, percent=percent, samples=[], points=3) for percent in (50.0, 1e6))
    for ours, wide in zip(near.curves, far.curves, strict=True):
        assert ours.gain <= wide.gain + 1e-12
        assert wide.gain == pytest.approx(max(0.0, gains[ours.weight.name]), abs=1e-12)


def test_a_value_at_a_single_point_is_no_step():
    """At half its weight one query gains what the other loses; there documents tie, and both are worth less."""
    X = 2 * [[1.0, 0.0], [0.0, 0.5]]
    data = er.RankingData.from_arrays(X, [1, 0, 0, 1], group=[2, 2], feature_names=NAMES[:2])
    result = smoothness(data, er.Model(er.models.Linear(np.ones(2), NAMES[:2])), measure="RR(ties='pessimistic')", weights=1)
    (curve,) = result.curves
    f = result.profile("bm25")
    assert (f.breakpoints.tolist(), f(-50.0), f(-49.0)) == ([-50.0], 0.5, 0.75)
    assert (curve.steps.count, curve.steps.largest, curve.span, curve.gain) == (0, 0.0, 0.0, 0.0)


def test_doubling_all_weights_changes_no_curve():
    data = judged()
    first, second = (smoothness(data, linear(np.array([1.0, -0.05, 3.0]) * factor), points=11) for factor in (1.0, 2.0))
    for ours, theirs in zip(first.curves, second.curves, strict=True):
        assert replace(ours, weight=theirs.weight, low=0, high=0) == replace(theirs, low=0, high=0)
        assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=1e-9)


def test_the_profile_is_the_exact_step_function():
    result = smoothness(judged(), linear(), samples=[5])
    f = result.profile("dense", 5)
    curve = next(curve for curve in result.of(5) if curve.weight.name == "dense")
    assert f(result.grid).tolist() == list(curve.values)
    assert np.all(np.abs(f.breakpoints) <= 100)
    assert len(result.profile("dense").breakpoints) > len(f.breakpoints)


# ---- how rough


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=12))
def test_roughness(values):
    rough, back = Roughness.of(np.array(values)), Roughness.of(np.array(values[::-1]))
    assert rough == back
    span = max(values) - min(values)
    theirs = sum(abs(a - b) for a, b in pairwise(values))
    assert rough.variation == pytest.approx(theirs / span if span else 0.0)
    kept = [v for i, v in enumerate(values) if i == 0 or v != values[i - 1]]
    assert rough.maxima == sum(a < b > c for a, b, c in zip(kept, kept[1:], kept[2:], strict=False))


def test_more_queries_are_smoother_on_the_grid_and_in_each_step():
    result = smoothness(judged(queries=800), linear(), samples=[20])
    few, many = result.of(20), result.whole
    assert np.median([c.grid.variation for c in few]) > np.median([c.grid.variation for c in many])
    for a, b in zip(few, many, strict=True):
        assert a.steps.largest > 10 * b.steps.largest
        assert a.steps.count < b.steps.count
    assert "with 20 queries and" in result.verdict


# ---- which weights, which queries


def test_weights_with_most_say_come_first():
    """In units of the scores: 1 x 1, 0.05 x 10, 3 x 0.1."""
    assert [c.weight.name for c in smoothness(judged(), linear(), samples=[]).curves] == ["bm25", "dense", "length"]
    assert [c.weight.name for c in smoothness(judged(), linear((0.1, -0.05, 0.0)), samples=[]).curves] == ["dense", "bm25"]
    assert [c.weight.name for c in smoothness(judged(), linear(), samples=[], weights=1).curves] == ["bm25"]


def test_a_network_has_all_its_outputs_and_its_largest_hidden_weights():
    model = network(units=3)
    result = smoothness(judged(), model, samples=[], weights=2, points=3)
    outputs, hidden = [c for c in result.curves if c.steps is not None], [c for c in result.curves if c.steps is None]
    assert [c.weight.name for c in outputs] == ["unit 1", "unit 2", "unit 3"]
    assert [c.weight.value for c in outputs] == model.scorer.output.tolist()
    largest = np.sort(np.abs(model.scorer.weights).ravel())[::-1][:2]
    assert [abs(c.weight.value) for c in hidden] == largest.tolist()
    u, j = hidden[0].weight.place
    assert hidden[0].weight.name == f"{NAMES[j]} in unit {u + 1}"
    assert model.scorer.weights[u, j] == hidden[0].weight.value
    with pytest.raises(IncompatibleError, match="not linear in"):
        result.profile(hidden[0].weight.name)


def test_weights_that_move_no_score_are_left_out():
    model = network(units=2)
    quiet = replace(model, scorer=replace(model.scorer, output=np.array([0.0, 1.0])))
    assert {c.weight.name.split()[-1] for c in smoothness(judged(), quiet, samples=[]).curves} == {"2"}
    data = judged()
    flat = replace(data, X=np.column_stack([data.X[:, :2], np.ones(len(data.y), np.float32)]))
    assert [c.weight.name for c in smoothness(flat, linear(), samples=[]).curves] == ["bm25", "dense"]


def test_samples():
    data = judged(queries=30)
    result = smoothness(data, linear(), samples=[20, 5, 20, 30, 100])
    assert list(result.samples) == [5, 20, 30]
    assert {curve.queries for curve in result.curves} == {5, 20, 30}
    few, more, every = (set(result.samples[size].data.qid.tolist()) for size in (5, 20, 30))
    assert few < more < every == set(data.qid.tolist())
    other = smoothness(data, linear(), samples=[5], seed=1)
    assert set(other.samples[5].data.qid.tolist()) != few
    assert other.whole == result.whole
    assert list(smoothness(data, linear()).samples) == [30]


def test_queries_that_do_not_count_are_in_no_sample():
    data = judged(queries=20)
    y = data.y.copy()
    y[:40] = 0  # the first five queries have nothing to find
    weight = np.ones(20)
    weight[5] = 0
    model, blank = linear(measure="nDCG(empty='skip')@5"), replace(data, y=y, query_weight=weight)
    result = smoothness(blank, model, samples=[10])
    assert (list(result.samples), result.skipped) == ([10, 14], 6)
    measure = model.measure
    assert result.whole[0].value == pytest.approx(value_of(model, blank, measure), abs=1e-12)


def test_rows_in_any_order_and_columns_by_name():
    data, model = judged(), network()
    order = np.random.default_rng(1).permutation(len(data.y))
    mixed = er.RankingData.from_arrays(data.X[order][:, ::-1], data.y[order], qid=np.repeat(data.qid, 8)[order], feature_names=NAMES[::-1])
    ours, theirs = smoothness(mixed, model, points=9), smoothness(data, model, points=9)
    for a, b in zip(ours.curves, theirs.curves, strict=True):
        assert (a.weight, a.steps.count if a.steps else None) == (b.weight, b.steps.count if b.steps else None)
        assert a.values == pytest.approx(b.values, abs=1e-12)


@pytest.mark.parametrize("model", [linear(), network()], ids=["linear", "network"])
def test_missing_values_by_the_policy_of_the_model(model):
    data = judged()
    X = data.X.copy()
    X[::7, 1] = np.nan
    holes, zeros = (replace(data, X=filled) for filled in (X, np.nan_to_num(X)))
    with pytest.raises(DataError, match="values are missing"):
        smoothness(holes, model)
    zero = replace(model, scorer=replace(model.scorer, missing="zero"))
    assert smoothness(holes, zero, points=5).curves == smoothness(zeros, model, points=5).curves


def test_threads_change_nothing():
    assert smoothness(judged(), network(), points=5, threads=1) == smoothness(judged(), network(), points=5, threads=2)


# ---- what is refused


@dataclass(frozen=True)
class Constant:
    """A scorer without weights."""

    kind = "constant"
    feature_names = ()
    n_features = 3


def test_what_is_refused():
    data = judged()
    for percent in (0.0, -5.0, math.inf, math.nan):
        with pytest.raises(SettingError, match="percent must be a number above 0"):
            smoothness(data, linear(), percent=percent)
    for name, bad in (("weights", 0), ("points", 2), ("samples", [0])):
        with pytest.raises(SettingError, match=f"{name} must be at least"):
            smoothness(data, linear(), **{name: bad})
    with pytest.raises(DataError, match="no weight changes a ranking"):
        smoothness(data, linear((0.0, 0.0, 0.0)))
    with pytest.raises(IncompatibleError, match="lacks other; it has besides length"):
        smoothness(data, er.Model(er.models.Linear(np.ones(3), ("bm25", "dense", "other"))), measure="AP")
    with pytest.raises(IncompatibleError, match="has 3 features but the model has 2"):
        smoothness(data, er.Model(er.models.Linear(np.ones(2))), measure="AP")
    with pytest.raises(IncompatibleError, match="--measure"):
        smoothness(data, linear(measure=None))
    with pytest.raises(IncompatibleError, match="a constant model has no weights to move"):
        smoothness(data, er.Model(Constant()), measure="AP")
    with pytest.raises(IncompatibleError, match="DirectRank is not a model"):
        smoothness(data, er.DirectRank())
    with pytest.raises(DataError, match="skips every query"):
        smoothness(replace(data, y=np.zeros(len(data.y))), linear(), measure="AP(empty='skip')")
    with pytest.raises(DataError, match="no curve of 'x' on 12 queries; there are bm25, dense, length on 12 queries"):
        smoothness(data, linear()).profile("x")


def test_optimality_of_a_network_says_what_to_do():
    with pytest.raises(IncompatibleError, match=r"give a linear model; inspect smoothness \(er.inspect.smoothness\) looks at networks"):
        er.inspect.optimality(judged(), network())


# ---- what it gives


@pytest.mark.parametrize("model", [linear(), network()], ids=["linear", "network"])
def test_json_has_everything(model):
    result = smoothness(judged(), model, samples=[5], points=5)
    plain = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert (plain["measure"], plain["verdict"]) == (repr(result.measure), result.verdict)
    assert plain["grid"] == [-100, -50, 0, 50, 100]
    for ours, curve in zip(plain["curves"], result.curves, strict=True):
        assert (ours["weight"], ours["trained"], ours["queries"]) == (curve.weight.name, curve.weight.value, curve.queries)
        assert (ours["values"], ours["exact"], ours["gain"]) == (list(curve.values), curve.weight.is_linear, curve.gain)
        assert (ours["steps"] is None) != curve.weight.is_linear


def test_a_model_at_the_top_is_said_to_be():
    data = judged()
    ranker = er.DirectRank(measure="nDCG@5", bags=0, max_iter=100).fit(data)
    result = smoothness(data, ranker)
    assert all(curve.gain == pytest.approx(0, abs=1e-12) for curve in result.curves)
    assert "no weight has a better value within 100% of its own" in result.verdict
    moved = smoothness(data, replace(ranker.model_, scorer=replace(ranker.model_.scorer, weights=ranker.model_.scorer.weights[::-1])))
    assert "have a better value within 100% of their own" in repr(moved)


# ---- the command


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Runs ``exactrank inspect`` beside data, a linear model and a network."""
    monkeypatch.chdir(tmp_path)
    er.write(replace(judged(), feature_names=("1", "2", "3")), "data.txt")
    (tmp_path / "weights.json").write_text('{"1": 1, "2": -0.05, "3": 3}')
    (tmp_path / "zero.json").write_text('{"1": 0, "2": 0, "3": 0}')
    model = network()
    replace(model, scorer=replace(model.scorer, feature_names=("1", "2", "3"))).save("net.json")

    def run(*words, probe="smoothness"):
        result = CliRunner().invoke(app, ["inspect", probe, *words], env={"COLUMNS": "200"})
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result

    return run


@pytest.mark.parametrize("model", ["weights.json", "net.json"])
def test_command_prints_what_the_library_finds(command, model):
    words = ["--percent", "30", "--weights", "2", "--sample", "4", "--sample", "7", "--points", "5", "--seed", "2", "--threads", "1"]
    result = command(model, "data.txt", "-m", "AP", "--json", *words)
    assert result.exit_code == 0
    theirs = smoothness(er.read("data.txt"), er.load(model), measure="AP", percent=30.0, weights=2, samples=[4, 7], points=5, seed=2)
    assert json.loads(result.stdout) == json.loads(json.dumps(theirs.to_json()))


def test_command_for_people(command, tmp_path):
    result = command("net.json", "data.txt", "--sample", "5", "--plot", "p.png")
    assert result.exit_code == 0
    for part in ("by number of queries", "all 12 queries", "unit 4", "sampled", "nDCG@5", "variation (2%)", "In steps of 2%"):
        assert part in result.stdout
    assert (tmp_path / "p.png").stat().st_size > 1000
    refused = command("net.json", "data.txt", "--plot", "p.png")
    assert refused.exit_code == 2
    assert "already exists" in refused.stderr
    assert command("net.json", "data.txt", "--plot", "p.png", "--force").exit_code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("weights.json", "data.txt"), "name one, e.g. measure='nDCG@10' (--measure nDCG@10)"),
        (("weights.json", "data.txt", "-m", "nonsense"), "nonsense"),
        (("weights.json", "data.txt", "-m", "AP", "--percent", "0"), "percent must be a number above 0, got 0"),
        (("weights.json", "data.txt", "-m", "AP", "--weights", "0"), "--weights"),
        (("weights.json", "data.txt", "-m", "AP", "--sample", "0"), "--sample"),
        (("weights.json", "data.txt", "-m", "AP", "--plot", "p.gif"), "names no kind of picture"),
        (("weights.json", "data.txt", "-m", "AP", "--features", "4"), "it has besides 4"),
        (("zero.json", "data.txt", "-m", "AP"), "no weight changes a ranking"),
        (("nowhere.json", "data.txt"), "nowhere.json does not exist"),
    ],
)
def test_command_with_bad_input(command, words, message):
    result = command(*words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_probe_optimality_of_a_network_names_the_other_probe(command):
    result = command("net.json", "data.txt", probe="optimality")
    assert result.exit_code == 2
    assert "inspect smoothness" in result.stderr
