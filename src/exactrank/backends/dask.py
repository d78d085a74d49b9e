"""The backend of a Dask cluster: one task per worker and round, and partitions that workers load themselves.

A task has a worker on which its partitions lie, but may run anywhere: where that worker is lost, Dask gives the task to another, which
loads the partitions from their files. Answers carry the numbers of their partitions, so nothing depends on who gave them. A worker that
sends no sign of life for a while is passed over, and the others answer for it. Every wait has a limit and says what it waits for.

Work travels packed, as bytes that the worker unpacks within the task: one without exactrank would die of a task that it cannot read, and
one of another version says so before it unpacks the rest.

Only this file and `exactrank.backends.local_cluster` import Dask.
"""

import ctypes
import errno
import os
import pickle
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeVar

import cloudpickle

import exactrank
from exactrank.data.backend import Backend, Round, answer_round, forget_parts
from exactrank.data.dataset import Question
from exactrank.data.sharded import ShardedData
from exactrank.data.shards import Partition
from exactrank.errors import EngineError, ExactRankError, IncompatibleError, SettingError

A = TypeVar("A")
B = TypeVar("B")
WATCH = 2.0  #: seconds between two checks of the workers
#: The parameters M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of glibc: how many freed bytes are kept, and up to which size arrays use them.
KEPT, MAPPED = (-1, 1 << 28), (-3, 1 << 25)
GO_ON = "start it again, and go on from the checkpoint (resume, or --resume)"


class DaskBackend(Backend):
    """Answers questions on the workers of ``client``, a ``dask.distributed.Client``.

    A worker without a sign of life for ``silence`` seconds is passed over; a round may take ``limit`` seconds. ``sent`` and ``received``
    count bytes, ``rounds`` how often all workers were asked.

    Models do not depend on the number of workers, on how the data is cut, or on workers that are lost on the way.
    """

    documents_per_round = 250_000

    def __init__(self, client: Any, *, silence: float = 30.0, limit: float = 3600.0) -> None:
        if not silence > 0 or not limit > 0:
            raise SettingError(f"silence and limit are numbers of seconds above 0, got {silence} and {limit}")
        self.client, self.silence, self.limit = client, silence, limit
        self.address = str(getattr(client.scheduler, "address", client))  #: of the scheduler
        self.sent = self.received = self.rounds = 0
        self._living = 0  #: workers, when they were last looked at
        self._homes: dict[Partition, str] = {}
        self._seen: dict[str, tuple[float, float]] = {}  #: the scheduler's last sign of life of each worker, and when we first saw that

    def __repr__(self) -> str:
        return f"DaskBackend({self.address!r})"

    def __deepcopy__(self, memo: object) -> "DaskBackend":
        """Itself: a copy of a ranker uses the same cluster."""
        return self

    @property
    def status(self) -> str:
        """The number of workers and of bytes that were sent and received, for a line of progress."""
        return f"{self._living} worker{'s' * (self._living != 1)}, {(self.sent + self.received) / 1e6:.1f} MB"

    @property
    def workers(self) -> int:
        """The number of workers that show signs of life."""
        return len(self.alive())

    def alive(self) -> list[str]:
        """Return the addresses of the workers that show signs of life, in order; an error if there are none for ``silence`` seconds."""
        start = time.monotonic()
        while True:
            facts, now = self.facts(), time.monotonic()
            self._seen = {address: (fact["last_seen"], self._since(address, fact["last_seen"], now)) for address, fact in facts.items()}
            living = sorted(address for address in facts if now - self._seen[address][1] <= self.silence)
            working = [address for address in living if facts[address]["status"] != "paused"]
            if working:
                self._living = len(working)
                return working
            if now - start > self.silence:
                if living:
                    raise EngineError(
                        f"all workers of {self.address} are paused, since their memory is nearly full; start more of them, or give them a"
                        " larger --memory-limit (0 is none: files that are mapped count, and need no memory of their own)"
                    )
                raise EngineError(f"no worker of {self.address} has shown a sign of life for {self.silence:g} s; start workers there")
            time.sleep(min(WATCH, self.silence) / 4)

    def _since(self, address: str, last_seen: float, now: float) -> float:
        """Return when this process first saw this sign of life: its clock and the scheduler's may differ."""
        before, since = self._seen.get(address, (last_seen, now))
        return since if before == last_seen else now

    def facts(self) -> dict[str, Any]:
        """Return the scheduler's facts about its workers, by address."""
        until = time.monotonic() + self.silence
        while True:
            self._check_scheduler()
            try:
                identity = self.client.sync(self.client.scheduler.identity, n_workers=-1, callback_timeout=self.silence)
                return dict(identity["workers"])
            except (OSError, AttributeError) as error:  # the connection has just been lost, and the client will notice
                if isinstance(error, TimeoutError) or time.monotonic() > until:
                    how = f"has not answered for {self.silence:g} s" if self.client.status == "running" else "is gone"
                    raise EngineError(f"the scheduler at {self.address} {how}; {GO_ON}") from error
                time.sleep(0.1)

    def _check_scheduler(self) -> None:
        """Wait until the scheduler can be reached, for ``silence`` seconds at most."""
        start = time.monotonic()
        while self.client.status != "running":
            if time.monotonic() - start > self.silence or self.client.status in ("closed", "closing"):
                raise EngineError(f"the scheduler at {self.address} is gone; {GO_ON}")
            time.sleep(0.1)

    def map(self, function: Callable[[B], A], items: Sequence[B]) -> list[A]:
        """Return ``function`` of each of ``items``: each worker gets its share of them in one task."""
        alive = self.alive()
        shares = [list(range(len(items)))[number :: len(alive)] for number in range(len(alive))]
        what = f"{len(items):,} results of {getattr(function, '__name__', type(function).__name__)}"
        tasks = [
            _Task(address, partial(_map, function, [items[i] for i in share]), what)
            for address, share in zip(alive, shares, strict=True)
            if share
        ]
        results: dict[int, A] = {}
        for share, answers in zip(shares, self.run(tasks), strict=False):
            results |= dict(zip(share, answers, strict=True))
        return [results[number] for number in range(len(items))]

    def ask(self, data: ShardedData, question: Question[A, object]) -> list[A]:
        """Return the answer of each partition of ``data``, in order: one task per worker."""
        packed_question = cloudpickle.dumps(question)
        tasks = [
            _Task(
                address,
                partial(_answers, Round(data.key, tuple(partitions), packed_question)),
                f"{type(question).__name__} of {_paths(partitions)}",
            )
            for address, partitions in self.homes(data.partitions).items()
        ]
        self.rounds += 1
        self.sent += len(packed_question) * len(tasks)
        answers: dict[int, A] = {}
        for packed in self.run(tasks):
            self.received += len(packed)
            answers |= dict(pickle.loads(packed))
        return [answers[partition.number] for partition in data.partitions]

    def forget(self, data: ShardedData) -> None:
        """Give back the memory of ``data`` on workers; those that cannot be reached keep it until nobody has asked for an hour."""
        keys = [(partition, data.key) for partition in data.partitions]
        if self.client.status == "running":
            with suppress(EngineError):  # nothing is lost by it but memory, for a while
                self.run([_Task(address, partial(forget_parts, keys), "partitions to be forgotten") for address in self.alive()])

    def homes(self, partitions: Iterable[Partition]) -> dict[str, list[Partition]]:
        """Return the partitions of each worker: each stays where it is while its worker lives, and shares are about equal."""
        alive = self.alive()
        homes: dict[str, list[Partition]] = {address: [] for address in alive}
        homeless: list[Partition] = []
        for partition in partitions:
            homes.get(self._homes.get(partition, ""), homeless).append(partition)
        load = {address: sum(partition.documents for partition in share) for address, share in homes.items()}

        def settle(partition: Partition) -> None:
            least = min(alive, key=lambda address: load[address])
            homes[least].append(partition)
            load[least] += partition.documents

        for partition in homeless:
            settle(partition)
        while True:  # a worker that came later takes from the one with the most, while that makes the most less
            busiest = max(alive, key=lambda address: load[address])
            least = min(alive, key=lambda address: load[address])
            smallest = min(homes[busiest], key=lambda partition: partition.documents, default=None)
            if smallest is None or load[least] + smallest.documents >= load[busiest]:
                break
            homes[busiest].remove(smallest)
            load[busiest] -= smallest.documents
            settle(smallest)
        for address, share in homes.items():
            self._homes |= dict.fromkeys(share, address)
        return {address: sorted(share, key=lambda partition: partition.number) for address, share in homes.items() if share}

    def run(self, tasks: Sequence["_Task"]) -> list[Any]:
        """Return the results of ``tasks``, in order; a task whose worker falls silent is given to another."""
        start, patience = time.monotonic(), self.silence
        where = [task.worker for task in tasks]
        futures = [self.submit(task.work, task.worker) for task in tasks]
        try:
            while True:
                if not self._wait(futures):
                    self._look_after(tasks, futures, where, start)
                    continue
                for task, future in zip(tasks, futures, strict=True):
                    if future.status == "error":
                        raise self._task_error(task, future.exception())
                with suppress(TimeoutError):
                    return self.gather(futures, patience)
                patience *= 2  # a worker fell silent before it handed over what it had, or there is much to hand over
                self._look_after(tasks, futures, where, start, again=True)
        except (CancelledError, OSError, RuntimeError) as error:
            if isinstance(error, ExactRankError):
                raise
            self._check_scheduler()
            waiting = ", ".join(task.what for task in tasks)
            raise EngineError(f"the workers of {self.address} could not give {waiting}: {error or type(error).__name__}") from error
        finally:
            for future in futures:
                future.release()

    def submit(self, work: Callable[[], object], worker: str | None = None, elsewhere: bool = True) -> Any:
        """Return the future of ``work`` on ``worker``, or ``elsewhere`` if that one is lost; without a ``worker`` on any."""
        there = {} if worker is None else {"workers": [worker], "allow_other_workers": elsewhere}
        return self.client.submit(pickle.loads, pickle.dumps(_Parcel(cloudpickle.dumps(work))), pure=False, **there)

    def gather(self, futures: Sequence[Any], limit: float) -> list[Any]:
        """Return their results, directly from the workers; a TimeoutError if that takes more than ``limit`` seconds."""
        results: list[Any] = self.client.sync(partial(self.client.gather, asynchronous=True), futures, direct=True, callback_timeout=limit)
        return results

    def _wait(self, futures: Sequence[Any]) -> bool:
        """Wait a while, and return whether all are done."""
        from distributed import wait

        with suppress(TimeoutError), self.client.as_current():
            wait(futures, timeout=WATCH)
        return all(future.done() for future in futures)

    def _task_error(self, task: "_Task", error: Exception) -> Exception:
        """Return the error to raise after the ``error`` of a worker."""
        if type(error).__name__ == "KilledWorker":
            return EngineError(
                f"{task.what}: each worker of {self.address} that was asked for it died, {error.args[-1] + 1} in a row, perhaps for want of"
                " memory; look at their logs, and start more of them, or with a larger --memory-limit"
            )
        return foreign(error) or error

    def _look_after(self, tasks: Sequence["_Task"], futures: list[Any], where: list[str], start: float, again: bool = False) -> None:
        """Give tasks of silent workers to others, or all of them ``again``; raise where the limit is over."""
        alive = self.alive()
        lost = self._lost_keys(alive)
        for number, (task, future) in enumerate(zip(tasks, futures, strict=True)):
            if future.done() and not again:
                continue
            if time.monotonic() - start > self.limit:
                raise EngineError(f"{where[number]} has not given {task.what} within {self.limit:g} s; look at it, or give a longer limit")
            if again or where[number] not in alive or future.key in lost:
                future.release()
                where[number] = where[number] if where[number] in alive else alive[number % len(alive)]
                futures[number] = self.submit(task.work, where[number])

    def _lost_keys(self, alive: Sequence[str]) -> set[str]:
        """Return the keys of tasks with workers that are not ``alive``: Dask gives waiting tasks to whoever seems to have nothing to do."""
        if self._seen.keys() <= set(alive):
            return set()
        tasks = self.client.sync(self.client.scheduler.processing, workers=None, callback_timeout=self.silence)
        return {key for address, keys in tasks.items() if address not in alive for key in keys}


def foreign(error: Exception) -> IncompatibleError | None:
    """Return the error to raise if ``error`` shows that a worker lacks this version of exactrank; None otherwise."""
    if not isinstance(error, ImportError | AttributeError) or "exactrank" not in str(error):
        return None
    version = exactrank.__version__
    return IncompatibleError(
        f"a worker cannot import what it is asked for ({error}); install exactrank {version}, as here, on every worker"
    )


@dataclass(frozen=True)
class _Task:
    """Work for a worker, and a description of its result."""

    worker: str
    work: Callable[[], object]
    what: str


@cache
def keep_freed_memory() -> bool:
    """Keep freed memory in this process, up to a limit, if Dask has turned that off; return whether anything was changed.

    Dask starts workers with ``MALLOC_TRIM_THRESHOLD_=65536``: freed memory goes back to the system at once, so every large array is mapped
    anew, page by page. Training makes many such arrays, one after the other, and would spend a fifth of its time on pages.
    """
    if "MALLOC_TRIM_THRESHOLD_" not in os.environ:
        return False
    with suppress(AttributeError):  # the C library is not glibc
        library = ctypes.CDLL(None)
        return all(library.mallopt(*parameter) for parameter in (KEPT, MAPPED))
    return False


def _answers(questions: Round) -> bytes:
    """Return, on a worker, the answers to a round of questions."""
    keep_freed_memory()
    return answer_round(questions)


def _map(function: Callable[[B], A], items: Sequence[B]) -> list[A]:
    return [function(item) for item in items]


@dataclass(frozen=True)
class _Parcel:
    """Packed work: to unpack it is to do it."""

    work: bytes

    def __reduce__(self) -> tuple[Callable[[str, bytes], object], tuple[str, bytes]]:
        return _unpack, (exactrank.__version__, self.work)


def _unpack(version: str, work: bytes) -> object:
    """Return, on a worker, the result of the packed ``work``; errors name the worker."""
    from distributed import get_worker

    who = f"worker {get_worker().address} (process {os.getpid()})"
    if version != exactrank.__version__:
        raise IncompatibleError(
            f"{who} has exactrank {exactrank.__version__}, and the client has {version}; install the same version on both"
        )
    try:
        return pickle.loads(work)()
    except ExactRankError as error:
        raise type(error)(f"{who}: {error}") from error
    except RecursionError as error:
        endless = f"{who}: {error}"
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        where = error.filename or f"its folder for temporary files, {tempfile.gettempdir()}, or another that it writes to"
        raise EngineError(
            f"{who}: the disk is full ({error.strerror}) at {where}; free some of it, or start the worker with TMPDIR on a larger disk"
        ) from error
    raise EngineError(endless)  # without the traceback of the recursion: it cannot be sent, and Dask's client would wait for it forever


def _paths(partitions: Sequence[Partition]) -> str:
    paths = list(dict.fromkeys(piece.path for partition in partitions for piece in partition.pieces))
    return paths[0] + (f" and {len(paths) - 1} other files" if len(paths) > 1 else "")
