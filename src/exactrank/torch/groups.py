"""Which documents belong together: lists of any length, given by their lengths, by offsets, by query ids or by a mask.

Whatever is given becomes one form (`Grouped`): documents by query, and the way back.
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
    """Which documents belong together, in one of these ways."""

    lengths: object  #: of the lists, in order
    qid: object  #: the query of each document
    offsets: object  #: where each list begins, and at last where the last one ends


def given(
    documents: int, device: torch.device, *, lengths: object = None, qid: object = None, offsets: object = None
) -> tuple[str, Tensor]:
    """The one way that was given, with its tensor on ``device``."""
    named = [(kind, value) for kind, value in (("lengths", lengths), ("qid", qid), ("offsets", offsets)) if value is not None]
    if len(named) != 1:
        got = " and ".join(kind for kind, _ in named) or "none"
        raise DataError(f"say in one way which documents belong together: lengths=, qid= or offsets=; got {got}")
    kind, value = named[0]
    groups = value if isinstance(value, Tensor) else torch.tensor(value)
    if groups.dtype.is_floating_point or groups.dtype.is_complex or groups.dtype == torch.bool:
        raise DataError(f"{kind} must be whole numbers, not {groups.dtype}")
    if groups.ndim != 1:
        raise DataError(f"{kind} must have one dimension, not the shape {tuple(groups.shape)}")
    if kind == "qid" and len(groups) != documents:
        raise DataError(f"qid has {len(groups)} entries for {documents} documents")
    return kind, groups.to(device, torch.int64)


def number_of_queries(kind: str, groups: Tensor) -> int | None:
    """How many queries there are; None where only the ids tell."""
    return {"lengths": groups.shape[0], "offsets": groups.shape[0] - 1, "mask": groups.shape[0], "qid": None}[kind]


@dataclass(frozen=True, eq=False)
class Grouped:
    """Documents by query. Queries without documents have no list, but a value."""

    take: Tensor | None  #: where each document was, by its place now; None: where it is
    lengths: Tensor  #: of the lists that have documents
    rows: Tensor | None  #: the number of the query of each list; None: its own
    queries: int
    longest: int  #: number of documents of the longest list
    query: Tensor | None  #: the number of the query of each document as given; None: by the lengths

    def numbers(self) -> Tensor:
        """The number of the query of each document as given."""
        if self.query is not None:
            return self.query.clone()
        rows = torch.arange(self.queries, device=self.lengths.device) if self.rows is None else self.rows
        return rows.repeat_interleave(self.lengths)


def grouped(kind: str, groups: Tensor, documents: int) -> Grouped:
    """The lists of ``documents`` documents; a DataError where the groups are of another number."""
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
    """The least, largest and total length, and the first of the groups: asked at once, since each answer waits for the device."""
    if not len(lengths):
        return [0, 0, 0, 0]
    if lengths.device.type == "cpu":
        own = lengths.numpy()
        return [int(own.min()), int(own.max()), int(own.sum()), int(groups.reshape(-1)[0])]
    return torch.stack([*lengths.aminmax(), lengths.sum(), groups.reshape(-1)[0].long()]).tolist()


def _check(kind: str, shortest: int, total: int, first: int, documents: int) -> None:
    if kind == "offsets" and first != 0:
        raise DataError(f"offsets must begin with 0, not {first}")
    if shortest < 0:
        raise DataError(f"{kind} hold a list of {shortest} documents")
    if total != documents:
        raise DataError(f"{kind} are of {total} documents in all, but there are {documents} scores")


def data_of(grades: Tensor, lists: Grouped) -> RankingData:
    """The ``grades`` of the documents by list, without features; `RankingData.from_arrays` takes several times as long."""
    y, lengths = grades.to("cpu", torch.float64).numpy(), lists.lengths.cpu().numpy()
    indptr = np.zeros(len(lengths) + 1, np.int64)
    lengths.cumsum(out=indptr[1:])
    return RankingData(np.empty((len(y), 0), np.float32), y, indptr, np.arange(len(lengths)), ())


class TensorCache(Generic[T]):
    """Results computed from tensors, for the next time that the same contents are given: training asks of the same grades again and again.

    A result is computed from private copies, and is returned again only for tensors with the same bits as those. Neither the address of a
    tensor nor its version shows that it was changed: NumPy, ``.data`` and other libraries write to its memory unnoticed.
    """

    SIZE = 4

    def __init__(self) -> None:
        self._entries: tuple[tuple[tuple[Hashable, ...], tuple[Tensor, ...], T], ...] = ()

    def of(self, tensors: tuple[Tensor, ...], compute: Callable[[*tuple[Tensor, ...]], T], *key: Hashable) -> T:
        """The result of ``compute`` for ``tensors``; results for another ``key`` are others."""
        key = *key, *((tensor.shape, tensor.dtype, tensor.device) for tensor in tensors)
        for known_key, copies, result in self._entries:
            if known_key == key and all(map(_same_bits, tensors, copies)):
                return result
        with torch.inference_mode(False):  # whose tensors could not be used outside of it
            copies = tuple(tensor.detach().clone(memory_format=torch.contiguous_format) for tensor in tensors)
            result = compute(*copies)
        self._entries = (key, copies, result), *self._entries[: self.SIZE - 1]
        return result

    def clear(self) -> None:
        """Forget all."""
        self._entries = ()


#: Integers by the number of their bytes: as such equal bits are equal, which NaN is not.
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _same_bits(ours: Tensor, theirs: Tensor) -> bool:
    """Do two tensors of one shape and type hold the same bits? On a GPU the answer is waited for."""
    bits = _INTEGERS[ours.element_size()]
    return torch.equal(ours.detach().contiguous().view(bits), theirs.view(bits))
