"""The step search on functions that have nothing to do with ranking."""

import json

import numpy as np
import pytest
from hypothesis import given, strategies as st

from exactrank._support.serialize import from_record, to_record
from exactrank.errors import SettingError
from exactrank.learning.optimizers.step_search import StepSearch
from exactrank.learning.training.judge import judge_by_objective
from exactrank.learning.training.run import Recorder, Run

NUMBERS = st.floats(-10, 10, allow_nan=False).map(lambda x: round(x, 3))
VECTORS = st.lists(NUMBERS, min_size=1, max_size=4).map(np.array)


class Quadratic:
    """-(x - peak)^2, whose values are counted."""

    def __init__(self, peak):
        self.peak, self.asked = peak, 0

    def value(self, theta):
        self.asked += 1
        return -float(np.sum((theta - self.peak) ** 2))


class AtOnce(Quadratic):
    def values_along(self, theta, i, weights):
        thetas = np.tile(theta, (len(weights), 1))
        thetas[:, i] = weights
        return -np.sum((thetas - self.peak) ** 2, axis=1)


class Cosine:
    """A function of the direction alone."""

    def __init__(self, peak):
        self.peak = peak

    def value(self, theta):
        return float(theta @ self.peak / np.linalg.norm(theta) / np.linalg.norm(self.peak))


def states(search, problem, start, seed=0, most=400):
    state = search.init(problem, start, np.random.default_rng(seed))
    results = [state]
    while not state.is_done and len(results) < most:
        state = search.step(problem, state)
        results.append(state)
    return results


@given(VECTORS, st.integers(0, 9))
def test_the_value_never_falls_and_is_that_of_the_parameters(peak, seed):
    problem = Quadratic(peak)
    history = states(StepSearch(normalize=False), problem, np.ones(len(peak)), seed)
    values = [state.value for state in history]
    assert values == sorted(values)
    assert values == [problem.value(state.theta) for state in history]


@given(VECTORS)
def test_at_the_end_no_step_that_it_tries_is_better(peak):
    search, problem = StepSearch(tries=8, tolerance=0.0, normalize=False), Quadratic(peak)
    last = states(search, problem, np.ones(len(peak)), most=5000)[-1]
    assert last.is_done
    for i in range(len(peak)):
        size = abs(last.theta[i]) or np.mean(np.abs(last.theta)) or 1.0
        for step in [*(0.05 * size * 2.0**n for n in range(8)), *(-0.05 * size * 2.0**n for n in range(8)), -last.theta[i]]:
            moved = last.theta.copy()
            moved[i] += step
            assert problem.value(moved) <= last.value


def test_it_comes_near_the_peak():
    peak = np.array([3.0, -0.5, 0.0, 40.0])
    last = states(StepSearch(tolerance=1e-9, normalize=False), Quadratic(peak), np.ones(4))[-1]
    np.testing.assert_allclose(last.theta, peak, atol=0.05, rtol=0.05)


@given(st.lists(st.floats(-10, 10).filter(lambda x: abs(x) > 1e-3), min_size=2, max_size=5).map(np.array))
def test_proportions_are_all_that_counts(peak):
    history = states(StepSearch(tolerance=1e-6), Cosine(peak), np.ones(len(peak)))
    for state in history:
        assert np.sum(np.abs(state.theta)) == pytest.approx(1.0, abs=1e-12)
    assert history[-1].value > 0.99


def test_all_parameters_zero_is_no_direction():
    class LikesZero:
        def value(self, theta):
            return float(np.all(theta == 0)) - abs(theta[0])

    assert states(StepSearch(), LikesZero(), np.ones(1))[-1].theta.tolist() == [1.0]


@pytest.mark.parametrize(("weight", "size"), [(-2.0, 2.0), (0.0, 1.5)])
def test_the_steps_that_are_tried(weight, size):
    asked = []

    class Flat:
        def value(self, theta):
            asked.append(theta.tolist())
            return 0.0

    search = StepSearch(first=0.5, growth=3.0, tries=3, normalize=False)
    state = search.init(Flat(), np.array([weight, 3.0]), np.random.default_rng(0))
    while state.order[state.position] != 0:
        state = search.step(Flat(), state)
    asked.clear()
    search.step(Flat(), state)
    steps = [0.5 * size, 1.5 * size, 4.5 * size]
    assert sorted(asked) == sorted([w, 3.0] for w in [0.0, *(weight + s for s in steps), *(weight - s for s in steps)])


def test_a_state_is_only_left_for_a_better_one_though_values_promise_more():
    class Promising(AtOnce):
        def values_along(self, *asked):
            return super().values_along(*asked) + 5.0

    values = [state.value for state in states(StepSearch(normalize=False), Promising(np.array([3.0, -2.0])), np.ones(2))]
    assert values == sorted(values)


@given(VECTORS)
def test_values_at_once_are_the_same_search(peak):
    search, start = StepSearch(normalize=False), np.ones(len(peak))
    first, many = (states(search, kind(peak), start) for kind in (Quadratic, AtOnce))
    assert [state.theta.tolist() for state in first] == [state.theta.tolist() for state in many]


def test_it_ends_where_nothing_is_better():
    class Bounded(Quadratic):
        upper_bound = -0.5

    history = states(StepSearch(normalize=False), Bounded(np.array([3.0, -2.0])), np.ones(2))
    assert history[-1].is_done
    assert history[-1].value >= -0.5 > history[-2].value


def test_values_at_once_are_asked_for_where_offered():
    slow, fast = Quadratic(np.full(3, 2.0)), AtOnce(np.full(3, 2.0))
    for problem in (slow, fast):
        states(StepSearch(normalize=False), problem, np.ones(3))
    assert fast.asked < slow.asked / 10


def test_a_state_is_a_value():
    """Going on from it, or from what JSON made of it, gives the same states: nothing outside it has changed, the generator neither."""
    search, problem = StepSearch(normalize=False), Quadratic(np.arange(4.0))
    rng = np.random.default_rng(3)
    middle = search.step(problem, search.init(problem, np.ones(4), rng))
    again = []
    for start in (middle, from_record(json.loads(json.dumps(to_record(middle))), "here")):
        state = start
        for _ in range(10):
            state = search.step(problem, state)
        again.append((state.theta.tolist(), state.order.tolist(), state.value))
    assert again[0] == again[1]
    assert rng.bit_generator.state == np.random.default_rng(3).bit_generator.state


def test_every_round_visits_every_coordinate_in_another_order():
    history = states(StepSearch(tolerance=1e-12, normalize=False), Quadratic(np.linspace(-3, 5, 6)), np.ones(6))
    orders = [state.order.tolist() for state in history if state.position == 0]
    assert all(sorted(order) == list(range(6)) for order in orders)
    assert len({tuple(order) for order in orders}) > 1


def test_it_stops_when_a_round_gains_little():
    quick, slow = (len(states(StepSearch(tolerance=t, normalize=False), Quadratic(np.array([3.0, 7.0])), np.ones(2))) for t in (1.0, 1e-9))
    assert quick < slow


def test_the_loop_ends_with_it():
    trained = Run(StepSearch(normalize=False), Quadratic(np.zeros(2)), np.ones(2), judge_by_objective, 1000)(Recorder())
    assert trained.verdict.value == 0.0
    assert trained.steps < 1000


@pytest.mark.parametrize("bad", [{"first": 0.0}, {"first": np.nan}, {"growth": 1.0}, {"tries": 0}, {"tolerance": -1.0}])
def test_settings_are_checked(bad):
    with pytest.raises(SettingError, match=next(iter(bad))):
        StepSearch(**bad)
