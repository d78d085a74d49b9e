"""The scores of documents, and a measure of them, as one weight of a model moves by p percent of its value.

    linear          s(p) = s + p/100 w_j x_j                                                                    (1)
    output weight   s(p) = s + p/100 v_u a_u,    a_u the activation of hidden unit u                            (2)
    hidden weight   s(p) = s + v_u (tanh(c_u + p/100 w_uj z_j) - tanh(c_u)),    a_u = tanh(c_u)                 (3)

(1) and (2) are straight lines in p, along which a measure is known exactly; (3) is not.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from exactrank import _core, numerics
from exactrank.arrays import Floats, PerDocument
from exactrank.data.ranking_data import RankingData
from exactrank.measures.base import Measure
from exactrank.objectives.profile import profile
from exactrank.objectives.step_function import StepFunction
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


@dataclass(frozen=True, eq=False)
class Sample:
    """Some queries, and the model on them."""

    measure: Measure
    scorer: Linear | Network
    data: RankingData  #: with features in the order of the scorer, its offset, and no missing values
    threads: int | None

    @cached_property
    def scores(self) -> PerDocument:
        """As the model is."""
        return self.scorer.score(self.data.X, self.threads, self.data.offset)

    @cached_property
    def _factors(self) -> npt.NDArray[np.floating]:
        """What the weights with straight lines multiply: x of (1) or a of (2)."""
        data, scorer = self.data, self.scorer
        return data.X if isinstance(scorer, Linear) else scorer.activations(data.X, self.threads, data.offset)

    def weights(self, most: int) -> list[Weight]:
        """The weights to look at: ``most`` of those that are many, none that moves no score.

        Of a linear model they are those with the most influence, |w_j| times the deviation of feature j within queries; of a network all
        output weights, and the largest hidden ones: features are standardised, so size is influence.
        """
        scorer, names = self.scorer, self.data.feature_names
        if isinstance(scorer, Linear):
            X, indptr, own = self.data.X, self.data.indptr, scorer.weights
            say = np.array([abs(w) * deviation(X[:, j], indptr) if w else 0.0 for j, w in enumerate(own)])
            chosen = [j for j in np.argsort(-say, kind="stable")[:most].tolist() if say[j] > 0]
            return [Weight(names[j], float(own[j]), (j,), straight=True) for j in chosen]
        outputs = [Weight(f"unit {u + 1}", float(v), (u,), straight=True) for u, v in enumerate(scorer.output) if v]
        size, hidden = np.abs(scorer.weights) * (scorer.output != 0)[:, None], scorer.weights
        places = [divmod(at, len(names)) for at in np.argsort(-size, axis=None, kind="stable")[:most].tolist()]
        inner = [Weight(f"{names[j]} in unit {u + 1}", float(hidden[u, j]), (u, j), straight=False) for u, j in places if size[u, j]]
        return [*outputs, *inner]

    def direction(self, weight: Weight) -> PerDocument:
        """How scores change with each percent of a weight with straight lines."""
        return np.asarray(self._factors[:, weight.place[0]].astype(np.float64) * (weight.value / 100))

    def profile(self, weight: Weight, percent: float) -> StepFunction:
        """The measure, of a weight with straight lines, as a function of p."""
        return profile(self.measure, self.data, self.scores, self.direction(weight), low=-percent, high=percent, threads=self.threads)

    def sampled(self, weight: Weight, percents: Floats) -> Floats:
        """The measure at some p of a hidden weight, (3)."""
        net, (u, j), bound = self.scorer, weight.place, self.measure.on(self.data, threads=self.threads)
        if not isinstance(net, Network):
            raise TypeError(f"a {net.kind} model has no hidden weights")
        row = net.weights[u] / net.scale
        inputs = np.asarray(
            _core.linear_scores(self.data.X, row, thread_count(self.threads)) + (net.bias[u] - numerics.dot(row, net.mean))
        )  # c_u
        before, change = numerics.tanh(inputs), (self.data.X[:, j].astype(np.float64) - net.mean[j]) * (weight.value / 100 / net.scale[j])
        moved = (self.scores + net.output[u] * (numerics.tanh(inputs + p * change) - before) for p in percents.tolist())
        return np.array([bound.mean(scores) for scores in moved])
