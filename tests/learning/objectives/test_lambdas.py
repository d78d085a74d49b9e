"""Lambda functions: native forces against pairs one by one, of every measure, and functions that users write."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, strategies as st

import exactrank as er
from exactrank.errors import SettingError
from exactrank.learning.objectives.lambdas import FiniteDifference, Lambdas, SampledLambdas
from exactrank.learning.objectives.own_lambdas import DocumentForces, PairForces
from exactrank.learning.objectives.score_space import slopes
from tests.reference import lambdas as reference
from tests.strategies import GRADES, MEASURES

LINKS = st.sampled_from(["logistic", "step", "spring"])
SCORES = st.one_of(st.sampled_from([-1.0, 0.0, 0.5, 1.0]), st.floats(-1e3, 1e3), st.floats(-1e6, 1e6))


@st.composite
def scored_query(draw, most=12):
    rows = draw(st.lists(st.tuples(GRADES, SCORES), min_size=1, max_size=most))
    y, s = np.array(rows, float).T
    return y, s


def one_query(y):
    return er.RankingData.from_arrays(None, y, group=[len(y)])


LIMITS = st.fixed_dictionaries(
    {"neighbors": st.sampled_from([None, 1, 3]), "truncation": st.sampled_from([None, 1, 4]), "near": st.sampled_from([None, 0.01, 2.0])}
)


@given(scored_query(), MEASURES, LINKS, st.sampled_from([0.0, 0.3, 2.0]), LIMITS)
def test_forces_are_those_of_pairs_one_by_one(query, measure, link, margin, limits):
    y, s = query
    ours = slopes(one_query(y), s, Lambdas(measure, link, margin, **limits))
    force, curvature, _ = reference.lambdas(y, s, measure.swap_deltas, link, margin, **limits)
    size = max(1.0, np.abs(force).max())
    assert ours.slope == pytest.approx(force, abs=1e-11 * size)
    assert ours.curvature == pytest.approx(curvature, abs=1e-11 * size)
    assert ours.slope.sum() == pytest.approx(0, abs=1e-10 * size)
    strict = replace(measure, ties="pessimistic", empty=0 if measure.empty == "skip" else measure.empty)
    assert ours.values[0] == pytest.approx(er.evaluate(one_query(y), s, strict).means[str(strict)], abs=1e-12)


@given(scored_query(30), st.one_of(st.none(), MEASURES), LINKS, st.sampled_from([0.3, 2.0]), LIMITS)
def test_normalized_forces_are_scaled_by_the_size_of_all(query, measure, link, margin, limits):
    (y, s), limits = query, limits if measure is not None else limits | {"near": None}
    ours, plain = (slopes(one_query(y), s, Lambdas(measure, link, margin, **limits, normalize=each)) for each in (True, False))
    deltas = reference.unit_deltas if measure is None else measure.swap_deltas
    factor = reference.normalizer(pull[2] for pull in reference.pulls(y, s, deltas, link, margin, **limits))
    assert ours.slope == pytest.approx(factor * plain.slope, rel=1e-11, abs=1e-300)
    assert ours.curvature == pytest.approx(factor * plain.curvature, rel=1e-11, abs=1e-300)
    assert ours.values.tobytes() == plain.values.tobytes()
    assert not Lambdas(measure, normalize=True).conservative


@given(scored_query(), st.one_of(st.none(), MEASURES), st.sampled_from([0.0, 0.5, 3.0]))
def test_score_l2_is_the_slope_of_a_sum_of_squares(query, measure, strength):
    """For every kind of lambda function: those of pairs, over random rankings, of finite differences, and of functions in Python."""
    (y, s), any_measure = query, measure or er.measures.NDCG()
    functions = [
        Lambdas(measure),
        SampledLambdas(measure),
        FiniteDifference(any_measure),
        PairForces(lambda pairs: pairs.delta, any_measure),
        DocumentForces(lambda query: 0 * query.s, any_measure),
    ]
    for function in functions:
        plain, drawn = (slopes(one_query(y), s, replace(function, score_l2=each)) for each in (0.0, strength))
        size = max(1.0, np.abs(plain.slope).max(), strength * np.abs(s).max())
        assert drawn.slope == pytest.approx(plain.slope - strength * s, abs=1e-12 * size)
        assert drawn.curvature == pytest.approx(plain.curvature + strength, rel=1e-12)
        assert drawn.values[0] == pytest.approx(plain.values[0] - strength / 2 * np.sum(s**2), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("ranker", [partial(er.LambdaRank, start="random"), partial(er.LambdaMART, bags=0)])
def test_rankers_draw_scores_to_zero(ranker):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 3, 200)
    plain, drawn = (ranker("nDCG", score_l2=each, seed=1).fit(X, y, group=[10] * 20).predict(X) for each in (0.0, 50.0))
    assert np.std(drawn) < 0.5 * np.std(plain)
    with pytest.raises(SettingError, match="score_l2"):
        ranker("nDCG", lambdas=Lambdas(), score_l2=1.0).fit(X, y, group=[10] * 20)


EACH_FAMILY = [
    "nDCG",
    "nDCG@3",
    "MeanNDCG",
    "DCG@4",
    "P@3",
    "R@3",
    "RBP",
    "AP",
    "AP@4",
    "ERR@5",
    "RR",
    "WTA",
    "Bpref",
    "PairwiseCorrect",
    "AUC",
]


@pytest.mark.parametrize("name", EACH_FAMILY)
def test_every_family_weighs_pairs_by_its_swaps(name):
    measure, rng = er.parse_measure(name), np.random.default_rng(0)
    for _ in range(40):
        y, s = rng.integers(-1, 4, 14).astype(float), rng.standard_normal(14)
        force, _, _ = reference.lambdas(y, s, measure.swap_deltas)
        assert slopes(one_query(y), s, Lambdas(measure)).slope == pytest.approx(force, abs=1e-12)


@given(scored_query(), LINKS, st.sampled_from([0.0, 0.3, 2.0]), st.sampled_from([None, 1, 3]))
def test_unit_weights_have_the_value_of_their_cost(query, link, margin, neighbors):
    y, s = query
    ours = slopes(one_query(y), s, Lambdas(None, link, margin, neighbors))
    force, curvature, cost = reference.lambdas(y, s, reference.unit_deltas, link, margin, neighbors)
    size = max(1.0, np.abs(force).max())
    assert ours.slope == pytest.approx(force, abs=1e-11 * size)
    assert ours.curvature == pytest.approx(curvature, abs=1e-11 * size)
    assert -ours.values[0] == pytest.approx(cost, rel=1e-12, abs=1e-12)


def test_long_lists_have_more_factors_than_a_product_holds():
    """One good document above 9,000 others, each of which doubles a product of the cost, nearly."""
    y, s = np.zeros(9001), -1e-7 * np.arange(9001)
    y[0] = 1
    ours = slopes(one_query(y), s, Lambdas())
    assert -ours.values[0] == pytest.approx(np.logaddexp(0, s[1:] - s[0]).sum(), rel=1e-12)
    assert ours.slope[1:] == pytest.approx(-1 / (1 + np.exp(s[0] - s[1:])), rel=1e-12)
    assert ours.slope[0] == pytest.approx(-ours.slope[1:].sum(), rel=1e-12)


def test_equation_nine_by_hand():
    """Burges, Ragno & Le (2006), eq. 9: three documents of grades 0, 2, 1 in this order of scores."""
    s, y = np.array([2.0, 1.0, 0.0]), np.array([0.0, 2.0, 1.0])
    N = 1 / (3 / math.log2(2) + 1 / math.log2(3))
    d = [1 / math.log2(2), 1 / math.log2(3), 1 / math.log2(4)]

    def force(i, j):
        """What pulls the better document i up, at positions i and j."""
        return N / (1 + math.exp(s[i] - s[j])) * (2 ** y[i] - 2 ** y[j]) * abs(d[i] - d[j])

    up = [-force(1, 0) - force(2, 0), force(1, 0) + force(1, 2), force(2, 0) - force(1, 2)]
    assert slopes(one_query(y), s, Lambdas(er.measures.NDCG())).slope == pytest.approx(up, rel=1e-14)


@given(scored_query(8), MEASURES, st.sampled_from([0.25, 1.5]))
def test_finite_differences_are_those_of_moved_scores(query, measure, step):
    y, s = query
    s = np.round(s * 4) / 7  # no two scores meet exactly when one is moved by a step
    s = s + 1e-4 * np.arange(len(s))
    strict = replace(measure, ties="pessimistic")
    data = one_query(y)

    def value(scores):
        return float(np.nan_to_num(er.evaluate(data, scores, strict).means[str(strict)]))

    ours = slopes(data, s, FiniteDifference(measure, step))
    assert ours.slope == pytest.approx(reference.finite_difference(y, s, value, step), abs=1e-10)
    assert ours.values[0] == pytest.approx(value(s), abs=1e-12)


def random_data(queries=9, seed=0):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 30, queries)
    data = er.RankingData.from_arrays(None, rng.integers(0, 4, sizes.sum()), group=sizes, query_weight=rng.random(queries) + 0.1)
    return data, rng.standard_normal(sizes.sum())


@pytest.mark.parametrize(
    "objective", [Lambdas(), Lambdas(er.measures.NDCG(k=5)), Lambdas(er.measures.AP()), FiniteDifference(er.measures.ERR())]
)
def test_queries_add_up_with_their_weights_on_any_number_of_threads(objective):
    data, s = random_data()
    first, second = (slopes(data, s, objective, threads) for threads in (1, 2))
    assert first.slope.tobytes() == second.slope.tobytes()
    assert first.values.tobytes() == second.values.tobytes()
    for q, (begin, end) in enumerate(zip(data.indptr[:-1], data.indptr[1:], strict=True)):
        alone = slopes(one_query(data.y[begin:end]), s[begin:end], objective)
        assert first.slope[begin:end] == pytest.approx(data.query_weight[q] * alone.slope, rel=1e-14)
        assert first.values[q] == pytest.approx(data.query_weight[q] * alone.values[0], rel=1e-14)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_scores_that_are_no_numbers_have_no_slope(bad):
    data = one_query([1.0, 0.0, 2.0])
    for objective in (Lambdas(), Lambdas(er.measures.NDCG()), FiniteDifference(er.measures.NDCG())):
        result = slopes(data, np.array([0.0, bad, 1.0]), objective)
        assert np.all(np.isnan(result.slope))
        assert np.isnan(result.values[0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"link": "exponential"}, "'exponential' is not one of"),
        ({"margin": -1.0}, "margin must be"),
        ({"neighbors": 0}, "neighbors must be a whole number of at least 1"),
        ({"truncation": 0}, "truncation must be a whole number of at least 1"),
        ({"near": 0.0}, "near must be a number above 0"),
        ({"near": 0.1, "measure": None}, "needs a measure"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(er.errors.SettingError, match=message):
        Lambdas(**({"measure": er.measures.NDCG()} | settings))
    with pytest.raises(er.errors.SettingError, match="above 0, got 0"):
        FiniteDifference(er.measures.NDCG(), 0.0)


# ---- functions that users write ----


def published(pairs):
    return pairs.delta / (1 + np.exp(pairs.lead))


@given(scored_query(), st.sampled_from([er.measures.NDCG(k=5), er.measures.AP(), er.measures.ERR(), er.measures.Bpref()]))
def test_a_function_of_pairs_can_be_the_published_one(query, measure):
    y, s = np.maximum(query[0], 0.0), np.clip(query[1], -300, 300)  # with grades below 0, documents that bpref does not judge
    ours, theirs = (slopes(one_query(y), s, objective) for objective in (PairForces(published, measure), Lambdas(measure)))
    assert ours.slope == pytest.approx(theirs.slope, abs=1e-11)
    assert ours.values == pytest.approx(theirs.values, abs=1e-12)


def test_a_function_of_pairs_sees_grades_and_ranks():
    seen = []

    def force(pairs):
        seen.append((pairs.better.tolist(), pairs.worse.tolist(), pairs.y_better.tolist(), pairs.y_worse.tolist(), pairs.lead.tolist()))
        return np.ones(len(pairs.better))

    result = slopes(one_query([0.0, 2.0, 1.0]), np.array([1.0, 3.0, 2.0]), PairForces(force, er.measures.NDCG()))
    assert seen == [([0, 0, 1], [1, 2, 2], [2, 2, 1], [1, 0, 0], [1, 2, 1])]
    assert result.slope.tolist() == [-2.0, 2.0, 0.0]


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        (PairForces(lambda pairs: np.ones(5), er.measures.NDCG()), r"gave shape \(5,\); it must give 3 finite numbers, one per pair"),
        (PairForces(lambda pairs: pairs.delta * np.nan, er.measures.NDCG()), "gave values that are not finite"),
        (DocumentForces(lambda query: query.y, er.measures.NDCG()), "sum to 3 over a query of 3 documents, not to 0; subtract their mean"),
        (DocumentForces(lambda query: 1.0, er.measures.NDCG()), r"gave shape \(\); it must give 3 finite numbers, one per document"),
    ],
)
def test_a_function_that_cannot_be_is_named(objective, message):
    data = er.RankingData.from_arrays(None, [0.0, 2.0, 1.0], group=[3])
    with pytest.raises(er.errors.DataError, match=message):
        slopes(data, np.array([1.0, 3.0, 2.0]), objective)


def test_an_error_in_a_function_is_the_callers():
    def broken(pairs):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        slopes(one_query([0.0, 1.0]), np.zeros(2), PairForces(broken, er.measures.NDCG()))


def test_a_function_of_documents_comes_in_ranked_order():
    ranked = DocumentForces(lambda query: query.y - query.y.mean(), er.measures.NDCG())
    assert slopes(one_query([0.0, 2.0, 1.0]), np.array([1.0, 3.0, 2.0]), ranked).slope.tolist() == [-1.0, 1.0, 0.0]


@pytest.mark.parametrize(
    "made",
    [
        er.losses.Lambdas,
        er.losses.SampledLambdas,
        er.losses.FiniteDifference,
        er.losses.SmoothMeasure,
        er.losses.ApproxNDCGLoss,
        er.losses.Structured,
    ],
)
def test_a_measure_is_given_as_text_too(made):
    assert made("nDCG@5") == made(er.measures.NDCG(k=5))
    with pytest.raises(er.errors.MeasureError, match="nDCC"):
        made("nDCC@5")
