"""LambdaRank: RankNet's forces, each times what its pair is worth to the measure (Burges, Ragno & Le 2006).

    lambda_ij = |delta measure_ij| / (1 + e^(s_i - s_j))                                                        (1)

for documents i and j whose exchange of ranks changes the measure by delta: of any measure, and with any lambda function or other
objective of scores in the place of (1), see `exactrank.objectives.lambdas` and `exactrank.objectives.own_lambdas`. Training goes on where
RankNet ends, unless it is told to start at random: which pairs weigh most depends on the ranking, and a random one says little.
"""

from collections.abc import Mapping
from typing import ClassVar, Literal

from exactrank.data.ranking_data import RankingData
from exactrank.measures.base import NO_CUTOFF, Measure
from exactrank.objectives.lambdas import Lambdas
from exactrank.objectives.score_space import Objective
from exactrank.optimizers.lbfgs import LBFGS
from exactrank.rankers.composed import Composition, Phase, in_turn
from exactrank.rankers.gradient import GradientRanker, Solver
from exactrank.rankers.lambda_function import LambdaFunction
from exactrank.rankers.polish import polish
from exactrank.settings import SOME, setting

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
    polish_iter: int = setting(default=10, help="Maximum number of rounds of them.", at_least=1, only={"polish": SOME})
    l2: float = 0.02

    def _comes_to(self, data: RankingData) -> Mapping[str, object]:
        return {**super()._comes_to(data), **self.lambdas_come_to()}

    def _objective(self, measure: Measure) -> Objective:
        return self.lambda_objective(measure, self.seed)

    def _phase(self, made: Composition) -> Phase:
        objective = self._objective(made.task.measure)
        runs = [self._climb(made, objective)]
        if self.start == "ranknet":
            runs.insert(0, made.phase(made.problem(Lambdas()), LBFGS(), START_STEPS))
        if self.polish is not None:
            runs.append(polish(made, objective, self.polish_iter))
        return in_turn(runs)
