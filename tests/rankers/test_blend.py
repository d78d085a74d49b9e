"""The blend: exact weights of cross-fitted rankers, what it refuses, and the time that it keeps to."""

import json
import time
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

import exactrank as er
from exactrank._support.numerics import matmul
from exactrank.learning.objectives.step_function import LEAST_WIDTH
from exactrank.rankers import blend as blending
from exactrank.rankers.blend import best_weights
from tests import killed
from tests.rankers.test_rankers import judged
from tests.reference.blend import values_of_weights

QUICK = "ridge, mart(trees=8, min_documents=2)"


def quick(**more):
    return er.Blend("nDCG@5", **({"members": QUICK, "bags": 4, "threads": 1} | more))


# ---- weights ----


def drawn(seed, rows, digits):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 7, 5)
    data = er.RankingData.from_arrays(None, rng.integers(0, 3, sizes.sum()), group=sizes)
    return data, rng.standard_normal((rows, data.n_documents)).round(digits)  # few digits make ties


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), digits=st.sampled_from([0, 1, 8]))
def test_the_weights_of_two_are_the_best_of_all(seed, digits):
    data, scores = drawn(seed, 2, digits)
    bound = er.parse_measure("nDCG(ties='pessimistic')@3").on(data)
    weights = best_weights(bound, scores, np.full(2, 0.5))
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1)
    steps = er.profile(data, scores[0], scores[1] - scores[0], "nDCG(ties='pessimistic')@3", low=0.0, high=1.0)
    assert bound.mean(weights @ scores) >= steps.best(0.0, 1.0).value - 1e-12


@settings(max_examples=60, deadline=None)
@example(seed=1, tenths=True, measure="AP", ties="pessimistic")  # a crossing at the end of the line
@example(seed=10, tenths=False, measure="ERR", ties="pessimistic")
@example(seed=44, tenths=False, measure="AP", ties="pessimistic")
@example(seed=1075, tenths=True, measure="nDCG@3", ties="pessimistic")  # an interval that rounding opened
@example(seed=1737, tenths=True, measure="nDCG@3", ties="pessimistic")
@example(seed=0, tenths=False, measure="nDCG@3", ties="expected")  # a row alone, whose ties are worth more than their orders
@given(
    seed=st.integers(0, 10**6),
    tenths=st.booleans(),
    measure=st.sampled_from(["nDCG@3", "AP", "ERR"]),
    ties=st.sampled_from(["input", "pessimistic", "expected"]),
)
def test_the_weights_of_two_with_many_ties_reach_what_exact_arithmetic_does(seed, tenths, measure, ties):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 7, rng.integers(1, 5))
    data = er.RankingData.from_arrays(None, rng.integers(0, 3, sizes.sum()), group=sizes)
    scores = rng.integers(-3, 4, (2, data.n_documents)) / (10.0 if tenths else 1.0)
    bound = replace(er.parse_measure(measure), ties=ties).on(data)
    ours = bound.mean(matmul(best_weights(bound, scores, np.full(2, 0.5)), scores))
    points, intervals = values_of_weights(bound, scores)
    wide = [value for low, (_, value), high in zip(points, intervals, points[1:], strict=False) if high[0] - low[0] > LEAST_WIDTH]
    theirs = max(*wide, *(bound.mean(row) for row in scores))
    assert ours >= theirs - 1e-12


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), rows=st.integers(2, 5), measure=st.sampled_from(["nDCG@3", "AP", "ERR"]))
def test_no_weights_are_worse_than_equal_ones_or_one_alone(seed, rows, measure):
    data, scores = drawn(seed, rows, 8)
    bound = er.parse_measure(measure).on(data)
    weights = best_weights(bound, scores, np.full(rows, 1 / rows))
    assert weights.min() >= 0
    reached = bound.mean(weights @ scores)
    assert all(reached >= bound.mean(other @ scores) - 1e-12 for other in [np.full(rows, 1 / rows), *np.eye(rows)])


def test_weights_of_three_come_near_a_grid():
    data, scores = drawn(1, 3, 8)
    bound = er.parse_measure("nDCG@3").on(data)
    grid = [np.array([i, j, 20 - i - j]) / 20 for i, j in product(range(21), repeat=2) if i + j <= 20]
    best = max(bound.mean(weights @ scores) for weights in grid)
    assert bound.mean(best_weights(bound, scores, np.full(3, 1 / 3)) @ scores) >= best - 0.02


# ---- the blend ----


def test_the_blend_is_the_weighted_sum_of_its_members(tmp_path):
    """Of unit deviation out of fold each; on scores out of fold it is no worse than linear models or trees alone."""
    data = judged(queries=24, noise=2.0)
    whole = quick().fit(data)
    weights = whole.model_.training["chosen"]["weights"]
    assert set(weights) == {"linear", "trees"}
    scores = np.zeros(data.n_documents)
    for kind, members in (("linear", "ridge"), ("trees", "mart(trees=8, min_documents=2)")):
        alone = quick(members=members).fit(data)
        assert alone.model_.scorer.kind == kind
        scores += weights[kind] * alone.predict(data)
        assert whole.estimate_.mean >= alone.estimate_.mean - 0.15  # its weights are chosen by other parts
    difference = np.unique((whole.predict(data) - scores).round(9))
    assert len(difference) == 1
    whole.save(tmp_path / "m.json")
    assert np.array_equal(er.load(tmp_path / "m.json").predict(data), whole.predict(data))
    record = json.loads((tmp_path / "m.json").read_text())
    assert [part["kind"] for part in record["scorer"]["parts"]] == ["linear", "trees"]


@pytest.mark.parametrize(("members", "kind"), [("linear", "linear"), ("trees", "trees"), ("all", "sum")])
def test_words_stand_for_members(members, kind, monkeypatch):
    few = {
        "linear": ("ridge", "directrank"),
        "trees": ("mart(trees=5, min_documents=1)",),
        "all": ("ridge", "mart(trees=5, min_documents=1)"),
    }
    monkeypatch.setattr(blending, "SETS", few)
    assert quick(members=members, weighting="equal").fit(judged(queries=12, noise=1.0)).model_.scorer.kind == kind


def test_the_default_members_are_rankers_that_train():
    data = judged(queries=9, noise=1.0)
    for members in blending.SETS["all"]:
        quick(members=[members], bags=3, weighting="equal").fit(data)


def test_rankers_are_members_as_they_are_set():
    data = judged(queries=12, noise=1.0)
    one = quick(members=[er.Ridge(l2=0.5), er.RankNet(hidden=2, max_iter=3)]).fit(data)
    two = quick(members="ridge(l2=0.5), ranknet(hidden=2, max_iter=3)").fit(data)
    assert np.array_equal(one.predict(data), two.predict(data))
    assert [part.kind for part in one.model_.scorer.parts] == ["linear", "network"]


def test_equal_weights_ask_nothing():
    ranker = quick(weighting="equal").fit(judged(queries=12, noise=1.0))
    assert ranker.model_.training["chosen"]["weights"] == {"linear": 0.5, "trees": 0.5}


def test_scores_out_of_fold_know_nothing_of_their_query():
    data = judged(queries=12, noise=2.0)
    rows = slice(*data.indptr[3:5])
    grades = data.y.copy()
    grades[rows] = grades[rows][::-1] * 2 + 1
    first, second = (quick(members="ridge").fit(each) for each in (data, replace(data, y=grades)))
    ratio = first.oof_ / second.oof_  # all scores are divided by their deviation, which the others change
    np.testing.assert_allclose(ratio[rows], ratio[rows.start], rtol=1e-9)
    assert not np.allclose(ratio, ratio[rows.start])


@pytest.mark.parametrize("after", [2, 14])
def test_ctrl_c_keeps_the_members_that_are_ready(after):
    """Before the first is ready, its models so far."""
    data, steps = judged(queries=12, noise=1.0), []

    def listener(progress):
        steps.append(progress)
        if len(steps) == after:
            raise KeyboardInterrupt

    with pytest.warns(er.errors.InterruptedWarning):
        ranker = quick().fit(data, progress=listener)
    assert ranker.model_.training["interrupted"]
    assert ranker.model_.scorer.kind == "linear"
    ready = quick(members="ridge").fit(data)
    assert np.allclose(ranker.predict(data), ready.predict(data)) == (after == 14)
    assert not hasattr(ranker, "estimate_") or after == 14


def test_query_weights_count():
    """Queries that contradict each other: the heavier ones decide."""
    X, y = [[1.0], [0.0]] * 12, [1, 0, 0, 1] * 6
    for weight in ([3.0, 1.0], [1.0, 3.0]):
        ranker = quick(members="ridge, directrank").fit(X, y, group=[2] * 12, query_weight=weight * 6)
        assert np.sign(np.diff(ranker.predict([[0.0], [1.0]])))[0] == np.sign(weight[0] - weight[1])
        assert ranker.estimate_.mean > 0.75


def test_what_is_recorded_is_true():
    data, valid = judged(), judged(seed=1)
    ranker = quick().fit(data, valid=valid)
    assert ranker.model_.training["value"] == ranker.score(data)
    assert ranker.model_.training["valid"] is None, "it is learnt from"
    assert ranker.model_.training["steps"] == ranker.history_[-1].step
    low, high = ranker.model_.training["interval"]
    assert low <= ranker.model_.training["estimate"] == ranker.estimate_.mean <= high


# ---- what it refuses ----


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"members": "lambdamrt"}, "lambdamrt"),
        ({"members": "ridge, ridge"}, "ridge is named twice"),
        ({"members": []}, "there are no members"),
        ({"members": [3]}, "3 cannot be blended"),
        ({"members": "blend"}, "'blend' cannot be blended"),
        ({"members": "mart(bags=3)"}, r"mart\(bags=3\) has bags=3, but the blend cross-fits"),
        ({"members": "mart(leaves=1)"}, "leaves=1"),
        ({"members": "ridge(", "bags": 3}, "a bracket is not closed"),
        ({"bags": 2}, "bags=2"),
        ({"seconds": 0}, "seconds=0"),
    ],
)
def test_bad_settings_are_refused_before_any_work(arguments, message):
    with pytest.raises(er.errors.ExactRankError, match=message):
        quick(**arguments).fit(judged(queries=12))


def test_a_member_that_fails_is_told_of_and_the_rest_go_on():
    data = judged(queries=12, noise=1.0)
    with pytest.warns(UserWarning, match=r"^directrank\(start=\[1.0\]\) is left out of the blend: start has 1 weights"):
        ranker = quick(members="directrank(start=[1.0]), ridge").fit(data)
    assert ranker.model_.training["chosen"]["members"] == ["ridge"]
    with pytest.raises(er.errors.SettingError, match="start has 1 weights"):
        quick(members="directrank(start=[1.0])").fit(data)


def test_missing_values_are_kept_by_trees_alone():
    X = judged(queries=12, noise=1.0).X.copy()
    X[::7, 0] = np.nan
    data = er.RankingData.from_arrays(X, judged(queries=12, noise=1.0).y, group=judged(queries=12, noise=1.0).sizes)
    ranker = quick(members="mart(trees=5, min_documents=1)", missing="keep").fit(data)
    assert np.all(np.isfinite(ranker.predict(data)))


def test_fewer_queries_than_parts():
    assert np.isfinite(quick(bags=50).fit(judged(queries=5)).estimate_.mean)


# ---- time ----


class Clock:
    """Seconds that pass only when a step is heard."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        self.now += 1.0
        return self.now


def test_time_is_kept(monkeypatch):
    data = judged(queries=12, noise=1.0)
    monkeypatch.setattr(blending, "time", Clock())
    ranker = quick(seconds=12.0).fit(data)
    assert ranker.model_.training["chosen"]["members"] == ["ridge"]
    assert ranker.model_.scorer.kind == "linear"
    monkeypatch.setattr(blending, "time", Clock())
    with pytest.raises(
        er.errors.SettingError, match=r"seconds=2.0 is too short: ridge takes about [0-9.]+; allow more seconds, or give faster members"
    ):
        quick(seconds=2.0).fit(data)


def test_time_ends_a_member_at_its_next_step(monkeypatch):
    """The time passes while the second member makes its first step; of the 100,000 steps that it would make no other is heard."""
    assert blending.time is time
    late, steps = 0.0, []

    def hear(progress):
        nonlocal late
        if progress.run.startswith("1/"):
            steps.append(progress)
            late = 1e6

    monkeypatch.setattr(blending, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + late))
    members = "ridge, lambdamart(trees=100000, patience=100000)"
    blend = quick(members=members, seconds=1e5).fit(judged(queries=40, noise=1.0), progress=hear)
    assert len(steps) == 1
    assert blend.model_.training["chosen"]["members"] == ["ridge"]


# ---- killed ----


def cases():
    data = judged(queries=12, noise=1.0)
    members = "ridge, ranknet(hidden=2, max_iter=4), mart(trees=6, min_documents=2)"
    return {
        "blend": (quick(members=members, bags=3), data, None),
        "with validation": (quick(members=members, bags=3), data, judged(queries=6, seed=1)),
        "cross-fitted": (er.LambdaRank("nDCG@5", bags=3, max_iter=4, trial_iter=2), data, None),
    }


@pytest.mark.parametrize("seed", range(2))
def test_training_killed_at_a_random_moment_resumes_to_the_bit(seed, tmp_path):
    fitted = killed.unbroken(cases())
    killed.killed(__name__, fitted, tmp_path, seed)
    for name, ranker in fitted.items():
        killed.assert_resumed(ranker, cases()[name], tmp_path / f"{name}.json")
