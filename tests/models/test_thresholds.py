"""The threshold scorer: sums of steps, merged in any order, to the bit through a file."""

import json

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

import exactrank as er
from exactrank.learning.optimizers.boosting import confidence

VALUES = st.one_of(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), st.floats(-100, 100, width=32))
STEPS = st.lists(st.tuples(st.integers(0, 3), VALUES, st.floats(-0.9, 0.9)), max_size=40)
ROWS = hnp.arrays(np.float32, (9, 4), elements=VALUES)


def one_by_one(X, steps):
    """The sum of the steps in the order given."""
    return [sum((jump for j, threshold, jump in steps if float(row[j]) > threshold), 0.0) for row in X]


@given(ROWS, STEPS)
def test_scores_are_sums_of_steps(X, steps):
    scorer = er.models.Thresholds.from_steps(steps, n_features=4)
    assert scorer.score(X) == pytest.approx(one_by_one(X, steps), abs=1e-12)
    for j in range(4):
        own = [threshold for k, threshold, _ in steps if k == j]
        assert scorer.thresholds[j].tolist() == sorted(set(own))


@given(ROWS, STEPS, st.randoms(use_true_random=False))
def test_merging_changes_no_score(X, edges, random):
    """To the bit, and in any order: the jumps of boosting lie on a grid on which sums are exact."""
    steps = [(j, threshold, confidence(edge)) for j, threshold, edge in edges]
    ours = er.models.Thresholds.from_steps(steps, n_features=4).score(X)
    random.shuffle(steps)
    assert ours.tolist() == one_by_one(X, steps) == er.models.Thresholds.from_steps(steps, n_features=4).score(X).tolist()


def test_thresholds_are_compared_as_doubles():
    X = np.array([[1.0], [np.nextafter(np.float32(1), np.float32(2))]], np.float32)
    between = float(X.astype(np.float64).mean())
    assert np.float32(between) in X
    assert er.models.Thresholds(([between],), ([1.0],)).score(X).tolist() == [0.0, 1.0]


def test_scores_do_not_depend_on_threads_or_neighbors():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 5)).astype(np.float32)
    scorer = er.models.Thresholds.from_steps(np.c_[rng.integers(0, 5, 300), rng.standard_normal(300), rng.standard_normal(300)], 5)
    first = scorer.score(X, threads=1)
    assert np.array_equal(first, scorer.score(X, threads=3))
    assert np.array_equal(first[5000:5100], scorer.score(X[5000:5100]))


@given(STEPS, st.booleans(), st.sampled_from(["error", "zero", "mean"]))
def test_a_file_keeps_every_bit(tmp_path_factory, steps, named, policy):
    path = tmp_path_factory.mktemp("models") / "model.json"
    merged = er.models.Thresholds.from_steps(steps, 4, ("a", "b", "c", "d") if named else ())
    scorer = er.models.Thresholds(
        merged.thresholds, merged.jumps, merged.feature_names, policy, np.arange(4.0) / 3 if policy == "mean" else None
    )
    er.Model(scorer).save(path)
    read = er.load(path).scorer
    assert (read.kind, read.feature_names, read.missing) == ("thresholds", scorer.feature_names, policy)
    for ours, theirs in zip((*read.thresholds, *read.jumps), (*scorer.thresholds, *scorer.jumps), strict=True):
        assert ours.tobytes() == theirs.tobytes()
    assert (read.fill is None) == (policy == "error")
    assert read.fill is None or read.fill.tobytes() == scorer.fill.tobytes()


def test_a_file_is_readable(tmp_path):
    er.Model(er.models.Thresholds(([0.5, 2.0], []), ([1.0, -0.25], []), ("bm25", "length"))).save(tmp_path / "m.json")
    steps = {"bm25": [[0.5, 1.0], [2.0, -0.25]], "length": []}
    assert json.loads((tmp_path / "m.json").read_text())["scorer"] == {"kind": "thresholds", "missing": "error", "steps": steps}


def test_missing_values_by_policy():
    X = np.array([[np.nan, 1.0], [3.0, 1.0]], np.float32)
    steps = ([0.5], []), ([1.0], []), ("a", "b")
    with pytest.raises(er.errors.DataError, match=r"1 values are missing \(a: 1\)"):
        er.models.Thresholds(*steps).score(X)
    with pytest.raises(er.errors.DataError, match=r"1 values are missing \(b: 1\)"):
        er.models.Thresholds(*steps).score(X[:, ::-1].copy())
    assert er.models.Thresholds(*steps, "zero").score(X).tolist() == [0.0, 1.0]
    assert er.models.Thresholds(*steps, "mean", [0.7, 0.0]).score(X).tolist() == [1.0, 1.0]


def test_a_scorer_cannot_be_changed():
    given_jumps = np.ones(1)
    scorer = er.models.Thresholds(([0.5],), (given_jumps,))
    given_jumps[0] = 7.0
    assert scorer.jumps[0].tolist() == [1.0]
    with pytest.raises(ValueError, match="read-only"):
        scorer.jumps[0][0] = 7.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((), ()), "0 lists of thresholds and 0 of jumps"),
        ((([1.0],), ()), "1 lists of thresholds and 0 of jumps"),
        ((([1.0, 2.0],), ([1.0],)), "feature 0 has 2 thresholds for 1 jumps"),
        ((([1.0], [2.0, 2.0]), ([1.0], [1.0, 1.0])), r"feature 1 are \[2.0, 2.0\]; sort them"),
        ((([1.0],), ([np.nan],)), r"jumps\[0\]\[0\] is nan"),
        ((([np.inf],), ([1.0],)), r"thresholds\[0\]\[0\] is inf"),
        ((([1.0],), ([1.0],), ("a", "b")), "for 2 features"),
        ((([1.0],), ([1.0],), ("a",), "mean"), "needs fill"),
    ],
)
def test_bad_scorers_are_refused(arguments, message):
    with pytest.raises(er.errors.DataError, match=message):
        er.models.Thresholds(*arguments)


def test_other_columns_are_refused():
    with pytest.raises(er.errors.IncompatibleError, match="one column per weight"):
        er.models.Thresholds(([1.0],), ([1.0],)).score(np.zeros((2, 3), np.float32))


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (None, "expected steps by feature name"),
        ({}, "expected steps by feature name"),
        ({"a": 3}, "steps of 'a': expected pairs"),
        ({"a": [[1.0]]}, "steps of 'a': expected pairs"),
        ({"a": "12"}, "steps of 'a': expected pairs"),
        ({"a": [[1.0, "2"]]}, "expected a finite number"),
        ([[[1.0, True]]], "expected a finite number"),
        ([[[2.0, 1.0], [1.0, 1.0]]], "sort them"),
    ],
)
def test_bad_records_are_refused_with_their_place(steps, message):
    with pytest.raises(er.errors.DataError, match=rf"m\.json: .*{message}"):
        er.models.Thresholds.from_record({"kind": "thresholds", "steps": steps}, "m.json")
