"""The task of a ranker, and the judge: what is reported of an iterate, and what selects the one to keep.

The measure is reported as asked. For selection, tied documents count in their worst order (`exactrank.measures.ties`), and grades that
are exponents are bounded, as in the forces that training follows (`exactrank.learning.objectives.bounded_gain`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Generic, cast

from exactrank._support.arrays import PerDocument, PerQuery
from exactrank.data.dataset import Dataset, Score
from exactrank.data.ranking_data import RankingData
from exactrank.learning.objectives.bounded_gain import selecting
from exactrank.learning.training.progress import It, Verdict
from exactrank.measures.base import Measure
from exactrank.measures.bound import BoundMeasure, DatasetMeasure, values_over
from exactrank.measures.goal import Constraint
from exactrank.measures.ties import worst_tie_order
from exactrank.models.base import Scorer


def scores_of(scorer: Scorer, threads: int | None, data: RankingData) -> PerDocument:
    """Return the score of each document."""
    return scorer.score(data.X, threads)


def unheard(iterate: object, objective: float) -> Verdict:
    """The judge of runs whose steps are not reported: only the objective counts."""
    return Verdict(objective, None, objective)


def validated(value: float, asked: DatasetMeasure, selects: DatasetMeasure, score: Score) -> Verdict:
    """Return the verdict by the scores of validation data, over which the measure is as asked and as it selects."""
    (of_asked, of_selects), _ = values_over([asked, selects], score)
    return verdict_of(value, asked, selects, of_asked, of_selects)


def verdict_of(
    value: float,
    asked: DatasetMeasure | BoundMeasure,
    selects: DatasetMeasure | BoundMeasure,
    of_asked: PerQuery,
    of_selects: PerQuery,
) -> Verdict:
    """Return the verdict by the values that validation queries have of both measures."""
    weights = None if selects.data.query_weight is None else selects.weights
    return Verdict(value, asked.mean_of(of_asked), selects.mean_of(of_selects), of_selects.copy(), weights)


@dataclass(frozen=True, eq=False)
class Task:
    """Train on ``data``, which has something to learn and no missing values, for ``measure``; ``valid`` has the same features."""

    measure: Measure
    data: Dataset
    valid: Dataset | None = None
    threads: int | None = None
    bag: int = 0  #: the number of the member of a bag, for draws of its own
    bags: int = 0  #: how many members there are, where the model is one of a bag
    start: Scorer | None = None  #: the model to go on from, where one was given
    constraints: tuple[Constraint, ...] = ()  #: that the model must keep on ``data``, beside ``measure``
    common: dict[str, object] = field(default_factory=dict)  #: what is made once for all members of a bag

    def verdict(self, scorer: Scorer) -> Verdict:
        """What is reported of a finished scorer."""
        judge: Judge[Scorer] = Judge(self, lambda scorer: partial(scores_of, scorer, self.threads))
        return judge(scorer, 0.0)


@dataclass(frozen=True, eq=False)
class Judge(Generic[It]):
    """Judges iterates by the scores that they give the documents of a task's data and, if there is any, of its validation data.

    ``score`` returns what scores documents by an iterate.

    Validation data selects; without it the measure on the training data does, or the objective's value (``by_objective``).
    """

    task: Task
    score: Callable[[It], Score]
    by_objective: bool = False
    #: Knows the measure as asked on the training data without scores.
    reported: Callable[[It], float] | None = None

    def __call__(self, iterate: It, objective: float) -> Verdict:
        """What to say of ``iterate``, at which the objective is as given."""
        valid, value = self.task.valid, 0.0
        if valid is not None or self.by_objective:
            value = self.measures[0].mean(self.score(iterate)) if self.reported is None else self.reported(iterate)
            if valid is None:
                return Verdict(value, None, objective)
        _, asked, selects = self.measures
        verdict = validated(value, asked, selects, self.score(iterate))
        return verdict if valid is not None else Verdict(cast(float, verdict.valid), None, verdict.goodness)

    @cached_property
    def measures(self) -> tuple[DatasetMeasure, DatasetMeasure, DatasetMeasure]:
        """The measure as asked over the training data; as asked and as it selects over the validation data or, without it, those too."""
        measure, valid, threads = self.task.measure, self.task.valid, self.task.threads
        trained = measure.over(self.task.data, threads=threads)
        asked = trained if valid is None else measure.over(valid, threads=threads)
        return trained, asked, selecting(asked.with_ties(worst_tie_order(measure).ties))
