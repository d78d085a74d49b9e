"""RankBoost: its rounds are those of a brute force over all pairs and thresholds, and its bounds hold."""

import math
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

import exactrank as er
from exactrank import _core
from exactrank.learning.objectives.pair_exponential import PairExponential
from exactrank.learning.optimizers.boosting import RankBoostOptimizer, confidence
from exactrank.models.thresholds import StepScores
from tests.reference import rankboost as reference

LIMIT = st.sampled_from([None, 1, 2, 5, 30])


def judged(seed, queries=4, documents=6, features=3, weighted=False):
    """Of few values and of many; queries of up to four grades, some of a single one."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, documents + 1, queries)
    sizes[0] = documents
    X = rng.standard_normal((sizes.sum(), features)).astype(np.float32)
    X[:, 0] = np.round(X[:, 0])
    y = np.digitize(X.sum(axis=1) + rng.standard_normal(len(X)), [0.0, 1.0, 2.0]).astype(float)
    y[:2] = 0.5, 3.0  # something to learn
    weight = rng.integers(0, 3, queries) + np.eye(1, queries)[0] if weighted else None
    return er.RankingData.from_arrays(X, y, group=sizes, query_weight=weight)


def weights_of(data):
    return np.ones(data.n_queries) if data.query_weight is None else data.query_weight


def run(problem, rounds=8):
    """The states after each round."""
    optimizer, nothing = RankBoostOptimizer(), np.empty(0)
    states = [optimizer.init(problem, nothing, np.random.default_rng(0))]
    while not states[-1].is_done and len(states) < rounds:
        states.append(optimizer.step(problem, states[-1]))
    return states


def best_at(problem, scores):
    """The best step at scores that are sums of no steps."""
    with patch.object(StepScores, "at", lambda self, steps: scores):
        return problem.best(np.empty(0))


def rounds_of(state):
    """(feature, threshold, alpha) of each round."""
    return state.theta.reshape(-1, 3).tolist()


@given(st.lists(st.one_of(st.integers(-2, 2).map(float), st.floats(-10, 10, width=32)), min_size=1, max_size=60), st.integers(0, 12))
def test_thresholds_part_the_documents_evenly(values, limit):
    X = np.array(values, np.float32)[:, None]
    (ours,) = _core.column_thresholds(X, limit, 1)
    assert ours.tolist() == reference.thresholds(values, limit)
    assert limit == 0 or len(ours) <= limit


@settings(max_examples=50)
@given(st.integers(0, 10_000), LIMIT, st.booleans())
def test_each_round_is_that_of_a_brute_force_over_pairs(seed, limit, weighted):
    data = judged(seed, weighted=weighted)
    pairs = reference.pairs(data, weights_of(data))
    places = [(j, t) for j in range(3) for t in reference.thresholds(data.X[:, j], limit or 0)]
    scores = np.zeros(data.n_documents)
    for state in run(PairExponential(data, limit)):
        if not state.steps:
            assert all(abs(reference.edge(pairs, scores, data.X[:, j], t)) < 1e-9 for j, t in places)
            return
        j, threshold, alpha = rounds_of(state)[-1]
        edges = {place: reference.edge(pairs, scores, data.X[:, place[0]], place[1]) for place in places}
        ours = edges[int(j), threshold]
        assert abs(ours) >= max(map(abs, edges.values())) - 1e-12
        assert alpha == pytest.approx(math.atanh(np.clip(ours, -1 + 1e-12, 1 - 1e-12)), rel=1e-6, abs=1e-11)
        scores = scores + alpha * (data.X[:, int(j)].astype(float) > threshold)
        assert np.array_equal(StepScores(data.X).at(state.theta), scores)
        assert -state.value == pytest.approx(reference.loss(pairs, scores), rel=1e-9)


@given(st.integers(0, 10_000), LIMIT, st.booleans())
def test_bounds(seed, limit, weighted):
    """Theorem 1 of the paper: what each round leaves of the loss; and a pair in the wrong order costs at least 1."""
    data = judged(seed, weighted=weighted)
    problem, pairs, bound = PairExponential(data, limit), reference.pairs(data, weights_of(data)), 1.0
    edge = problem.best(np.empty(0)).edge
    for state in run(problem, rounds=15):
        bound *= math.sqrt(1 - min(abs(edge), 1 - 1e-12) ** 2)
        assert -state.value <= bound * (1 + 1e-9)
        scores = StepScores(data.X).at(state.theta)
        wrong = sum(w for i, j, w in pairs if scores[i] >= scores[j]) / sum(w for *_, w in pairs)
        assert wrong <= -state.value * (1 + 1e-9)
        edge = state.next_step.edge


@given(st.integers(0, 10_000), LIMIT)
def test_scores_have_the_same_bits_however_they_are_added_up(seed, limit):
    data = judged(seed)
    problem = PairExponential(data, limit)
    one_after_the_other = StepScores(data.X)
    for state in run(problem, rounds=12):
        scorer = er.models.Thresholds.from_steps(state.theta, 3)
        ours = scorer.score(data.X).tobytes()
        assert ours == one_after_the_other.at(state.theta).tobytes() == StepScores(data.X).at(state.theta).tobytes()


def test_scores_of_other_models_are_not_mixed_up():
    data = judged(5)
    ours = StepScores(data.X)
    rng = np.random.default_rng(0)
    for _ in range(30):
        theta = np.c_[rng.integers(0, 3, 2), rng.choice([-0.5, 0.5], 2), rng.choice([-1.0, 1.0], 2)].ravel()[: rng.choice([3, 6])]
        assert np.array_equal(ours.at(theta), er.models.Thresholds.from_steps(theta, 3).score(data.X))


@given(st.integers(0, 10_000), st.integers(1, 6))
def test_a_run_can_be_taken_up_again(seed, after):
    problem = PairExponential(judged(seed), 5)
    states = run(problem, rounds=8)
    if len(states) > after:
        again = RankBoostOptimizer().init(problem, states[after - 1].theta, np.random.default_rng(0))
        assert again.theta.tobytes() == states[after].theta.tobytes()
        assert again.value == states[after].value


@pytest.mark.parametrize(("limit", "documents", "features"), [(200, 2_000, 20), (0, 3_000, 60), (0, 70_000, 2)], ids=["8", "16", "32"])
def test_bins_of_every_width(limit, documents, features):
    """Against sums over the documents in order of a feature, and the same on any number of threads."""
    rng = np.random.default_rng(documents)
    X = rng.permutation(features * documents).reshape(documents, features).astype(np.float32)
    y, scores = rng.integers(0, 3, documents).astype(float), rng.standard_normal(documents)
    data = er.RankingData.from_arrays(X, y, group=[10] * (documents // 10))
    problems = [PairExponential(data, limit, threads) for threads in (1, 3)]
    results = [best_at(problem, scores) for problem in problems]
    assert results[0] == results[1]
    ours = results[0]
    grades, by_query = y.reshape(-1, 10), scores.reshape(-1, 10)
    weight = np.where(grades[:, :, None] < grades[:, None], np.exp(by_query[:, :, None] - by_query[:, None]), 0.0)
    force = (weight.sum(1) - weight.sum(2)).ravel() / weight.sum()
    beyond = X[:, ours.feature] > ours.threshold
    assert ours.edge == pytest.approx(force[beyond].sum(), abs=1e-12)
    for column in X.T:
        order, thresholds = np.argsort(column), reference.thresholds(column, limit)
        sums = np.append(np.cumsum(force[order][::-1])[::-1], 0.0)
        assert np.abs(sums[np.searchsorted(column[order], thresholds)]).max() <= abs(ours.edge) + 1e-12


def test_neighboring_values_can_be_told_apart():
    """Halfway between them is no float: it would be rounded down here, and there up."""
    first, second, third = 1 + np.float32(2**-23) * np.arange(3, dtype=np.float32)
    for pair in ([[first], [second]], [[second], [third]]):
        ranker = er.RankBoost("RR").fit(pair, [0, 1], group=[2], valid=(pair, [0, 1], [0, 0]))
        assert ranker.model_.training["value"] == ranker.model_.training["valid"] == ranker.score(pair, [0, 1], group=[2]) == 1.0


def test_without_validation_all_rounds_are_kept_and_with_it_the_best():
    measure, (train, valid) = "nDCG(ties='pessimistic')@3", (judged(seed, queries=40) for seed in (0, 1))
    alone, chosen = er.RankBoost(measure, max_iter=40).fit(train), er.RankBoost(measure, max_iter=40).fit(train, valid=valid)
    assert sum(map(len, alone.model_.scorer.jumps)) == len({tuple(r[:2]) for r in rounds_of(run(PairExponential(train, 30), 40)[-1])})
    assert chosen.model_.training["valid"] == max(progress.valid for progress in chosen.history_)
    assert chosen.model_.training["steps"] == 40
    hasty = er.RankBoost(measure, max_iter=40, patience=2).fit(train, valid=valid)
    assert hasty.model_.training["steps"] < 40
    assert hasty.model_.training["valid"] <= chosen.model_.training["valid"]


def test_contradictions_leave_nothing_to_gain():
    """Two queries say the opposite: no step is better than chance, and the model ranks nothing."""
    ranker = er.RankBoost("nDCG@1").fit([[1.0], [0.0], [1.0], [0.0]], [1, 0, 0, 1], group=[2, 2])
    assert ranker.predict([[0.0], [1.0]]).tolist() == [0.0, 0.0]
    assert ranker.model_.training["steps"] == 0


def test_pairs_need_a_weight():
    with pytest.raises(er.errors.DataError, match="no query with documents of different grades has a weight above 0"):
        er.RankBoost("nDCG").fit([[1.0], [0.0], [1.0], [0.0]], [1, 0, 1, 1], group=[2, 2], query_weight=[0.0, 1.0])


def test_scores_far_apart_do_not_overflow_until_a_pair_weighs_more_than_a_double_holds():
    data = er.RankingData.from_arrays([[1.0], [0.0]], [0, 1], group=[2])
    problem = PairExponential(data)
    assert best_at(problem, np.array([300.0, -400.0])).loss == pytest.approx(math.exp(700), rel=1e-12)
    assert best_at(problem, np.array([1e6, 1e6 + 700])).loss == pytest.approx(math.exp(-700), rel=1e-12)
    assert best_at(problem, np.array([2000.0, 0.0])).loss == math.inf


@dataclass(frozen=True)
class Step:
    loss: float
    edge: float
    place: tuple[float, ...] = (0.0, 0.0)


class Scripted:
    """A problem that says what it is told to."""

    def __init__(self, *steps):
        self.steps = list(steps)

    def scores(self, theta):
        return np.zeros(1)

    def best(self, scores):
        return self.steps.pop(0)

    def moved(self, scores, step, alpha):
        return scores + alpha


@pytest.mark.parametrize(
    ("steps", "made", "trouble"),
    [
        ([Step(1.0, 0.0)], 0, ""),
        ([Step(1.0, 0.5), Step(0.8, 1e-14)], 1, ""),
        ([Step(1.0, -1.0), Step(1e-7, 1.0)], 1, ""),
        ([Step(1.0, 0.5), Step(0.0, math.nan)], 1, ""),
        ([Step(1.0, 0.5), Step(0.8, 0.5), Step(math.inf, math.nan)], 1, "after 1 rounds the weights of pairs overflow"),
    ],
)
def test_when_it_is_done(steps, made, trouble):
    end = run(Scripted(*steps))[-1]
    assert end.is_done
    assert (end.steps, len(end.theta)) == (made, 3 * made)
    assert end.trouble.startswith(trouble)
    assert bool(end.trouble) == bool(trouble)


@given(st.floats(-1, 1))
@example(-1.0)
@example(1.0)
def test_alphas_lie_on_a_grid(edge):
    alpha = confidence(edge)
    assert (alpha * 2**40).is_integer()
    assert alpha == pytest.approx(math.atanh(np.clip(edge, -1 + 1e-12, 1 - 1e-12)), abs=2**-40)


@pytest.mark.parametrize("bad", [{"max_iter": 0}, {"patience": 0}, {"thresholds": -1}, {"thresholds": 65_536}])
def test_bad_settings_are_refused(bad):
    with pytest.raises(er.errors.SettingError, match=rf"{next(iter(bad))}={next(iter(bad.values()))} is out of range"):
        er.RankBoost(**bad).fit(judged(0))
