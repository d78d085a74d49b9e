"""The process of the service: it answers requests itself, or runs several workers that share its port and restarts those that end.

SIGTERM and Ctrl-C end it without losing a request: it closes its listeners, and then announces the end to every open connection with the
next answer.
"""

import asyncio
import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from math import ceil
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import uvicorn

from exactrank.errors import PrecisionWarning
from exactrank.serve.app import Rules, make_app
from exactrank.serve.connection import Connection
from exactrank.serve.models import Models

log = logging.getLogger(__name__)
BACKLOG = 2048  #: connections that may wait to be accepted
END_SIGNALS = {signal.SIGINT, signal.SIGTERM}
SETTLING_TIME = 0.3  #: seconds after which all workers have received the signal to end
MIN_LIFETIME = 2.0  #: seconds; a worker that ends sooner has failed to start


class GracefulServer(uvicorn.Server):
    """A server that still answers clients who connected before it began to end."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, and deliver signals that were blocked until now."""
        await super().startup(sockets)
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, END_SIGNALS)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the listeners, answer the open requests, and end."""
        loop, config = asyncio.get_running_loop(), self.config
        protocol: Any = config.http_protocol_class
        connected = [client for listener in sockets or [] for client in _accept_all(listener)]
        for server in self.servers:
            server.close()
        for listener in sockets or []:
            listener.close()
        for client in connected:
            await loop.connect_accepted_socket(
                lambda: protocol(config=config, server_state=self.server_state, app_state=self.lifespan.state), client
            )
        # Wait until the other workers have closed their listeners too: a client that reconnects must not reach one that is about to end.
        await asyncio.sleep(SETTLING_TIME)
        protocol.ending = True
        await super().shutdown()


def _accept_all(listener: socket.socket) -> Iterator[socket.socket]:
    """Accept every waiting connection."""
    with suppress(BlockingIOError):
        while True:
            client, _ = listener.accept()
            client.setblocking(False)
            yield client


@dataclass(frozen=True)
class Service:
    """The models and rules of a service, as each worker receives them from the process that starts it."""

    models: Models
    rules: Rules

    def work(self, listener: socket.socket) -> None:
        """Answer until a signal arrives."""
        listener.setblocking(False)
        warnings.simplefilter("ignore", PrecisionWarning)  # about numbers in single requests
        app = make_app(self.models, self.rules)
        config = uvicorn.Config(
            app, http=Connection.with_timeout(self.rules.timeout), ws="none", log_config=None, access_log=False, server_header=False,
            proxy_headers=False, timeout_graceful_shutdown=ceil(self.rules.timeout) + 1,
        )  # fmt: skip
        with suppress(KeyboardInterrupt):  # the server raises it again after it has ended
            GracefulServer(config).run([listener])

    def run_worker(self, listener: socket.socket) -> None:
        """Answer in a worker process. It ends when its parent does: Ctrl-C in a terminal reaches only the parent."""
        if hasattr(os, "setpgrp"):
            os.setpgrp()
        threading.Thread(target=_end_with_parent, daemon=True).start()
        _log_to_standard_streams(self.rules.access_log)
        self.work(listener)


def serve(paths: Mapping[str, Path], host: str, port: int, workers: int, rules: Rules) -> None:
    """Serve the models at ``paths`` until a signal arrives; port 0 is any free port."""
    service = Service(Models.read(paths), rules)
    with ExitStack() as open_listeners:
        listeners = [open_listeners.enter_context(listener) for listener in listeners_at(host, port, workers)]
        address, number = listeners[0].getsockname()[:2]
        _log_to_standard_streams(rules.access_log)
        log.warning("%s at http://%s:%s", ", ".join(paths), f"[{address}]" if ":" in address else address, number)
        if workers == 1:
            service.work(listeners[0])
        else:
            _supervise(service, listeners)


def listeners_at(host: str, port: int, count: int) -> list[socket.socket]:
    """Return ``count`` sockets that listen at one port, if no other program does; connections are distributed among them.

    They stay open as long as the parent lives: connections that wait for a worker that ended are answered by its replacement.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise OSError(error.errno, (error.strerror or "").partition(" (while")[0], f"{host}:{port}") from None
    if count == 1 or not hasattr(socket, "SO_REUSEPORT"):
        return [listener] * count
    address = listener.getsockname()
    listener.close()  # sockets that share a port would also share it with another program's
    return [socket.create_server(address[:2], family=family, backlog=BACKLOG, reuse_port=True) for _ in range(count)]


def _supervise(service: Service, listeners: Sequence[socket.socket]) -> None:
    """Keep one worker running per listener until a signal arrives.

    A replacement starts with the newest models that could be read, even if their files are damaged by now.
    """
    processes = multiprocessing.get_context("spawn")
    resource_tracker.ensure_running()  # it unblocks signals when it starts

    def start_worker(listener: socket.socket) -> tuple[BaseProcess, float]:
        if service.rules.watch:
            service.models.refresh()
        process = processes.Process(target=service.run_worker, args=(listener,))
        with _block_end_signals():
            process.start()
        return process, time.monotonic()

    workers = [start_worker(listener) for listener in listeners]
    try:
        while True:
            wait([process.sentinel for process, _ in workers])
            for number, (process, start) in enumerate(workers):
                if process.exitcode is None:
                    continue
                if (process.exitcode or 0) > 0 and time.monotonic() - start < MIN_LIFETIME:
                    raise ChildProcessError(f"a worker ended with code {process.exitcode} right after its start; see its output above")
                log.warning("a worker ended with code %s; another replaces it", process.exitcode)
                workers[number] = start_worker(listeners[number])
    except KeyboardInterrupt:
        pass
    finally:
        for listener in listeners:  # while this process held them open, connections would be accepted and never answered
            listener.close()
        for process, _ in workers:
            process.terminate()
        for process, _ in workers:
            process.join(service.rules.timeout + 3)
            if process.exitcode is None:
                process.kill()


@contextmanager
def _block_end_signals() -> Iterator[None]:
    """Block the signals that end the service while a worker starts: it inherits the mask, and unblocks them once it can answer."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, END_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)


def _log_to_standard_streams(accesses: bool) -> None:
    """Log warnings and changes of models to stderr and, if requested, accesses to stdout."""
    logging.basicConfig(format="exactrank: %(message)s", level=logging.WARNING)
    if accesses:
        access = logging.getLogger("exactrank.access")
        access.addHandler(logging.StreamHandler(sys.stdout))
        access.setLevel(logging.INFO)
        access.propagate = False
