"""Some queries of data in partitions, as data in partitions of its own: the parts of a cross-fit, for example.

Partitions are cut anew, where the wide blocks of these queries begin: so all sums over them have the bits that they would have if these
queries were all there is. A worker reads the queries that it holds from their files, as always.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from exactrank.data.ranking_data import RankingData
from exactrank.engine.engine import PARTITIONS_PER_WORKER, Partitioned, Prepare
from exactrank.engine.partitions import Partition, Piece, begins_of, concatenated

Mask = npt.NDArray[np.bool_]  #: of queries
Numbers = npt.NDArray[np.int64]


def selected(data: Partitioned, which: Mask, prepare: Prepare | None) -> Partitioned:
    """The queries of ``data`` for which ``which`` holds, in their order; each partition does ``prepare`` to its own."""
    chosen, spans = np.flatnonzero(which), list(_spans(data))
    described = replace(data.described[0], checksum=data.checksum, sizes=data.sizes[chosen], qid=data.qid[chosen], query_weight=None)
    weights = None if data.query_weight is None else data.query_weight[chosen]
    found = replace(data, partitions=(), described=(described,), prepare=prepare, query_weight=weights)
    ends = np.searchsorted(chosen, [span.first + span.queries for span in spans])
    share = -(-found.n_documents // (data.engine.workers * PARTITIONS_PER_WORKER))
    partitions = [
        Partition(
            number,
            first,
            int(found.indptr[first]),
            last - first,
            int(found.indptr[last] - found.indptr[first]),
            tuple(piece for span in spans for piece in span.holding(chosen[first:last])),
            data.partitions[0].options,
        )
        for number, (first, last) in enumerate(pairwise([*begins_of(found.indptr, ends, share), len(chosen)]))
    ]
    return replace(found, partitions=tuple(partitions))


@dataclass(frozen=True)
class _Span:
    """Queries of one file that follow each other, of which the first has the number ``first`` in the whole."""

    piece: Piece
    first: int

    @property
    def queries(self) -> int:
        return self.piece.last - self.piece.first

    def holding(self, numbers: Numbers) -> Iterator[Piece]:
        """The piece with those of ``numbers`` that lie here, where there are any."""
        own = numbers[slice(*np.searchsorted(numbers, [self.first, self.first + self.queries]))] - self.first
        if len(own):
            mask = np.zeros(own[-1] + 1 - own[0], np.bool_)
            mask[own - own[0]] = True
            bounds = self.piece.first + int(own[0]), self.piece.first + int(own[-1]) + 1
            yield replace(self.piece, first=bounds[0], last=bounds[1], chosen=None if mask.all() else np.packbits(mask).tobytes())


def _spans(data: Partitioned) -> Iterator[_Span]:
    """What the partitions of ``data`` hold of each file."""
    number, last = 0, None
    for piece in (piece for partition in data.partitions for piece in partition.pieces):
        if last is not None and (last.piece.path, last.piece.last) == (piece.path, piece.first):
            last = replace(last, piece=replace(last.piece, last=piece.last))
        else:
            if last is not None:
                yield last
            last = _Span(piece, number)
        number += piece.last - piece.first
    if last is not None:
        yield last


def in_one(data: Partitioned) -> RankingData:
    """All queries of ``data`` in this process, prepared as its partitions are."""
    parts = [partition.load() for partition in data.partitions]
    return replace(concatenated(parts if data.prepare is None else [data.prepare(part) for part in parts]), whole=None)
