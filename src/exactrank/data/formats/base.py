"""File formats: how to read a file at once or as a stream of blocks, and how to write a stream.

A block keeps the rows in their original order, not yet grouped by query. A stream never holds more than a block or two, so data may be
larger than memory: commands such as `convert` and `generate` pass streams from one format to another.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np

from exactrank._support.arrays import Ids, Matrix, PerDocument
from exactrank.data.extra_columns import ExtraColumns, take_extra_columns
from exactrank.data.formats.text_column import TextColumn, rows_of
from exactrank.data.levels import Levels
from exactrank.data.precision import Offset
from exactrank.data.preferences import Preferences
from exactrank.data.ranking_data import RankingData

BLOCK_CELLS = 1 << 22  #: approximate number of cells of X in a block


@dataclass(frozen=True)
class Columns:
    """Columns of a table by their role; ``features=None`` takes every column of numbers or categories without another role."""

    query: str = "query_id"
    doc: str = "doc_id"
    relevance: str = "relevance"
    sample_weight: str = "sample_weight"
    query_weight: str = "query_weight"
    features: tuple[str, ...] | None = None
    graded: bool = True  #: whether grades are required; if not, missing grades are 0
    keep: tuple[str, ...] = ()  #: extra columns of numbers, which are not features, for measures such as ``revenue@10``


@dataclass(frozen=True)
class ReadOptions:
    """Options for reading a file; each format uses those that concern it."""

    keep_missing: bool = False  #: text: keep nan, inf and NULL as missing values
    n_features: int | None = None  #: text: the number of features, if the file may lack the last ones
    first_feature: int | None = None  #: text: the id of the first feature, 0 or 1
    columns: Columns = field(default_factory=Columns)  #: tables
    verify: bool | slice = True  #: cache: check the features and strings of all queries, of some, or of none; all else always
    threads: int | None = None


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive rows in their original order."""

    X: Matrix
    y: PerDocument
    qid: Ids
    docid: TextColumn | None = None
    comment: TextColumn | None = None
    sample_weight: PerDocument | None = None
    query_weight: PerDocument | None = None  #: one per row, equal within a query
    extra_columns: ExtraColumns = field(default_factory=dict)


@dataclass(frozen=True)
class Stream:
    """Blocks with the same features, as differences from ``offset`` if there is one; ``levels`` are those of categories."""

    feature_names: tuple[str, ...]
    blocks: Iterator[Block]
    offset: Offset | None = None
    levels: Levels = field(default_factory=dict)
    preferences: Preferences | None = None  #: pairs of rows, numbered in the order of the stream
    columns: bool = False  #: whether a cache also stores the features column by column


class Format(Protocol):
    """A file format of ranking data."""

    name: str

    def read(self, path: Path, options: ReadOptions) -> RankingData:
        """Return the content of a file."""

    def stream(self, path: Path, options: ReadOptions) -> Stream:
        """Return the content of a file as a stream of blocks."""

    def write(self, file: BinaryIO, stream: Stream) -> None:
        """Write all of ``stream``, block by block."""


def stream_of(data: RankingData) -> Stream:
    """Return the rows of ``data`` in the caller's order, so that scores for them still fit."""
    pairs = data.preferences if data.order is None or data.preferences is None else data.preferences.renumber(data.order)
    return Stream(data.feature_names, _blocks_of(data), data.offset, data.levels, pairs)


def _blocks_of(data: RankingData) -> Iterator[Block]:
    step = max(1, BLOCK_CELLS // max(1, data.n_features))
    document_of_row = None if data.order is None else np.argsort(data.order)
    for first in range(0, data.n_documents, step):
        chunk = slice(first, min(first + step, data.n_documents))
        documents = np.arange(chunk.start, chunk.stop) if document_of_row is None else document_of_row[chunk]
        rows = chunk if document_of_row is None else documents  # a slice is a view
        query = np.searchsorted(data.indptr, documents, side="right") - 1
        yield Block(
            X=data.X[rows],
            y=data.y[rows],
            qid=data.qid[query],
            docid=rows_of(data.docid, rows),
            comment=rows_of(data.comment, rows),
            sample_weight=rows_of(data.sample_weight, rows),
            query_weight=rows_of(data.query_weight, query),
            extra_columns=take_extra_columns(data.extra_columns, rows),
        )
