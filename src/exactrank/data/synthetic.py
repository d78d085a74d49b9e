"""Artificial ranking data after Burges, Ragno & Le (2006), section 6.3.1.

Documents are Gaussian vectors. A random polynomial of degree three, shared by all queries, is the goodness of a document:

    f(x) = sum_i a_i x_i + sum_{i>=j} b_ij x_i x_j + sum_{i>=j>=k} c_ijk x_i x_j x_k                            (1)

The coefficients are Gaussian, scaled so that each degree has the same influence. f is standardized, noise is added, and the
result is cut into grades so that each grade is 0.4 times as common as the one below it, about as in web search. The cuts
come from a separate sample, so data of any size can be streamed, and query q is the same whatever the size.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from exactrank import _core
from exactrank._support.arguments import check_count, check_number
from exactrank._support.arrays import Matrix, PerDocument
from exactrank._support.numerics import power, standard_normal
from exactrank._support.threads import thread_count
from exactrank.data.formats.base import Block, Stream
from exactrank.data.formats.text_column import TextColumn
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError

GRADE_RATIO = 0.4
SAMPLE = 20_000
QUERIES_PER_BLOCK = 64


@dataclass(frozen=True)
class CubicPolynomial:
    """Random cubic polynomial data, (1); ``noise`` is in units of f's standard deviation."""

    features: int = 50
    documents: int = 50
    grades: int = 5
    noise: float = 0.0
    seed: int = 0
    threads: int | None = None
    document_ids: bool = False  #: whether documents have ids, such as 7-3 for the third document of query 7

    def __post_init__(self) -> None:
        for name, minimum, maximum in (("features", 1, 1000), ("documents", 1, 10**7), ("grades", 2, 1000)):
            check_count(name, getattr(self, name), minimum, maximum)
        check_count("seed", self.seed, 0)
        check_number("noise", self.noise)

    def stream(self, queries: int, first: int = 1) -> Stream:
        """Return a stream of ``queries`` queries with ids from ``first`` on; disjoint ranges give training and test sets."""
        if queries < 1 or first < 1:
            raise DataError(f"queries and the first query id must be at least 1, got {queries} and {first}")
        return Stream(tuple(str(j + 1) for j in range(self.features)), self._blocks(first - 1, first - 1 + queries))

    def data(self, queries: int, first: int = 1) -> RankingData:
        """Return the queries of `stream` in memory."""
        stream = self.stream(queries, first)
        blocks = list(stream.blocks)
        X, y, qid = (np.concatenate([getattr(block, name) for block in blocks]) for name in ("X", "y", "qid"))
        docid = [name for block in blocks for name in block.docid or ()] or None
        return RankingData.from_arrays(X, y, qid=qid, feature_names=stream.feature_names, docid=docid)

    def _blocks(self, first: int, last: int) -> Iterator[Block]:
        """Yield blocks, which begin at multiples of their size; each has its own random generator."""
        for start in range(first - first % QUERIES_PER_BLOCK, last, QUERIES_PER_BLOCK):
            X, goodness = self._draw_documents(np.random.default_rng([self.seed, 2, start]), QUERIES_PER_BLOCK * self.documents)
            qid = np.repeat(np.arange(start, start + QUERIES_PER_BLOCK), self.documents)
            rows = slice(*np.searchsorted(qid, [first, last]))
            ids = TextColumn.of(f"{q + 1}-{i % self.documents + 1}" for i, q in enumerate(qid)).take(rows) if self.document_ids else None
            yield Block(X[rows], np.searchsorted(self._cuts, goodness[rows]).astype(np.float64), qid[rows] + 1, ids)

    def _draw_documents(self, rng: np.random.Generator, count: int) -> tuple[Matrix, PerDocument]:
        X = standard_normal(rng, (count, self.features)).astype(np.float32)
        noise = self.noise * standard_normal(rng, count)
        return X, _core.cubic(X, self._coefficients, thread_count(self.threads)) + noise

    @cached_property
    def _coefficients(self) -> PerDocument:
        """Coefficients in the order of `src/native/data/cubic.hpp`: for each i: a_i, then for each j <= i: b_ij, then c_ijk for k <= j.

        Degree three has degree-one parts (x_i^3 and so on), so the coefficients are scaled by the deviation on a sample.
        """
        rng = np.random.default_rng([self.seed, 0])
        d = self.features
        degree = np.concatenate([[1, *(g for j in range(i + 1) for g in [2] + [3] * (j + 1))] for i in range(d)])
        raw = standard_normal(rng, _core.cubic_terms(d))
        sample = standard_normal(np.random.default_rng([self.seed, 3]), (SAMPLE // 10, d)).astype(np.float32)
        for g in (1, 2, 3):
            part = np.where(degree == g, raw, 0.0)
            raw[degree == g] /= _core.cubic(sample, part, thread_count(self.threads)).std() * np.sqrt(3)
        return raw

    @cached_property
    def _cuts(self) -> PerDocument:
        share = power(GRADE_RATIO, np.arange(self.grades))
        _, goodness = self._draw_documents(np.random.default_rng([self.seed, 1]), SAMPLE)
        return np.asarray(np.quantile(goodness, np.cumsum(share / share.sum())[:-1]))
