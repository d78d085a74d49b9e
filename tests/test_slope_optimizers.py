"""SGD, Adam and L-BFGS on classic functions: they know nothing of ranking."""

import dataclasses

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from exactrank.errors import DataError
from exactrank.optimizers.adam import Adam
from exactrank.optimizers.lbfgs import LBFGS
from exactrank.optimizers.sgd import SGD
from exactrank.training import train

from .reference.slopes import adam, bfgs_direction


class LeastSquares:
    """-1/2 mean_i (a_i . theta - b_i)^2, which has a solution without error."""

    def __init__(self, rows=40, size=5, seed=0):
        rng = np.random.default_rng(seed)
        self.a = rng.standard_normal((rows, size)) * np.geomspace(0.7, 1.5, size)
        self.solution = rng.standard_normal(size)
        self.b = self.a @ self.solution
        self.parts = rows
        self.starts = 0

    def value(self, theta):
        return -np.mean((self.a @ theta - self.b) ** 2) / 2

    def value_and_slope(self, theta):
        return self.slope_of(theta, np.arange(self.parts))

    def slope_of(self, theta, parts):
        error = self.b[parts] - self.a[parts] @ theta
        return -np.mean(error**2) / 2, error @ self.a[parts] / len(parts)

    def start(self, rng):
        self.starts += 1
        return rng.standard_normal(len(self.solution))

    def pass_over(self, theta, order, rate):
        for i in order:
            theta = theta + rate * (self.b[i] - self.a[i] @ theta) * self.a[i]
        return theta


class Rosenbrock:
    def __init__(self):
        self.asked = []

    def value_and_slope(self, theta):
        self.asked.append(theta)
        return -rosen(theta), -rosen_der(theta)


OPTIMIZERS = [SGD(0.02), Adam(0.05, batch=8), LBFGS()]


def rng():
    return np.random.default_rng(7)


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=repr)
def test_the_solution_is_found(optimizer):
    problem = LeastSquares()
    found = train(optimizer, problem, np.zeros(5), rng=rng(), max_steps=400)
    assert found.theta == pytest.approx(problem.solution, abs=1e-3)
    assert found.value == problem.value(found.theta)


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=repr)
def test_a_state_taken_up_again_goes_the_same_way(optimizer):
    problem = LeastSquares()
    state = optimizer.init(problem, np.zeros(5), rng())
    for _ in range(3):
        state = optimizer.step(problem, state)
    copy = dataclasses.replace(state)
    for _ in range(3):
        state, copy = optimizer.step(problem, state), optimizer.step(problem, copy)
    assert state.theta.tobytes() == copy.theta.tobytes()


@pytest.mark.parametrize("batch", [7, 40])
def test_adam_goes_where_its_definition_does(batch):
    problem, optimizer = LeastSquares(), Adam(0.3, batch, b1=0.8, b2=0.95, epsilon=0.01)
    state, drawn = optimizer.init(problem, np.ones(5), rng()), rng()
    batches = []
    for _ in range(3):
        state = optimizer.step(problem, state)
        order = drawn.permutation(problem.parts)
        batches += [order[begin : begin + batch] for begin in range(0, problem.parts, batch)]
    theirs = adam(lambda theta, parts: problem.slope_of(theta, parts)[1], np.ones(5), batches, rate=0.3, b1=0.8, b2=0.95, epsilon=0.01)
    np.testing.assert_allclose(state.theta, theirs, rtol=1e-12)


def test_lbfgs_first_tries_the_direction_of_bfgs():
    problem, optimizer = Rosenbrock(), LBFGS(memory=3)
    state = optimizer.init(problem, np.array([-1.2, 1.0, -0.5, 0.8]), rng())
    compared = 0
    for _ in range(12):
        problem.asked.clear()
        after = optimizer.step(problem, state)
        if state.moves:
            np.testing.assert_allclose(problem.asked[0] - state.theta, bfgs_direction(state.slope, state.moves), rtol=1e-6, atol=1e-9)
            compared += 1
        state = after
    assert compared > 5
    assert len(state.moves) == 3


def test_lbfgs_crosses_the_banana_valley_as_fast_as_scipys():
    start = np.array([-1.2, 1.0, -0.5, 0.8])
    found = train(LBFGS(), Rosenbrock(), start, rng=rng(), max_steps=200)
    theirs = minimize(rosen, start, jac=rosen_der, method="L-BFGS-B")
    assert found.theta == pytest.approx(np.ones(4), abs=1e-3)
    assert found.history[-1].step <= 2 * theirs.nit
    values = [progress.value for progress in found.history]
    assert values == sorted(values)


def test_lbfgs_is_done_where_there_is_nowhere_to_go():
    problem = LeastSquares()
    found = train(LBFGS(), problem, problem.solution, rng=rng(), max_steps=50)
    assert found.history[-1].step <= 2
    assert np.array_equal(found.theta, problem.solution)


def test_lbfgs_says_when_it_cannot_start():
    class Infinite:
        def value_and_slope(self, theta):
            return np.nan, theta

    assert "not finite at the start" in train(LBFGS(), Infinite(), np.ones(2), rng=rng(), max_steps=5).trouble


@pytest.mark.parametrize("optimizer", [SGD(50.0), Adam(1e300, batch=8)], ids=repr)
def test_a_rate_that_diverges_is_named_and_the_best_so_far_kept(optimizer):
    problem = LeastSquares()
    with np.errstate(all="ignore"):
        found = train(optimizer, problem, np.zeros(5), rng=rng(), max_steps=400)
    assert "diverged in epoch" in found.trouble
    assert "take a smaller one" in found.trouble
    assert np.all(np.isfinite(found.theta))
    assert found.value == max(progress.value for progress in found.history)


def test_the_rate_falls_when_the_value_does():
    class Wobbling(LeastSquares):
        values = iter([0.0, 1.0, 0.5, 0.7, 0.6])

        def value(self, theta):
            return next(self.values)

    optimizer, problem = SGD(1.0, decay=0.5), Wobbling()
    state = optimizer.init(problem, np.zeros(5), rng())
    rates = []
    for _ in range(4):
        state = optimizer.step(problem, state)
        rates.append(state.rate)
    assert rates == [1.0, 0.5, 0.5, 0.25]
    assert state.best == 1.0
    assert state.stale == 3


def test_training_starts_anew_after_epochs_without_progress():
    class Flat(LeastSquares):
        def value(self, theta):
            return 1.0

    problem, optimizer = Flat(), SGD(1e-3, patience=3)
    state = optimizer.init(problem, np.zeros(5), rng())
    for _ in range(8):
        state = optimizer.step(problem, state)
    assert problem.starts == 2  # at the fourth and the eighth step
    assert state.rate == 1e-3
    assert state.steps == 8


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: SGD(0.0), "learning rate must be a number above 0"),
        (lambda: SGD(1.0, decay=1.5), "decay"),
        (lambda: Adam(-1.0), "learning rate must be a number above 0"),
        (lambda: Adam(batch=0), "at least 1 query"),
        (lambda: LBFGS(memory=0), "memory of at least 1"),
    ],
)
def test_settings_are_checked(make, said):
    with pytest.raises(DataError, match=said):
        make()
