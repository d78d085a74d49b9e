"""RankBoost: thresholds of single features, boosted on pairs (Freund, Iyer, Schapire & Singer 2003).

Each round adds the step [x_f > t] that orders the pairs of documents of different grades best, where pairs that are still in the
wrong order weigh most (`exactrank.learning.objectives.pair_exponential`, `exactrank.learning.optimizers.boosting`). The measure is
reported, and with validation data it chooses how many rounds to keep, tied documents in their worst order: a model of few steps leaves many
documents tied. Without validation data all rounds are kept, as published.
"""

import numpy as np

from exactrank._support.settings import SOME, VALID, Range, setting
from exactrank.learning.objectives.pair_exponential import MOST_THRESHOLDS, PairExponential
from exactrank.learning.optimizers import boosting
from exactrank.learning.optimizers.base import Theta
from exactrank.learning.training.combinators import map_iterates
from exactrank.learning.training.judge import Judge, Task
from exactrank.learning.training.progress import Trained
from exactrank.learning.training.run import Recorder, Run
from exactrank.models.base import Scorer
from exactrank.models.thresholds import Thresholds
from exactrank.rankers.base import Ranker
from exactrank.rankers.checks import Takes


class RankBoost(Ranker):
    """A sum of steps of single features by boosting on pairs (Freund, Iyer, Schapire & Singer 2003).

    >>> from exactrank import RankingData
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> RankBoost(measure="RR").fit(data).score(data)
    1.0
    """

    name = "rankboost"
    takes = Takes(pairs=True, shards=True)
    max_iter: int = setting(default=300, help="Maximum number of steps.", at_least=1, search=Range(100, 1000, log=True), free=True)
    thresholds: int = setting(
        default=30,
        help="Maximum number of thresholds per feature, with about equally many documents between neighbors;"
        " 0 allows one between any two of its values.",
        at_least=0,
        at_most=MOST_THRESHOLDS,
        search=Range(8, 255, log=True),
    )
    patience: int | None = setting(
        default=None,
        help="Stop after this number of rounds without improvement on validation data; by default all rounds are run.",
        at_least=1,
        only={VALID: SOME},
    )

    def _fit(self, task: Task, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        data, problem = task.data, PairExponential(task.data, self.thresholds, task.threads)
        judge: Judge[Theta] = Judge(task, problem.score, by_objective=True)
        patience = None if task.valid is None else self.patience
        run = Run(boosting.RankBoostOptimizer(), problem, np.empty(0), judge, self.max_iter, self.seed, patience)
        return map_iterates(run, lambda theta: Thresholds.from_steps(theta, data.n_features, data.feature_names), recorder)
