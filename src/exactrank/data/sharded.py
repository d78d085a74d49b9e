"""Data in several files as one dataset, and some of its queries as another.

The process that asks knows what there is one of per query, and nothing of the documents: each part answers for its own, where it lies.
Some of the queries, for example those of a cross-fit, are cut into parts anew, where their wide blocks begin: so all sums over them have
the bits that they would have if these queries were all there is. A worker reads the queries that it holds from their files, as always.
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
from exactrank._support.arrays import Boundaries, Ids, PerDocument, PerQuery
from exactrank.data.backend import Backend, LocalBackend
from exactrank.data.blocks import wide_blocks
from exactrank.data.dataset import Answerer, Change, Concatenated, Dataset, EachBlock, GlobalFacts, Mask, Moments, Part, Question, Weigh
from exactrank.data.levels import NO_LEVELS, Levels
from exactrank.data.precision import Offset
from exactrank.data.ranking_data import RankingData, moments_of, sums_by_block
from exactrank.data.shards import Partition, Piece, ShardFacts, Shards, begins_of, check_alike, concatenate, cut, describe_shard
from exactrank.errors import DataError, IncompatibleError

A = TypeVar("A")
R = TypeVar("R")
Numbers = npt.NDArray[np.int64]
PARTS_PER_WORKER = 2
WEIGHED = 2  #: of the same queries by other weights that a part keeps


@dataclass(frozen=True, eq=False)
class ShardedData:
    """A dataset in several files, with a backend that answers for its parts; a `Dataset`.

    ``prepare`` changes each partition when it is loaded; the partition then gets the ``global_facts``.
    """

    backend: Backend
    partitions: tuple[Partition, ...]
    facts: tuple[ShardFacts, ...]
    prepare: Change | None = None
    query_weight: PerQuery | None = None
    weigh: Weigh | None = None  #: what makes ``query_weight`` of the weights in the files, where it is not those
    global_facts: GlobalFacts | None = None

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features."""
        return self.facts[0].feature_names

    @property
    def offset(self) -> Offset | None:
        """From which features are kept as differences."""
        return self.facts[0].offset

    @property
    def levels(self) -> Levels:
        """The texts that the codes of features stand for, where these are categories."""
        return self.facts[0].levels

    @property
    def n_features(self) -> int:
        """How many features a document has."""
        return len(self.feature_names)

    @property
    def n_queries(self) -> int:
        """How many queries there are."""
        return len(self.sizes)

    @property
    def n_documents(self) -> int:
        """How many documents there are."""
        return int(self.indptr[-1])

    @cached_property
    def sizes(self) -> npt.NDArray[np.int64]:
        """How many documents each query has."""
        return np.concatenate([file.sizes for file in self.facts])

    @cached_property
    def indptr(self) -> Boundaries:
        """Where the documents of each query begin."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    @property
    def longest(self) -> int:
        """How many documents the query with the most has."""
        return int(self.sizes.max())

    @cached_property
    def qid(self) -> Ids:
        """The ids of the queries."""
        return np.concatenate([file.qid for file in self.facts])

    @cached_property
    def weights(self) -> PerQuery:
        """The weight of each query; ones if none were given."""
        return np.ones(self.n_queries) if self.query_weight is None else self.query_weight

    @property
    def preferences(self) -> range | None:
        """Numbers of the pairs of documents beside the grades, which lie in the files; None where there are none."""
        counts = [file.pairs for file in self.facts if file.pairs is not None]
        return range(sum(counts)) if counts else None

    @property
    def weighs_documents(self) -> bool:
        """Do documents have weights of their own?"""
        return self.facts[0].weighs_documents

    @property
    def has_docid(self) -> bool:
        """Do documents have ids?"""
        return self.facts[0].has_docid

    @property
    def checksum(self) -> str:
        """A hash of the hashes of all files."""
        return xxh3_128_hexdigest(self._checksums.encode())

    @property
    def _checksums(self) -> str:
        return " ".join(file.checksum for file in self.facts)

    @cached_property
    def key(self) -> bytes:
        """What workers know the data by: how its partitions are prepared."""
        return pickle.dumps(_Loaded(self.prepare, self.global_facts))

    @cached_property
    def moments(self) -> Moments:
        """The mean and the standard deviation of each feature, as a `RankingData` has them."""
        unit = None if self.query_weight is None else float(np.repeat(self.query_weight, self.sizes).mean())
        mean = np.sum(self.ask(EachBlock(_Sums(unit, None))), axis=0) / self.n_documents
        return moments_of(mean, np.sum(self.ask(EachBlock(_Sums(unit, mean))), axis=0) / self.n_documents)

    @property
    def is_local(self) -> bool:
        """The documents are in files, or with workers."""
        return False

    @property
    def documents_per_round(self) -> int:
        """A question takes as long as work on this number of documents, whatever is asked."""
        return self.backend.documents_per_round * self.backend.workers

    def ask(self, question: Question[A, R]) -> R:
        """Return what the answers of all parts add up to."""
        asked: Question[A, R] = question if self.weigh is None else _OtherWeights(self.weigh, question)
        return question.combine(self.backend.ask(self, asked))

    def with_memo(self) -> Answerer:
        """Return itself: parts remember what they compute, where they lie."""
        return self

    def single_part(self) -> None:
        """The documents are in files, or with workers."""

    def forget(self) -> None:
        """Let the backend give back the memory of all parts."""
        self.backend.forget(self)

    def reweigh(self, weigh: Weigh) -> "ShardedData":
        """Return the same queries with the weights that ``weigh`` makes of theirs."""
        both = weigh if self.weigh is None else _Twice(self.weigh, weigh)
        return replace(self, query_weight=weigh(0, self.weights), weigh=both)

    def share_memo(self, other: Dataset, parts: Answerer) -> Answerer | None:
        """Return itself, if the ``other`` data has the same documents, prepared alike."""
        same = isinstance(other, ShardedData) and other.partitions is self.partitions and other.key == self.key
        return self if same else None

    def select(self, which: Mask) -> "ShardedData":
        """Return the queries for which ``which`` holds, in their order, in partitions of their own."""
        chosen, spans = np.flatnonzero(which), list(_spans(self))
        file = replace(self.facts[0], checksum=self._checksums, sizes=self.sizes[chosen], qid=self.qid[chosen], query_weight=None)
        weights = None if self.query_weight is None else self.query_weight[chosen]
        data = replace(self, partitions=(), facts=(file,), query_weight=weights, global_facts=self._global_facts_of(which))
        ends = np.searchsorted(chosen, [span.first + span.queries for span in spans])
        most = -(-data.n_documents // (data.backend.workers * PARTS_PER_WORKER))
        begins = [*begins_of(data.indptr, ends, most), len(chosen)]
        bounds = enumerate(pairwise(begins))
        return replace(data, partitions=tuple(self._partition(number, chosen, *ends, data.indptr, spans) for number, ends in bounds))

    def _partition(self, number: int, chosen: Numbers, first: int, last: int, indptr: Boundaries, spans: "Sequence[_Span]") -> Partition:
        """The queries ``first`` to ``last`` of those that are ``chosen``."""
        pieces = tuple(piece for span in spans for piece in span.holding(chosen[first:last]))
        documents = int(indptr[last] - indptr[first])
        return Partition(number, first, int(indptr[first]), last - first, documents, pieces, self.partitions[0].options)

    def _global_facts_of(self, which: Mask) -> GlobalFacts | None:
        """What parts of some of the queries have to know of these."""
        if self.global_facts is None:
            return None
        grades, pairs = self.grades_and_pairs
        extremes = float(grades[which, 0].min()), float(grades[which, 1].max())
        return GlobalFacts(extremes, int(self.sizes[which].max()), bool(pairs[which].any()), self.global_facts.column)

    @cached_property
    def grades_and_pairs(self) -> tuple[npt.NDArray[np.float64], Mask]:
        """The least and the largest grade of each query; does it have pairs beside the grades?"""
        facts = self.ask(Concatenated(_grades_and_pairs))
        return facts[:, :2], facts[:, 2] > 0

    def transform(self, change: Change, query_weight: PerQuery | None = None, facts: GlobalFacts | None = None) -> "ShardedData":
        """Return the same queries, to each partition of which ``change`` is done when it is loaded, with these weights."""
        both = change if self.prepare is None else _Then(self.prepare, change)
        weights = self.query_weight if query_weight is None else query_weight
        return replace(self, prepare=both, query_weight=weights, global_facts=self.global_facts if facts is None else facts)

    def restore_order(self, given: Dataset, scores: PerDocument) -> tuple[RankingData, PerDocument]:
        """Return the judgments of this data, and ``scores`` of its documents, in the order of the files."""
        judged = self.judgments()
        data = replace(judged, y=judged.ungroup(judged.y), order=None, query_weight=given.query_weight)
        return data, judged.ungroup(scores)

    def without_levels(self) -> "ShardedData":
        """Return the same data, whose codes of categories count as numbers."""
        return replace(self, facts=tuple(replace(file, levels=NO_LEVELS) for file in self.facts))

    def judgments(self) -> RankingData:
        """Return the grades of all documents in this process, without features.

        Documents are in the order in which they are prepared, and ``order`` leads to that of the files.
        """
        y, order = self.ask(Concatenated(_grades_and_places, axis=1))
        none = np.empty((len(y), 0), np.float32)
        return RankingData(none, y, self.indptr, self.qid, (), query_weight=self.query_weight, order=order.astype(np.int64))

    def gather(self) -> RankingData:
        """Return all queries in this process, prepared as the partitions are."""
        prepare = _Loaded(self.prepare, self.global_facts)
        data = replace(concatenate([prepare(partition.load()) for partition in self.partitions]), global_facts=None)
        return data if self.weigh is None else replace(data, query_weight=self.weights)

    def __repr__(self) -> str:
        return f"ShardedData({self.n_queries:,} queries, {self.n_documents:,} documents, {self.n_features:,} features)"


@dataclass(frozen=True, eq=False)
class _Then:
    """What ``second`` makes of what ``first`` makes of a partition."""

    first: Change
    second: Change

    def __call__(self, data: RankingData) -> RankingData:
        return self.second(self.first(data))


@dataclass(frozen=True, eq=False)
class _Loaded:
    """What a partition is once it is loaded and prepared."""

    prepare: Change | None
    global_facts: GlobalFacts | None

    def __call__(self, data: RankingData) -> RankingData:
        data = data if self.prepare is None else self.prepare(data)
        return (
            data
            if self.global_facts is None
            else replace(data, global_facts=self.global_facts, preferences=data.preferences if self.global_facts.pairs else None)
        )


@dataclass(frozen=True)
class _OtherWeights(Generic[A, R]):
    """A question about queries with other weights; what it computes once is remembered apart."""

    weigh: Weigh
    question: Question[A, R]

    def ask(self, part: Part) -> A:
        def weighed() -> Part:
            weights = self.weigh(part.first, part.data.weights)
            return Part(replace(part.data, query_weight=weights), part.first, part.is_complete, part.first_document)

        return self.question.ask(part.recent("weights", self.weigh, WEIGHED, weighed))

    def combine(self, answers: Sequence[A]) -> R:
        return self.question.combine(answers)


@dataclass(frozen=True)
class _Twice:
    """Weights of a fold in a bag, for example: what ``then`` makes of those that ``first`` makes."""

    first: Weigh
    then: Weigh

    def __call__(self, number: int, weights: PerQuery) -> PerQuery:
        return self.then(number, self.first(number, weights))


@dataclass(frozen=True)
class _Sums:
    """Sums of features by wide blocks, weighted by documents' shares: the weights of their queries over ``unit``."""

    unit: float | None
    mean: npt.NDArray[np.float64] | None

    def __call__(self, part: Part) -> list[npt.NDArray[np.float64]]:
        data = part.data
        share = None if self.unit is None else np.repeat(data.weights, data.sizes) / self.unit
        return sums_by_block(data.X, share, data.indptr[wide_blocks(data.indptr)], self.mean)


def _grades_and_pairs(part: Part) -> npt.NDArray[np.float64]:
    y, starts = part.data.y, part.data.indptr[:-1]
    return np.stack([np.minimum.reduceat(y, starts), np.maximum.reduceat(y, starts), part.data.has_pairs], axis=1)


def _grades_and_places(part: Part) -> npt.NDArray[np.float64]:
    data = part.data
    places = np.arange(data.n_documents) if data.order is None else data.order
    return np.stack([data.y, places + part.first_document])


@dataclass(frozen=True)
class _Span:
    """Queries of one file that follow each other, of which the first has the number ``first`` in the whole."""

    piece: Piece
    first: int

    @property
    def queries(self) -> int:
        return self.piece.last - self.piece.first

    def holding(self, numbers: Numbers) -> Iterator[Piece]:
        """The piece with those of ``numbers`` that lie here, where there are any."""
        here = numbers[slice(*np.searchsorted(numbers, [self.first, self.first + self.queries]))] - self.first
        if len(here):
            mask = np.zeros(here[-1] + 1 - here[0], np.bool_)
            mask[here - here[0]] = True
            bounds = self.piece.first + int(here[0]), self.piece.first + int(here[-1]) + 1
            yield replace(self.piece, first=bounds[0], last=bounds[1], chosen=None if mask.all() else np.packbits(mask).tobytes())


def _spans(data: ShardedData) -> Iterator[_Span]:
    """Yield what the partitions of ``data`` hold of each file."""
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


def open_shards(shards: Shards, backend: Backend | None, most: int | None = None) -> ShardedData:
    """Return ``shards`` with the ``backend`` that answers for them, by default this process.

    A part has at most ``most`` documents, by default a worker's share.
    """
    backend = LocalBackend() if backend is None else backend
    if backend.kernels:
        raise IncompatibleError(f"{backend!r} computes on data in one file; er.read one file, or leave out backend")
    described = tuple(backend.map(_Describe(shards), range(len(shards.files))))
    check_alike(shards, described)
    documents = sum(int(file.sizes.sum()) for file in described)
    share = -(-documents // (backend.workers * PARTS_PER_WORKER)) if most is None else most
    weights = [file.query_weight for file in described if file.query_weight is not None]
    return ShardedData(backend, tuple(cut(shards, described, share)), described, query_weight=np.concatenate(weights) if weights else None)


def dataset_of(data: RankingData | Shards, backend: Backend | None) -> RankingData | ShardedData:
    """Return data that a caller gave as a dataset, for which the ``backend`` answers."""
    check_kind("backend", backend, (Backend, NoneType), "a backend, e.g. er.DaskBackend(client) or er.CudaBackend()")
    return open_shards(data, backend) if isinstance(data, Shards) else with_kernels(data, backend)


def with_kernels(data: RankingData, backend: Backend | None) -> RankingData:
    """Return ``data`` for which the kernels of ``backend`` compute, if it has any."""
    return data if backend is None or not backend.kernels else replace(data, kernels=backend.kernels)


def check_scorers(data: RankingData | Shards, **scores: object) -> None:
    """Raise if ``data`` lies in several files, and one of ``scores`` is not something that its parts can compute."""
    for name, score in scores.items():
        if isinstance(data, Shards) and not (isinstance(score, str) or callable(score) or hasattr(score, "predict")):
            raise DataError(f"of data in several files, {name} must be a model, the name of a feature, or a function of a part of the data")


@dataclass(frozen=True)
class _Describe:
    shards: Shards

    def __call__(self, number: int) -> ShardFacts:
        return describe_shard(self.shards.files[number], self.shards.options)
