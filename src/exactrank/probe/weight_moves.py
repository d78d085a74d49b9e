"""The scores of documents as one weight of a model moves by p percent of its value.

    linear          s(p) = s + p/100 w_j x_j                                                                    (1)
    output weight   s(p) = s + p/100 v_u a_u,    a_u the activation of hidden unit u                            (2)
    hidden weight   s(p) = s + v_u (tanh(c_u + p/100 w_uj z_j) - tanh(c_u)),    a_u = tanh(c_u)                 (3)

(1) and (2) are straight lines in p, along which a measure is known exactly; (3) is not.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from exactrank import _core
from exactrank.arrays import PerDocument
from exactrank.data.ranking_data import RankingData
from exactrank.objectives.within_query import deviation
from exactrank.scorers.linear import Linear
from exactrank.scorers.network import Network
from exactrank.threads import thread_count


@dataclass(frozen=True)
class Weight:
    """One weight of a model."""

    name: str  #: a feature, a hidden unit, or both
    value: float  #: as trained
    place: tuple[int, ...]  #: the number of the feature or of the output's unit; of a hidden weight both, the unit first
    straight: bool  #: do scores move along lines?


class WeightMoves(Protocol):
    """A model on some documents."""

    scores: PerDocument  #: as the model is

    def weights(self, most: int) -> Sequence[Weight]:
        """The weights to look at: ``most`` of those that are many, none that moves no score."""

    def direction(self, weight: Weight) -> PerDocument:
        """How scores change with each percent of a weight with straight lines."""

    def path(self, weight: Weight) -> Callable[[float], PerDocument]:
        """The scores with any weight so many percent larger."""


def moves_of(scorer: Linear | Network, data: RankingData, threads: int | None) -> WeightMoves:
    """``scorer`` on ``data``, whose features are in its order, with its offset, and have no missing values."""
    return LinearMoves(scorer, data, threads) if isinstance(scorer, Linear) else NetworkMoves(scorer, data, threads)


class LinearMoves:
    """(1); the weights are those with most say, |w_j| times the deviation of feature j within queries."""

    def __init__(self, scorer: Linear, data: RankingData, threads: int | None) -> None:
        self.scores = scorer.score(data.X, threads, data.offset)
        self._weights, self._data = scorer.weights, data

    def weights(self, most: int) -> Sequence[Weight]:
        data = self._data
        say = np.array([abs(w) * deviation(data.X[:, j], data.indptr) if w else 0.0 for j, w in enumerate(self._weights)])
        chosen = [j for j in np.argsort(-say, kind="stable")[:most].tolist() if say[j] > 0]
        return [Weight(data.feature_names[j], float(self._weights[j]), (j,), straight=True) for j in chosen]

    def direction(self, weight: Weight) -> PerDocument:
        return np.asarray(self._data.X[:, weight.place[0]].astype(np.float64) * (weight.value / 100))

    def path(self, weight: Weight) -> Callable[[float], PerDocument]:
        return _line(self.scores, self.direction(weight))


class NetworkMoves:
    """(2) and (3); all output weights, and the hidden ones that are largest: of standardised features, so size is say."""

    def __init__(self, scorer: Network, data: RankingData, threads: int | None) -> None:
        self._scorer, self._data, self._threads = scorer, data, threads
        self._activations = scorer.activations(data.X, threads, data.offset)
        self.scores = scorer.score(data.X, threads, data.offset)

    def weights(self, most: int) -> Sequence[Weight]:
        output, hidden, names = self._scorer.output, self._scorer.weights, self._data.feature_names
        outputs = [Weight(f"unit {u + 1}", float(v), (u,), straight=True) for u, v in enumerate(output) if v]
        size = np.abs(hidden) * (output != 0)[:, None]
        places = [divmod(at, len(names)) for at in np.argsort(-size, axis=None, kind="stable")[:most].tolist()]
        inner = [Weight(f"{names[j]} in unit {u + 1}", float(hidden[u, j]), (u, j), straight=False) for u, j in places if size[u, j]]
        return [*outputs, *inner]

    def direction(self, weight: Weight) -> PerDocument:
        return np.asarray(self._activations[:, weight.place[0]] * (weight.value / 100))

    def path(self, weight: Weight) -> Callable[[float], PerDocument]:
        if weight.straight:
            return _line(self.scores, self.direction(weight))
        net, (u, j) = self._scorer, weight.place
        inputs = self._inputs(u)
        before, change = np.tanh(inputs), (self._data.X[:, j].astype(np.float64) - net.mean[j]) * (weight.value / 100 / net.scale[j])
        return lambda percent: np.asarray(self.scores + net.output[u] * (np.tanh(inputs + percent * change) - before))

    def _inputs(self, u: int) -> PerDocument:
        """c_u of (3)."""
        net = self._scorer
        weights = net.weights[u] / net.scale
        return np.asarray(_core.linear_scores(self._data.X, weights, thread_count(self._threads)) + (net.bias[u] - weights @ net.mean))


def _line(scores: PerDocument, direction: PerDocument) -> Callable[[float], PerDocument]:
    return lambda percent: np.asarray(scores + percent * direction)
