"""SPSA and FDSA on functions that have nothing to do with ranking, then on measures, whose values are asked for many at once."""

import itertools
import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as er
from exactrank._support.serialize import from_record, to_record
from exactrank.learning.objectives.lambdas import Lambdas
from exactrank.learning.objectives.measured import Measured
from exactrank.learning.objectives.parametric import Parametric
from exactrank.learning.optimizers.approximation import (
    FDSA,
    LOOKS,
    SHARE,
    SPSA,
    EvaluationCounter,
    Gains,
    Surroundings,
    signs,
    simultaneous,
)
from exactrank.models.architecture import Architecture, LinearModel, form_of
from tests.reference import stochastic as reference
from tests.strategies import MEASURES

SEEDS = st.integers(0, 1000)
BOTH = pytest.mark.parametrize("method", [SPSA(2), SPSA(6), FDSA()], ids=["spsa:2", "spsa:6", "fdsa"])


class Values:
    """A problem that has only ``value``, and counts."""

    def __init__(self, f):
        self.f, self.asked = f, 0

    def value(self, theta):
        self.asked += 1
        return self.f(theta)


class AtOnce(Values):
    def values(self, thetas):
        self.asked += len(thetas)
        return np.array([self.f(theta) for theta in thetas])


class ByCoordinate(AtOnce):
    def differences(self, theta, c):
        self.asked += 2 * len(theta)
        return 2 * c * reference.finite_difference(self.f, theta, c)


def quadratic(d, seed, condition=1.0):
    """A concave quadratic with its slope; its curvatures lie between 1 / condition and 1."""
    rng = np.random.default_rng(seed)
    turned = np.linalg.qr(rng.standard_normal((d, d)))[0]
    curvature = turned @ np.diag(np.geomspace(1.0, 1.0 / condition, d)) @ turned.T
    peak = rng.standard_normal(d)
    return lambda x: -0.5 * float((x - peak) @ curvature @ (x - peak)), lambda x: curvature @ (peak - x)


def banana(x):
    """Rosenbrock's function, upside down: a bent ridge with its top, 0, at 1."""
    return -float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))


def run(method, problem, theta, steps, seed=0):
    states = [method.init(problem, theta, np.random.default_rng(seed))]
    for _ in range(steps):
        states.append(method.step(problem, states[-1]))
    return states


@given(st.integers(1, 6), SEEDS, st.floats(1e-3, 10))
def test_over_all_perturbations_the_estimate_is_the_slope(d, seed, c):
    f, slope = quadratic(d, seed)
    theta = np.random.default_rng(seed + 1).standard_normal(d)
    every = np.array(list(itertools.product([-1.0, 1.0], repeat=d)))
    np.testing.assert_allclose(simultaneous(EvaluationCounter(Values(f)), theta, c, every), slope(theta), rtol=1e-9, atol=1e-9 / c)


@pytest.mark.parametrize("evaluations", [2, 8])
def test_over_many_draws_the_estimate_is_the_slope(evaluations):
    f, slope = quadratic(6, seed=3)
    theta, method = np.ones(6), SPSA(evaluations, a0=51.0, c0=0.3)  # so that the first step is the estimate
    start = method.init(Values(f), theta, np.random.default_rng(0))
    drawn = []
    for seed in range(4000 // evaluations):
        state = replace(start, generator=np.random.default_rng(seed).bit_generator.state)
        drawn.append(method.step(Values(f), state).theta - theta)
    error = np.std(drawn, axis=0) / np.sqrt(len(drawn))
    assert np.all(np.abs(np.mean(drawn, axis=0) - slope(theta)) < 4 * error)
    assert np.all(error < 0.2)
    # Averaging F / 2 estimates, each with a variance of |slope|^2 - slope_i^2, divides the variance by as much.
    np.testing.assert_allclose(np.var(drawn, axis=0) * evaluations / 2, slope(theta) @ slope(theta) - slope(theta) ** 2, rtol=0.25)


@given(st.integers(1, 5), SEEDS, st.sampled_from([2, 4, 6]), st.floats(0.1, 5), st.floats(0.01, 2))
def test_the_steps_are_those_of_the_slow_twin(d, seed, evaluations, a0, c0):
    f, _ = quadratic(d, seed)
    rng = np.random.default_rng(seed)

    def simultaneous(f, theta, c):
        return reference.simultaneous(f, theta, c, 2.0 * rng.integers(0, 2, (evaluations // 2, d)) - 1)

    settings = {"a0": a0, "c0": c0, "A": 20.0, "alpha": 0.7, "gamma": 0.2}
    for method, estimate in ((SPSA(evaluations, **settings), simultaneous), (FDSA(**settings), reference.finite_difference)):
        theirs = reference.path(f, np.ones(d), estimate, steps=5, **settings)
        for kind in (Values, AtOnce, ByCoordinate):
            ours = run(method, kind(f), np.ones(d), 5, seed)
            np.testing.assert_allclose([state.theta for state in ours[1:]], theirs, rtol=1e-9, atol=1e-12)
            assert [state.value for state in ours] == [f(state.theta) for state in ours]
            assert [state.steps for state in ours] == list(range(6))


@BOTH
@pytest.mark.parametrize("kind", [Values, AtOnce, ByCoordinate])
@pytest.mark.parametrize("given_gains", [{}, {"a0": 1.0}, {"c0": 0.1}, {"a0": 1.0, "c0": 0.1}])
def test_every_value_that_is_asked_for_is_counted(method, kind, given_gains):
    problem, d = kind(quadratic(7, seed=0)[0]), 7
    states = run(replace(method, **given_gains), problem, np.ones(d), 3)
    assert problem.asked == states[-1].evaluations
    a_step = (2 * d if isinstance(method, FDSA) else method.evaluations) + 1
    assert np.diff([state.evaluations for state in states]).tolist() == [a_step] * 3
    if len(given_gains) == 2:
        assert states[0].evaluations == 1
    assert all(getattr(states[-1].gains, name) == value for name, value in given_gains.items())


@BOTH
@pytest.mark.parametrize("away", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("height", [1e-6, 1e6])
@pytest.mark.parametrize("start", [0.0, 1.0])
def test_quadratics_of_any_scale_are_climbed_with_gains_that_choose_themselves(method, away, height, start):
    f, _ = quadratic(8, seed=5)
    states = run(method, Values(lambda x: height * f((x - start) / away)), np.full(8, start), 120)
    assert states[-1].value > 1e-3 * states[0].value
    assert states[0].evaluations < 500


@BOTH
@given(seed=SEEDS, stretch=st.integers(-20, 20), lift=st.integers(-20, 20))
@settings(max_examples=10)
def test_units_do_not_matter(method, seed, stretch, lift):
    """Powers of two lose no digit, so the same path is found to the bit."""
    f, _ = quadratic(4, seed, condition=30.0)
    theirs = run(method, Values(f), np.ones(4), 10, seed)
    scaled = run(method, Values(lambda x: f(x * 2.0**-stretch) * 2.0**lift), np.full(4, 2.0**stretch), 10, seed)
    for ours, other in zip(scaled, theirs, strict=True):
        assert np.array_equal(ours.theta, other.theta * 2.0**stretch)
        assert ours.value == other.value * 2.0**lift


@BOTH
def test_hard_functions_are_climbed_to_some_extent(method):
    f, _ = quadratic(10, seed=1, condition=100.0)
    long = run(method, Values(f), np.zeros(10), 600)
    assert long[-1].value > 0.05 * long[0].value
    bent = run(method, Values(banana), np.array([-0.5, -0.5]), 1000)
    assert bent[0].value == -58.5
    assert bent[-1].value > -2.0


@BOTH
def test_a_step_far_away_is_found(method):
    """Nothing changes but at 0, three quarters of the way further than the first look."""
    states = run(method, Values(lambda x: float(x[0] < 0)), np.array([1.0]), 60)
    assert (states[0].value, states[-1].value) == (0.0, 1.0)


@BOTH
def test_where_nothing_moves_nothing_moves(method):
    states = run(method, Values(lambda x: 3.0), np.ones(3), 4)
    assert all(np.array_equal(state.theta, np.ones(3)) for state in states)
    assert 0 < states[0].gains.a0 < np.inf


def test_looks_are_long_enough_when_half_of_them_see_something():
    """Steps of signs that differ move nothing here, and others see that all is bent."""
    for seed in range(20):
        counted, rng = EvaluationCounter(Values(lambda theta: theta.sum() + 10 * theta.sum() ** 2)), np.random.default_rng(seed)
        seen = np.count_nonzero(signs(np.random.default_rng(seed), LOOKS, 2).sum(axis=1))
        length = Surroundings(counted, np.zeros(2), 0.0).length(rng)
        assert (length == SHARE) == (2 * seen >= LOOKS)


@BOTH
def test_first_steps_on_a_plane_are_as_long_as_the_estimate_looks(method):
    """So many doublings that only the length is left to go by."""
    first, second = run(method, Values(lambda x: float(np.sum(x))), np.full(4, 2.0**-20), 1)
    reach = first.gains.c0 * (1 if isinstance(method, FDSA) else 2)
    assert 0.1 * reach < np.linalg.norm(second.theta - first.theta) < 2.1 * reach
    assert second.value > first.value


@BOTH
def test_a_state_taken_up_again_goes_on_the_same_way(method):
    f, _ = quadratic(5, seed=2)
    whole = run(method, Values(f), np.ones(5), 8)
    state = from_record(json.loads(json.dumps(to_record(run(method, Values(f), np.ones(5), 3)[-1]))), "here")
    for theirs in whole[4:]:
        state = method.step(Values(f), state)
        assert np.array_equal(state.theta, theirs.theta)
        assert (state.value, state.evaluations, state.generator) == (theirs.value, theirs.evaluations, theirs.generator)
    other = run(method, Values(f), np.ones(5), 8, seed=1)[-1]
    assert np.array_equal(other.theta, whole[-1].theta) == isinstance(method, FDSA), "only FDSA leaves nothing to chance"


@BOTH
def test_a_run_that_diverges_says_so(method):
    """Where values are no longer numbers, and where rounding swallows the perturbations."""
    f, _ = quadratic(5, seed=2)
    for message in (f, lambda x: f(x) if np.max(np.abs(x)) < 1e9 else -np.inf):
        last = run(replace(method, a0=1e8, c0=0.1), Values(message), np.ones(5), 20)[-1]
        assert last.is_done
        assert "a0=1e+08 diverged in step" in last.trouble
        assert "use a smaller a0" in last.trouble
        assert last.value == message(last.theta) > -np.inf


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"evaluations": 3}, "evaluations=3 is not even: an estimate takes two; use 2"),
        ({"evaluations": 0}, "evaluations=0 is not even|evaluations=0 .* take 2"),
        ({"a0": 0.0}, "a0 must be a number above 0, or None for an automatic choice; got 0.0"),
        ({"a0": float("nan")}, "a0 must be a number above 0"),
        ({"c0": -0.1}, "c0 must be a number above 0, or None for an automatic choice; got -0.1"),
        ({"c0": float("inf")}, "c0 must be a number above 0"),
        ({"A": -1.0}, "A must be a number of at least 0, got -1"),
        ({"alpha": float("nan")}, "alpha must be a number of at least 0"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    for method in (SPSA, FDSA) if "evaluations" not in settings else (SPSA,):
        with pytest.raises(er.errors.SettingError, match=message):
            method(**settings)


def test_gains_fall_as_published():
    gains = Gains(a0=3.0, c0=0.5, A=50.0, alpha=0.602, gamma=0.101)
    assert [gains.a(k) for k in (1, 32)] == [3.0 / 51.0, 3.0 / (50.0 + 32.0**0.602)]
    assert [gains.c(k) for k in (1, 32)] == [0.5, 0.5 / 32.0**0.101]


# ---- measures ----


def judged(seed=0, queries=30, documents=9, features=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((queries * documents, features)).astype(np.float32)
    y = np.digitize(X @ np.linspace(-1.0, 1.5, features) + 0.3 * rng.standard_normal(len(X)), [0.5, 1.5, 2.5])
    return er.RankingData.from_arrays(X, y, group=[documents] * queries)


@st.composite
def tied(draw):
    """(data, architecture, theta) of small whole numbers and scales that are powers of two, so that nothing is rounded.

    Some scales are so large that their features are lost in single precision, as ``ties='docid'`` compares scores.
    """
    rng = np.random.default_rng(draw(SEEDS))
    group, features = rng.integers(1, 9, 4), draw(st.integers(1, 20))
    X, y = rng.integers(-1, 2, (group.sum(), features)), rng.integers(0, 5, group.sum())
    X[: group[0]] = 1  # a query whose documents all tie
    docid = rng.permutation(group.sum()).astype(str)
    weight = rng.random(4) + 0.1 if draw(st.booleans()) else None
    data = er.RankingData.from_arrays(X, y, group=group, docid=docid, query_weight=weight)
    architecture = Architecture(np.zeros(features), 2.0 ** rng.choice([-2, -1, 0, 1, 30], features), ())
    return data, architecture, rng.integers(-2, 3, features).astype(float)


def ways_to_break_ties(measure):
    return [measure, replace(measure, ties="docid")]


@given(tied(), MEASURES, SEEDS, st.sampled_from([None, 3]))
def test_the_value_is_the_evaluation_to_the_bit(drawn, measure, seed, hidden):
    data, _, _ = drawn
    architecture = form_of(hidden).on(data)
    thetas = np.random.default_rng(seed).integers(-2, 3, (11, architecture.size)).astype(float)
    for chosen in ways_to_break_ties(measure):
        theirs = [er.evaluate(data, architecture.at(theta).score(data.X), chosen).means[str(chosen)] for theta in thetas]
        problem = Measured(chosen.over(data), architecture)
        if not np.all(np.isfinite(theirs)):
            with pytest.raises(er.errors.DataError, match="no query counts"):
                problem.value(thetas[0])
            continue
        assert [problem.value(theta) for theta in thetas] == theirs
        assert problem.values(thetas).tolist() == theirs


@given(tied(), MEASURES, st.sampled_from(["input", "pessimistic", "expected", "docid"]))
def test_what_is_reported_comes_from_the_ranking_of_the_last_value(drawn, measure, ties):
    data, linear, theta = drawn
    over, scored = replace(measure, empty=0).over(data), []
    asked = over.measure.on(data)
    counting = SimpleNamespace(score=lambda *arguments: scored.append(1) or linear.score(*arguments))
    problem, elsewhere = Measured(over.with_ties(ties), counting, over), -theta - 1
    there, here = (asked.mean(linear.scores(point, data.X, None)) for point in (elsewhere, theta))
    assert problem.value(theta) == asked.with_ties(ties).mean(linear.scores(theta, data.X, None))
    assert (problem.reported_value(theta), len(scored)) == (here, 1)
    assert (problem.reported_value(elsewhere), len(scored)) == (there, 2)
    assert (problem.reported_value(theta), Measured(over, linear).reported_value(theta)) == (here, here)


@given(tied(), MEASURES, st.sampled_from([0.25, 1.0, 2.0]))
def test_differences_are_those_of_the_slow_twin(drawn, measure, c):
    """Ties included; features that are constant within a query too."""
    data, architecture, theta = drawn
    for chosen in ways_to_break_ties(measure):
        problem = Measured(chosen.over(data), architecture)
        try:
            theirs = 2 * c * reference.finite_difference(problem.value, theta, c)
        except er.errors.DataError:
            with pytest.raises(er.errors.DataError, match="no query counts"):
                problem.differences(theta, c)
            continue
        np.testing.assert_allclose(problem.differences(theta, c), theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("hidden", [None, 2])
def test_differences_of_real_features(hidden):
    data = judged(queries=12, documents=40)
    architecture = form_of(hidden).on(data)
    problem, theta = Measured(er.measures.NDCG(k=5).over(data), architecture), architecture.initial(np.random.default_rng(0))
    theirs = 0.2 * reference.finite_difference(problem.value, theta, 0.1)
    np.testing.assert_allclose(problem.differences(theta, 0.1), theirs, rtol=0, atol=1e-12)
    assert np.any(theirs != 0)


def test_scores_that_are_no_numbers_are_refused():
    data = judged()
    problem = Measured(er.measures.NDCG(k=5).over(data), LinearModel().on(data))
    for ask in (problem.value, lambda theta: problem.values(theta[None]), lambda theta: problem.differences(theta, 1.0)):
        with pytest.raises(er.errors.DataError):
            ask(np.full(4, 1e308))


@BOTH
def test_threads_change_no_bit(method):
    data = judged(queries=900, documents=40)  # more than two blocks of documents
    architecture = LinearModel().on(data)
    ours, theirs = (
        run(
            method,
            Measured(er.measures.NDCG(k=5).over(data, threads=threads), architecture),
            architecture.initial(np.random.default_rng(0)),
            3,
        )[-1]
        for threads in (1, 2)
    )
    assert np.array_equal(ours.theta, theirs.theta)
    assert (ours.value, ours.gains) == (theirs.value, theirs.gains)


@BOTH
@pytest.mark.parametrize("hidden", [None, 3])
def test_measures_are_climbed(method, hidden):
    data = judged()
    architecture = form_of(hidden).on(data)
    states = run(method, Measured(er.measures.NDCG(k=5).over(data), architecture), architecture.initial(np.random.default_rng(1)), 120)
    assert states[0].value < 0.75
    assert states[-1].value > 0.93


@BOTH
def test_the_cross_entropy_of_pairs_is_climbed(method):
    """As Yue & Burges do to compare the two: a smooth function that has only values to give."""
    data = judged()
    problem = Parametric(Lambdas(), LinearModel().on(data), data)
    states = run(method, Values(problem.value), np.zeros(4), 150)
    assert states[-1].value > 0.4 * states[0].value
    assert np.max(np.abs(problem.value_and_slope(states[-1].theta)[1])) < 0.2 * np.max(np.abs(problem.value_and_slope(np.zeros(4))[1]))


# ---- the ranker ----


@pytest.mark.parametrize(
    "settings", [{"solver": "fdsa", "max_iter": 15}, {"hidden": 3, "max_iter": 80}, {"start": "ridge", "restarts": 2, "max_iter": 20}]
)
def test_what_the_ranker_says_of_its_model_is_true(settings):
    data, valid = judged(queries=60), judged(seed=1)
    ranker = er.SPSARank("nDCG@5", **settings).fit(data, valid=valid)
    assert ranker.model_.training["value"] == ranker.score(data)
    assert ranker.model_.training["valid"] == ranker.score(valid) > 0.9
    assert ranker.model_.training["steps"] == settings["max_iter"] * settings.get("restarts", 1)


def test_ridge_is_where_it_says_that_it_starts():
    data = judged(queries=60)
    ridge = er.Ridge("nDCG@5").fit(data).score(data)
    first = er.SPSARank("nDCG@5", start="ridge", max_iter=1).fit(data).history_[0].value
    assert first == pytest.approx(ridge, abs=0.01)
    assert first > er.SPSARank("nDCG@5", max_iter=1).fit(data).history_[0].value + 0.1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"solver": "cmaes"}, 'solver=\'cmaes\' is not "spsa" or "fdsa"'),
        ({"max_iter": 0}, "max_iter=0 is out of range; give a whole number of at least 1, or None"),
        ({"evaluations": 5}, "evaluations=5 is not even"),
        ({"evaluations": 8, "solver": "fdsa"}, "evaluations=8 has no effect with solver='fdsa'"),
        ({"hidden": 2, "start": "ridge"}, "start='ridge' has no effect with hidden=2; leave it out, or give hidden=None"),
    ],
)
def test_settings_of_the_ranker_are_checked(settings, message):
    with pytest.raises(er.errors.SettingError, match=message):
        er.SPSARank(**settings).fit(judged())
