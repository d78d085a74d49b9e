"""LambdaMART: regression trees along the forces of any measure (Wu, Burges, Svore & Gao 2010; Burges 2010).

The forces and their curvatures are LambdaRank's (`exactrank.objectives.lambdas`), those of a lambda function that a user writes, or
of any other objective of scores; each leaf takes a Newton step. LightGBM offers this for nDCG alone.
"""

from dataclasses import dataclass
from typing import Literal

from exactrank.measures.base import Measure
from exactrank.objectives.own_lambdas import DocumentForces, PairForce, PairForces
from exactrank.objectives.sampled_lambdas import SampledLambdas
from exactrank.objectives.score_space import Objective
from exactrank.rankers.boosted import BoostedRanker
from exactrank.rankers.lambda_function import lambda_function, weighing_measure


@dataclass(eq=False, repr=False)
class LambdaMART(BoostedRanker):
    """Regression trees along forces between documents, as strong as the measure's change (Burges 2010).

    Args:
        lambdas: The lambda function: how a pair's force depends on its scores, the same in rankings drawn at random, or the
            measure's finite differences; in Python also a function of pairs, or any objective of scores.
        weighted_by: The measure whose changes weigh the pairs; by default the one that is trained on, without its cutoff (but P, R
            and Success keep theirs).
        margin: Step and spring forces act until a pair's scores are so far apart.
        neighbours: Only documents at most so many ranks apart push each other; by default all do.
        truncation: One of a pair must be among the first so many ranks; by default there is no limit.
        near: A pair's weight is divided by this plus the distance of its scores; 0 leaves it as it is.
        samples: Rankings that are drawn at random for each tree.
        noise: The spread of what is added to scores for that.

    >>> from exactrank import RankingData
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> LambdaMART(measure="RR", min_documents=1, trees=5).fit(data).score(data)
    1.0
    """

    name = "lambdamart"

    lambdas: Literal["logistic", "step", "spring", "sampled", "finite-difference"] | PairForce | PairForces | DocumentForces | Objective = (
        "logistic"
    )
    weighted_by: str | Measure | None = None
    margin: float = 1.0
    neighbours: int | None = None
    truncation: int | None = None
    near: float = 0.01
    samples: int = 10
    noise: float = 1.0

    def _objective(self, measure: Measure) -> Objective:
        if not isinstance(self.lambdas, str) and hasattr(self.lambdas, "on"):
            return self.lambdas
        weighing = weighing_measure(measure, self.weighted_by)
        if self.lambdas == "sampled":
            return SampledLambdas(
                weighing, neighbours=self.neighbours, truncation=self.truncation, samples=self.samples, noise=self.noise, seed=self.seed
            )
        limits = {"neighbours": self.neighbours, "truncation": self.truncation}
        near = {"near": self.near or None} if self.lambdas in ("logistic", "step", "spring") else {}
        return lambda_function(self.lambdas, weighing, self.margin, limits | near)
