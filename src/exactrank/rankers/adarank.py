"""AdaRank: single features, boosted on the measure (Xu & Li 2007).

Each round adds the feature that does best on the queries that the model so far does badly on; the model is linear
(`exactrank.learning.optimizers.boosting`, `exactrank.learning.objectives.measured`). As published a feature may be taken again at once, and
often the first one is, for ever (``rest=0``); by default only after all others were, which does better on every set that we tried.
Features are divided by their standard deviation, so that the alphas of (2) there weigh them alike.

In training, tied documents count in their worst order: a feature that is 0 almost everywhere must not look good because the
documents that it ties happen to be in a good order.
"""

import numpy as np

from exactrank._support.settings import setting
from exactrank.learning.objectives.measured import Measured, QueryPerformance
from exactrank.learning.optimizers import boosting
from exactrank.learning.optimizers.base import Theta
from exactrank.learning.training.combinators import map_iterates
from exactrank.learning.training.judge import Judge, Task
from exactrank.learning.training.progress import Trained
from exactrank.learning.training.run import Recorder, Run
from exactrank.measures.ties import worst_tie_order
from exactrank.models.architecture import LinearModel
from exactrank.models.base import Scorer
from exactrank.rankers.base import Ranker
from exactrank.rankers.checks import Takes


class AdaRank(Ranker):
    """A linear model by boosting single features on the measure (Xu & Li 2007).

    >>> from exactrank import RankingData
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> AdaRank(measure="RR").fit(data).score(data)
    1.0
    """

    name = "adarank"
    takes = Takes(shards=True)
    max_iter: int = setting(default=500, help="Maximum number of rounds, each of which adds a feature.", at_least=1, free=True)
    rest: int | None = setting(
        default=None,
        help="Number of rounds before a feature may be taken again: 0 as published; by default once all others were taken.",
        at_least=0,
        search=(None, 0, 1, 5),
    )
    nonnegative: bool = setting(
        default=False,
        help="Allow no weight below 0, as published; otherwise features are reversed where that ranks better.",
        search=(False, True),
    )
    standardize: bool = setting(
        default=True, help="Divide features by their standard deviation first; the published method does not.", search=(False, True)
    )
    patience: int | None = setting(
        default=100, help="Stop after this number of rounds without improvement, on validation data if there is any.", at_least=1
    )

    def _fit(self, task: Task, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        data, architecture = task.data, LinearModel(self.standardize).on(task.data)
        measure = task.measure.over(data, threads=task.threads)
        measured = Measured(measure.with_ties(worst_tie_order(task.measure).ties), architecture, measure)
        problem = QueryPerformance(measured, turned=not self.nonnegative)
        judge: Judge[Theta] = Judge(
            task, lambda theta: architecture.score(theta, task.threads), by_objective=True, reported=measured.reported_value
        )
        run = Run(boosting.AdaRankOptimizer(self.rest), problem, np.zeros(data.n_features), judge, self.max_iter, self.seed, self.patience)
        return map_iterates(run, architecture.at, recorder)
