"""The base of gradient rankers: recipes of `Composition` whose optimizer follows a slope.

A ranker names its objective; this file trains on it. With ``sgd`` training is as Burges, Ragno & Le (2006) published it: one
update per query, a learning rate that falls when the value does, restarts, the rate and the epoch chosen on validation data.
"""

from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import ClassVar, Literal

from exactrank._support.settings import SOME, VALID, Range, setting
from exactrank.data.dataset import Dataset
from exactrank.learning.objectives.score_space import Objective
from exactrank.learning.optimizers.base import Theta
from exactrank.learning.optimizers.slopes import LBFGS, SGD, Adam
from exactrank.learning.training.combinators import Phase, map_iterates, phases, trials
from exactrank.learning.training.judge import Task
from exactrank.learning.training.progress import Trained
from exactrank.learning.training.run import Recorder
from exactrank.measures.base import Measure
from exactrank.models.architecture import HIDDEN, form_of
from exactrank.models.base import Scorer
from exactrank.models.linear import Linear
from exactrank.models.network import Network
from exactrank.rankers.base import Ranker
from exactrank.rankers.checks import Takes
from exactrank.rankers.composed import AnyOptimizer, Composition

Solver = Literal["auto", "sgd", "adam", "lbfgs"]
#: The learning rates that are tried by default.
RATES = {"sgd": (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2), "adam": (0.001, 0.01, 0.1)}


class GradientRanker(Ranker):
    """The base of rankers that follow a slope."""

    takes = Takes(start=(Linear, Network), shards=True)
    #: True if the objective has several maxima; a linear model then starts from ridge regression.
    rugged: ClassVar[bool] = False
    #: The solver that "auto" means.
    preferred: ClassVar[Solver] = "lbfgs"

    hidden: int | None = setting(
        default=None,
        help="Number of units in a network's hidden layer; by default a linear model.",
        at_least=1,
        at_most=HIDDEN,
        search=(None, 10, 30),
    )
    solver: Solver = setting(
        default="auto",
        help="How to follow the slope: one update per query (sgd), batches of queries (adam), or all queries (lbfgs).",
    )
    learning_rate: float | None = setting(
        default=None,
        help="Learning rate; by default several are tried, and validation data chooses.",
        above=0,
        only={"solver": ("sgd", "adam")},
    )
    max_iter: int = setting(default=300, help="Maximum number of epochs, or of steps of L-BFGS.", at_least=1)
    trial_iter: int = setting(
        default=10,
        help="Number of epochs for each learning rate that is tried; 0 gives each the maximum.",
        at_least=0,
        only={"solver": ("sgd", "adam"), "learning_rate": (None,)},
    )
    patience: int = setting(
        default=50,
        help="Stop when the measure on validation data has not improved for this number of epochs.",
        at_least=1,
        only={VALID: SOME},
    )
    batch_size: int = setting(default=32, help="Number of queries in a batch.", at_least=1, only={"solver": ("adam",)})
    l2: float = setting(
        default=0.01,
        help="L2 penalty on the parameters, relative to the mean over queries.",
        at_least=0,
        search=Range(1e-5, 1.0, log=True),
    )

    @abstractmethod
    def _objective(self, measure: Measure) -> Objective:
        """Return the objective to maximize."""

    def resolve_auto(self, data: Dataset) -> Mapping[str, object]:
        return {"solver": self.preferred} if self.solver == "auto" else {}

    def _fit(self, task: Task, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        composition = Composition(task, form_of(self.hidden).on(task.data), self.l2, self.patience, self.seed)
        return map_iterates(partial(phases, self._phases(composition), self._start(composition)), composition.architecture.at, recorder)

    def _start(self, composition: Composition) -> Theta:
        """Return the parameters at which training starts."""
        return composition.start(ridge=self.rugged and composition.architecture.linear)

    def _phases(self, composition: Composition) -> list[Phase[Theta]]:
        """Return the phases of training; each starts from the best iterate of the one before."""
        return [self._climb(composition, self._objective(composition.task.measure))]

    def _climb(self, composition: Composition, objective: Objective) -> Phase[Theta]:
        """Return the phase that climbs ``objective``: trials of several learning rates, then the rest with the best of them."""
        problem, solver = composition.problem(objective), self.preferred if self.solver == "auto" else self.solver
        if solver == "lbfgs":
            return composition.phase(problem, LBFGS(), self.max_iter)
        rates = RATES[solver] if self.learning_rate is None else (self.learning_rate,)
        optimizers: list[AnyOptimizer] = [SGD(rate) if solver == "sgd" else Adam(rate, self.batch_size) for rate in rates]
        if len(rates) == 1:
            return composition.phase(problem, optimizers[0], self.max_iter)
        short = min(self.trial_iter or self.max_iter, self.max_iter)
        first = [composition.phase(problem, optimizer, short) for optimizer in optimizers]
        rest = [composition.phase(problem, optimizer, self.max_iter - short) for optimizer in optimizers] if short < self.max_iter else []
        names = [f"learning_rate={rate:g}" for rate in rates]
        return lambda start, recorder: trials([partial(run, start) for run in first], rest, recorder, names)
