"""Features on which a linear method is a kernel method: the kernel trick without a second solver (Chapelle, Le & Smola 2007, section 6).

The best function for a loss of scores and a penalty on its norm is a sum over the n training documents (the representer theorem: Schölkopf,
Herbrich & Smola 2001). With K_ij = k(x_i, x_j) = L L' (Cholesky),

    f(x) = sum_i beta_i k(x_i, x) = w . z(x),    z(x) = L^-1 (k(x_1, x), ..., k(x_n, x)),    w = L' beta         (1)
    z(x_i) . z(x_j) = K_ij,    |f|^2 = beta' K beta = |w|^2                                                      (2)

So the problem on the features z has the value, the dual and the gap of the kernel problem: by (2) the product of two planes' normals, which
are sums of features of documents, is a sum of values of the kernel, as in (10) of the paper.

A document whose k(x, .) is a sum of those before it, to rounding, adds no feature and needs no beta: a copy of another, or all but d
documents with the linear kernel of d features. K takes n^2 numbers, and L n^3 / 6 multiplications. Features are stored in single precision,
as all are.
"""

from dataclasses import dataclass, replace

import numpy as np

from exactrank._support.arrays import Floats
from exactrank._support.numerics import cholesky, solve_lower, solve_upper
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError
from exactrank.models.architecture import LinearModel
from exactrank.models.base import BLOCK, Scorer
from exactrank.models.kernel_expansion import KernelExpansion, KernelName
from exactrank.models.linear import Linear

#: Documents beyond which a kernel is refused: K and L then take 1.6 GB.
MOST_DOCUMENTS = 10_000


@dataclass(frozen=True, eq=False)
class KernelBasis:
    """The functions k(x_i, .) of the documents that have a beta."""

    expansion: KernelExpansion  #: of these documents
    lower: Floats  #: L of (1)

    @classmethod
    def of(cls, data: RankingData, kernel: KernelName, gamma: float | None) -> "KernelBasis":
        """Return the basis of the documents of ``data``, standardized; ``gamma`` is by default 1 over the number of features."""
        count = data.n_documents
        if count > MOST_DOCUMENTS:
            raise DataError(
                f"kernel={kernel!r} compares all documents with each other, and there are {count:,}; give at most {MOST_DOCUMENTS:,}, such"
                " as those of a sample of the queries, or train a linear model on features that approximate the kernel"
            )
        form = LinearModel().on(data)
        gamma = (1 / data.n_features if gamma is None else gamma) if kernel == "rbf" else None
        documents = data.X.astype(np.float64)
        expansion = KernelExpansion(documents, np.zeros(count), form.mean, form.scale, kernel, gamma, data.feature_names)
        lower = cholesky(_by_blocks(expansion, data))
        is_new = np.isfinite(np.diag(lower))
        is_new[0] |= not is_new.any()  # if the kernel is 0 everywhere
        smaller = replace(expansion, documents=documents[is_new], coefficients=np.zeros(is_new.sum()))
        return cls(smaller, lower[np.ix_(is_new, is_new)])

    def features(self, data: RankingData) -> RankingData:
        """Return ``data`` with the features z of (1)."""
        z = solve_lower(self.lower, _by_blocks(self.expansion, data).T).T
        names = tuple(f"z{number}" for number in range(z.shape[1]))
        return replace(data, X=np.ascontiguousarray(z, np.float32), feature_names=names, offset=None, levels={})

    def scorer(self, linear: Scorer) -> KernelExpansion:
        """Return the scorer (1) of ``linear``, whose weights are w."""
        assert isinstance(linear, Linear)
        return replace(self.expansion, coefficients=solve_upper(self.lower, linear.weights))


def _by_blocks(expansion: KernelExpansion, data: RankingData) -> Floats:
    """Return the kernel of each document of ``data`` (rows) with each of ``expansion``."""
    values = np.empty((data.n_documents, len(expansion.coefficients)))
    for first in range(0, len(values), BLOCK):
        values[first : first + BLOCK] = expansion.kernels(data.X[first : first + BLOCK])
    return values
