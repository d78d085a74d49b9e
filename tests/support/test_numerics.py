"""Laws of the core's own linear algebra, elementary functions and draws; NumPy, SciPy and mpmath are the twins."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import linalg, special, stats

from exactrank._support import numerics

FUNCTIONS = ("exp", "exp2", "log", "log1p", "log2", "tanh")
#: The largest error, in units of the last place.
ULPS = {"exp": 1, "exp2": 1, "log": 1, "log1p": 1, "log2": 1, "tanh": 3}
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1e-310, 1.0, -1.0, -0.5, 1e308, -1e308, 2.0, 1e-20, 710.0, -746.0])
sizes = st.integers(0, 40)
seeds = st.integers(0, 2**32 - 1)


def drawn(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def points(name: str, seed: int, count: int = 400) -> np.ndarray:
    """Numbers from the whole range of a function, and from where it is hard."""
    rng = np.random.default_rng(seed)
    if name in ("exp", "exp2"):
        least, most = (-745.2, 709.8) if name == "exp" else (-1074.5, 1024.0)
        return np.concatenate([rng.uniform(least, most, count), rng.uniform(-1, 1, count), rng.uniform(-1e-6, 1e-6, count)])
    sizes = np.exp(rng.uniform(-740, 709, count))
    if name in ("log", "log2"):
        return np.concatenate([sizes, rng.uniform(0.5, 2, count), 1 + rng.uniform(-1e-6, 1e-6, count), sizes[:20] * 5e-324 / sizes[:20]])
    if name == "log1p":
        return np.concatenate([sizes, -rng.random(count), rng.uniform(-0.5, 3, count), rng.uniform(-1e-9, 1e-9, count)])
    return np.concatenate([sizes * rng.choice([-1, 1], count), rng.uniform(-3, 3, count), rng.uniform(-25, 25, count)])


def errors_in_ulps(name: str, x: np.ndarray) -> np.ndarray:
    exact = {"exp2": lambda v: mpmath.power(2, v), "log2": lambda v: mpmath.log(v) / mpmath.log(2)}.get(name, getattr(mpmath, name, None))
    ours, errors = getattr(numerics, name)(x), []
    with mpmath.workprec(200):
        for value, argument in zip(ours.tolist(), x.tolist(), strict=True):
            truth = exact(mpmath.mpf(argument))
            spacing = np.spacing(max(abs(float(truth)), 2.0**-1022)) if np.isfinite(value) else np.inf
            errors.append(float(abs(mpmath.mpf(value) - truth) / spacing) if np.isfinite(value) else float(abs(truth) < 1.797e308))
    return np.array(errors)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_accurate_over_their_whole_range(name):
    assert errors_in_ulps(name, points(name, 0)).max() <= ULPS[name]


@given(st.sampled_from(FUNCTIONS), st.floats(allow_nan=False, allow_infinity=False))
def test_functions_are_accurate_anywhere(name, x):
    domain = {"log": x > 0, "log2": x > 0, "log1p": x > -1}.get(name, True)
    if domain:
        assert errors_in_ulps(name, np.array([x])).max() <= ULPS[name]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_what_is_not_ordinary(name):
    with np.errstate(all="ignore"):
        theirs = getattr(np, name)(SPECIAL)
    np.testing.assert_allclose(getattr(numerics, name)(SPECIAL), theirs, rtol=1e-15)


@given(st.sampled_from([*FUNCTIONS, "normal_quantile"]), seeds, st.integers(0, 30))
def test_a_number_has_the_same_image_alone_and_among_others(name, seed, count):
    x = np.random.default_rng(seed).random(count) if name == "normal_quantile" else np.append(drawn(seed, count) * 10, SPECIAL)
    function = getattr(numerics, name)
    np.testing.assert_array_equal(function(x), [float(function(value)) for value in x])


def test_powers_of_two_are_exact():
    whole = np.arange(-1074.0, 1024.0)
    np.testing.assert_array_equal(numerics.exp2(whole), np.ldexp(1.0, whole.astype(int)))
    np.testing.assert_array_equal(numerics.log2(np.ldexp(1.0, whole.astype(int))), whole)


@given(st.floats(1e-3, 1e3), st.one_of(st.integers(-60, 60), st.floats(-20, 20)))
def test_powers(base, exponent):
    np.testing.assert_allclose(numerics.power(base, exponent), base**exponent, rtol=1e-13)


def test_powers_of_arrays_are_broadcast():
    np.testing.assert_allclose(numerics.power([[2.0], [3.0]], [1, 2.5]), [[2, 2**2.5], [3, 3**2.5]], rtol=1e-15)


def test_quantiles_of_the_normal_distribution():
    p = np.concatenate([np.random.default_rng(0).random(2000), np.geomspace(1e-300, 0.5, 500), 1 - np.geomspace(2.0**-53, 0.5, 500)])
    np.testing.assert_allclose(numerics.normal_quantile(p), special.ndtri(p), rtol=1e-13, atol=1e-15)


def test_draws_have_their_distribution():
    rng = np.random.default_rng(1)
    assert stats.kstest(numerics.standard_normal(rng, 20_000), "norm").pvalue > 0.01
    assert stats.kstest(numerics.standard_exponential(rng, 20_000), "expon").pvalue > 0.01
    assert numerics.standard_normal(rng, (3, 4)).shape == (3, 4)


class Lowest:
    """A generator whose draws are the smallest there are."""

    def random(self, shape):
        return np.zeros(shape)


def test_the_smallest_draw_is_finite():
    assert np.isfinite(numerics.standard_normal(Lowest(), 2)).all()
    np.testing.assert_array_equal(numerics.standard_exponential(Lowest(), 2), 0.0)


@given(sizes, sizes, sizes, seeds)
def test_products(rows, terms, columns, seed):
    a, b, v = drawn(seed, rows, terms), drawn(seed + 1, terms, columns), drawn(seed + 2, terms)
    close = {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(numerics.matmul(a, b), a @ b, **close)
    np.testing.assert_allclose(numerics.matmul(a, v), a @ v, **close)
    np.testing.assert_allclose(numerics.matmul(v, b), v @ b, **close)
    np.testing.assert_allclose(numerics.dot(v, v), v @ v, **close)
    np.testing.assert_allclose(numerics.norm(v), np.linalg.norm(v), **close)
    np.testing.assert_allclose(numerics.gram(a), a.T @ a, **close)


def test_products_of_many_terms():
    """More terms than are packed at a time."""
    a, b = drawn(0, 11, 700), drawn(1, 700, 13)
    np.testing.assert_allclose(numerics.matmul(a, b), a @ b, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(numerics.gram(b), b.T @ b, rtol=1e-12, atol=1e-12)


@given(st.integers(1, 12), st.integers(1, 300), seeds)
def test_sums_are_added_term_by_term(rows, terms, seed):
    """So it does not matter for the bits how many rows and columns are asked for at once, or in which layout they lie."""
    a, b = drawn(seed, rows, terms), drawn(seed + 1, terms, 5)
    sums = np.zeros((rows, 5))
    for k in range(terms):
        sums += a[:, k, None] * b[k]
    np.testing.assert_array_equal(numerics.matmul(a, b), sums)
    np.testing.assert_array_equal(numerics.matmul(a[0], b), sums[0])
    np.testing.assert_array_equal(numerics.matmul(np.asfortranarray(a), b[:, ::-1]), sums[:, ::-1])
    np.testing.assert_array_equal(numerics.gram(b), numerics.matmul(b.T, b))


@given(st.integers(0, 60), seeds)
def test_dot_products_are_added_in_eight_lanes(terms, seed):
    x, y = drawn(seed, terms), drawn(seed + 1, terms)
    lanes = np.zeros(8)
    for i in range(terms):
        lanes[i % 8] += x[i] * y[i]
    assert numerics.dot(x, y) == ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]))


def test_what_is_not_finite_goes_through_products():
    a = np.array([[1.0, np.nan], [np.inf, 2.0], [0.0, 1.0], [1.0, 1.0], [2.0, 0.0]])
    np.testing.assert_array_equal(numerics.matmul(a, [[1.0], [1.0]]), a @ [[1.0], [1.0]])
    np.testing.assert_array_equal(numerics.matmul(a, [1.0, 1.0]), a @ [1.0, 1.0])
    np.testing.assert_array_equal(np.isfinite(numerics.gram(a)), np.isfinite(a.T @ a))


@given(st.integers(1, 30), st.integers(1, 4), seeds)
def test_solutions_of_positive_definite_systems(size, columns, seed):
    factor = drawn(seed, size, size)
    a, b = factor @ factor.T + np.eye(size), drawn(seed + 1, size, columns)
    lower = numerics.cholesky(a)
    np.testing.assert_allclose(lower, np.linalg.cholesky(a), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(numerics.solve_lower(lower, b), linalg.solve_triangular(lower, b, lower=True), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(a @ numerics.solve(a, b), b, atol=1e-9)
    np.testing.assert_allclose(a @ numerics.solve(a, b[:, 0]), b[:, 0], atol=1e-9)


def test_ill_conditioned_systems():
    """Hilbert's matrix, whose condition grows by a factor of thirty with each row: residuals stay small."""
    for size in range(1, 12):
        a, b = linalg.hilbert(size), np.ones(size)
        residual = np.abs(a @ numerics.solve(a, b) - b).max()
        assert residual <= 1e-16 * size * np.abs(numerics.solve(a, b)).max() * 10


def test_semidefinite_systems_have_a_solution():
    a = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 4.0]])
    np.testing.assert_allclose(numerics.solve(a, [2.0, 2.0, 4.0]), [2.0, 0.0, 1.0])
    np.testing.assert_array_equal(numerics.solve(np.zeros((2, 2)), [0.0, 0.0]), 0.0)


@given(st.integers(1, 40), seeds, st.sampled_from(["plain", "large", "small", "repeated", "graded", "diagonal"]))
def test_eigenvalues(size, seed, kind):
    a = drawn(seed, size, size)
    a = {
        "plain": a + a.T,
        "large": (a + a.T) * 1e150,
        "small": (a + a.T) * 1e-150,
        "repeated": np.outer(a[0], a[0]),
        "graded": (a + a.T) * np.outer(0.5 ** np.arange(size), 0.5 ** np.arange(size)),
        "diagonal": np.diag(a[0]),
    }[kind]
    values, vectors = numerics.eigh(a)
    scale = np.abs(a).max() or 1.0
    np.testing.assert_allclose(values / scale, np.linalg.eigvalsh(a) / scale, atol=1e-13 * size)
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(size), atol=1e-13 * size)
    np.testing.assert_allclose((vectors * scale).T * (values / scale) @ vectors / scale, a / scale, atol=1e-13 * size)


def test_eigenvalues_of_what_is_not_finite_are_refused():
    with pytest.raises(ValueError, match="finite numbers"):
        numerics.eigh([[1.0, np.nan], [np.nan, 1.0]])


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (numerics.dot, (np.ones(2), np.ones(3))),
        (numerics.matmul, (np.ones((2, 2)), np.ones((3, 2)))),
        (numerics.matmul, (np.ones((2, 2)), np.ones(3))),
        (numerics.cholesky, (np.ones((2, 3)),)),
        (numerics.eigh, (np.ones((2, 3)),)),
        (numerics.solve_lower, (np.eye(2), np.ones((3, 1)))),
    ],
)
def test_shapes_that_do_not_fit_are_refused(function, arguments):
    with pytest.raises(ValueError, match=r"expected|reshape"):
        function(*arguments)
