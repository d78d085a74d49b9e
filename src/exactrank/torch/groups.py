"""Grouping of documents into lists of any length, by lengths, offsets, query ids or a mask.

All four become the same form (`Grouped`): documents by query, and their original positions.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypedDict, TypeVar

import numpy as np
import torch
from torch import Tensor

from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError

T = TypeVar("T")


class Grouping(TypedDict, total=False):
    """Keyword arguments that group documents by query; exactly one of them is given."""

    lengths: object  #: lengths of the lists, in order
    qid: object  #: the query of each document
    offsets: object  #: the start of each list, followed by the end of the last


def checked_groups(
    documents: int, device: torch.device, *, lengths: object = None, qid: object = None, offsets: object = None
) -> tuple[str, Tensor]:
    """Return the kind of grouping among the arguments, and its checked tensor on ``device``."""
    arguments = [(kind, value) for kind, value in (("lengths", lengths), ("qid", qid), ("offsets", offsets)) if value is not None]
    if len(arguments) != 1:
        kinds = " and ".join(kind for kind, _ in arguments) or "none"
        raise DataError(f"give exactly one of lengths=, qid= and offsets= to group the documents by query; got {kinds}")
    kind, value = arguments[0]
    groups = value if isinstance(value, Tensor) else torch.tensor(value)
    if groups.dtype.is_floating_point or groups.dtype.is_complex or groups.dtype == torch.bool:
        raise DataError(f"{kind} must be whole numbers, not {groups.dtype}")
    if groups.ndim != 1:
        raise DataError(f"{kind} must have one dimension, not the shape {tuple(groups.shape)}")
    if kind == "qid" and len(groups) != documents:
        raise DataError(f"qid has {len(groups)} entries for {documents} documents")
    return kind, groups.to(device, torch.int64)


def number_of_queries(kind: str, groups: Tensor) -> int | None:
    """Return the number of queries; None if it follows from the ids only."""
    return {"lengths": groups.shape[0], "offsets": groups.shape[0] - 1, "mask": groups.shape[0], "qid": None}[kind]


@dataclass(frozen=True, eq=False)
class Grouped:
    """Documents grouped by query. Queries without documents have no list, but a value."""

    take: Tensor | None  #: the original position of each document of the lists; None: unchanged
    lengths: Tensor  #: lengths of the lists that have documents
    rows: Tensor | None  #: the query number of each list; None: every query has a list
    queries: int
    longest: int  #: number of documents of the longest list
    query: Tensor | None  #: the query number of each document in the original order; None: by the lengths

    def numbers(self) -> Tensor:
        """Return the query number of each document in the original order."""
        if self.query is not None:
            return self.query.clone()
        rows = torch.arange(self.queries, device=self.lengths.device) if self.rows is None else self.rows
        return rows.repeat_interleave(self.lengths)


def group(kind: str, groups: Tensor, documents: int) -> Grouped:
    """Group ``documents`` documents; raise a DataError if ``groups`` are of another number."""
    take = query = None
    if kind == "qid":
        ids, query = torch.unique(groups, return_inverse=True)
        lengths = torch.bincount(query, minlength=len(ids))
        take = torch.argsort(query, stable=True)
    elif kind == "mask":
        query = torch.arange(groups.shape[0], device=groups.device).repeat_interleave(groups.shape[1])
        take = groups.reshape(-1).nonzero().reshape(-1)
        lengths = groups.sum(1)
    else:
        lengths = groups if kind == "lengths" else groups.diff()
    shortest, longest, total, first = _summary(lengths, groups)
    if kind in ("lengths", "offsets"):
        _check(kind, shortest, total, first, documents)
    rows = None if shortest > 0 else (lengths > 0).nonzero().reshape(-1)
    return Grouped(take, lengths if rows is None else lengths[rows], rows, len(lengths), longest, query)


def _summary(lengths: Tensor, groups: Tensor) -> list[int]:
    """Return the least, largest and total length, and the first of the groups, in one transfer: each waits for the device."""
    if not len(lengths):
        return [0, 0, 0, 0]
    if lengths.device.type == "cpu":
        host = lengths.numpy()
        return [int(host.min()), int(host.max()), int(host.sum()), int(groups.reshape(-1)[0])]
    return torch.stack([*lengths.aminmax(), lengths.sum(), groups.reshape(-1)[0].long()]).tolist()


def _check(kind: str, shortest: int, total: int, first: int, documents: int) -> None:
    if kind == "offsets" and first != 0:
        raise DataError(f"offsets must begin with 0, not {first}")
    if shortest < 0:
        raise DataError(f"{kind} contain a list of {shortest} documents; give numbers from 0 on")
    if total != documents:
        raise DataError(f"{kind} are of {total} documents in all, but there are {documents} scores")


def data_of(grades: Tensor, lists: Grouped) -> RankingData:
    """Return data with ``grades``, ordered by list, and no features; `RankingData.from_arrays` takes several times as long."""
    y, lengths = grades.to("cpu", torch.float64).numpy(), lists.lengths.cpu().numpy()
    indptr = np.zeros(len(lengths) + 1, np.int64)
    lengths.cumsum(out=indptr[1:])
    return RankingData(np.empty((len(y), 0), np.float32), y, indptr, np.arange(len(lengths)), ())


class TensorCache(Generic[T]):
    """Cache of results by the contents of tensors: training uses the same grades again and again.

    A result is computed from private copies, and is returned again only for tensors with the same bits. Neither the address of a
    tensor nor its version shows that it has changed: NumPy, ``.data`` and other libraries write to its memory unnoticed.
    """

    SIZE = 4

    def __init__(self) -> None:
        self._entries: tuple[tuple[tuple[Hashable, ...], tuple[Tensor, ...], T], ...] = ()

    def of(self, tensors: tuple[Tensor, ...], compute: Callable[[*tuple[Tensor, ...]], T], *key: Hashable) -> T:
        """Return ``compute(*tensors)``, from the cache if ``key`` and all bits of the tensors are equal."""
        key = *key, *((tensor.shape, tensor.dtype, tensor.device) for tensor in tensors)
        for entry_key, copies, result in self._entries:
            if entry_key == key and all(map(_same_bits, tensors, copies)):
                return result
        with torch.inference_mode(False):  # inference tensors could not be used outside of inference mode
            copies = tuple(tensor.detach().clone(memory_format=torch.contiguous_format) for tensor in tensors)
            result = compute(*copies)
        self._entries = (key, copies, result), *self._entries[: self.SIZE - 1]
        return result

    def clear(self) -> None:
        """Forget all results."""
        self._entries = ()


#: Integer types by size in bytes. Compared as integers, equal bits are equal, which NaNs are not.
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _same_bits(ours: Tensor, theirs: Tensor) -> bool:
    """Return whether two tensors of one shape and type hold the same bits; on a GPU this waits for the device."""
    bits = _INTEGERS[ours.element_size()]
    return torch.equal(ours.detach().contiguous().view(bits), theirs.view(bits))
