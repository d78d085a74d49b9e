"""Listwise and smooth losses as functions of scores: against their formulas, and what holds for all of them."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

import exactrank as er
from exactrank import _core
from exactrank.errors import IncompatibleError, SettingError
from exactrank.learning.objectives.losses import ApproxNDCGLoss, ListMLELoss, ListNetLoss, RankCosineLoss, SmoothMeasure
from exactrank.learning.objectives.score_space import slopes
from tests.reference import listwise as reference
from tests.reference.measures import query_value
from tests.strategies import GRADES

K = st.one_of(st.none(), st.integers(1, 4))
GAINS = st.sampled_from(["exp2", "linear"])
NDCGS = st.builds(er.measures.NDCG, k=K, gain=GAINS, short=st.sampled_from(["pad", "zero"]), empty=st.sampled_from([0, 1, "skip"]))
POSITIONAL = st.one_of(
    NDCGS,
    st.builds(er.measures.NDCG, k=K, discount=st.sampled_from(["letor", (1.0, 0.0, 0.5)])),
    st.builds(er.measures.DCG, k=K, gain=GAINS),
    st.builds(er.measures.Precision, k=st.integers(1, 4), norm=st.sampled_from(["cutoff", "list"])),
    st.builds(er.measures.Recall, k=st.integers(1, 4)),
    st.builds(er.measures.RBP, k=K),
)
SMOOTH = st.builds(SmoothMeasure, measure=POSITIONAL, sigma=st.sampled_from([0.1, 1.0, 30.0]))
OBJECTIVES = st.one_of(
    st.builds(ListNetLoss, target=st.sampled_from(["softmax", "gain"])),
    st.builds(ListMLELoss, k=K, seed=st.integers(0, 3)),
    st.builds(RankCosineLoss, consistent=st.booleans()),
    SMOOTH,
    st.builds(ApproxNDCGLoss, measure=NDCGS, alpha=st.sampled_from([1.0, 10.0])),
)
EACH = [
    ListNetLoss(),
    ListNetLoss("gain"),
    ListMLELoss(),
    ListMLELoss(k=3, seed=5),
    RankCosineLoss(),
    RankCosineLoss(consistent=True),
    SmoothMeasure(er.measures.NDCG(k=10), 0.3),
    SmoothMeasure(er.measures.Recall(k=5), 2.0),
    ApproxNDCGLoss(er.measures.NDCG()),
]


@st.composite
def graded(draw, distinct=False, least=1):
    """(y, s) of one query: scores on a grid of quarters, so that sums and shifts of them are exact; grades all different if asked."""
    n = draw(st.integers(least, 6))
    y = draw(st.permutations(range(n))) if distinct else draw(st.lists(GRADES, min_size=n, max_size=n))
    s = draw(st.lists(st.integers(-8, 8), min_size=n, max_size=n))
    return np.array(y, float), np.array(s) / 4


def one_query(y):
    return er.RankingData.from_arrays(None, y, group=[len(y)])


def ask(objective, y, s):
    return slopes(one_query(y), np.array(s, float), objective, threads=1)


def value(objective, y, s):
    return float(ask(objective, y, s).values[0])


def untied(s):
    """The same order, ties broken by steps that no difference of quarters equals."""
    return s + np.arange(len(s)) / 64


@given(graded(), OBJECTIVES)
def test_the_value_is_that_of_the_formula(query, objective):
    ours = value(objective, *query)
    assert any(ours == pytest.approx(theirs, abs=1e-10) for theirs in reference.possible_values(objective, *query))


@pytest.mark.parametrize("n", [7, 8, 9, 16, 33, 500])
@pytest.mark.parametrize("objective", EACH, ids=str)
def test_the_value_of_long_lists_is_that_of_the_formula(objective, n, monkeypatch):
    monkeypatch.setattr(reference, "ideal_dcg", lambda gains: np.sort(gains)[::-1] @ (1 / np.log2(2 + np.arange(len(gains)))))
    rng = np.random.default_rng(n)
    s, y = rng.normal(size=n), rng.permutation(n) / n if isinstance(objective, ListMLELoss) else rng.integers(0, 4, n).astype(float)
    for scale in (1.0, 100.0):
        (theirs,) = reference.possible_values(objective, y, scale * s)
        assert value(objective, y, scale * s) == pytest.approx(theirs, rel=1e-11, abs=1e-11)


def differences(f, s, h=1e-6):
    """Central differences of f, by each score."""
    return np.array([(f(s + h * e) - f(s - h * e)) / (2 * h) for e in np.eye(len(s))])


@given(graded(), OBJECTIVES)
def test_the_slope_is_the_derivative_of_the_value(query, objective):
    y, s = query[0], untied(query[1])
    theirs = differences(lambda moved: value(objective, y, moved), s)
    np.testing.assert_allclose(ask(objective, y, s).slope, theirs, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("objective", EACH, ids=str)
def test_the_slope_of_long_lists_is_the_derivative_of_the_value(objective):
    rng = np.random.default_rng(4)
    y, s = rng.integers(0, 4, 43).astype(float), rng.permutation(43) / 20
    theirs = differences(lambda moved: value(objective, y, moved), s)
    np.testing.assert_allclose(ask(objective, y, s).slope, theirs, atol=1e-6, rtol=1e-6)


@given(graded(), st.one_of(st.builds(ListNetLoss, target=st.sampled_from(["softmax", "gain"])), st.builds(ListMLELoss, k=K)))
def test_the_curvature_of_concave_ones_is_the_fall_of_the_slope(query, objective):
    y, s = query
    theirs = -np.array([differences(lambda moved, i=i: ask(objective, y, moved).slope[i], s)[i] for i in range(len(s))])
    np.testing.assert_allclose(ask(objective, y, s).curvature, theirs, atol=1e-8)


@given(graded(), st.one_of(SMOOTH, st.builds(RankCosineLoss, consistent=st.booleans()), st.builds(ApproxNDCGLoss, measure=NDCGS)))
def test_the_others_say_nothing_of_curvature(query, objective):
    assert not ask(objective, *query).curvature.any()


@given(graded(), OBJECTIVES, st.booleans())
def test_what_is_not_asked_for_does_not_change_the_rest(query, objective, with_slope):
    y, s = query
    data, everything = one_query(y), ask(objective, y, s)
    values, slope, curvature = _core.answers(objective.on(data), s, data.indptr, np.ones(1), with_slope, False, 1)
    assert values.tolist() == everything.values.tolist()
    assert slope.tolist() == (everything.slope.tolist() if with_slope else [])
    assert curvature.tolist() == []


@given(graded(), OBJECTIVES, st.sampled_from([1.0, 1e3, 1e6, 1e100]))
def test_slopes_sum_to_zero_and_wide_scores_do_no_harm(query, objective, scale):
    y, s = query[0], scale * query[1]
    result = ask(objective, y, s)
    assert np.all(np.isfinite([result.slope, result.curvature]))
    assert abs(result.slope.sum()) <= 1e-12 * (1 + np.abs(result.slope).sum())
    assert any(result.values[0] == pytest.approx(theirs, rel=1e-10, abs=1e-10) for theirs in reference.possible_values(objective, y, s))


@given(graded(), OBJECTIVES, st.randoms(use_true_random=False))
def test_the_order_of_documents_does_not_matter(query, objective, random):
    y, s = query
    if isinstance(objective, ListMLELoss):  # documents of one grade have a random order, which is not that of the input
        y = np.argsort(np.argsort(y, kind="stable")).astype(float)
    order = np.array(random.sample(range(len(y)), len(y)))
    straight, shuffled = ask(objective, y, s), ask(objective, y[order], s[order])
    np.testing.assert_allclose(shuffled.values, straight.values, atol=1e-12)
    np.testing.assert_allclose(shuffled.slope, straight.slope[order], atol=1e-12)
    np.testing.assert_allclose(shuffled.curvature, straight.curvature[order], atol=1e-12)


@given(graded(), OBJECTIVES, st.sampled_from([0.5, -3.0, 1024.0]))
def test_a_shift_of_all_scores_changes_nothing(query, objective, shift):
    y, s = query
    here, there = ask(objective, y, s), ask(objective, y, s + shift)
    np.testing.assert_allclose(there.values, here.values, atol=1e-12)
    np.testing.assert_allclose(there.slope, here.slope, atol=1e-12)


@given(graded(least=2), OBJECTIVES, st.sampled_from([math.nan, math.inf, -math.inf]), st.integers(0, 5))
def test_scores_that_are_not_finite_have_no_value_and_spoil_no_other_query(query, objective, bad, at):
    y, s = query
    data = er.RankingData.from_arrays(None, np.tile(y, 3), group=[len(y)] * 3)
    scores = np.tile(s, 3)
    sound = slopes(data, scores, objective, threads=1)
    scores[len(y) + at % len(y)] = bad
    result = slopes(data, scores, objective, threads=1)
    middle = np.repeat([False, True, False], len(y))
    assert np.isnan(result.values).tolist() == [False, True, False]
    for name in ("slope", "curvature"):
        assert np.isnan(getattr(result, name)).tolist() == middle.tolist()
        assert getattr(result, name)[~middle].tolist() == getattr(sound, name)[~middle].tolist()


@given(OBJECTIVES, st.floats(-5, 5))
def test_a_single_document_contributes_nothing(objective, score):
    result = ask(objective, [2.0], [score])
    assert (result.values[0], result.slope[0], result.curvature[0]) == (0, 0, 0)


NEEDS_USEFUL = st.one_of(
    st.just(ListNetLoss("gain")), st.just(RankCosineLoss(consistent=True)), SMOOTH, st.builds(ApproxNDCGLoss, measure=NDCGS)
)


@given(graded(), NEEDS_USEFUL)
def test_a_query_with_nothing_useful_contributes_nothing(query, objective):
    result = ask(objective, np.minimum(query[0], 0), query[1])
    assert result.values[0] == 0
    assert not result.slope.any()


@given(
    graded(), st.one_of(st.builds(ListMLELoss, k=K), st.builds(RankCosineLoss, consistent=st.booleans())), st.sampled_from([-1.0, 0.1, 3.0])
)
@example((np.zeros(3), np.arange(3.0)), RankCosineLoss(), 0.1)  # in floating point the mean of three 0.1 is more
def test_a_query_of_one_grade_contributes_nothing(query, objective, grade):
    result = ask(objective, np.full(len(query[0]), grade), query[1])
    assert result.values[0] == 0
    assert not result.slope.any()


@given(graded(), OBJECTIVES.filter(lambda objective: not isinstance(objective, ListMLELoss)))
def test_alike_documents_are_moved_alike(query, objective):
    y, s = np.tile(query[0], 2), np.tile(query[1], 2)
    first, second = ask(objective, y, s).slope.reshape(2, -1)
    np.testing.assert_allclose(first, second, atol=1e-13)


@pytest.mark.parametrize("objective", EACH, ids=str)
def test_threads_give_the_same_bits(objective):
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 120, 700)
    data = er.RankingData.from_arrays(None, rng.integers(0, 4, sizes.sum()), group=sizes)
    s = rng.normal(size=data.n_documents)
    first, second = (slopes(data, s, objective, threads=threads) for threads in (1, 2))
    for name in ("values", "slope", "curvature"):
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes()


# ---- each by itself ----


@given(graded(), graded())
def test_listnet_is_largest_where_scores_are_the_grades(query, other):
    y, s = query[0], np.resize(other[1], len(query[0]))
    assert value(ListNetLoss(), y, y) >= value(ListNetLoss(), y, s) - 1e-12
    np.testing.assert_allclose(ask(ListNetLoss(), y, y + 3.0).slope, 0, atol=1e-12)


def test_listnet_takes_any_grade():
    result = ask(ListNetLoss("gain"), [5000.0, 4999.0, 0.0], [0.0, 0.0, 0.0])
    gain = 2 ** np.array([8, 8 * 4999 / 5000, 0]) - 1
    np.testing.assert_allclose(result.slope, gain / gain.sum() - 1 / 3)
    plain, far = (ask(ListNetLoss(), y, [0.0, 0.0, 0.0]).slope for y in ([8.0, 4.0, 0.0], [1000.0, 500.0, 0.0]))
    np.testing.assert_allclose(far, plain)


def test_listmle_draws_the_order_of_one_grade_by_its_seed():
    y, s = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 3.0])
    values = [value(ListMLELoss(seed=seed), y, s) for seed in range(40)]
    assert values == [value(ListMLELoss(seed=seed), y, s) for seed in range(40)]
    assert sorted({round(v, 9) for v in values}) == sorted(round(v, 9) for v in reference.possible_values(ListMLELoss(), y, s))
    assert 5 < values.count(values[0]) < 35  # neither order is the rule


@given(graded(distinct=True), st.integers(1, 6))
def test_listmle_of_k_ranks_does_not_ask_for_the_order_below(query, k):
    y, s = query
    assert value(ListMLELoss(k=k), np.maximum(y, len(y) - k - 1), s) == pytest.approx(value(ListMLELoss(k=k), y, s), abs=1e-12)


@given(graded(), st.booleans(), st.sampled_from([1e-6, 0.3, 7.0, 1e9]))
def test_rank_cosine_does_not_depend_on_the_unit_of_scores(query, consistent, scale):
    y, s = query
    here, there = ask(RankCosineLoss(consistent), y, s), ask(RankCosineLoss(consistent), y, scale * s)
    np.testing.assert_allclose(there.values, here.values, atol=1e-12)
    if np.ptp(s) > 0:
        np.testing.assert_allclose(there.slope * scale, here.slope, atol=1e-9)


@given(graded(), st.sampled_from([0.25, 1.0, 32.0]), st.sampled_from([-1.0, 0.0, 8.0]))
def test_rank_cosine_is_0_along_the_grades_and_1_against_them(query, a, b):
    y, _ = query
    ends = (0.0, 0.0) if len(set(y)) == 1 else (0.0, -1.0)
    assert (value(RankCosineLoss(), y, a * y + b), value(RankCosineLoss(), y, b - a * y)) == pytest.approx(ends, abs=1e-12)


@given(graded(), st.booleans(), st.sampled_from([0.0, 0.1, -1e6]))
def test_rank_cosine_leaves_the_point_where_all_scores_are_equal(query, consistent, level):
    y, s = query[0], np.full(len(query[0]), level)
    result = ask(RankCosineLoss(consistent), y, s)
    if not result.slope.any():  # nothing to learn
        assert result.values[0] == 0
        return
    assert result.values[0] == -0.5
    assert value(RankCosineLoss(consistent), y, result.slope) > -0.5
    np.testing.assert_allclose(np.corrcoef(result.slope, 2 ** np.maximum(y, 0) if consistent else y)[0, 1], 1)


@given(graded(distinct=True, least=2), graded(), graded(), st.sampled_from([0.2, 0.5, 0.9]))
def test_consistent_rank_cosine_is_best_along_the_expected_share_of_the_ideal(query, other, scores, chance):
    """Two judgments of the same documents: the best scores rank them as expected nDCG would."""
    y = np.stack([query[0], np.resize(other[0], len(query[0]))])
    gains = 2 ** np.maximum(y, 0) - 1
    share = np.array([g / reference.ideal_dcg(g) if g.any() else g for g in gains])
    data = er.RankingData.from_arrays(None, y.ravel(), group=[len(y[0])] * 2, query_weight=[chance, 1 - chance])

    def expected(s):
        return slopes(data, np.tile(s, 2), RankCosineLoss(consistent=True), threads=1).values.sum()

    best = chance * share[0] + (1 - chance) * share[1]
    if np.ptp(best) > 0:
        assert expected(best) >= expected(np.resize(scores[1], len(best))) - 1e-12


@given(graded(least=2), POSITIONAL)
def test_smooth_measures_come_to_the_measure(query, measure):
    y, s = query[0], untied(query[1])
    theirs = query_value(dataclasses.replace(measure, empty=0), y, s)
    assert value(SmoothMeasure(measure, sigma=1e-6), y, s) == pytest.approx(theirs, abs=1e-10)


@given(graded(least=2), GAINS, K)
def test_approx_ndcg_comes_to_ndcg_without_a_cutoff(query, gain, k):
    y, s = query[0], untied(query[1])
    theirs = query_value(er.measures.NDCG(gain=gain), y, s)
    assert value(ApproxNDCGLoss(er.measures.NDCG(k=k, gain=gain, short="zero"), alpha=4000.0), y, s) == pytest.approx(theirs, abs=1e-10)


@pytest.mark.parametrize("measure", [er.measures.AP(), er.measures.ERR(), er.measures.MeanNDCG(), er.measures.PairwiseCorrect()], ids=str)
def test_only_sums_over_ranks_are_smoothed(measure):
    with pytest.raises(IncompatibleError, match="use nDCG, DCG, P, R or RBP"):
        SmoothMeasure(measure)


@pytest.mark.parametrize(
    ("wrong", "error", "match"),
    [
        (lambda: ListNetLoss("hard"), SettingError, "'hard' is not one of"),
        (lambda: ListMLELoss(k=0), SettingError, "k must be at least 1.*got 0"),
        (lambda: ListMLELoss(seed=-1), SettingError, "at least 0, got -1"),
        (lambda: SmoothMeasure(er.measures.NDCG(), sigma=0.0), SettingError, "above 0, got 0"),
        (lambda: ApproxNDCGLoss(er.measures.NDCG(), alpha=math.inf), SettingError, "above 0, got inf"),
        (lambda: ApproxNDCGLoss(er.measures.DCG()), IncompatibleError, "not DCG; use nDCG"),
        (lambda: ApproxNDCGLoss(er.measures.NDCG(discount="letor")), IncompatibleError, "use discount='log2'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong, error, match):
    with pytest.raises(error, match=match):
        wrong()
