"""What a worker does for a forest that grows on several machines: it holds one rank, or two where there is no other worker.

The functions here are called on the workers, in turn: `muster`, `begin`, then `grow` for each batch of trees, and `end`, which may come at
any time and makes everything else end. Between two calls the ranks wait in the memory of the worker's process, under the name of their
session.
"""

import socket
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import TypeVar

import numpy as np

from exactrank.engine.allocation import keep_freed_memory
from exactrank.engine.engine import held
from exactrank.engine.partitions import Partition, concatenated, some_queries
from exactrank.rankers.peers import Address, LostRankError, Peers, listen
from exactrank.rankers.rank import Grown, Plan, Rank
from exactrank.rankers.search_by_ranks import Numbers, Share
from exactrank.scorers.tree_table import TreeTable

A = TypeVar("A")
#: Seconds after which a session that nobody asks for any more gives its memory back, when another begins.
FORGOTTEN_AFTER = 3600.0


@dataclass(frozen=True)
class Load:
    """The partitions of some data that a rank holds, each with the number of its first document in the whole."""

    prepare: bytes
    partitions: tuple[Partition, ...]
    first_documents: tuple[int, ...]
    half: int | None = None  #: which half of their queries, where two ranks share them

    @property
    def queries(self) -> Numbers:
        """Their numbers in the whole."""
        found = np.concatenate([np.arange(each.first, each.first + each.queries) for each in self.partitions])
        return found if self.half is None else np.array_split(found, 2)[self.half]

    def share(self) -> Share:
        """The queries, loaded."""
        parts = []
        for partition in self.partitions:
            with held(partition, self.prepare) as part:
                parts.append(part.data)
        data = parts[0] if len(parts) == 1 else concatenated(parts)
        ranges = zip(self.first_documents, self.partitions, strict=True)
        documents = np.concatenate([np.arange(first, first + each.documents) for first, each in ranges])
        if self.half is None:
            return Share(data, self.queries, documents)
        own = np.array_split(np.arange(data.n_queries), 2)[self.half]
        rows = slice(int(data.indptr[own[0]]), int(data.indptr[own[-1] + 1]))
        return Share(some_queries(data, own), self.queries, documents[rows])


@dataclass(frozen=True, eq=False)
class Orders:
    """What the ranks of one worker are to do."""

    plan: Plan
    loads: dict[int, Load]  #: by rank
    addresses: tuple[Address, ...]  #: of all ranks
    key: bytes
    start: TreeTable | None  #: trees that are there
    threads: int  #: of each rank


@dataclass(eq=False)
class Crew:
    """The ranks of one session in this process."""

    listeners: list[socket.socket]
    ranks: list[Rank] = field(default_factory=list)
    peers: list[Peers] = field(default_factory=list)
    used: float = field(default_factory=time.monotonic)

    def close(self) -> None:
        """End all connections, so that everybody who waits for these ranks knows."""
        for listener in self.listeners:
            with suppress(OSError):  # it is closed
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        for each in self.peers:
            each.close()


_crews: dict[str, Crew] = {}
_registry = Lock()


def muster(session: str, host: str, count: int) -> list[Address]:
    """Make ready for ``count`` ranks; where they can be reached."""
    keep_freed_memory()
    now = time.monotonic()
    for other in [name for name, crew in list(_crews.items()) if now - crew.used > FORGOTTEN_AFTER]:
        end(other)
    listeners = [listen(host) for _ in range(count)]
    with _registry:
        _crews[session] = Crew(listeners)
    return [listener.getsockname()[:2] for listener in listeners]


def begin(session: str, orders: Orders) -> None:
    """Load the data, find the others, and make the bins."""
    crew = _crew(session)

    def rank(number: int, listener: socket.socket) -> Rank:
        share = orders.loads[number].share()
        peers = Peers(number, listener, orders.addresses, orders.key, orders.plan.limit)
        crew.peers.append(peers)
        return Rank(orders.plan, peers, share, orders.start, orders.threads)

    crew.ranks = _at_once(crew, [partial(rank, *pair) for pair in zip(orders.loads, crew.listeners, strict=True)])


def grow(session: str, count: int) -> list[Grown]:
    """Up to ``count`` trees more, by each rank of this worker."""
    crew = _crew(session)
    crew.used = time.monotonic()
    return _at_once(crew, [partial(rank.grow, count) for rank in crew.ranks])


def end(session: str) -> None:
    """Forget the session; whatever of it is under way ends soon."""
    with _registry:
        crew = _crews.pop(session, None)
    if crew is not None:
        crew.close()


def _crew(session: str) -> Crew:
    with _registry:
        if session not in _crews:
            raise LostRankError("this worker does not know of the training that it is asked for; it was started anew")
        return _crews[session]


def _at_once(crew: Crew, tasks: Sequence[Callable[[], A]]) -> list[A]:
    """All ``tasks``, each in a thread of its own; where one fails nobody waits for it."""

    def done(task: Callable[[], A]) -> A:
        try:
            return task()
        except BaseException:
            crew.close()
            raise

    with ThreadPoolExecutor(len(tasks)) as pool:
        futures = [pool.submit(done, task) for task in tasks]
        errors = [error for future in futures if (error := future.exception()) is not None]
        if errors:
            raise next((error for error in errors if not isinstance(error, LostRankError)), errors[0])
        return [future.result() for future in futures]
