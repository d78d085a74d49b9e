"""Linear algebra, elementary functions and random draws that give the same bits on every processor.

NumPy passes products of matrices to BLAS, and functions such as ``exp`` to vector or C libraries, which add up and round differently from
one processor to the next. What decides a model, a fold, a weight or a printed statistic uses these functions of the native core instead:
sums are added up in a fixed order, without fused multiply-add (`src/native/support/linear_algebra.hpp`, `elementary.hpp`). NumPy's own
sums, products by element and square roots are safe, and so are ``rng.random``, ``rng.integers`` and ``rng.permutation``. For a single
number, ``x**2`` calls the C library, and Python's ``sum`` depends on its version: ``x * x`` and ``math.fsum`` do not.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import Floats


def _contiguous(x: npt.ArrayLike) -> Floats:
    return np.ascontiguousarray(x, np.float64)


def dot(x: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """Return the product of two vectors."""
    return _core.dot(_contiguous(x), _contiguous(y))


def norm(x: npt.ArrayLike) -> float:
    """Return the length of a vector."""
    return float(np.sqrt(dot(x, x)))


def matmul(a: npt.ArrayLike, b: npt.ArrayLike) -> Floats:
    """Return the product of two matrices, of a matrix and a vector, or of a vector and a matrix."""
    left, right = _contiguous(a), _contiguous(b)
    if right.ndim == 1:
        return _core.matrix_vector(left, right)
    return _core.product(left, right) if left.ndim == 2 else _core.product(left[np.newaxis], right)[0]


def gram(x: npt.ArrayLike) -> Floats:
    """Return x'x: the products of the columns of a matrix with each other."""
    return _core.gram(_contiguous(x))


def cholesky(a: npt.ArrayLike) -> Floats:
    """Return the lower triangular L with LL' = a, for a symmetric matrix without negative eigenvalues.

    A row that depends on those before it, to rounding, has an infinite number on the diagonal: solutions are 0 there.
    """
    return _core.cholesky(_contiguous(a))


def solve_lower(lower: Floats, x: npt.ArrayLike) -> Floats:
    """Return L^-1 x of a vector, or of each column of a matrix."""
    return _by_columns(_core.solve_lower, lower, x)


def solve_upper(lower: Floats, x: npt.ArrayLike) -> Floats:
    """Return L'^-1 x of a vector, or of each column of a matrix."""
    return _by_columns(_core.solve_upper, lower, x)


def solve(a: npt.ArrayLike, b: npt.ArrayLike) -> Floats:
    """Return a^-1 b of a symmetric matrix without negative eigenvalues and a vector, or each column of a matrix."""
    lower = cholesky(a)
    return solve_upper(lower, solve_lower(lower, b))


def _by_columns(substitute: Callable[[Floats, Floats], Floats], lower: Floats, x: npt.ArrayLike) -> Floats:
    columns = _contiguous(x)
    return substitute(lower, columns.reshape(len(lower), -1)).reshape(columns.shape)


def eigh(a: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Return the eigenvalues of a symmetric matrix in ascending order, and its eigenvectors as the rows of a matrix."""
    return _core.eigh(_contiguous(a))


def _elementwise(function: Callable[[Floats], Floats], x: npt.ArrayLike) -> Floats:
    values = np.asarray(x, np.float64)
    return function(np.ascontiguousarray(values).reshape(-1)).reshape(values.shape)


def exp(x: npt.ArrayLike) -> Floats:
    """Return e^x of each number, to 1 ulp."""
    return _elementwise(_core.exp, x)


def exp2(x: npt.ArrayLike) -> Floats:
    """Return 2^x of each number, to 1 ulp; exactly where x is whole."""
    return _elementwise(_core.exp2, x)


def log(x: npt.ArrayLike) -> Floats:
    """Return the natural logarithm of each number, to 1 ulp."""
    return _elementwise(_core.log, x)


def log1p(x: npt.ArrayLike) -> Floats:
    """Return log(1 + x) of each number, to 1 ulp."""
    return _elementwise(_core.log1p, x)


def log2(x: npt.ArrayLike) -> Floats:
    """Return the logarithm to base 2 of each number, to 1 ulp; exactly of powers of 2."""
    return _elementwise(_core.log2, x)


def tanh(x: npt.ArrayLike) -> Floats:
    """Return the hyperbolic tangent of each number, to 3 ulp: the one that networks are trained with."""
    return _elementwise(_core.tanh, x)


def power(base: npt.ArrayLike, exponent: npt.ArrayLike) -> Floats:
    """Return base^exponent of positive numbers: by products where the exponent is whole, and otherwise by e^(exponent log(base))."""
    bases, exponents = np.broadcast_arrays(np.asarray(base, np.float64), np.asarray(exponent, np.float64))
    return _core.power(bases.ravel(), exponents.ravel()).reshape(bases.shape)


def normal_quantile(p: npt.ArrayLike) -> Floats:
    """Return the number below which a standard normal draw lies with probability p, for each p between 0 and 1."""
    return _elementwise(_core.normal_quantile, p)


def standard_normal(rng: np.random.Generator, shape: int | tuple[int, ...]) -> Floats:
    """Draw from the standard normal distribution; NumPy's own draws take logarithms of the C library.

    >>> standard_normal(np.random.default_rng(0), 3).round(4).tolist()
    [0.3503, -0.6135, -1.7395]
    """
    return normal_quantile(np.maximum(rng.random(shape), 2.0**-54))


def standard_exponential(rng: np.random.Generator, shape: int | tuple[int, ...]) -> Floats:
    """Draw from the exponential distribution of mean 1."""
    return -log1p(-rng.random(shape))
