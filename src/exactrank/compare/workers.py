"""Processes for fits: each fit has one of its own, forked from a server that has imported the libraries and done nothing else.

A fork takes milliseconds, where a new interpreter with these libraries takes seconds. What a fit does to its process, memory, threads
or a crash, ends with it, and the server (`forks`) says how. The server is not forked from the caller's process, which may have threads,
and does not run its ``__main__`` again; Ctrl-C in the terminal does not reach it. It imports what the caller could import and nothing
else: `sys.path` is handed over as it is, without the current folder. A server that loses its caller ends with all fits.

Jobs go to the server as pickles, through a pipe that only the two processes hold; answers come as JSON. Nothing is ever unpickled
from a file or from a fit.
"""

import json
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Protocol, cast

#: Libraries read these when they are loaded.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
#: Before each message: its length.
HEADER = struct.Struct("<Q")
#: What the server's interpreter runs; the names in braces are filled in.
PROGRAM = "import sys; sys.path[:] = {path!r}; from exactrank.compare.forks import serve; serve({libraries!r})"
#: Seconds that the server has to end all fits and itself when it is asked to.
GRACE = 2.0


class Runnable(Protocol):
    """What a process does."""

    @property
    def limit(self) -> float | None:
        """Seconds after which it is killed, with all that it started; None for no limit."""

    def run(self) -> None:
        """Do it all; a result that is to last is written to a file."""


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    status: int
    trouble: str = ""  #: what the process said in the end, where it could
    late: bool = False  #: was it killed because its time was over?

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
            return f"its process was ended by {_signal_name(-self.status)}"
        return f"its process ended with the exit code {self.status} and no result"


class Server:
    """A process that forks one for each job; what they print goes to ``log``. It begins with the first job."""

    def __init__(self, threads: int, log: Path, libraries: Sequence[str] = ()) -> None:
        self._threads, self._log, self._libraries = threads, log, libraries
        self._groups: dict[int, int] = {}  # process groups of running jobs, by number

    @cached_property
    def _process(self) -> subprocess.Popen[bytes]:
        limited = {name: str(self._threads) for name in THREAD_VARIABLES}
        alone = "-I" if sys.flags.isolated else "-P"  # both leave the current folder out
        with open(self._log, "ab") as told:
            return subprocess.Popen(
                [sys.executable, alone, "-c", PROGRAM.format(path=[*map(str, sys.path)], libraries=[*self._libraries])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=told,
                bufsize=0,  # else what is ready would hide in a buffer
                env=os.environ | limited,
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
        left = memoryview(framed(pickle.dumps((number, job.limit, content))))
        try:
            while left:
                left = left[self._jobs.write(left) :]
        except BrokenPipeError:
            raise self._lost() from None
        return None

    def wait(self, seconds: float) -> tuple[int, Ended] | None:
        """The number of a job that has ended, and how; None where none does in so many seconds."""
        if not ready([self._answers.fileno()], seconds=seconds):
            return None
        content = received(self._answers)
        if content is None:
            raise self._lost()
        answer = json.loads(content)
        number: int = answer.pop("number")
        if "group" in answer:
            self._groups[number] = answer["group"]
            return None
        self._groups.pop(number, None)
        return number, Ended(**answer)

    def _lost(self) -> OSError:
        return ChildProcessError(
            f"the process that starts fits has ended ({self._process.wait()}); {self._log} tells why;"
            " fits that are finished are kept, and --resume (resume=True) goes on"
        )

    def close(self) -> None:
        """End the server and whatever is running."""
        if "_process" not in self.__dict__:
            return
        for pipe in (self._jobs, self._answers):  # which tells the server to end
            with suppress(BrokenPipeError):
                pipe.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE)
        if self._process.returncode != 0:  # it could not do its duty
            for group in (self._process.pid, *self._groups.values()):
                kill_group(group)
            self._process.wait()


def kill_group(group: int) -> None:
    """Kill all processes of a group, if there are any."""
    with suppress(ProcessLookupError, PermissionError):  # the latter is what macOS says of a group that has ended
        os.killpg(group, signal.SIGKILL)


def ready(readable: Sequence[int], writable: Sequence[int] = (), seconds: float | None = None) -> set[int]:
    """The descriptors at which there is something to do, after at most ``seconds``; their numbers may be larger than `select` takes."""
    poll = select.poll()
    for descriptor in readable:
        poll.register(descriptor, select.POLLIN)
    for descriptor in writable:
        poll.register(descriptor, select.POLLOUT)
    return {descriptor for descriptor, _ in poll.poll(None if seconds is None else 1000 * max(0.0, seconds))}


def framed(content: bytes) -> bytes:
    """A message that `received` takes apart from the next one."""
    return HEADER.pack(len(content)) + content


def received(pipe: IO[bytes]) -> bytes | None:
    """The content of the next message; None where the other end is closed before it is whole."""
    header = _exactly(pipe, HEADER.size)
    if len(header) < HEADER.size:
        return None
    (length,) = HEADER.unpack(header)
    content = _exactly(pipe, length)
    return content if len(content) == length else None


def _exactly(pipe: IO[bytes], length: int) -> bytes:
    """So many bytes, or fewer at the end."""
    parts = []
    while length > 0 and (part := pipe.read(min(length, 1 << 20))):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # one that has none
        return f"signal {number}"
