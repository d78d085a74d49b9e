"""SGD, Adam and L-BFGS on classic functions: they know nothing of ranking; and what optimizers ask of problems."""

import json
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import minimize, rosen, rosen_der

from exactrank._support.serialize import from_record, to_record
from exactrank.errors import IncompatibleError, SettingError
from exactrank.learning import optimizers
from exactrank.learning.optimizers.base import State, fitting, questions
from exactrank.learning.optimizers.slopes import LBFGS, LEAST_GAIN, MOST_SLOPE, SGD, TRIALS, Adam, LinePoint, maximum, wolfe_step
from exactrank.learning.training.judge import judge_by_objective
from exactrank.learning.training.run import Journal, Recorder, Run
from tests.reference.slopes import adam, bfgs_direction


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


OPTIMIZERS = [SGD(0.02), Adam(0.05, batch_size=8), LBFGS()]


def rng():
    return np.random.default_rng(7)


def climbed(optimizer, problem, start, max_steps):
    """What a run by the problem's value leaves behind, and all that is told of it."""
    history = []
    recorder = Recorder(Journal(), lambda progress, *_: history.append(progress))
    return Run(optimizer, problem, start, judge_by_objective, max_steps, 7)(recorder), history


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=repr)
def test_the_solution_is_found(optimizer):
    problem = LeastSquares()
    result, _ = climbed(optimizer, problem, np.zeros(5), 400)
    assert result.iterate == pytest.approx(problem.solution, abs=1e-3)
    assert result.verdict.value == problem.value(result.iterate)


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=repr)
def test_a_state_that_was_written_and_read_goes_the_same_way(optimizer):
    problem = LeastSquares()
    state = optimizer.init(problem, np.zeros(5), rng())
    for _ in range(3):
        state = optimizer.step(problem, state)
    copy = from_record(json.loads(json.dumps(to_record(state))), "here")
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
            np.testing.assert_allclose(
                problem.asked[0] - state.theta, bfgs_direction(state.slope, [move[:2] for move in state.moves]), rtol=1e-6, atol=1e-9
            )
            compared += 1
        state = after
    assert compared > 5
    assert len(state.moves) == 3


def test_lbfgs_crosses_the_banana_valley_as_fast_as_scipys():
    start = np.array([-1.2, 1.0, -0.5, 0.8])
    result, history = climbed(LBFGS(), Rosenbrock(), start, 200)
    theirs = minimize(rosen, start, jac=rosen_der, method="L-BFGS-B")
    assert result.iterate == pytest.approx(np.ones(4), abs=1e-3)
    assert result.steps <= 2 * theirs.nit
    values = [progress.value for progress in history]
    assert values == sorted(values)


def test_the_maximum_is_that_of_scipy():
    theirs = minimize(rosen, np.zeros(4), jac=rosen_der, method="L-BFGS-B")
    assert -rosen(maximum(Rosenbrock(), np.zeros(4), 200)) >= -theirs.fun - 1e-9


def trial_of(function, slope):
    """Points of a function of one number, and how far those that were asked for are."""
    calls = []

    def trial(step):
        calls.append(step)
        return LinePoint(step, function(step), slope(step), np.array([step]), np.array([slope(step)]))

    return trial, LinePoint(0.0, function(0.0), slope(0.0), np.zeros(1), np.array([slope(0.0)])), calls


@given(st.floats(1e-4, 1e4), st.floats(0.0, 3.0), st.floats(0.5, 20.0))
def test_steps_satisfy_the_wolfe_conditions(width, height, waves):
    """On a bent parabola of any width, whose maximum may be much nearer or farther than the first trial."""

    def function(step):
        t = step / width
        return t - t * t / 2 + height / waves * np.sin(waves * t) / 2

    def slope(step):
        t = step / width
        return (1 - t + height * np.cos(waves * t) / 2) / width

    trial, start, calls = trial_of(function, slope)
    end = wolfe_step(trial, start)
    assert end is not None
    assert end.value >= start.value + LEAST_GAIN * end.step * start.slope
    assert abs(end.slope) <= MOST_SLOPE * start.slope
    assert end.step in calls
    assert len(calls) <= TRIALS


def test_a_search_between_two_points_hits_the_maximum_of_a_cubic():
    """The first trial is too far; the second is where the cubic through both points is largest, which is the function itself."""
    trial, start, calls = trial_of(lambda t: 0.3 * t + t * t - 2 * t**3, lambda t: 0.3 + 2 * t - 6 * t * t)
    end = wolfe_step(trial, start)
    assert calls[0] == 1.0
    assert end.step == pytest.approx((2 + np.sqrt(4 + 7.2)) / 12)


def test_a_search_gets_back_from_where_the_function_is_not_finite():
    trial, start, _ = trial_of(lambda t: t - t * t if t < 0.7 else np.nan, lambda t: 1 - 2 * t if t < 0.7 else np.nan)
    assert wolfe_step(trial, start).step == pytest.approx(0.5, abs=0.4)


def test_a_search_ends_at_a_peak_that_has_no_slope():
    """There the second condition holds nowhere; the interval is narrowed until there is no number within it."""
    trial, start, calls = trial_of(lambda t: t if t <= 1 else 1 - 1000 * (t - 1), lambda t: 1.0 if t <= 1 else -1000.0)
    assert wolfe_step(trial, start).step == 1.0
    assert len(calls) <= TRIALS


def test_a_search_that_gains_nothing_gives_up():
    trial, start, calls = trial_of(lambda t: -abs(t), lambda t: 1.0)
    assert wolfe_step(trial, start) is None
    assert len(calls) == TRIALS


def test_lbfgs_is_done_where_there_is_nowhere_to_go():
    problem = LeastSquares()
    result, _ = climbed(LBFGS(), problem, problem.solution, 50)
    assert result.steps <= 2
    assert np.array_equal(result.iterate, problem.solution)


def test_lbfgs_says_when_it_cannot_start():
    class Infinite:
        def value_and_slope(self, theta):
            return np.nan, theta

    assert "not finite at the start" in climbed(LBFGS(), Infinite(), np.ones(2), 5)[0].trouble


@pytest.mark.parametrize("optimizer", [SGD(50.0), Adam(1e300, batch_size=8)], ids=repr)
def test_a_rate_that_diverges_is_named_and_the_best_so_far_kept(optimizer):
    problem = LeastSquares()
    with np.errstate(all="ignore"):
        result, history = climbed(optimizer, problem, np.zeros(5), 400)
    assert "diverged in iteration" in result.trouble
    assert "use a smaller learning_rate" in result.trouble
    assert np.all(np.isfinite(result.iterate))
    assert result.verdict.value == max(progress.value for progress in history)


def test_adam_corrects_the_bias_of_its_means():
    """The first step is the rate long in every coordinate with a slope, whatever the slope; the next follow (1) and (2) to the digit."""
    problem, optimizer = LeastSquares(), Adam(0.05, batch_size=100)
    theta, first, second, state = np.zeros(5), np.zeros(5), np.zeros(5), optimizer.init(LeastSquares(), np.zeros(5), rng())
    for t in range(1, 6):
        slope = problem.value_and_slope(theta)[1]
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        theta = theta + 0.05 * (first / (1 - 0.9**t)) / (np.sqrt(second / (1 - 0.999**t)) + 1e-8)
        state = optimizer.step(problem, state)
        assert state.theta == pytest.approx(theta, rel=1e-12)
        assert t > 1 or np.abs(state.theta) == pytest.approx(np.full(5, 0.05), rel=1e-5)


@pytest.mark.parametrize("optimizer", [SGD(0.02), Adam(0.05, batch_size=8)], ids=repr)
def test_every_epoch_visits_all_parts_in_an_order_of_its_own(optimizer):
    class Watched(LeastSquares):
        visited: ClassVar[list] = []

        def pass_over(self, theta, order, rate):
            self.visited.extend(order)
            return super().pass_over(theta, order, rate)

        def slope_of(self, theta, parts):
            self.visited.extend(parts)
            return super().slope_of(theta, parts)

    climbed(optimizer, Watched(), np.zeros(5), 3)
    epochs = np.reshape(Watched.visited, (3, 40))
    assert all(sorted(epoch) == list(range(40)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3


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
    ("make", "message"),
    [
        (lambda: SGD(0.0), "learning_rate must be a number above 0"),
        (lambda: SGD(1.0, decay=1.5), "decay"),
        (lambda: Adam(-1.0), "learning_rate must be a number above 0"),
        (lambda: Adam(batch_size=0), "batch_size must be at least 1"),
        (lambda: LBFGS(memory=0), "memory of at least 1"),
    ],
)
def test_settings_are_checked(make, message):
    with pytest.raises(SettingError, match=message):
        make()


# ---- what optimizers ask ----


class Valley:
    """A problem with a value, and many at once."""

    def value(self, theta):
        return -float(theta @ theta)

    def values(self, thetas):
        return -(thetas**2).sum(axis=1)


def test_an_optimizer_that_asks_for_what_there_is_not_is_refused_with_those_that_would_do():
    with pytest.raises(IncompatibleError) as refused:
        Run(SGD(0.1), Valley(), np.ones(2), judge_by_objective, 5)
    assert str(refused.value) == "SGD asks for parts, pass_over and start; Valley has value and values; use StepSearch, SPSA or FDSA"


def test_where_no_optimizer_would_do_that_is_said():
    with pytest.raises(IncompatibleError, match=r"LBFGS asks for value_and_slope; object has nothing that any optimizer asks for; no"):
        fitting(LBFGS(), object())


def test_answers_are_looked_for_and_not_asked():
    class Expensive(LeastSquares):
        @property
        def parts(self):
            raise AssertionError("asked")

        @parts.setter
        def parts(self, count):
            pass

    assert fitting(SGD(0.1), Expensive()) == SGD(0.1)


@pytest.mark.parametrize("name", optimizers.OPTIMIZERS)
def test_every_optimizer_declares_what_it_asks(name):
    calls = questions(getattr(optimizers, name).asks)
    assert calls
    assert set(calls) <= {
        "at", "best", "by_coordinate", "center", "convexify", "dimension", "parts", "pass_over", "performance", "planes",
        "risk", "scores", "slope", "slope_of", "split", "start", "strength", "value", "value_and_slope", "weight",
    }  # fmt: skip


def test_a_problem_with_draws_gets_those_of_each_step():
    @dataclass(frozen=True)
    class Noisy:
        number: int = -1

        def with_draws(self, number):
            return Noisy(number)

    @dataclass(frozen=True)
    class Follow:
        asks: ClassVar[type] = object

        def init(self, problem, theta, rng):
            return State((problem.number,), 0.0)

        def step(self, problem, state):
            return State((*state.theta, problem.number), float(state.steps + 1), state.steps + 1)

    assert climbed(Follow(), Noisy(), (), 3)[0].iterate == (0, 0, 1, 2)
