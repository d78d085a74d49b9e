"""Composed: a ranker that the user composes of a form of scorer, an objective and an optimizer.

    Composed(scorer=NetworkModel(10), objective=ListNet(), optimizer=Adam(0.01))

`Composition` is what every ranker that follows a slope is made of. It poses an objective as a problem of the scorer's parameters, and
runs an optimizer on it:

    an objective of scores           `Parametric`, with slopes; by `ForceProblem` where those have no potential
    a measure                        `Measured`, with values; of a linear model also exactly along lines (`LinearMeasured`)

An optimizer that needs something that the problem lacks is refused before any work; the error names suitable optimizers.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np

from exactrank._support.settings import SOME, VALID, setting
from exactrank.data.dataset import CachedScore, Dataset, Score
from exactrank.learning.objectives.bounded_gain import for_selection
from exactrank.learning.objectives.measured import LinearMeasured, Measured
from exactrank.learning.objectives.parametric import ForceProblem, Parametric
from exactrank.learning.objectives.ridge import ridge_weights
from exactrank.learning.objectives.score_space import Objective, is_conservative
from exactrank.learning.objectives.within_query import deviation_of
from exactrank.learning.optimizers.base import Optimizer, Theta, fitting
from exactrank.learning.optimizers.coordinate import CoordinateSearch
from exactrank.learning.training.combinators import Phase, map_iterates
from exactrank.learning.training.judge import Judge, Task
from exactrank.learning.training.progress import Trained
from exactrank.learning.training.run import Recorder, Run
from exactrank.measures.base import Measure
from exactrank.measures.ties import worst_tie_order
from exactrank.models.architecture import Architecture, LinearModel, NetworkModel
from exactrank.models.base import Scorer
from exactrank.models.linear import Linear
from exactrank.models.network import Network
from exactrank.rankers.base import Ranker
from exactrank.rankers.checks import Takes

Problem = Parametric | ForceProblem | Measured
AnyOptimizer = Optimizer[Any, Theta, Any]


@dataclass(frozen=True, eq=False)
class Composition:
    """A form of scorer on the data of a task, for which objectives and optimizers are combined."""

    task: Task
    architecture: Architecture
    l2: float = 0.0
    patience: int | None = None  #: with validation data
    seed: int = 0
    _last: list[tuple[Theta, Score]] = field(default_factory=list, init=False, repr=False)  #: the last parameters and their scores

    def problem(self, objective: Objective | Measure) -> Problem:
        """Return ``objective`` as a function of the parameters."""
        if isinstance(objective, Measure):
            kind = LinearMeasured if self.architecture.linear else Measured
            return kind(worst_tie_order(objective).over(self.task.data, threads=self.task.threads), self.architecture)
        if is_conservative(objective):
            return Parametric(objective, self.architecture, self.task.data, self.l2, self.task.threads)
        selects = for_selection(worst_tie_order(self.task.measure).over(self.task.data, threads=self.task.threads))

        def judge(theta: Theta) -> float:
            """Return the value for forces, which have no objective: the measure that the judge selects by, on training data."""
            return selects.mean(self.score(theta))

        return ForceProblem(objective, self.architecture, self.task.data, judge, self.l2, self.task.threads)

    def phase(self, problem: Problem, optimizer: AnyOptimizer, max_steps: int) -> Phase[Theta]:
        """Return a run of ``optimizer`` on ``problem``; an error if the problem lacks something that the optimizer needs."""
        patience = None if self.task.valid is None else self.patience
        runs, judge = fitting(optimizer, problem), Judge(self.task, self.score, by_objective=isinstance(problem, ForceProblem))
        return lambda start, recorder: Run(runs, problem, start, judge, max_steps, [self.seed, self.task.bag], patience)(recorder)

    def score(self, theta: Theta) -> Score:
        """Return the function that scores documents at ``theta``; the last scores are remembered for the same parameters."""
        if not self._last or self._last[0][0] is not theta:
            self._last[:] = [(theta, CachedScore(self.architecture.score(theta, self.task.threads)))]
        return self._last[0][1]

    def start(self, ridge: bool) -> Theta:
        """Return the first parameters: of the model to continue, of ridge regression with unit deviation within queries, or random ones."""
        architecture, data = self.architecture, self.task.data
        if self.task.start is not None:
            return architecture.theta_from(self.task.start)
        if not ridge:
            return architecture.initial(np.random.default_rng([self.seed, self.task.bag]))
        theta = architecture.theta_of(ridge_weights(data))
        size = deviation_of(data, architecture.score(theta))
        return theta / size if size > 0 else theta


class Composed(Ranker):
    """A ranker composed of a form of scorer, an objective, and an optimizer that maximizes it.

    >>> from exactrank.losses import ListNetLoss
    >>> from exactrank import RankingData, optimizers
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> Composed("RR", objective=ListNetLoss(), optimizer=optimizers.LBFGS()).fit(data).score(data)
    1.0
    """

    name = "composed"
    takes = Takes(pairs="by measure", start=(Linear, Network), shards=True)

    scorer: LinearModel | NetworkModel = setting(
        default=LinearModel(), help="Form of the scorer: er.models.LinearModel() or er.models.NetworkModel(hidden=10)."
    )
    objective: Objective | Measure | None = setting(
        default=None,
        help="What is maximized: an objective of scores, e.g. er.losses.ListNetLoss(), or a measure; by default the measure itself.",
    )
    optimizer: AnyOptimizer = setting(default=CoordinateSearch(), help="What maximizes it, e.g. optimizers.Adam(learning_rate=0.01).")
    start: Literal["random", "ridge"] = setting(
        default="random", help="Where to start: from random parameters or, for a linear model, from ridge regression."
    )
    max_iter: int = setting(default=300, help="Maximum number of steps of the optimizer.", at_least=1, free=True)
    patience: int = setting(
        default=50,
        help="Stop when the measure on validation data has not improved for this number of steps.",
        at_least=1,
        only={VALID: SOME},
    )
    l2: float = setting(default=0.0, help="L2 penalty on the parameters, relative to the mean over queries.", at_least=0)

    @property
    def runs_in_threads(self) -> bool:
        """False: objectives and optimizers of users may not be safe for threads."""
        return False

    @property
    def learns_pairs(self) -> bool:
        objective = self.objective
        return (objective is None or (isinstance(objective, Measure) and objective.counts_pairs)) and super().learns_pairs

    def ineffective_settings(self, data: Dataset, validated: bool = False) -> dict[str, str]:
        """Return the settings without effect; a penalty has none on a measure."""
        reasons = super().ineffective_settings(data, validated)
        if self.l2 and (self.objective is None or isinstance(self.objective, Measure)):
            reasons["l2"] = f"l2={self.l2!r} has no effect on a measure, which does not depend on the size of the scores; leave it out"
        return reasons

    def _fit(self, task: Task, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        recipe = Composition(task, self.scorer.on(task.data), self.l2, self.patience, self.seed)
        phase = recipe.phase(recipe.problem(task.measure if self.objective is None else self.objective), self.optimizer, self.max_iter)
        return map_iterates(partial(phase, recipe.start(self.start == "ridge")), recipe.architecture.at, recorder)
