"""Searches with query weights below 0, as corrected means have them: equal to brute force over all breakpoints, by every kernel."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import exactrank as er
from exactrank import _core
from exactrank.learning.objectives.line_search import LineSearch, StepFunctions
from exactrank.learning.objectives.step_function import Interval, StepFunction
from exactrank.measures.families import Positional
from tests.learning.objectives.test_line_search import ENDS, ROOMS, long_list
from tests.learning.objectives.test_profile import rays
from tests.reference.profile import crossings
from tests.strategies import MEASURES


def slow_profile(bound, s, t):
    """The signed mean at every crossing of two documents, and half way between the crossings."""
    points = {0.0}
    for begin, end in zip(bound.data.indptr[:-1], bound.data.indptr[1:], strict=True):
        points |= crossings(s[begin:end], t[begin:end])
    points = np.array(sorted(points))
    inside = np.concatenate([points[:1] - 1, (points[:-1] + points[1:]) / 2, points[-1:] + 1])

    def value(alpha):
        values = bound.values(s + alpha * t)
        counts = ~np.isnan(values)
        return math.fsum(values[counts] * bound.weights[counts]) / math.fsum(bound.weights[counts])

    return StepFunction(points, np.array([value(alpha) for alpha in inside]), np.array([value(alpha) for alpha in points]))


@st.composite
def signed_rays(draw, measures=MEASURES):
    """A measure bound to queries of weights of both signs that add up to more than 0, scores and slopes."""
    data, s, t = draw(rays(max_documents=12))
    measure = draw(measures)
    weights = np.array(draw(st.lists(st.integers(-8, 8), min_size=data.n_queries, max_size=data.n_queries))) / 4
    bound = replace(measure.on(data), weights=weights)
    s, t = data.group(s), data.group(t)
    counts = ~np.isnan(bound.values(s))
    assume(weights[counts].sum() > 0.2)
    return bound, s, t


def check(best, theirs, ends):
    wanted = theirs.best(*ends)
    assert best.value == pytest.approx(wanted.value, abs=1e-10)
    assert ends[0] <= best.low < best.high <= ends[1]
    assert theirs(best.middle()) == pytest.approx(best.value, abs=1e-10)


@settings(max_examples=150)
@given(signed_rays(), ENDS)
def test_the_best_step_is_that_of_brute_force(ray, ends):
    bound, s, t = ray
    theirs, search = slow_profile(bound, s, t), LineSearch(bound)
    assert search.start(s) == pytest.approx(theirs(0.0), abs=1e-10)
    check(search.best(t, *ends), theirs, ends)
    steps = StepFunctions(bound)  # the kernel for measures of any kind
    assert steps.start(s) == pytest.approx(theirs(0.0), abs=1e-10)
    check(steps.best(t, *ends), theirs, ends)
    whole = search.profile(t)
    np.testing.assert_allclose([whole(alpha) for alpha in theirs.breakpoints], theirs.at, atol=1e-10)


def positional(measure):
    """The measure, or nDCG in the place of one that is not of the kernel of many lines."""
    return measure if isinstance(measure, Positional) and measure.normalizer != "mean_ideal" else er.measures.NDCG(k=measure.k)


@settings(max_examples=60)
@given(signed_rays(MEASURES.map(positional)), ENDS, ROOMS)
def test_many_lines_in_parts(ray, ends, room):
    bound, s, t = ray
    native = _core.LineSearch(bound.native, *room)
    native.rank(s, 1)
    best = native.best(t, *ends, 1)
    check(Interval(*best), slow_profile(bound, s, t), ends)
    assert native.best(t, *ends, 2) == best


@pytest.mark.parametrize("measure", ["nDCG@10", "P(ties='expected')@3", "DCG", "AP"])
def test_twice_a_query_less_once_is_once(measure):
    """A query of weight 2 and the same of weight -1 are the query itself, in many blocks of queries and with threads."""
    rng = np.random.default_rng(0)
    grades, s, t = rng.integers(0, 4, 20_000), rng.normal(size=20_000), rng.normal(size=20_000)
    parsed, alone = er.parse_measure(measure), er.RankingData.from_arrays(None, grades, group=[20] * 1000)
    both = er.RankingData.from_arrays(None, np.tile(grades, 2), group=[20] * 2000)
    ours = LineSearch(replace(parsed.on(both, threads=2), weights=np.repeat([2.0, -1.0], 1000)))
    theirs = LineSearch(parsed.on(alone))
    assert ours.start(np.tile(s, 2)) == pytest.approx(theirs.start(s), abs=1e-12)
    best, wanted = ours.best(np.tile(t, 2)), theirs.best(t)
    assert best.value == pytest.approx(wanted.value, abs=1e-12)
    assert (best.low, best.high) == pytest.approx((wanted.low, wanted.high))


def test_a_query_whose_events_are_not_kept():
    """A negative query of 2,400 documents without a cutoff, whose events are merged as they come."""
    (first, s, t), (second, u, v) = long_list(2400, "random"), long_list(50, "random", seed=1)
    data = er.RankingData.from_arrays(None, np.concatenate([first.y, second.y]), group=[2400, 50])
    bound = replace(er.measures.NDCG().on(data), weights=np.array([-0.5, 1.0])).native
    steps = []
    for room in ((1024, 1 << 19, 1 << 20), (4096, 1 << 19, 1 << 20)):
        native = _core.LineSearch(bound, *room)
        native.rank(np.concatenate([s, u]), 1)
        steps.append(native.best(np.concatenate([t, v]), -np.inf, np.inf, 1))
    np.testing.assert_allclose(steps[0], steps[1], rtol=1e-9, atol=1e-12)


def test_large_weights_that_nearly_cancel_do_not_overflow():
    """Sums are whole numbers of a unit that sizes of weights decide, not their sum."""
    rng = np.random.default_rng(1)
    data = er.RankingData.from_arrays(None, rng.integers(0, 3, 400), group=[10] * 40)
    s, t = rng.normal(size=400), rng.normal(size=400)
    bound = replace(er.parse_measure("nDCG@5").on(data), weights=np.where(np.arange(40) < 20, 1000.0, -999.9))
    search, theirs = LineSearch(bound), slow_profile(bound, s, t)
    search.start(s)
    best, wanted = search.best(t), theirs.best()
    assert best.value == pytest.approx(wanted.value, rel=1e-8)
    assert theirs(best.middle()) == pytest.approx(best.value, rel=1e-8)
