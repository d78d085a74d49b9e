"""The concave-convex procedure on ramps, and the gap of strongly convex functions on least squares."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from exactrank.errors import SettingError
from exactrank.learning.optimizers.base import State
from exactrank.learning.optimizers.concave_convex import ConcaveConvex, ConcaveConvexBundle
from exactrank.learning.optimizers.cutting_plane import Bundle, CuttingPlane
from exactrank.learning.optimizers.slopes import StronglyConvex
from tests.learning.optimizers.convex_problems import Convex, Maxima, hinges, states

SEEDS = st.integers(0, 1000)
RNG = np.random.default_rng


@dataclass
class Ramps(Convex):
    """sum_i max(0, b - z_i . theta) - max(0, -z_i . theta): a loss that wrong examples cannot raise without end."""

    svm: Any = None

    def risk(self, theta):
        off = self._taken_off(theta)
        value, slope = self.svm.risk(theta)
        return value - float(off @ theta), slope - off

    def convexify(self, theta):
        # what is taken off is linear, so it is one plane for all: a part of its own
        v = np.concatenate([self.svm.v, np.zeros((1, 2, len(theta)))])
        v[-1] = -self._taken_off(theta)
        b = np.concatenate([self.svm.b, np.zeros((1, 2))])
        return Maxima(self.strength, self.center, b=b, v=v)

    def split(self, theta):
        off = self._taken_off(theta)
        return self.svm.risk(theta), (float(off @ theta), off)

    def _taken_off(self, theta):
        wrong = self.svm.v[:, 1]
        return wrong[wrong @ theta > 0].sum(axis=0)


def ramps(seed, strength=0.05):
    svm = hinges(seed)
    return Ramps(strength, 0.1 * RNG(seed).standard_normal(svm.v.shape[2]), svm=svm)


class Steps:
    """An inner optimizer that goes one to the right."""

    def init(self, problem, theta, rng):
        return State(theta + 1.0, 0.0, is_done=True)


@dataclass
class Far(Convex):
    """|theta - 9|, whose convex problem does not matter."""

    def risk(self, theta):
        return float(np.abs(theta - 9.0).sum()), np.sign(theta - 9.0)

    def convexify(self, theta):
        return self


def test_a_step_is_doubled_as_long_as_that_is_better():
    problem, method = Far(1e-9, np.zeros(1)), ConcaveConvex(Steps())
    state = method.step(problem, method.init(problem, np.zeros(1), RNG(0)))
    assert state.theta.tolist() == [8.0]


METHODS = [ConcaveConvex(CuttingPlane(1e-6)), ConcaveConvex(Bundle(1e-6)), ConcaveConvexBundle(1e-6)]


@pytest.mark.parametrize("method", METHODS, ids=["cutting planes", "bundle", "bundle below the convex part"])
@given(seed=SEEDS)
def test_a_step_never_ascends_and_the_end_is_below_the_start(method, seed):
    problem = ramps(seed)
    history = states(method, problem, problem.center, 50)
    values = [-state.value for state in history]
    assert values == sorted(values, reverse=True)
    np.testing.assert_allclose(problem.value(history[-1].theta), values[-1], rtol=1e-12)
    assert values[-1] <= problem.value(problem.center)


@given(seed=SEEDS)
def test_it_ends_where_the_convex_problem_above_has_its_minimum(seed):
    problem = ramps(seed)
    method = ConcaveConvex(CuttingPlane(1e-10), tolerance=1e-12)
    end = states(method, problem, problem.center, 100)[-1].theta
    above = problem.convexify(end)
    best = states(CuttingPlane(1e-10), above, end, 200)[-1].theta
    np.testing.assert_allclose(above.value(end), problem.value(end), rtol=1e-12)
    assert above.value(end) <= above.value(best) * (1 + 1e-6)


@given(seed=SEEDS)
def test_a_bundle_below_the_convex_part_ends_where_no_plane_promises_more(seed):
    problem = ramps(seed)
    history = states(ConcaveConvexBundle(1e-9), problem, problem.center, 300)
    assert history[-1].is_done
    assert not history[-1].trouble
    end = history[-1].theta
    above = problem.convexify(end)
    least = -states(CuttingPlane(1e-9), above, end, 200)[-1].duality.value
    assert above.value(end) <= least * (1 + 1e-3)
    f, h = problem.split(end)
    assert (history[-1].f[0], history[-1].h[0]) == (f[0], h[0])


@given(seed=SEEDS)
def test_a_bundle_goes_on_at_another_strength_from_the_same_theta_and_planes(seed):
    problem, method = ramps(seed), ConcaveConvexBundle(1e-6)
    end = states(method, problem, problem.center, 100)[-1]
    weaker = replace(problem, strength=problem.strength / 10)
    begun = method.resume(weaker, end, RNG(0))
    assert (begun.steps, begun.is_done, begun.planes.count) == (0, False, end.planes.count)
    np.testing.assert_allclose(-begun.value, weaker.value(end.theta), rtol=1e-12)
    last = begun
    while not last.is_done and last.steps < 100:
        last = method.step(weaker, last)
    assert weaker.value(last.theta) <= weaker.value(end.theta) * (1 + 1e-12)
    assert method.step(problem, end).theta.tobytes() == method.step(problem, end).theta.tobytes()  # nothing was changed


@given(seed=SEEDS)
def test_the_ramp_is_below_the_convex_loss(seed):
    problem = ramps(seed)
    for theta in RNG(seed).standard_normal((20, len(problem.center))):
        assert 0 <= problem.risk(theta)[0] <= problem.svm.risk(theta)[0]


def test_states_are_values():
    problem, method = ramps(0), ConcaveConvex(CuttingPlane(1e-6))
    first = method.init(problem, problem.center, RNG(0))
    assert method.step(problem, first).theta.tobytes() == method.step(problem, first).theta.tobytes()


def test_trouble_within_a_step_is_told():
    problem = ramps(0)
    broken = ConcaveConvex(CuttingPlane(1e-9, sweeps=1, inexact=1e-9, level=1.0))
    end = states(broken, problem, problem.center, 5)[-1]
    assert "quadratic program" in end.trouble
    assert problem.value(end.theta) <= problem.value(problem.center)
    end = states(ConcaveConvexBundle(0.0, sweeps=1, inexact=1e-15), problem, problem.center, 50)[-1]
    assert "quadratic program" in end.trouble
    end = states(ConcaveConvexBundle(), problem, np.full_like(problem.center, np.nan), 5)[-1]
    assert end.is_done
    assert "not finite at the start" in end.trouble


@pytest.mark.parametrize("given", [{"max_steps": 0}, {"tolerance": -1.0}, {"tolerance": float("nan")}])
def test_bad_settings_are_refused(given):
    with pytest.raises(SettingError, match="concave-convex"):
        ConcaveConvex(CuttingPlane(), **given)


@dataclass
class Ridge:
    """-(1/2 |A theta - b|^2 + strength/2 |theta|^2), which is to be made large."""

    A: Any
    b: Any
    strength: float

    def value_and_slope(self, theta):
        left = self.A @ theta - self.b
        return -0.5 * float(left @ left + self.strength * theta @ theta), -self.A.T @ left - self.strength * theta

    @property
    def best(self):
        return np.linalg.solve(self.A.T @ self.A + self.strength * np.eye(self.A.shape[1]), self.A.T @ self.b)


@given(seed=SEEDS, strength=st.sampled_from([0.01, 1.0, 100.0]))
def test_the_gap_of_a_smooth_problem_holds_and_closes(seed, strength):
    rng = RNG(seed)
    problem = Ridge(rng.standard_normal((8, 4)), rng.standard_normal(8), strength)
    least = -problem.value_and_slope(problem.best)[0]
    method = StronglyConvex(1e-6)
    history = states(method, problem, np.zeros(4), 200)
    for state in history:
        assert state.duality.dual <= least * (1 + 1e-12)
        assert state.duality.primal >= least * (1 - 1e-12)
    assert history[-1].duality.gap <= 1e-6
    np.testing.assert_allclose(-history[-1].value, least, rtol=1e-6)
    resumed = method.resume(replace(problem, strength=2 * strength), method.init(problem, problem.best, rng), rng)
    assert not resumed.is_done
    assert resumed.duality.gap > 1e-6
