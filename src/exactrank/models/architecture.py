"""Scorers whose parameters are one flat vector theta: what gradient methods train.

`LinearModel` and `NetworkModel` describe the form of a scorer; ``on(data)`` gives its `Architecture`, the scorers of that form as
functions of theta. Theta is in units of standardized features,

    z_j = (x_j - mean_j) / scale_j                                                                              (1)

so that one learning rate suits all of them; `Architecture.at` gives the scorer, which takes raw features.

Scores are linear in all parameters of a linear model, and in the output weights of a network. These are the weights of other features,
the outputs of the hidden units, so that every method for linear models can train them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import Matrix, PerDocument
from exactrank._support.numerics import standard_normal
from exactrank._support.threads import thread_count
from exactrank.data.dataset import Dataset, Score
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError, IncompatibleError
from exactrank.models.base import Scorer
from exactrank.models.linear import Linear
from exactrank.models.missing import PerFeature
from exactrank.models.network import Network

Theta = npt.NDArray[np.float64]
HIDDEN = 100_000  #: maximum number of a network's units
AT_ONCE = 8  #: parameter vectors for which the features are read once


@dataclass(frozen=True, eq=False)
class Architecture:
    """Scorers of one form on features standardized by (1).

    Without ``hidden`` units s = w . x with theta_j = w_j scale_j. With one layer of them theta has the weights by feature, the biases,
    then the output weights.
    """

    mean: PerFeature
    scale: PerFeature
    feature_names: tuple[str, ...]
    hidden: int = 0

    @property
    def linear(self) -> bool:
        """True if scores are linear in theta: then convex losses have planes below them, and all documents tie at theta = 0."""
        return not self.hidden

    @cached_property
    def native(self) -> _core.Net:
        """The form of the native core."""
        return _core.Net(self.mean, self.scale, self.hidden)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "native"}

    @property
    def size(self) -> int:
        """The number of parameters."""
        return self.native.size

    def initial(self, rng: np.random.Generator) -> Theta:
        """Return random parameters: scores start small, but untied, and the input of each hidden unit has a deviation of about 1."""
        features = len(self.mean)
        if self.linear:
            return np.asarray(0.01 * standard_normal(rng, features) / np.sqrt(features))
        weights = standard_normal(rng, features * self.hidden) / np.sqrt(features)
        return np.concatenate([weights, np.zeros(self.hidden), 0.1 * standard_normal(rng, self.hidden) / np.sqrt(self.hidden)])

    def at(self, theta: Theta) -> Scorer:
        """Return the scorer with the parameters ``theta``."""
        return Linear(theta * (1.0 / self.scale), self.feature_names) if self.linear else self._network(theta)

    def theta_of(self, weights: PerFeature) -> Theta:
        """Return the parameters of the linear scorer with ``weights``."""
        if self.linear:
            return np.asarray(weights * self.scale)
        raise IncompatibleError(f"weights of a linear model cannot start a network of {self.hidden} units; start at random")

    def theta_from(self, scorer: Scorer) -> Theta:
        """Return the parameters of ``scorer``, which must have the same form and features."""
        if self.linear and isinstance(scorer, Linear):
            return self.theta_of(scorer.weights)
        if isinstance(scorer, Network) and scorer.n_hidden == self.hidden:
            return scorer.on_scale(self.mean, self.scale).theta
        start = f"a network of {scorer.n_hidden} units" if isinstance(scorer, Network) else f"a {scorer.kind} model"
        target = f"a network of {self.hidden} units" if self.hidden else "a linear model"
        remedy = f"hidden={scorer.n_hidden if isinstance(scorer, Network) else None}"
        raise IncompatibleError(f"the model to start from is {start}, and {target} is to be trained; give {remedy}, or another start")

    def linear_features(self, theta: Theta, data: RankingData) -> RankingData:
        """Return ``data`` with the features in whose weights the scores at ``theta`` are linear: its own, or the hidden units' outputs."""
        if self.linear:
            return data
        active = self._network(theta).activations(data.X).astype(np.float32)
        return replace(data, X=active, feature_names=tuple(f"unit {u}" for u in range(self.hidden)), offset=None)

    def linear_weights(self, theta: Theta) -> Theta:
        """Return the weights of `linear_features` in ``theta``, which may also be a direction."""
        return np.asarray(theta / self.scale) if self.linear else theta[-self.hidden :]

    def with_linear_weights(self, theta: Theta, weights: Theta) -> Theta:
        """Return ``theta`` with other weights of `linear_features`."""
        return self.theta_of(weights) if self.linear else np.concatenate([theta[: -self.hidden], weights])

    def scores(self, theta: Theta, X: Matrix, threads: int | None = None) -> PerDocument:
        """Return the score of each row."""
        return self.native.scores(np.ascontiguousarray(theta), X, thread_count(threads))

    def score(self, theta: Theta, threads: int | None = None) -> Score:
        """Return a function that scores the documents of any part at ``theta``."""
        return partial(self._scores_of, theta, threads)

    def _scores_of(self, theta: Theta, threads: int | None, data: RankingData) -> PerDocument:
        return self.scores(theta, data.X, threads)

    def scores_of_each(self, thetas: npt.NDArray[np.float64], X: Matrix, threads: int | None = None) -> Iterator[PerDocument]:
        """Yield the scores at each row of ``thetas``; several linear scorers read the features together, with the same bits."""
        if not self.linear:
            yield from (self.scores(theta, X, threads) for theta in thetas)
            return
        weights, count = np.ascontiguousarray(thetas * (1.0 / self.scale)), thread_count(threads)
        for first in range(0, len(weights), AT_ONCE):
            yield from _core.products(X, weights[first : first + AT_ONCE], count)

    def _network(self, theta: Theta) -> Network:
        weights, rest = np.split(theta, [len(self.mean) * self.hidden])
        bias, output = np.split(rest, 2)
        return Network(weights.reshape(-1, self.hidden).T, bias, output, self.mean, self.scale, self.feature_names)


@dataclass(frozen=True)
class LinearModel:
    """The linear scorers; without ``standardize`` theta is in units of the features themselves."""

    standardize: bool = True

    def on(self, data: Dataset) -> Architecture:
        """Return the linear models of the features of ``data``, which has no missing values."""
        mean, scale = _mean_and_scale(data) if self.standardize else (np.zeros(data.n_features), np.ones(data.n_features))
        return Architecture(mean, scale, data.feature_names)


@dataclass(frozen=True)
class NetworkModel:
    """The networks with one layer of ``hidden`` units."""

    hidden: int = 10

    def __post_init__(self) -> None:
        if isinstance(self.hidden, bool) or not isinstance(self.hidden, int) or not 1 <= self.hidden <= HIDDEN:
            raise DataError(f"hidden must be a number of units from 1 to {HIDDEN:,}, or None for a linear model; got {self.hidden!r}")

    def on(self, data: Dataset) -> Architecture:
        """Return the networks of the features of ``data``, which has no missing values."""
        return Architecture(*_mean_and_scale(data), data.feature_names, self.hidden)


def form_of(hidden: int | None) -> LinearModel | NetworkModel:
    """Return a network of ``hidden`` units, or a linear model if None."""
    return LinearModel() if hidden is None else NetworkModel(hidden)


def _mean_and_scale(data: Dataset) -> tuple[PerFeature, PerFeature]:
    """Return mean and scale of (1), which give mean 0 and deviation 1 over ``data``.

    A constant feature is in units of its value, so that no score is lost beside a large constant.
    """
    mean, deviation = data.moments
    return mean, np.where(deviation > 0, deviation, np.maximum(np.abs(mean), 1.0))
