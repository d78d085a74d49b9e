"""The engine of a Dask cluster: one task per worker and round, and partitions that workers load themselves.

A task has a worker on which its partitions lie, but may run anywhere: where that worker is lost, Dask gives the task to another, which
loads the partitions from their files. Answers carry the numbers of their partitions, so nothing depends on who gave them. A worker that
sends no sign of life for a while is passed over, and the others answer for it. Every wait has a limit and says what it waits for.

This is the only file that imports Dask.
"""

import os
import pickle
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import cloudpickle

from exactrank.engine.engine import Engine, Partitioned, Question, Round, answered, forgotten
from exactrank.engine.partitions import Partition
from exactrank.errors import EngineError, ExactRankError, SettingError

A = TypeVar("A")
B = TypeVar("B")
RETRIES = 3
WATCH = 2.0  #: seconds between two looks at the workers


class DaskEngine(Engine):
    """Answers questions on the workers of ``client``, a ``dask.distributed.Client``.

    A worker without a sign of life for ``silence`` seconds is passed over; a round may take ``limit`` seconds. ``sent`` and ``received``
    count bytes, ``rounds`` how often all workers were asked.

    Models do not depend on the number of workers, on how the data is cut, or on workers that are lost on the way.
    """

    def __init__(self, client: Any, *, silence: float = 30.0, limit: float = 3600.0) -> None:
        if not silence > 0 or not limit > 0:
            raise SettingError(f"silence and limit are numbers of seconds above 0, got {silence} and {limit}")
        self.client, self.silence, self.limit = client, silence, limit
        self.sent = self.received = self.rounds = 0
        self._homes: dict[Partition, str] = {}
        self._seen: dict[str, tuple[float, float]] = {}  #: the scheduler's last sign of life of each worker, and when we first saw that

    def __repr__(self) -> str:
        return f"DaskEngine({self.address!r})"

    def __deepcopy__(self, memo: object) -> "DaskEngine":
        """Itself: a copy of a ranker uses the same cluster."""
        return self

    @property
    def address(self) -> str:
        """Of the scheduler."""
        return str(getattr(self.client.scheduler, "address", self.client))

    @property
    def told(self) -> str:
        """How many workers there are, and what has gone to them and come back, for a line of progress."""
        return f"{len(self._seen)} workers, {(self.sent + self.received) / 1e6:.1f} MB"

    @property
    def workers(self) -> int:
        """How many there are."""
        return len(self.alive())

    def alive(self) -> list[str]:
        """The addresses of the workers that show signs of life, in order; an error where there are none within the time of ``silence``."""
        begun = time.monotonic()
        while True:
            self._check_scheduler()
            found, now = self.client.scheduler_info()["workers"], time.monotonic()
            for address, facts in found.items():
                if self._seen.get(address, (None,))[0] != facts["last_seen"]:
                    self._seen[address] = facts["last_seen"], now
            living = sorted(address for address in found if now - self._seen[address][1] <= self.silence)
            if living:
                return living
            if now - begun > self.silence:
                raise EngineError(f"no worker of {self.address} has shown a sign of life for {self.silence:g} s; start workers there")
            time.sleep(min(WATCH, self.silence) / 4)

    def _check_scheduler(self) -> None:
        """Wait until the scheduler can be reached, but not for ever."""
        begun = time.monotonic()
        while self.client.status != "running":
            if time.monotonic() - begun > self.silence or self.client.status in ("closed", "closing"):
                raise EngineError(
                    f"the scheduler at {self.address} is gone; start it again, and go on from the checkpoint (resume, or --resume)"
                )
            time.sleep(0.1)

    def map(self, function: Callable[[B], A], items: Sequence[B]) -> list[A]:
        """``function`` of each of ``items``: each worker gets its share of them in one task."""
        alive = self.alive()
        shares = [list(range(len(items)))[number :: len(alive)] for number in range(len(alive))]
        what = f"{len(items):,} results of {getattr(function, '__name__', type(function).__name__)}"
        tasks = [
            _Task(address, partial(_mapped, function, [items[i] for i in share]), what)
            for address, share in zip(alive, shares, strict=True)
            if share
        ]
        found: dict[int, A] = {}
        for share, answers in zip(shares, self.run(tasks), strict=False):
            found |= dict(zip(share, answers, strict=True))
        return [found[number] for number in range(len(items))]

    def ask(self, data: Partitioned, question: Question[A]) -> list[A]:
        """What each partition of ``data`` answers, in order: one task per worker."""
        asked = cloudpickle.dumps(question)
        tasks = [
            _Task(
                address, partial(_answered, Round(data.key, tuple(partitions), asked)), f"{type(question).__name__} of {_paths(partitions)}"
            )
            for address, partitions in self.homes(data.partitions).items()
        ]
        self.rounds += 1
        self.sent += len(asked) * len(tasks)
        answers: dict[int, A] = {}
        for packed in self.run(tasks):
            self.received += len(packed)
            answers |= dict(pickle.loads(packed))
        return [answers[partition.number] for partition in data.partitions]

    def forget(self, data: Partitioned) -> None:
        """Workers give back the memory of ``data``; those that cannot be reached keep it until nobody has asked for an hour."""
        keys = [(partition, data.key) for partition in data.partitions]
        if self.client.status == "running":
            self.run([_Task(address, partial(forgotten, keys), "partitions to be forgotten") for address in self.alive()])

    def homes(self, partitions: Iterable[Partition]) -> dict[str, list[Partition]]:
        """Which worker answers for which of ``partitions``: each stays where it is while its worker lives, and shares are about equal."""
        alive = self.alive()
        homes: dict[str, list[Partition]] = {address: [] for address in alive}
        homeless: list[Partition] = []
        for partition in partitions:
            homes.get(self._homes.get(partition, ""), homeless).append(partition)
        load = {address: sum(partition.documents for partition in own) for address, own in homes.items()}

        def settle(partition: Partition) -> None:
            least = min(alive, key=lambda address: load[address])
            homes[least].append(partition)
            load[least] += partition.documents

        for partition in homeless:
            settle(partition)
        while True:  # a worker that came later takes from the one with the most, while that makes the most less
            most = max(alive, key=lambda address: load[address])
            least = min(alive, key=lambda address: load[address])
            smallest = min(homes[most], key=lambda partition: partition.documents, default=None)
            if smallest is None or load[least] + smallest.documents >= load[most]:
                break
            homes[most].remove(smallest)
            load[most] -= smallest.documents
            settle(smallest)
        for address, own in homes.items():
            self._homes |= dict.fromkeys(own, address)
        return {address: sorted(own, key=lambda partition: partition.number) for address, own in homes.items() if own}

    def run(self, tasks: Sequence["_Task"]) -> list[Any]:
        """The results of ``tasks``, in order; a task whose worker falls silent is given to another."""
        from distributed import wait

        begun = time.monotonic()
        futures = [self._submitted(task, task.worker) for task in tasks]
        where = [task.worker for task in tasks]
        try:
            while any(not future.done() for future in futures):
                try:
                    with self.client.as_current():
                        wait(futures, timeout=WATCH)
                except TimeoutError:
                    self._look_after(tasks, futures, where, begun)
            return self._gathered(futures)
        except (CancelledError, OSError, RuntimeError) as error:
            if isinstance(error, ExactRankError):
                raise
            self._check_scheduler()
            waiting = ", ".join(task.what for task in tasks)
            raise EngineError(f"the workers of {self.address} could not give {waiting}: {error or type(error).__name__}") from error
        finally:
            for future in futures:
                future.release()

    def _submitted(self, task: "_Task", worker: str) -> Any:
        return self.client.submit(task.work, workers=[worker], allow_other_workers=True, retries=RETRIES, pure=False)

    def _gathered(self, futures: Sequence[Any]) -> list[Any]:
        for future in futures:
            if future.status == "error":
                raise future.exception()
        found: list[Any] = self.client.sync(
            partial(self.client.gather, asynchronous=True), futures, direct=True, callback_timeout=self.limit
        )
        return found

    def _look_after(self, tasks: Sequence["_Task"], futures: list[Any], where: list[str], begun: float) -> None:
        """Give tasks of silent workers to others; raise where the limit is over."""
        alive = self.alive()
        for number, (task, future) in enumerate(zip(tasks, futures, strict=True)):
            if future.done():
                continue
            if time.monotonic() - begun > self.limit:
                raise EngineError(f"{where[number]} has not given {task.what} within {self.limit:g} s; look at it, or give a longer limit")
            if where[number] not in alive:
                future.release()
                where[number] = alive[number % len(alive)]
                futures[number] = self._submitted(task, where[number])


@dataclass(frozen=True)
class _Task:
    """Something to do on a worker, and in words what it gives."""

    worker: str
    work: Callable[[], Any]
    what: str


def _mapped(function: Callable[[B], A], items: Sequence[B]) -> list[A]:
    return [function(item) for item in items]


def _answered(asked: Round) -> bytes:
    from distributed import get_worker

    return answered(asked, f"worker {get_worker().address} (process {os.getpid()})")


def _paths(partitions: Sequence[Partition]) -> str:
    paths = list(dict.fromkeys(piece.path for partition in partitions for piece in partition.pieces))
    return paths[0] + (f" and {len(paths) - 1} other files" if len(paths) > 1 else "")
