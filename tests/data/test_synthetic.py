"""Artificial data: the polynomial equals its definition, and queries do not depend on how they are asked for."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as er
from exactrank import _core
from exactrank.data.synthetic import GRADE_RATIO, CubicPolynomial


def slow_cubic(x, coefficients):
    terms = iter(coefficients)
    total = 0.0
    for i in range(len(x)):
        square = next(terms)
        for j in range(i + 1):
            line = next(terms)
            for k in range(j + 1):
                line += x[k] * next(terms)
            square += x[j] * line
        total += x[i] * square
    assert next(terms, None) is None
    return total


@settings(max_examples=40)
@given(d=st.integers(1, 7), n=st.integers(1, 20), seed=st.integers(0, 99))
def test_polynomial_equals_its_definition(d, n, seed):
    rng = np.random.default_rng(seed)
    X, c = rng.normal(size=(n, d)).astype(np.float32), rng.normal(size=_core.cubic_terms(d))
    np.testing.assert_allclose(_core.cubic(X, c, 2), [slow_cubic(x.astype(float), c) for x in X], rtol=1e-12, atol=1e-12)


def gathered(blocks):
    blocks = list(blocks)
    return np.concatenate([b.X for b in blocks]), np.concatenate([b.y for b in blocks]), np.concatenate([b.qid for b in blocks])


@settings(max_examples=20)
@given(first=st.integers(1, 150), count=st.integers(1, 150))
def test_a_query_is_the_same_in_any_range(first, count):
    source = CubicPolynomial(features=4, documents=3, noise=0.3)
    X, y, qid = gathered(source.stream(300).blocks)
    part = gathered(source.stream(count, first).blocks)
    rows = (qid >= first) & (qid < first + count)
    for ours, theirs in zip(part, (X[rows], y[rows], qid[rows]), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_threads_give_the_same_bits():
    first, second = (gathered(CubicPolynomial(documents=30, threads=t, seed=5).stream(70).blocks) for t in (1, 2))
    assert all(a.tobytes() == b.tobytes() for a, b in zip(first, second, strict=True))


def test_grades_are_as_common_as_announced():
    _, y, _ = gathered(CubicPolynomial(features=10, grades=4, noise=0.5).stream(2000).blocks)
    share = np.bincount(y.astype(int)) / len(y)
    announced = GRADE_RATIO ** np.arange(4)
    np.testing.assert_allclose(share, announced / announced.sum(), atol=0.01)


def test_noise_makes_the_target_harder_to_see():
    """Grades follow the polynomial exactly without noise, and less so with it."""

    def agreement(noise):
        source = CubicPolynomial(features=5, noise=noise)
        X, y, _ = gathered(source.stream(64).blocks)
        return np.corrcoef(_core.cubic(X, source._coefficients, 1).argsort().argsort(), y)[0, 1]

    assert agreement(0.0) > agreement(0.5) > agreement(2.0) > 0


def test_each_degree_has_the_same_say():
    source = CubicPolynomial(features=12)
    d = source.features
    degree = np.concatenate([[1, *(g for j in range(i + 1) for g in [2] + [3] * (j + 1))] for i in range(d)])
    X = np.random.default_rng(0).standard_normal((20_000, d)).astype(np.float32)
    spread = [_core.cubic(X, np.where(degree == g, source._coefficients, 0), 1).std() for g in (1, 2, 3)]
    np.testing.assert_allclose(spread, np.sqrt(1 / 3), rtol=0.1)


@pytest.mark.parametrize(
    ("changes", "message"), [({"features": 0}, "features must be"), ({"grades": 1}, "grades must be"), ({"noise": -1}, "noise must be")]
)
def test_bad_settings(changes, message):
    with pytest.raises(er.errors.SettingError, match=message):
        CubicPolynomial(**changes)
