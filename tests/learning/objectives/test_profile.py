"""The exact step function of a measure along a ray, against evaluation itself."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

import exactrank as er
from exactrank.errors import DataError
from exactrank.learning.objectives.step_function import Interval, StepFunction
from tests.reference import profile as reference
from tests.strategies import GRADES, MEASURES

# Where ranking code breaks: parallel and identical lines, many through one point, decimals that are not binary fractions.
GRIDS = [st.integers(-3, 3).map(float), st.integers(-5, 5).map(lambda i: i / 10), st.floats(-10, 10).map(lambda x: round(x, 5))]


@st.composite
def rays(draw, max_documents=7):
    """(data, scores, direction): a few queries whose documents are lines."""
    scores, slopes = draw(st.sampled_from(GRIDS)), draw(st.sampled_from(GRIDS))
    maybe = st.one_of(scores, st.just(-math.inf)) if draw(st.booleans()) else scores
    rows = draw(st.lists(st.tuples(GRADES, maybe, slopes, st.integers(0, 2)), min_size=1, max_size=3 * max_documents))
    y, s, t, qid = (np.array(column, float) for column in zip(*rows, strict=True))
    weight = draw(st.one_of(st.none(), st.just(np.arange(1, 1 + len(set(qid))) / 3)))
    return er.RankingData.from_arrays(None, y, qid=qid, query_weight=weight), s, t


def wide(points):
    """Are the gaps wide enough for rounding of the scores not to matter in the middle of them?"""
    return np.diff(points) > 1e-9 * np.maximum(1, np.abs(points[1:]))


@given(rays(), MEASURES)
def test_equals_evaluation_at_every_crossing_and_between(ray, measure):
    data, s, t = ray
    ours, theirs = er.profile(data, s, t, measure), reference.profile(measure, data, s, t)
    points = theirs.breakpoints
    inside = np.concatenate([points[:1] - 1, ((points[:-1] + points[1:]) / 2)[wide(points)], points[-1:] + 1])
    np.testing.assert_allclose(ours(inside), theirs(inside), atol=1e-12, rtol=0)
    alone = np.concatenate([[True], wide(points)]) & np.concatenate([wide(points), [True]])
    np.testing.assert_allclose(ours(points[alone]), theirs(points[alone]), atol=1e-12, rtol=0)


@given(rays(), MEASURES)
def test_equals_evaluation_at_round_numbers(ray, measure):
    """Where decimals cross, rounding breaks ties in evaluation: the profile must say the same."""
    data, s, t = ray
    ours = er.profile(data, s, t, measure)
    for alpha in (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0):
        theirs = er.evaluate(data, s + alpha * t, [measure]).means[str(measure)]
        np.testing.assert_allclose(ours(alpha), theirs, atol=1e-12, rtol=0)


@given(rays(), MEASURES, st.sampled_from([(0.0, 1.0), (-1.0, 0.5), (0.5, 2.0), (-math.inf, -0.25)]))
def test_a_part_of_the_ray_is_a_part_of_the_function(ray, measure, ends):
    data, s, t = ray
    whole, part = er.profile(data, s, t, measure), er.profile(data, s, t, measure, low=ends[0], high=ends[1])
    inside = whole.breakpoints[(whole.breakpoints >= ends[0]) & (whole.breakpoints <= ends[1])]
    between = (inside[:-1] + inside[1:]) / 2
    for points in (inside, between):
        np.testing.assert_allclose(part(points), whole(points), atol=1e-12, rtol=0)
    assert np.all(part.breakpoints >= ends[0])
    assert np.all(part.breakpoints <= ends[1])


@given(rays(), MEASURES)
def test_does_not_depend_on_threads_and_adds_up_over_queries(ray, measure):
    data, s, t = ray
    first, second = (er.profile(data, s, t, measure, threads=n) for n in (1, 2))
    assert first.breakpoints.tolist() == second.breakpoints.tolist()
    np.testing.assert_array_equal(first.values, second.values)
    if measure.empty == "skip":
        return
    weight = np.ones(data.n_queries) if data.query_weight is None else data.query_weight
    parts = [er.profile(data, s, t, measure, weight=np.eye(data.n_queries)[q]) * (w / weight.sum()) for q, w in enumerate(weight)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    np.testing.assert_allclose(total(first.breakpoints), first.at, atol=1e-12)
    np.testing.assert_allclose(total.values[0], first.values[0], atol=1e-12)
    np.testing.assert_allclose(total.values[-1], first.values[-1], atol=1e-12)


@pytest.mark.parametrize(
    "measure", ["nDCG@10", "nDCG", "AP", "ERR", "RR", "Bpref", "Bpref(rel=3)", "PairwiseCorrect", "RBP", "AP@5", "ERR@3", "MeanNDCG"]
)
def test_long_lists_to_the_last_digit(measure):
    """Thousands of exchanges in a query: rounding must not add up."""
    rng = np.random.default_rng(0)
    n = 150
    data = er.RankingData.from_arrays(None, rng.integers(0, 4, 3 * n), group=[n] * 3)
    s, t = rng.normal(size=3 * n).round(2), rng.normal(size=3 * n).round(2)
    ours = er.profile(data, s, t, measure)
    points = rng.choice(ours.breakpoints[1:-1], 40)
    gaps = np.searchsorted(ours.breakpoints, points)
    between = (ours.breakpoints[gaps] + ours.breakpoints[gaps + 1]) / 2
    for alpha in (*points, *between, -1e6, 1e6):
        assert ours(alpha) == pytest.approx(er.evaluate(data, s + alpha * t, measure).means[measure], abs=1e-12)


@pytest.mark.parametrize("measure", ["nDCG(ties='expected')@1", "ERR(ties='expected')@1", "AP(ties='expected')@2"])
def test_lines_that_coincide_beyond_the_cutoff_count_in_the_mean(measure):
    data = er.RankingData.from_arrays(None, [0, 1, 2, 0], group=[4])
    s, t = np.array([1.0, 1.0, 1.0, 0.0]), np.array([0.0, 0.0, 0.0, 1.0])
    ours = er.profile(data, s, t, measure)
    for alpha in (-1.0, 0.0, 0.5, 1.0, 2.0):
        assert ours(alpha) == pytest.approx(er.evaluate(data, s + alpha * t, measure).means[measure], abs=1e-12)


def test_ties_by_document_id():
    data = er.RankingData.from_arrays(None, [1, 0, 1], qid=[1, 1, 1], docid=["a", "c", "b"])
    s, t = np.array([2.0, 1.0, 0.0]), np.array([0.0, 1.0, 2.0])
    ours = er.profile(data, s, t, "nDCG(ties='docid')@2")
    for alpha in (0.0, 0.5, 1.0, 2.0):
        assert ours(alpha) == er.evaluate(data, s + alpha * t, "nDCG(ties='docid')@2")["nDCG(ties='docid')@2"].mean


@pytest.mark.parametrize(
    ("scores", "direction", "message"),
    [([1.0, np.nan], [0, 1], "scores holds nan"), ([1.0, 0], [0, np.inf], "direction holds inf"), ([1.0], [0, 1], "scores has shape")],
)
def test_bad_rays(scores, direction, message):
    data = er.RankingData.from_arrays(None, [0, 1], qid=[1, 1])
    with pytest.raises(DataError, match=message):
        er.profile(data, scores, direction, "AP")


def test_empty_and_bad_ranges():
    data = er.RankingData.from_arrays(None, [0, 1], qid=[1, 1])
    with pytest.raises(DataError, match="low < high"):
        er.profile(data, [0, 1], [1, 0], "AP", low=1, high=1)
    with pytest.raises(DataError, match="one per query"):
        er.profile(data, [0, 1], [1, 0], "AP", weight=[0.0])


def test_lists_too_long_for_all_pairs(monkeypatch):
    monkeypatch.setattr("exactrank.learning.objectives.line_search.MOST_CROSSING", 2)
    data = er.RankingData.from_arrays(None, [0, 1, 0], group=[3])
    assert er.profile(data, [0, 1, 2], [1, 0, 0], "AP@2").values.max() <= 1
    with pytest.raises(er.errors.IncompatibleError, match="a query has 3 documents"):
        er.profile(data, [0, 1, 2], [1, 0, 0], "AP")


@st.composite
def step_functions(draw):
    points = np.array(sorted(draw(st.sets(st.integers(-8, 8), max_size=5))), float)
    numbers = st.integers(0, 5).map(float)
    values = draw(st.lists(numbers, min_size=len(points) + 1, max_size=len(points) + 1))
    at = draw(st.lists(numbers, min_size=len(points), max_size=len(points)))
    return StepFunction(points, np.array(values), np.array(at))


HALVES = np.arange(-20, 21) / 2


@given(step_functions(), step_functions())
def test_sums_add_values_everywhere(f, g):
    np.testing.assert_array_equal((f + g)(HALVES), f(HALVES) + g(HALVES))
    np.testing.assert_array_equal((2 * f)(HALVES), 2 * f(HALVES))


@given(step_functions(), st.integers(-9, 4), st.integers(1, 9))
def test_the_best_interval_is_the_best(f, low, length):
    best = f.best(low, low + length)
    between = np.arange(low, low + length) + 0.5
    assert best.value == f(between).max()
    assert low <= best.low < best.high <= low + length
    assert f(best.middle()) == best.value
    same = f(np.array([x for x in between if x in best]))
    assert np.all(same == best.value)


def test_unbounded_intervals_have_a_middle():
    assert Interval(-math.inf, math.inf, 0).middle() == 0
    for interval in (Interval(3, math.inf, 0), Interval(-math.inf, -3, 0), Interval(-math.inf, 0, 0), Interval(0, math.inf, 0)):
        assert interval.middle(scale=0.1) in interval


@pytest.mark.parametrize("points", [[], [1.0], [0.0, 1.0, 2.0]])
def test_a_picture_shows_the_values_between_the_breakpoints(points):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    f = StepFunction(np.array(points), np.arange(len(points) + 1.0), np.zeros(len(points)))
    axes = f.plot(low=-1, high=3)
    stairs = axes.patches[0]
    assert stairs.get_data().values.tolist() == f.values.tolist()
    assert stairs.get_data().edges.tolist() == [-1.0, *points, 3.0]
    assert f.plot(ax=axes) is axes
    matplotlib.pyplot.close("all")


def test_false_intervals_are_not_chosen():
    f = StepFunction(np.array([1.0, 1.0 + 2**-50, 2.0]), np.array([0.1, 0.9, 0.5, 0.2]), np.zeros(3))
    assert f.best().value == 0.5


def test_a_step_function_wants_one_value_between_any_two_points():
    with pytest.raises(ValueError, match="2 rising breakpoints need 3 values"):
        StepFunction(np.array([1.0, 0.0]), np.zeros(3), np.zeros(2))


def test_of_values_that_are_equal_but_for_rounding_the_widest_interval_is_best():
    steps = StepFunction(np.array([0.0, 1.0, 2.0, 4.0]), np.array([0.0, 0.5, 0.1, 0.5 - 1e-15, 0.0]), np.zeros(4))
    assert steps.best() == Interval(2.0, 4.0, 0.5 - 1e-15)
    assert steps.best(high=3.0 - 1e-6).low == 0.0
