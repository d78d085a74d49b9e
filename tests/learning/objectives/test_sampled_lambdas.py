"""Lambda functions over rankings drawn at random: native forces against rankings and pairs one by one, and what the draws must be."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

import exactrank as er
from exactrank.learning.objectives.lambdas import Lambdas, SampledLambdas
from exactrank.learning.objectives.score_space import slopes
from tests.learning.objectives.test_lambdas import LINKS, one_query, random_data, scored_query
from tests.reference import sampled_lambdas as reference
from tests.reference.lambdas import normalizer, pulls, unit_deltas
from tests.strategies import MEASURES

LINKED = LINKS, st.sampled_from([0.0, 0.3, 2.0]), st.sampled_from([None, 1, 3, 9]), st.sampled_from([None, 1, 4])
RULES = st.tuples(*LINKED, st.sampled_from([None, 0.01, 2.0]))
SAMPLINGS = st.tuples(st.integers(1, 4), st.sampled_from([0.0, 0.5, 3.0]), st.integers(0, 2**64 - 1), st.integers(0, 500))


def check(ours, theirs):
    force, curvature, _ = theirs
    size = max(1.0, np.abs(force).max())
    assert ours.slope == pytest.approx(force, abs=1e-11 * size)
    assert ours.curvature == pytest.approx(curvature, abs=1e-11 * size)


@given(scored_query(), MEASURES, RULES, SAMPLINGS)
def test_forces_are_the_mean_over_rankings_one_by_one(query, measure, rule, sampling):
    y, s = query
    ours = slopes(one_query(y), s, SampledLambdas(measure, *rule, *sampling))
    check(ours, reference.sampled(y, s, measure.swap_deltas, rule, sampling))
    assert ours.values == slopes(one_query(y), s, Lambdas(measure)).values


@given(scored_query(), st.tuples(*LINKED, st.none()), SAMPLINGS)
def test_unit_weights_have_the_value_of_their_mean_cost(query, rule, sampling):
    y, s = query
    ours = slopes(one_query(y), s, SampledLambdas(None, *rule, *sampling))
    theirs = reference.sampled(y, s, unit_deltas, rule, sampling)
    check(ours, theirs)
    assert -ours.values[0] == pytest.approx(theirs[2], rel=1e-12, abs=1e-12)


@given(scored_query(), MEASURES, RULES, SAMPLINGS)
def test_normalized_forces_are_scaled_by_the_mean_size_of_all(query, measure, rule, sampling):
    y, s = query
    objective = SampledLambdas(measure, *rule, *sampling)
    ours, plain = (slopes(one_query(y), s, o) for o in (replace(objective, normalize=True), objective))
    samples, noise, *key = sampling
    rankings = [s + noise * reference.draws(len(y), *key, 0, k) for k in range(samples)]
    results = [pull[2] / samples for by in rankings for pull in pulls(y, s, measure.swap_deltas, *rule, ranked_by=by)]
    assert ours.slope == pytest.approx(normalizer(results) * plain.slope, rel=1e-11, abs=1e-300)
    assert ours.curvature == pytest.approx(normalizer(results) * plain.curvature, rel=1e-11, abs=1e-300)


@given(scored_query(), MEASURES, RULES)
def test_without_noise_they_are_lambdas(query, measure, rule):
    y, s = query
    ours, theirs = (slopes(one_query(y), s, o) for o in (SampledLambdas(measure, *rule, samples=1, noise=0.0), Lambdas(measure, *rule)))
    assert ours.slope.tobytes() == theirs.slope.tobytes()
    assert ours.curvature.tobytes() == theirs.curvature.tobytes()


@pytest.mark.parametrize("neighbors", [1, 2, 7, 8, 9, None])
@pytest.mark.parametrize("spread", [1.0, 1e3])
def test_long_lists_have_the_same_forces(neighbors, spread):
    """Close neighbors are taken by distance, others by rows, and scores far apart always by rows."""
    rng, rule, sampling = np.random.default_rng(0), ("logistic", 1.0, neighbors, 30, 0.5), (2, 0.3 * spread, 3, 1)
    y, s = rng.integers(0, 4, 50).astype(float), spread * rng.standard_normal(50)
    measure = er.measures.NDCG(k=40)
    check(slopes(one_query(y), s, SampledLambdas(measure, *rule, *sampling)), reference.sampled(y, s, measure.swap_deltas, rule, sampling))


def test_draws_are_standard_logistic():
    """A constant force on every pair that meets makes the slope of the best of three documents the chance to meet the others."""
    y, s = np.array([2.0, 1.0, 0.0]), np.array([0.3, 0.0, -0.5])
    grid = (np.arange(4000) + 0.5) / 4000
    e, rng = np.log(grid / (1 - grid)), np.random.default_rng(0)
    noisy = s[:, None] + 0.7 * rng.choice(e, (3, 400_000))
    inside = [np.mean((noisy[i] > noisy[j]) != (noisy[i] > noisy[k])) for i, j, k in ((0, 1, 2), (2, 0, 1))]  # then it meets both
    result = slopes(one_query(y), s, SampledLambdas(link="step", margin=9.0, neighbors=1, samples=100_000, noise=0.7)).slope
    assert result[[0, 2]] == pytest.approx([1 + inside[0], -1 - inside[1]], abs=0.01)


def test_every_query_sample_seed_and_number_has_draws_of_its_own():
    y, s = np.tile([0.0, 1.0, 2.0, 1.0, 0.0, 2.0], 2), np.tile(np.linspace(0, 1, 6), 2)
    data, first = er.RankingData.from_arrays(None, y, group=[6, 6]), SampledLambdas(er.measures.NDCG(), samples=1)
    results = [slopes(data, s, o).slope for o in (first, replace(first, seed=1), first.with_draws(1), replace(first, samples=2))]
    halves = [half.tobytes() for slope in results for half in (slope[:6], slope[6:])]
    assert len(set(halves)) == 8
    assert first.with_draws(3) == replace(first, draw=3)
    assert slopes(data, s, first.with_draws(0)).slope.tobytes() == results[0].tobytes()


@pytest.mark.parametrize(
    "objective", [SampledLambdas(), SampledLambdas(er.measures.NDCG(k=5)), SampledLambdas(er.measures.AP(), neighbors=None)]
)
def test_queries_add_up_with_their_weights_on_any_number_of_threads(objective):
    data, s = random_data(3000)
    first, second = (slopes(data, s, objective, threads) for threads in (1, 2))
    assert first.slope.tobytes() == second.slope.tobytes()
    assert first.values.tobytes() == second.values.tobytes()
    plain = er.RankingData.from_arrays(None, data.y, group=data.sizes)
    assert first.slope == pytest.approx(np.repeat(data.query_weight, data.sizes) * slopes(plain, s, objective).slope, rel=1e-14)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_scores_that_are_no_numbers_have_no_slope(bad):
    for objective in (SampledLambdas(), SampledLambdas(er.measures.NDCG())):
        result = slopes(one_query([1.0, 0.0, 2.0]), np.array([0.0, bad, 1.0]), objective)
        assert np.all(np.isnan(result.slope))
        assert np.isnan(result.values[0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"samples": 0}, "samples must be a whole number of at least 1, got 0"),
        ({"noise": -1.0}, "noise must be a number of at least 0, got -1"),
        ({"noise": math.inf}, "noise must be a number of at least 0, got inf"),
        ({"seed": -1}, "seed must be at least 0 and below 2"),
        ({"draw": 2**64}, "draw must be at least 0 and below 2"),
        ({"neighbors": 0}, "neighbors must be a whole number of at least 1"),
        ({"link": "exponential"}, "'exponential' is not one of"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(er.errors.SettingError, match=message):
        SampledLambdas(er.measures.NDCG(), **settings)
