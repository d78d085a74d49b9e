"""The settings of a lambda function, for networks and trees alike, and the objective that they define."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from exactrank._support.settings import Configured, setting
from exactrank.data.dataset import Dataset
from exactrank.learning.objectives.lambdas import FiniteDifference, Lambdas, SampledLambdas
from exactrank.learning.objectives.own_lambdas import PairForce, PairForces
from exactrank.learning.objectives.score_space import Objective
from exactrank.measures.base import NO_CUTOFF, Measure
from exactrank.measures.families import Discounted
from exactrank.measures.parse import parse_measure

LambdaChoice = Literal["logistic", "step", "spring", "sampled", "finite-difference"] | PairForce | Objective
OF_PAIRS = ("logistic", "step", "spring")
A_FUNCTION = "a function"  #: the resolved value of ``lambdas`` if it is a function of pairs


class LambdaFunction(Configured):
    """The settings of rankers that follow forces between documents: a second base class of these rankers."""

    lambdas: LambdaChoice = setting(
        default="logistic",
        help="Lambda function: how a pair's force depends on its scores, the same over random rankings, or the measure's finite"
        " differences; in Python also a function of pairs, or any objective of scores.",
    )
    weighted_by: str | Measure | None = setting(
        default=None,
        help="Measure whose changes weigh the pairs; by default the one trained on, without its cutoff (P, R and Success keep theirs).",
        only={"lambdas": (*OF_PAIRS, "sampled", "finite-difference", A_FUNCTION)},
    )
    margin: float = setting(
        default=1.0,
        help="Step and spring forces act until a pair's scores are this far apart; finite differences move a score by this.",
        at_least=0,
        only={"lambdas": ("step", "spring", "finite-difference")},
    )
    neighbors: int | None = setting(
        default=None,
        help="Only documents at most this many ranks apart push each other; by default all do.",
        at_least=1,
        at_most=NO_CUTOFF - 1,
        only={"lambdas": (*OF_PAIRS, "sampled")},
    )
    truncation: int | None = setting(
        default=None,
        help="Only pairs with at least one document in this many top ranks count; by default all do.",
        at_least=1,
        at_most=NO_CUTOFF - 1,
        only={"lambdas": (*OF_PAIRS, "sampled")},
    )
    near: float = setting(
        default=0.0,
        help="Divide a pair's weight by this plus the distance of its scores; 0 leaves it as it is.",
        at_least=0,
        only={"lambdas": OF_PAIRS},
    )
    normalize: bool = setting(
        default=False,
        help="Scale the forces of each query by log2(1 + S) / S, where S is the sum of their sizes, so that no query outweighs all others.",
        only={"lambdas": (*OF_PAIRS, "sampled")},
    )
    score_l2: float = setting(
        default=0.0,
        help="Draw every score to 0 by this times the score: the diagonal term of Burges et al. (2006), which makes a cost convex.",
        at_least=0,
        only={"lambdas": (*OF_PAIRS, "sampled", "finite-difference", A_FUNCTION)},
    )
    samples: int = setting(
        default=10, help="Number of random rankings drawn for each step.", at_least=1, at_most=NO_CUTOFF, only={"lambdas": ("sampled",)}
    )
    noise: float = setting(
        default=1.0, help="Spread of the noise added to the scores to draw random rankings.", at_least=0, only={"lambdas": ("sampled",)}
    )

    @property
    def runs_in_threads(self) -> bool:
        """False for functions of users, which may not be safe for threads."""
        return isinstance(self.lambdas, str) and bool(super().runs_in_threads)  # type: ignore[misc]  # which the ranker has

    @property
    def learns_pairs(self) -> bool:
        return isinstance(self.lambdas, str) and self.lambdas in (*OF_PAIRS, "sampled")

    def resolve_auto(self, data: Dataset) -> Mapping[str, object]:
        resolved: Mapping[str, object] = super().resolve_auto(data)  # type: ignore[misc]  # which the ranker has
        return resolved if isinstance(self.lambdas, str | Objective) else {**resolved, "lambdas": A_FUNCTION}

    def _objective(self, measure: Measure) -> Objective:
        """Return the objective for training on ``measure``.

        Pairs are weighed by the measure without its cutoff, unless it would then value all ranks alike.
        """
        lambdas, neighbors, truncation, seed = self.lambdas, self.neighbors, self.truncation, self.seed  # type: ignore[attr-defined]
        flat = isinstance(measure, Discounted) and len(set(measure.discounts(3).tolist())) == 1
        weighing = parse_measure(self.weighted_by) if self.weighted_by is not None else measure if flat else replace(measure, k=None)
        match lambdas:
            case "logistic" | "step" | "spring":
                near, limits = self.near or None, (neighbors, truncation)
                return Lambdas(weighing, lambdas, self.margin, *limits, near, normalize=self.normalize, score_l2=self.score_l2)
            case "sampled":
                objective = SampledLambdas(weighing, samples=self.samples, noise=self.noise, seed=seed, score_l2=self.score_l2)
                return replace(objective, neighbors=neighbors, truncation=truncation, normalize=self.normalize)
            case "finite-difference":
                return FiniteDifference(weighing, self.margin, score_l2=self.score_l2)
            case Objective():
                return lambdas
        return PairForces(lambdas, weighing, score_l2=self.score_l2)
