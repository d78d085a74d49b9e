"""LambdaRank: RankNet's forces, each times what its pair is worth to the measure (Burges, Ragno & Le 2006).

    lambda_ij = |delta measure_ij| / (1 + e^(s_i - s_j))                                                        (1)

for documents i and j whose exchange of ranks changes the measure by delta: of any measure, and with any lambda function or other
objective of scores instead of (1), see `exactrank.learning.objectives.lambdas` and `exactrank.learning.objectives.own_lambdas`. Training
goes on where RankNet ends, unless ``start`` is random: which pairs weigh most depends on the ranking, and a random one says little.

Polishing is exact steps on the measure from there. A linear model's scores are linear in its weights, a network's in the weights of its
output, so the measure along any line of those is an exact step function (`exactrank.learning.objectives.linear_profile`). Each round takes
the best step along the direction of the objective's slope and then along each weight; the training measure never falls, and validation data
says which round to keep.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from exactrank._support.settings import SOME, setting
from exactrank.data.dataset import Score
from exactrank.data.ranking_data import RankingData
from exactrank.learning.objectives.lambdas import Lambdas
from exactrank.learning.objectives.linear_profile import LinearProfile
from exactrank.learning.objectives.parametric import Parametric
from exactrank.learning.objectives.score_space import Objective
from exactrank.learning.objectives.searched_measure import SearchedMeasure
from exactrank.learning.optimizers.base import Theta
from exactrank.learning.optimizers.coordinate import SlopeAndCoordinates
from exactrank.learning.optimizers.slopes import LBFGS
from exactrank.learning.training.combinators import Phase, map_iterates
from exactrank.learning.training.judge import Judge
from exactrank.learning.training.progress import Trained
from exactrank.learning.training.run import Recorder, Run
from exactrank.measures.base import NO_CUTOFF, Measure
from exactrank.measures.ties import worst_tie_order
from exactrank.models.architecture import Architecture
from exactrank.rankers.composed import Composition
from exactrank.rankers.gradient import GradientRanker, Solver
from exactrank.rankers.lambda_function import LambdaFunction

#: Steps of L-BFGS on RankNet's cost, before the lambdas take over.
START_STEPS = 100


class LambdaRank(LambdaFunction, GradientRanker):
    """A linear model or a network by forces between documents, as strong as the measure's change (Burges, Ragno & Le 2006).

    >>> from exactrank import RankingData
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> LambdaRank(measure="RR").fit(data).score(data)
    1.0
    """

    name = "lambdarank"
    takes = replace(GradientRanker.takes, pairs=True)
    preferred: ClassVar[Solver] = "adam"

    truncation: int | None = setting(
        default=None, help=LambdaFunction.settings["truncation"].help, at_least=1, at_most=NO_CUTOFF - 1,
        only=LambdaFunction.settings["truncation"].only, search=(None, 10, 30),
    )  # fmt: skip
    start: Literal["ranknet", "random"] = setting(
        default="ranknet", help="Where to start: from RankNet, or from random parameters as published."
    )
    polish: Literal["directrank"] | None = setting(
        default=None,
        help="Finish with exact steps along the lambda direction and along each weight (of a network's output).",
        search=(None, "directrank"),
    )
    polish_iter: int = setting(default=10, help="Maximum number of rounds of polishing.", at_least=1, only={"polish": SOME})
    l2: float = 0.02

    def _phases(self, composition: Composition) -> list[Phase[Theta]]:
        objective = self._objective(composition.task.measure)
        runs = [self._climb(composition, objective)]
        if self.start == "ranknet" and composition.task.start is None:
            runs.insert(0, composition.phase(composition.problem(Lambdas()), LBFGS(), START_STEPS))
        if self.polish is not None:
            runs.append(polish(composition, objective, self.polish_iter))
        return runs


@dataclass(frozen=True, eq=False)
class _Units:
    """The outputs of the hidden units as features."""

    architecture: Architecture
    theta: Theta

    @property
    def count(self) -> int:
        return self.architecture.hidden

    @property
    def key(self) -> bytes:
        return self.theta.tobytes()

    def __call__(self, data: RankingData) -> RankingData:
        return self.architecture.linear_features(self.theta, data)


class _Polish:
    """The measure as a function of the weights in which scores are linear, with the objective's slope as a direction to try."""

    def __init__(self, measure: Measure, start: Theta, problem: Parametric) -> None:
        units = None if problem.architecture.linear else _Units(problem.architecture, start)
        over = measure.over(problem.data, threads=problem.threads)
        self._profile = LinearProfile(SearchedMeasure(over), features=units)
        self.announce = self._profile.announce
        self.dimension, self.value, self.at = self._profile.dimension, self._profile.value, self._profile.at
        self._start, self._problem = start, problem

    def slope(self, weights: Theta) -> Theta:
        return self._problem.architecture.linear_weights(self._problem.value_and_slope(self.all_parameters(weights))[1])

    def all_parameters(self, weights: Theta) -> Theta:
        """Return all parameters, with other weights."""
        return self._problem.architecture.with_linear_weights(self._start, weights)


def polish(composition: Composition, objective: Objective, max_iter: int) -> Phase[Theta]:
    """Return the phase of polishing, with at most ``max_iter`` rounds."""
    task, architecture = composition.task, composition.architecture

    def run(theta: Theta, recorder: Recorder[Theta]) -> Trained[Theta]:
        problem = _Polish(
            worst_tie_order(task.measure), theta, Parametric(objective, architecture, task.data, composition.l2, task.threads)
        )

        def score(weights: Theta) -> Score:
            return composition.score(problem.all_parameters(weights))

        polishing = Run(SlopeAndCoordinates(), problem, architecture.linear_weights(theta), Judge(task, score), max_iter, composition.seed)
        return map_iterates(polishing, problem.all_parameters, recorder)

    return run
