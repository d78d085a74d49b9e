"""LambdaRank: RankNet's forces, each times what its pair is worth to the measure (Burges, Ragno & Le 2006).

    lambda_ij = |delta measure_ij| / (1 + e^(s_i - s_j))                                                        (1)

for documents i and j whose exchange of ranks changes the measure by delta: of any measure, and with any lambda function in the
place of (1), see `exactrank.objectives.lambdas` and `exactrank.objectives.own_lambdas`. Training goes on where RankNet ends, unless
it is told to start at random: which pairs weigh most depends on the ranking, and a random one says little.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal

from exactrank.errors import DataError
from exactrank.measures.base import Measure
from exactrank.measures.parse import parse_measure
from exactrank.objectives.lambdas import Lambdas
from exactrank.objectives.score_space import Objective
from exactrank.optimizers.base import Theta
from exactrank.optimizers.lbfgs import LBFGS
from exactrank.rankers.gradient import GradientRanker, Method, Run
from exactrank.rankers.lambda_function import LambdaChoice, lambda_function, weighing_measure
from exactrank.rankers.polish import polished
from exactrank.rankers.restarts import in_turn
from exactrank.rankers.search_space import Space
from exactrank.training import Listener, Trained

#: Steps of L-BFGS on RankNet's cost, before the lambdas take over.
START_STEPS = 100


@dataclass(eq=False, repr=False)
class LambdaRank(GradientRanker):
    """A linear model or a network by forces between documents, as strong as the measure's change (Burges, Ragno & Le 2006).

    Args:
        lambdas: The lambda function: how a pair's force depends on its scores, or the measure's finite differences; in Python
            also a function of pairs.
        weighted_by: The measure whose changes weigh the pairs; by default the one that is trained on, without its cutoff (but P, R
            and Success keep theirs).
        margin: Step and spring forces act until a pair's scores are so far apart.
        neighbours: Only documents at most so many ranks apart push each other; by default all do.
        truncation: One of a pair must be among the first so many ranks; by default there is no limit.
        start: Where to start: from RankNet, or from random parameters as published.
        polish: Finish with exact steps along the lambda direction and along each weight (of a network's output).
        polish_rounds: At most so many rounds of them.

    >>> from exactrank import RankingData
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> LambdaRank(measure="RR").fit(data).score(data)
    1.0
    """

    name = "lambdarank"
    space: ClassVar[Space] = {**GradientRanker.space, "truncation": (None, 10, 30), "polish": (None, "directrank")}
    has_value: ClassVar[bool] = False
    preferred: ClassVar[Method] = "adam"

    lambdas: LambdaChoice = "logistic"
    weighted_by: str | Measure | None = None
    margin: float = 1.0
    neighbours: int | None = None
    truncation: int | None = None
    start: Literal["ranknet", "random"] = "ranknet"
    polish: Literal["directrank"] | None = None
    polish_rounds: int = 10
    l2: float = 0.02

    def _objective(self, measure: Measure) -> Objective:
        limits = {"neighbours": self.neighbours, "truncation": self.truncation}
        return lambda_function(self.lambdas, weighing_measure(measure, self.weighted_by), self.margin, limits)

    def _trained(self, run: Run, theta: Theta, listener: Listener | None) -> Trained:
        if self.start not in ("ranknet", "random"):
            raise DataError(f'start={self.start!r} is not one of "ranknet", "random"')
        if self.polish not in (None, "directrank") or self.polish_rounds < 1:
            raise DataError(f'polish={self.polish!r} with {self.polish_rounds} rounds: expected None or "directrank", and at least 1 round')
        self._optimizers()  # which refuses bad settings, before any work
        phases = [partial(super()._trained, run)]
        if self.start == "ranknet":
            by_pairs = replace(run.on(Lambdas()), reported=run.problem.value)
            phases.insert(0, partial(by_pairs, LBFGS(), START_STEPS))
        if self.polish is not None:
            phases.append(partial(polished, run, parse_measure(self.measure), self.polish_rounds))
        return in_turn(phases, theta, listener)
