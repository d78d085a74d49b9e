"""Structured losses: against a look at every ranking, and what holds for all of them."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import linear_sum_assignment

import exactrank as er
from exactrank import _core
from exactrank.errors import DataError, IncompatibleError, SettingError
from exactrank.learning.objectives.score_space import slopes
from exactrank.learning.objectives.structured import Structured, separate
from tests.reference import structured as reference
from tests.strategies import GRADES

K = st.one_of(st.none(), st.integers(1, 7))
REL = st.sampled_from([0.5, 1, 2])
EMPTY = st.sampled_from([0, 1, "skip"])
POSITIONAL = st.one_of(
    st.builds(er.measures.NDCG, k=K, gain=st.sampled_from(["exp2", "linear"]), short=st.sampled_from(["pad", "zero"]), empty=EMPTY),
    st.builds(er.measures.NDCG, k=K, discount=st.sampled_from(["letor", (1.0, 0.5, 0.5, 0.0)])),
    st.builds(
        er.measures.DCG, k=K, gain=st.sampled_from(["linear", {g: abs(g - 2) - 1 for g in (-1.0, 0.0, 0.5, 1.0, 1.7, 2.0, 3.0, 3.25, 4.0)}])
    ),
    st.builds(er.measures.Precision, k=st.integers(1, 4), rel=REL, norm=st.sampled_from(["cutoff", "list"])),
    st.builds(er.measures.Recall, k=st.integers(1, 4), rel=REL),
    st.builds(er.measures.RBP, k=K, rel=REL, empty=EMPTY),
)
PAIRS = st.one_of(
    st.builds(er.measures.AP, rel=REL, norm=st.sampled_from(["total", "cutoff"]), empty=EMPTY),
    st.builds(er.measures.RR, k=K, rel=REL, empty=EMPTY),
    st.builds(er.measures.Success, k=st.integers(1, 4), rel=REL),
)
TABLES = st.lists(st.integers(0, 9), max_size=8).map(lambda rest: tuple(sorted([*rest, 4], reverse=True)))
SHAPES = st.one_of(st.sampled_from(["linear", "sqrt", "discount", 0.5, 1.0, 3.0]), TABLES)
SEED = st.integers(0, 3)


def losses(**settings):
    positional = st.builds(Structured, measure=POSITIONAL, A=SHAPES, seed=SEED, **settings)
    return st.one_of(positional, positional, st.builds(Structured, measure=PAIRS, seed=SEED, **settings))


CONVEX = losses()
RAMP = losses(bound=st.just("ramp"))
RESCALED = losses(slack=st.just("rescaled"))
EACH = [
    Structured(er.measures.NDCG(k=10)),
    Structured(er.measures.NDCG(), "sqrt", bound="ramp"),
    Structured(er.measures.DCG(k=5), "discount"),
    Structured(er.measures.RBP(), (5.0, 3.0, 3.0, 1.0), bound="ramp"),
    Structured(er.measures.NDCG(k=10), slack="rescaled"),
    Structured(er.measures.AP()),
    Structured(er.measures.AP(), slack="rescaled"),
    Structured(er.measures.RR(), bound="ramp"),
    Structured(er.measures.Success(k=3)),
]


@st.composite
def graded(draw, most=6, count=1):
    """(y, s, ...) of one query with ``count`` vectors of scores, on grids of several widths, so that they tie and shifts are exact."""
    n = draw(st.integers(1, most))
    y = draw(st.lists(GRADES, min_size=n, max_size=n))
    scale = draw(st.sampled_from([2**-6, 2**-4, 2**-2, 1.0, 8.0]))
    vectors = [draw(st.lists(st.integers(-8, 8), min_size=n, max_size=n)) for _ in range(count)]
    return np.array(y), *(scale * np.array(s, float) for s in vectors)


def one_query(y):
    return er.RankingData.from_arrays(None, y, group=[len(y)])


def find(structured, y, s):
    return separate(one_query(y), s, structured, threads=1)


def loss(structured, y, s):
    return float(find(structured, y, s).losses[0])


def is_explained(result, rankings, targets, s):
    """Is what was found the most violated ranking for one of the targets?"""
    for target in targets:
        same = np.isclose(rankings.c - target, result.coefficients, atol=1e-9).all(axis=1) & np.isclose(rankings.delta, result.delta)
        if same.any() and result.losses[0] == pytest.approx(rankings.loss(s, target), abs=1e-9):
            return True
    return False


def is_nothing(result):
    return result.losses[0] == 0 and result.delta[0] == 0 and not result.coefficients.any()


@given(graded(most=7), CONVEX)
def test_the_most_violated_ranking_is_that_of_all_rankings(query, structured):
    y, s = query
    rankings = reference.Rankings(structured, y)
    result = find(structured, y, s)
    assert is_explained(result, rankings, rankings.perfect, s) if rankings.tell_apart else is_nothing(result)


@given(graded(most=7), RAMP)
def test_the_ramp_loss_is_that_of_all_rankings(query, structured):
    y, s = query
    rankings = reference.Rankings(structured, y)
    target = reference.by_score(structured, y, s)
    result = find(structured, y, s)
    assert is_explained(result, rankings, [target], s) if rankings.tell_apart else is_nothing(result)


@given(graded(most=3), st.integers(1, 9), CONVEX.filter(lambda structured: structured.measure.name != "AP"))
def test_a_longer_query_counts_for_the_last_rank(query, longest, structured):
    y, s = query
    data = er.RankingData.from_arrays(None, np.concatenate([np.zeros(longest), y]), group=[longest, len(y)])
    ours = separate(data, np.concatenate([np.zeros(longest), s]), structured, threads=1).losses[1]
    rankings = reference.Rankings(structured, y, max(longest, len(y)))
    theirs = [rankings.loss(s, target) for target in rankings.perfect] if rankings.tell_apart else [0.0]
    assert any(ours == pytest.approx(each, abs=1e-9) for each in theirs)


@given(st.integers(0, 10**6), st.integers(2, 60), st.integers(1, 60), SHAPES, st.sampled_from([3, 40, None]))
def test_long_lists_are_assigned_as_scipy_does(seed, n, k, a, grades):
    rng = np.random.default_rng(seed)
    y = 3 * rng.random(n) if grades is None else rng.integers(0, grades, n) * 3 / grades
    s = rng.normal(size=n) * 10 ** rng.uniform(-3, 1)
    s = np.round(s, rng.integers(0, 4))
    structured = Structured(er.measures.NDCG(k=k), a, bound="ramp")
    if np.ptp(y) == 0:
        return
    lost, by_rank = reference.assignment_costs(structured, y, n)
    gains = np.outer(s, by_rank) - lost
    theirs = 1 + gains[linear_sum_assignment(gains, maximize=True)].sum()
    rise = reference.by_score(structured, y, s) @ s
    assert loss(structured, y, s) + rise == pytest.approx(theirs, rel=1e-11, abs=1e-11)


def test_all_positions_of_a_list_of_500_are_assigned_as_scipy_does():
    rng = np.random.default_rng(1)
    y, s = rng.choice(5, p=[0.5, 0.2, 0.15, 0.1, 0.05], size=500).astype(float), 0.1 * rng.normal(size=500)
    structured = Structured(er.measures.NDCG(), bound="ramp")
    lost, by_rank = reference.assignment_costs(structured, y, 500)
    gains = np.outer(s, by_rank) - lost
    theirs = 1 + gains[linear_sum_assignment(gains, maximize=True)].sum() - np.sort(s)[::-1] @ by_rank
    assert loss(structured, y, s) == pytest.approx(theirs, abs=1e-9)


@given(st.integers(0, 10**6), st.integers(2, 40), PAIRS)
def test_long_lists_are_interleaved_as_dynamic_programming_does(seed, n, measure):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < rng.uniform(0.05, 0.95)) * measure.rel
    s = np.round(rng.normal(size=n) * 10 ** rng.uniform(-2, 1), rng.integers(0, 4))
    structured = Structured(measure, bound="ramp")
    result = find(structured, y, s)
    if np.ptp(y) == 0 or (measure.cutoff > (y == 0).sum() and measure.name == "Success"):
        assert is_nothing(result)
        return
    rise = reference.by_score(structured, y, s) @ s
    assert result.losses[0] + rise == pytest.approx(reference.best_interleaving(measure, y, s), abs=1e-9)


@st.composite
def several(draw, structured):
    """A loss, and queries of up to 30 documents with scores, some tied."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    sizes = rng.integers(1, 30, 6)
    data = er.RankingData.from_arrays(None, rng.integers(0, 4, sizes.sum()), group=sizes)
    s = np.round(rng.normal(size=data.n_documents) * draw(st.sampled_from([0.01, 0.1, 1.0])), draw(st.integers(1, 4)))
    return draw(structured), data, s


def lacking(measure, data, s):
    """What the ranking by score lacks of the measure's best value."""
    best, here = (er.evaluate(data, scores, [measure])[str(measure)].values for scores in (measure.usefulness(data.y), s))
    return np.nan_to_num(best - here)


@given(several(st.one_of(CONVEX, RAMP, RESCALED)), st.sampled_from(["input", "pessimistic", "expected"]))
def test_the_loss_bounds_what_the_ranking_by_score_lacks(case, ties):
    structured, data, s = case
    measure = type(structured.measure)(**{**vars(structured.measure), "ties": ties})
    assert np.all(separate(data, s, structured).losses >= lacking(measure, data, s) - 1e-9)


@given(several(RAMP), SEED)
def test_the_ramp_is_the_least_of_the_losses(case, seed):
    ramp, data, s = case
    convex = Structured(ramp.measure, ramp.A, seed=seed)
    assert np.all(separate(data, s, ramp).losses <= separate(data, s, convex).losses + 1e-9)


@dataclass(frozen=True)
class Bound:
    """An objective that is known on one set of documents."""

    loss: _core.StructuredLoss

    def on(self, data):
        return self.loss


@given(several(RAMP), st.data())
def test_a_step_of_the_concave_convex_procedure_touches_the_ramp_and_lies_above(case, drawn):
    ramp, data, s = case
    there = s + drawn.draw(st.sampled_from([0.01, 1.0])) * np.random.default_rng(0).normal(size=len(s))
    step = Bound(ramp.towards(data, s))
    touching, above, below = slopes(data, s, step), slopes(data, there, step), slopes(data, there, ramp)
    np.testing.assert_allclose(touching.values, slopes(data, s, ramp).values, atol=1e-9)
    np.testing.assert_array_equal(touching.slope, slopes(data, s, ramp).slope)
    assert np.all(above.values <= below.values + 1e-9)


@given(graded(), CONVEX)
def test_equal_scores_lose_all_that_a_ranking_can(query, structured):
    y, s = query[0], np.full(len(query[0]), 0.25)
    rankings = reference.Rankings(structured, y)
    for bound in ("convex", "ramp"):
        assert loss(Structured(structured.measure, structured.A, bound), y, s) == pytest.approx(rankings.delta.max(), abs=1e-12)


@given(graded(most=20, count=2), CONVEX)
def test_the_slope_is_a_subgradient(query, structured):
    y, s, there = query
    here, beyond = (slopes(one_query(y), scores, structured) for scores in (s, there))
    assert beyond.values[0] <= here.values[0] + here.slope @ (there - s) + 1e-9


@given(graded(most=20, count=2), CONVEX)
def test_the_convex_loss_is_convex(query, structured):
    y, s, there = query
    assert loss(structured, y, (s + there) / 2) <= (loss(structured, y, s) + loss(structured, y, there)) / 2 + 1e-9


@given(graded(), CONVEX)
def test_the_unit_is_the_coefficient_of_the_first_rank(query, structured):
    y, _ = query
    longest = len(y) + 2
    data = er.RankingData.from_arrays(None, np.concatenate([y, np.zeros(longest)]), group=[len(y), longest])
    theirs = reference.shape(structured, longest, longest)[0] if hasattr(structured.measure, "normalizer") else 1.0
    assert structured.unit(data) == pytest.approx(theirs)


@pytest.mark.parametrize("structured", EACH, ids=str)
def test_the_slope_is_the_derivative_of_the_value(structured):
    rng = np.random.default_rng(2)
    for scale in (0.03, 0.3, 3.0):
        y, s, h = rng.integers(0, 4, 17).astype(float), scale * rng.normal(size=17), 1e-7
        ours = slopes(one_query(y), s, structured)
        theirs = [(loss(structured, y, s - h * e) - loss(structured, y, s + h * e)) / (2 * h) for e in np.eye(17)]
        np.testing.assert_allclose(ours.slope, theirs, atol=1e-6)
        assert not ours.curvature.any()


@given(several(st.one_of(CONVEX, RAMP, RESCALED)))
def test_value_and_slope_are_those_of_the_ranking_found(case):
    structured, data, s = case
    weight = np.arange(1.0, data.n_queries + 1)
    weighted = er.RankingData.from_arrays(None, data.y, group=data.sizes, query_weight=np.repeat(weight, data.sizes))
    result, asked = separate(data, s, structured), slopes(weighted, s, structured)
    share = weight * (result.delta if structured.slack == "rescaled" else 1.0)
    np.testing.assert_allclose(asked.values, -weight * result.losses, atol=1e-12)
    np.testing.assert_allclose(asked.slope, -np.repeat(share, data.sizes) * result.coefficients, atol=1e-12)
    alone, _, _ = _core.answers(structured.on(weighted), s, data.indptr, weight, False, False, 1)
    assert alone.tolist() == asked.values.tolist()


@given(graded(most=12), st.one_of(CONVEX, RAMP, RESCALED), st.sampled_from([0.5, -3.0, 2.0**20]))
def test_a_shift_of_all_scores_changes_nothing(query, structured, shift):
    y, s = query
    here, there = find(structured, y, s), find(structured, y, s + shift)
    assert here.losses[0] == pytest.approx(there.losses[0], abs=1e-12)
    assert here.coefficients.tolist() == there.coefficients.tolist()


@given(graded(), st.one_of(CONVEX, RAMP, RESCALED), st.sampled_from([0.0, 3.0]))
def test_a_query_of_one_grade_contributes_nothing(query, structured, grade):
    assert is_nothing(find(structured, np.full(len(query[0]), grade), query[1]))


@pytest.mark.parametrize("structured", EACH, ids=str)
def test_threads_give_the_same_bits(structured):
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 120, 500)
    data = er.RankingData.from_arrays(None, rng.integers(0, 4, sizes.sum()), group=sizes)
    s = 0.1 * rng.normal(size=data.n_documents)
    first, second = (separate(data, s, structured, threads=threads) for threads in (1, 2))
    for name in ("delta", "coefficients", "losses"):
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes()


@pytest.mark.parametrize("structured", EACH, ids=str)
def test_rows_may_come_in_any_order(structured):
    rng = np.random.default_rng(5)
    qid, y, s = np.repeat(np.arange(4), 15), rng.permutation(60) / 20, 0.1 * rng.normal(size=60)
    straight = separate(er.RankingData.from_arrays(None, y, qid=qid), s, structured)
    order = rng.permutation(60)
    mixed = er.RankingData.from_arrays(None, y[order], qid=qid[order])
    shuffled = separate(mixed, s[order], structured)
    np.testing.assert_allclose(shuffled.losses, straight.losses[mixed.qid], atol=1e-12)
    np.testing.assert_allclose(shuffled.coefficients, straight.coefficients[order], atol=1e-12)


def test_the_seed_draws_among_perfect_rankings():
    y, s = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 3.0])
    values = [loss(Structured(er.measures.NDCG(), seed=seed), y, s) for seed in range(40)]
    assert values == [loss(Structured(er.measures.NDCG(), seed=seed), y, s) for seed in range(40)]
    rankings = reference.Rankings(Structured(er.measures.NDCG()), y)
    assert {round(v, 9) for v in values} == {round(rankings.loss(s, target), 9) for target in rankings.perfect}
    assert 5 < values.count(values[0]) < 35  # neither order is the rule


# ---- rescaled slacks ----


@given(graded(), RESCALED)
def test_a_rescaled_slack_is_no_more_than_that_of_all_rankings(query, structured):
    y, s = query
    rankings = reference.Rankings(structured, y)
    result = find(structured, y, s)
    if not rankings.tell_apart:
        assert is_nothing(result)
        return
    assert result.losses[0] <= max(rankings.loss(s, target, rescaled=True) for target in rankings.perfect) + 1e-9
    assert result.losses[0] == pytest.approx(result.delta[0] * (1 + result.coefficients @ s), abs=1e-9)


def test_a_rescaled_slack_bounds_what_a_nearly_perfect_ranking_lacks():
    y = np.array([11.0, 8, 9, 2, 1, 5, 3, 0, 9, 11])
    s = np.array([0.17018614, 0.11855589, 0.13310872, 0.02416639, -0.00057661, 0.0744898, 0.03346593, 0.00228112, 0.13535416, 0.15949547])
    lacks = lacking(er.measures.DCG(), one_query(y), s)[0]
    assert loss(Structured(er.measures.DCG(), slack="rescaled"), y, s) >= lacks > 0.01


@pytest.mark.parametrize("scale", [0.02, 0.2, 2.0])
@pytest.mark.parametrize("measure", [er.measures.NDCG(k=4), er.measures.NDCG(), er.measures.AP(), er.measures.RR()], ids=str)
def test_rescaled_slacks_are_nearly_those_of_all_rankings(measure, scale):
    rng = np.random.default_rng(3)
    structured = Structured(measure, slack="rescaled")
    ours = theirs = 0.0
    for _ in range(30):
        y = rng.permutation(6) / 2
        s = scale * (y + rng.normal(size=6))
        rankings = reference.Rankings(structured, y)
        ours += loss(structured, y, s)
        theirs += rankings.loss(s, rankings.perfect[0], rescaled=True)
    assert 0.97 * theirs <= ours <= theirs + 1e-9


# ---- what is refused ----


@given(graded(), st.one_of(CONVEX, RAMP, RESCALED), st.sampled_from([math.nan, math.inf, -math.inf, 1e200]))
def test_scores_without_a_sum_have_no_value_and_spoil_no_other_query(query, structured, bad):
    y, s = (np.append(each, each[0]) for each in query)
    data = er.RankingData.from_arrays(None, np.tile(y, 2), group=[len(y)] * 2)
    scores = np.concatenate([s, s])
    sound = slopes(data, scores, structured)
    scores[0] = bad
    result = slopes(data, scores, structured)
    assert np.isnan(result.values).tolist() == [True, False]
    for name in ("slope", "curvature"):
        assert np.isnan(getattr(result, name)).tolist() == [True] * len(y) + [False] * len(y)
        assert getattr(result, name)[len(y) :].tolist() == getattr(sound, name)[len(y) :].tolist()
    with pytest.raises(DataError, match="query 0: scores must be finite"):
        separate(data, scores, structured)


def test_targets_are_for_one_set_of_documents():
    data, structured = one_query([0.0, 1.0]), Structured(er.measures.NDCG())
    with pytest.raises(DataError, match="scores hold nan"):
        structured.towards(data, [0.0, math.nan])
    with pytest.raises(ValueError, match="what is asked about has a length of 3; expected 2"):
        slopes(one_query([0.0, 1.0, 2.0]), [0.0, 1.0, 2.0], Bound(structured.towards(data, [0.0, 1.0])))


@pytest.mark.parametrize(
    "measure",
    [er.measures.ERR(), er.measures.Bpref(), er.measures.MeanNDCG(), er.measures.PairwiseCorrect(), er.measures.AP(k=10)],
    ids=str,
)
def test_measures_without_a_most_violated_ranking_are_refused(measure):
    with pytest.raises(IncompatibleError, match="use nDCG, DCG, P, R, RBP, AP without cutoff, RR or Success"):
        Structured(measure)


@pytest.mark.parametrize("measure", [er.measures.AP(), er.measures.RR(), er.measures.Success(k=1)], ids=str)
def test_a_shape_belongs_to_positional_measures(measure):
    with pytest.raises(SettingError, match="A belongs to positional measures"):
        Structured(measure, "sqrt")


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ((3.0, 1.0, 2.0), "A is 1 at rank 2 and 2 after it"),
        ((1.0, -1.0), "A is -1 at rank 2 and 0 after it"),
        ((math.inf, 1.0), "A is inf at rank 1"),
        ((2.0, math.nan, 1.0), "A is nan at rank 2"),
        ((), "is the same at all ranks"),
        ((0.0, 0.0), "is the same at all ranks"),
        ("square", "'linear', 'sqrt', 'discount', a power such as 0.5 or a table"),
    ],
)
def test_shapes_that_sorting_does_not_make_largest_are_refused(table, says):
    with pytest.raises(SettingError, match=says):
        Structured(er.measures.NDCG(), table)


def test_discounts_that_rise_are_refused():
    with pytest.raises(IncompatibleError, match="the discount rises after rank 2, where it is 0"):
        Structured(er.measures.NDCG(discount=(1.0, 0.0, 0.5))).on(one_query([0.0, 1.0, 2.0]))


def test_gains_that_overflow_are_refused():
    with pytest.raises(DataError, match="the gain of grade 2000 is too large"):
        Structured(er.measures.DCG(gain={0: 0, 2000: 1e200})).on(one_query([0.0, 2000.0]))
    assert loss(Structured(er.measures.NDCG()), np.array([0.0, 2000.0]), np.zeros(2)) > 0


@pytest.mark.parametrize("settings", [{"bound": "tight"}, {"slack": "none"}, {"seed": -1}, {"bound": "ramp", "slack": "rescaled"}])
def test_settings_that_do_not_exist_are_refused(settings):
    with pytest.raises(SettingError):
        Structured(er.measures.NDCG(), **settings)
