"""Conversion of clicks to grades for training.

Under the position-based model the mean over a document's impressions

    y_qd = sum of w c / max(theta_k, clip) / sum of w                                                           (1)

is an unbiased estimate of its relevance while nothing is clipped (inverse propensity scoring; Joachims, Swaminathan & Schnabel 2017).
So a measure that is linear in the grades, on grades (1), is an unbiased estimate of its true value. A query's weight is the number of
its impressions. Documents that were never shown are left out: nothing is known of them.
"""

import os
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from exactrank._support.arrays import PerDocument, Rows, starts_of
from exactrank.clicks.log import Clicks, sums_of
from exactrank.clicks.propensities import Given, Propensities, propensities
from exactrank.data.alignment import name_list
from exactrank.data.extra_columns import take_extra_columns
from exactrank.data.files import read
from exactrank.data.formats.base import Columns
from exactrank.data.formats.text_column import TextColumn, rows_of
from exactrank.data.immutable import seal
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError, LeftOutWarning, warn_caller

NAMED = 5  #: number of unknown documents in a message


def to_data(
    log: Clicks,
    features: object,
    propensity: Given | Propensities,
    *,
    clip: float,
    unknown: str,
    columns: Columns | None,
) -> RankingData:
    """Implement `Clicks.to_data`."""
    check_settings(clip, unknown)
    grades = relevance(log, propensity, clip)
    data = features_of(features, columns or Columns())
    if data.preferences is not None:
        raise DataError(f"the features have {len(data.preferences):,} pairs; give pairs to what to_data returns, with er.pairs.with_pairs")
    pair = pairs_of(log, data, unknown)
    rows = np.flatnonzero(pair >= 0)
    if len(rows) == 0:
        raise DataError("no document of the log is in the features; give the features of the same queries and documents")
    query = data.query_numbers[rows]
    queries, sizes = np.unique(query, return_counts=True)
    impressions = sums_of(log.cells.query[log.cells.pair], log.cells.impressions, len(log.queries))
    indptr = starts_of(sizes)
    return RankingData(
        X=seal(data.X[rows]),
        y=seal(grades[pair[rows]]),
        indptr=seal(indptr),
        qid=data.qid[queries],
        feature_names=data.feature_names,
        docid=rows_of(data.docid, rows),
        query_weight=seal(impressions[log.cells.query[pair[rows[indptr[:-1]]]]]),
        offset=data.offset,
        levels=data.levels,
        extra_columns=take_extra_columns(data.extra_columns, rows),
    )


def check_settings(clip: float, unknown: str) -> None:
    """Raise unless ``clip`` and ``unknown`` are valid settings of `to_data`."""
    if not 0 <= clip <= 1:
        raise DataError(f"clip must be from 0 to 1, got {clip}")
    if unknown not in ("error", "drop"):
        raise DataError(f"unknown={unknown!r} is neither 'error' nor 'drop'")


def relevance(log: Clicks, propensity: Given | Propensities, clip: float) -> PerDocument:
    """Return (1) of each pair of the log's cells, 0 if its impressions have no weight."""
    cells = log.cells
    theta = np.maximum(propensities(log, propensity, bootstrap=0).at(cells.rank), clip)
    clicks, total = np.bincount(cells.pair, cells.clicks / theta), np.bincount(cells.pair, cells.impressions)
    return np.divide(clicks, total, out=np.zeros_like(clicks), where=total > 0)


def features_of(features: object, columns: Columns) -> RankingData:
    """Return data with document ids; a table needs no grades, and those of other data are ignored."""
    ungraded = replace(columns, graded=False)
    if isinstance(features, str | os.PathLike):
        data = read(features, columns=ungraded, keep_missing=True)
    else:
        data = features if isinstance(features, RankingData) else RankingData.from_frame(features, ungraded)
    if data.docid is None:
        raise DataError("the features have no document ids, by which the log names documents; add a column or a comment with them")
    return data


def pairs_of(log: Clicks, data: RankingData, unknown: str) -> Rows:
    """Return the number of each document of ``data`` among the pairs of the log's cells, or -1; raise if the log has other documents."""
    cells, width = log.cells, len(log.documents)
    query = np.repeat(places_of(log.queries, map(str, data.qid.tolist())), data.sizes)
    document = places_of(log.documents, data.docid or ())
    keys = cells.query.astype(np.int64) * width + cells.document  # sorted
    document_keys = query * width + document
    positions = np.minimum(np.searchsorted(keys, document_keys), len(keys) - 1)
    pair = np.where((query >= 0) & (document >= 0) & (keys[positions] == document_keys), positions, -1)
    times = np.bincount(pair[pair >= 0], minlength=len(keys))
    if np.any(times > 1):
        raise DataError(f"the features have {_list_documents(log, np.flatnonzero(times > 1))} more than once; keep one row of each")
    lacking = np.flatnonzero(times == 0)
    if len(lacking):
        which = f"{len(lacking):,} of {len(keys):,} documents of the log have no features: {_list_documents(log, lacking)}"
        if unknown == "error":
            raise DataError(f"{which}; add their features, or leave them out with unknown='drop' (--unknown drop)")
        warn_caller(f"left out: {which}", LeftOutWarning)
    return pair


def places_of(ids: TextColumn, texts: Iterable[str]) -> Rows:
    """Return the number of each text among ``ids``, or -1."""
    place = {text: number for number, text in enumerate(ids)}
    return np.array([place.get(text, -1) for text in texts], np.int64)


def _list_documents(log: Clicks, pairs: Rows) -> str:
    names = [f"{log.documents[log.cells.document[i]]!r} of query {log.queries[log.cells.query[i]]!r}" for i in pairs[: NAMED + 1]]
    return name_list(names, NAMED) if len(pairs) <= NAMED else ", ".join(names[:NAMED]) + ", ..."
