"""What is done with ranking data that was accepted, and the laws that it must obey."""

import tempfile
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

import exactrank as er
from exactrank.data import files as formats
from exactrank.data.formats.base import ReadOptions
from exactrank.data.formats.cache import CacheFormat
from exactrank.data.ranking_data import RankingData
from tests.fuzz.target import require

MEASURES = ["nDCG@10", "AP", "Bpref", "AUC", "ERR@5"]


def use_file(path: Path) -> None:
    """Read the file at once and as a stream, with and without missing values, and use what was read."""
    for missing in (False, True):
        try:
            use(er.read(path, keep_missing=missing, threads=1 + missing))
        except er.errors.ExactRankError:
            continue
    with tempfile.TemporaryFile() as file:
        CacheFormat().write(cast(BinaryIO, file), formats.stream(path, ReadOptions(keep_missing=True, threads=1)))


def use(data: RankingData) -> None:
    """Describe, evaluate, take parts and print ids, once the laws are seen to hold."""
    check(data)
    er.describe(data)
    scores = np.arange(data.n_documents) % 5 * 1.0
    values = er.evaluate(data, scores, MEASURES)
    require(all(np.isnan(v) or -1e-9 <= v <= 1 + 1e-9 for v in values.means.values()), "measures lie between 0 and 1")
    for column in (data.docid, data.comment):
        require(column is None or len(column.tolist()) == data.n_documents, "there is one string per document")
    require(len(str(data.qid.tolist())) > 0, "query ids can be shown")


def check(data: RankingData) -> None:
    """The laws of ranking data."""
    n, indptr = data.n_documents, data.indptr
    require(indptr.dtype == np.int64 and indptr[0] == 0 and indptr[-1] == n and np.all(np.diff(indptr) > 0), "queries follow each other")
    require(data.X.dtype in (np.float32, np.float64) and data.X.shape == (n, len(data.feature_names)), "X has a row per document")
    require(not np.any(np.isinf(data.X)), "features are finite or missing")
    require(data.y.dtype == np.float64 and data.y.shape == (n,) and np.all(np.isfinite(data.y)), "grades are finite")
    require(len(data.qid) == len(indptr) - 1 == len(set(data.qid.tolist())), "each query has an id of its own")
    require(all(isinstance(name, str) for name in data.feature_names), "names of features are text")
    for name, count in (("sample_weight", n), ("query_weight", len(indptr) - 1)):
        weight = getattr(data, name)
        require(weight is None or (weight.shape == (count,) and np.all(np.isfinite(weight)) and np.all(weight >= 0)), f"{name} is sound")
    require(data.order is None or np.array_equal(np.sort(data.order), np.arange(n)), "the order is a permutation")
