"""Data in several files as one dataset, and some of its queries as another.

The process that asks holds values per query, and no values per document: each part answers where its documents lie. If some of the
queries are selected, for example for a cross-fit, they are cut into new parts where their own wide blocks begin. So all sums over them have
the bits that they would have if these queries were the whole dataset. Workers read their queries from the files.
"""

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from types import NoneType
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_128_hexdigest

from exactrank._support.arguments import check_kind
from exactrank._support.arrays import Boundaries, Ids, PerDocument, PerQuery, starts_of
from exactrank.data.backend import Backend, LocalBackend
from exactrank.data.dataset import Answerer, Change, Concatenated, Dataset, DatasetBase, GlobalFacts, Mask, Part, Question, Weigh
from exactrank.data.levels import NO_LEVELS, Levels
from exactrank.data.precision import Offset
from exactrank.data.ranking_data import RankingData
from exactrank.data.shards import Partition, Piece, ShardFacts, Shards, begins_of, check_alike, concatenate, cut, describe_shard
from exactrank.errors import DataError, IncompatibleError

A = TypeVar("A")
R = TypeVar("R")
Numbers = npt.NDArray[np.int64]
PARTS_PER_WORKER = 2
REWEIGHTED_PARTS = 2  #: that a part keeps, each with other query weights


@dataclass(frozen=True, eq=False)
class ShardedData(DatasetBase):
    """A `Dataset` in several files, with a backend that answers for its parts.

    ``prepare`` changes each partition when it is loaded; the partition then gets the ``global_facts``.
    """

    backend: Backend
    partitions: tuple[Partition, ...]
    facts: tuple[ShardFacts, ...]
    prepare: Change | None = None
    query_weight: PerQuery | None = None
    weigh: Weigh | None = None  #: derives ``query_weight`` from the weights in the files; None if they are the same
    global_facts: GlobalFacts | None = None

    @property
    def feature_names(self) -> tuple[str, ...]:
        return self.facts[0].feature_names

    @property
    def offset(self) -> Offset | None:
        return self.facts[0].offset

    @property
    def levels(self) -> Levels:
        return self.facts[0].levels

    @property
    def n_features(self) -> int:
        return len(self.feature_names)

    @property
    def n_documents(self) -> int:
        return int(self.indptr[-1])

    @cached_property
    def indptr(self) -> Boundaries:
        return starts_of(np.concatenate([file.sizes for file in self.facts]))

    @cached_property
    def qid(self) -> Ids:
        return np.concatenate([file.qid for file in self.facts])

    @property
    def preferences(self) -> range | None:
        """Range of the number of pairs, which lie in the files; None without pairs."""
        counts = [file.pairs for file in self.facts if file.pairs is not None]
        return range(sum(counts)) if counts else None

    @property
    def weighs_documents(self) -> bool:
        return self.facts[0].weighs_documents

    @property
    def has_docid(self) -> bool:
        return self.facts[0].has_docid

    @property
    def checksum(self) -> str:
        """Hash of the hashes of all files."""
        return xxh3_128_hexdigest(self._checksums.encode())

    @property
    def _checksums(self) -> str:
        return " ".join(file.checksum for file in self.facts)

    @cached_property
    def key(self) -> bytes:
        """Key under which workers hold parts of this data: the pickled preparation of its partitions."""
        return pickle.dumps(_Preparation(self.prepare, self.global_facts))

    @property
    def is_local(self) -> bool:
        return False

    @property
    def documents_per_round(self) -> int:
        return self.backend.documents_per_round * self.backend.workers

    def ask(self, question: Question[A, R]) -> R:
        sent: Question[A, R] = question if self.weigh is None else _Reweighted(self.weigh, question)
        return question.combine(self.backend.ask(self, sent))

    def with_memo(self) -> Answerer:
        """Return this data, whose parts have memos where they lie."""
        return self

    def single_part(self) -> None:
        """Return None: the documents are in files, or with workers."""

    def forget(self) -> None:
        """Let the backend release the memory of all parts."""
        self.backend.forget(self)

    def reweigh(self, weigh: Weigh) -> "ShardedData":
        chain = weigh if self.weigh is None else _WeighTwice(self.weigh, weigh)
        return replace(self, query_weight=weigh(0, self.weights), weigh=chain)

    def share_memo(self, base: Dataset, parts: Answerer) -> Answerer | None:
        """Return this data if ``base`` has the same documents, prepared in the same way."""
        shares = isinstance(base, ShardedData) and base.partitions is self.partitions and base.key == self.key
        return self if shares else None

    def select(self, which: Mask) -> "ShardedData":
        """Return the queries that ``which`` selects, in their order, in new partitions."""
        queries, spans = np.flatnonzero(which), list(_spans(self))
        file = replace(self.facts[0], checksum=self._checksums, sizes=self.sizes[queries], qid=self.qid[queries], query_weight=None)
        weights = None if self.query_weight is None else self.query_weight[queries]
        data = replace(self, partitions=(), facts=(file,), query_weight=weights, global_facts=self._global_facts_of(which))
        ends = np.searchsorted(queries, [span.first + span.queries for span in spans])
        limit = -(-data.n_documents // (data.backend.workers * PARTS_PER_WORKER))
        bounds = enumerate(pairwise([*begins_of(data.indptr, ends, limit), len(queries)]))
        return replace(data, partitions=tuple(self._partition(number, queries, *ends, data.indptr, spans) for number, ends in bounds))

    def _partition(self, number: int, queries: Numbers, first: int, last: int, indptr: Boundaries, spans: "Sequence[_Span]") -> Partition:
        """Return a partition of the selected ``queries`` from the one at ``first`` to the one before ``last``."""
        pieces = tuple(piece for span in spans for piece in span.pieces_of(queries[first:last]))
        documents = int(indptr[last] - indptr[first])
        return Partition(number, first, int(indptr[first]), last - first, documents, pieces, self.partitions[0].options)

    def _global_facts_of(self, which: Mask) -> GlobalFacts | None:
        """Return the facts about the queries that ``which`` selects."""
        if self.global_facts is None:
            return None
        grades, pairs = self.grades_and_pairs
        extremes = float(grades[which, 0].min()), float(grades[which, 1].max())
        return GlobalFacts(extremes, int(self.sizes[which].max()), bool(pairs[which].any()), self.global_facts.column)

    @cached_property
    def grades_and_pairs(self) -> tuple[npt.NDArray[np.float64], Mask]:
        facts = self.ask(Concatenated(_grades_and_pairs))
        return facts[:, :2], facts[:, 2] > 0

    def transform(self, change: Change, query_weight: PerQuery | None = None, facts: GlobalFacts | None = None) -> "ShardedData":
        """Return the same queries with these weights; ``change`` is applied to each partition when it is loaded."""
        prepare = change if self.prepare is None else _ChangeTwice(self.prepare, change)
        weights = self.query_weight if query_weight is None else query_weight
        return replace(self, prepare=prepare, query_weight=weights, global_facts=self.global_facts if facts is None else facts)

    def restore_order(self, original: Dataset, scores: PerDocument) -> tuple[RankingData, PerDocument]:
        """Return the judgments and the ``scores`` of this data in the order of the files."""
        judgments = self.judgments()
        data = replace(judgments, y=judgments.ungroup(judgments.y), order=None, query_weight=original.query_weight)
        return data, judgments.ungroup(scores)

    def without_levels(self) -> "ShardedData":
        return replace(self, facts=tuple(replace(file, levels=NO_LEVELS) for file in self.facts))

    def judgments(self) -> RankingData:
        """Return the grades of all documents in this process, without features.

        Documents are in the order in which they are prepared, and ``order`` leads to that of the files.
        """
        y, order = self.ask(Concatenated(_grades_and_places, axis=1))
        none = np.empty((len(y), 0), np.float32)
        return RankingData(none, y, self.indptr, self.qid, (), query_weight=self.query_weight, order=order.astype(np.int64))

    def gather(self) -> RankingData:
        """Return all queries as data in this process, prepared like the partitions."""
        prepare = _Preparation(self.prepare, self.global_facts)
        data = replace(concatenate([prepare(partition.load()) for partition in self.partitions]), global_facts=None)
        return data if self.weigh is None else replace(data, query_weight=self.weights)

    def __repr__(self) -> str:
        return f"ShardedData({self.n_queries:,} queries, {self.n_documents:,} documents, {self.n_features:,} features)"


@dataclass(frozen=True, eq=False)
class _ChangeTwice:
    """Two changes of a partition, one after the other."""

    first: Change
    second: Change

    def __call__(self, data: RankingData) -> RankingData:
        return self.second(self.first(data))


@dataclass(frozen=True, eq=False)
class _Preparation:
    """Preparation of a partition after it is loaded."""

    prepare: Change | None
    global_facts: GlobalFacts | None

    def __call__(self, data: RankingData) -> RankingData:
        data = data if self.prepare is None else self.prepare(data)
        if self.global_facts is None:
            return data
        return replace(data, global_facts=self.global_facts, preferences=data.preferences if self.global_facts.pairs else None)


@dataclass(frozen=True)
class _Reweighted(Generic[A, R]):
    """A question about queries with other weights, which have a memo of their own."""

    weigh: Weigh
    question: Question[A, R]

    def ask(self, part: Part) -> A:
        def reweigh() -> Part:
            weights = self.weigh(part.first, part.data.weights)
            return Part(replace(part.data, query_weight=weights), part.first, part.is_complete, part.first_document)

        return self.question.ask(part.recent("weights", self.weigh, REWEIGHTED_PARTS, reweigh))

    def combine(self, answers: Sequence[A]) -> R:
        return self.question.combine(answers)


@dataclass(frozen=True)
class _WeighTwice:
    """Two changes of weights, one after the other, such as those of a fold in a bag."""

    first: Weigh
    second: Weigh

    def __call__(self, number: int, weights: PerQuery) -> PerQuery:
        return self.second(number, self.first(number, weights))


def _grades_and_pairs(part: Part) -> npt.NDArray[np.float64]:
    y, starts = part.data.y, part.data.indptr[:-1]
    return np.stack([np.minimum.reduceat(y, starts), np.maximum.reduceat(y, starts), part.data.has_pairs], axis=1)


def _grades_and_places(part: Part) -> npt.NDArray[np.float64]:
    data = part.data
    places = np.arange(data.n_documents) if data.order is None else data.order
    return np.stack([data.y, places + part.first_document])


@dataclass(frozen=True)
class _Span:
    """Consecutive queries of one file; ``first`` is the number of the first query in the dataset."""

    piece: Piece
    first: int

    @property
    def queries(self) -> int:
        return self.piece.last - self.piece.first

    def pieces_of(self, queries: Numbers) -> Iterator[Piece]:
        """Yield the piece that holds those of ``queries`` that are in this span, if there are any."""
        places = queries[slice(*np.searchsorted(queries, [self.first, self.first + self.queries]))] - self.first
        if len(places):
            mask = np.zeros(places[-1] + 1 - places[0], np.bool_)
            mask[places - places[0]] = True
            bounds = self.piece.first + int(places[0]), self.piece.first + int(places[-1]) + 1
            yield replace(self.piece, first=bounds[0], last=bounds[1], mask=None if mask.all() else np.packbits(mask).tobytes())


def _spans(data: ShardedData) -> Iterator[_Span]:
    """Yield the consecutive queries of each file in the partitions of ``data``."""
    number, last = 0, None
    for piece in (piece for partition in data.partitions for piece in partition.pieces):
        if last is not None and (last.piece.path, last.piece.last) == (piece.path, piece.first):
            last = replace(last, piece=replace(last.piece, last=piece.last))
        else:
            if last is not None:
                yield last
            last = _Span(piece, number)
        number += piece.last - piece.first
    if last is not None:
        yield last


def open_shards(shards: Shards, backend: Backend | None, limit: int | None = None) -> ShardedData:
    """Return ``shards`` as a dataset; ``backend`` answers for its parts, by default in this process.

    A part has at most ``limit`` documents, by default a worker's share.
    """
    backend = LocalBackend() if backend is None else backend
    if backend.kernels:
        raise IncompatibleError(f"{backend!r} computes on data in one file; er.read one file, or leave out backend")
    facts = tuple(backend.map(_Describe(shards), range(len(shards.files))))
    check_alike(shards, facts)
    documents = sum(int(file.sizes.sum()) for file in facts)
    share = -(-documents // (backend.workers * PARTS_PER_WORKER)) if limit is None else limit
    weights = [file.query_weight for file in facts if file.query_weight is not None]
    return ShardedData(backend, tuple(cut(shards, facts, share)), facts, query_weight=np.concatenate(weights) if weights else None)


def dataset_of(data: RankingData | Shards, backend: Backend | None) -> RankingData | ShardedData:
    """Return ``data`` as a dataset for which ``backend`` answers."""
    check_kind("backend", backend, (Backend, NoneType), "a backend, e.g. er.DaskBackend(client) or er.CudaBackend()")
    return open_shards(data, backend) if isinstance(data, Shards) else with_kernels(data, backend)


def with_kernels(data: RankingData, backend: Backend | None) -> RankingData:
    """Return ``data`` with the kernels of ``backend``, if it has any."""
    return data if backend is None or not backend.kernels else replace(data, kernels=backend.kernels)


def check_scorers(data: RankingData | Shards, **scores: object) -> None:
    """Raise if ``data`` lies in several files and one of ``scores`` cannot be computed by its parts."""
    for name, score in scores.items():
        if isinstance(data, Shards) and not (isinstance(score, str) or callable(score) or hasattr(score, "predict")):
            raise DataError(
                f"with data in several files, {name} must be a model, the name of a feature, or a function of a part of the data"
            )


@dataclass(frozen=True)
class _Describe:
    shards: Shards

    def __call__(self, number: int) -> ShardFacts:
        return describe_shard(self.shards.files[number], self.shards.options)
