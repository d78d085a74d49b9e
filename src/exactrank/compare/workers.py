"""Processes for fits: each fit has its own, forked from a server that has imported the libraries and done nothing else.

A fork takes milliseconds, while a new interpreter with these libraries takes seconds. The effects of a fit on its process (memory,
threads, a crash) end with it, and the server reports how it ended. The server is not forked from the caller's process, which may have
threads, and does not run its ``__main__`` again; Ctrl-C in the terminal does not reach it. It imports what the caller could import and
nothing else: `sys.path` is handed over as it is, without the current folder. A server that loses its caller ends with all fits.

Jobs go to the server as pickles, through a pipe that only the two processes hold; answers come as lines of JSON. Nothing is ever
unpickled from a file or from a fit. Things defined in modules are pickled by name; classes and functions of a notebook with their code.

Each process leads a group of its own, to which its children belong too. When the process ends, for whatever reason, the rest of its
group is killed; so is the whole group when its time is up, and when the server loses its caller. The kernel reports the end of a process
(SIGCHLD); a pipe would not do, since a process may close it or pass it on. On Linux the kernel also kills the process of a job when the
server itself is killed.
"""

import ctypes
import gc
import json
import os
import pickle
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib import import_module
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import IO

from exactrank._support.libraries import library
from exactrank._support.text import log_traceback, reason_of

#: Libraries read these variables when they are loaded.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
#: The program that the server's interpreter runs; the names in braces are filled in.
PROGRAM = "import sys; sys.path[:] = {path!r}; from exactrank.compare.workers import serve; serve({libraries!r})"
#: Imported once, before any fork.
PRELOADED = ("exactrank.compare.fitting", "exactrank.rankers.base", "scipy.optimize")
#: Seconds that the server has to end all fits and itself when it is asked to.
GRACE = 2.0
#: Maximum number of bytes of a process's last message; all of it is in the pipe by the time the process ends.
MESSAGE_BYTES = 1 << 14
#: Seconds after which the server looks for work if nothing wakes it.
LONGEST_SLEEP = 3600.0
_PARENT_DEATH_SIGNAL = 1  # of Linux's prctl
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


@dataclass(frozen=True)
class ProcessExit:
    """The end of a process: its exit status, its last message if it could write one, and whether its time was up."""

    status: int
    message: str = ""
    timed_out: bool = False

    @property
    def reason(self) -> str:
        """An explanation of why there is no result.

        >>> ProcessExit(-9).reason
        'its process was killed by SIGKILL, perhaps for want of memory; try fewer workers'
        """
        if self.message:
            return self.message
        if self.status == -signal.SIGKILL:
            return "its process was killed by SIGKILL, perhaps for want of memory; try fewer workers"
        if self.status < 0:
            names = {number.value: number.name for number in signal.Signals}
            return f"its process was ended by {names.get(-self.status, f'signal {-self.status}')}"
        return f"its process ended with the exit code {self.status} and no result"


class ForkServer:
    """A process that forks one process per job; their output goes to ``log``. It starts with the first job."""

    def __init__(self, threads: int, log: Path, libraries: Sequence[str] = ()) -> None:
        self._threads, self._log, self._libraries = threads, log, libraries
        self._groups: dict[str, int] = {}  # process groups of running jobs, by name

    @cached_property
    def _connection(self) -> tuple[subprocess.Popen[bytes], Connection, IO[bytes]]:
        """The process, the pipe to which jobs go, and the one from which answers come."""
        receiver, jobs = Pipe(duplex=False)
        isolation = "-I" if sys.flags.isolated else "-P"  # both leave the current folder out
        with open(self._log, "ab") as log, receiver:
            process = subprocess.Popen(
                [sys.executable, isolation, "-c", PROGRAM.format(path=[*map(str, sys.path)], libraries=[*self._libraries])],
                stdin=receiver.fileno(),
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,  # otherwise `wait` would not see answers that are already in a buffer
                env=os.environ | {name: str(self._threads) for name in THREAD_VARIABLES},
                start_new_session=True,
            )
        assert process.stdout is not None
        return process, jobs, process.stdout

    def start(self, name: str, run: Callable[[], None], limit: float | None) -> ProcessExit | None:
        """Call ``run`` in a process, which is killed after ``limit`` seconds; a result that is to last must be written to a file.

        `wait` reports the end under ``name``. If ``run`` cannot be sent to another process, that is returned at once.
        """
        job = pickle_job(run)
        if isinstance(job, ProcessExit):
            return job
        _, jobs, _ = self._connection
        try:
            jobs.send_bytes(pickle.dumps((name, limit, job)))
        except BrokenPipeError:
            raise self._lost_error() from None
        return None

    def wait(self, seconds: float) -> tuple[str, ProcessExit] | None:
        """Return the name of a job that has ended, and how; None if none ends within this number of seconds."""
        _, _, answers = self._connection
        if not wait([answers.fileno()], seconds):
            return None
        line = answers.readline()
        if not line.endswith(b"\n"):
            raise self._lost_error()
        answer = json.loads(line)
        name: str = answer.pop("name")
        if "group" in answer:
            self._groups[name] = answer["group"]
            return None
        self._groups.pop(name, None)
        return name, ProcessExit(**answer)

    def _lost_error(self) -> OSError:
        return ChildProcessError(
            f"the process that starts fits has ended ({self._connection[0].wait()}); {self._log} says why;"
            " finished fits are kept, and resume=True (--resume) continues"
        )

    def close(self) -> None:
        """End the server and all running jobs."""
        if "_connection" not in self.__dict__:
            return
        process, jobs, answers = self._connection
        jobs.close()  # the server takes this as the request to end
        answers.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
        if process.returncode != 0:  # it could not end its jobs
            for group in (process.pid, *self._groups.values()):
                kill_group(group)
            process.wait()


def pickle_job(run: Callable[[], None]) -> bytes | ProcessExit:
    """Return ``run`` as a pickle, or the reason why it cannot be sent to another process."""
    cloudpickle = library("cloudpickle", "comparisons", "report")
    try:
        job: bytes = cloudpickle.dumps(run)
    except Exception as error:  # pickle raises whatever the value's classes raise
        return ProcessExit(1, f"it cannot be sent to another process ({error}); leave out of it what only this process can hold")
    return job


def kill_group(group: int) -> None:
    """Kill all processes of a group, if there are any."""
    with suppress(ProcessLookupError, PermissionError):  # macOS gives the latter for a group that has ended
        os.killpg(group, signal.SIGKILL)


def tie_to_parent() -> None:
    """Have this process killed when the one that started it ends, where the system supports that."""
    if _LIBC is not None:
        _LIBC.prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)


@dataclass(eq=False)
class ForkedProcess:
    """The process of the job ``name``."""

    name: str
    pid: int  #: of the process, and of its group
    messages: int  #: the descriptor from which its last message is read
    deadline: float
    timed_out: bool = False

    def poll(self) -> ProcessExit | None:
        """Return how it ended; None while it runs. At its deadline it is killed, with all that it started."""
        if time.monotonic() >= self.deadline:
            self.timed_out, self.deadline = True, float("inf")
            kill_group(self.pid)
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid == 0:
            return None
        kill_group(self.pid)  # its children may still run
        try:
            message = os.read(self.messages, MESSAGE_BYTES).decode("utf-8", "replace")
        except BlockingIOError:  # there is none, and one of its children holds the pipe
            message = ""
        os.close(self.messages)
        return ProcessExit(os.waitstatus_to_exitcode(status), message, self.timed_out)


def serve(libraries: Sequence[str]) -> None:
    """Run the server: jobs come on standard input, answers go to standard output, on which no library may print."""
    jobs, answers = Connection(os.dup(0), writable=False), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    for name in PRELOADED:
        import_module(name)
    for name in libraries:
        with suppress(Exception, SystemExit):  # of others' modules; the fit that needs one reports the error
            import_module(name)
    gc.freeze()  # forks share these objects, and do not look for garbage among them
    wakeup, signaled = os.pipe()  # a byte comes when a child ends
    for descriptor in (wakeup, signaled, answers):  # a caller that sends a job does not read answers at the same time
        os.set_blocking(descriptor, False)
    signal.set_wakeup_fd(signaled, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    processes: list[ForkedProcess] = []
    try:
        with suppress(BrokenPipeError):  # the caller has ended
            _run_jobs(processes, jobs, answers, wakeup, signaled)
    finally:
        for process in processes:
            kill_group(process.pid)


def _run_jobs(processes: list[ForkedProcess], jobs: Connection, answers: int, wakeup: int, signaled: int) -> None:
    """Start the jobs that come, kill those whose time is up, and report how each ended, until the caller closes its pipe."""
    unsent = bytearray()
    poll = select.poll()
    poll.register(jobs, select.POLLIN)
    poll.register(wakeup, select.POLLIN)
    while True:
        poll.register(answers, select.POLLOUT if unsent else 0)
        deadline = min((process.deadline for process in processes), default=float("inf"))
        ready = {descriptor for descriptor, _ in poll.poll(1000 * min(LONGEST_SLEEP, max(0.0, deadline - time.monotonic())))}
        if wakeup in ready:
            os.read(wakeup, MESSAGE_BYTES)
        for process in [*processes]:
            process_exit = process.poll()
            if process_exit is not None:
                processes.remove(process)
                unsent += _answer(process.name, **asdict(process_exit))
        if jobs.fileno() in ready:
            try:
                name, limit, job = pickle.loads(jobs.recv_bytes())
            except (EOFError, OSError):
                return
            try:
                descriptors = [jobs.fileno(), answers, wakeup, signaled, *(process.messages for process in processes)]
                processes.append(_fork(name, float("inf") if limit is None else limit, job, descriptors))
                unsent += _answer(name, group=processes[-1].pid)
            except OSError as error:
                message = f"no process could be started for it ({error.strerror}); try fewer workers"
                unsent += _answer(name, **asdict(ProcessExit(1, message)))
        with suppress(BlockingIOError):
            del unsent[: os.write(answers, unsent)]


def _answer(name: str, **values: object) -> bytes:
    return json.dumps({"name": name, **values}).encode() + b"\n"


def _fork(name: str, limit: float, job: bytes, descriptors: Sequence[int]) -> ForkedProcess:
    """Start a process that runs ``job`` in a group of its own; it closes the server's ``descriptors``, so it can do the server no harm."""
    messages, writer = os.pipe()
    os.set_blocking(messages, False)
    parent = os.getpid()
    try:
        pid = os.fork()
    except OSError:
        os.close(messages)
        os.close(writer)
        raise
    if pid == 0:
        code = 1
        try:
            os.setpgid(0, 0)
            tie_to_parent()
            if os.getppid() == parent:  # otherwise the server ended before the line above
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for descriptor in (messages, *descriptors):
                    os.close(descriptor)
                code = _run(job, writer)
        finally:
            os._exit(code)
    with suppress(OSError):  # the child may have done so itself
        os.setpgid(pid, pid)
    os.close(writer)
    return ForkedProcess(name, pid, messages, time.monotonic() + limit)


def _run(job: bytes, writer: int) -> int:
    """Run a job and return its exit code; an error is written to ``writer``."""
    try:
        pickle.loads(job)()
    except BaseException as error:
        with suppress(OSError):  # a fit may have closed the descriptor
            os.write(writer, reason_of(error).encode())
        log_traceback()
        return 1
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
    return 0
