"""Processes for fits: each fit has one of its own, forked from a server that has imported the libraries and done nothing else.

A fork takes milliseconds, where a new interpreter with these libraries takes seconds. What a fit does to its process, memory, threads
or a crash, ends with it, and the server says how. The server is not forked from the caller's process, which may have threads, and does
not run its ``__main__`` again; Ctrl-C in the terminal does not reach it. One that loses its caller ends with all fits.
"""

import gc
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import IO, Protocol, cast

#: Imported once, before any fork.
PRELOADED = ("exactrank.workbench.comparison.fitting", "exactrank.rankers.base", "scipy.optimize", "lightgbm")
#: Libraries read these when they are loaded.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
#: Before each message: its number and its length.
HEADER = struct.Struct("<QQ")


class Runnable(Protocol):
    """What a process does."""

    def run(self) -> None:
        """Do it all; a result that is to last is written to a file."""


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    status: int
    trouble: str = ""  #: what the process said in the end, where it could

    @property
    def reason(self) -> str:
        """Why there is no result, where there is none.

        >>> Ended(-9).reason
        'its process was killed by SIGKILL, perhaps for want of memory; try fewer workers'
        """
        if self.trouble:
            return self.trouble
        if self.status == -signal.SIGKILL:
            return "its process was killed by SIGKILL, perhaps for want of memory; try fewer workers"
        if self.status < 0:
            return f"its process was ended by {signal.Signals(-self.status).name}"
        return f"its process ended with the exit code {self.status} and no result"


class Server:
    """A process that forks one for each job; what they print goes to ``log``. It begins with the first job."""

    def __init__(self, threads: int, log: Path, libraries: Sequence[str] = ()) -> None:
        self._threads, self._log, self._libraries = threads, log, libraries

    @cached_property
    def _process(self) -> subprocess.Popen[bytes]:
        limited = {name: str(self._threads) for name in THREAD_VARIABLES}
        paths = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        with open(self._log, "ab") as told:
            return subprocess.Popen(
                [sys.executable, "-c", f"from {__name__} import serve; serve({[*self._libraries]})"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=told,
                bufsize=0,  # else what is ready would hide in a buffer
                env=os.environ | limited | {"PYTHONPATH": paths},
                start_new_session=True,
            )

    @property
    def _jobs(self) -> IO[bytes]:
        return cast(IO[bytes], self._process.stdin)

    @property
    def _answers(self) -> IO[bytes]:
        return cast(IO[bytes], self._process.stdout)

    def start(self, number: int, job: Runnable) -> Ended | None:
        """Start ``job``, whose end `wait` will tell by its ``number``; at once where it cannot be sent to another process."""
        try:
            content = pickle.dumps(job)
        except Exception as error:  # pickle raises whatever the value's classes raise
            return Ended(1, f"it cannot be sent to another process ({error}); define its functions and classes in a module")
        try:
            _send(self._jobs, number, content)
        except BrokenPipeError:
            raise self._lost() from None
        return None

    def wait(self, seconds: float) -> tuple[int, Ended] | None:
        """The number of a job that has ended, and how; None where none does in so many seconds."""
        if not select.select([self._answers], [], [], seconds)[0]:
            return None
        answer = _received(self._answers)
        if answer is None:
            raise self._lost()
        ended: Ended = pickle.loads(answer[1])
        return answer[0], ended

    def _lost(self) -> OSError:
        return ChildProcessError(f"the process that starts fits has ended ({self._process.wait()}); {self._log} tells why")

    def close(self) -> None:
        """End the server and whatever is running."""
        if "_process" not in self.__dict__:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._jobs, self._answers):
            with suppress(BrokenPipeError):
                pipe.close()


@dataclass(frozen=True)
class Fork:
    """A process that does the job of this number."""

    number: int
    pid: int

    def ended(self, says: int) -> Ended:
        """How it ended, once all that it says has been said."""
        with os.fdopen(says, "rb") as pipe:
            trouble = pipe.read().decode()
        _, status = os.waitpid(self.pid, 0)
        return Ended(os.waitstatus_to_exitcode(status), trouble)


def serve(libraries: Sequence[str]) -> None:
    """What the server does: jobs come on standard input, answers go to standard output, which no library may print on."""
    jobs, answers = os.fdopen(os.dup(0), "rb", buffering=0), os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    for name in PRELOADED:
        import_module(name)
    for name in libraries:
        with suppress(Exception):  # of others' modules; the fit that needs it says what is wrong
            import_module(name)
    gc.freeze()  # forks share what is here, and do not look for garbage in it
    forks: dict[int, Fork] = {}
    while True:
        ready, _, _ = select.select([jobs.fileno(), *forks], [], [])
        for says in forks.keys() & set(ready):
            fork = forks.pop(says)
            _send(answers, fork.number, pickle.dumps(fork.ended(says)))
        if jobs.fileno() in ready:
            received = _received(jobs)
            if received is None:
                for fork in forks.values():
                    os.kill(fork.pid, signal.SIGKILL)
                return
            number, content = received
            says, pid = _forked(content, [*forks])
            forks[says] = Fork(number, pid)


def _send(pipe: IO[bytes], number: int, content: bytes) -> None:
    left = memoryview(HEADER.pack(number, len(content)) + content)
    while left:
        left = left[pipe.write(left) :]


def _received(pipe: IO[bytes]) -> tuple[int, bytes] | None:
    """What `_send` sent at the other end; None where that is closed."""
    header = _exactly(pipe, HEADER.size)
    if len(header) < HEADER.size:
        return None
    number, length = HEADER.unpack(header)
    return number, _exactly(pipe, length)


def _exactly(pipe: IO[bytes], length: int) -> bytes:
    """So many bytes, or fewer at the end."""
    parts = []
    while length > 0 and (part := pipe.read(length)):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _forked(content: bytes, others: list[int]) -> tuple[int, int]:
    """The pipe on which the process of a job says what went wrong, and ends when it ends; and its id."""
    hears, says = os.pipe()
    pid = os.fork()
    if pid == 0:
        for each in (hears, *others):
            os.close(each)
        os._exit(_run(content, says))
    os.close(says)
    return hears, pid


def _run(content: bytes, says: int) -> int:
    """The exit code of a job; what went wrong is written to ``says``."""
    try:
        job: Runnable = pickle.loads(content)
        job.run()
    except BaseException as error:
        traceback.print_exc()
        os.write(says, f"{type(error).__name__}: {error}".encode()[:4000])
        return 1
    finally:
        sys.stderr.flush()
        sys.stdout.flush()
    return 0
