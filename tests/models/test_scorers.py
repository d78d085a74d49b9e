"""Scorers and model files: scores to the bit, whatever the threads, the order of columns and the way through a file."""

import gzip
import json
import math
import os
import re
import tempfile
import time
import warnings
from contextlib import suppress
from pathlib import Path

import lightgbm as lgb
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import exactrank as er
from exactrank._support import pipes
from exactrank.data import ranking_data
from exactrank.data.ranking_data import checksum
from exactrank.models import KINDS, missing as policies
from exactrank.models.deep import Net
from exactrank.models.missing import fill_missing, fill_values
from exactrank.models.plain_tree import PlainTree, table_of
from exactrank.models.sum import Sum
from exactrank.models.thresholds import Thresholds

WEIGHTS = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6)
NAMES = st.text(st.characters(codec=None), min_size=1, max_size=5)


def random_matrix(rows=50, features=6, seed=0):
    return np.random.default_rng(seed).standard_normal((rows, features)).astype(np.float32)


def with_holes(X, seed=1):
    holed = X.copy()
    holed[np.random.default_rng(seed).random(X.shape) < 0.2] = np.nan
    return holed


def model_of(weights, names=(), **more):
    return er.Model(er.models.Linear(np.array(weights), names), **more)


@given(hnp.arrays(np.float32, (7, 11), elements=st.floats(-100, 100, width=32)), hnp.arrays(float, 11, elements=st.floats(-100, 100)))
def test_scores_are_weighted_sums(X, weights):
    ours = er.models.Linear(weights).score(X)
    theirs = [math.fsum(float(a) * b for a, b in zip(row, weights, strict=True)) for row in X]
    np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_scores_do_not_depend_on_threads_or_neighbors():
    X, linear = random_matrix(5000, 30), er.models.Linear(np.random.default_rng(0).standard_normal(30))
    first = linear.score(X, threads=1)
    assert np.array_equal(first, linear.score(X, threads=2))
    assert np.array_equal(first[1234:1300], linear.score(X[1234:1300]))


def test_a_scorer_cannot_be_changed():
    given_weights = np.ones(2)
    linear = er.models.Linear(given_weights)
    given_weights[0] = 7.0
    assert linear.weights.tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        linear.weights[0] = 7.0


def test_missing_zero_is_zero_and_missing_mean_is_the_mean_of_the_training_data():
    train, test, weights = with_holes(random_matrix()), with_holes(random_matrix(seed=5), seed=6), np.arange(1.0, 7.0)
    data = er.RankingData.from_arrays(train, np.zeros(50), group=[50])
    for policy, fill in {"zero": np.zeros(6), "mean": np.nanmean(train.astype(np.float64), axis=0)}.items():
        linear = er.models.Linear.for_data(data, weights, policy)
        np.testing.assert_allclose(linear.fill, fill, rtol=1e-12)
        by_hand = np.where(np.isnan(test), linear.fill.astype(np.float32), test)
        assert np.array_equal(linear.score(test), er.models.Linear(weights).score(by_hand))


def test_filling_goes_by_blocks_and_copies_only_what_has_holes(monkeypatch):
    monkeypatch.setattr(policies, "ROWS_PER_BLOCK", 7)
    X = random_matrix()
    assert fill_missing(X, np.zeros(6)) is X
    holed = with_holes(X)
    before = holed.copy()
    fill = fill_values(holed, tuple("abcdef"), "mean")
    np.testing.assert_allclose(fill, np.nanmean(holed.astype(np.float64), axis=0), rtol=1e-12)
    assert np.array_equal(fill_missing(holed, fill), np.where(np.isnan(holed), fill.astype(np.float32), holed))
    assert np.array_equal(holed, before, equal_nan=True)


def test_missing_values_are_refused_with_their_columns():
    X = random_matrix(4, 3)
    X[0, 1] = X[2, 1] = X[3, 2] = np.nan
    with pytest.raises(er.errors.DataError, match=r'3 values are missing \(b: 2, c: 1\).*missing="zero" or missing="mean"'):
        er.models.Linear(np.zeros(3), ("a", "b", "c")).score(X)
    with pytest.raises(er.errors.DataError, match=r"column 1: 2, column 2: 1"):
        er.models.Linear(np.ones(3)).score(X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "at least one number"),
        (([[1.0]],), "at least one number"),
        (([1.0, np.nan],), r"weights\[1\] is nan"),
        (([1.0, np.inf],), r"weights\[1\] is inf"),
        (([1.0, 2.0], ("a",)), "2 weights for 1 features"),
        (([1.0, 2.0], ("a", "a")), "are both called 'a'"),
        (([1.0], ("a",), "median"), "'median' is not a policy"),
        (([1.0], ("a",), "mean"), "needs fill"),
        (([1.0], ("a",), "error", [0.0]), "has no fill"),
        (([1.0], ("a",), "mean", [0.0, 1.0]), "2 values for 1 features"),
    ],
)
def test_bad_scorers_are_refused(arguments, message):
    with pytest.raises(er.errors.DataError, match=message):
        er.models.Linear(*arguments)


TREE = PlainTree(np.zeros(3, int), np.array([1.0, 0.0, 0.0]), np.array([1, -1, -1]), np.array([2, -1, -1]), np.array([0.0, 0.0, 1e308]))
FLAT = {"mean": np.zeros(2, np.float32), "scale": np.ones(2, np.float32), "output.weight": np.full((1, 2), 3e38, np.float32)}
#: A scorer of each kind whose scores of large features overflow, and what is to be scaled down.
OVERFLOWING = {
    "linear": (er.models.Linear(np.array([1e300, -1e300])), "weights or features"),
    "network": (er.models.Network(np.ones((2, 2)), np.zeros(2), np.full(2, 1e308), np.zeros(2), np.ones(2)), "weights or features"),
    "kernel": (er.models.KernelExpansion(np.ones((2, 2)), np.full(2, 1e308), np.zeros(2), np.ones(2), "linear"), "the coefficients"),
    "thresholds": (er.models.Thresholds(([1.0], [1.0]), ([1e308], [1e308])), "weights or features"),
    "trees": (er.models.TreeEnsemble(table_of([TREE, TREE], 2)), "the trees"),
    "sum": (Sum((er.models.Linear(np.full(2, 1e270)), er.models.TreeEnsemble(table_of([TREE], 2))), np.array([1.0, -1e9])), "the weights"),
    "deep": (er.models.Deep((Net(FLAT, 1e308, "none"),)), "weights or features"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_scores_that_overflow_are_refused_in_our_words_alone(kind):
    scorer, remedy = OVERFLOWING[kind]
    assert scorer.kind == kind
    X = np.zeros((1200, 2), np.float32)
    assert np.isfinite(scorer.score(X)).all()
    X[700] = 1e30
    for threads in (1, 2):
        with warnings.catch_warnings(), pytest.raises(er.errors.DataError, match=f"^the score of row 700 overflows; scale {remedy} down$"):
            warnings.simplefilter("error")
            scorer.score(X, threads)


@given(WEIGHTS, st.data())
def test_a_file_keeps_every_bit(tmp_path_factory, weights, draw):
    path = tmp_path_factory.mktemp("models") / "model.json"
    named = draw.draw(st.booleans())
    names = tuple(draw.draw(st.lists(NAMES, min_size=len(weights), max_size=len(weights), unique=True))) if named else ()
    policy = draw.draw(st.sampled_from(["error", "zero", "mean"]))
    scorer = er.models.Linear(np.array(weights), names, policy, np.array(weights) if policy == "mean" else None)
    saved = er.Model(scorer, "nDCG@10", "Ranker", {"step": 0.1}, {"queries": 3}, 7, training={"value": weights[0]})
    saved.save(path)
    ours = er.load(path)
    assert ours.scorer.weights.tobytes() == scorer.weights.tobytes()
    assert (ours.scorer.feature_names, ours.scorer.missing) == (names, policy)
    assert (ours.scorer.fill is None) == (scorer.fill is None)
    assert scorer.fill is None or ours.scorer.fill.tobytes() == scorer.fill.tobytes()
    for field in ("measure", "ranker", "params", "data", "seed", "library", "training"):
        assert getattr(ours, field) == getattr(saved, field)


def test_a_file_is_json_that_any_parser_reads(tmp_path):
    params = {
        "bounds": (-math.inf, math.inf),
        "measure": er.measures.NDCG(k=3),
        "seed": np.int64(4),
        "grid": np.array([1.0, np.nan]),
        "none": None,
    }
    model_of([0.5, -2.0], ("a", "b"), params=params, training={"valid": math.nan}).save(tmp_path / "m.json")
    text = (tmp_path / "m.json").read_text()
    record = json.loads(text, parse_constant=lambda token: pytest.fail(f"{token} is not JSON"))
    assert record["format"] == "exactrank-model"
    assert record["version"] == 2
    assert record["library"] == er.__version__
    assert record["scorer"] == {"kind": "linear", "missing": "error", "weights": {"a": 0.5, "b": -2.0}}
    assert record["params"] == {
        "bounds": ["-inf", "inf"],
        "measure": "nDCG(gain='exp2', discount='log2', short='pad', empty=0, ties='input')@3",
        "seed": 4,
        "grid": [1.0, "nan"],
        "none": None,
    }


def test_an_existing_file_is_kept_without_force(tmp_path):
    path = tmp_path / "m.json"
    model_of([1.0]).save(path)
    with pytest.raises(er.errors.OutputExistsError, match="force"):
        model_of([2.0]).save(path)
    assert er.load(path).scorer.weights.tolist() == [1.0]
    model_of([2.0]).save(path, force=True)
    assert er.load(path).scorer.weights.tolist() == [2.0]


@pytest.mark.parametrize(
    ("written", "names", "weights", "policy"),
    [
        ('{"bm25": 0.5, "dense": -2}', ("bm25", "dense"), [0.5, -2.0], "error"),
        ('{"weights": {"bm25": 0.5, "dense": -2}}', ("bm25", "dense"), [0.5, -2.0], "error"),
        ('{"weights": 0.5, "format": 2}', ("weights", "format"), [0.5, 2.0], "error"),
        ('{"weights": [1, 2], "missing": "zero"}', (), [1.0, 2.0], "zero"),
        ("[0.1, 0.2]", (), [0.1, 0.2], "error"),
    ],
)
def test_weights_trained_anywhere(tmp_path, written, names, weights, policy):
    (tmp_path / "w.json").write_text(written)
    model = er.load(tmp_path / "w.json")
    assert (model.scorer.feature_names, model.scorer.weights.tolist(), model.scorer.missing) == (names, weights, policy)
    assert model.predict([[1.0, 10.0]]).tolist() == [weights[0] + 10 * weights[1]]


def changed(**changes):
    record = {
        "format": "exactrank-model",
        "version": 2,
        "library": "0.1.0",
        "ranker": None,
        "measure": None,
        "seed": 0,
        "params": {},
        "data": {},
        "training": {},
        "scorer": {"kind": "linear", "missing": "error", "weights": {"a": 1.0}},
    } | changes
    return json.dumps({name: value for name, value in record.items() if value != "left out"})


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("", "not a model"),
        ("weights", "not a model"),
        ("\xff", "not a model"),
        ("[" * 100_000, "not a model"),
        ('{"a": 1, "a": 2}', "'a' appears twice"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ("[Infinity]", "Infinity is not"),
        ("[1e999]", "expected a finite number"),
        ("[1" + "0" * 400 + "]", "expected a finite number"),
        ("[true]", "expected a finite number"),
        ('{"a": "1"}', "'a' has the value '1'"),
        ("{}", "numbers by feature name"),
        ("[]", "numbers by feature name"),
        ("7", "numbers by feature name"),
        ('{"weights": {"a": 1}, "missing": "mean"}', "needs fill"),
        (changed(format="onnx"), "'onnx'; expected 'exactrank-model'"),
        (changed(version=3), "version is 3 but this exactrank reads 1 and 2; install a newer one"),
        (changed(version="left out"), "None but this"),
        (changed(measure=3), "'measure' is 3"),
        (changed(seed=True), "'seed' is True"),
        (changed(training="left out"), "'training' is missing"),
        (changed(scorer=[1]), r"'scorer' is \[1\]"),
        (changed(scorer={"kind": "oracle"}), "'oracle'; known: deep, kernel, linear"),
        (changed(scorer={"kind": "linear"}), "weights: expected"),
        (changed(scorer={"kind": "linear", "weights": {"a": 1}, "missing": "mean", "fill": {"b": 1}}), "different features"),
        (changed(scorer={"kind": "linear", "weights": [1], "missing": "mean", "fill": [1, 2]}), "2 values for 1"),
    ],
)
def test_bad_files_are_refused_with_their_path(tmp_path, written, message):
    (tmp_path / "bad.json").write_text(written, "latin-1")
    with pytest.raises(er.errors.DataError, match=rf"bad\.json.*{message}"):
        er.load(tmp_path / "bad.json")


def test_a_file_that_is_cut_short_is_never_a_model(tmp_path):
    model_of([0.25, 3.0], ("a", "b"), measure="AP").save(tmp_path / "m.json")
    whole = (tmp_path / "m.json").read_bytes()
    for length in range(len(whole) - 1):
        (tmp_path / "cut.json").write_bytes(whole[:length])
        with pytest.raises(er.errors.DataError, match=r"cut\.json"):
            er.load(tmp_path / "cut.json")


def test_no_file_and_folders(tmp_path):
    with pytest.raises(er.errors.DataError, match="does not exist"):
        er.load(tmp_path / "m.json")
    with pytest.raises(er.errors.DataError, match="is a folder"):
        er.load(tmp_path)


@given(st.permutations(range(5)), st.lists(st.sampled_from("uvw"), min_size=30, max_size=30))
def test_predictions_follow_names_and_rows(columns, qid):
    """Neither the order of columns nor that of queries among the rows matters, to the bit."""
    X, names = random_matrix(30, 5), np.array(list("abcde"))
    model = model_of([1.0, -0.3, 0.7, 0.1, 2.0], tuple(names))
    ours = model.predict(er.RankingData.from_arrays(X[:, columns], np.zeros(30), qid=qid, feature_names=names[columns]))
    assert np.array_equal(ours, model.predict(X))


@pytest.fixture(scope="module")
def every_kind():
    """A scorer of each kind, of three features; some keep their rows as differences from an offset."""
    X = random_matrix(60, 3)
    booster = lgb.train({"verbose": -1, "min_data_in_leaf": 2, "num_threads": 1}, lgb.Dataset(X, X.sum(axis=1)), 3)
    linear, trees = er.models.Linear(np.array([1.0, -2.0, 0.5])), er.models.TreeEnsemble.of_lightgbm(booster.model_to_string())
    ones, offset = np.ones(3), np.array([0.0, 1.7e9, 0.1])
    network = er.models.Network(np.ones((2, 3)), np.zeros(2), np.ones(2), np.zeros(3), ones)
    steps = Thresholds((np.array([0.5]),) * 3, (np.array([1.0]),) * 3)
    filled_in = er.models.Linear(np.array([0.0, 1.0, 2.0]), missing="mean", fill=ones)
    return [
        linear,
        filled_in,
        network,
        steps,
        trees,
        Sum((linear, trees), np.ones(2)),
        linear.with_offset(offset),
        network.with_offset(offset),
    ]


CELLS = st.one_of(st.floats(-5, 5), st.sampled_from([np.nan, np.inf, -np.inf, 1e39, 2.0**24 + 1, 1.7e9 + 0.5, 1e-46, -0.0]))


@given(
    st.integers(0, 7),
    hnp.arrays(float, (4, 3), elements=CELLS),
    st.sampled_from([np.float64, np.float32, np.float16, np.int32, bool]),
    st.sampled_from("CF"),
)
@settings(max_examples=100)
def test_an_array_is_scored_as_the_same_rows_in_lists(every_kind, number, X, kind, order):
    """Arrays take a shorter way; scores agree to the bit, and so do errors."""

    def told(rows):
        with warnings.catch_warnings(action="ignore"):
            try:
                return er.Model(every_kind[number]).predict(rows).tolist()
            except er.errors.DataError as error:
                return str(error)

    with np.errstate(all="ignore"):
        rows = np.asarray(X.astype(kind), order=order)
    assert told(rows) == told(rows.tolist())


def test_an_array_that_float32_cannot_hold_is_warned_of():
    with pytest.warns(er.errors.PrecisionWarning, match="'x0' loses 1 of 2"):
        model_of([1.0]).predict(np.array([[2.0**24], [2.0**24 + 1]]))


def test_frames_are_matched_by_name():
    X, model = random_matrix(8, 3), model_of([1.0, 2.0, 3.0], ("a", "b", "c"))
    theirs = model.predict(X)
    for frame in (pd.DataFrame(X, columns=list("abc")), pl.DataFrame(X, schema=list("abc"))):
        assert np.array_equal(model.predict(frame[["c", "a", "b"]]), theirs)
    assert np.array_equal(model.predict(scipy.sparse.csr_matrix(X)), theirs)


def test_other_features_are_refused_by_name():
    model = model_of([1.0] * 12, tuple(f"f{j:02}" for j in range(12)))
    data = er.RankingData.from_arrays(random_matrix(4, 3), np.zeros(4), group=[4], feature_names=["f00", "g", "h"])
    message = "it lacks f01, f02, f03, f04, f05, f06, f07, f08, ... (11 in all); it has besides g, h; give the 12 features of the model"
    with pytest.raises(er.errors.IncompatibleError, match=re.escape(message)):
        model.predict(data)


def test_as_many_columns_as_weights():
    for model in (model_of([1.0, 2.0], ("a", "b")), model_of([1.0, 2.0])):
        with pytest.raises(er.errors.IncompatibleError, match="3 features but the model has 2"):
            model.predict(random_matrix(4, 3))
    with pytest.raises(er.errors.IncompatibleError, match="3 features but the model has 2"):
        model_of([1.0, 2.0]).predict(pd.DataFrame(random_matrix(4, 3), columns=list("abc")))
    assert len(model_of([1.0, 2.0, 3.0]).predict(pd.DataFrame(random_matrix(4, 3), columns=list("abc")))) == 4


def test_every_kind_is_there():
    for kind, scorer in KINDS.items():
        assert scorer.kind == kind


def test_the_checksum_sees_features_grades_and_queries(monkeypatch, tmp_path):
    X = random_matrix(20, 3)
    y = np.arange(20.0)
    ours = checksum(er.RankingData.from_arrays(X, y, group=[12, 8]))
    other = X.copy()
    other[19, 2] += 1
    for changed_data in ((other, y, [12, 8]), (X, y + 1, [12, 8]), (X, y, [8, 12])):
        assert checksum(er.RankingData.from_arrays(*changed_data[:2], group=changed_data[2])) != ours
    monkeypatch.setattr(ranking_data, "BLOCK_BYTES", 50)
    data = er.RankingData.from_arrays(X, y, group=[12, 8])
    assert checksum(data) == ours
    er.write(data, tmp_path / "a.xr")
    assert checksum(er.read(tmp_path / "a.xr")) == ours


# ---- files that other hands wrote


def _records():
    """A model file of each kind, as it is written."""
    X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]], np.float32)
    data = er.RankingData.from_arrays(X, [0, 1, 1, 2], group=[4], feature_names=["a", "b"])
    trees = er.MART(trees=2, leaves=2, min_documents=1).fit(data).model_.scorer
    steps = er.models.Thresholds((np.array([0.5]), np.array([])), (np.array([1.0]), np.array([])), ("a", "b"))
    net = er.models.Network(np.ones((1, 2)), np.zeros(1), np.ones(1), np.zeros(2), np.ones(2), ("a", "b"), "mean", np.zeros(2))
    kernel = er.models.KernelExpansion(np.eye(2), np.ones(2), np.zeros(2), np.ones(2), "rbf", 0.5, ("a", "b"), "mean", np.zeros(2))
    both = er.models.Sum((steps, net), np.array([0.5, 2.0]))
    layer = {"linear.weight": np.ones((1, 2)), "linear.bias": np.zeros(1), "norm.weight": np.ones(1), "norm.bias": np.zeros(1)}
    tensors = {f"layers.0.{name}": own for name, own in layer.items()}
    tensors |= {"mean": np.zeros(2), "scale": np.ones(2), "output.weight": np.ones((1, 1))}
    deep = er.models.Deep((Net({name: own.astype(np.float32) for name, own in tensors.items()}),), ("a", "b"), "mean", np.zeros(2))
    scorers = (er.models.Linear(np.ones(2), ("a", "b"), "mean", np.zeros(2)), net, steps, trees, both, deep, kernel)
    assert {scorer.kind for scorer in scorers} == set(KINDS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        for scorer in scorers:
            er.Model(scorer, training={"value": 1.0, "chosen": {"l2": 0.5}}).save(path, force=True)
            yield json.loads(path.read_text())


def _places(value, before=()):
    """The way to each value of a record."""
    yield before
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        yield from _places(item, (*before, key))


def _replaced(record, way, value):
    if not way:
        return value
    changed = dict(record) if isinstance(record, dict) else list(record)
    changed[way[0]] = _replaced(record[way[0]], way[1:], value)
    return changed


RECORDS = list(_records())
CHANGES = [(number, way) for number, record in enumerate(RECORDS) for way in _places(record)]
any_json = st.recursive(
    st.sampled_from([None, True, 0, -1, 1e308, 10**400, "", "linear", "zero", "\ud800", "1", 2**63]) | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "kind", "é"]), inner, max_size=3),
    max_leaves=4,
)


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(CHANGES), any_json)
def test_a_file_with_any_value_changed_is_a_model_or_refused(tmp_path, change, value):
    number, way = change
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(_replaced(RECORDS[number], way, value)))
    rows = np.array([[0.0, 1.0], [np.nan, 0.5]], np.float32)
    with suppress(er.errors.ExactRankError):
        scorer = er.load(path).scorer
        scores = scorer.score(rows[:, : scorer.n_features] if scorer.n_features < 3 else np.ones((1, scorer.n_features), np.float32))
        assert np.all(np.isfinite(scores))


@pytest.mark.parametrize("value", [[], {}, None, 1, True, "linear "])
def test_a_kind_that_is_no_kind(tmp_path, value):
    (tmp_path / "m.json").write_text(json.dumps(_replaced(RECORDS[0], ("scorer", "kind"), value)))
    with pytest.raises(er.errors.DataError, match="the scorer's kind is"):
        er.load(tmp_path / "m.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "nested too deeply"),
        ("[" + "9" * 1_000_000 + "]", "1,000,000 digits"),
        ("{" + ", ".join(f'"f{i}": 1' for i in range(60_000)) + ', "f0": 1}', "'f0' appears twice"),
        ('{"weights": [' + ", ".join(["1"] * 1000) + ', "' + "x" * 100_000 + '"]}', "has the value 'xxx"),
    ],
)
def test_large_files_are_refused_at_once_and_in_few_words(tmp_path, text, message):
    (tmp_path / "m.json").write_text(text)
    start = time.process_time()  # which no other process takes
    with pytest.raises(er.errors.DataError, match=message) as refused:
        er.load(tmp_path / "m.json")
    assert len(str(refused.value)) < 400
    assert time.process_time() - start < 5


def test_devices_folders_and_pipes_are_no_models(tmp_path, monkeypatch):
    monkeypatch.setattr(pipes, "PATIENCE", 0.1)
    os.mkfifo(tmp_path / "pipe")
    for path, message in (("/dev/zero", "a device"), (tmp_path, "a folder"), (tmp_path / "pipe", "nothing writes")):
        with pytest.raises(er.errors.DataError, match=message):
            er.load(path)
    monkeypatch.setattr("exactrank.loading.MOST", 1 << 20)
    (tmp_path / "bomb.json").write_bytes(gzip.compress(b" " * (5 << 20)))
    with pytest.raises(er.errors.DataError, match="longer than 1 MiB"):
        er.load(tmp_path / "bomb.json")
