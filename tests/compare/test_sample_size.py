"""Numbers of queries, intervals for growing test sets, clusters: against scipy, a slow twin and simulation."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats
from typer.testing import CliRunner

import exactrank as er
from exactrank._support.clusters import cluster_numbers, cluster_sums
from exactrank.cli import app
from exactrank.compare.statistics import observations
from exactrank.errors import DataError, SettingError
from exactrank.measures.bootstrap import bootstrap_intervals
from exactrank.statistics import all_pairs, always_valid, detectable_difference, paired_t, power, sample_size
from tests.reference import always_valid as twin

NAN = math.nan


def some_differences(n, seed=0, mean=0.0):
    """Draw differences as of nDCG: many zeros, skewed."""
    rng = np.random.default_rng(seed)
    d = np.where(rng.random(n) < 0.4, 0.0, rng.beta(1.5, 6, n) - 0.2)
    return np.clip(d + mean, -1, 1)


# ---- power


@pytest.mark.parametrize("n", [2, 5, 60, 400])
@pytest.mark.parametrize("effect", [0.1, 0.3, 0.8])
def test_power_is_that_of_the_noncentral_t_distribution(n, effect):
    d = some_differences(50)
    difference = effect * d.std(ddof=1)
    critical = stats.t.ppf(0.975, n - 1)
    theirs = stats.nct.sf(critical, n - 1, effect * math.sqrt(n)) + np.nan_to_num(stats.nct.cdf(-critical, n - 1, effect * math.sqrt(n)))
    assert power(d, difference, n) == pytest.approx(theirs, abs=1e-7)


def test_power_is_the_share_of_simulated_tests_that_find_the_difference():
    population = some_differences(20_000)
    population -= population.mean()
    wanted = sample_size(population, 0.02)
    rng = np.random.default_rng(1)
    hits = [paired_t(rng.choice(population, wanted) + 0.02) < 0.05 for _ in range(600)]
    assert np.mean(hits) == pytest.approx(0.8, abs=0.05)


@given(st.integers(3, 40), st.floats(0.001, 0.5), st.floats(0.1, 0.99))
@settings(max_examples=8, deadline=None)
def test_needed_queries_are_the_fewest_and_detectable_differences_the_smallest(n, difference, wanted):
    d = some_differences(n, seed=n)
    needed = sample_size(d, difference, wanted)
    assert power(d, difference, needed) >= wanted
    assert needed == 2 or power(d, difference, needed - 1) < wanted
    smallest = detectable_difference(d, needed, wanted)
    assert smallest <= difference * (1 + 1e-6)
    assert power(d, smallest * 0.999, needed) < wanted <= power(d, smallest, needed)


def test_power_of_no_difference_is_the_level():
    assert power(some_differences(50), 0.0, 200) == pytest.approx(0.05, abs=1e-12)


def test_bad_input_of_power():
    d = some_differences(30)
    for call, says in (
        (lambda: power([0.1], 0.1), "differences of 1 queries; their spread takes at least 2"),
        (lambda: power([0.1, 0.1, NAN], 0.1), "all 2 differences are 0.1"),
        (lambda: power([[0.1, 0.2]], 0.1), "shape"),
        (lambda: power([0.1, math.inf], 0.1), "is infinite"),
        (lambda: sample_size(d, 1e-12), "takes more than 1,000,000,000,000 queries"),
    ):
        with pytest.raises(DataError, match=says):
            call()
    for call, says in (
        (lambda: sample_size(d, 0), "difference must be a number above 0"),
        (lambda: sample_size(d, 0.1, 0.05), "power=0.05: expected a probability between the level 0.05 and 1"),
        (lambda: power(d, 0.1, level=1), "level=1: expected"),
        (lambda: power(d, 0.1, 1), "queries must be at least 2"),
    ):
        with pytest.raises(SettingError, match=says):
            call()


# ---- always-valid intervals


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0]), min_size=1, max_size=25), st.sampled_from([0.05, 0.5]))
@settings(max_examples=40, deadline=None)
def test_the_interval_is_that_of_all_means_at_every_look(values, risk):
    low, high = twin.interval(values, risk, 100)
    ours = always_valid(2 * np.array(values) - 1, level=1 - risk)
    first, last = ((1 + end) / 2 for end in ours.interval)
    assert low - 0.01 - 1e-9 <= first <= low + 1e-9
    assert high - 1e-9 <= last <= high + 0.01 + 1e-9
    p = min(1, 2 / max(twin.capital(values, 0.5, risk), twin.capital(twin.flip(values), 0.5, risk)))
    assert ours.p == pytest.approx(p, rel=1e-9)


def test_more_values_never_widen_the_interval_and_p_agrees_with_it():
    d = some_differences(400, mean=0.03)
    intervals = [always_valid(d[:n]) for n in range(20, 401, 20)]
    for before, after in pairwise(intervals):
        assert before.interval[0] <= after.interval[0] <= after.interval[1] <= before.interval[1]
        assert (after.p <= 0.05) == (not after.interval[0] < 0 < after.interval[1])
    assert intervals[-1].p < 0.05


def test_peeking_errs_in_at_most_5_percent():
    """A t-test that is looked at after every ten queries errs often; the interval, which holds all looks, hardly ever."""
    wrong = often = 0
    population = some_differences(10_000, seed=3)
    mean = float(population.mean())
    for seed in range(200):
        d = np.random.default_rng(seed).choice(population, 200)
        low, high = always_valid(d).interval
        wrong += not low < mean < high
        often += any(paired_t(d[:n] - mean) < 0.05 for n in range(10, 201, 10))
    assert wrong <= 10
    assert often >= 30


def test_bounds_and_missing_values_of_growing_sets():
    assert always_valid([NAN, 0.5, NAN]) == always_valid([0.5])
    assert always_valid([]).interval == (-1, 1)
    assert always_valid([3.0, 5.0], low=0, high=10).interval == pytest.approx(
        10 * np.array(always_valid([0.3, 0.5], low=0, high=1).interval)
    )
    users = always_valid([0.1, 0.5, 0.3, NAN, 0.3], clusters=["ann", "bob", "ann", "joe", "bob"])
    assert users == always_valid([0.2, 0.4])
    for arguments, says in (
        (([0.1, 1.5],), r"value of query 1 \(from 0\) is 1.5, outside of -1 and 1"),
        (([[0.1]],), "shape"),
    ):
        with pytest.raises(DataError, match=says):
            always_valid(*arguments)
    for settings_, says in (
        ({"low": 0.5}, "one on each side of 0"),
        ({"level": 1.0}, "level=1.0"),
        ({"clusters": [1]}, "1 clusters for 2"),
    ):
        with pytest.raises(DataError, match=says):
            always_valid([0.6, 0.7], **settings_)


# ---- clusters


def test_queries_of_one_user_count_as_one_observation():
    """Users differ, and ask 10 queries each: tests of queries err far too often, tests of users do not."""
    rng, by_query, by_user = np.random.default_rng(0), [], []
    users = np.repeat(np.arange(20), 10)
    for _ in range(200):
        d = np.repeat(rng.normal(size=20), 10) + rng.normal(size=200)
        by_query.append(paired_t(d) < 0.05)
        by_user.append(paired_t(observations(d, clusters=users)) < 0.05)
    assert np.mean(by_query) > 0.3
    assert np.mean(by_user) < 0.1


def test_observations_of_clusters_have_the_weighted_mean_and_single_queries_change_nothing():
    rng = np.random.default_rng(1)
    d, weight = rng.normal(size=30), rng.random(30)
    d[4] = NAN
    names = [f"user {i % 7}" for i in range(30)]
    counted = ~np.isnan(d)
    mean = np.sum(d[counted] * weight[counted]) / weight[counted].sum()
    assert observations(d, weight, names).mean() == pytest.approx(mean)
    assert len(observations(d, weight, names)) == 7
    assert np.array_equal(observations(d, weight, range(30)), observations(d, weight))
    values = {"a": d, "b": rng.normal(size=30)}
    alone, apart = all_pairs(values, weight=weight), all_pairs(values, weight=weight, clusters=np.arange(30))
    assert alone == apart
    (pair,) = all_pairs(values, weight=weight, clusters=names)
    assert pair.difference == pytest.approx(alone[0].difference)
    assert (pair.queries, pair.wins + pair.ties + pair.losses) == (29, 7)


def test_the_bootstrap_draws_whole_clusters():
    """Clusters of equal queries are as uncertain as that number of queries."""
    d = np.random.default_rng(2).normal(size=12)
    clusters = np.repeat(np.arange(12), 5)
    ours = bootstrap_intervals(np.repeat(d, 5)[None], np.ones(60), clusters=clusters)
    assert ours == pytest.approx(bootstrap_intervals(d[None], np.ones(12)))


def test_clusters_are_checked():
    assert cluster_numbers(["b", "a", "b", 3], 4).tolist() == [0, 1, 0, 2]
    assert cluster_sums(np.ones((2, 3)), np.array([0, 0, 1])).tolist() == [[2, 1], [2, 1]]
    for names, says in ((["a"], "1 clusters for 2 queries"), (["a", None], r"query 1 \(from 0\) has no cluster"), ([NAN, 1], "query 0")):
        with pytest.raises(DataError, match=says):
            cluster_numbers(names, 2)
    with pytest.raises(er.errors.IncompatibleError, match="clusters is 'ab'"):
        cluster_numbers("ab", 2)


# ---- command


def test_the_command_says_how_many_queries_a_difference_takes(tmp_path):
    rng = np.random.default_rng(0)
    data = er.RankingData.from_arrays(None, rng.integers(0, 3, 400), qid=np.repeat(np.arange(40), 10), docid=[f"d{i}" for i in range(400)])
    er.write(data, tmp_path / "test.csv")
    for name, noise in (("a", 0.5), ("b", 2.0)):
        (tmp_path / f"{name}.txt").write_text("".join(f"{score!r}\n" for score in (data.y + noise * rng.normal(size=400)).tolist()))
    files = [str(tmp_path / name) for name in ("test.csv", "a.txt", "b.txt")]
    shown = CliRunner().invoke(app, ["power", *files, "--difference", "0.02"])
    assert shown.exit_code == 0, shown.output
    scores = [np.loadtxt(tmp_path / name) for name in ("a.txt", "b.txt")]
    first, second = (er.evaluate(data, score, "nDCG@10").per_query[0] for score in scores)
    assert f"{sample_size(first - second, 0.02):,}" in shown.output
    assert f"{detectable_difference(first - second, 160):.4f}" in shown.output
    refused = CliRunner().invoke(app, ["power", *files, "--power", "2"])
    assert refused.exit_code == 2
    assert "power=2.0: expected a probability" in refused.output
