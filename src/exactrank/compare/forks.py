"""What the server of `workers` does: fork a process for each job, end those that take too long, tell how each ended.

Each process leads a group of its own, to which whatever it starts belongs too. When it ends, however it does, the rest of its group is
killed; so is the whole group when its time is over, and when the server loses its caller. The end of a process is told by the kernel
(SIGCHLD), not by a pipe, which a process may close, or leave to another one. On Linux the kernel kills the process of a job also when
the server itself is killed.
"""

import ctypes
import gc
import json
import os
import pickle
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import IO

from exactrank.compare.workers import Ended, Runnable, framed, kill_group, ready, received
from exactrank.reasons import log_traceback, reason_of

#: Imported once, before any fork.
PRELOADED = ("exactrank.compare.fitting", "exactrank.rankers.base", "scipy.optimize", "lightgbm")
#: Bytes of what a process says when it ends; all of it is in the pipe by then.
MOST_SAID = 1 << 14
_PARENT_DEATH_SIGNAL = 1  # of Linux's prctl
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def tie_to_parent() -> None:
    """Have this process killed when the one that started it ends, where the system knows how."""
    if _LIBC is not None:
        _LIBC.prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)


@dataclass(eq=False)
class Fork:
    """A process that does the job of this number."""

    number: int
    pid: int  #: of the process, and of its group
    says: int  #: where what it says in the end can be read
    until: float  #: when its time is over
    late: bool = False

    def kill_if_late(self) -> None:
        """Kill it, with all that it started, if its time is over."""
        if time.monotonic() >= self.until:
            self.late, self.until = True, float("inf")
            kill_group(self.pid)

    def ended(self) -> Ended | None:
        """How it ended; None while it runs."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid == 0:
            return None
        kill_group(self.pid)  # what it started may still run
        try:
            said = os.read(self.says, MOST_SAID).decode("utf-8", "replace")
        except BlockingIOError:  # nothing, and a process that it started holds the pipe
            said = ""
        os.close(self.says)
        return Ended(os.waitstatus_to_exitcode(status), said, self.late)


def serve(libraries: Sequence[str]) -> None:
    """What the server does: jobs come on standard input, answers go to standard output, which no library may print on."""
    jobs, answers = os.fdopen(os.dup(0), "rb", buffering=0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    os.set_blocking(answers, False)  # a caller that sends a job does not read at the same time
    _import_all(libraries)
    wakes = _woken_by_children()
    forks: list[Fork] = []
    unsent = bytearray()
    try:
        while True:
            first = min((fork.until for fork in forks), default=float("inf"))
            found = ready(
                [jobs.fileno(), wakes[0]], [answers] if unsent else [], None if first == float("inf") else first - time.monotonic()
            )
            if wakes[0] in found:
                os.read(wakes[0], MOST_SAID)
            unsent += _looked_after(forks)
            if jobs.fileno() in found:
                content = received(jobs)
                if content is None:
                    return
                unsent += _started(content, forks, (jobs.fileno(), answers, *wakes))
            with suppress(BlockingIOError):
                del unsent[: os.write(answers, unsent)]
    except BrokenPipeError:  # the caller has ended
        return
    finally:
        for fork in forks:
            kill_group(fork.pid)


def _import_all(libraries: Sequence[str]) -> None:
    for name in PRELOADED:
        import_module(name)
    for name in libraries:
        with suppress(Exception, SystemExit):  # of others' modules; the fit that needs it says what is wrong
            import_module(name)
    gc.freeze()  # forks share what is here, and do not look for garbage in it


def _woken_by_children() -> tuple[int, int]:
    """A pipe, its end to read first, into which a byte comes when a child ends."""
    hears, told = os.pipe()
    for descriptor in (hears, told):
        os.set_blocking(descriptor, False)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return hears, told


def _looked_after(forks: list[Fork]) -> bytes:
    """Answers about processes that have ended; those whose time is over are killed."""
    answers = b""
    for fork in [*forks]:
        fork.kill_if_late()
        ended = fork.ended()
        if ended is not None:
            forks.remove(fork)
            answers += _answer(fork.number, **asdict(ended))
    return answers


def _started(content: bytes, forks: list[Fork], own: Sequence[int]) -> bytes:
    """Start a job, and answer by the group of its process, or why there is none; it gets none of the descriptors ``own``."""
    number, limit, job = pickle.loads(content)
    try:
        fork = _forked(number, float("inf") if limit is None else limit, job, [*own, *(each.says for each in forks)])
    except OSError as error:
        return _answer(number, **asdict(Ended(1, f"no process could be started for it ({error.strerror}); try fewer workers")))
    forks.append(fork)
    return _answer(number, group=fork.pid)


def _answer(number: int, **what: object) -> bytes:
    return framed(json.dumps({"number": number, **what}).encode())


def _forked(number: int, limit: float, job: bytes, others: Sequence[int]) -> Fork:
    hears, says = os.pipe()
    os.set_blocking(hears, False)
    parent = os.getpid()
    try:
        pid = os.fork()
    except OSError:
        os.close(hears)
        os.close(says)
        raise
    if pid == 0:
        code = 1
        try:
            _leave_server(parent, [hears, *others])
            code = _run(job, says)
        finally:
            os._exit(code)
    with suppress(OSError):  # it may have done so itself
        os.setpgid(pid, pid)
    os.close(says)
    return Fork(number, pid, hears, time.monotonic() + limit)


def _leave_server(parent: int, descriptors: Sequence[int]) -> None:
    """Become a process of its own, in a group of its own, that can do the server no harm."""
    os.setpgid(0, 0)
    tie_to_parent()
    if os.getppid() != parent:  # it had ended before
        os._exit(1)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for descriptor in descriptors:
        os.close(descriptor)


def _run(content: bytes, says: int) -> int:
    """The exit code of a job; what went wrong is written to ``says``."""
    try:
        job: Runnable = pickle.loads(content)
        job.run()
    except BaseException as error:
        with suppress(OSError):  # a fit may have closed it
            os.write(says, reason_of(error).encode())
        log_traceback()
        return 1
    finally:
        for stream in (sys.stdout, sys.stderr):
            _flush(stream)
    return 0


def _flush(stream: IO[str]) -> None:
    with suppress(OSError, ValueError):
        stream.flush()
