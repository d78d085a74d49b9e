"""Estimators of other libraries as rankers: fitted to queries and converted to models by `exactrank.models.estimators`.

So their models can be cross-fitted, blended, saved as data and exported. Validation data, if there is any, chooses the number of trees by
the measure itself, as for the tree rankers of this library.
"""

from typing import Any

import numpy as np

from exactrank._support.settings import setting
from exactrank._support.text import reason_of
from exactrank.errors import ExactRankError, IncompatibleError
from exactrank.learning.training.judge import Judge, Task
from exactrank.learning.training.progress import Trained
from exactrank.learning.training.run import Recorder
from exactrank.learning.training.selection import StepChoice
from exactrank.models.base import Scorer
from exactrank.models.estimators.adapter import fit_to_queries, library_of
from exactrank.models.estimators.model import from_estimator
from exactrank.models.estimators.naming import call_of
from exactrank.models.missing import TreeMissing
from exactrank.models.tree_ensemble import TreeEnsemble
from exactrank.rankers.base import Ranker


class Foreign(Ranker):
    """An estimator of LightGBM, XGBoost or CatBoost, or a linear one of scikit-learn.

    >>> from exactrank import RankingData
    >>> from sklearn.linear_model import LinearRegression
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> Foreign(measure="RR", estimator=LinearRegression()).fit(data).weights_.round(3)
    array([0., 1.])
    """

    name = "foreign"

    estimator: object = setting(default=None, help="What is trained; it is cloned, and stays as it is.")
    missing: TreeMissing = setting(  # type: ignore[assignment]
        default="error", help="What a missing value is: an error, 0, the feature's mean, or kept for the estimator."
    )

    @property
    def title(self) -> str:
        """The estimator in one line, with its library."""
        call = call_of(self.estimator)
        return f"{library_of(self.estimator)}.{call}{'' if call.endswith(')') else '()'}"

    @property
    def runs_in_threads(self) -> bool:
        """False: the estimator has its own threads."""
        return False

    @property
    def keeps_missing(self) -> bool:
        """True for estimators that read missing values; the linear ones of scikit-learn do not."""
        return not type(self.estimator).__module__.startswith("sklearn")

    def _fit(self, task: Task, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        scorer = recorder.remember("scorer", lambda: self._train_estimator(task))
        return Trained(scorer, recorder.record_result(scorer, task.verdict, 1, 1), 1)

    def _train_estimator(self, task: Task) -> Scorer:
        """Train the estimator on the queries of ``task``, and return its scorer, for the features of the data."""
        data = task.data.gather()
        try:
            learned = fit_to_queries(
                self.estimator, data, None if task.valid is None else task.valid.gather(), seed=self.seed, threads=task.threads
            )
            scorer = from_estimator(learned).scorer
        except ExactRankError:
            raise
        except Exception as error:
            raise IncompatibleError(f"{self.title} cannot be trained here: {reason_of(error)}") from error
        if scorer.n_features != data.n_features:
            raise IncompatibleError(f"{self.title} reads {scorer.n_features} of {data.n_features} features; let it read all of them")
        return _select_trees(scorer.relative_to(data.offset, data.feature_names), task)


def _select_trees(scorer: Scorer, task: Task) -> Scorer:
    """Return the first trees of ``scorer``, as many as validation data selects; without such data, or without trees, all of it."""
    if not isinstance(scorer, TreeEnsemble) or task.valid is None:
        return scorer
    parts = (task.data.gather(), task.valid.gather())
    judge: Judge[list[Any]] = Judge(task, lambda sums: lambda data: sums[data is parts[1]])
    sums, choice = [np.zeros(part.n_documents) for part in parts], None
    for count, tree in enumerate(scorer.single_trees(), 1):
        sums = [total + tree.score(part.X, task.threads) for total, part in zip(sums, parts, strict=True)]
        verdict = judge(sums, 0.0)
        choice = StepChoice.of(count, verdict) if choice is None else choice.after(count, verdict)
    return scorer if choice is None else TreeEnsemble(scorer.table.first(choice.candidate), scorer.feature_names)
