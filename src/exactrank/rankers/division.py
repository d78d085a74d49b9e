"""The queries of training data divided into parts, of one file or of several, and what models say of queries that they have not seen.

Of data in several files the parts are those that one file would have: which queries have documents of different grades, and so something to
teach, is asked once. A model that is trained on some of the parts sees the largest grade and the longest query of these parts alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np
import numpy.typing as npt

from exactrank.arrays import PerDocument, PerQuery, Rows
from exactrank.data.ranking_data import RankingData
from exactrank.data.whole import Whole
from exactrank.engine.engine import Part, Partitioned, fold, scored
from exactrank.engine.selection import Mask, selected
from exactrank.errors import SettingError
from exactrank.measures.base import Measure
from exactrank.measures.evaluate import Evaluation, Result
from exactrank.rankers.partitioned_data import Prepared
from exactrank.rankers.training_data import TrainingData, deal_among, deal_parts, queries_with_pairs
from exactrank.scorers.base import Scorer
from exactrank.scorers.missing import PerFeature, filled


@dataclass(frozen=True, eq=False)
class Division:
    """The ``part`` of each query, and what ``take`` gives of data that some queries are left of."""

    part: Rows
    take: Callable[[Mask], RankingData]

    @property
    def count(self) -> int:
        """How many parts there are."""
        return int(self.part.max()) + 1

    @classmethod
    def of(cls, data: RankingData, parts: int, seed: int) -> "Division":
        """Parts dealt at random; each has queries with documents of different grades, of which there are at least as many."""
        if not isinstance(data, Partitioned):
            return cls(deal_parts(data, parts, seed), data.take_queries)
        facts = fold(data, _by_query)
        grades, pairs = (np.concatenate(each) for each in zip(*facts, strict=True))
        mixed = (grades[:, 0] < grades[:, 1]) | pairs
        if mixed.sum() < 2:
            raise SettingError(f"cross-fitting needs at least 2 queries with different grades, and the data has {mixed.sum()}; give bags=0")
        return cls(deal_among(mixed, parts, seed), partial(_taken, data, grades, pairs))


def _by_query(part: Part) -> tuple[npt.NDArray[np.float64], Mask]:
    """The least and the largest grade of each query; does it have pairs?"""
    y, starts = part.data.y, part.data.indptr[:-1]
    return np.stack([np.minimum.reduceat(y, starts), np.maximum.reduceat(y, starts)], axis=1), queries_with_pairs(part.data)


def _taken(data: Partitioned, grades: npt.NDArray[np.float64], pairs: Mask, which: Mask) -> RankingData:
    """Some queries of ``data``, which know what there is of them together."""
    how, own = cast(Prepared, data.prepare), grades[which]
    extremes = float(own[:, 0].min()), float(own[:, 1].max())
    whole = Whole(extremes, int(data.sizes[which].max()), bool(pairs[which].any()), how.whole.column)
    return cast(RankingData, selected(data, which, replace(how, whole=whole)))


Unseen = Sequence[tuple[Mask, Scorer]]  #: models, each with queries that it has never seen; together all of them


def out_of_fold(data: RankingData, unseen: Unseen, threads: int | None) -> PerDocument:
    """The score of each document by a model that has never seen its query; NaN where there is none yet."""
    return np.concatenate(fold(data, partial(_out_of_fold, unseen, threads)))


def _out_of_fold(unseen: Unseen, threads: int | None, part: Part) -> PerDocument:
    data, found = part.data, np.full(part.data.n_documents, np.nan)
    for whole, scorer in unseen:
        which = whole[part.first : part.first + data.n_queries]
        if which.any():
            found[np.repeat(which, data.sizes)] = scorer.score(data.take_queries(which).X, threads)
    return found


def judgments(data: RankingData) -> RankingData:
    """``data`` itself, or of data in partitions the grades of all documents in this process, without features.

    Documents are in the order in which they are prepared, and ``order`` leads to that of the files.
    """
    if not isinstance(data, Partitioned):
        return data
    y, order = (np.concatenate(each) for each in zip(*fold(data, _grades_and_places), strict=True))
    none = np.empty((len(y), 0), np.float32)
    return RankingData(none, y, data.indptr, data.qid, (), query_weight=data.query_weight, order=order)


def _grades_and_places(part: Part) -> tuple[PerDocument, Rows]:
    data = part.data
    places = np.arange(data.n_documents) if data.order is None else data.order
    return data.y, places + part.first_document


def estimated_by_scores(given: TrainingData, oof: PerDocument, measure: Measure, threads: int | None) -> Result:
    """The measure of data in partitions by scores of all documents, in the order in which they are prepared."""
    judged = judgments(given.data)
    as_given = replace(judged, y=judged.ungrouped(judged.y), order=None, query_weight=given.given.query_weight)
    values = replace(measure, column=None).on(as_given, threads=threads).values(judged.ungrouped(oof))
    return Evaluation({str(measure): measure}, values[None], as_given.qid, as_given.weights, 0)[str(measure)]


def estimated(given: TrainingData, unseen: Unseen, measure: Measure, threads: int | None) -> Result | None:
    """The measure of data in partitions by models that have never seen the query; None where a query has no such model yet."""
    data, values = cast(Partitioned, given.given), np.full(given.given.n_queries, np.nan)
    if not np.all(np.sum([which for which, _ in unseen], axis=0)):
        return None
    for which, scorer in unseen:
        own = selected(data, which, data.prepare)
        values[which] = _values(cast(RankingData, own), measure, scorer, given.fill, threads)
        own.engine.forget(own)
    name = str(measure)
    return Evaluation({name: measure}, values[None], data.qid, data.weights, 0)[name]


def _values(data: RankingData, measure: Measure, scorer: Scorer, fill: PerFeature | None, threads: int | None) -> PerQuery:
    return measure.on(data, threads=threads).values(scored(data, partial(filled_scores, scorer, fill, threads)))


def filled_scores(scorer: Scorer, fill: PerFeature | None, threads: int | None, data: RankingData) -> PerDocument:
    """The scores of documents as they were given, with ``fill`` in the place of missing values."""
    return scorer.score(filled(data.X, fill, data.offset), threads)
