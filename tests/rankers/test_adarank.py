"""AdaRank: its rounds are those of the paper, its theorem holds, and single features do not run away with it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as er
from exactrank.learning.objectives.measured import Measured, QueryPerformance
from exactrank.learning.optimizers.boosting import AdaRankOptimizer
from exactrank.learning.training.selection import WINDOW
from exactrank.models.architecture import LinearModel
from exactrank.rankers.training_data import in_content_order
from tests.reference import adarank as reference

SHARES = st.sampled_from(
    ["nDCG(ties='pessimistic')@3", "nDCG(empty='skip', ties='expected')@2", "AP(ties='pessimistic')", "ERR(empty=1)@4", "P@2"]
)
REST = st.one_of(st.none(), st.integers(0, 5))


def judged(seed, queries=6, documents=5, features=4, weighted=False, noise=1.0):
    """Two features of few values, so that documents tie, and others of many."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((queries * documents, features)).astype(np.float32)
    X[:, :2] = np.round(X[:, :2])
    y = np.digitize(X @ np.linspace(-1, 1, features) + noise * rng.standard_normal(len(X)), [0.5, 1.5])
    y[0] = 2  # something to learn
    weight = rng.integers(0, 3, queries) + np.eye(1, queries)[0] if weighted else None
    return er.RankingData.from_arrays(X, y, group=[documents] * queries, query_weight=weight)


def performance(measure, data, turned):
    plain = LinearModel(standardize=False).on(data)
    return QueryPerformance(Measured(er.parse_measure(measure).over(data), plain), turned)


def run(problem, rest, rounds=7):
    """The states after each round."""
    optimizer = AdaRankOptimizer(rest)
    states = [optimizer.init(problem, np.zeros(problem.measured.measure.data.n_features), np.random.default_rng(0))]
    while not states[-1].is_done and len(states) < rounds:
        states.append(optimizer.step(problem, states[-1]))
    return states


@settings(max_examples=40)
@given(st.integers(0, 10_000), SHARES, REST, st.booleans(), st.booleans())
def test_each_round_is_that_of_the_paper(seed, measure, rest, turned, weighted):
    data = judged(seed, weighted=weighted)
    parsed, weight = er.parse_measure(measure), np.ones(6) if data.query_weight is None else data.query_weight
    counted = reference.performances(parsed, data, np.zeros(data.n_documents))
    share, theta, taken = reference.shares(weight, [e * 0 for e in counted]), np.zeros(4), []
    for state in run(performance(measure, data, turned), rest):
        phi = reference.candidates(parsed, data, share, turned)
        resting = [] if rest == 0 else taken[-min(rest or 3, 3) :]
        k = state.coordinates[-1]
        step = state.theta - theta
        sign = -1 if step[k] < 0 else 1
        assert k not in resting
        assert phi[sign, k] >= max(value for (_, j), value in phi.items() if j not in resting) - 1e-12
        assert step == pytest.approx(sign * math.atanh(min(phi[sign, k], 1 - 1e-12)) * np.eye(4)[k], rel=1e-6, abs=1e-12)
        taken, theta = [*taken, k], state.theta
        performed = reference.performances(parsed, data, reference.scores_of(data, theta))
        share = reference.shares(weight, performed)
        assert state.share == pytest.approx(share, abs=1e-12)
        assert state.value == pytest.approx(reference.mean(reference.shares(weight, [e * 0 for e in performed]), performed), abs=1e-12)


@given(st.integers(0, 10_000), SHARES, REST, st.booleans())
def test_the_mean_never_falls_below_the_theorem(seed, measure, rest, weighted):
    """Theorem 1 of the paper, (4)."""
    problem = performance(measure, judged(seed, weighted=weighted), turned=True)
    share, before, product = problem.weight, np.zeros(6), 1.0
    counted = share > 0
    for n, state in enumerate(run(problem, rest, rounds=12)):
        k = state.coordinates[-1]
        phi = problem.by_coordinate[:, k] @ share
        turned = int(np.argmax(phi))
        alone, alpha = problem.by_coordinate[turned, k], math.atanh(min(phi[turned], 1 - 1e-12))
        performed = problem.performance(state.theta)[1]
        shortfall = (performed - before - alpha * alone)[counted].min()
        product *= math.exp(-shortfall) * math.sqrt(1 - min(phi[turned], 1 - 1e-12) ** 2)
        assert problem.weight @ performed >= 1 - product - 1e-9, f"after {n + 1} rounds"
        share, before = state.share, performed


@given(st.integers(0, 10_000), REST)
def test_a_feature_rests(seed, rest):
    taken = run(performance("nDCG@3", judged(seed), turned=True), rest, rounds=12)[-1].coordinates
    apart = 4 if rest is None else min(rest, 3) + 1
    for last in range(len(taken)):
        window = taken[max(0, last + 1 - apart) : last + 1]
        assert len(set(window)) == len(window)


@given(st.integers(0, 10_000))
def test_as_published_it_ends_where_it_would_take_the_first_feature_for_ever(seed):
    states = run(performance("nDCG@3", judged(seed), turned=False), rest=0, rounds=30)
    if states[-1].is_done and len(states) > 1:
        assert np.count_nonzero(states[-1].theta) == 1
        again = AdaRankOptimizer(0).step(performance("nDCG@3", judged(seed), turned=False), states[-1])
        assert again.coordinates[-1] == states[-1].coordinates[-1]
        assert (again.value, again.share.tolist()) == (states[-1].value, states[-1].share.tolist())


def test_as_published_it_often_ends_there():
    ended = [run(performance("nDCG@3", judged(seed), turned=False), rest=0, rounds=30)[-1].is_done for seed in range(20)]
    assert sum(ended) >= 10


def test_a_perfect_feature_is_enough():
    data = er.RankingData.from_arrays([[0.5, 1.0], [0.1, 2.0], [0.3, 0.0]], [1, 2, 0], group=[3])
    ranker = er.AdaRank("nDCG").fit(data)
    assert ranker.weights_[0] == 0 < ranker.weights_[1]
    assert ranker.model_.training == {"value": 1.0, "valid": None, "steps": 1, "interrupted": False}
    turned = er.AdaRank("nDCG").fit([[0.5, -1.0], [0.1, -2.0], [0.3, 0.0]], [1, 2, 0], group=[3])
    assert turned.weights_[0] == 0 > turned.weights_[1]


@given(st.integers(0, 10_000), st.lists(st.integers(-20, 20), min_size=4, max_size=4))
def test_units_do_not_matter(seed, powers):
    """To the bit, where they are powers of two."""
    data = judged(seed, queries=8)
    units = (2.0 ** np.array(powers)).astype(np.float32)
    ours, theirs = (er.AdaRank("nDCG@3", max_iter=10).fit(X, data.y, group=[5] * 8).predict(X) for X in (data.X * units, data.X))
    assert np.array_equal(ours, theirs)


def test_without_standardizing_units_do_matter():
    data, units = judged(3, queries=30), np.array([1, 100, 1, 1], np.float32)
    plain, other = (er.AdaRank("nDCG@3", max_iter=10, standardize=False).fit(X, data.y, group=[5] * 30) for X in (data.X, data.X * units))
    assert not np.allclose(plain.predict(data.X), other.predict(data.X * units))
    best = max(run(performance("nDCG(ties='pessimistic')@3", data, True), None, 10), key=lambda state: state.value)
    assert np.array_equal(plain.weights_, best.theta)


def test_the_order_of_rows_is_no_merit():
    """The best documents come first: a feature that is the same for all must not profit from that."""
    rng = np.random.default_rng(0)
    y = np.tile([2, 1, 0, 0], 10)
    X = np.c_[np.zeros(40), y + 3 * rng.standard_normal(40)]
    first = er.AdaRank("nDCG", max_iter=1).fit(X, y, group=[4] * 10)
    assert first.weights_[0] == 0 != first.weights_[1]
    assert first.model_.training["value"] < 1


def test_patience_ends_the_run_and_selection_keeps_a_round():
    train, valid = judged(0, queries=40), judged(1, queries=40)
    for held_out in (None, valid):
        ranker = er.AdaRank("nDCG@3", patience=3).fit(train, valid=held_out)
        goodness = [p.value if held_out is None else p.valid for p in ranker.history_]
        assert len(goodness) == int(np.argmax(goodness)) + 4 < 500
        window = 1 if held_out is None else WINDOW
        kept = ranker.history_[int(np.argmax([np.mean(goodness[max(0, n - window + 1) : n + 1]) for n in range(len(goodness))]))]
        assert (ranker.model_.training["value"], ranker.model_.training["valid"]) == (kept.value, kept.valid)


@pytest.mark.parametrize("measure", ["DCG@10", "DCG(gain='linear')"])
def test_measures_above_one_are_refused(measure):
    for grade in (1, 4):  # with grade 1 alone no value is above 1 on this data
        with pytest.raises(er.errors.IncompatibleError, match=r"at most 1, and DCG can exceed that; use .* nDCG"):
            er.AdaRank(measure).fit([[1.0], [0.0]], [0, grade], group=[2])


def test_queries_that_count_need_a_weight():
    with pytest.raises(er.errors.DataError, match=r"no query that .* counts has a weight above 0"):
        er.AdaRank("nDCG(empty='skip')").fit([[1.0], [0.0], [0.0], [1.0]], [0, 1, 0, -1], group=[2, 2], query_weight=[0.0, 1.0])


@pytest.mark.parametrize("bad", [{"max_iter": 0}, {"patience": 0}, {"rest": -1}])
def test_bad_settings_are_refused(bad):
    with pytest.raises(er.errors.SettingError, match=rf"{next(iter(bad))}={next(iter(bad.values()))} is out of range"):
        er.AdaRank(**bad).fit(judged(0))


@pytest.mark.parametrize("ties", ["input", "pessimistic", "expected"])
def test_the_history_has_the_measure_as_asked_of_every_round(ties):
    """Also of those that are worse than one before, and with validation data; what is climbed counts ties severely."""
    data, valid = in_content_order(judged(0, queries=40)), judged(1, queries=20)
    measure = er.parse_measure(f"nDCG(ties='{ties}')@3")
    severe = measure if ties == "expected" else "nDCG(ties='pessimistic')@3"
    states = run(performance(severe, data, turned=True), None, 60)
    values = [[measure.on(part).mean(part.X @ state.theta) for state in states] for part in (data, valid)]
    for held_out in (None, valid):
        history = er.AdaRank(measure, max_iter=60, patience=None, standardize=False).fit(data, valid=held_out).history_
        np.testing.assert_allclose([progress.value for progress in history], values[0], rtol=1e-12)
        assert held_out is None or np.allclose([progress.valid for progress in history], values[1], rtol=1e-12)
    assert np.any(np.diff(values[0]) < 0)
