"""What an engine is: it answers a question for each partition of some data, where the partition lies.

    answers = engine.ask(data, question),    one per partition, in the order of the partitions                  (1)

A question is a picklable function of a `Part`, the queries of one partition on the machine that answers for it. Whoever asks adds the
answers up in that order, so no result depends on who answered, when, or how often it had to be asked again. `fold` asks data of either
kind: a `RankingData` is one part, in this process.
"""

import pickle
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock
from typing import Any, ClassVar, Generic, TypeVar, cast

import cloudpickle
import numpy as np
import numpy.typing as npt

from exactrank.arrays import Boundaries, Ids, PerDocument, PerQuery
from exactrank.data.blocks import wide_blocks
from exactrank.data.levels import Levels
from exactrank.data.precision import Offset
from exactrank.data.ranking_data import Moments, RankingData, moments_of, sums_by_block
from exactrank.engine.allocation import keep_freed_memory
from exactrank.engine.partitions import Described, Partition, Shards, check_alike, cut, describe_shard

A = TypeVar("A")
B = TypeVar("B")
Prepare = Callable[[RankingData], RankingData]  #: what is done to a partition once it is loaded
#: Partitions are forgotten that nobody has asked about for this number of seconds.
FORGOTTEN_AFTER = 3600.0
PARTITIONS_PER_WORKER = 2
WEIGHED = 2  #: of the same queries by other weights that a part keeps


@dataclass(eq=False)
class Part:
    """The queries of a partition, of which the first has the number ``first`` in the whole; ``kept`` is for what questions make once."""

    data: RankingData
    first: int = 0
    whole: bool = True  #: is it all there is?
    first_document: int = 0  #: the number of its first document in the whole
    kept: dict[object, Any] = field(default_factory=dict)

    def once(self, key: object, make: Callable[[], B]) -> B:
        """What ``make`` gave when it was first asked for under ``key``."""
        if key not in self.kept:
            self.kept[key] = make()
        return self.kept[key]  # type: ignore[no-any-return]

    def lately(self, kind: str, key: object, most: int, make: Callable[[], B]) -> B:
        """The same, of which only the ``most`` of a kind that were last asked for are kept."""
        kept: dict[object, B] = self.once(("lately", kind), dict)
        kept[key] = kept.pop(key) if key in kept else make()
        while len(kept) > most:
            del kept[next(iter(kept))]
        return kept[key]


Question = Callable[[Part], A]


class Engine(ABC):
    """Who answers for data in several files."""

    documents_per_round: ClassVar[int] = 0  #: a question takes a worker as long as work on this number of documents, whatever is asked

    @property
    @abstractmethod
    def workers(self) -> int:
        """How many may answer at the same time."""

    @property
    @abstractmethod
    def told(self) -> str:
        """What a line of progress says of it."""

    @abstractmethod
    def map(self, function: Callable[[B], A], items: Sequence[B]) -> list[A]:
        """``function`` of each of ``items``, in their order."""

    @abstractmethod
    def ask(self, data: "Partitioned", question: Question[A]) -> list[A]:
        """(1)."""

    @abstractmethod
    def forget(self, data: "Partitioned") -> None:
        """Nobody will ask about ``data`` any more."""


@dataclass(frozen=True, eq=False)
class Partitioned:
    """Data in several files with an engine that answers for it: what there is one of per query, and nothing of its documents.

    It has the names of a `RankingData` for what both know. ``prepare`` is done to each partition when it is loaded.
    """

    engine: Engine
    partitions: tuple[Partition, ...]
    described: tuple[Described, ...]
    prepare: Prepare | None = None
    query_weight: PerQuery | None = None
    weigh: "Weigh | None" = None  #: what makes ``query_weight`` of the weights in the files, where it is not those

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features' names."""
        return self.described[0].feature_names

    @property
    def offset(self) -> Offset | None:
        """From which features are kept as differences."""
        return self.described[0].offset

    @property
    def levels(self) -> Levels:
        """Of features that are categories."""
        return self.described[0].levels

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
        return np.concatenate([each.sizes for each in self.described])

    @cached_property
    def indptr(self) -> Boundaries:
        """Where each query's documents begin."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    @property
    def longest(self) -> int:
        """How many documents the query with the most has."""
        return int(self.sizes.max())

    @cached_property
    def qid(self) -> Ids:
        """The queries' ids."""
        return np.concatenate([each.qid for each in self.described])

    @cached_property
    def weights(self) -> PerQuery:
        """The weight of each query, or ones if none was given."""
        return np.ones(self.n_queries) if self.query_weight is None else self.query_weight

    @property
    def checksum(self) -> str:
        """Of all files, to tell whether a model saw this data or other."""
        return " ".join(each.checksum for each in self.described)

    @cached_property
    def key(self) -> bytes:
        """What workers know it by, with how it is prepared."""
        return pickle.dumps(self.prepare)

    @property
    def preferences(self) -> Sized | None:
        """As many pairs of documents as there are beside the grades, which lie in the files."""
        counts = [each.pairs for each in self.described if each.pairs is not None]
        return range(sum(counts)) if counts else None

    @property
    def sample_weight(self) -> None:
        """Nothing here weighs documents."""
        return None

    @cached_property
    def moments(self) -> Moments:
        """The mean and the standard deviation of each feature, as a `RankingData` has them."""
        unit = None if self.query_weight is None else float(np.repeat(self.query_weight, self.sizes).mean())
        mean = np.sum([block for answer in self.ask(_Sums(unit, None)) for block in answer], axis=0) / self.n_documents
        squares = np.sum([block for answer in self.ask(_Sums(unit, mean)) for block in answer], axis=0)
        return moments_of(mean, squares / self.n_documents)

    def ask(self, question: Question[A]) -> list[A]:
        """What each partition answers, in order."""
        return self.engine.ask(self, question if self.weigh is None else _OtherWeights(self.weigh, question))

    def __repr__(self) -> str:
        return f"Partitioned({self.n_queries:,} queries, {self.n_documents:,} documents, {self.n_features:,} features)"


Data = RankingData | Partitioned
#: Other weights of some queries, from the number of the first in the whole and their weights.
Weigh = Callable[[int, PerQuery], PerQuery]


@dataclass(frozen=True)
class _OtherWeights(Generic[A]):
    """A question about queries with other weights; what is kept for it is kept apart."""

    weigh: Weigh
    question: Question[A]

    def __call__(self, part: Part) -> A:
        def weighed() -> Part:
            weights = self.weigh(part.first, part.data.weights)
            return Part(replace(part.data, query_weight=weights), part.first, part.whole, part.first_document)

        return self.question(part.lately("weights", self.weigh, WEIGHED, weighed))


def reweighed(data: RankingData, weigh: Weigh) -> RankingData:
    """``data`` with the weights of queries that ``weigh``, which can be compared and pickled, makes of its own."""
    weights = weigh(0, data.weights)
    if isinstance(data, Partitioned):
        return cast(RankingData, replace(data, query_weight=weights, weigh=weigh if data.weigh is None else _Twice(data.weigh, weigh)))
    return replace(data, query_weight=weights)


@dataclass(frozen=True)
class _Twice:
    """Weights of a fold in a bag, for example: what ``then`` makes of those that ``first`` makes."""

    first: Weigh
    then: Weigh

    def __call__(self, number: int, own: PerQuery) -> PerQuery:
        return self.then(number, self.first(number, own))


@dataclass(frozen=True)
class _Sums:
    """Sums of features by wide blocks, weighted by documents' shares: the weights of their queries over ``unit``."""

    unit: float | None
    mean: npt.NDArray[np.float64] | None

    def __call__(self, part: Part) -> list[npt.NDArray[np.float64]]:
        data = part.data
        share = None if self.unit is None else np.repeat(data.weights, data.sizes) / self.unit
        return sums_by_block(data.X, share, data.indptr[wide_blocks(data.indptr)], self.mean)


@dataclass(frozen=True, eq=False)
class Scored:
    """The scores of the documents of ``data``, as each partition makes them of its own."""

    data: Partitioned
    score: Callable[[RankingData], PerDocument]


def scored(data: RankingData, score: Callable[[RankingData], PerDocument]) -> PerDocument:
    """What ``score`` gives the documents of ``data``, or of data in partitions how it is made; measures take either."""
    return cast(PerDocument, Scored(data, score)) if isinstance(data, Partitioned) else score(data)


def in_parts(data: RankingData) -> "Part | Partitioned":
    """``data`` to be asked several times: what is in partitions, or else the one part that it is."""
    return data if isinstance(data, Partitioned) else Part(data)


def fold(data: "Data | Part", question: Question[A]) -> list[A]:
    """The answers of each part of ``data``: of all partitions, or of the one part that a `RankingData` is."""
    if isinstance(data, Partitioned):
        return data.ask(question)
    return [question(data if isinstance(data, Part) else Part(data))]


def forget(*data: object) -> None:
    """Let engines forget those of ``data`` that are in partitions."""
    for each in data:
        if isinstance(each, Partitioned):
            each.engine.forget(each)


def partitioned(shards: Shards, engine: Engine, most: int | None = None) -> Partitioned:
    """``shards`` with the ``engine`` that answers for them; a partition has at most ``most`` documents, by default a worker's share."""
    described = tuple(engine.map(_Describe(shards), range(len(shards.files))))
    check_alike(shards, described)
    documents = sum(int(each.sizes.sum()) for each in described)
    share = -(-documents // (engine.workers * PARTITIONS_PER_WORKER)) if most is None else most
    weights = [each.query_weight for each in described if each.query_weight is not None]
    return Partitioned(engine, tuple(cut(shards, described, share)), described, query_weight=np.concatenate(weights) if weights else None)


@dataclass(frozen=True)
class _Describe:
    shards: Shards

    def __call__(self, number: int) -> Described:
        return describe_shard(self.shards.files[number], self.shards.options)


@dataclass(frozen=True)
class Round:
    """What a worker is asked: the question for some partitions."""

    prepare: bytes
    partitions: tuple[Partition, ...]
    question: bytes


def answered(asked: Round) -> bytes:
    """The answers of the partitions of ``asked``, each with the partition's number."""
    keep_freed_memory()
    question = pickle.loads(asked.question)
    answers = []
    for partition in asked.partitions:
        with held(partition, asked.prepare) as part:
            answers.append((partition.number, question(part)))
    packed: bytes = cloudpickle.dumps(answers)
    return packed


class _Holder:
    """A partition that this process holds, for one who asks at a time."""

    def __init__(self) -> None:
        self.lock, self.used = Lock(), time.monotonic()
        self.part: Part | None = None


_held: dict[tuple[Partition, bytes], _Holder] = {}
_registry = Lock()


@contextmanager
def held(partition: Partition, prepare: bytes) -> Iterator[Part]:
    """The part that this process holds, loaded where it is not there yet; what nobody has used for long is forgotten."""
    key, now = (partition, prepare), time.monotonic()
    with _registry:
        for other in [other for other, holder in _held.items() if now - holder.used > FORGOTTEN_AFTER]:
            del _held[other]
        holder = _held.setdefault(key, _Holder())
        holder.used = now
    with holder.lock:
        if holder.part is None:
            data, how = partition.load(), pickle.loads(prepare)
            holder.part = Part(data if how is None else how(data), partition.first, False, partition.first_document)
        yield holder.part


def forgotten(keys: Sequence[tuple[Partition, bytes]]) -> None:
    """Forget these partitions."""
    with _registry:
        for key in keys:
            _held.pop(key, None)


class LocalEngine(Engine):
    """The engine of this process: partitions one after the other, each with the threads that the question asks for."""

    @property
    def workers(self) -> int:
        """This process alone."""
        return 1

    @property
    def told(self) -> str:
        """There is nothing to say of it."""
        return "this process"

    def map(self, function: Callable[[B], A], items: Sequence[B]) -> list[A]:
        """One after the other."""
        return [function(item) for item in items]

    def ask(self, data: Partitioned, question: Question[A]) -> list[A]:
        """One partition after the other."""
        answers = []
        for partition in data.partitions:
            with held(partition, data.key) as part:
                answers.append(question(part))
        return answers

    def forget(self, data: Partitioned) -> None:
        """Give back the memory."""
        forgotten([(partition, data.key) for partition in data.partitions])

    def __repr__(self) -> str:
        return "LocalEngine()"
