"""The task of a ranker, and the judge, which evaluates iterates for reports and for selection.

The measure is reported as requested. For selection, tied documents count in their worst order (`exactrank.measures.ties`), and grades that
are exponents are bounded, as in the forces that training follows (`exactrank.learning.objectives.bounded_gain`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Generic

from exactrank._support.arrays import PerDocument, PerQuery
from exactrank.data.dataset import Dataset, Score
from exactrank.data.ranking_data import RankingData
from exactrank.learning.objectives.bounded_gain import for_selection
from exactrank.learning.training.progress import It, Verdict
from exactrank.measures.base import Measure
from exactrank.measures.bound import BoundMeasure, DatasetMeasure, values_over
from exactrank.measures.goal import Constraint
from exactrank.measures.ties import worst_tie_order
from exactrank.models.base import Scorer


def scores_of(scorer: Scorer, threads: int | None, data: RankingData) -> PerDocument:
    """Return the score of each document."""
    return scorer.score(data.X, threads)


def judge_by_objective(iterate: object, objective: float) -> Verdict:
    """Return the verdict of runs whose steps are not reported: only the objective counts."""
    return Verdict(objective, None, objective)


def validation_verdict(
    value: float,
    reported: DatasetMeasure | BoundMeasure,
    selecting: DatasetMeasure | BoundMeasure,
    reported_values: PerQuery,
    selecting_values: PerQuery,
) -> Verdict:
    """Return the verdict by the values of validation queries: of the reported measure, and of the one that selects."""
    weights = None if selecting.data.query_weight is None else selecting.weights
    return Verdict(value, reported.mean_of(reported_values), selecting.mean_of(selecting_values), selecting_values.copy(), weights)


@dataclass(frozen=True, eq=False)
class Task:
    """A training task: ``data`` has something to learn and no missing values, and ``valid`` has the same features."""

    measure: Measure
    data: Dataset
    valid: Dataset | None = None
    threads: int | None = None
    bag: int = 0  #: the number of the member of a bag, for draws of its own
    bags: int = 0  #: the number of members, if the model is one of a bag
    start: Scorer | None = None  #: the model to continue from, if any
    constraints: tuple[Constraint, ...] = ()  #: that the model must keep on ``data``, beside ``measure``
    common: dict[str, object] = field(default_factory=dict)  #: objects that all members of a bag share

    def verdict(self, scorer: Scorer) -> Verdict:
        """Return the verdict on a finished scorer."""
        judge: Judge[Scorer] = Judge(self, lambda scorer: partial(scores_of, scorer, self.threads))
        return judge(scorer, 0.0)


@dataclass(frozen=True, eq=False)
class Judge(Generic[It]):
    """A judge of iterates by the scores of a task's documents, and of its validation data if there is any.

    ``score`` returns a function that scores documents by an iterate.

    Validation data selects; without it the measure on the training data does, or the objective's value (``by_objective``).
    """

    task: Task
    score: Callable[[It], Score]
    by_objective: bool = False
    #: Returns the reported measure on the training data, if it is known without scores.
    reported: Callable[[It], float] | None = None

    def __call__(self, iterate: It, objective: float) -> Verdict:
        """Return the verdict on ``iterate``, at which the objective has this value."""
        valid, value = self.task.valid, 0.0
        if valid is not None or self.by_objective:
            value = self.measures[0].mean(self.score(iterate)) if self.reported is None else self.reported(iterate)
            if valid is None:
                return Verdict(value, None, objective)
        _, reported, selecting = self.measures
        (reported_values, selecting_values), _ = values_over([reported, selecting], self.score(iterate))
        if valid is None:
            return Verdict(reported.mean_of(reported_values), None, selecting.mean_of(selecting_values))
        return validation_verdict(value, reported, selecting, reported_values, selecting_values)

    @cached_property
    def measures(self) -> tuple[DatasetMeasure, DatasetMeasure, DatasetMeasure]:
        """The reported measure over the training data; and the reported and the selecting one over the validation data, if any."""
        measure, valid, threads = self.task.measure, self.task.valid, self.task.threads
        training = measure.over(self.task.data, threads=threads)
        reported = training if valid is None else measure.over(valid, threads=threads)
        return training, reported, for_selection(reported.with_ties(worst_tie_order(measure).ties))
