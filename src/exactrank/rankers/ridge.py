"""Ridge regression of the grades on the features, within queries: the baseline that every ranker should beat.

The weights are those of `exactrank.objectives.ridge`, in closed form. The measure only chooses the strength of the penalty: among

    l2_i = 10^(2 - i/2),    i = 0 ... 10                                                                        (1)

by validation data or, without it, by folds of the queries, each of which is scored by the models of the others. The best strength on few
queries is partly luck. So it is found on bootstrap samples of the queries that judge, and the geometric mean of the results is taken.
"""

from typing import Literal

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import PerQuery
from exactrank.data.folds import deal_folds
from exactrank.objectives.bounded_gain import gentle
from exactrank.objectives.ridge import ridge_paths, ridge_weights
from exactrank.rankers.base import Ranker
from exactrank.scorers.base import Scorer
from exactrank.scorers.linear import Linear
from exactrank.settings import Range, setting
from exactrank.threads import thread_count
from exactrank.training.judge import Task, severe
from exactrank.training.progress import Trained
from exactrank.training.run import Recorder

#: What is tried (1), and how often it is asked for which is best.
STRENGTHS = 10.0 ** (2 - np.arange(11) / 2)
SAMPLES = 200
FOLDS = 5


class Ridge(Ranker):
    """A linear model by ridge regression on the grades.

    >>> from exactrank import RankingData
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> Ridge(measure="RR").fit(data).score(data)
    1.0
    """

    name = "ridge"
    weighs_documents = True

    l2: float | Literal["auto"] = setting(
        default="auto",
        help="Penalty on a feature's weight, relative to the feature's variance;"
        ' "auto" lets the measure choose, on validation data or by folds of queries.',
        above=0,
        search=Range(1e-6, 100.0, log=True),
    )

    def _fit(self, task: Task, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        l2 = recorder.remembered("l2", lambda: self._strength(task)) if self.l2 == "auto" else self.l2
        scorer = Linear(ridge_weights(task.data, l2), task.data.feature_names)
        return Trained(scorer, recorder.finished(scorer, task.verdict, 0, 0), chosen={"l2": l2} if self.l2 == "auto" else {})

    def _strength(self, task: Task) -> float:
        """What the measure chooses."""
        data, judges = task.data, task.data if task.valid is None else task.valid
        fold = None if task.valid is not None else deal_folds(data.n_queries, min(FOLDS, data.n_queries), self.seed)
        scores = np.empty((len(STRENGTHS), judges.n_documents))
        for part, weights in enumerate(ridge_paths(data, STRENGTHS, fold)):
            seen = np.full(judges.n_queries, True) if fold is None else fold == part
            X = judges.X if fold is None else judges.take_queries(seen).X
            scores[:, np.repeat(seen, judges.sizes)] = [_core.linear_scores(X, w, thread_count(task.threads)) for w in weights]
        measure = gentle(severe(task.measure).on(judges, threads=task.threads))
        return _chosen(np.array([measure.values(one) for one in scores]), judges.weights, np.random.default_rng(self.seed))


def _chosen(values: npt.NDArray[np.float64], weight: PerQuery, rng: np.random.Generator) -> float:
    """The strength that bootstrap samples of the queries choose on average, by its logarithm, from the ``values`` of each on each query."""
    queries = len(weight)
    times = rng.multinomial(queries, np.full(queries, 1 / queries), SAMPLES) * weight
    sums = np.array([np.nansum(times * one, axis=1) for one in values])
    best = sums == sums.max(axis=0)
    return float(np.exp(np.mean(np.log(STRENGTHS) @ best / best.sum(axis=0))))
