"""RankSVM: a hinge for every pair of documents in the wrong order, or not far enough apart (Herbrich et al. 2000; Joachims 2002).

    least over theta of  l2/2 |theta|^2 + mean over queries of  1/P sum_{y_i > y_j} h(1 - (s_i - s_j))          (1)

with h(z) = max(0, z) or its square, over all pairs of different grades, which are never made: see
`exactrank.learning.objectives.losses`. The squared hinge is smooth and solved by L-BFGS, the plain one by a bundle of planes. The
measure is only reported, and chooses l2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from exactrank._support.settings import setting
from exactrank.learning.objectives.losses import Loss, Normalize, PairHinge
from exactrank.learning.objectives.regularized_risk import RegularizedRisk
from exactrank.learning.optimizers.cutting_plane import Bundle
from exactrank.learning.optimizers.slopes import StronglyConvex
from exactrank.measures.base import Measure
from exactrank.models.architecture import Architecture
from exactrank.rankers.large_margin import LargeMarginRanker, Problem, Solves


class RankSVM(LargeMarginRanker):
    """A linear model by pairwise hinges (Herbrich, Graepel & Obermayer 2000; Joachims 2002).

    >>> from exactrank import RankingData
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> RankSVM(measure="RR").fit(data).score(data)
    1.0
    """

    name = "ranksvm"
    takes = replace(LargeMarginRanker.takes, pairs=True)

    loss: Loss = setting(default="squared-hinge", help="Hinge loss of a pair, plain or squared.", search=("hinge", "squared-hinge"))
    normalize: Normalize = setting(
        default="query", help="What has equal weight: each query, or each pair whatever its query.", search=("query", "pairs")
    )

    def _problems(self, measure: Measure, architecture: Architecture) -> Sequence[tuple[Mapping[str, object], Problem]]:
        return [({}, partial(RegularizedRisk, PairHinge(self.loss, self.normalize), architecture, threads=self.threads))]

    def _optimizer(self, problem: RegularizedRisk) -> Solves:
        return StronglyConvex(self.tolerance) if self.loss == "squared-hinge" else Bundle(self.tolerance)
