"""Backends: who answers a question for each part of data in several files, where the part lies.

    answers = backend.ask(data, question),    one per part, in the order of the parts                           (1)

`LocalBackend` answers in this process. Those of `exactrank.backends` answer elsewhere; nothing that computes imports them. Data in one file
is one part in this process; a backend may have other kernels for it, such as those of a GPU.
"""

import atexit
import pickle
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import cloudpickle

from exactrank.data.dataset import Kernels, Part, Question
from exactrank.data.shards import Partition

if TYPE_CHECKING:
    from exactrank.data.sharded import ShardedData

A = TypeVar("A")
B = TypeVar("B")
#: Parts are forgotten that nobody has asked about for this number of seconds.
FORGOTTEN_AFTER = 3600.0


class Backend(ABC):
    """Answers questions for each part of a data set in several files; a backend of your own needs only `ask`."""

    kernels: ClassVar[Kernels] = {}  #: what data in one file is computed with in place of the kernels of this process
    documents_per_round: ClassVar[int] = 0  #: a question takes a worker as long as work on this number of documents, whatever is asked

    @abstractmethod
    def ask(self, data: "ShardedData", question: Question[A, Any]) -> list[A]:
        """Return the answer of each part of ``data``, in the order of ``data.partitions``, (1)."""

    @property
    def workers(self) -> int:
        """Number of workers that may answer at the same time."""
        return 1

    @property
    def status(self) -> str:
        """Text for a progress bar; empty if there is nothing to say."""
        return ""

    def map(self, function: Callable[[B], A], items: Sequence[B]) -> list[A]:
        """Return ``function`` of each of ``items``, in their order."""
        return [function(item) for item in items]

    def forget(self, data: "ShardedData") -> None:
        """Release the memory of ``data``, about which nobody will ask again."""
        forget_parts([(partition, data.key) for partition in data.partitions])


class LocalBackend(Backend):
    """The backend of this process: parts one after the other, each with the threads that the question asks for."""

    def ask(self, data: "ShardedData", question: Question[A, Any]) -> list[A]:
        """Ask one part after the other."""
        return [answer(partition, data.key, question) for partition in data.partitions]

    def __repr__(self) -> str:
        return "LocalBackend()"


@dataclass(frozen=True)
class Round:
    """What a worker is asked at once: a question for some partitions, packed."""

    key: bytes  #: of the data, which says how partitions are prepared
    partitions: tuple[Partition, ...]
    question: bytes


def answer_round(asked: Round) -> bytes:
    """Return the answers of the partitions of ``asked``, each with the number of its partition, packed."""
    question: Question[Any, Any] = pickle.loads(asked.question)
    packed: bytes = cloudpickle.dumps([(partition.number, answer(partition, asked.key, question)) for partition in asked.partitions])
    return packed


class _Holder:
    """A part that this process holds, for one question at a time."""

    def __init__(self) -> None:
        self.lock, self.used = Lock(), time.monotonic()
        self.part: Part | None = None


_held: dict[tuple[Partition, bytes], _Holder] = {}
atexit.register(_held.clear)  # parts hold objects of the core, which reports those that outlive it
_registry = Lock()


def answer(partition: Partition, key: bytes, question: Question[A, Any]) -> A:
    """Return the answer of ``partition`` of the data with this ``key``.

    This process loads the part when it is first asked, and keeps it until it is told to forget it or nobody has asked for an hour.
    """
    name, now = (partition, key), time.monotonic()
    with _registry:
        for other in [other for other, holder in _held.items() if now - holder.used > FORGOTTEN_AFTER]:
            del _held[other]
        holder = _held.setdefault(name, _Holder())
        holder.used = now
    with holder.lock:
        if holder.part is None:
            prepare = pickle.loads(key)
            holder.part = Part(prepare(partition.load()), partition.first, False, partition.first_document)
        return question.ask(holder.part)


def forget_parts(names: Sequence[tuple[Partition, bytes]]) -> None:
    """Forget these partitions, each with the key of its data."""
    with _registry:
        for name in names:
            _held.pop(name, None)
