"""The kernel that finds the best step against the whole profile."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import exactrank as xr
from exactrank import _core
from exactrank.measures.families import Positional
from exactrank.objectives.likelihood import IdealLikelihood
from exactrank.objectives.line_search import LineSearch
from tests.strategies import MEASURES
from tests.test_profile import rays

ENDS = st.sampled_from([(-math.inf, math.inf), (0.0, math.inf), (-math.inf, 0.0), (-1.0, 2.0), (-0.3, 0.3), (0.0, 1.0)])


def search(measure, data, s, t, threads=1):
    found = LineSearch(measure.on(data, threads=threads))
    found.start(data.grouped(s))
    return found, data.grouped(t)


@given(rays(max_documents=12), MEASURES, ENDS)
def test_finds_the_best_interval_of_the_profile(ray, measure, ends):
    data, s, t = ray
    ours, slopes = search(measure, data, s, t)
    best, profile = ours.best(slopes, *ends), xr.profile(measure, data, s, t, low=ends[0], high=ends[1])
    theirs = profile.best(*ends)
    if math.isnan(theirs.value):  # every query is skipped
        return
    assert best.value == pytest.approx(theirs.value, abs=1e-11)
    assert ends[0] <= best.low < best.high <= ends[1]
    assert profile(best.middle()) == pytest.approx(best.value, abs=1e-11)
    assert profile(best.low + 1e-9 * max(1, abs(best.low)) if math.isfinite(best.low) else -1e9) == pytest.approx(best.value, abs=1e-11)


@pytest.mark.parametrize("measure", ["nDCG@10", "nDCG", "P@5", "nDCG(ties='expected')@3", "RBP", "DCG@10"])
@pytest.mark.parametrize("documents", [3, 40, 150])
def test_many_queries_and_long_lists(measure, documents):
    rng = np.random.default_rng(documents)
    sizes = rng.integers(1, 2 * documents, 60)
    n = sizes.sum()
    data = xr.RankingData.from_arrays(None, rng.integers(0, 4, n), group=sizes, query_weight=rng.random(60))
    parsed = xr.parse_measure(measure)
    for s, t in ((rng.normal(size=n), rng.normal(size=n)), (rng.integers(0, 9, n) / 4, rng.integers(0, 5, n) / 8)):
        ours, slopes = search(parsed, data, s, t)
        best, theirs = ours.best(slopes), xr.profile(measure, data, s, t).best()
        assert best.value == pytest.approx(theirs.value, abs=1e-11)
        here = xr.evaluate(measure, data, s + best.middle() * t)[measure].mean
        assert here == pytest.approx(best.value, abs=1e-11)
        assert search(parsed, data, s, t, threads=2)[0].best(slopes) == best
        assert ours.best(slopes.astype(np.float32)).value == pytest.approx(
            xr.profile(measure, data, s, t.astype(np.float32)).best().value, abs=1e-11
        )


@given(rays(), MEASURES)
def test_which_measures_have_the_kernel(ray, measure):
    data, _, _ = ray
    kernel, _ = measure.kernel(data.y, data.longest)
    assert _core.LineSearch.serves(kernel) == (isinstance(measure, Positional) and measure.normaliser != "mean_ideal")


def test_stays_where_it_is_unless_elsewhere_is_better():
    data = xr.RankingData.from_arrays(None, [1, 0], qid=[1, 1])
    ours, slopes = search(xr.NDCG(k=1), data, np.array([1.0, 0.0]), np.array([0.0, 1.0]))
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
    best = xr.profile(measure, data, s, t, **asked).best(*ends)
    if math.isnan(best.value):
        return
    step = xr.line_search(measure, data, s, t, point=point, **asked)
    assert step.value == pytest.approx(best.value, abs=1e-11)
    assert ends[0] <= step.alpha <= ends[1]
    assert step.interval.low <= step.alpha <= step.interval.high


@pytest.mark.parametrize(("low", "high"), [(0.5, 2.0), (-2.0, -0.5), (-1.0, 2.0)])
def test_the_step_between_any_ends_is_the_best_of_a_fine_grid_by_the_weights_of_queries(low, high):
    rng = np.random.default_rng(8)
    data = xr.RankingData.from_arrays(None, rng.integers(0, 3, 60), group=[6] * 10)
    s, t, weight = rng.normal(size=60), rng.normal(size=60), rng.random(10) ** 4
    step = xr.line_search("nDCG@3", data, s, t, low=low, high=high, weight=weight)
    weighted = replace(data, query_weight=weight)
    values = [xr.evaluate("nDCG@3", weighted, s + alpha * t).means["nDCG@3"] for alpha in np.linspace(low, high, 1001)]
    assert step.value == pytest.approx(max(values), abs=1e-11)
    assert low <= step.interval.low < step.interval.high <= high


def test_many_blocks_of_queries_on_any_number_of_threads():
    """Work is shared in blocks of 16,384 documents: their answers must add up in one order."""
    rng = np.random.default_rng(5)
    sizes = rng.integers(1, 80, 1500)
    n = sizes.sum()
    data = xr.RankingData.from_arrays(None, rng.integers(0, 4, n), group=sizes, query_weight=rng.random(1500))
    s, t = rng.normal(size=n), rng.normal(size=n)
    profiles = [xr.profile("nDCG@10", data, s, t, threads=threads) for threads in (1, 2, 3)]
    steps = [xr.line_search("nDCG@10", data, s, t, threads=threads) for threads in (1, 2, 3)]
    assert n > 3 * 16384
    for profile, step in zip(profiles, steps, strict=True):
        np.testing.assert_array_equal(profile.breakpoints, profiles[0].breakpoints)
        np.testing.assert_array_equal(profile.values, profiles[0].values)
        assert step == steps[0]
    assert steps[0].value == pytest.approx(profiles[0].best().value, abs=1e-11)
    assert steps[0].value == pytest.approx(xr.evaluate("nDCG@10", data, s + steps[0].alpha * t).means["nDCG@10"], abs=1e-11)
    assert len({IdealLikelihood(xr.NDCG(k=10).on(data, threads=threads)).slope(s, t, 0.5) for threads in (1, 2)}) == 1
