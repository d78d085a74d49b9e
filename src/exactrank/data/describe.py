"""Counts that summarize ranking data."""

from dataclasses import dataclass

import numpy as np

from exactrank import _core
from exactrank._support.threads import thread_count
from exactrank.data.ranking_data import RankingData, check_data


@dataclass(frozen=True)
class Summary:
    """Counts that show whether the data is what you expect."""

    queries: int
    documents: int
    features: int
    grades: dict[float, int]  #: documents of each grade, lowest first
    list_lengths: tuple[int, float, int]  #: minimum, median and maximum of documents per query
    constant_features: tuple[str, ...]
    single_grade_queries: int  #: queries whose documents all have the same grade
    irrelevant_queries: int  #: queries without a grade of at least 1, which AP, P, R, RR and Success count as relevant
    missing_values: dict[str, int]  #: number of missing values of each feature with missing values
    categories: dict[str, int]  #: number of levels of each feature that is a category
    interleaved: bool  #: whether rows of a query were not together
    weights: tuple[str, ...]  #: those of sample_weight and query_weight that the data has
    has_docid: bool
    pairs: int  #: pairs of documents that a judge has put into an order
    extra_columns: dict[str, tuple[float, float]]  #: smallest and largest value of each extra column


def describe(data: RankingData, threads: int | None = None) -> Summary:
    """Return the summary of ``data``.

    >>> data = RankingData.from_arrays([[1.0, 5.0], [2.0, 5.0], [0.5, 5.0]], [0, 2, 0], qid=[1, 1, 2])
    >>> summary = describe(data)
    >>> summary.queries, summary.grades, summary.constant_features, summary.single_grade_queries
    (2, {0.0: 2, 2.0: 1}, ('x1',), 1)
    """
    check_data(data)
    lowest_values, highest_values, nans, _ = _core.summarize_columns(data.X, thread_count(threads))
    grades, counts = np.unique(data.y, return_counts=True)
    lowest, highest = np.minimum.reduceat(data.y, data.indptr[:-1]), np.maximum.reduceat(data.y, data.indptr[:-1])
    constant = (lowest_values >= highest_values) & ((nans == 0) | (nans == data.n_documents))
    return Summary(
        queries=data.n_queries,
        documents=data.n_documents,
        features=data.n_features,
        grades=dict(zip(grades.tolist(), counts.tolist(), strict=True)),
        list_lengths=(int(data.sizes.min()), float(np.median(data.sizes)), data.longest),
        constant_features=tuple(data.feature_names[j] for j in np.flatnonzero(constant)),
        single_grade_queries=int(np.sum(lowest == highest)),
        irrelevant_queries=int(np.sum(highest < 1)),
        missing_values={data.feature_names[j]: int(nans[j]) for j in np.flatnonzero(nans)},
        categories={name: len(texts) for name, texts in data.levels.items()},
        interleaved=data.order is not None,
        weights=tuple(name for name in ("sample_weight", "query_weight") if getattr(data, name) is not None),
        has_docid=data.docid is not None,
        pairs=0 if data.preferences is None else len(data.preferences),
        extra_columns={name: (float(values.min()), float(values.max())) for name, values in data.extra_columns.items()},
    )
