"""Backends: who answers a question for each part of data in several files, where the part lies.

    answers = backend.ask(data, question),    one per part, in the order of the parts                           (1)

`LocalBackend` answers in this process. Those of `exactrank.backends` answer elsewhere; nothing that computes imports them.
"""

import pickle
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import cloudpickle

from exactrank.data.dataset import Part, Question
from exactrank.data.shards import Partition

if TYPE_CHECKING:
    from exactrank.data.sharded import ShardedData

A = TypeVar("A")
B = TypeVar("B")
#: Parts are forgotten that nobody has asked about for this number of seconds.
FORGOTTEN_AFTER = 3600.0


class Backend(ABC):
    """Who answers for data in several files."""

    documents_per_round: ClassVar[int] = 0  #: a question takes a worker as long as work on this number of documents, whatever is asked

    @property
    @abstractmethod
    def workers(self) -> int:
        """How many may answer at the same time."""

    @property
    def status(self) -> str:
        """What a progress bar says of it; empty if there is nothing to say."""
        return ""

    @abstractmethod
    def map(self, function: Callable[[B], A], items: Sequence[B]) -> list[A]:
        """Return ``function`` of each of ``items``, in their order."""

    @abstractmethod
    def ask(self, data: "ShardedData", question: Question[A, Any]) -> list[A]:
        """Return the answer of each part of ``data``, (1)."""

    @abstractmethod
    def forget(self, data: "ShardedData") -> None:
        """Give back the memory of ``data``, about which nobody will ask any more."""


class LocalBackend(Backend):
    """The backend of this process: parts one after the other, each with the threads that the question asks for."""

    @property
    def workers(self) -> int:
        """This process alone."""
        return 1

    def map(self, function: Callable[[B], A], items: Sequence[B]) -> list[A]:
        """Return ``function`` of one item after the other."""
        return [function(item) for item in items]

    def ask(self, data: "ShardedData", question: Question[A, Any]) -> list[A]:
        """Ask one part after the other."""
        answers = []
        for partition in data.partitions:
            with held(partition, data.key) as part:
                answers.append(question.ask(part))
        return answers

    def forget(self, data: "ShardedData") -> None:
        """Give back the memory."""
        forget_parts([(partition, data.key) for partition in data.partitions])

    def __repr__(self) -> str:
        return "LocalBackend()"


@dataclass(frozen=True)
class Round:
    """What a worker is asked at once: a question for some partitions, packed."""

    key: bytes  #: of the data, which says how partitions are prepared
    partitions: tuple[Partition, ...]
    question: bytes


def packed_answers(asked: Round) -> bytes:
    """Return the answers of the partitions of ``asked``, each with the number of its partition, packed."""
    question: Question[Any, Any] = pickle.loads(asked.question)
    answers = []
    for partition in asked.partitions:
        with held(partition, asked.key) as part:
            answers.append((partition.number, question.ask(part)))
    packed: bytes = cloudpickle.dumps(answers)
    return packed


class _Holder:
    """A part that this process holds, for one question at a time."""

    def __init__(self) -> None:
        self.lock, self.used = Lock(), time.monotonic()
        self.part: Part | None = None


_held: dict[tuple[Partition, bytes], _Holder] = {}
_registry = Lock()


@contextmanager
def held(partition: Partition, key: bytes) -> Iterator[Part]:
    """Yield the part that this process holds, loaded if it is not there yet; parts that nobody has used for long are forgotten."""
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
        yield holder.part


def forget_parts(names: Sequence[tuple[Partition, bytes]]) -> None:
    """Forget these partitions, each with the key of its data."""
    with _registry:
        for name in names:
            _held.pop(name, None)
