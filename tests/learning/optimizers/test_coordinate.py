"""Exact coordinate ascent and Powell's method on functions that have nothing to do with ranking."""

import json
import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, strategies as st

from exactrank._support.serialize import from_record, to_record
from exactrank.errors import SettingError
from exactrank.learning.objectives.step_function import Interval
from exactrank.learning.optimizers.coordinate import CoordinateSearch, GuardedProblem, Limits, Powell, rescale
from exactrank.learning.training.judge import judge_by_objective
from exactrank.learning.training.run import Recorder, Run

WHOLE = st.integers(-9, 9).map(float)
PEAKS = st.lists(WHOLE, min_size=2, max_size=4).map(np.array)
#: Limits that are not free of scale, so that theta is not rescaled.
ANYWHERE = Limits(low=-1e6, high=1e6)


@dataclass(frozen=True)
class Quadratic:
    """-(x - peak)' A (x - peak), whose best point on a line is known."""

    peak: np.ndarray
    shape: np.ndarray

    @property
    def dimension(self):
        return len(self.peak)

    def value(self, theta):
        return -float((theta - self.peak) @ self.shape @ (theta - self.peak))

    def at(self, theta):
        return QuadraticSpot(self, theta)


@dataclass(frozen=True)
class QuadraticSpot:
    problem: Quadratic
    theta: np.ndarray

    @property
    def value(self):
        return self.problem.value(self.theta)

    def best(self, direction, low, high):
        d = np.eye(len(self.theta))[direction] if isinstance(direction, int) else direction
        pull = (self.problem.peak - self.theta) @ self.problem.shape @ d
        alpha = min(max(pull / (d @ self.problem.shape @ d), low), high)
        return Interval(alpha, alpha, self.problem.value(self.theta + alpha * d))

    def choose_alpha(self, direction, interval):
        return interval.low

    def move(self, direction, alpha):
        d = np.eye(len(self.theta))[direction] if isinstance(direction, int) else direction
        return QuadraticSpot(self.problem, self.theta + alpha * d)


def separable(peak):
    return Quadratic(peak, np.diag(np.arange(1.0, 1 + len(peak))))


def tilted(peak):
    n = len(peak)
    return Quadratic(peak, np.eye(n) + 0.9 * (np.ones((n, n)) - np.eye(n)))


def run(search, problem, start, steps=60, seed=0):
    return Run(search, problem, start, judge_by_objective, steps, seed)(Recorder())


@given(PEAKS, st.sampled_from(["cyclic", "random"]))
def test_one_round_finds_the_peak_of_a_separable_function(peak, order):
    result = run(CoordinateSearch(order, ANYWHERE), separable(peak), np.zeros(len(peak)), steps=1)
    np.testing.assert_allclose(result.iterate, peak, atol=1e-9)


def test_a_round_may_visit_a_share_of_the_coordinates():
    peak = np.arange(1.0, 11.0)
    result = run(CoordinateSearch("random", ANYWHERE, share=0.35), separable(peak), np.zeros(10), steps=1)
    assert np.count_nonzero(result.iterate) == 4
    with pytest.raises(SettingError, match="share must be above 0"):
        CoordinateSearch(share=0.0)


def test_every_random_round_has_an_order_of_its_own():
    peak = np.arange(1.0, 11.0)
    result = run(CoordinateSearch("random", ANYWHERE, share=0.35), separable(peak), np.zeros(10), steps=12)
    assert np.count_nonzero(result.iterate) > 4


def test_powell_replaces_the_direction_that_gained_the_most_by_where_the_round_led():
    problem, search = separable(np.array([1.0, 5.0, 2.0])), Powell(ANYWHERE)  # gains of 1, 50 and 12
    state = search.step(problem, search.init(problem, np.zeros(3), np.random.default_rng(0)))
    assert state.directions[:2] == (0, 2)
    np.testing.assert_allclose(state.directions[2], [1.0, 5.0, 2.0])


@given(PEAKS)
def test_a_greedy_step_moves_the_coordinate_that_gains_most(peak):
    problem = separable(peak)
    result = run(CoordinateSearch("greedy", ANYWHERE), problem, np.zeros(len(peak)), steps=1)
    gains = np.arange(1.0, 1 + len(peak)) * peak**2
    assert result.verdict.value - problem.value(np.zeros(len(peak))) == pytest.approx(gains.max())
    assert np.count_nonzero(result.iterate) <= 1


@given(PEAKS, st.sampled_from([CoordinateSearch(limits=ANYWHERE), CoordinateSearch("random", ANYWHERE), Powell(ANYWHERE)]))
def test_the_value_never_falls_and_is_that_of_the_parameters(peak, search):
    problem = tilted(peak)
    steps = []
    recorder = Recorder(above=lambda progress, new, verdict, best, *_: steps.append((progress.value, best())))
    Run(search, problem, np.zeros(len(peak)), judge_by_objective, 8)(recorder)
    assert [value for value, _ in steps] == sorted(value for value, _ in steps)
    assert all(value == problem.value(theta) for value, theta in steps)


def test_powell_goes_where_coordinates_zigzag():
    peak = np.array([3.0, -5.0, 4.0])
    ours, theirs = (
        run(search, tilted(peak), np.zeros(3), steps=6)
        for search in (Powell(ANYWHERE, 0.0), CoordinateSearch(limits=ANYWHERE, tolerance=0.0))
    )
    assert ours.verdict.value > theirs.verdict.value
    assert ours.verdict.value > -1e-9


def test_powell_gives_up_the_direction_that_gained_most():
    problem, search = separable(np.array([2.0, 5.0, -1.0])), Powell(ANYWHERE)
    state = search.step(problem, search.init(problem, np.zeros(3), np.random.default_rng(0)))
    *kept, led = state.directions
    assert kept == [0, 2]  # gains are 1 x 4, 2 x 25 and 3 x 1
    np.testing.assert_allclose(led, [2.0, 5.0, -1.0])


@given(PEAKS, st.floats(0.1, 5))
def test_limits_are_kept(peak, high):
    limits = Limits(low=-0.5, high=high)
    result = run(CoordinateSearch(limits=limits), separable(peak), np.zeros(len(peak)))
    np.testing.assert_allclose(result.iterate, np.clip(peak, -0.5, high), atol=1e-9)
    outside = run(CoordinateSearch(limits=limits), separable(peak), np.full(len(peak), 99.0), steps=1)
    assert np.all(outside.iterate <= high)


def test_a_window_bounds_each_step_by_the_largest_weight():
    search = CoordinateSearch(limits=Limits(low=-1e6, high=1e6, window=0.5))
    first = search.step(
        separable(np.array([100.0, 0.0])), search.init(separable(np.array([100.0, 0.0])), np.array([2.0, 1.0]), np.random.default_rng(0))
    )
    assert first.theta[0] == pytest.approx(3.0)


@given(
    st.lists(WHOLE, min_size=1, max_size=3).map(np.array),
    st.lists(st.sampled_from([-1.0, 0.0, 2.0]), min_size=3, max_size=3),
    st.floats(0.1, 9),
)
def test_how_far_limits_let_one_go(theta, step, window):
    limits, direction = Limits(low=-3, high=4, window=window), np.array(step)[: len(theta)]
    theta = np.clip(theta, -3, 4)
    if not np.any(direction):
        return
    low, high = limits.along(direction, theta)
    assert low <= 0 <= high
    for alpha in (low, high):
        there = theta + alpha * direction
        assert np.all(there >= -3 - 1e-9)
        assert np.all(there <= 4 + 1e-9)
        assert np.abs(alpha * direction).max() <= window * np.abs(theta).max() + 1e-9


@pytest.mark.parametrize("search", [CoordinateSearch("random", ANYWHERE, 0.0), Powell(ANYWHERE, 0.0)])
def test_a_state_can_be_taken_up_again_to_the_bit(search):
    problem = tilted(np.array([3.0, -5.0, 4.0, 1.0]))
    state = search.init(problem, np.ones(4), np.random.default_rng(3))
    states = [state]
    for _ in range(4):
        states.append(search.step(problem, states[-1]))
    again = from_record(json.loads(json.dumps(to_record(states[2]))), "here")
    for theirs in states[3:]:
        again = search.step(problem, again)
        assert again.theta.tolist() == theirs.theta.tolist()


def test_rescaling_changes_no_digit():
    theta = np.array([0.1, -3.7, 1e-9])
    assert np.all(rescale(theta) / theta == rescale(theta)[0] / theta[0])
    assert 0.5 <= np.abs(rescale(theta)).max() < 1
    assert rescale(np.zeros(2)).tolist() == [0, 0]


def test_a_guard_forbids_steps_that_harm_it():
    ours, guard = separable(np.array([4.0, 4.0])), separable(np.array([4.0, -4.0]))
    result = run(CoordinateSearch(limits=ANYWHERE), GuardedProblem(ours, guard), np.array([1.0, 1.0]))
    np.testing.assert_allclose(result.iterate, [4.0, 1.0])
    assert result.verdict.value == ours.value(result.iterate)
    free = run(CoordinateSearch(limits=ANYWHERE), GuardedProblem(ours, guard), np.zeros(2), steps=1)
    assert free.iterate[0] == 4.0
    indifferent = Quadratic(np.zeros(2), np.zeros((2, 2)))
    assert run(CoordinateSearch(limits=ANYWHERE), GuardedProblem(ours, indifferent), np.ones(2)).iterate.tolist() == [4.0, 4.0]


@pytest.mark.parametrize("bad", [{"low": 1.0, "high": 1.0}, {"window": 0.0}, {"low": math.nan}])
def test_impossible_limits(bad):
    with pytest.raises(SettingError, match="low < high"):
        Limits(**bad)
