"""The kernel that finds the best step against the whole profile."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as er
from exactrank import _core
from exactrank.learning.objectives.ideal_likelihood import IdealLikelihood
from exactrank.learning.objectives.line_search import LineSearch
from exactrank.learning.objectives.step_function import Interval
from exactrank.measures.families import Positional
from tests.learning.objectives.test_profile import rays
from tests.reference import profile as reference
from tests.strategies import MEASURES

ENDS = st.sampled_from([(-math.inf, math.inf), (0.0, math.inf), (-math.inf, 0.0), (-1.0, 2.0), (-0.3, 0.3), (0.0, 1.0)])


def search(measure, data, s, t, threads=1):
    result = LineSearch(measure.on(data, threads=threads))
    result.start(data.group(s))
    return result, data.group(t)


@given(rays(max_documents=12), MEASURES, ENDS)
def test_finds_the_best_interval_of_the_profile(ray, measure, ends):
    data, s, t = ray
    ours, slopes = search(measure, data, s, t)
    best, profile = ours.best(slopes, *ends), er.profile(data, s, t, measure, low=ends[0], high=ends[1])
    theirs = profile.best(*ends)
    if math.isnan(theirs.value):  # every query is skipped
        return
    assert best.value == pytest.approx(theirs.value, abs=1e-11)
    assert ends[0] <= best.low < best.high <= ends[1]
    assert profile(best.middle()) == pytest.approx(best.value, abs=1e-11)
    assert profile(best.low + 1e-9 * max(1, abs(best.low)) if math.isfinite(best.low) else -1e9) == pytest.approx(best.value, abs=1e-11)


@pytest.mark.parametrize("measure", ["AP", "ERR", "nDCG"])
@pytest.mark.parametrize(("slope", "low", "high"), [(1.0, 0.0, 1.0), (-1.0, -1.0, 0.5)])
def test_a_crossing_at_an_end_begins_no_interval(measure, slope, low, high):
    """The relevant document comes first only beyond the end."""
    data = er.RankingData.from_arrays(None, [1, 0], group=[2])
    step = er.line_search(data, [0.0, 1.0], [slope, 0.0], measure, low=low, high=high)
    assert (step.interval.low, step.interval.high) == (low, high)
    assert step.value == er.evaluate(data, [0.0, 1.0], measure).means[measure]


@pytest.mark.parametrize("measure", ["nDCG@10", "nDCG", "P@5", "nDCG(ties='expected')@3", "RBP", "DCG@10"])
@pytest.mark.parametrize("documents", [3, 40, 150])
@pytest.mark.parametrize("judged", [1.0, 0.1])  # where few documents are worth something, each is followed alone
def test_many_queries_and_long_lists(measure, documents, judged):
    rng = np.random.default_rng(documents)
    sizes = rng.integers(1, 2 * documents, 60)
    n = sizes.sum()
    grades = np.where(rng.random(n) < judged, rng.integers(0, 4, n), 0)
    data = er.RankingData.from_arrays(None, grades, group=sizes, query_weight=rng.random(60))
    parsed = er.parse_measure(measure)
    for s, t in ((rng.normal(size=n), rng.normal(size=n)), (rng.integers(0, 9, n) / 4, rng.integers(0, 5, n) / 8)):
        ours, slopes = search(parsed, data, s, t)
        best, theirs = ours.best(slopes), er.profile(data, s, t, measure).best()
        assert best.value == pytest.approx(theirs.value, abs=1e-11)
        here = er.evaluate(data, s + best.middle() * t, measure)[measure].mean
        assert here == pytest.approx(best.value, abs=1e-11)
        assert search(parsed, data, s, t, threads=2)[0].best(slopes) == best
        assert ours.best(slopes.astype(np.float32)).value == pytest.approx(
            er.profile(data, s, t.astype(np.float32), measure).best().value, abs=1e-11
        )


@given(rays(), MEASURES)
def test_which_measures_have_the_kernel(ray, measure):
    data, _, _ = ray
    assert _core.LineSearch.serves(measure.on(data).native) == (isinstance(measure, Positional) and measure.normalizer != "mean_ideal")


def test_stays_where_it_is_unless_elsewhere_is_better():
    data = er.RankingData.from_arrays(None, [1, 0], qid=[1, 1])
    ours, slopes = search(er.measures.NDCG(k=1), data, np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    best = ours.best(slopes)
    assert (best.low, best.high, best.value) == (-math.inf, 1.0, 1.0)


@given(
    rays(),
    MEASURES,
    st.sampled_from([(-math.inf, math.inf), (0.1, 0.5), (-3.0, -1.0), (0.0, 2.0)]),
    st.sampled_from(["middle", "likelihood"]),
)
def test_a_step_for_whatever_moves_scores(ray, measure, ends, point):
    data, s, t = ray
    if not np.all(np.isfinite(s)):
        point = "middle"
    asked = {"low": ends[0], "high": ends[1], "weight": 1.0 + np.arange(data.n_queries) ** 2}
    best = er.profile(data, s, t, measure, **asked).best(*ends)
    if math.isnan(best.value):
        return
    step = er.line_search(data, s, t, measure, point=point, **asked)
    assert step.value == pytest.approx(best.value, abs=1e-11)
    assert ends[0] <= step.alpha <= ends[1]
    assert step.interval.low <= step.alpha <= step.interval.high


@pytest.mark.parametrize(("low", "high"), [(0.5, 2.0), (-2.0, -0.5), (-1.0, 2.0)])
def test_the_step_between_any_ends_is_the_best_of_a_fine_grid_by_the_weights_of_queries(low, high):
    rng = np.random.default_rng(8)
    data = er.RankingData.from_arrays(None, rng.integers(0, 3, 60), group=[6] * 10)
    s, t, weight = rng.normal(size=60), rng.normal(size=60), rng.random(10) ** 4
    step = er.line_search(data, s, t, "nDCG@3", low=low, high=high, weight=weight)
    weighted = replace(data, query_weight=weight)
    values = [er.evaluate(weighted, s + alpha * t, "nDCG@3").means["nDCG@3"] for alpha in np.linspace(low, high, 1001)]
    assert step.value == pytest.approx(max(values), abs=1e-11)
    assert low <= step.interval.low < step.interval.high <= high


def test_many_blocks_of_queries_on_any_number_of_threads():
    """Work is shared in blocks of 16,384 documents: their answers must add up in one order."""
    rng = np.random.default_rng(5)
    sizes = rng.integers(1, 80, 1500)
    n = sizes.sum()
    data = er.RankingData.from_arrays(None, rng.integers(0, 4, n), group=sizes, query_weight=rng.random(1500))
    s, t = rng.normal(size=n), rng.normal(size=n)
    profiles = [er.profile(data, s, t, "nDCG@10", threads=threads) for threads in (1, 2, 3)]
    steps = [er.line_search(data, s, t, "nDCG@10", threads=threads) for threads in (1, 2, 3)]
    assert n > 3 * 16384
    for profile, step in zip(profiles, steps, strict=True):
        np.testing.assert_array_equal(profile.breakpoints, profiles[0].breakpoints)
        np.testing.assert_array_equal(profile.values, profiles[0].values)
        assert step == steps[0]
    assert steps[0].value == pytest.approx(profiles[0].best().value, abs=1e-11)
    assert steps[0].value == pytest.approx(er.evaluate(data, s + steps[0].alpha * t, "nDCG@10").means["nDCG@10"], abs=1e-11)
    assert len({IdealLikelihood(er.measures.NDCG(k=10).on(data, threads=threads)).slope(s, t, 0.5) for threads in (1, 2)}) == 1


# How much a search holds at once (lines, exchanges of a window, events): little, so that a few documents are many.
ROOMS = st.sampled_from([(1, 1, 10**6), (1, 3, 10**6), (4, 8, 10**6), (1, 1, 0), (2, 4, 2), (1, 100, 5)])


@settings(max_examples=60)
@given(
    rays(max_documents=12),
    MEASURES.filter(lambda measure: isinstance(measure, Positional) and measure.normalizer != "mean_ideal"),
    ENDS,
    ROOMS,
)
def test_many_lines_are_searched_in_parts(ray, measure, ends, room):
    """In windows, and merged as they come, against evaluation between all crossings; also where many lines meet in a point."""
    data, s, t = ray
    theirs = reference.profile(measure, data, s, t)
    native = _core.LineSearch(measure.on(data).native, *room)
    native.rank(data.group(s), 1)
    low, high, value = native.best(data.group(t), *ends, 1)
    best = theirs.best(*ends)
    if math.isnan(best.value):  # every query is skipped
        return
    assert value == pytest.approx(best.value, abs=1e-11)
    assert ends[0] <= low < high <= ends[1]
    assert theirs(Interval(low, high, value).middle()) == pytest.approx(value, abs=1e-11)
    assert native.best(data.group(t), *ends, 2) == (low, high, value)


def long_list(documents, kind, seed=0):
    """One query: (data, scores, slopes)."""
    rng = np.random.default_rng(seed)
    i = np.arange(documents)
    lines = {
        "tangents": (-((i / documents) ** 2), 2 * i / documents),  # each is on top somewhere
        "random": (rng.normal(size=documents), rng.normal(size=documents)),
        "through few points": (rng.integers(0, 40, documents) / 8, rng.integers(0, 40, documents) / 4),
        "tied": (np.zeros(documents), rng.integers(-9, 9, documents).astype(float)),
    }[kind]
    return er.RankingData.from_arrays(None, rng.integers(0, 3, documents), group=[documents]), *lines


@pytest.mark.parametrize("kind", ["tangents", "random", "through few points", "tied"])
@pytest.mark.parametrize("measure", ["nDCG@10", "nDCG", "P@3"])
def test_long_lists_have_the_best_step_of_their_profile(measure, kind):
    data, s, t = long_list(1300, kind)
    ours, slopes = search(er.parse_measure(measure), data, s, t)
    best, profile = ours.best(slopes), er.profile(data, s, t, measure)
    assert best.value == pytest.approx(profile.best().value, abs=1e-11)
    assert profile(best.middle()) == pytest.approx(best.value, abs=1e-11)


def test_lists_of_any_length():
    """40,000 documents, each of which is among the first ten somewhere: beyond what a list of all pairs could hold."""
    data, s, t = long_list(40_000, "tangents")
    ours, slopes = search(er.measures.NDCG(k=10), data, s, t)
    best = ours.best(slopes)
    assert best.value > 0.9
    for alpha in (best.middle(), best.low + 0.01 * (best.high - best.low)):
        assert er.evaluate(data, s + alpha * t, "nDCG@10").means["nDCG@10"] == pytest.approx(best.value, abs=1e-11)


def test_events_that_are_not_kept_give_the_same_step():
    """A measure without a cutoff changes at nearly every crossing of 2,400 documents; beside it a query whose events are kept."""
    (first, s, t), (second, u, v) = long_list(2400, "random"), long_list(50, "random", seed=1)
    data = er.RankingData.from_arrays(None, np.concatenate([first.y, second.y]), group=[2400, 50])
    bound = er.measures.NDCG().on(data).native
    steps = []
    for room in ((1024, 1 << 19, 1 << 20), (1024, 1 << 12, 1 << 23), (4096, 1 << 19, 1 << 20)):
        native = _core.LineSearch(bound, *room)
        native.rank(np.concatenate([s, u]), 1)
        steps.append(native.best(np.concatenate([t, v]), -np.inf, np.inf, 1))
    np.testing.assert_allclose(steps, [steps[2]] * 3, rtol=1e-9, atol=1e-12)


WIDE = 17  #: the shift of a histogram's bins


def test_an_outline_is_of_the_scores_that_it_was_made_from():
    data, s, t = long_list(50, "random")
    native = _core.LineSearch(er.measures.NDCG().on(data).native)
    native.rank_part(s, 1)
    outline = native.outline(t, -np.inf, np.inf, 1)
    native.rank_part(s + 1.0, 1)
    with pytest.raises(ValueError, match="has taken other scores since"):
        outline.close(outline.sums[0], WIDE, 0, 0, WIDE, 1)


@pytest.mark.parametrize("differ", [False, True], ids=["alike", "another sample"])
@pytest.mark.parametrize("measure", ["nDCG@10", "P(ties='expected')@3", "DCG"])
def test_keeping_only_likely_events_gives_the_same_step(measure, differ):
    """Three blocks of queries, of which the first is the sample; its optimum is on the other side of 0 where blocks differ."""
    rng = np.random.default_rng(3)
    documents, first = 40_000, 16_384 // 20 * 20
    s, t = rng.integers(0, 50, documents) / 8, rng.standard_normal(documents).astype(np.float32)
    wanted = s + np.where(np.arange(documents) < first, 2.0, -2.0) * t if differ else s + 2.0 * t
    data = er.RankingData.from_arrays(
        None, np.clip(wanted + rng.standard_normal(documents) - 4, 0, 4).round(), group=[20] * (documents // 20)
    )
    bound = er.parse_measure(measure).on(data).native
    results = {}
    for blocks in (0, 99):
        native = _core.LineSearch(bound, blocks=blocks)
        native.rank(s, 1)
        along = t, -np.inf, np.inf
        steps = [native.best(t, *ends, threads) for ends in ((-np.inf, np.inf), (-0.5, 0.25), (0.0, 3.0)) for threads in (1, 2)]
        outline = native.outline(*along, 2)
        numbers = outline.sums[0]
        results[blocks] = [
            steps,
            [part.tolist() for part in outline.sums],
            sorted(zip(*outline.close(numbers[::7].copy(), WIDE, 0, 1 << 62, WIDE, 2)[0], strict=True)),
            [outline.close(numbers[:0].copy(), WIDE, int(edge), 0, WIDE, 2)[2:] for edge in numbers[::97]],
        ]
    assert results[0] == results[99]
    assert results[0][0][0] == results[0][0][1]
