"""The certificate of a linear model against brute force, and against models that are known to be optimal or not."""

import json
import math
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from typer.testing import CliRunner

import exactrank as er
from exactrank.cli import app
from exactrank.errors import DataError, IncompatibleError, OutputExistsError
from exactrank.inspect.optimality import optimality
from tests.reference import profile as reference
from tests.strategies import GRADES, MEASURES

NAMES = ("bm25", "dense", "length")
CELLS = st.one_of(st.integers(-2, 2).map(float), st.integers(-5, 5).map(lambda i: i / 10))


@st.composite
def models(draw):
    """(model, data): few distinct numbers, so that documents tie and lines are parallel; queries interleaved."""
    rows = draw(st.lists(st.tuples(GRADES, st.integers(0, 2), CELLS, CELLS), min_size=2, max_size=15))
    y, qid, *X = np.array(rows, float).T
    data = er.RankingData.from_arrays(np.array(X).T, y, qid=qid, feature_names=NAMES[:2])
    return model_of(draw(st.tuples(CELLS, CELLS))), data


def model_of(weights, measure=None):
    return er.Model(er.models.Linear(np.array(weights), NAMES[: len(weights)]), measure)


def smooth_data(seed=0, queries=12, documents=8):
    """Data without ties, of which a linear model can rank much but not all."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * documents, 3)).astype(np.float32)
    y = np.clip(np.round(X @ [1.0, -0.7, 0.2] + rng.normal(scale=0.8, size=len(X)) + 0.3), 0, 3)
    return er.RankingData.from_arrays(X, y, group=[documents] * queries, feature_names=NAMES)


def value_of(model, data, measure):
    return er.evaluate(data, model.predict(data), [measure]).means[str(measure)]


def moved(model, j, to):
    weights = model.scorer.weights.copy()
    weights[j] = to
    return replace(model, scorer=replace(model.scorer, weights=weights))


def column(data, j):
    return data.ungroup(data.X[:, j].astype(np.float64))


def pieces(f):
    """(where, value) of each interval of a reference step function that is wider than rounding, and of each lone point."""
    ends = np.concatenate([f.breakpoints[:1] - 2, f.breakpoints, f.breakpoints[-1:] + 2])
    wide = np.diff(ends) > 1e-11 * np.maximum(1, np.abs(ends[1:]))
    intervals = [((a + b) / 2, v) for a, b, v, w in zip(ends[:-1], ends[1:], f.values, wide, strict=True) if w]
    lone = [(p, v) for p, v, left, right in zip(f.breakpoints, f.at, wide[:-1], wide[1:], strict=True) if left and right]
    return intervals, lone


# ---- against brute force


@given(models(), MEASURES)
@settings(max_examples=60)
def test_gains_and_flat_intervals_equal_brute_force(case, measure):
    model, data = case
    theirs = value_of(model, data, measure)
    if math.isnan(theirs):
        with pytest.raises(DataError, match="skips every query"):
            optimality(data, model, measure=measure)
        return
    ours = optimality(data, model, measure=measure)
    assert ours.value == pytest.approx(theirs, abs=1e-12)
    scores = model.predict(data)
    for j, weight in enumerate(ours.per_weight):
        intervals, lone = pieces(reference.profile(measure, data, scores, column(data, j)))
        best = max(value for _, value in intervals)
        assert weight.gain == pytest.approx(best - theirs, abs=1e-11)
        inside = [value for at, value in intervals if weight.low < weight.weight + at < weight.high]
        assert weight.gain <= 0 or (inside and inside == pytest.approx([best] * len(inside), abs=1e-11))
        same = [value for at, value in intervals + lone if weight.flat_low < weight.weight + at < weight.flat_high]
        assert same == pytest.approx([theirs] * len(same), abs=1e-11)


@given(models(), MEASURES)
@settings(max_examples=60)
def test_the_measure_changes_at_the_ends_of_the_flat_interval(case, measure):
    model, data = case
    theirs = value_of(model, data, measure)
    assume(not math.isnan(theirs))
    scores = model.predict(data)
    for j, weight in enumerate(optimality(data, model, measure=measure).per_weight):
        intervals, lone = pieces(reference.profile(measure, data, scores, column(data, j)))
        beside = []
        for end, sign in ((weight.flat_low, -1), (weight.flat_high, 1)):
            further = sorted((sign * at, value) for at, value in intervals if sign * (weight.weight + at - end) > 2e-12)
            if math.isinf(end):
                assert not further or {value for _, value in further} == {pytest.approx(theirs, abs=1e-11)}
                continue
            beside.append(further[0][1])
            there = [value for at, value in lone if abs(weight.weight + at - end) < 2e-12]
            assert any(abs(value - theirs) > 1e-12 for value in [beside[-1], *there])
        assert weight.local_gain == pytest.approx(max(beside, default=theirs) - theirs, abs=1e-11)


@given(st.tuples(*[st.floats(-2, 2)] * 3), st.sampled_from(["nDCG@3", "AP", "ERR@5", "PairwiseCorrect"]))
@settings(max_examples=25)
def test_the_promised_gain_is_had_by_making_the_change(weights, measure):
    data, model = smooth_data(), model_of(weights)
    assume(min(map(abs, weights)) > 1e-3)
    result = optimality(data, model, measure=measure)
    for j, weight in enumerate(result.per_weight):
        grid = [value_of(moved(model, j, v), data, measure) for v in np.linspace(-3, 3, 15)]
        assert max(grid) <= result.value + weight.gain + 1e-11
        low, high = max(weight.low, min(weight.high, 0) - 50), min(weight.high, max(weight.low, 0) + 50)
        assert value_of(moved(model, j, (low + high) / 2), data, measure) == pytest.approx(result.value + weight.gain, abs=1e-11)


# ---- known models


@pytest.fixture(scope="module", params=["nDCG@5", "AP"])
def converged(request):
    """(ranker, data) after coordinate ascent by exact line search, which ends in a coordinatewise maximum."""
    data = smooth_data(seed=5)
    return er.DirectRank(measure=request.param, bags=0, max_iter=200).fit(data), data


def test_a_converged_model_is_certified(converged):
    ranker, data = converged
    result = optimality(data, ranker)
    assert result.coordinatewise_maximum
    assert result.local
    assert result.best.gain == 0
    assert result.value == pytest.approx(ranker.score(data), abs=1e-12)
    assert result.value == pytest.approx(ranker.model_.training["value"], abs=1e-12)
    assert repr(result.measure) == ranker.model_.measure
    assert "is a coordinatewise maximum" in result.verdict
    for weight in result.per_weight:
        assert (weight.low, weight.high) == (weight.flat_low, weight.flat_high)
        assert weight.flat_low < weight.weight < weight.flat_high
        assert weight.margin > 0


@given(st.integers(0, 2), st.floats(-3, 3))
@settings(max_examples=20)
def test_a_perturbed_one_is_refuted_with_what_was_lost(converged, j, to):
    ranker, data = converged
    model = moved(ranker.model_, j, to)
    lost = optimality(data, ranker).value - value_of(model, data, model.measure)
    assume(lost > 1e-12)
    result = optimality(data, model)
    assert not result.coordinatewise_maximum
    assert result.per_weight[j].gain >= lost - 1e-12
    assert result.best.gain >= lost - 1e-12
    assert f"raises it by {result.best.gain:.4g}" in result.verdict


@given(st.tuples(*[st.floats(-2, 2)] * 3))
@settings(max_examples=20)
def test_doubling_all_weights_changes_no_gain(weights):
    assume(all(w == 0 or abs(w) > 1e-3 for w in weights))  # crossings have 13 decimals
    data = smooth_data()
    first, second = (optimality(data, model_of(np.array(weights) * factor), measure="nDCG@5") for factor in (1, 2))
    for ours, theirs in zip(first.per_weight, second.per_weight, strict=True):
        assert (ours.gain, ours.local_gain) == pytest.approx((theirs.gain, theirs.local_gain), abs=1e-12)
        for end in ("low", "high", "flat_low", "flat_high"):
            assert 2 * getattr(ours, end) == pytest.approx(getattr(theirs, end), rel=1e-9, abs=1e-9)


def test_a_local_maximum_need_not_be_a_coordinatewise_one():
    """The relevant document leads the first query now, and would lead the other two from 3 on."""
    X = [[0.0, 1.0], [1.0, 0.0]] + 2 * [[1.0, 0.0], [0.0, 3.0]]
    data = er.RankingData.from_arrays(X, [1, 0, 1, 0, 1, 0], group=[2, 2, 2], feature_names=NAMES[:2])
    result = optimality(data, model_of([0.5, 1.0]), measure="RR")
    first = result.per_weight[0]
    assert result.value == pytest.approx((1 + 0.5 + 0.5) / 3)
    assert (first.flat_low, first.flat_high, first.local_gain) == (-math.inf, 1.0, pytest.approx(-0.5 / 3))
    assert (first.low, first.high, first.gain) == (3.0, math.inf, pytest.approx(0.5 / 3))
    assert result.local
    assert not result.coordinatewise_maximum
    assert "a local maximum but not a coordinatewise one" in result.verdict


def test_where_nothing_is_gained_the_interval_is_the_one_around_the_weight():
    """The value is the same below 1 and above 3."""
    data = er.RankingData.from_arrays([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.0, 3.0]], [1, 0, 1, 0], group=[2, 2], feature_names=NAMES[:2])
    first = optimality(data, model_of([4.0, 1.0]), measure="RR").per_weight[0]
    assert (first.gain, first.low, first.high, first.local_gain) == (0, 3.0, math.inf, -0.25)


def test_an_interval_as_wide_as_rounding_is_not_better():
    """Four units in the last place above 1 one query gains, and eight above it the other loses."""
    X, ulp = [[0.0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]], 2.0**-52
    data = er.RankingData.from_arrays(X, [1, 0, 1, 0], group=[2, 2], feature_names=NAMES)
    result = optimality(data, model_of([1 + 4 * ulp, 1 + 8 * ulp, 1.0]), measure="RR")
    assert result.profile("length").best().value == 1.0
    assert (result.value, result.per_weight[2].gain, result.per_weight[2].local_gain) == (0.75, 0, 0)


def test_where_documents_tie_the_evaluated_value_counts():
    data = er.RankingData.from_arrays([[0.0], [1.0]], [1, 0], group=[2], feature_names=["a"])
    tied = er.Model(er.models.Linear(np.zeros(1), ("a",)))
    lucky, unlucky = (optimality(data, tied, measure=f"RR(ties='{ties}')") for ties in ("input", "pessimistic"))
    assert (lucky.value, lucky.coordinatewise_maximum, lucky.best.flat_low, lucky.best.flat_high) == (1.0, True, -math.inf, 0.0)
    assert (unlucky.value, unlucky.best.gain, unlucky.best.low, unlucky.best.high) == (0.5, 0.5, -math.inf, 0.0)


def test_a_point_where_documents_tie_is_not_better():
    """With a weight of 0 all tie, and the relevant document comes first as it does in the input; else it is never first."""
    data = er.RankingData.from_arrays([[1.0], [2.0], [0.0]], [1, 0, 0], group=[3], feature_names=["a"])
    beside, there = (optimality(data, er.Model(er.models.Linear(np.array([w]), ("a",))), measure="RR") for w in (1.0, 0.0))
    assert beside.profile("a")(-1.0) == there.value == 1.0
    assert (beside.value, beside.best.gain, beside.coordinatewise_maximum) == (0.5, 0, True)
    assert (beside.best.flat_low, beside.best.flat_high) == (0.0, math.inf)
    assert (there.best.gain, there.best.flat_low, there.best.flat_high, there.coordinatewise_maximum) == (-0.5, 0.0, 0.0, True)


def test_a_constant_feature_changes_nothing():
    data = er.RankingData.from_arrays([[1.0, 3.0], [2.0, 3.0]], [1, 0], group=[2], feature_names=NAMES[:2])
    result = optimality(data, model_of([1.0, 1.0]), measure="RR")
    constant, plain = result.per_weight[1], result.to_json()["per_weight"][1]
    assert (constant.gain, constant.local_gain, constant.flat_low, constant.flat_high) == (0, 0, -math.inf, math.inf)
    assert math.isinf(constant.margin)
    assert (plain["flat_low"], plain["flat_high"], plain["weight"]) == (None, None, 1.0)


# ---- models from anywhere, and what is refused


def test_weights_from_anywhere(tmp_path):
    data, path = smooth_data(), tmp_path / "weights.json"
    theirs = optimality(data, model_of([1.0, -0.5, 0.25]), measure="nDCG@5")
    for written in (
        {"length": 0.25, "bm25": 1.0, "dense": -0.5},
        {"weights": {"bm25": 1, "dense": -0.5, "length": 0.25}},
        [1.0, -0.5, 0.25],
    ):
        path.write_text(json.dumps(written))
        ours = optimality(data, er.load(path), measure="nDCG@5")
        assert {w.feature: w for w in ours.per_weight} == {w.feature: w for w in theirs.per_weight}
    assert optimality(data, er.load(path), measure="nDCG@5", threads=1) == optimality(data, er.load(path), measure="nDCG@5", threads=2)


def test_missing_values_by_the_policy_of_the_model():
    data = smooth_data()
    X = data.X.copy()
    X[::7, 1] = np.nan
    holes, zeros = (replace(data, X=filled) for filled in (X, np.nan_to_num(X)))
    model = model_of([1.0, -0.5, 0.25])
    with pytest.raises(DataError, match="values are missing"):
        optimality(holes, model, measure="AP")
    zero = replace(model, scorer=replace(model.scorer, missing="zero"))
    assert optimality(holes, zero, measure="AP").per_weight == optimality(zeros, model, measure="AP").per_weight


@dataclass(frozen=True)
class Constant:
    """A scorer that is not linear."""

    kind = "constant"
    feature_names = ()
    n_features = 3


def test_what_is_refused():
    data = smooth_data()
    with pytest.raises(IncompatibleError, match="lacks other; it has besides length"):
        optimality(data, er.Model(er.models.Linear(np.ones(3), ("bm25", "dense", "other"))), measure="AP")
    with pytest.raises(IncompatibleError, match="has 3 features but the model has 2"):
        optimality(data, er.Model(er.models.Linear(np.ones(2))), measure="AP")
    with pytest.raises(IncompatibleError, match="--measure"):
        optimality(data, model_of([1.0, 1.0, 1.0]))
    with pytest.raises(IncompatibleError, match="a constant model has no weight per feature"):
        optimality(data, er.Model(Constant()), measure="AP")
    with pytest.raises(IncompatibleError, match="DirectRank is not a model"):
        optimality(data, er.DirectRank())
    with pytest.raises(IncompatibleError, match="single precision"):
        optimality(data, model_of([1.0, 1.0, 1.0]), measure="AP(ties='docid')")
    with pytest.raises(DataError, match="no feature 'x'; there are bm25, dense, length"):
        optimality(data, model_of([1.0, 1.0, 1.0]), measure="AP").profile("x")


# ---- what it gives


def test_json_has_everything_and_no_infinity():
    result = optimality(smooth_data(), model_of([1.0, -0.5, 0.0]), measure="nDCG@5")
    plain = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert plain["value"] == result.value
    assert plain["measure"] == repr(result.measure)
    assert [w["gain"] for w in plain["per_weight"]] == [w.gain for w in result.per_weight]
    assert plain["best"]["feature"] == result.best.feature
    assert (plain["coordinatewise_maximum"], plain["local"]) == (result.coordinatewise_maximum, result.local)


def test_the_profile_is_of_the_change_of_the_weight():
    data, model = smooth_data(), model_of([1.0, -0.5, 0.25])
    steps = optimality(data, model, measure="nDCG@5").profile("dense")
    for change in (-1.0, 0.0, 0.7):
        assert steps(change) == pytest.approx(value_of(moved(model, 1, -0.5 + change), data, "nDCG@5"), abs=1e-12)


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_pictures(tmp_path, suffix, converged):
    path = tmp_path / f"picture.{suffix}"
    ranker, data = converged
    optimality(data, ranker).plot(path=path)
    before = path.read_bytes()
    assert before[:4] in (b"\x89PNG", b"<?xm")
    result = optimality(data, moved(ranker.model_, 0, 0.0))
    with pytest.raises(OutputExistsError):
        result.plot(path=path)
    result.plot(path=path, weights=1, force=True)
    assert path.read_bytes() != before


def test_a_picture_of_many_steps_is_small_and_shows_what_is_far_off(tmp_path):
    """One feature is all that counts, so the best weight of it is far off; a vector for each step would fill megabytes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2)).astype(np.float32)
    data = er.RankingData.from_arrays(X, np.argsort(np.argsort(X[:, 0])) // 1000, group=[100] * 30, feature_names=NAMES[:2])
    result = optimality(data, model_of([0.0, 1.0]), measure="nDCG")
    assert len(result.profile("bm25").breakpoints) > 50_000
    assert result.best.low > 100
    result.plot(path=tmp_path / "far.svg")
    assert (tmp_path / "far.svg").stat().st_size < 500_000


def test_pictures_that_cannot_be(tmp_path, monkeypatch):
    result = optimality(smooth_data(), model_of([1.0, 0.0, 0.0]), measure="AP")
    with pytest.raises(DataError, match="names no kind of picture"):
        result.plot(path=tmp_path / "a.bmp")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(IncompatibleError, match=r"pip install 'exactrank\[report\]'"):
        result.plot(path=tmp_path / "a.png")


# ---- the command


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Runs ``exactrank inspect optimality`` beside data and two models, one without a measure."""
    monkeypatch.chdir(tmp_path)
    data = smooth_data(seed=5)
    er.write(replace(data, feature_names=("1", "2", "3")), "data.txt")
    er.DirectRank(measure="nDCG@5", bags=0).fit(er.read("data.txt")).save("best.json")
    (tmp_path / "weights.json").write_text('{"1": 1, "2": 0, "3": 0}')

    def run(*words):
        result = CliRunner().invoke(app, ["inspect", "optimality", *words], env={"COLUMNS": "200"})
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result

    return run


def test_command_certifies(command):
    result = command("best.json", "data.txt", "--top", "2")
    assert result.exit_code == 0
    assert "is a coordinatewise maximum: no change of a single weight raises it." in result.stdout
    assert "and 1 more weights" in result.stdout


def test_command_refutes(command, tmp_path):
    result = command("weights.json", "data.txt", "-m", "nDCG@5", "--plot", "p.png")
    assert result.exit_code == 0
    assert "is not a coordinatewise maximum: moving the weight of 2 from 0 into (" in result.stdout
    assert (tmp_path / "p.png").stat().st_size > 1000
    refused = command("weights.json", "data.txt", "-m", "nDCG@5", "--plot", "p.png")
    assert refused.exit_code == 2
    assert "already exists" in refused.stderr
    assert command("weights.json", "data.txt", "-m", "nDCG@5", "--plot", "p.png", "--force").exit_code == 0


def test_command_prints_what_the_library_finds(command):
    result = command("weights.json", "data.txt", "-m", "AP", "--json", "--threads", "1")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == optimality(er.read("data.txt"), er.load("weights.json"), measure="AP").to_json()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("weights.json", "data.txt"), "name one, e.g. measure='nDCG@10' (--measure nDCG@10)"),
        (("weights.json", "data.txt", "-m", "nonsense"), "nonsense"),
        (("nowhere.json", "data.txt"), "nowhere.json does not exist"),
        (("weights.json", "data.txt", "-m", "AP", "--plot", "p.gif"), "names no kind of picture"),
        (("data.txt", "data.txt"), "is not a model"),
        (("weights.json", "data.txt", "-m", "AP", "--features", "4"), "it has besides 4"),
        (("weights.json", "data.txt", "-m", "AP", "--top", "0"), "--top"),
    ],
)
def test_command_with_bad_input(command, words, message):
    result = command(*words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
