"""The queries of training data divided into parts, and what models say of queries that they have not seen.

Which queries have documents of different grades, and so something to teach, is asked once. A model that is trained on some of the parts
sees the largest grade and the longest query of these parts alone.
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


#: With fewer values per thread, waiting for each other takes threads longer than the work.
CELLS_PER_THREAD = 1_000_000


@dataclass(frozen=True, eq=False)
class Division:
    """The ``part`` of each query of ``data``."""

    data: Dataset
    part: Rows

    @property
    def count(self) -> int:
        """How many parts there are."""
        return int(self.part.max()) + 1

    @classmethod
    def of(cls, data: Dataset, parts: int, seed: int) -> "Division":
        """Parts dealt at random; each has queries with documents of different grades, of which there are at least as many."""
        mixed = mixed_queries(data)
        if mixed.sum() < 2:
            raise SettingError(f"cross-fitting needs at least 2 queries with different grades, and the data has {mixed.sum()}; give bags=0")
        return cls(data, deal_parts(mixed, parts, seed))


Unseen = Sequence[tuple[Mask, Scorer]]  #: models, each with queries that it has never seen; together all of them


def cross_fitted(ranker: "Ranker", task: Task, count: int, recorder: Recorder[Scorer]) -> tuple[Trained[Scorer], Unseen]:
    """The mean of models that have each seen all parts of the queries except two, and each with the part that it says more about.

    One of the two parts chooses the model's iterate; the other is scored by the model, which has never seen it. With two parts
    in all, the one that chooses is scored too. Scores have unit deviation within queries if their scale has no meaning.
    """
    data, division = task.data, Division.of(task.data, count, ranker.seed)
    part, parts, unseen = division.part, division.count, dict[int, tuple[Mask, Scorer]]()
    workers = _workers(ranker, task, parts)
    alone = task if workers == 1 else replace(task, threads=thread_count(task.threads) // workers)
    trainer = ranker if workers == 1 else copy(ranker).set_params(threads=alone.threads)

    def member(number: int, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        chooses, scored = part == number, part == (number + (parts > 2)) % parts
        learnt, valid = data.select(~(chooses | scored)), data.select(chooses)
        held_out = valid if ranker.takes.sharded_validation else valid.gather()
        trained = trainer._fit(replace(alone, data=learnt, valid=held_out, bag=number, bags=parts), recorder)
        unseen[number] = scored, comparable(trained.iterate)
        learnt.forget()
        valid.forget()
        return trained

    def comparable(scorer: Scorer) -> Scorer:
        size = deviation_of(data, partial(scores_of, scorer, alone.threads)) if ranker.is_scale_free else 0.0
        return sum_of([scorer], [1 / size]) if size > 0 else scorer

    with running_ahead([partial(member, number) for number in range(parts)], recorder, workers) as members:
        trained = bags(members, task.verdict, recorder, view=comparable)
    return trained, [unseen[number] for number in range(parts)]


def _workers(ranker: "Ranker", task: Task, parts: int) -> int:
    """The number of models that are trained at the same time: one if the kernels of each can use all threads."""
    if not task.data.is_local or not ranker.runs_in_threads:
        return 1
    threads_per_model = 1 + task.data.n_documents * task.data.n_features // CELLS_PER_THREAD
    return max(1, min(parts, thread_count(task.threads) // threads_per_model))


def out_of_fold(data: Dataset, unseen: Unseen, threads: int | None) -> PerDocument:
    """The score of each document by a model that has never seen its query; NaN where there is none yet."""
    return data.ask(Concatenated(partial(_out_of_fold, unseen, threads)))


def _out_of_fold(unseen: Unseen, threads: int | None, part: Part) -> PerDocument:
    data, found = part.data, np.full(part.data.n_documents, np.nan)
    for whole, scorer in unseen:
        which = whole[part.first : part.first + data.n_queries]
        if which.any():
            found[np.repeat(which, data.sizes)] = scorer.score(data.take_queries(which).X, threads)
    return found


def estimated_by_scores(given: TrainingData, oof: PerDocument, measure: Measure, threads: int | None) -> Result:
    """Return the measure as asked by scores ``oof`` of all documents that were learnt from, in the order in which they are prepared.

    Grades are what the measure reads by then, so that its column is not needed.
    """
    judged, scores = given.as_given(oof)
    values = replace(measure, column=None).on(judged, threads=threads).values(scores)
    return Evaluation({str(measure): measure}, values[None], judged.qid, judged.weights, 0)[str(measure)]


def estimated(given: TrainingData, unseen: Unseen, measure: Measure, threads: int | None) -> Result | None:
    """Return the measure as asked by models that have never seen the query; None if a query has no such model yet."""
    if not np.all(np.sum([which for which, _ in unseen], axis=0)):
        return None
    data = given.given_learnt
    values = np.full(data.n_queries, np.nan)
    for which, scorer in unseen:
        part = data.select(which)
        values[which] = measure.over(part, threads=threads).values(partial(filled_scores, scorer, given.fill, threads))
        part.forget()
    return Evaluation({str(measure): measure}, values[None], data.qid, data.weights, 0)[str(measure)]


def filled_scores(scorer: Scorer, fill: PerFeature | None, threads: int | None, data: RankingData) -> PerDocument:
    """The scores of documents as they were given, with ``fill`` in the place of missing values."""
    return scorer.score(fill_missing(data.X, fill, data.offset), threads)
