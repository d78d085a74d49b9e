"""A bundle of planes for a risk as a whole, and that it agrees with cutting planes and subgradients."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from exactrank.errors import SettingError
from exactrank.learning.optimizers.cutting_plane import Bundle, CuttingPlane
from exactrank.learning.optimizers.subgradient import Subgradient
from tests.learning.optimizers import convex_problems as problems
from tests.learning.optimizers.convex_problems import rng, states

METHODS = [Bundle(1e-6), Bundle(1e-6, level=1), Bundle(1e-6, keep=3, inexact=0.5)]


@pytest.mark.parametrize("optimizer", METHODS, ids=repr)
@pytest.mark.parametrize("name", problems.KNOWN)
def test_known_optima_are_reached_between_bounds(optimizer, name):
    problems.check_known(optimizer, name)


@given(
    st.integers(0, 2**32 - 1), st.sampled_from([problems.hinges, problems.classes, problems.random_maxima]), st.sampled_from([1e-3, 0.1])
)
def test_all_methods_agree(seed, make, strength):
    problem = make(seed, strength=strength)
    methods = [CuttingPlane(1e-5), Bundle(1e-5), Subgradient(tolerance=1e-5), Subgradient(conjugate=True, tolerance=1e-5)]
    ends = [states(optimizer, problem, problem.center)[-1] for optimizer in methods]
    assert all(end.duality.gap <= 1e-5 for end in ends)
    values = np.array([problem.value(end.theta) for end in ends])
    assert values == pytest.approx(values.min(), rel=1e-4)
    assert max(end.duality.dual for end in ends) <= values.min() + 1e-12


def test_a_step_asks_once_and_only_for_the_risk():
    class Whole(problems.Convex):
        def risk(self, theta):
            self.asked += 1
            return float(np.abs(theta).sum()), np.where(theta >= 0, 1.0, -1.0)

    problem = Whole(0.5, np.array([3.0, -1.0, 5.0]))
    history = states(Bundle(1e-6), problem, np.zeros(3))
    assert problem.asked == len(history)
    assert history[-1].theta == pytest.approx([1.0, 0.0, 3.0], abs=1e-2)


@pytest.mark.parametrize("strength", [0.2, 0.001])
def test_at_another_strength_the_planes_are_taken_over(strength):
    problem, optimizer = problems.hinges(0, strength=0.02), Bundle(1e-6)
    last, other = states(optimizer, problem, problem.center)[-1], problem.at(strength)
    resumed = optimizer.resume(other, last, rng())
    assert other.asked == 0
    assert -resumed.value == pytest.approx(other.value(last.theta))
    fresh = states(optimizer, other, problem.center)[-1].duality
    while not resumed.is_done:
        resumed = optimizer.step(other, resumed)
    assert resumed.duality.primal == pytest.approx(fresh.primal, rel=2e-6)


@pytest.mark.parametrize("optimizer", METHODS, ids=repr)
def test_states_are_values(optimizer):
    problem = problems.hinges(1)
    state = states(optimizer, problem, problem.center, most=3)[-1]
    before = state.planes.held()
    ours, theirs = (optimizer.step(problem, optimizer.step(problem, state)) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(before, state.planes.held(), strict=True))
    assert ours.theta.tobytes() == theirs.theta.tobytes()
    assert (ours.duality, ours.pull) == (theirs.duality, theirs.pull)


def test_a_pull_saves_questions_where_the_strength_is_small():
    asked = []
    for level in (0.1, 1.0):
        problem = problems.orders(0, parts=60, size=20)
        states(Bundle(level=level), problem, problem.center)
        asked.append(problem.asked)
    assert asked[0] <= 0.6 * asked[1]


def test_settings_are_checked():
    with pytest.raises(SettingError, match="level must be above 0"):
        Bundle(level=0)
