"""Processes for fits: each fit has its own, forked from a server that has imported the libraries and done nothing else.

A fork takes milliseconds, where a new interpreter with these libraries takes seconds. What a fit does to its process, memory, threads
or a crash, ends with it, and the server says how. The server is not forked from the caller's process, which may have threads, and does
not run its ``__main__`` again; Ctrl-C in the terminal does not reach it. It imports what the caller could import and nothing else:
`sys.path` is handed over as it is, without the current folder. A server that loses its caller ends with all fits.

Jobs go to the server as pickles, through a pipe that only the two processes hold; answers come as lines of JSON. Nothing is ever
unpickled from a file or from a fit. What modules define goes by its name; classes and functions of a notebook go with their code.

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
from typing import IO, cast

import cloudpickle

from exactrank._support.text import log_traceback, reason_of

#: Libraries read these when they are loaded.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
#: What the server's interpreter runs; the names in braces are filled in.
PROGRAM = "import sys; sys.path[:] = {path!r}; from exactrank.compare.workers import serve; serve({libraries!r})"
#: Imported once, before any fork.
PRELOADED = ("exactrank.compare.fitting", "exactrank.rankers.base", "scipy.optimize")
#: Seconds that the server has to end all fits and itself when it is asked to.
GRACE = 2.0
#: Bytes of what a process says when it ends; all of it is in the pipe by then.
MOST_SAID = 1 << 14
#: Seconds after which the server looks for what is to do, if nothing wakes it.
LONGEST_SLEEP = 3600.0
_PARENT_DEATH_SIGNAL = 1  # of Linux's prctl
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    status: int
    trouble: str = ""  #: what the process said in the end, where it could
    late: bool = False  #: was it killed because its time was over?

    @property
    def reason(self) -> str:
        """Why there is no result, if there is none.

        >>> Ended(-9).reason
        'its process was killed by SIGKILL, perhaps for want of memory; try fewer workers'
        """
        if self.trouble:
            return self.trouble
        if self.status == -signal.SIGKILL:
            return "its process was killed by SIGKILL, perhaps for want of memory; try fewer workers"
        if self.status < 0:
            names = {each.value: each.name for each in signal.Signals}
            return f"its process was ended by {names.get(-self.status, f'signal {-self.status}')}"
        return f"its process ended with the exit code {self.status} and no result"


class Server:
    """A process that forks one for each job; what they print goes to ``log``. It begins with the first job."""

    def __init__(self, threads: int, log: Path, libraries: Sequence[str] = ()) -> None:
        self._threads, self._log, self._libraries = threads, log, libraries
        self._groups: dict[str, int] = {}  # process groups of running jobs, by name

    @cached_property
    def _begun(self) -> tuple[subprocess.Popen[bytes], Connection, IO[bytes]]:
        """The process, where jobs go to, and where answers come from."""
        theirs, jobs = Pipe(duplex=False)
        alone = "-I" if sys.flags.isolated else "-P"  # both leave the current folder out
        with open(self._log, "ab") as told, theirs:
            process = subprocess.Popen(
                [sys.executable, alone, "-c", PROGRAM.format(path=[*map(str, sys.path)], libraries=[*self._libraries])],
                stdin=theirs.fileno(),
                stdout=subprocess.PIPE,
                stderr=told,
                bufsize=0,  # else what is ready would hide in a buffer
                env=os.environ | {name: str(self._threads) for name in THREAD_VARIABLES},
                start_new_session=True,
            )
        return process, jobs, cast(IO[bytes], process.stdout)

    def start(self, name: str, run: Callable[[], None], limit: float | None) -> Ended | None:
        """Call ``run`` in a process, which is killed after ``limit`` seconds; a result that is to last must be written to a file.

        `wait` will tell of the end by the ``name``; it is told at once where ``run`` cannot be sent to another process.
        """
        try:
            content = cloudpickle.dumps(run)
        except Exception as error:  # pickle raises whatever the value's classes raise
            return Ended(1, f"it cannot be sent to another process ({error}); leave out of it what only this process can hold")
        _, jobs, _ = self._begun
        try:
            jobs.send_bytes(pickle.dumps((name, limit, content)))
        except BrokenPipeError:
            raise self._lost() from None
        return None

    def wait(self, seconds: float) -> tuple[str, Ended] | None:
        """The name of a job that has ended, and how; None if none does within this number of seconds."""
        _, _, answers = self._begun
        if not wait([answers.fileno()], seconds):
            return None
        line = answers.readline()
        if not line.endswith(b"\n"):
            raise self._lost()
        answer = json.loads(line)
        name: str = answer.pop("name")
        if "group" in answer:
            self._groups[name] = answer["group"]
            return None
        self._groups.pop(name, None)
        return name, Ended(**answer)

    def _lost(self) -> OSError:
        return ChildProcessError(
            f"the process that starts fits has ended ({self._begun[0].wait()}); {self._log} says why;"
            " finished fits are kept, and --resume (resume=True) continues"
        )

    def close(self) -> None:
        """End the server and whatever is running."""
        if "_begun" not in self.__dict__:
            return
        process, jobs, answers = self._begun
        jobs.close()  # which tells the server to end
        answers.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
        if process.returncode != 0:  # it could not do its duty
            for group in (process.pid, *self._groups.values()):
                kill_group(group)
            process.wait()


def kill_group(group: int) -> None:
    """Kill all processes of a group, if there are any."""
    with suppress(ProcessLookupError, PermissionError):  # the latter is what macOS says of a group that has ended
        os.killpg(group, signal.SIGKILL)


def tie_to_parent() -> None:
    """Have this process killed when the one that started it ends, where the system knows how."""
    if _LIBC is not None:
        _LIBC.prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)


@dataclass(eq=False)
class Fork:
    """A process that does the job of this name."""

    name: str
    pid: int  #: of the process, and of its group
    says: int  #: where what it says in the end can be read
    until: float  #: when its time is over
    late: bool = False

    def ended(self) -> Ended | None:
        """How it ended; None while it runs. When its time is over it is killed, with all that it started."""
        if time.monotonic() >= self.until:
            self.late, self.until = True, float("inf")
            kill_group(self.pid)
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
    jobs, answers = Connection(os.dup(0), writable=False), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    for name in PRELOADED:
        import_module(name)
    for name in libraries:
        with suppress(Exception, SystemExit):  # of others' modules; the fit that needs it says what is wrong
            import_module(name)
    gc.freeze()  # forks share what is here, and do not look for garbage in it
    hears, told = os.pipe()  # a byte comes when a child ends
    for descriptor in (hears, told, answers):  # a caller that sends a job does not read answers at the same time
        os.set_blocking(descriptor, False)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    forks: list[Fork] = []
    try:
        with suppress(BrokenPipeError):  # the caller has ended
            _look_after(forks, jobs, answers, hears, told)
    finally:
        for fork in forks:
            kill_group(fork.pid)


def _look_after(forks: list[Fork], jobs: Connection, answers: int, hears: int, told: int) -> None:
    """Start what comes from ``jobs``, end what takes too long, and answer how each ended, until the caller closes its end."""
    unsent = bytearray()
    poll = select.poll()
    poll.register(jobs, select.POLLIN)
    poll.register(hears, select.POLLIN)
    while True:
        poll.register(answers, select.POLLOUT if unsent else 0)
        first = min((fork.until for fork in forks), default=float("inf"))
        found = {descriptor for descriptor, _ in poll.poll(1000 * min(LONGEST_SLEEP, max(0.0, first - time.monotonic())))}
        if hears in found:
            os.read(hears, MOST_SAID)
        for fork in [*forks]:
            ended = fork.ended()
            if ended is not None:
                forks.remove(fork)
                unsent += _answer(fork.name, **asdict(ended))
        if jobs.fileno() in found:
            try:
                name, limit, job = pickle.loads(jobs.recv_bytes())
            except (EOFError, OSError):
                return
            try:
                others = [jobs.fileno(), answers, hears, told, *(fork.says for fork in forks)]
                forks.append(_forked(name, float("inf") if limit is None else limit, job, others))
                unsent += _answer(name, group=forks[-1].pid)
            except OSError as error:
                trouble = f"no process could be started for it ({error.strerror}); try fewer workers"
                unsent += _answer(name, **asdict(Ended(1, trouble)))
        with suppress(BlockingIOError):
            del unsent[: os.write(answers, unsent)]


def _answer(name: str, **what: object) -> bytes:
    return json.dumps({"name": name, **what}).encode() + b"\n"


def _forked(name: str, limit: float, job: bytes, others: Sequence[int]) -> Fork:
    """A process that runs ``job`` in a group of its own; it gets none of the descriptors ``others``, so it can do the server no harm."""
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
            os.setpgid(0, 0)
            tie_to_parent()
            if os.getppid() == parent:  # else it had ended before
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for descriptor in (hears, *others):
                    os.close(descriptor)
                code = _run(job, says)
        finally:
            os._exit(code)
    with suppress(OSError):  # it may have done so itself
        os.setpgid(pid, pid)
    os.close(says)
    return Fork(name, pid, hears, time.monotonic() + limit)


def _run(job: bytes, says: int) -> int:
    """The exit code of a job; what went wrong is written to ``says``."""
    try:
        pickle.loads(job)()
    except BaseException as error:
        with suppress(OSError):  # a fit may have closed it
            os.write(says, reason_of(error).encode())
        log_traceback()
        return 1
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
    return 0
