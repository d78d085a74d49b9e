"""What an export would score in its engine, compared with what the model scores.

Both score the same documents. An engine that adds up in single precision rounds at each of the n terms of a score,

    |difference| <= (n + 4) eps sum |terms|,                                                                        (1)

so a document that differs by more took another branch of a tree, or its values are filled or cut in another way.
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

TOP = 10  #: documents whose order is compared


@dataclass(frozen=True)
class Check:
    """What was found on ``documents`` of ``queries``."""

    target: str
    queries: int
    documents: int
    largest: float  #: difference of two scores
    beyond_rounding: int  #: documents whose scores differ by more than (1)
    changed_top: int  #: queries whose first `TOP` documents, or their order, differ
    measure: Measure
    of_model: float  #: the measure of the model's scores
    of_export: float  #: and of the export's


def checked(export: Export, data: RankingData, measure: str | Measure | None, threads: int | None) -> Check:
    """Compare the scores of ``data`` by ``export``, in the arithmetic of its engine, with those of the model."""
    parsed = parse_measure(measure) if measure else parse_goal(export.model.measure or "nDCG@10").measure
    scorer = export.model.scorer
    rows = align_features(data, scorer.feature_names, levels=scorer.levels) if scorer.feature_names else data
    whole = rows.X.astype(np.float64) + (0.0 if rows.offset is None else rows.offset)
    terms = export.target.terms(export.model)
    ours, theirs = scorer.score(rows.X, threads, rows.offset), export.target.scores(export.content, whole, terms.features)
    difference, bound = np.abs(theirs - ours), parsed.on(rows, threads=threads)
    eps = float(np.finfo(export.target.precision).eps)
    return Check(
        target=export.target.name,
        queries=data.n_queries,
        documents=data.n_documents,
        largest=float(difference.max(initial=0.0)),
        beyond_rounding=int(np.count_nonzero(~(difference <= _rounding(terms, whole, eps)))),
        changed_top=_changed_tops(rows, ours, theirs),
        measure=parsed,
        of_model=bound.mean(ours),
        of_export=bound.mean(theirs),
    )


def _rounding(terms: Plain, rows: Rows, eps: float) -> PerDocument:
    """The right side of (1) for each document."""
    count, largest = len(terms.trees) + 4, math.fsum(np.abs(tree.leaf).max() for tree in terms.trees)
    size = np.full(len(rows), abs(terms.constant) + largest)
    known = np.abs(np.where(np.isnan(rows), terms.fill, rows))
    if terms.linear is not None:
        count, size = count + rows.shape[1], size + matmul(known, np.abs(terms.linear))
    if terms.units is not None:  # tanh has a slope of at most 1, so errors of its sum count once
        within = matmul(known, np.abs(terms.units.weights).T) + np.abs(terms.units.bias)
        count, size = count + rows.shape[1] + len(terms.units.output), size + matmul(within + 1, np.abs(terms.units.output))
    deep = sum(net.rounding(np.where(np.isnan(rows), terms.fill, rows), eps) for net in terms.nets)
    return np.asarray(count * eps * size + deep)


def _changed_tops(data: RankingData, ours: PerDocument, theirs: PerDocument) -> int:
    changed = 0
    for first, end in zip(data.indptr[:-1].tolist(), data.indptr[1:].tolist(), strict=True):
        one, other = (np.argsort(-scores[first:end], kind="stable")[:TOP] for scores in (ours, theirs))
        changed += not np.array_equal(one, other)
    return changed
