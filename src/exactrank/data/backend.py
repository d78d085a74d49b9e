"""Backends, which answer a question for each part of data in several files, where the part lies.

    answers = backend.ask(data, question),    one per part, in the order of the parts                           (1)

`LocalBackend` answers in this process. Those of `exactrank.backends` answer elsewhere; code that computes does not import them. Data in one
file is one part in this process; a backend may have its own kernels for it, such as those of a GPU.
"""

import atexit
import pickle
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, ClassVar, TypeVar

from exactrank._support.libraries import library
from exactrank.data.dataset import Kernels, Part, Question
from exactrank.data.shards import Partition

if TYPE_CHECKING:
    from exactrank.data.sharded import ShardedData

A = TypeVar("A")
B = TypeVar("B")
IDLE_SECONDS = 3600.0  #: after which an unused part is released


class Backend(ABC):
    """Base of backends, which answer questions for each part of a dataset; a new backend needs only `ask`."""

    kernels: ClassVar[Kernels] = {}  #: replace the kernels of this process for data in one file
    documents_per_round: ClassVar[int] = 0  #: fixed cost of a question per worker, as documents whose computation takes as long

    @abstractmethod
    def ask(self, data: "ShardedData", question: Question[A, object]) -> list[A]:
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
        """Release the memory of ``data``, which will not be asked again."""
        forget_parts([(partition, data.key) for partition in data.partitions])


class LocalBackend(Backend):
    """Backend of this process, which asks one part after the other, each with the threads of the question."""

    def ask(self, data: "ShardedData", question: Question[A, object]) -> list[A]:
        return [answer(partition, data.key, question) for partition in data.partitions]

    def __repr__(self) -> str:
        return "LocalBackend()"


@dataclass(frozen=True)
class Round:
    """Message to a worker: a pickled question for some partitions."""

    key: bytes  #: of the data: the pickled preparation of its partitions
    partitions: tuple[Partition, ...]
    question: bytes


def answer_round(message: Round) -> bytes:
    """Return the pickled answers of the partitions of ``message``, each with the number of its partition."""
    question: Question[object, object] = pickle.loads(message.question)
    answers = [(partition.number, answer(partition, message.key, question)) for partition in message.partitions]
    return bytes(library("cloudpickle", "clusters", "dask").dumps(answers))


class _Holder:
    """A part in this process, which answers one question at a time."""

    def __init__(self) -> None:
        self.lock, self.used = Lock(), time.monotonic()
        self.part: Part | None = None


_holders: dict[tuple[Partition, bytes], _Holder] = {}
atexit.register(_holders.clear)  # parts hold objects of the core, which reports a leak at exit
_registry = Lock()


def answer(partition: Partition, key: bytes, question: Question[A, object]) -> A:
    """Return the answer of ``partition`` of the data with this ``key``.

    This process loads the part for its first question, and keeps it until `forget_parts` or until it was not used for an hour.
    """
    name, now = (partition, key), time.monotonic()
    with _registry:
        for idle in [idle for idle, holder in _holders.items() if now - holder.used > IDLE_SECONDS]:
            del _holders[idle]
        holder = _holders.setdefault(name, _Holder())
        holder.used = now
    with holder.lock:
        if holder.part is None:
            prepare = pickle.loads(key)
            holder.part = Part(prepare(partition.load()), partition.first, False, partition.first_document)
        return question.ask(holder.part)


def forget_parts(names: Sequence[tuple[Partition, bytes]]) -> None:
    """Release the parts of these partitions, each named with the key of its data."""
    with _registry:
        for name in names:
            _holders.pop(name, None)
