"""Coordinate ascent of Metzler & Croft (2007), "Linear feature-based models for information retrieval", as RankLib made it known.

A linear model, whose weights are changed one at a time by trying steps of many sizes
(`exactrank.learning.optimizers.step_search`) on the measure itself (`exactrank.learning.objectives.linear_profile`). The first start has
equal weights, the others random ones, for features divided by their standard deviation, so that their units do not matter; the published
method takes them as they are. In training, tied documents count in their worst order.
"""

from functools import partial

import numpy as np

from exactrank._support.numerics import standard_normal
from exactrank._support.settings import Range, setting
from exactrank.learning.objectives.linear_profile import LinearValue
from exactrank.learning.optimizers.base import Theta
from exactrank.learning.optimizers.step_search import StepSearch
from exactrank.learning.training.combinators import map_iterates, restarts, start_names
from exactrank.learning.training.judge import Judge, Task
from exactrank.learning.training.progress import Trained
from exactrank.learning.training.run import Recorder, Run, TrainingRun
from exactrank.measures.ties import worst_tie_order
from exactrank.models.architecture import LinearModel
from exactrank.models.base import Scorer
from exactrank.models.linear import Linear
from exactrank.rankers.base import Ranker
from exactrank.rankers.checks import Takes


class CoordinateAscent(Ranker):
    """A linear model by step search on the measure, one weight at a time (Metzler & Croft 2007).

    >>> from exactrank import RankingData
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> CoordinateAscent(measure="RR").fit(data).score(data)
    1.0
    """

    name = "coordinate-ascent"
    takes = Takes(pairs="by measure", start=(Linear,), shards=True)
    restarts: int = setting(default=5, help="Number of starts; the best model of all is kept.", at_least=1, search=Range(2, 10))
    max_iter: int = setting(default=25, help="Maximum number of rounds over all weights from each start.", at_least=1)
    step: float = setting(default=0.05, help="The smallest step, as a share of the weight.", above=0, search=Range(0.01, 0.2, log=True))
    growth: float = setting(default=2.0, help="Factor by which each step is longer than the one before.", above=1)
    tries: int = setting(default=25, help="Number of steps to try in each direction.", at_least=1, at_most=1000)
    tolerance: float = setting(
        default=0.001, help="Stop when a round gains less than this.", at_least=0, search=Range(1e-4, 1e-2, log=True)
    )
    standardize: bool = setting(default=True, help="Divide features by their standard deviation first; the published method does not.")

    def _fit(self, task: Task, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        data, scale = task.data, LinearModel(self.standardize).on(task.data).scale
        search = StepSearch(self.step, self.growth, self.tries, self.tolerance)
        value = LinearValue(worst_tie_order(task.measure).over(data, threads=task.threads), scale)
        judge: Judge[Theta] = Judge(task, value.score, by_objective=True)

        first = task.start.weights * scale if isinstance(task.start, Linear) else np.ones(data.n_features)

        def run(number: int) -> TrainingRun[Theta]:
            rng = np.random.default_rng([self.seed, number])
            theta = standard_normal(rng, data.n_features) if number else first
            return Run(search, value, theta, judge, self.max_iter * data.n_features, rng)

        runs = [run(number) for number in range(self.restarts)]
        return map_iterates(
            partial(restarts, runs, names=start_names(len(runs))), lambda theta: Linear(theta / scale, data.feature_names), recorder
        )
