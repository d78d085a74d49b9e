"""Ridge regression of the grades on the features, within queries: the baseline that every ranker should beat.

The weights are those of `exactrank.objectives.ridge`, in closed form; the measure is only reported.
"""

from exactrank.objectives.ridge import ridge_weights
from exactrank.rankers.base import Ranker
from exactrank.scorers.base import Scorer
from exactrank.scorers.linear import Linear
from exactrank.settings import Range, setting
from exactrank.training.judge import Task
from exactrank.training.progress import Trained
from exactrank.training.run import Recorder


class Ridge(Ranker):
    """A linear model by ridge regression on the grades.

    >>> from exactrank import RankingData
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> Ridge(measure="RR").fit(data).score(data)
    1.0
    """

    name = "ridge"
    weighs_documents = True

    l2: float = setting(
        default=1e-3, help="Penalty on a feature's weight, relative to the feature's variance.", above=0, search=Range(1e-6, 10.0, log=True)
    )

    def _fit(self, task: Task, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        scorer = Linear(ridge_weights(task.data, self.l2), task.data.feature_names)
        return Trained(scorer, recorder.finished(scorer, task.verdict, 0, 0))
