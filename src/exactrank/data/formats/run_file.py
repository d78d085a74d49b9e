"""Write scores as a TREC run, for other tools; it reads back to the same numbers: `er.write_run`.

    301 Q0 FT911-3 1 14.89 exactrank         query, unused, document, rank, score, tag

The documents of a query are in order of decreasing score, and documents of equal score by descending id, as trec_eval ranks them. Scores
have all digits of their double, so that reading the run neither creates nor breaks ties. A document with score -inf was not retrieved and
is left out. If the data has no document ids, the id of a document is its row, counted from 0 in the caller's order.
"""

import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import PerDocument, Rows
from exactrank._support.files import whole_file
from exactrank.data.duplicates import first_duplicate
from exactrank.data.formats.base import Columns
from exactrank.data.formats.trec import BLANKS, RetrievalRun, with_ids
from exactrank.data.ranking_data import RankingData
from exactrank.data.validation import floats_of
from exactrank.errors import DataError, SettingError

SUFFIXES = (".run", ".run.gz")  #: of files that are runs


def write_run(
    data: object,
    path: str | os.PathLike[str],
    scores: npt.ArrayLike | str = "score",
    name: str | None = None,
    *,
    force: bool = False,
    depth: int | None = None,
    columns: Columns | None = None,
) -> None:
    """Write a TREC run: the ranked documents of every query, for trec_eval, ir_measures, ranx and `er.read_run`.

    ``data`` is a `RankingData`, or a pandas, polars or Arrow frame, which needs no grades; ``columns`` names its columns.
    Or it is a run, as `er.read_run` and `Fusion.apply` give it, with its own scores.
    ``scores`` are one per row in the caller's order, -inf if a document was not retrieved; or the name of the feature or column that holds
    them, where a missing value means not retrieved. ``name`` is the run's tag (default: its own or exactrank), ``depth`` the maximum number
    of documents per query. A path that ends in ``.gz`` is compressed, ``-`` is standard output, and an existing file is replaced only with
    ``force``.

    >>> import sys
    >>> data = RankingData.from_arrays(None, [1, 0, 0], qid=[7, 7, 8], docid=["a", "b", "c"])
    >>> sys.stdout.write(b"".join(run_lines(data, np.array([0.5, 0.5, 0.1]), "mine")).decode()) and None
    7 Q0 b 1 0.5 mine
    7 Q0 a 2 0.5 mine
    8 Q0 c 1 0.1 mine
    """
    if isinstance(data, RetrievalRun):
        qid = np.array(data.qid, dtype=object)
        scores, name = data.score, data.tag if name is None else name
        data = RankingData.from_arrays(None, np.zeros(len(qid)), qid=qid, docid=data.docid)
    rows, values = _documents_and_scores(data, scores, columns or Columns())
    with whole_file(path, force=force) as file:
        write_lines(file, rows, values, "exactrank" if name is None else name, depth=depth, compress=Path(path).suffix == ".gz")


def is_run_name(path: str | os.PathLike[str]) -> bool:
    """Return whether the name of a file is that of a run."""
    return os.fspath(path).lower().endswith(SUFFIXES)


def write_lines(
    file: BinaryIO, data: RankingData, scores: npt.ArrayLike, name: str = "exactrank", *, depth: int | None = None, compress: bool = False
) -> None:
    """Write the run of ``scores`` to an open file."""
    lines = run_lines(data, scores, name, depth)
    if compress:
        with gzip.GzipFile(fileobj=file, mode="wb", mtime=0, filename="") as compressed:
            compressed.writelines(lines)
    else:
        file.writelines(lines)


def run_lines(data: RankingData, scores: npt.ArrayLike, name: str = "exactrank", depth: int | None = None) -> Iterator[bytes]:
    """Return the lines of the run of ``scores``, which are in the caller's order, after a check of all ids and scores."""
    if depth is not None and depth < 1:
        raise SettingError(f"depth={depth} leaves no documents; give at least 1, or leave it out for all documents")
    _check_column(name, "the run's name")
    data = with_ids(data)
    assert data.docid is not None
    values, query = data.group(_retrieval_scores(data, scores)), data.query_numbers
    ranked = np.lexsort((data.docid.places_from_last, -values, query))
    ranked = ranked[np.isfinite(values[ranked])]
    query = query[ranked]
    queries, documents = _queries(data), _documents(data, ranked)
    twice = first_duplicate(f"{queries[q]} {document}" for q, document in zip(query.tolist(), documents, strict=True))
    if twice is not None:
        raise DataError(
            "query {!r} has document {!r} twice, which a run cannot hold; give its documents different ids".format(*twice.split(" "))
        )
    rank = np.arange(len(query)) - np.searchsorted(query, query) + 1
    entries = zip(query.tolist(), documents, rank.tolist(), values[ranked].tolist(), strict=True)
    lines = (f"{queries[q]} Q0 {document} {r} {score!r} {name}\n" for q, document, r, score in entries if depth is None or r <= depth)
    return (line.encode("utf-8", "surrogateescape") for line in lines)


def _documents_and_scores(data: object, scores: npt.ArrayLike | str, columns: Columns) -> tuple[RankingData, npt.ArrayLike]:
    """Return the documents and their scores, which are -inf where a feature or column is missing."""
    from exactrank.data.frame import documents_of, numbers_in

    rows = data if isinstance(data, RankingData) else documents_of(data, columns)
    if not isinstance(scores, str):
        return rows, scores
    values = data.feature(scores) if isinstance(data, RankingData) else numbers_in(data, scores)
    return rows, np.where(np.isnan(values), -np.inf, values)


def _retrieval_scores(data: RankingData, scores: npt.ArrayLike) -> PerDocument:
    """Return ``scores`` as doubles; raise unless there is one per row, each a number or -inf, and at least one is finite."""
    values = floats_of("scores", scores)
    if values.shape != (data.n_documents,):
        raise DataError(f"scores have shape {values.shape} for {data.n_documents:,} documents; give one number per row")
    bad = np.flatnonzero(np.isnan(values) | (values == np.inf))
    if len(bad):
        raise DataError(f"score of row {bad[0]} is {values[bad[0]]}; a run holds finite scores, or -inf for a document not retrieved")
    if not np.any(np.isfinite(values)):
        raise DataError("every score is -inf: no document was retrieved, and a run without documents cannot be read; give scores")
    return values


def _queries(data: RankingData) -> list[str]:
    """Return the ids of the queries as text; raise unless they are different."""
    queries = [str(query) for query in data.qid.tolist()]
    for query in queries:
        _check_column(query, "a query id")
    twice = first_duplicate(queries)
    if twice is not None:
        raise DataError(f"two queries would both be written {twice!r} in a run, which holds text; give them ids that differ as text")
    return queries


def _documents(data: RankingData, ranked: Rows) -> list[str]:
    """Return the ids of the documents ``ranked``."""
    assert data.docid is not None
    ids = data.docid.take(ranked)
    documents = ids.tolist()
    if BLANKS[ids.pack().buffer].any() or not all(documents):
        for i, document in zip(ranked.tolist(), documents, strict=True):
            _check_column(document, f"the document id of row {i if data.order is None else data.order[i]}")
    return documents


def _check_column(text: str, what: str) -> None:
    """Raise unless ``text`` is a single column of a run."""
    encoded = text.encode("utf-8", "surrogateescape")
    if encoded.split() != [encoded]:
        raise DataError(f"{what} is {text!r}, but blanks separate the columns of a run; give one without blanks, of at least one character")
