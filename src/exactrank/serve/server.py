"""The process of the service: it answers itself, or starts several workers that share its port and restarts those that end.

SIGTERM and Ctrl-C end it: no new requests are accepted, those in progress are answered. A connection that does not send the head of a
request in time is closed.
"""

import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
import warnings
from asyncio import TimerHandle, Transport
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from exactrank.errors import PrecisionWarning
from exactrank.serve.app import Rules, make_app
from exactrank.serve.models import Models

log = logging.getLogger(__name__)
WAITING = 2048  #: connections that nobody has accepted yet
AT_ONCE_AGAIN = 2.0  #: seconds; a worker that ends sooner after its start has failed to start


class Connection(HttpToolsProtocol):
    """A connection on which the head of each request must arrive within a time limit."""

    seconds = Rules.timeout
    _late: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._wait()

    def on_headers_complete(self) -> None:
        self._stop()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._stop()
        self._late = self.loop.call_later(self.seconds, self.transport.close)

    def _stop(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


@dataclass(frozen=True)
class Service:
    """What is served, as each worker gets it from the process that starts it."""

    models: Models
    rules: Rules

    def work(self, listener: socket.socket) -> None:
        """Answer until a signal arrives."""
        listener.setblocking(False)
        warnings.simplefilter("ignore", PrecisionWarning)  # of each request's own numbers
        app = make_app(self.models, self.rules)
        protocol: Any = type("Limited", (Connection,), {"seconds": self.rules.timeout})
        config = uvicorn.Config(
            app, http=protocol, ws="none", log_config=None, access_log=False, server_header=False, proxy_headers=False,
            timeout_graceful_shutdown=int(self.rules.timeout) + 1,
        )  # fmt: skip
        with suppress(KeyboardInterrupt):  # the server raises it again after it has ended
            uvicorn.Server(config).run([listener])

    def worker(self, listener: socket.socket) -> None:
        """The same in a process that ends with the one that started it."""
        threading.Thread(target=_end_with_parent, daemon=True).start()
        _log_to_standard_streams(self.rules.access_log)
        self.work(listener)


def serve(paths: Mapping[str, Path], host: str, port: int, workers: int, rules: Rules) -> None:
    """Serve the models at ``paths`` until a signal arrives; port 0 is any free port."""
    service = Service(Models.read(paths), rules)
    with ExitStack() as open_ones:
        listeners = [open_ones.enter_context(each) for each in listeners_at(host, port, workers)]
        address, number = listeners[0].getsockname()[:2]
        _log_to_standard_streams(rules.access_log)
        log.warning("%s at http://%s:%s", ", ".join(paths), f"[{address}]" if ":" in address else address, number)
        if workers == 1:
            service.work(listeners[0])
        else:
            _supervise(service, listeners)


def listeners_at(host: str, port: int, count: int) -> list[socket.socket]:
    """Sockets that listen at one port, if nobody else does; connections are distributed among them.

    They stay open as long as the parent lives: what waits for a worker that ended is answered by its replacement.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        alone = socket.create_server((host, port), family=family, backlog=WAITING)
    except OSError as error:
        raise OSError(error.errno, (error.strerror or "").partition(" (while")[0], f"{host}:{port}") from None
    if count == 1 or not hasattr(socket, "SO_REUSEPORT"):
        return [alone] * count
    place = alone.getsockname()
    alone.close()  # sockets that share a port would also share it with another program's
    return [socket.create_server(place[:2], family=family, backlog=WAITING, reuse_port=True) for _ in range(count)]


def _supervise(service: Service, listeners: Sequence[socket.socket]) -> None:
    """Keep one worker running per listener until a signal arrives.

    A replacement starts with the newest models that could be read, even if their files are damaged by now.
    """
    processes = multiprocessing.get_context("spawn")

    def started(listener: socket.socket) -> tuple[BaseProcess, float]:
        if service.rules.watch:
            service.models.refresh()
        process = processes.Process(target=service.worker, args=(listener,))
        process.start()
        return process, time.monotonic()

    going = [started(listener) for listener in listeners]
    try:
        while True:
            wait([process.sentinel for process, _ in going])
            for number, (process, since) in enumerate(going):
                if process.exitcode is None:
                    continue
                if (process.exitcode or 0) > 0 and time.monotonic() - since < AT_ONCE_AGAIN:
                    raise ChildProcessError(f"a worker ended with code {process.exitcode} right after its start; see its output above")
                log.warning("a worker ended with code %s; another replaces it", process.exitcode)
                going[number] = started(listeners[number])
    except KeyboardInterrupt:
        pass
    finally:
        for process, _ in going:
            process.terminate()
        for process, _ in going:
            process.join(service.rules.timeout + 2)
            if process.exitcode is None:
                process.kill()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)


def _log_to_standard_streams(accesses: bool) -> None:
    """Warnings, and changes of models, on stderr; accesses, if requested, on stdout."""
    logging.basicConfig(format="exactrank: %(message)s", level=logging.WARNING)
    if accesses:
        access = logging.getLogger("exactrank.access")
        access.addHandler(logging.StreamHandler(sys.stdout))
        access.setLevel(logging.INFO)
        access.propagate = False
