"""Fusion of systems: exact search against brute force, certificates, resampling."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import exactrank as er
from exactrank import fuse
from exactrank._core import optimistic
from exactrank.fusion import search
from exactrank.fusion.certificate import certify
from exactrank.fusion.normalize import ABSENT, NORMALIZATIONS, normalize_systems
from exactrank.fusion.preparation import problem_of
from exactrank.fusion.problem import QuerySteps, all_weights
from exactrank.fusion.search import ascend, tune_weights
from tests.fusion.fuse_data import NAMES, random_systems, systems, value_at
from tests.reference import fuse as reference
from tests.reference.profile import profile as slow_profile

# ---- two systems


@settings(max_examples=60)
@given(systems(), st.sampled_from(["nDCG@2", "nDCG", "AP", "RR@3", "ERR@2", "P@2", "nDCG(empty='skip')@3"]), st.booleans())
def test_two_systems_equal_brute_force(data, measure, nonnegative):
    fusion = fuse(data, measure=measure, nonnegative=nonnegative, folds=0, bootstrap=0)
    values, ranked = normalize_systems(data.X, data.indptr, "min-max", "worst")
    square = [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0), (1.0, 0.0)][: 2 if nonnegative else 5]
    best = -math.inf
    for start, end in pairwise(square):
        a, b = (w[0] * values[0] + w[1] * values[1] for w in (start, end))
        theirs = slow_profile(measure, data, np.where(ranked, a, -np.inf), np.where(ranked, b - a, 0.0))
        best = max(best, theirs.best(0.0, 1.0).value)
    assert fusion.optimum == "global"
    assert fusion.value == pytest.approx(best, abs=1e-12)
    assert value_at(data, fusion.weights, measure) == pytest.approx(fusion.value, abs=1e-12)
    assert sum(map(abs, fusion.weights)) == pytest.approx(1)
    assert min(fusion.weights) >= 0 or not nonnegative


@settings(max_examples=30)
@given(systems(), st.sampled_from(list(NORMALIZATIONS)), st.sampled_from(ABSENT))
def test_two_systems_beat_every_point_of_a_grid(data, normalize, missing):
    """Pessimistic about ties, the value at a crossing is no more than beside it, so grid points may be crossings."""
    measure = "nDCG(ties='pessimistic')@3"
    fusion = fuse(data, measure=measure, normalize=normalize, absent=missing, folds=0, bootstrap=0)
    for w in np.linspace(0, 1, 101):
        assert value_at(data, (1 - w, w), measure, normalize=normalize, absent=missing) <= fusion.value + 1e-12


@given(systems())
def test_the_value_holds_all_over_the_interval(data):
    fusion = fuse(data, measure="nDCG@3", folds=0, bootstrap=0)
    (low, high), other = fusion.interval
    assert low <= fusion.weights[0] <= high
    assert other == pytest.approx((1 - high, 1 - low))
    for share in (0.01, 0.5, 0.99):
        w = low + share * (high - low)
        assert value_at(data, (w, 1 - w), "nDCG@3") == pytest.approx(fusion.value, abs=1e-12)


# ---- three systems and more


@settings(max_examples=30)
@given(
    systems(n=3, max_documents=5),
    st.sampled_from(["nDCG@2", "nDCG", "P@2", "R@1", "RBP", "nDCG(ties='expected', empty=1)@3"]),
    st.booleans(),
)
def test_no_weights_beat_the_certified_bound(data, measure, nonnegative):
    fusion = fuse(data, measure=measure, nonnegative=nonnegative, folds=0, bootstrap=0, cells=30)
    known = fusion.certificate
    assert fusion.optimum == "certified"
    assert known is not None
    assert known.lower == pytest.approx(fusion.value, abs=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(60):
        weights = rng.dirichlet(np.ones(3)) * (1 if nonnegative else rng.choice([-1, 1], 3))
        assert value_at(data, weights, measure) <= known.upper + 1e-12
    assert value_at(data, fusion.weights, measure) == pytest.approx(known.lower, abs=1e-12)


@given(systems(n=3, anchored=False, max_documents=6))
def test_the_optimistic_bound_equals_its_definition(data):
    at_vertices, _ = normalize_systems(data.X, data.indptr, "min-max", "worst")
    useful, discounts = np.maximum(data.y, 0.0), 1 / np.log2(np.arange(2, 6))
    theirs = reference.optimistic(at_vertices, data.indptr, useful, discounts)
    for threads in (1, 2):
        np.testing.assert_allclose(optimistic(at_vertices, data.indptr, useful, discounts, threads), theirs, rtol=1e-12)


def test_more_triangles_never_loosen_the_certificate():
    posed = problem_of(random_systems(3, queries=6), er.parse_measure("nDCG@5"), "min-max", "worst")
    start = tune_weights(posed, [posed.data.weights], 0)[0]
    uppers = [certify(posed, start, tolerance=0, cells=cells)[1].upper for cells in (1, 10, 100, 300)]
    assert uppers == sorted(uppers, reverse=True)
    assert uppers[-1] < uppers[0]


def test_a_small_problem_is_solved_to_the_end():
    """One query, one relevant document: once it is known to be first somewhere, nothing is left to find."""
    data = er.RankingData.from_arrays([[3, 1, 1], [1, 3, 1], [1, 1, 3], [2, 2, 2.5]], [0, 0, 0, 1], group=[4], feature_names=NAMES[:3])
    fusion = fuse(data, measure="nDCG@1", folds=0, bootstrap=0)
    assert fusion.certificate is not None
    assert fusion.value == fusion.certificate.upper == 1


@pytest.mark.parametrize("measure", ["AP", "ERR@5", "MeanNDCG@5", "nDCG(ties='docid')@5", "DCG(gain={0: -1, 1: 1, 2: 2})@5"])
def test_measures_without_a_certificate_say_so(measure):
    data = random_systems(3, queries=5)
    data = er.RankingData.from_arrays(data.X, data.y, group=[15] * 5, docid=range(75), feature_names=NAMES[:3])
    fusion = fuse(data, measure=measure, folds=0, bootstrap=0)
    assert (fusion.optimum, fusion.certificate) == ("local", None)


@pytest.mark.parametrize("nonnegative", [True, False])
@pytest.mark.parametrize("n", [3, 4])
def test_no_coordinate_has_anything_better(n, nonnegative):
    posed = problem_of(random_systems(n), er.parse_measure("nDCG@5"), "z-score", "worst", nonnegative)
    weights = tune_weights(posed, [posed.data.weights], 0)[0]
    assert ascend(posed, weights, posed.data.weights).tolist() == weights.tolist()
    assert posed.value(weights, posed.data.weights) >= max(posed.value(w, posed.data.weights) for w in np.eye(n)) - 0.01
    fusion = fuse(random_systems(n), measure="nDCG@5", normalize="z-score", nonnegative=nonnegative, folds=0, bootstrap=0, cells=20)
    for j, (low, high) in enumerate(fusion.interval):
        assert low <= fusion.weights[j] <= high
        others = np.array(fusion.weights)
        others[j] = 0
        for share in (0.1, 0.9):
            w = low + share * (high - low)
            moved = others / np.abs(others).sum() * (1 - abs(w))
            moved[j] = w
            assert value_at(random_systems(n), moved, "nDCG@5", normalize="z-score") == pytest.approx(fusion.value, abs=1e-12)


@pytest.mark.parametrize("n", [3, 4])
def test_a_sample_is_searched_first_where_there_is_much(n, monkeypatch):
    data = random_systems(n, queries=40)
    whole = fuse(data, folds=2, bootstrap=0, cells=1)
    monkeypatch.setattr(search, "SAMPLED_DOCUMENTS", 150)
    posed = problem_of(data, whole.measure, "min-max", "worst")
    queries = search.sample_queries(posed, [posed.data.weights], seed=0)
    assert 1 <= len(queries) < 40
    assert posed.part(queries).per_query(np.ones(n)).tolist() == posed.per_query(np.ones(n))[queries].tolist()
    ours = fuse(data, folds=2, bootstrap=0, cells=1)
    assert ours.value == pytest.approx(whole.value, abs=0.02)
    assert ascend(posed, np.array(ours.weights), posed.data.weights).tolist() == list(ours.weights)


# ---- resampling


@given(systems(max_queries=4), st.sampled_from(["nDCG@2", "AP", "nDCG(empty='skip')@2"]), st.data())
def test_query_steps_add_up_to_the_profile(data, measure, drawn):
    posed = problem_of(data, er.parse_measure(measure), "min-max", "worst")
    counts = np.array(drawn.draw(st.lists(st.integers(0, 3), min_size=data.n_queries, max_size=data.n_queries)), float)
    assume(counts[~np.isnan(posed.per_query(np.ones(2)))].any())
    ((start, end),) = all_weights(2, posed.nonnegative)
    ours, theirs = QuerySteps.of(posed, start, end).sweep(counts), posed.sweep(start, end, counts)
    points = np.random.default_rng(0).random(30)
    np.testing.assert_allclose(ours.steps(points), theirs.steps(points), atol=1e-12)
    np.testing.assert_allclose(ours.steps(theirs.steps.breakpoints), theirs.steps.at, atol=1e-12)
    assert ours.best.value == pytest.approx(theirs.best.value, abs=1e-12)


@given(systems(max_queries=4), st.sampled_from(["nDCG@2", "AP", "nDCG(empty='skip')@2"]), st.data())
def test_the_best_interval_of_reweighted_queries(data, measure, drawn):
    posed = problem_of(data, er.parse_measure(measure), "min-max", "worst")
    counts = np.array(drawn.draw(st.lists(st.integers(0, 3), min_size=data.n_queries, max_size=data.n_queries)), float)
    assume(posed.has_queries(counts))
    steps = QuerySteps.of(posed, *all_weights(2, posed.nonnegative)[0])
    ours, theirs = steps.best(counts), steps.sweep(counts)
    assert ours.value == pytest.approx(theirs.best.value, abs=1e-12)
    assert ours.high - ours.low >= theirs.best.high - theirs.best.low - 1e-12
    inside = theirs.steps.breakpoints[(theirs.steps.breakpoints > ours.low) & (theirs.steps.breakpoints < ours.high)]
    between = (np.concatenate([[ours.low], inside]) + np.concatenate([inside, [ours.high]])) / 2
    np.testing.assert_allclose(theirs.steps(between), ours.value, atol=1e-9)


def test_ties_by_document_id_are_resampled_too():
    data = random_systems(2, queries=6)
    data = er.RankingData.from_arrays(data.X.round(), data.y, group=[15] * 6, docid=range(90), feature_names=NAMES[:2])
    fusion = fuse(data, measure="nDCG(ties='docid')@5", bootstrap=10)
    assert fusion.value == pytest.approx(fusion.sweep.best.value)
    assert fusion.cross_validated <= fusion.value


@pytest.mark.parametrize("n", [2, 3])
def test_cross_validation_never_sees_the_held_out_query(n):
    """Of two queries each wants the system that the other does not, so weights tuned on one fail on the other."""
    X = np.zeros((4, n))
    X[[0, 3], 0] = X[[1, 2], 1] = 1
    data = er.RankingData.from_arrays(X + np.arange(n) * [[0.1], [0.1], [0.1], [0.2]], [1, 0, 1, 0], group=[2, 2], feature_names=NAMES[:n])
    fusion = fuse(data, measure="nDCG@1", folds=2, bootstrap=5)
    assert fusion.cross_validated == 0
    assert fusion.value >= 0.5


@pytest.mark.parametrize("n", [2, 3, 4])
def test_the_same_seed_gives_the_same_result_for_any_threads(n):
    data = random_systems(n, queries=10)
    first, second = (fuse(data, threads=t, seed=3, bootstrap=20, cells=20).to_json() for t in (1, 2))
    assert first == second
    other = fuse(data, threads=1, seed=4, bootstrap=20, cells=20)
    assert other.to_json()["bootstrap_interval"] != first["bootstrap_interval"]


def test_query_weights_count():
    """A query of weight 0 might as well be absent, one of weight 2 be there twice."""
    data = random_systems(2, queries=4)
    weight = np.array([0.0, 1.0, 2.0, 1.0])
    weighted = er.RankingData.from_arrays(data.X, data.y, group=[15] * 4, query_weight=weight, feature_names=NAMES[:2])
    ours = fuse(weighted, folds=0, bootstrap=0)
    theirs = fuse(data.take_queries([1, 2, 2, 3]), folds=0, bootstrap=0)
    assert ours.value == pytest.approx(theirs.value)
    assert ours.weights == pytest.approx(theirs.weights)


def test_intervals_hold_what_they_are_about():
    fusion = fuse(random_systems(2, queries=60), bootstrap=100)
    assert fusion.bootstrap_interval is not None
    for (low, high), weight in zip(fusion.bootstrap_interval, fusion.weights, strict=True):
        assert 0 <= low <= weight <= high <= 1
    for row in fusion.comparison:
        assert row.interval is not None
        assert row.interval[0] < row.mean < row.interval[1]
