"""A ranker trained on values of the measure alone, by stochastic approximation (Yue & Burges 2007).

A linear model or a network (`exactrank.models.architecture`), the measure as a function of its parameters
(`exactrank.learning.objectives.measured`), and slopes estimated from a few of its values (`exactrank.learning.optimizers.approximation`),
or from two values per parameter. Only with many queries are a measure's steps small enough for that. In training, tied documents count in
their worst order.
"""

from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from exactrank._support.settings import Range, setting
from exactrank.learning.objectives.measured import Measured
from exactrank.learning.objectives.ridge import ridge_weights
from exactrank.learning.optimizers.approximation import FDSA, SPSA
from exactrank.learning.optimizers.base import Theta
from exactrank.learning.training.combinators import map_iterates, restarts, start_names
from exactrank.learning.training.judge import Judge, Task
from exactrank.learning.training.progress import Trained
from exactrank.learning.training.run import Recorder, Run, TrainingRun
from exactrank.measures.ties import worst_tie_order
from exactrank.models.architecture import HIDDEN, form_of
from exactrank.models.base import Scorer
from exactrank.models.linear import Linear
from exactrank.models.network import Network
from exactrank.rankers.base import Ranker
from exactrank.rankers.checks import Takes

#: Number of steps that each solver makes by default.
STEPS = {"spsa": 1000, "fdsa": 50}


class SPSARank(Ranker):
    """A linear model or a network by slopes of the measure that are estimated from its values (Yue & Burges 2007).

    >>> from exactrank import RankingData
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> SPSARank(measure="RR", max_iter=100).fit(data).score(data)
    1.0
    """

    name = "spsarank"
    takes = Takes(start=(Linear, Network), shards=True)
    hidden: int | None = setting(
        default=None, help="Number of units in a network's hidden layer; by default a linear model.", at_least=1, at_most=HIDDEN
    )
    solver: Literal["spsa", "fdsa"] = setting(
        default="spsa",
        help="Perturb all parameters at once (spsa), or one after the other (fdsa), which costs two evaluations per parameter.",
    )
    evaluations: int = setting(
        default=4,
        help="Number of evaluations of the measure for each estimate of the slope; must be even.",
        at_least=2,
        only={"solver": ("spsa",)},
        search=(2, 4, 8),
    )
    max_iter: int | None = setting(
        default=None, help="Number of steps; by default 1000 for spsa and 50 for fdsa.", at_least=1, search=Range(300, 3000, log=True)
    )
    a0: float | None = setting(default=None, help="Gain of the steps; by default chosen from values around the start.", above=0)
    c0: float | None = setting(
        default=None, help="How far to perturb each parameter at first; by default chosen from values around the start.", above=0
    )
    A: float = setting(default=50.0, help="Added to k^alpha in the gains of the steps; keeps the first ones short.", at_least=0)
    alpha: float = setting(default=0.602, help="How fast the gains of the steps fall.", at_least=0)
    gamma: float = setting(default=0.101, help="How fast the perturbations fall.", at_least=0)
    start: Literal["random", "ridge"] = setting(
        default="random",
        help="Where to start: from random parameters, or from ridge regression.",
        only={"hidden": (None,)},
        search=("random", "ridge"),
    )
    restarts: int = setting(
        default=1,
        help="Number of starts, the first as given by start and the others random; the best model is kept.",
        at_least=1,
        search=Range(1, 4),
    )

    def _fit(self, task: Task, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        solver = FDSA() if self.solver == "fdsa" else SPSA(self.evaluations)
        solver = replace(solver, a0=self.a0, c0=self.c0, A=self.A, alpha=self.alpha, gamma=self.gamma)
        architecture = form_of(self.hidden).on(task.data)
        measure = task.measure.over(task.data, threads=task.threads)
        problem = Measured(measure.with_ties(worst_tie_order(task.measure).ties), architecture, measure)
        judge: Judge[Theta] = Judge(
            task, lambda theta: architecture.score(theta, task.threads), by_objective=True, reported=problem.reported_value
        )

        def run(number: int) -> TrainingRun[Theta]:
            rng = np.random.default_rng([self.seed, number])
            ridge = self.start == "ridge" and number == 0
            theta = architecture.theta_of(ridge_weights(task.data)) if ridge else architecture.initial(rng)
            if task.start is not None and number == 0:
                theta = architecture.theta_from(task.start)
            return Run(solver, problem, theta, judge, self.max_iter or STEPS[self.solver], rng)

        return map_iterates(
            partial(restarts, [run(number) for number in range(self.restarts)], names=start_names(self.restarts)), architecture.at, recorder
        )
