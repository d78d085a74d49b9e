"""The program of planes, and cutting planes for each part of a risk: certificates, optima, states that are values."""

import dataclasses
import itertools
import json

import numpy as np
import pytest
from hypothesis import given, strategies as st

from exactrank._core import Planes
from exactrank._support.serialize import from_record, to_record
from exactrank.errors import SettingError
from exactrank.learning.optimizers import cutting_plane
from exactrank.learning.optimizers.cutting_plane import Bundle, CuttingPlane
from tests.learning.optimizers import convex_problems as problems
from tests.learning.optimizers.convex_problems import rng, states
from tests.reference import planes as reference

SOLVED = 10**5


@st.composite
def programs(draw, parts=4, size=4):
    """Strength, center, and of each plane the part, the offset and the normal; small numbers, so that some are alike."""
    p, d = draw(st.integers(1, parts)), draw(st.integers(1, size))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    number = np.concatenate([np.arange(p), rng.integers(0, p, draw(st.integers(0, 16)))])
    grain = draw(st.sampled_from([0.0, 1.0]))  # 1: whole numbers, with ties and planes that are given twice
    offsets, normals = rng.uniform(-3, 3, len(number)), rng.uniform(-3, 3, (len(number), d))
    if grain:
        offsets, normals = np.round(offsets), np.round(normals)
    return 10.0 ** draw(st.integers(-2, 2)), rng.standard_normal(d), number, offsets, normals


def made(strength, center, parts, offsets, normals):
    planes = Planes(int(parts.max()) + 1, strength, center)
    planes.add(parts, offsets, normals)
    return planes


def scale(program):
    """What rounding is measured by."""
    strength, _, _, offsets, normals = program
    return 1 + np.abs(offsets).sum() + np.sum(np.abs(normals)) ** 2 / strength


def same(first, second):
    return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in zip(first.held(), second.held(), strict=True))


@given(programs(), st.lists(st.sampled_from(["solve", "improve", "drop", "pose", "restart"]), min_size=1, max_size=6), st.integers(0, 6))
def test_planes_that_were_written_and_read_go_on_to_the_bit(program, moves, when):
    """What is kept on the way counts too: theta, which has rounded, the order of the planes and how long each has been idle."""
    strength, center, parts, *_ = program
    ask = {
        "solve": lambda planes: planes.solve(1e-3, 3),
        "improve": lambda planes: planes.improve(parts[:2]),
        "drop": lambda planes: planes.drop(2),
        "pose": lambda planes: planes.pose(2 * strength, center + 1),
        "restart": lambda planes: planes.restart(),
    }
    planes = made(*program)
    for move in moves[:when]:
        ask[move](planes)
    again = from_record(json.loads(json.dumps(to_record(planes))), "here")
    assert same(planes, again)
    for move in [*moves[when:], "solve", "drop", "solve", "drop", "improve"]:
        assert ask[move](planes) == ask[move](again)
        assert same(planes, again)
    assert planes.dual() == again.dual()


@given(programs())
def test_the_solution_comes_with_its_proof(program):
    strength, center, *_ = program
    planes, rounding = made(*program), 1e-11 * scale(program)
    gap = planes.solve(rounding, SOLVED)
    parts, offsets, normals, alpha, *_ = planes.held()
    assert gap <= rounding
    assert np.all(alpha >= 0)
    assert np.bincount(parts, alpha) == pytest.approx(1.0)
    total = alpha @ normals
    assert planes.theta() == pytest.approx(center - total / strength, abs=rounding)
    assert planes.dual() == pytest.approx(alpha @ offsets + total @ center - total @ total / (2 * strength), abs=rounding)
    value = reference.value(planes.theta(), *program)
    assert planes.height() == pytest.approx(value - strength / 2 * np.sum((planes.theta() - center) ** 2), abs=rounding)
    assert value - planes.dual() == pytest.approx(gap, abs=rounding)


@given(programs(), st.sampled_from([1e-4, 1e-2]), st.sampled_from([1, 3, SOLVED]))
def test_the_gap_that_is_told_is_the_gap(program, share, sweeps):
    planes, tolerance = made(*program), share * scale(program)
    gap = planes.solve(tolerance, sweeps)
    theirs = reference.value(planes.theta(), *program) - planes.dual()
    assert gap == pytest.approx(theirs, abs=1e-11 * scale(program))
    assert gap <= tolerance or sweeps < SOLVED


@given(programs())
def test_the_least_value_is_that_of_a_general_solver(program):
    planes = made(*program)
    planes.solve(1e-9 * scale(program), SOLVED)
    theirs = reference.least(*program)
    assert planes.dual() == pytest.approx(theirs, rel=1e-5, abs=1e-6 * scale(program))


@given(programs(), st.integers(1, 5))
def test_every_visit_raises_the_bound(program, sweeps):
    planes = made(*program)
    bounds = [planes.dual()]
    for _ in range(sweeps):
        planes.improve(np.unique(program[2]))
        bounds.append(planes.dual())
    assert np.all(np.diff(bounds) >= -1e-11 * scale(program))
    assert bounds[-1] <= reference.value(program[1], *program) + 1e-11 * scale(program)


@given(programs(), st.sampled_from([0.1, 30.0]))
def test_planes_are_good_for_another_strength_and_center(program, factor):
    strength, center, *rest = program
    planes, second = made(*program), (factor * strength, center[::-1] + 1, *rest)
    planes.solve(1e-9 * scale(program), SOLVED)
    planes.pose(*second[:2])
    fresh = made(*second)
    for first in (planes, fresh):
        first.solve(1e-10 * scale(second), SOLVED)
    assert planes.dual() == pytest.approx(fresh.dual(), abs=1e-9 * scale(second))


@given(programs())
def test_idle_planes_can_be_dropped_and_a_solution_begun_anew(program):
    planes, tolerance = made(*program), 1e-10 * scale(program)
    planes.solve(tolerance, SOLVED)
    dual, alpha = planes.dual(), planes.held()[3]
    planes.drop(2)
    assert planes.count == len(alpha)
    planes.drop(2)
    assert planes.count == np.count_nonzero(alpha)
    assert np.all(planes.held()[3] > 0)
    assert planes.dual() == pytest.approx(dual, abs=tolerance)
    planes.restart()
    planes.solve(tolerance, SOLVED)
    assert planes.dual() == pytest.approx(dual, abs=3 * tolerance)


@given(programs())
def test_a_copy_is_another(program):
    planes = made(*program)
    before = planes.theta()
    copy = planes.copy()
    copy.solve(0.0, 10)
    copy.pose(2.0, program[1] + 1)
    assert np.array_equal(planes.theta(), before)
    assert np.array_equal(planes.held()[3], made(*program).held()[3])


def test_planes_of_equal_normal_are_one_with_the_higher_offset():
    planes, part = Planes(2, 1.0, np.zeros(2)), np.zeros(1, np.int64)
    normal = np.array([[1.0, 2.0]])
    assert [planes.add(part, np.array([b]), normal) for b in (1.0, 3.0, 2.0)] == [1, 0, 0]
    assert planes.held()[1].tolist() == [3.0]
    assert planes.add(part + 1, np.array([1.0]), normal) == 1


def test_without_a_plane_in_every_part_nothing_is_known_from_below():
    planes = Planes(2, 1.0, np.zeros(1))
    planes.add(np.zeros(1, np.int64), np.ones(1), np.ones((1, 1)))
    assert planes.dual() == planes.height() == -np.inf


def test_numbers_that_are_not_finite_are_reported():
    planes = Planes(1, 1.0, np.zeros(1))
    planes.add(np.zeros(2, np.int64), np.array([1.0, 2.0]), np.array([[1e200], [-1e200]]))
    assert np.isnan(planes.solve(1e-3, 100))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda planes: Planes(1, 0.0, np.zeros(2)), "strength must be above 0"),
        (lambda planes: planes.pose(1.0, np.zeros(3)), "center has a length of 3"),
        (lambda planes: planes.add(np.array([1]), np.zeros(1), np.zeros((1, 2))), "parts holds 1"),
        (lambda planes: planes.add(np.array([-1]), np.zeros(1), np.zeros((1, 2))), "parts holds -1"),
        (lambda planes: planes.add(np.array([0]), np.zeros(2), np.zeros((1, 2))), "offsets has a length of 2"),
        (lambda planes: planes.add(np.array([0]), np.zeros(1), np.zeros((1, 3))), "another dimension"),
        (lambda planes: planes.improve(np.array([1])), "parts holds 1"),
        (lambda planes: planes.drop(0), "idle once"),
    ],
)
def test_what_does_not_fit_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong(Planes(1, 1.0, np.zeros(2)))


METHODS = [CuttingPlane(1e-6), CuttingPlane(1e-6, level=1), CuttingPlane(1e-6, batch=2), CuttingPlane(1e-6, keep=1, inexact=0.5)]


@pytest.mark.parametrize("optimizer", METHODS, ids=repr)
@pytest.mark.parametrize("name", problems.KNOWN)
def test_known_optima_are_reached_between_bounds(optimizer, name):
    problems.check_known(optimizer, name)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-3, 0.1, 10.0]), st.sampled_from(METHODS))
def test_the_least_sum_of_maxima_is_that_of_a_general_solver(seed, strength, optimizer):
    problem = problems.random_maxima(seed, parts=5, planes=4, size=3, strength=strength)
    number = np.repeat(np.arange(5), 4)
    theirs = reference.least(strength, problem.center, number, problem.b.ravel(), problem.v.reshape(20, 3))
    ours = states(optimizer, problem, np.zeros(3))[-1].duality
    assert ours.dual <= theirs + 1e-7 * abs(theirs)
    assert ours.primal == pytest.approx(theirs, rel=3e-6)


@pytest.mark.parametrize("optimizer", METHODS, ids=repr)
@pytest.mark.parametrize("strength", [0.2, 0.001])
def test_at_another_strength_the_planes_are_taken_over(optimizer, strength):
    problem = problems.classes(0, strength=0.02)
    last, other = states(optimizer, problem, problem.center)[-1], problem.at(strength)
    resumed = optimizer.resume(other, last, rng())
    assert other.asked == 0
    assert -resumed.value == pytest.approx(other.value(last.theta))
    assert resumed.duality.dual > optimizer.init(other, problem.center, rng()).duality.dual
    fresh = states(optimizer, other, problem.center)[-1].duality
    while not resumed.is_done:
        resumed = optimizer.step(other, resumed)
    assert resumed.duality.primal == pytest.approx(fresh.primal, rel=2e-6)
    assert resumed.duality.dual <= fresh.primal


@pytest.mark.parametrize("optimizer", METHODS, ids=repr)
def test_states_are_values(optimizer):
    problem = problems.hinges(1)
    state = states(optimizer, problem, problem.center, most=3)[-1]
    before = state.planes.held()
    ours, theirs = (optimizer.step(problem, optimizer.step(problem, dataclasses.replace(state))) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(before, state.planes.held(), strict=True))
    assert ours.theta.tobytes() == theirs.theta.tobytes()
    assert (ours.duality, ours.pull) == (theirs.duality, theirs.pull)
    again = states(optimizer, problems.hinges(1), problem.center, most=5)[-1]
    assert again.theta.tobytes() == ours.theta.tobytes()


def test_the_order_of_batches_is_drawn_anew_in_each_step():
    class Watched(problems.Maxima):
        def planes(self, theta, parts):
            orders.append(parts.tolist())
            return super().planes(theta, parts)

    made = problems.classes(2, examples=20)
    problem, optimizer = Watched(made.strength, made.center, b=made.b, v=made.v), CuttingPlane(1e-9, batch=8)
    passes = []
    for seed in (0, 1):
        orders: list[list[int]] = []
        state = optimizer.init(problem, problem.center, np.random.default_rng(seed))
        optimizer.step(problem, optimizer.step(problem, state))
        assert [len(one) for one in orders] == [20, 8, 8, 4, 20, 8, 8, 4, 20]
        passes += [[*itertools.chain(*orders[1:4])], [*itertools.chain(*orders[5:8])]]
    assert all(sorted(one) == list(range(20)) for one in passes)
    assert len({tuple(one) for one in passes}) == 4


def test_idle_planes_are_forgotten():
    counts = [states(CuttingPlane(1e-6, keep=keep), problems.orders(0), np.zeros(12))[-1].planes.count for keep in (1, 10**6)]
    assert counts[0] < 0.5 * counts[1]


def test_the_pull_falls_while_the_model_is_right_and_else_keeps_to_the_level():
    history = states(Bundle(1e-4), problems.orders(0), np.zeros(12))
    changes = np.array([after.pull / before.pull for before, after in itertools.pairwise(history)])
    assert changes.min() == pytest.approx(1 / 4)
    assert 1 < changes.max() <= 4 + 1e-12
    assert all(state.pull == 0 for state in states(CuttingPlane(1e-6, level=1), problems.orders(0), np.zeros(12)))
    first = history[0]
    slope = problems.orders(0).risk(np.zeros(12))[1]
    gain = slope @ slope / (2 * (first.pull + problems.orders(0).strength))
    assert gain == pytest.approx(0.1 * first.duality.primal)  # what the first step would gain if the slope stayed


def test_a_good_start_needs_no_step():
    problem = problems.absolute(2)
    state = CuttingPlane(1e-6).init(problem, problem.best, rng())
    assert state.steps == 0
    done = states(CuttingPlane(1e-6), problem, problem.best)
    assert len(done) <= 4
    assert np.allclose(done[-1].theta, problem.best, atol=1e-3)


def test_a_program_that_is_not_solved_is_trouble_and_the_best_so_far_kept():
    problem = problems.classes(0, strength=1e-6)
    history = states(CuttingPlane(1e-6, level=1, inexact=1e-6, sweeps=1), problem, problem.center)
    assert history[-1].is_done
    assert "was not solved in 10 sweeps" in history[-1].trouble
    assert "allow more sweeps or raise the strength" in history[-1].trouble
    assert history[-1].steps == history[-2].steps + 1
    assert np.array_equal(history[-1].theta, history[-2].theta)
    assert history[-1].value == max(s.value for s in history)
    easier = CuttingPlane(1e-3).resume(problem.at(0.1), history[-1], rng())
    assert not easier.trouble
    assert not easier.is_done
    assert CuttingPlane(1e-3).step(problem.at(0.1), easier).duality.gap < easier.duality.gap


def test_a_failed_solution_is_begun_anew_with_more_sweeps(monkeypatch):
    tried, converges = [], cutting_plane._converges

    def watched(planes, known, inexact, finest, sweeps):
        tried.append((sweeps, converges(planes, known, inexact, finest, sweeps)))
        return tried[-1][1]

    monkeypatch.setattr(cutting_plane, "_converges", watched)
    problem = problems.classes(0, strength=0.01)
    last = states(CuttingPlane(1e-6, level=1, sweeps=10), problem, problem.center)[-1]
    assert (10, False) in tried
    assert all(tried[i + 1] == (100, True) for i in range(len(tried)) if tried[i] == (10, False))
    assert not last.trouble
    assert last.duality.gap <= 1e-6


def test_numbers_too_large_are_trouble():
    problem = problems.hinges(0)
    huge = dataclasses.replace(problem, v=problem.v * 1e200)
    with np.errstate(all="ignore"):
        last = states(CuttingPlane(), huge, problem.center)[-1]
    assert last.is_done
    assert "scale the features" in last.trouble
    assert np.array_equal(last.theta, problem.center)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_start_that_is_not_finite_is_named(bad):
    problem = problems.hinges(0)
    problem.v[3, 1, 2] = bad
    with np.errstate(all="ignore"):
        state = CuttingPlane().init(problem, np.ones(5), rng())
    assert state.is_done
    assert "not finite at the start" in state.trouble


def test_a_risk_that_ceases_to_be_finite_is_named():
    class Cliff(problems.Maxima):
        def planes(self, theta, parts):
            offsets, normals = super().planes(theta, parts)
            return offsets + (np.nan if np.any(theta) else 0.0), normals

    problem = problems.hinges(0)
    cliff = Cliff(problem.strength, problem.center, b=problem.b, v=problem.v)
    history = states(CuttingPlane(), cliff, problem.center)
    assert "too large in step 1" in history[-1].trouble
    assert np.array_equal(history[-1].theta, problem.center)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tolerance": -1.0}, "tolerance"),
        ({"tolerance": np.nan}, "tolerance"),
        ({"level": 0.0}, "level must be above 0"),
        ({"level": 1.5}, "level must be above 0"),
        ({"inexact": 1.0}, "inexact between 0 and 1"),
        ({"keep": 0}, "must be at least 1"),
        ({"batch": 0}, "must be at least 1"),
        ({"sweeps": 0}, "must be at least 1"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(SettingError, match=message):
        CuttingPlane(**settings)
