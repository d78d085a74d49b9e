"""Scores of documents, and a measure of them, as one weight of a model moves by p percent of its value.

    linear          s(p) = s + p/100 w_j x_j                                                                    (1)
    output weight   s(p) = s + p/100 v_u a_u,    a_u the activation of hidden unit u                            (2)
    hidden weight   s(p) = s + v_u (tanh(c_u + p/100 w_uj z_j) - tanh(c_u)),    a_u = tanh(c_u)                 (3)

(1) and (2) are linear in p, so a measure along them is known exactly; (3) is not.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support import numerics
from exactrank._support.arrays import Floats, PerDocument
from exactrank._support.threads import thread_count
from exactrank.data.ranking_data import RankingData
from exactrank.learning.objectives.profile import profile
from exactrank.learning.objectives.step_function import StepFunction
from exactrank.learning.objectives.within_query import deviation
from exactrank.measures.base import Measure
from exactrank.models.linear import Linear
from exactrank.models.network import Network


@dataclass(frozen=True)
class Weight:
    """A weight of a model."""

    name: str  #: a feature, a hidden unit, or both
    value: float  #: the trained value
    place: tuple[int, ...]  #: the number of the feature, or of the unit of an output weight; for a hidden weight the unit and the feature
    is_linear: bool  #: true if scores are linear in the weight


@dataclass(frozen=True, eq=False)
class Sample:
    """A sample of queries, with the model's scores on them."""

    measure: Measure
    scorer: Linear | Network
    data: RankingData  #: with features in the order of the scorer, its offset, and no missing values
    threads: int | None

    @cached_property
    def scores(self) -> PerDocument:
        """Return the scores of the model as it is."""
        return self.scorer.score(self.data.X, self.threads, self.data.offset)

    @cached_property
    def _factors(self) -> npt.NDArray[np.floating]:
        """Return the factors of the linear weights: x of (1) or a of (2)."""
        data, scorer = self.data, self.scorer
        return data.X if isinstance(scorer, Linear) else scorer.activations(data.X, self.threads, data.offset)

    def weights(self, max_weights: int) -> list[Weight]:
        """Return the weights to follow, without those that move no score.

        For a linear model they are the ``max_weights`` with the most influence, |w_j| times the deviation of feature j within queries.
        For a network they are all output weights and the ``max_weights`` largest hidden ones, since its features are standardized.
        """
        scorer, names = self.scorer, self.data.feature_names
        if isinstance(scorer, Linear):
            X, indptr, trained = self.data.X, self.data.indptr, scorer.weights
            influence = np.array([abs(w) * deviation(X[:, j], indptr) if w else 0.0 for j, w in enumerate(trained)])
            selection = [j for j in np.argsort(-influence, kind="stable")[:max_weights].tolist() if influence[j] > 0]
            return [Weight(names[j], float(trained[j]), (j,), is_linear=True) for j in selection]
        outputs = [Weight(f"unit {u + 1}", float(v), (u,), is_linear=True) for u, v in enumerate(scorer.output) if v]
        size, hidden = np.abs(scorer.weights) * (scorer.output != 0)[:, None], scorer.weights
        places = [divmod(at, len(names)) for at in np.argsort(-size, axis=None, kind="stable")[:max_weights].tolist()]
        inner = [Weight(f"{names[j]} in unit {u + 1}", float(hidden[u, j]), (u, j), is_linear=False) for u, j in places if size[u, j]]
        return [*outputs, *inner]

    def direction(self, weight: Weight) -> PerDocument:
        """Return how scores change per percent of a linear weight."""
        return np.asarray(self._factors[:, weight.place[0]].astype(np.float64) * (weight.value / 100))

    def profile(self, weight: Weight, percent: float) -> StepFunction:
        """Return the measure as a function of p for a linear weight."""
        return profile(self.data, self.scores, self.direction(weight), self.measure, low=-percent, high=percent, threads=self.threads)

    def sample_values(self, weight: Weight, percents: Floats) -> Floats:
        """Return the measure at the given percentages of a hidden weight, (3)."""
        net, (u, j), bound = self.scorer, weight.place, self.measure.on(self.data, threads=self.threads)
        if not isinstance(net, Network):
            raise TypeError(f"a {net.kind} model has no hidden weights")
        row = net.weights[u] / net.scale
        inputs = np.asarray(
            _core.linear_scores(self.data.X, row, thread_count(self.threads)) + (net.bias[u] - numerics.dot(row, net.mean))
        )  # c_u
        activations = numerics.tanh(inputs)
        change = (self.data.X[:, j].astype(np.float64) - net.mean[j]) * (weight.value / 100 / net.scale[j])
        scores_by_percent = (self.scores + net.output[u] * (numerics.tanh(inputs + p * change) - activations) for p in percents.tolist())
        return np.array([bound.mean(scores) for scores in scores_by_percent])
