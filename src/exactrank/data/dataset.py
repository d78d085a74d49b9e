"""Datasets, and questions to them.

    result = data.ask(question) = question.combine([question.ask(part) for part in the parts of data])          (1)

Every answer about ranking data is a sum over queries, or a list of one value per query. So data may lie anywhere: a `RankingData` is one
part in this process, and `exactrank.data.sharded.ShardedData` is many parts, each answered for where it lies. A question is a frozen,
picklable value; its answers are combined in the order of the parts, so no result depends on who answered, when, or how often somebody had
to be asked again. Nothing with a value per document leaves a part, unless a question is made for that.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import Boundaries, Ids, PerDocument, PerQuery
from exactrank.data.levels import Levels
from exactrank.data.precision import Offset

if TYPE_CHECKING:
    from exactrank.data.ranking_data import RankingData

A = TypeVar("A")
R = TypeVar("R")
Answer = TypeVar("Answer")
Result_co = TypeVar("Result_co", covariant=True)

Moments = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]  #: mean and standard deviation of each feature
Mask = npt.NDArray[np.bool_]  #: of queries
Score = Callable[["RankingData"], PerDocument]  #: scores the documents of any part; picklable
Change = Callable[["RankingData"], "RankingData"]  #: of any part; picklable
#: Other weights of some queries, from the number of the first in the whole and their weights; can be compared and pickled.
Weigh = Callable[[int, PerQuery], PerQuery]


#: The class that computes in place of each class of kernels, with the same methods.
Kernels = Mapping[type, type[Any]]


@dataclass(frozen=True)
class GlobalFacts:
    """Facts about a whole dataset that its parts need to know."""

    grades: tuple[float, float]  #: the smallest and the largest
    longest: int  #: the largest number of documents of a query
    pairs: bool = False  #: are there pairs of documents beside the grades?
    column: str | None = None  #: the column that the grades were taken from, if they are not the data's own


class Question(Protocol[Answer, Result_co]):
    """(1)."""

    def ask(self, part: "Part") -> Answer:
        """Answer for the queries of ``part``, where they lie."""

    def combine(self, answers: Sequence[Answer]) -> Result_co:
        """Return the result, of the answers in the order of the parts."""


@dataclass(eq=False)
class Part:
    """Queries in one place, of which the first has the number ``first`` in the whole; ``memo`` is for what questions compute once."""

    data: "RankingData"
    first: int = 0
    is_complete: bool = True  #: is it all there is?
    first_document: int = 0  #: the number of its first document in the whole
    memo: dict[object, Any] = field(default_factory=dict, repr=False)
    _lock: Any = field(default_factory=RLock, repr=False)  #: of the memo
    _recent: dict[str, dict[object, Any]] = field(default_factory=dict, repr=False)

    def ask(self, question: Question[A, R]) -> R:
        """Answer for this part alone."""
        return question.combine([question.ask(self)])

    def with_memo(self) -> "Part":
        """Return the same part, which shares what is computed once, but not what is computed again and again."""
        return Part(self.data, self.first, self.is_complete, self.first_document, self.memo, self._lock)

    def of(self, data: "RankingData") -> "Part":
        """Return a part with the same documents, maybe with other weights of queries, that shares all that is remembered."""
        return replace(self, data=data)

    def kernel(self, kind: type[R]) -> type[R]:
        """Return the class that computes for these documents what ``kind`` computes on the processor."""
        return self.data.kernels.get(kind, kind)

    def single_part(self) -> "Part | None":
        """Return itself, if it is all there is."""
        return self if self.is_complete else None

    def once(self, key: object, make: Callable[[], R]) -> R:
        """Memoise ``make()`` under ``key``."""
        if key not in self.memo:
            with self._lock:
                if key not in self.memo:
                    self.memo[key] = make()
        return self.memo[key]  # type: ignore[no-any-return]

    def recent(self, kind: str, key: object, most: int, make: Callable[[], R]) -> R:
        """Memoise ``make()`` under ``key``; of each ``kind`` only the ``most`` that were used last are kept."""
        values: dict[object, R] = self._recent.setdefault(kind, {})
        values[key] = values.pop(key) if key in values else make()
        while len(values) > most:
            del values[next(iter(values))]
        return values[key]


class Answerer(Protocol):
    """Something that answers questions."""

    def ask(self, question: Question[A, R]) -> R:
        """Return the result of ``question``."""

    def with_memo(self) -> "Answerer":
        """Return what answers the same questions, and remembers what they compute, for several questions in turn."""

    def single_part(self) -> Part | None:
        """Return the part that is all there is, in this process; None if the documents lie elsewhere."""


class Dataset(Answerer, Protocol):
    """Queries with their documents, wherever these lie: values per query and per feature, and answers to questions."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features."""

    @property
    def levels(self) -> Levels:
        """The texts that the codes of features stand for, where these are categories."""

    @property
    def offset(self) -> Offset | None:
        """From which features are kept as differences."""

    @property
    def n_features(self) -> int:
        """How many features a document has."""

    @property
    def n_queries(self) -> int:
        """How many queries there are."""

    @property
    def n_documents(self) -> int:
        """How many documents there are."""

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """How many documents each query has."""

    @property
    def indptr(self) -> Boundaries:
        """Where the documents of each query begin."""

    @property
    def longest(self) -> int:
        """How many documents the query with the most has."""

    @property
    def qid(self) -> Ids:
        """The ids of the queries."""

    @property
    def query_weight(self) -> PerQuery | None:
        """The weight of each query, if weights were given."""

    @property
    def weights(self) -> PerQuery:
        """The weight of each query; ones if none were given."""

    @property
    def moments(self) -> Moments:
        """The mean and the standard deviation of each feature over all documents, weighted like their queries; none may be missing."""

    @property
    def preferences(self) -> Sized | None:
        """Pairs of documents beside the grades, as many as there are; None where there are none."""

    @property
    def grades_and_pairs(self) -> tuple[npt.NDArray[np.float64], Mask]:
        """The least and the largest grade of each query; does it have pairs beside the grades?"""

    @property
    def weighs_documents(self) -> bool:
        """Do documents have weights of their own?"""

    @property
    def has_docid(self) -> bool:
        """Do documents have ids?"""

    @property
    def checksum(self) -> str:
        """A hash of the content, which tells whether a model saw this data or other."""

    @property
    def is_local(self) -> bool:
        """Are the documents in this process, so that one value per document can be kept?"""

    @property
    def documents_per_round(self) -> int:
        """A question takes as long as work on this number of documents, whatever is asked."""

    def share_memo(self, other: "Dataset", parts: Answerer) -> Answerer | None:
        """Return what answers for this data, and shares what ``parts`` remember of the ``other``; None if documents differ."""

    def select(self, which: Mask) -> "Dataset":
        """Return the queries for which ``which`` holds."""

    def reweigh(self, weigh: Weigh) -> "Dataset":
        """Return the same queries with the weights that ``weigh`` makes of theirs."""

    def transform(self, change: Change, query_weight: PerQuery | None = None, facts: GlobalFacts | None = None) -> "Dataset":
        """Return the same queries after a ``change``, with these weights; parts are told what they have to know of the ``whole``."""

    def restore_order(self, given: "Dataset", scores: PerDocument) -> "tuple[RankingData, PerDocument]":
        """Return the judgments of this data, and ``scores`` of its documents, in the order in which these were ``given``."""

    def without_levels(self) -> "Dataset":
        """Return the same data, whose codes of categories count as numbers."""

    def judgments(self) -> "RankingData":
        """Return the grades of all documents in this process, in the order in which they are prepared; features may be left out."""

    def gather(self) -> "RankingData":
        """Return all queries in this process."""

    def forget(self) -> None:
        """Give back what is remembered of this data: nobody will ask about it any more."""


@dataclass(frozen=True)
class EachPart(Generic[A]):
    """The answers of ``answer``, one per part."""

    answer: Callable[[Part], A]

    def ask(self, part: Part) -> A:
        """Answer for ``part``."""
        return self.answer(part)

    def combine(self, answers: Sequence[A]) -> list[A]:
        """Return them in order."""
        return list(answers)


@dataclass(frozen=True)
class EachBlock(Generic[A]):
    """The values that ``answer`` gives for blocks of queries, of all parts one after the other."""

    answer: Callable[[Part], Iterable[A]]

    def ask(self, part: Part) -> Iterable[A]:
        """Answer for ``part``."""
        return self.answer(part)

    def combine(self, answers: Sequence[Iterable[A]]) -> list[A]:
        """Return them in order."""
        return [block for blocks in answers for block in blocks]


@dataclass(frozen=True)
class Concatenated:
    """The arrays that ``answer`` gives, one after the other along ``axis``: one value per query, or per document."""

    answer: Callable[[Part], npt.NDArray[Any]]
    axis: int = 0

    def ask(self, part: Part) -> npt.NDArray[Any]:
        """Answer for ``part``."""
        return self.answer(part)

    def combine(self, answers: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """Return them as one array."""
        return answers[0] if len(answers) == 1 else np.concatenate(answers, axis=self.axis)


class CachedScore:
    """A score that remembers its answers for the last two datasets of this process, for who asks again; they do not travel."""

    def __init__(self, score: Score) -> None:
        self._score = score
        self._answers: list[tuple[RankingData, PerDocument]] = []

    def __call__(self, data: "RankingData") -> PerDocument:
        scores = next((scores for known, scores in self._answers if known is data), None)
        if scores is None:
            scores = self._score(data)
            self._answers = [*self._answers[-1:], (data, scores)]
        return scores

    def __reduce__(self) -> tuple[Any, ...]:
        return CachedScore, (self._score,)
