"""Comparison of the scores of an export in its engine with those of the model.

Both score the same documents. An engine that adds up in single precision rounds at each of the n terms of a score,

    |difference| <= (n + 4) eps sum |terms|,                                                                        (1)

so a document whose scores differ by more took another branch of a tree, or its values are filled or clipped in another way.
"""

import math
from dataclasses import dataclass

import numpy as np

from exactrank._support.arrays import PerDocument
from exactrank._support.numerics import matmul
from exactrank.data.alignment import align_features
from exactrank.data.ranking_data import RankingData
from exactrank.measures.base import Measure
from exactrank.measures.goal import parse_goal
from exactrank.measures.parse import parse_measure
from exactrank.models.targets.plain import Plain
from exactrank.models.targets.target import Export, Rows

TOP = 10  #: number of documents at the top whose order is compared


@dataclass(frozen=True)
class Check:
    """The differences of the scores of ``documents`` of ``queries``."""

    target: str
    queries: int
    documents: int
    largest: float  #: the largest difference of two scores
    beyond_rounding: int  #: number of documents whose scores differ by more than (1)
    changed_top: int  #: number of queries whose first `TOP` documents, or their order, differ
    measure: Measure
    of_model: float  #: the measure of the model's scores
    of_export: float  #: the measure of the export's scores


def check_export(export: Export, data: RankingData, measure: str | Measure | None, threads: int | None) -> Check:
    """Compare the scores of ``data`` by ``export``, in the arithmetic of its engine, with those of the model."""
    parsed = parse_measure(measure) if measure else parse_goal(export.model.measure or "nDCG@10").measure
    scorer = export.model.scorer
    rows = align_features(data, scorer.feature_names, levels=scorer.levels) if scorer.feature_names else data
    features = rows.X.astype(np.float64) + (0.0 if rows.offset is None else rows.offset)
    terms = export.target.named_terms(export.model)
    ours, theirs = scorer.score(rows.X, threads, rows.offset), export.target.scores(export.content, features, terms.features)
    difference, bound = np.abs(theirs - ours), parsed.on(rows, threads=threads)
    eps = float(np.finfo(export.target.precision).eps)
    return Check(
        target=export.target.name,
        queries=data.n_queries,
        documents=data.n_documents,
        largest=float(difference.max(initial=0.0)),
        beyond_rounding=int(np.count_nonzero(~(difference <= _rounding(terms, features, eps)))),
        changed_top=_changed_tops(rows, ours, theirs),
        measure=parsed,
        of_model=bound.mean(ours),
        of_export=bound.mean(theirs),
    )


def _rounding(terms: Plain, rows: Rows, eps: float) -> PerDocument:
    """Return the right side of (1) for each document."""
    count, largest = len(terms.trees) + 4, math.fsum(np.abs(tree.leaf).max() for tree in terms.trees)
    size = np.full(len(rows), abs(terms.constant) + largest)
    filled = np.where(np.isnan(rows), terms.fill, rows)
    amounts = np.abs(filled)
    if terms.linear is not None:
        count, size = count + rows.shape[1], size + matmul(amounts, np.abs(terms.linear))
    if terms.units is not None:  # tanh has a slope of at most 1, so errors of its sum count once
        within = matmul(amounts, np.abs(terms.units.weights).T) + np.abs(terms.units.bias)
        count, size = count + rows.shape[1] + len(terms.units.output), size + matmul(within + 1, np.abs(terms.units.output))
    deep = sum(net.rounding(filled, eps) for net in terms.nets)
    return np.asarray(count * eps * size + deep)


def _changed_tops(data: RankingData, ours: PerDocument, theirs: PerDocument) -> int:
    changed = 0
    for first, end in zip(data.indptr[:-1].tolist(), data.indptr[1:].tolist(), strict=True):
        our_top, their_top = (np.argsort(-scores[first:end], kind="stable")[:TOP] for scores in (ours, theirs))
        changed += not np.array_equal(our_top, their_top)
    return changed
