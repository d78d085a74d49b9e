"""Steepest and conjugate subgradients: optima of convex functions with a proof, descent on others, kinks."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from exactrank.errors import SettingError
from exactrank.learning.optimizers.subgradient import Subgradient, least_norm
from tests.learning.optimizers import convex_problems as problems
from tests.learning.optimizers.convex_problems import check, rng, states

METHODS = [Subgradient(tolerance=1e-6), Subgradient(conjugate=True, tolerance=1e-6)]


class Kink(problems.Convex):
    """1 + |x| + 10 |y|: where y = 0 no subgradient that is met points down."""

    def risk(self, theta):
        self.asked += 1
        signs = np.where(theta >= 0, [1.0, 10.0], [-1.0, -10.0])
        return 1 + float(signs @ theta), signs


class Ramp(problems.Convex):
    """A ramp from 0 to 1, which is not convex: sum_j min(1, max(0, theta_j))."""

    def risk(self, theta):
        self.asked += 1
        return float(np.clip(theta, 0, 1).sum()), ((theta > 0) & (theta < 1)).astype(float)


@pytest.mark.parametrize("optimizer", METHODS, ids=repr)
@pytest.mark.parametrize("name", problems.KNOWN)
def test_known_optima_are_reached_between_bounds(optimizer, name):
    problems.check_known(optimizer, name)


@pytest.mark.parametrize("optimizer", METHODS, ids=repr)
def test_it_goes_on_from_a_kink_to_the_optimum(optimizer):
    problem = Kink(0.01, np.zeros(2))
    history = states(optimizer, problem, np.array([1.0, 0.0]))
    check(problem, history, 1.0)
    assert history[-1].stuck


def test_at_a_kink_steepest_subgradients_are_stuck_and_conjugate_ones_are_not():
    start, problem = np.array([1.0, 0.0]), Kink(0.01, np.zeros(2))
    steepest = states(Subgradient(convex=False), problem, start)[-1]
    conjugate = states(Subgradient(conjugate=True, convex=False), problem, start)[-1]
    assert steepest.is_done
    assert np.array_equal(steepest.theta, start)
    assert conjugate.is_done
    assert problem.value(conjugate.theta) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("conjugate", [False, True])
@given(seed=st.integers(0, 2**32 - 1))
def test_without_convexity_it_descends_and_claims_nothing(conjugate, seed):
    start = np.random.default_rng(seed).uniform(-0.5, 2, 4)
    problem, optimizer = Ramp(0.1, start), Subgradient(conjugate, 1e-4, convex=False)
    history = states(optimizer, problem, start)
    values = [s.value for s in history]
    assert values == sorted(values)
    assert all(s.duality is None for s in history)
    assert history[-1].is_done
    on_ramp = (start > 0) & (start < 1)
    assert np.all(history[-1].theta[on_ramp] <= 0.02)
    assert np.all(history[-1].theta[~on_ramp] == start[~on_ramp])


@pytest.mark.parametrize("optimizer", [*METHODS, Subgradient(convex=False), Subgradient(conjugate=True, convex=False)], ids=repr)
def test_a_step_asks_once_and_states_are_values(optimizer):
    problem = problems.orders(1)
    history = states(optimizer, problem, problem.center)
    assert problem.asked == problem.parts * (len(history) - (1 if not optimizer.convex else 0))  # the last found nowhere to go
    for state in (history[2], history[-2]):
        ours, theirs = (optimizer.step(problem, state) for _ in range(2))
        assert ours.theta.tobytes() == theirs.theta.tobytes()
        assert (ours.value, ours.duality, ours.reach) == (theirs.value, theirs.duality, theirs.reach)


@pytest.mark.parametrize("optimizer", METHODS, ids=repr)
@pytest.mark.parametrize("strength", [0.2, 0.001])
def test_at_another_strength_it_goes_on(optimizer, strength):
    problem = problems.hinges(0, strength=0.02)
    last, other = states(optimizer, problem, problem.center)[-1], problem.at(strength)
    resumed = optimizer.resume(other, last, rng())
    assert -resumed.value == pytest.approx(other.value(last.theta))
    assert resumed.duality.dual > optimizer.init(other, problem.center, rng()).duality.dual
    fresh = states(optimizer, other, problem.center)[-1].duality
    while not resumed.is_done:
        resumed = optimizer.step(other, resumed)
    assert resumed.duality.primal == pytest.approx(fresh.primal, rel=2e-6)
    assert resumed.duality.gap <= 1e-6


@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.integers(1, 5))
def test_the_least_norm_of_a_hull_is_where_no_point_is_nearer(seed, count, size):
    points = np.random.default_rng(seed).standard_normal((count, size)) + 0.5
    ours = least_norm(tuple(points))
    largest = np.sum(points**2, axis=1).max()
    assert np.all(points @ ours >= ours @ ours - 2e-6 * largest)  # Wolfe's condition
    assert ours @ ours <= np.sum(points**2, axis=1).min() + 2e-6 * largest


def test_where_numbers_end_the_reach_is_shortened():
    class Walled(problems.Convex):
        def risk(self, theta):
            inside = np.all(np.abs(theta) < 2)
            self.asked += not inside
            return (5 + float(np.abs(theta - 1).sum()), np.sign(theta - 1)) if inside else (np.nan, np.full(2, np.nan))

    for optimizer in (Subgradient(convex=False), Subgradient(conjugate=True, convex=False)):
        problem = Walled(1e-3, np.zeros(2))
        last = states(optimizer, problem, np.array([-1.9, -1.9]))[-1]
        assert problem.asked > 0
        assert last.is_done
        assert not last.trouble
        assert last.theta == pytest.approx(np.ones(2), abs=1e-2)


def test_trouble_with_the_planes_is_told():
    class Breaking(Kink):
        def risk(self, theta):
            value, slope = super().risk(theta)
            return (value, slope) if self.asked <= 20 else (np.nan, slope)

    last = states(Subgradient(), Breaking(0.01, np.zeros(2)), np.array([1.0, 0.0]))[-1]
    assert last.stuck
    assert last.is_done
    assert "too large" in last.trouble


@pytest.mark.parametrize("optimizer", [Subgradient(), Subgradient(convex=False)], ids=repr)
def test_a_start_that_is_not_finite_is_named(optimizer):
    class Nowhere(problems.Convex):
        def risk(self, theta):
            return np.nan, theta

    state = optimizer.init(Nowhere(1.0, np.zeros(2)), np.ones(2), rng())
    assert state.is_done
    assert "not finite at the start" in state.trouble


def test_nowhere_to_go_is_the_end():
    for optimizer in (Subgradient(), Subgradient(convex=False)):
        history = states(optimizer, Ramp(1.0, np.full(3, -1.0)), np.full(3, -1.0))
        assert len(history) <= 2
        assert history[-1].is_done


def test_settings_are_checked():
    with pytest.raises(SettingError, match="tolerance must be a number above 0"):
        Subgradient(tolerance=0.0)
