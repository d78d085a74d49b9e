"""Work that several workers do together, each its own part: either all of them finish it, or all of them are told to end.

`exactrank.engine.engine.Engine.ask` gives the task of a lost worker to another one. Workers that talk to each other cannot be replaced like
that: what one of them knows is gone. So here a task runs on its worker or not at all, and when a worker is lost or falls silent the
others are told, through the event loops of their processes, which are free while their threads wait. Two clients may do so on the same
workers at once: work that is done together takes none of a worker's threads, or each client's would wait on one worker for what the other's
keeps from being begun on the next.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar, cast

from exactrank.engine.dask import beside_others, foreign
from exactrank.engine.engine import Engine, LocalEngine
from exactrank.threads import thread_count

A = TypeVar("A")
LOOK = 0.005  #: seconds between two looks at the tasks
WATCH = 1.0  #: seconds between two looks at the workers
GRACE = 5.0  #: seconds that tasks which were told to end have to say why


class LostWorkerError(ConnectionError):
    """Work that was done together cannot go on, because a worker is gone or does not answer. It can be begun again."""


def hosts(engine: Engine) -> list[str]:
    """The workers that live now; the empty name is this process."""
    return [""] if isinstance(engine, LocalEngine) else engine.alive()  # type: ignore[attr-defined]


def threads_of(engine: Engine, host: str, asked: int | None) -> int:
    """How many threads work on ``host`` may have: those ``asked`` for, or those of the worker."""
    if asked is not None or isinstance(engine, LocalEngine):
        return thread_count(asked)
    workers: Any = engine.facts()  # type: ignore[attr-defined]
    return int(workers[host]["nthreads"]) if host in workers else 1


def together(engine: Engine, work: Mapping[str, Callable[[], A]], what: str, abandon: Callable[[], None]) -> dict[str, A]:
    """What each worker gives for its ``work``; ``what`` says so in words. ``abandon``, called there, makes work that is under way end."""
    if isinstance(engine, LocalEngine):
        return {host: own() for host, own in work.items()}
    cluster: Any = engine
    futures = {host: cluster.submitted(partial(beside_others, own), host, elsewhere=False) for host, own in work.items()}
    try:
        trouble = _trouble(cluster, futures, what)
        if trouble is None:
            try:
                return dict(zip(futures, cluster.gathered(list(futures.values()), 4 * cluster.silence), strict=True))
            except TimeoutError:
                trouble = LostWorkerError(f"a worker has not handed over {what} within {4 * cluster.silence:g} s")
        told, until = abandoned(engine, abandon), time.monotonic() + GRACE
        while time.monotonic() < until and any(not future.done() for host, future in futures.items() if host in told):
            time.sleep(LOOK)
        raise _worst(trouble, futures)
    finally:
        for future in futures.values():
            future.release()


def abandoned(engine: Engine, abandon: Callable[[], None]) -> set[str]:
    """Call ``abandon`` on every worker that can be reached, and wait for none of them longer than a moment; those that were reached."""
    if isinstance(engine, LocalEngine):
        abandon()
        return {""}
    cluster, told = cast(Any, engine), set[str]()
    for host in cluster.known:
        with suppress(Exception):  # it is gone, or hangs: then it works no more either
            told |= cluster.client.sync(cluster.client._run, abandon, workers=[host], on_error="ignore", callback_timeout=1.0).keys()
    return told


def _trouble(engine: Any, futures: Mapping[str, Any], what: str) -> Exception | None:
    """None once all is done, else why it will not be."""
    begun = looked = time.monotonic()
    while any(not future.done() for future in futures.values()):
        if any(future.status in ("error", "cancelled", "lost") for future in futures.values()):
            break
        now = time.monotonic()
        if now - begun > engine.limit:
            slow = next(host for host, future in futures.items() if not future.done())
            return LostWorkerError(f"{slow} has not given {what} within {engine.limit:g} s")
        if now - looked > WATCH:
            looked = now
            alive = engine.alive()
            for host, future in futures.items():
                if host not in alive and not future.done():
                    return LostWorkerError(f"worker {host} is gone, or has shown no sign of life for {engine.silence:g} s")
        time.sleep(LOOK)
    for host, future in futures.items():
        if future.status == "error":
            return _error(future)
        if future.status != "finished":
            return LostWorkerError(f"the work of {host} was cancelled")
    return None


def _error(future: Any) -> Exception:
    error: Exception = future.exception()
    if (unknown := foreign(error)) is not None:
        return unknown
    return LostWorkerError(str(error)) if isinstance(error, ConnectionError) or type(error).__name__ == "KilledWorker" else error


def _worst(trouble: Exception, futures: Mapping[str, Any]) -> Exception:
    """Of all errors one that is a cause, where there is one: that others are gone is what the rest say of it."""
    errors = [trouble, *(_error(future) for future in futures.values() if future.status == "error")]
    return next((error for error in errors if not isinstance(error, LostWorkerError)), trouble)
