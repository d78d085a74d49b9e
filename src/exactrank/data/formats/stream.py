"""Data as a stream of blocks of rows, the common currency of formats: what `convert` and `generate` pass along.

A block keeps the rows in their original order, not yet grouped by query; a stream never holds more than a block or two, so data
may be larger than memory.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from exactrank._support.arrays import Ids, Matrix, PerDocument
from exactrank.data.extra_columns import ExtraColumns, take_extra_columns
from exactrank.data.formats.text_column import TextColumn, rows_of
from exactrank.data.levels import Levels
from exactrank.data.precision import Offset
from exactrank.data.preferences import Preferences
from exactrank.data.ranking_data import RankingData

#: About how many cells of X a block holds.
BLOCK_CELLS = 1 << 22


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows in the order in which they came."""

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
    """Blocks that share their features, kept as differences from ``offset`` where there is one; ``levels`` are those of categories.

    ``preferences`` number the rows as they come.
    """

    feature_names: tuple[str, ...]
    blocks: Iterator[Block]
    offset: Offset | None = None
    levels: Levels = field(default_factory=dict)
    preferences: Preferences | None = None
    columns: bool = False  #: is a cache to keep the features by column, too?


def stream_of(data: RankingData) -> Stream:
    """The rows of ``data`` in the caller's order, so that scores made for them go on fitting."""
    pairs = data.preferences if data.order is None or data.preferences is None else data.preferences.renumber(data.order)
    return Stream(data.feature_names, _blocks_of(data), data.offset, data.levels, pairs)


def _blocks_of(data: RankingData) -> Iterator[Block]:
    step = max(1, BLOCK_CELLS // max(1, data.n_features))
    where = None if data.order is None else np.argsort(data.order)
    for first in range(0, data.n_documents, step):
        near = slice(first, min(first + step, data.n_documents))
        at = np.arange(near.start, near.stop) if where is None else where[near]
        rows = near if where is None else at  # a slice is a view
        query = np.searchsorted(data.indptr, at, side="right") - 1
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
