"""Probabilities of the distributions behind tests: against scipy, exact arithmetic and their symmetries."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import special, stats

from exactrank._support.distributions import incomplete_beta, sign_test, two_sided_normal, two_sided_t

DEGREES = st.one_of(st.integers(1, 200), st.sampled_from([1_000, 10_000, 10**6, 10**8]))
SMALLEST = 1e-290  #: scipy's own tails lose digits beyond


@given(st.floats(1e-3, 40), DEGREES)
@settings(max_examples=300)
def test_t_is_that_of_scipy(t, degrees):
    theirs = 2 * stats.t.sf(t, degrees)
    assert two_sided_t(t, degrees) == two_sided_t(-t, degrees)
    assert two_sided_t(t, degrees) == pytest.approx(theirs, rel=1e-12, abs=SMALLEST)


@given(st.floats(0, 37))
@settings(max_examples=300)
def test_the_normal_distribution_is_that_of_scipy(z):
    assert two_sided_normal(z) == two_sided_normal(-z)
    assert two_sided_normal(z) == pytest.approx(2 * stats.norm.sf(z), rel=1e-12)


def test_t_with_few_degrees_has_closed_forms():
    for t in np.geomspace(1e-9, 1e9, 60).tolist():
        assert two_sided_t(t, 1) == pytest.approx(2 / math.pi * math.atan(1 / t), rel=1e-13)
        assert two_sided_t(t, 2) == pytest.approx(2 / (2 + t * t) / (1 + t / math.sqrt(2 + t * t)), rel=1e-13)


def test_t_approaches_the_normal_distribution():
    assert two_sided_t(2.5, 10**12) == pytest.approx(two_sided_normal(2.5), rel=1e-10)


@given(st.integers(0, 400), st.integers(0, 400))
@settings(max_examples=200)
def test_the_sign_test_counts_exactly(wins, losses):
    n, least = wins + losses, min(wins, losses)
    share = Fraction(2 * sum(math.comb(n, i) for i in range(least + 1)), 2**n)
    leads = np.repeat([1, -1], [wins, losses])
    assert sign_test(leads) == sign_test(-leads) == pytest.approx(float(min(share, 1)), rel=1e-13)


@given(st.lists(st.integers(-9, 9), max_size=10))
def test_the_sign_test_counts_all_signs(leads):
    sums = [abs(sum(signs)) for signs in itertools.product(*({lead, -lead} for lead in leads if lead))]
    assert sign_test(leads) == pytest.approx(np.mean(np.array(sums) >= abs(sum(leads))))


def test_the_sign_test_of_large_leads_is_near_its_exact_one():
    leads = np.random.default_rng(0).integers(-40, 60, 80)
    normal = two_sided_normal(abs(int(leads.sum())) / math.sqrt(float(np.sum(leads.astype(float) ** 2))))
    assert sign_test(leads) == pytest.approx(normal, rel=0.2)
    assert sign_test(100 * leads) == normal


@pytest.mark.parametrize("pages", [10_001, 10**6, 10**7])
@pytest.mark.parametrize("lead", [1, 10, 1_000])
def test_the_sign_test_of_many_pages_is_that_of_scipy(pages, lead):
    wins = (pages + lead) // 2
    assert sign_test(np.repeat([1, -1], [wins, pages - wins])) == pytest.approx(stats.binomtest(wins, pages).pvalue, rel=1e-11)


@given(st.floats(0.01, 1e4), st.floats(0.01, 1e4), st.integers(0, 1 << 20).map(lambda i: i / (1 << 20)))
@settings(max_examples=300)
def test_the_incomplete_beta_function_is_that_of_scipy(a, b, x):
    theirs = special.betainc(a, b, x)
    assert incomplete_beta(a, b, x, 1 - x) == pytest.approx(theirs, rel=1e-11, abs=1e-250)
    assert incomplete_beta(a, b, x, 1 - x) + incomplete_beta(b, a, 1 - x, x) == pytest.approx(1, rel=1e-14)


def test_far_tails_underflow_to_nothing():
    assert two_sided_normal(100.0) == two_sided_t(1e9, 100) == sign_test([1] * 10_000) == 0.0
