"""The data of the experiments: cubic polynomials of Gaussian vectors (`exactrank.data.synthetic`).

The features of web data are correlated, which matters to methods that estimate gradients from values. So there is a second kind of
data, with mixed features,

    x' = Q diag(1, 1/sqrt 2, ..., 1/sqrt d) Q^T x,    Q a random rotation                                       (1)

(1) can be inverted, so linear rankers can do as well as before; but the variance along one direction is d times that along another.

Both papers with nets follow the prescription of Burges et al. (2005) for their artificial data: features are uniform in [-1, 1], and with
random permutations p, q and r

    f(x) = sum_i a_i x_i + sum_i x_i x_p(i) + sum_i x_i x_q(i) x_r(i),    a uniform in [-1, 1]                  (2)

each of the three sums scaled to mean 0 and deviation 1. That is d terms per degree, where `CubicPolynomial` has all of them, about
d^3 / 6 of the third degree.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from exactrank._support import numerics
from exactrank._support.arrays import Matrix, PerDocument
from exactrank.data.folds import Fold, deal_folds
from exactrank.data.ranking_data import RankingData
from exactrank.data.synthetic import SAMPLE, CubicPolynomial

SPLITS = 5

Sizes = tuple[int, int, int]  #: queries for training, validation and test


@dataclass(frozen=True)
class PermutedPolynomial(CubicPolynomial):
    """Random cubic polynomial data, (2), in units of its standard deviation as `CubicPolynomial` is."""

    def _draw_documents(self, rng: np.random.Generator, count: int) -> tuple[Matrix, PerDocument]:
        X = _even(rng, count, self.features)
        noise = self.noise * numerics.standard_normal(rng, count)
        mean, deviation = self._moments
        return X, np.asarray(((self._sums(X) - mean) / deviation).sum(axis=1) + noise)

    def _sums(self, X: Matrix) -> Matrix:
        """The three of (2), one column each."""
        rng = np.random.default_rng([self.seed, 0])
        a, (p, q, r) = rng.uniform(-1, 1, self.features), (rng.permutation(self.features) for _ in range(3))
        return np.stack([(X * a).sum(axis=1), (X * X[:, p]).sum(axis=1), (X * X[:, q] * X[:, r]).sum(axis=1)], axis=1)

    @cached_property
    def _moments(self) -> tuple[PerDocument, PerDocument]:
        """The means of the sums and their deviations times sqrt(3), by a sample."""
        sums = self._sums(_even(np.random.default_rng([self.seed, 3]), SAMPLE, self.features))
        return sums.mean(axis=0), np.sqrt(3) * sums.std(axis=0)


def _even(rng: np.random.Generator, rows: int, columns: int) -> Matrix:
    return 2 * rng.random((rows, columns), dtype=np.float32) - 1


def three_parts(source: CubicPolynomial, sizes: Sizes) -> Fold:
    """Data for training, validation and test, query after query."""
    train, valid, test = sizes
    return Fold("artificial", source.data(train), source.data(valid, train + 1), source.data(test, train + valid + 1))


def mix_features(data: RankingData, seed: int) -> RankingData:
    """Return ``data`` with its features mixed by (1); the same seed mixes the same way."""
    d = data.n_features
    G = numerics.standard_normal(np.random.default_rng(seed), (d, d))
    Q = numerics.solve_lower(numerics.cholesky(numerics.gram(G)), G.T).T  # Q = G L'^-1, where G'G = LL'
    mixed = numerics.matmul(data.X, numerics.matmul(Q / np.sqrt(np.arange(1, d + 1)), Q.T))
    return replace(data, X=mixed.astype(np.float32))


def five_splits(data: RankingData, seed: int, train: int = 3) -> list[Fold]:
    """``train`` fifths of the queries for training, one for test, the others for validation, in turn."""
    part = deal_folds(data.n_queries, SPLITS, seed)
    sides = np.split(np.arange(SPLITS), [train, SPLITS - 1])
    return [
        Fold(f"split {turn + 1}", *(data.take_queries(np.flatnonzero(np.isin((part + turn) % SPLITS, side))) for side in sides))
        for turn in range(SPLITS)
    ]
