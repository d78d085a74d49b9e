"""The regularized risk of large-margin methods: its planes lie below it, touch it, and add up to its slope."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

import exactrank as er
from exactrank.learning.objectives.losses import PairHinge
from exactrank.learning.objectives.regularized_risk import RampRisk, RegularizedRisk
from exactrank.learning.objectives.structured import Structured
from exactrank.models.architecture import LinearModel
from tests.rankers.test_rankers import rows

MEASURE = er.parse_measure("nDCG@3")
LOSSES = {"structured": Structured(MEASURE), "hinge": PairHinge("hinge"), "squared hinge": PairHinge()}
SEEDS = st.integers(0, 1000)


def data_of(seed, weights=None):
    X, y, qid = rows(queries=5, documents=6, seed=seed)
    return er.RankingData.from_arrays(X * [1, 5, 0.2, 1], y, qid=qid, query_weight=weights)


def thetas(seed, count=1, size=4):
    return np.random.default_rng([seed, 1]).standard_normal((count, size))


def risk_of(loss, data, strength=0.3):
    return RegularizedRisk(loss, LinearModel().on(data), data, strength)


@given(name=st.sampled_from(list(LOSSES)), seed=SEEDS)
def test_planes_touch_their_losses_and_lie_below_them(name, seed):
    data = data_of(seed, weights=[1, 2, 0, 0.5, 1])
    problem, (here, there) = risk_of(LOSSES[name], data), thetas(seed, 2)
    every = np.arange(problem.parts)
    offsets, normals = problem.planes(here, every)
    at_here, at_there = (offsets + normals @ theta for theta in (here, there))
    own_there, own_normals = problem.planes(there, every)
    np.testing.assert_allclose(at_here.sum(), problem.risk(here)[0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(normals.sum(axis=0), problem.risk(here)[1], rtol=1e-9, atol=1e-12)
    assert np.all(at_there <= own_there + own_normals @ there + 1e-9)
    assert not np.any(normals[2])
    assert offsets[2] == 0, "a query without weight has no loss"


@given(seed=SEEDS)
def test_planes_of_some_parts_are_those_of_all(seed):
    problem, (theta,) = risk_of(LOSSES["structured"], data_of(seed)), thetas(seed)
    some = np.array([3, 1])
    for all_of, of_some in zip(problem.planes(theta, np.arange(5)), problem.planes(theta, some), strict=True):
        assert np.array_equal(all_of[some], of_some)


@given(seed=SEEDS)
def test_value_and_slope_are_those_of_risk_and_penalty(seed):
    data, (theta, center) = data_of(seed), thetas(seed, 2)
    problem = RegularizedRisk(PairHinge(), LinearModel().on(data), data, 0.7, center)
    value, slope = problem.value_and_slope(theta)
    risk, steep = problem.risk(theta)
    np.testing.assert_allclose(-value, risk + 0.35 * np.sum((theta - center) ** 2), rtol=1e-12)
    step = 1e-6 * np.eye(4)
    numeric = [(problem.value_and_slope(theta + e)[0] - problem.value_and_slope(theta - e)[0]) / 2e-6 for e in step]
    np.testing.assert_allclose(slope, numeric, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(-slope, steep + 0.7 * (theta - center), rtol=1e-12, atol=1e-12)
    assert problem.at(2.0).value_and_slope(theta)[0] < value
    with pytest.raises(er.errors.IncompatibleError, match="has another center"):
        problem.pass_over(theta, np.arange(5), 0.1)
    assert not np.array_equal(risk_of(PairHinge(), data).pass_over(theta, np.arange(5), 0.1), theta)


@given(seed=SEEDS)
def test_the_convexified_ramp_touches_it_and_lies_above(seed):
    data, (here, there) = data_of(seed), thetas(seed, 2)
    ramp = Structured(MEASURE, bound="ramp")
    problem = RampRisk(ramp, LinearModel().on(data), data, 0.1, here)
    convex = problem.convexify(here)
    np.testing.assert_allclose(convex.risk(here)[0], problem.risk(here)[0], rtol=1e-9)
    np.testing.assert_allclose(convex.risk(here)[1], problem.risk(here)[1], rtol=1e-9, atol=1e-12)
    assert problem.risk(there)[0] <= convex.risk(there)[0] + 1e-9
    assert (convex.strength, convex.center is here) == (0.1, True)


@pytest.mark.parametrize("measure", [MEASURE, er.measures.AP(), er.measures.RR()], ids=str)
@given(seed=SEEDS)
def test_the_ramp_is_one_convex_function_less_another(measure, seed):
    data, (here, there) = data_of(seed), thetas(seed, 2)
    data = replace(data, query_weight=np.arange(data.n_queries) + 0.5)
    problem = RampRisk(Structured(measure, bound="ramp"), LinearModel().on(data), data, 0.1, here)
    (f, f_slope), (h, h_slope) = problem.split(here)
    risk, slope = problem.risk(here)
    np.testing.assert_allclose((f - h, *(f_slope - h_slope)), (risk, *slope), rtol=1e-9, atol=1e-12)
    for (value, steep), (other, _) in zip(problem.split(here), problem.split(there), strict=True):
        assert other >= value + steep @ (there - here) - 1e-9
    weight = np.repeat(data.weights / data.weights.sum(), data.sizes)
    scores = problem.architecture.scores(here, data.X, 1)
    coefficients = Structured(measure).separation(data).coefficients(scores, data.indptr, None)
    np.testing.assert_allclose(h, (weight * coefficients) @ scores, rtol=1e-6, atol=1e-9)
    assert h >= problem.split(there)[1][1] @ here - 1e-9  # no other ranking has more
