"""Ridge regression of the grades on the features, within queries: the baseline that every ranker should beat.

The weights are those of `exactrank.learning.objectives.ridge`, in closed form. The measure only chooses the strength of the penalty: among

    l2_i = 10^(2 - i/2),    i = 0 ... 10                                                                        (1)

by validation data or, without it, by folds of the queries, each of which is scored by the models of the others. The best strength on few
queries is partly luck, so it is the average of what bootstrap samples of them choose (`exactrank.learning.training.selection`).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.numerics import power
from exactrank._support.settings import Range, setting
from exactrank._support.threads import thread_count
from exactrank.data.dataset import Concatenated, Part
from exactrank.data.folds import FoldNumbers
from exactrank.data.scratch_arrays import take_rows
from exactrank.learning.objectives.bounded_gain import bounded_gain
from exactrank.learning.objectives.ridge import ridge_paths, ridge_weights
from exactrank.learning.training.judge import Task
from exactrank.learning.training.progress import Alternative, Trained
from exactrank.learning.training.run import Recorder
from exactrank.learning.training.selection import alternatives, average, verdicts_by
from exactrank.measures.base import Measure
from exactrank.measures.ties import worst_tie_order
from exactrank.models.base import Scorer
from exactrank.models.linear import Linear
from exactrank.rankers.base import Ranker
from exactrank.rankers.checks import Takes

#: The strengths (1) that are tried.
STRENGTHS = power(10.0, 2 - np.arange(11) / 2)
FOLDS = 5


class Ridge(Ranker):
    """A linear model by ridge regression on the grades.

    >>> from exactrank import RankingData
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> Ridge(measure="RR").fit(data).score(data)
    1.0
    """

    name = "ridge"
    takes = Takes(document_weights=True, shards=True, sharded_document_weights=True)

    l2: float | Literal["auto"] = setting(
        default="auto",
        help="Penalty on a feature's weight, relative to the feature's variance;"
        ' "auto" lets the measure choose, on validation data or by folds of queries.',
        above=0,
        search=Range(1e-6, 100.0, log=True),
    )

    def _fit(self, task: Task, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        compared, l2 = tuple[Alternative, ...](), self.l2
        if l2 == "auto":
            compared = recorder.remember("l2", lambda: self._compare_strengths(task))
            l2 = float(STRENGTHS[[one.selected for one in compared]][0])
        scorer = Linear(ridge_weights(task.data, l2), task.data.feature_names)
        choice = {"l2": l2} if self.l2 == "auto" else {}
        return Trained(scorer, recorder.record_result(scorer, task.verdict, 0, 0), settings=choice, alternatives=compared)

    def _compare_strengths(self, task: Task) -> tuple[Alternative, ...]:
        """Return the strengths with their values; one of them is marked as chosen."""
        data, judges = task.data, task.data if task.valid is None else task.valid
        folds = None if task.valid is not None else FoldNumbers(data.n_queries, min(FOLDS, data.n_queries), self.seed)
        tried = np.array(list(ridge_paths(data, STRENGTHS, folds)))
        values = judges.ask(Concatenated(_Tried(worst_tie_order(task.measure), tried, folds, task.threads), axis=1))
        verdicts = verdicts_by(values, judges.weights)
        return alternatives([f"l2={l2:.3g}" for l2 in STRENGTHS], verdicts, average(verdicts).number)


@dataclass(frozen=True, eq=False)
class _Tried:
    """The measure of each query by the weights of each strength, a row each: those of its fold, where queries judge that did not train."""

    measure: Measure
    weights: npt.NDArray[np.float64]  #: by fold, strength and feature
    folds: FoldNumbers | None
    threads: int | None

    def __call__(self, part: Part) -> npt.NDArray[np.float64]:
        data, bound = part.data, bounded_gain(self.measure.on(part.data, threads=self.threads))
        fold = np.repeat(
            np.zeros(data.n_queries, np.int64) if self.folds is None else self.folds.of(part.first, data.n_queries), data.sizes
        )
        scores = np.empty((self.weights.shape[1], data.n_documents))
        for number, weights in enumerate(self.weights):
            rows = np.flatnonzero(fold == number)
            X = data.X if self.folds is None else take_rows(data.X, rows)
            scores[:, rows] = [_core.linear_scores(X, each, thread_count(self.threads)) for each in weights]
        return np.array([bound.values(each) for each in scores])
