"""Datasets, and questions to them.

    result = data.ask(question) = question.combine([question.ask(part) for part in the parts of data])          (1)

Every answer about ranking data is a sum over queries, or a list of one value per query. So data may lie anywhere: a `RankingData` is one
part in this process, and a `exactrank.data.sharded.ShardedData` is many parts, each of which answers where it lies. A question is a frozen,
picklable value. Its answers are combined in the order of the parts, so no result depends on which worker answered, when, or how often a
part was asked again. Values per document leave a part only if a question is made for that.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import Boundaries, Ids, PerDocument, PerQuery
from exactrank.data.blocks import Moments, moments_of, sums_by_block, wide_blocks
from exactrank.data.immutable import seal
from exactrank.data.levels import Levels
from exactrank.data.precision import Offset

if TYPE_CHECKING:
    from exactrank.data.ranking_data import RankingData

A = TypeVar("A")
R = TypeVar("R")
Answer = TypeVar("Answer")
Result_co = TypeVar("Result_co", covariant=True)

Number = TypeVar("Number", bound=np.generic)

Mask = npt.NDArray[np.bool_]  #: one boolean per query
Score = Callable[["RankingData"], PerDocument]  #: scores the documents of a part; picklable
Change = Callable[["RankingData"], "RankingData"]  #: changes a part; picklable
#: Returns new weights of consecutive queries, given the number of the first query and their weights; comparable and picklable.
Weigh = Callable[[int, PerQuery], PerQuery]
#: For each class of kernels, the class with the same methods that replaces it.
Kernels = Mapping[type, type[Any]]


@dataclass(frozen=True)
class GlobalFacts:
    """Facts about a whole dataset that its parts need to know."""

    grades: tuple[float, float]  #: the smallest and the largest
    longest: int  #: the largest number of documents of a query
    pairs: bool = False  #: are there pairs of documents beside the grades?
    column: str | None = None  #: the column that the grades were taken from, if they are not the data's own


class Question(Protocol[Answer, Result_co]):
    """A question to the parts of a dataset, (1)."""

    def ask(self, part: "Part") -> Answer:
        """Return the answer of ``part``; runs where the part lies."""

    def combine(self, answers: Sequence[Answer]) -> Result_co:
        """Return the result; ``answers`` are in the order of the parts."""


@dataclass(eq=False)
class Part:
    """Consecutive queries of a dataset that lie in one place; ``memo`` holds what questions compute once."""

    data: "RankingData"
    first: int = 0  #: number of its first query in the dataset
    is_complete: bool = True  #: whether the part is the whole dataset
    first_document: int = 0  #: number of its first document in the dataset
    memo: dict[object, Any] = field(default_factory=dict, repr=False)
    _lock: AbstractContextManager[object] = field(default_factory=RLock, repr=False)  #: protects the memo
    _recent: dict[str, dict[object, Any]] = field(default_factory=dict, repr=False)

    def ask(self, question: Question[A, R]) -> R:
        """Return the result of ``question`` about this part."""
        return question.combine([question.ask(self)])

    def with_memo(self) -> "Part":
        """Return the same part with the same memo, but without recent values."""
        return Part(self.data, self.first, self.is_complete, self.first_document, self.memo, self._lock)

    def of(self, data: "RankingData") -> "Part":
        """Return a part with the memo of this one; ``data`` has the same documents, but may have other query weights."""
        return replace(self, data=data)

    def kernel(self, kind: type[R]) -> type[R]:
        """Return the class of kernels that replaces ``kind`` for this part, or ``kind`` itself."""
        return self.data.kernels.get(kind, kind)

    def single_part(self) -> "Part | None":
        """Return the part itself if it is the whole dataset."""
        return self if self.is_complete else None

    def once(self, key: object, make: Callable[[], R]) -> R:
        """Memoise ``make()`` under ``key``."""
        if key not in self.memo:
            with self._lock:
                if key not in self.memo:
                    self.memo[key] = make()
        return self.memo[key]  # type: ignore[no-any-return]

    def recent(self, kind: str, key: object, limit: int, make: Callable[[], R]) -> R:
        """Memoise ``make()`` under ``key``; only the ``limit`` most recently used values of each ``kind`` are kept."""
        values: dict[object, R] = self._recent.setdefault(kind, {})
        values[key] = values.pop(key) if key in values else make()
        while len(values) > limit:
            del values[next(iter(values))]
        return values[key]


class Answerer(Protocol):
    """Something that answers questions."""

    def ask(self, question: Question[A, R]) -> R:
        """Return the result of ``question``."""

    def with_memo(self) -> "Answerer":
        """Return an answerer with a memo, for several questions about the same data."""

    def single_part(self) -> Part | None:
        """Return the part that is the whole dataset; None if the documents do not lie in this process."""


class Dataset(Answerer, Protocol):
    """Queries with their documents, wherever these lie: values per query and per feature, and answers to questions.

    `DatasetBase` derives some of them from the others.
    """

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features."""

    @property
    def levels(self) -> Levels:
        """Texts of the codes of each feature that is a category."""

    @property
    def offset(self) -> Offset | None:
        """Offset of each feature: its values are ``X + offset``."""

    @property
    def n_features(self) -> int:
        """Number of features."""

    @property
    def n_queries(self) -> int:
        """Number of queries."""

    @property
    def global_facts(self) -> GlobalFacts | None:
        """Facts about the dataset that this is a part of, or is to be cut into parts; None if there are none."""

    @property
    def n_documents(self) -> int:
        """Number of documents."""

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Number of documents of each query."""

    @property
    def indptr(self) -> Boundaries:
        """Boundaries of the queries: query q holds documents ``indptr[q]`` to ``indptr[q + 1]``."""

    @property
    def longest(self) -> int:
        """Largest number of documents of a query."""

    @property
    def qid(self) -> Ids:
        """The ids of the queries."""

    @property
    def query_weight(self) -> PerQuery | None:
        """Weight of each query; None without weights."""

    @property
    def weights(self) -> PerQuery:
        """Weight of each query; ones without weights."""

    @property
    def moments(self) -> Moments:
        """Mean and standard deviation of each feature over all documents, weighted by query weights; no value may be missing."""

    @property
    def preferences(self) -> Sized | None:
        """Pairs of documents besides the grades, or a range of their number; None without pairs."""

    @property
    def grades_and_pairs(self) -> tuple[npt.NDArray[np.float64], Mask]:
        """Smallest and largest grade of each query, and whether the query has pairs besides the grades."""

    @property
    def weighs_documents(self) -> bool:
        """True if documents have weights."""

    @property
    def has_docid(self) -> bool:
        """True if documents have ids."""

    @property
    def checksum(self) -> str:
        """Hash of the content, to recognize the data that a model was trained on."""

    @property
    def is_local(self) -> bool:
        """True if the documents lie in this process, so that one value per document can be stored."""

    @property
    def documents_per_round(self) -> int:
        """Fixed cost of a question, as a number of documents whose computation takes as long."""

    def share_memo(self, base: "Dataset", parts: Answerer) -> Answerer | None:
        """Return an answerer for this data that shares the memo of ``parts``, the answerer of ``base``; None if the documents differ."""

    def select(self, which: Mask) -> "Dataset":
        """Return the queries that the mask ``which`` selects."""

    def reweigh(self, weigh: Weigh) -> "Dataset":
        """Return the same queries with the weights that ``weigh`` returns."""

    def transform(self, change: Change, query_weight: PerQuery | None = None, facts: GlobalFacts | None = None) -> "Dataset":
        """Return the same queries after ``change``, with these weights; parts get the global ``facts``."""

    def restore_order(self, original: "Dataset", scores: PerDocument) -> "tuple[RankingData, PerDocument]":
        """Return the judgments and the ``scores`` of this data in the order of the ``original`` data, which it was prepared from."""

    def without_levels(self) -> "Dataset":
        """Return the same data with the codes of categories as plain numbers."""

    def judgments(self) -> "RankingData":
        """Return the grades of all documents in this process, in prepared order; features may be missing."""

    def gather(self) -> "RankingData":
        """Return all queries as data in this process."""

    def forget(self) -> None:
        """Release all memos of this data."""


@dataclass(frozen=True)
class EachPart(Generic[A]):
    """A list of the answers of all parts."""

    answer: Callable[[Part], A]

    def ask(self, part: Part) -> A:
        return self.answer(part)

    def combine(self, answers: Sequence[A]) -> list[A]:
        return list(answers)


@dataclass(frozen=True)
class EachBlock(Generic[A]):
    """A list of values per block of queries, over all parts."""

    answer: Callable[[Part], Iterable[A]]

    def ask(self, part: Part) -> Iterable[A]:
        return self.answer(part)

    def combine(self, answers: Sequence[Iterable[A]]) -> list[A]:
        return [block for blocks in answers for block in blocks]


@dataclass(frozen=True)
class Concatenated(Generic[Number]):
    """The arrays of all parts, concatenated along ``axis``: one value per query, or per document."""

    answer: Callable[[Part], npt.NDArray[Number]]
    axis: int = 0

    def ask(self, part: Part) -> npt.NDArray[Number]:
        return self.answer(part)

    def combine(self, answers: Sequence[npt.NDArray[Number]]) -> npt.NDArray[Number]:
        return answers[0] if len(answers) == 1 else np.concatenate(answers, axis=self.axis)


class DatasetBase:
    """Properties that every `Dataset` derives from its other properties."""

    @property
    def n_queries(self: Dataset) -> int:
        return len(self.qid)

    @cached_property
    def sizes(self: Dataset) -> npt.NDArray[np.int64]:
        return seal(np.diff(self.indptr))

    @cached_property
    def longest(self: Dataset) -> int:
        """Largest number of documents of a query, also in the other parts of the same dataset."""
        return int(self.sizes.max()) if self.global_facts is None else self.global_facts.longest

    @cached_property
    def weights(self: Dataset) -> PerQuery:
        return seal(np.ones(self.n_queries)) if self.query_weight is None else self.query_weight

    @cached_property
    def moments(self: Dataset) -> Moments:
        unit = None if self.query_weight is None else float(np.repeat(self.query_weight, self.sizes).mean())
        mean = np.sum(self.ask(EachBlock(_FeatureSums(unit, None))), axis=0) / self.n_documents
        return moments_of(mean, np.sum(self.ask(EachBlock(_FeatureSums(unit, mean))), axis=0) / self.n_documents)


@dataclass(frozen=True)
class _FeatureSums:
    """Sums of features by wide blocks; documents are weighted by the weights of their queries over ``unit``."""

    unit: float | None
    mean: npt.NDArray[np.float64] | None

    def __call__(self, part: Part) -> list[npt.NDArray[np.float64]]:
        data = part.data
        share = None if self.unit is None else np.repeat(data.weights, data.sizes) / self.unit
        return sums_by_block(data.X, share, data.indptr[wide_blocks(data.indptr)], self.mean)


class CachedScore:
    """A score that caches its values for the last two datasets; pickling drops the cache."""

    def __init__(self, score: Score) -> None:
        self._score = score
        self._cache: list[tuple[RankingData, PerDocument]] = []

    def __call__(self, data: "RankingData") -> PerDocument:
        scores = next((scores for cached_data, scores in self._cache if cached_data is data), None)
        if scores is None:
            scores = self._score(data)
            self._cache = [*self._cache[-1:], (data, scores)]
        return scores

    def __reduce__(self) -> tuple[type["CachedScore"], tuple[Score]]:
        return CachedScore, (self._score,)
