"""Families of scorers whose parameters are one flat vector theta: what gradient methods train.

Linear without ``hidden`` units, else a network with one layer of them. Theta is in units of standardised features,

    z_j = (x_j - mean_j) / scale_j                                                                              (1)

so that one learning rate suits all of them; `Architecture.at` gives the scorer, which takes features as they come.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import Matrix, PerDocument
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError
from exactrank.scorers.linear import Linear
from exactrank.scorers.missing import PerFeature
from exactrank.scorers.network import Network
from exactrank.threads import thread_count

Theta = npt.NDArray[np.float64]
HIDDEN = 100_000  #: units of a network at most


@dataclass(frozen=True, eq=False)
class Architecture:
    """Scorers with ``hidden`` units, linear ones without any, on features standardised by (1)."""

    mean: PerFeature
    scale: PerFeature
    hidden: int | None = None
    feature_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.hidden is not None and (
            isinstance(self.hidden, bool) or not isinstance(self.hidden, int) or not 1 <= self.hidden <= HIDDEN
        ):
            raise DataError(f"hidden must be a number of units from 1 to {HIDDEN:,}, or None for a linear model; got {self.hidden!r}")

    @classmethod
    def for_data(cls, data: RankingData, hidden: int | None = None) -> "Architecture":
        """Standardised to mean 0 and deviation 1 over ``data``, which has no missing values.

        A constant feature is in units of its value, so that no score is lost beside a large constant.
        """
        mean, deviation = data.moments
        return cls(mean, np.where(deviation > 0, deviation, np.maximum(np.abs(mean), 1.0)), hidden, data.feature_names)

    @property
    def size(self) -> int:
        """How many parameters there are."""
        return self.native.size

    @cached_property
    def native(self) -> _core.Net:
        """The kernels' form of it."""
        return _core.Net(self.mean, self.scale, self.hidden or 0)

    def initial(self, rng: np.random.Generator) -> Theta:
        """Random parameters: scores start small, but untied; each hidden unit starts with an input of deviation about 1."""
        if self.hidden is None:
            return np.asarray(0.01 * rng.standard_normal(self.size) / np.sqrt(self.size))
        features = len(self.mean)
        weights = rng.standard_normal(features * self.hidden) / np.sqrt(features)
        return np.concatenate([weights, np.zeros(self.hidden), 0.1 * rng.standard_normal(self.hidden) / np.sqrt(self.hidden)])

    def scores(self, theta: Theta, X: Matrix, threads: int | None = None) -> PerDocument:
        """The score of each row."""
        return self.native.scores(np.ascontiguousarray(theta), X, thread_count(threads))

    def at(self, theta: Theta) -> Linear | Network:
        """The scorer with the parameters ``theta``."""
        if self.hidden is None:
            return Linear(theta * (1.0 / self.scale), self.feature_names)
        weights, rest = np.split(theta, [len(self.mean) * self.hidden])
        bias, output = np.split(rest, 2)
        return Network(weights.reshape(-1, self.hidden).T, bias, output, self.mean, self.scale, self.feature_names)

    def theta_of(self, weights: PerFeature) -> Theta:
        """The parameters of the linear scorer with ``weights``."""
        return np.asarray(weights * self.scale)
