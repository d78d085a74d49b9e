"""The data of the experiments: cubic polynomials of Gaussian vectors (`exactrank.data.synthetic`).

The web data of the papers is not public. Its features are correlated, those of the artificial data are not, and methods
that estimate slopes from values feel the difference. So there is a second kind of data, whose features are mixed,

    x' = Q diag(1, 1/sqrt 2, ..., 1/sqrt d) Q^T x,    Q a random rotation                                       (1)

(1) can be undone, so linear rankers can do as well as before; but the variance along one direction is d times that along another.
"""

from dataclasses import replace

import numpy as np

from exactrank.data.folds import Fold, deal_folds
from exactrank.data.ranking_data import RankingData
from exactrank.data.synthetic import CubicPolynomial

SPLITS = 5

Sizes = tuple[int, int, int]  #: queries for training, validation and test


def three_parts(source: CubicPolynomial, sizes: Sizes) -> Fold:
    """Data for training, validation and test, query after query."""
    train, valid, test = sizes
    return Fold("artificial", source.data(train), source.data(valid, train + 1), source.data(test, train + valid + 1))


def correlated(data: RankingData, seed: int) -> RankingData:
    """``data`` with its features mixed by (1); the same seed mixes the same way."""
    d = data.n_features
    Q, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))
    mixed = data.X @ (Q / np.sqrt(np.arange(1, d + 1)) @ Q.T).astype(np.float32)
    return replace(data, X=mixed)


def five_splits(data: RankingData, seed: int, train: int = 3) -> list[Fold]:
    """``train`` fifths of the queries for training, one for test, the others for validation, in turn."""
    part = deal_folds(data.n_queries, SPLITS, seed)
    sides = np.split(np.arange(SPLITS), [train, SPLITS - 1])
    return [
        Fold(f"split {turn + 1}", *(data.take_queries(np.flatnonzero(np.isin((part + turn) % SPLITS, side))) for side in sides))
        for turn in range(SPLITS)
    ]
