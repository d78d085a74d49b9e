"""The hinge over pairs, which are never made: against all pairs, as a convex function, and for queries too long to pair."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as er
from exactrank import _core
from exactrank.errors import SettingError
from exactrank.learning.objectives.losses import PairHinge
from exactrank.learning.objectives.score_space import slopes
from tests.reference.pair_hinge import pair_hinge

OBJECTIVES = st.builds(PairHinge, loss=st.sampled_from(["hinge", "squared-hinge"]), normalize=st.sampled_from(["query", "pairs"]))
EACH = [PairHinge(loss, normalize) for loss in ("hinge", "squared-hinge") for normalize in ("query", "pairs")]
GRADES = st.one_of(st.integers(0, 2), st.sampled_from([-1.0, 0.1, 0.5, math.pi]))
QUARTERS = st.integers(-12, 12).map(lambda quarter: quarter / 4)  # many ties, and many pairs at a distance of exactly 1


@st.composite
def short(draw, scores=QUARTERS):
    """(y, s) of a query whose pairs are taken one by one."""
    y, s = np.array(draw(st.lists(st.tuples(GRADES, scores), min_size=1, max_size=20)), float).T
    return y, s


@st.composite
def long(draw):
    """(y, s) of a query that is sorted and parted, with few grades or many, scores in quarters or not, and in bunches far apart."""
    rng, n = np.random.default_rng(draw(st.integers(0, 2**32))), draw(st.integers(513, 1500))
    y = rng.integers(0, draw(st.sampled_from([2, 3, 5, 40, n])), n) / 8
    s = rng.normal(size=n) * draw(st.sampled_from([0.1, 1.0, 10.0])) + draw(st.sampled_from([0.0, 2.0])) * y
    s = np.round(4 * s) / 4 if draw(st.booleans()) else s
    return y, s + draw(st.sampled_from([0.0, 1e6])) * np.floor(2 * y)


def one_query(y):
    return er.RankingData.from_arrays(None, y, group=[len(y)])


def ask(objective, y, s):
    return slopes(one_query(y), np.array(s, float), objective, threads=1)


def value(objective, y, s):
    return float(ask(objective, y, s).values[0])


def is_that_of_all_pairs(objective, y, s):
    ours = ask(objective, y, s)
    loss, slope, curvature, pairs = pair_hinge(objective.loss == "squared-hinge", y, s)
    share = 1 / max(pairs, 1)
    assert ours.values[0] == pytest.approx(-share * loss, rel=1e-12)
    np.testing.assert_allclose(ours.slope, share * slope, rtol=1e-11, atol=1e-12 * share * np.abs(slope).max())
    np.testing.assert_allclose(ours.curvature, share * curvature, rtol=1e-12)


@given(st.one_of(short(), short(st.floats(-1e3, 1e3)), short(st.floats(-1e6, 1e6))), OBJECTIVES)
def test_all_pairs_of_a_short_query_count(query, objective):
    is_that_of_all_pairs(objective, *query)


@given(long(), OBJECTIVES)
@settings(max_examples=60)
def test_all_pairs_of_a_long_query_count(query, objective):
    is_that_of_all_pairs(objective, *query)


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
@pytest.mark.parametrize("n", [7, 8, 9, 64, 511, 512, 513, 1025])
def test_any_number_of_documents_may_be_paired(loss, n):
    rng = np.random.default_rng(n)
    is_that_of_all_pairs(PairHinge(loss), rng.integers(0, 5, n).astype(float), rng.normal(size=n))


@given(st.one_of(short(), long()), OBJECTIVES, st.sampled_from([0.25, -3.0, 1e6]))
def test_a_constant_added_to_all_scores_changes_no_bit(query, objective, shift):
    y, s = query[0], np.round(4 * query[1]) / 4  # sums of quarters are exact
    here, there = ask(objective, y, s), ask(objective, y, s + shift)
    for name in ("values", "slope", "curvature"):
        assert getattr(here, name).tobytes() == getattr(there, name).tobytes()


@given(st.one_of(short(), long()), OBJECTIVES, st.integers(0, 2**32))
def test_the_order_of_documents_and_the_names_of_grades_do_not_matter(query, objective, seed):
    y, s = query
    order = np.random.default_rng(seed).permutation(len(y))
    straight, shuffled = ask(objective, y, s), ask(objective, np.exp(y[order] / 100), s[order])
    np.testing.assert_allclose(shuffled.values, straight.values, rtol=1e-12)
    np.testing.assert_allclose(shuffled.slope, straight.slope[order], rtol=1e-11, atol=1e-12 * np.abs(straight.slope).max())


@given(short(), OBJECTIVES)
def test_the_slope_is_the_derivative_away_from_kinks(query, objective):
    y, s, h = query[0], query[1] + np.arange(len(query[1])) / 1024, 1e-6  # no two are apart by 1
    theirs = [(value(objective, y, s + h * e) - value(objective, y, s - h * e)) / (2 * h) for e in np.eye(len(s))]
    np.testing.assert_allclose(ask(objective, y, s).slope, theirs, atol=1e-7)


@given(short(), short(), OBJECTIVES)
def test_the_slope_bounds_the_value_everywhere_even_from_kinks(query, other, objective):
    y, s = query
    elsewhere = np.resize(other[1], len(s))
    here = ask(objective, y, s)
    assert value(objective, y, elsewhere) <= here.values[0] + here.slope @ (elsewhere - s) + 1e-12


@given(long(), long(), OBJECTIVES)
@settings(max_examples=25)
def test_the_slope_bounds_the_value_of_long_queries(query, other, objective):
    y, s = query
    elsewhere = np.resize(other[1], len(s))
    here = ask(objective, y, s)
    assert value(objective, y, elsewhere) <= here.values[0] + here.slope @ (elsewhere - s) + 1e-9 * (
        1 + np.abs(here.slope) @ np.abs(elsewhere - s)
    )


@given(short(), short(), OBJECTIVES, st.floats(0, 1))
def test_the_loss_is_convex(query, other, objective, share):
    y, s = query
    elsewhere = np.resize(other[1], len(s))
    between = share * value(objective, y, s) + (1 - share) * value(objective, y, elsewhere)
    assert value(objective, y, share * s + (1 - share) * elsewhere) >= between - 1e-12


@given(st.one_of(short(), long()), OBJECTIVES, st.booleans())
def test_what_is_not_asked_for_does_not_change_the_rest(query, objective, with_slope):
    y, s = query
    data, everything = one_query(y), ask(objective, y, s)
    values, slope, _ = _core.answers(objective.on(data), s, data.indptr, np.ones(1), with_slope, False, 1)
    assert values.tobytes() == everything.values.tobytes()
    assert slope.tolist() == (everything.slope.tolist() if with_slope else [])


@given(st.one_of(short(), long()), OBJECTIVES, st.sampled_from([-1.0, 0.1, 3.0]))
def test_a_query_of_one_grade_contributes_nothing(query, objective, grade):
    result = ask(objective, np.full(len(query[0]), grade), query[1])
    assert not np.any([result.values[0], *result.slope, *result.curvature])


def queries(seed=0):
    """Short and long ones and one of a single grade, with their weights, and scores."""
    rng = np.random.default_rng(seed)
    sizes = np.array([*rng.integers(1, 90, 40), 700, 30, 1100])
    y = rng.integers(0, 4, sizes.sum())
    y[-1130:-1100] = 2
    return er.RankingData.from_arrays(None, y, group=sizes, query_weight=rng.random(len(sizes))), rng.normal(size=len(y))


def each_query(data, s):
    return [(data.y[begin:end], s[begin:end]) for begin, end in zip(data.indptr[:-1], data.indptr[1:], strict=True)]


@pytest.mark.parametrize("squared", [False, True])
def test_queries_count_alike_or_pairs_do(squared):
    data, s = queries()
    loss = "squared-hinge" if squared else "hinge"
    sums, slope, _, pairs = zip(*(pair_hinge(squared, *query) for query in each_query(data, s)), strict=True)
    for normalize, each in (("query", np.maximum(pairs, 1)), ("pairs", np.full(len(pairs), np.average(pairs, weights=data.weights)))):
        ours, share = slopes(data, s, PairHinge(loss, normalize)), data.query_weight / each
        np.testing.assert_allclose(ours.values, -share * sums, rtol=1e-12)
        theirs = np.concatenate([a * b for a, b in zip(share, slope, strict=True)])
        np.testing.assert_allclose(ours.slope, theirs, rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("objective", EACH, ids=str)
def test_threads_give_the_same_bits(objective):
    data, s = queries()
    data, s = er.RankingData.from_arrays(None, np.tile(data.y, 20), group=np.tile(data.sizes, 20)), np.tile(s, 20)
    first, second = (slopes(data, s, objective, threads=threads) for threads in (1, 2))
    for name in ("values", "slope", "curvature"):
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes()


@pytest.mark.parametrize("objective", EACH, ids=str)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_scores_that_are_not_finite_have_no_value_and_spoil_no_other_query(objective, bad):
    data, s = queries()
    sound, spoilt = slopes(data, s, objective, threads=1), s.copy()
    of = np.repeat(np.arange(data.n_queries), data.sizes)
    wrong = np.isin(of, [3, 40])
    spoilt[[data.indptr[3], data.indptr[41] - 1]] = bad
    result = slopes(data, spoilt, objective, threads=1)
    assert np.flatnonzero(np.isnan(result.values)).tolist() == [3, 40]
    for name in ("slope", "curvature"):
        assert np.isnan(getattr(result, name)).tolist() == wrong.tolist()
        assert getattr(result, name)[~wrong].tolist() == getattr(sound, name)[~wrong].tolist()


@pytest.mark.parametrize("objective", EACH, ids=str)
def test_a_query_too_long_to_pair_is_answered(objective):
    """20 billion pairs; some documents are compared with all others one by one."""
    rng, n = np.random.default_rng(0), 200_000
    y, s = rng.normal(size=n), rng.normal(size=n)
    ours, pairs = ask(objective, y, s), n * (n - 1) / 2
    for k in rng.integers(0, n, 20):
        z = np.where(y == y[k], 0.0, np.maximum(0.0, 1 - np.sign(y[k] - y) * (s[k] - s)))
        pull = np.sign(y[k] - y) * (2 * z if objective.loss == "squared-hinge" else z > 0)
        assert ours.slope[k] * pairs == pytest.approx(pull.sum(), rel=1e-9, abs=1e-6)
        assert ours.curvature[k] * pairs == pytest.approx(2.0 * np.sum(z > 0) * (objective.loss == "squared-hinge"), rel=1e-9)
    assert value(objective, y, np.zeros(n)) == pytest.approx(-1, rel=1e-12)


def test_by_hand():
    """Grades 2, 1, 0 and scores 0, 0, 0.5: the pairs are short of the margin by 1, 1.5 and 1.5."""
    y, s = [2.0, 1.0, 0.0], [0.0, 0.0, 0.5]
    plain, squared = ask(PairHinge("hinge"), y, s), ask(PairHinge("squared-hinge"), y, s)
    assert (plain.values[0], squared.values[0]) == pytest.approx((-4 / 3, -5.5 / 3))
    assert 3 * plain.slope == pytest.approx([2, 0, -2])
    assert 3 * squared.slope == pytest.approx([5, 1, -6])
    assert 3 * squared.curvature == pytest.approx([4, 4, 4])
    assert not plain.curvature.any()


@pytest.mark.parametrize(
    ("setting", "message"), [({"loss": "logistic"}, "'logistic' is not one of"), ({"normalize": "list"}, "'list' is not one of")]
)
def test_settings_are_checked(setting, message):
    with pytest.raises(SettingError, match=message):
        PairHinge(**setting)
