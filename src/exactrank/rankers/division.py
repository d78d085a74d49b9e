"""Cross-fitting: models of all queries except some parts, and their scores of queries that they have not seen.

A model that is trained on some of the parts sees the largest grade and the longest query of these parts alone.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from exactrank._support.arrays import PerDocument, Rows
from exactrank._support.threads import thread_count
from exactrank.data.dataset import Concatenated, Dataset, Mask, Part
from exactrank.data.ranking_data import RankingData
from exactrank.errors import SettingError
from exactrank.learning.objectives.within_query import deviation_of
from exactrank.learning.training.ahead import running_ahead
from exactrank.learning.training.combinators import bags
from exactrank.learning.training.judge import Task, scores_of
from exactrank.learning.training.progress import Trained
from exactrank.learning.training.run import Recorder
from exactrank.measures.base import Measure
from exactrank.measures.evaluate import Evaluation, Result
from exactrank.models.base import Scorer
from exactrank.models.missing import PerFeature, fill_missing
from exactrank.models.sum import sum_of
from exactrank.rankers.training_data import TrainingData, deal_parts, mixed_queries

if TYPE_CHECKING:
    from exactrank.rankers.base import Ranker


#: With fewer values per thread, threads wait for each other longer than they work.
CELLS_PER_THREAD = 1_000_000


@dataclass(frozen=True, eq=False)
class Division:
    """The division of ``data`` into parts: the ``part`` of each query."""

    data: Dataset
    part: Rows

    @property
    def count(self) -> int:
        """The number of parts."""
        return int(self.part.max()) + 1

    @classmethod
    def of(cls, data: Dataset, parts: int, seed: int) -> "Division":
        """Deal queries into parts at random; each part has queries with documents of different grades, if there are as many."""
        mixed = mixed_queries(data)
        if mixed.sum() < 2:
            raise SettingError(f"cross-fitting needs at least 2 queries with different grades, and the data has {mixed.sum()}; give bags=0")
        return cls(data, deal_parts(mixed, parts, seed))


Unseen = Sequence[tuple[Mask, Scorer]]  #: models, each with queries that it has not seen; together these are all queries


def cross_fit(ranker: "Ranker", task: Task, count: int, recorder: Recorder[Scorer]) -> tuple[Trained[Scorer], Unseen]:
    """Train models on all parts of the queries except two; return their mean, and each model with the part that it scores.

    One of the two parts chooses the model's iterate; the other has no influence on the model, which scores it. If there are only two
    parts, the one that chooses is scored too. Scores have unit deviation within queries if their scale has no meaning.
    """
    data, division = task.data, Division.of(task.data, count, ranker.seed)
    part, parts, unseen = division.part, division.count, dict[int, tuple[Mask, Scorer]]()
    workers = _workers(ranker, task, parts)
    task_of_model = task if workers == 1 else replace(task, threads=thread_count(task.threads) // workers)
    trainer = ranker if workers == 1 else copy(ranker).set_params(threads=task_of_model.threads)

    def member(number: int, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        chooses, scored = part == number, part == (number + (parts > 2)) % parts
        learnt, valid = data.select(~(chooses | scored)), data.select(chooses)
        held_out = valid if ranker.takes.sharded_validation else valid.gather()
        trained = trainer._fit(replace(task_of_model, data=learnt, valid=held_out, bag=number, bags=parts), recorder)
        unseen[number] = scored, comparable(trained.iterate)
        learnt.forget()
        valid.forget()
        return trained

    def comparable(scorer: Scorer) -> Scorer:
        size = deviation_of(data, partial(scores_of, scorer, task_of_model.threads)) if ranker.is_scale_free else 0.0
        return sum_of([scorer], [1 / size]) if size > 0 else scorer

    with running_ahead([partial(member, number) for number in range(parts)], recorder, workers) as members:
        trained = bags(members, task.verdict, recorder, view=comparable)
    return trained, [unseen[number] for number in range(parts)]


def _workers(ranker: "Ranker", task: Task, parts: int) -> int:
    """Return the number of models to train at the same time: one if the kernels of a model can use all threads."""
    if not task.data.is_local or not ranker.runs_in_threads:
        return 1
    threads_per_model = 1 + task.data.n_documents * task.data.n_features // CELLS_PER_THREAD
    return max(1, min(parts, thread_count(task.threads) // threads_per_model))


def out_of_fold(data: Dataset, unseen: Unseen, threads: int | None) -> PerDocument:
    """Return the score of each document by a model that has not seen its query; NaN if there is none yet."""
    return data.ask(Concatenated(partial(_out_of_fold, unseen, threads)))


def _out_of_fold(unseen: Unseen, threads: int | None, part: Part) -> PerDocument:
    data, scores = part.data, np.full(part.data.n_documents, np.nan)
    for mask_of_all, scorer in unseen:
        mask = mask_of_all[part.first : part.first + data.n_queries]
        if mask.any():
            scores[np.repeat(mask, data.sizes)] = scorer.score(data.take_queries(mask).X, threads)
    return scores


def estimate_by_scores(training: TrainingData, oof: PerDocument, measure: Measure, threads: int | None) -> Result:
    """Return the measure of scores ``oof`` of all training documents, which are in the prepared order.

    The grades already come from the measure's column, which is therefore not read again.
    """
    data, scores = training.in_original_order(oof)
    values = replace(measure, column=None).on(data, threads=threads).values(scores)
    return Evaluation({str(measure): measure}, values[None], data.qid, data.weights, 0)[str(measure)]


def estimate_by_models(training: TrainingData, unseen: Unseen, measure: Measure, threads: int | None) -> Result | None:
    """Return the measure by models that have not seen the query; None if a query has no such model yet."""
    if not np.all(np.sum([mask for mask, _ in unseen], axis=0)):
        return None
    data = training.original_joint
    values = np.full(data.n_queries, np.nan)
    for which, scorer in unseen:
        part = data.select(which)
        values[which] = measure.over(part, threads=threads).values(partial(filled_scores, scorer, training.fill, threads))
        part.forget()
    return Evaluation({str(measure): measure}, values[None], data.qid, data.weights, 0)[str(measure)]


def filled_scores(scorer: Scorer, fill: PerFeature | None, threads: int | None, data: RankingData) -> PerDocument:
    """Return the scores of original documents, with ``fill`` instead of missing values."""
    return scorer.score(fill_missing(data.X, fill, data.offset), threads)
