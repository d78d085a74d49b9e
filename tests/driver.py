"""A process that forks one for each run of the command line, so that a run takes milliseconds and leaves the next as it was.

What a run imports the driver imports before the next, so that libraries are imported once, and never in the midst of faults.
Requests and answers are lines of JSON on standard input and output.
"""

import atexit
import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.faults.shim import VARIABLE, Fault, Plan, environment

LIMIT = 300  #: seconds of a run
ROOM = 1 << 20  #: bytes that a run may say


@dataclass(frozen=True)
class Ended:
    """How a run ended: its exit code or minus the signal, what it said, and how many calls of the fault's kind there were."""

    code: int
    out: str
    err: str
    count: int


@dataclass
class Driver:
    """The process, from the side of the tests; faults need the shim, for which it needs a folder."""

    folder: Path | None = None
    _process: Any = field(init=False)

    def __enter__(self) -> "Driver":
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[1],  # wherever the first test that needs it is
            env=os.environ
            | ({} if self.folder is None else environment(self.folder))
            | {"COLUMNS": "120", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "2"},
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.wait()

    def run(
        self,
        *arguments: object,
        at: Path,
        fault: Fault | None = None,
        limits: dict[str, int] | None = None,
        together: bool = False,
        **variables: str,
    ) -> Ended:
        """``exactrank ARGUMENTS`` in the folder ``at``, whose files the fault is about, under limits such as ``{"FSIZE": 100}``.

        A limit of ``AS`` is on the memory beyond what the process has before it does anything. With ``together`` what goes to stderr goes
        to stdout, in the order in which it is said. ``variables`` are those of the environment.
        """
        request = {
            "arguments": [*map(str, arguments)],
            "at": str(at),
            "fault": fault and asdict(fault),
            "limits": limits or {},
            "together": together,
            "variables": variables,
        }
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return Ended(**json.loads(self._process.stdout.readline()))


@cache
def commands() -> Driver:
    """One for all tests of this process that ask for no faults."""
    driver = Driver().__enter__()
    atexit.register(driver.__exit__)
    return driver


def serve() -> None:
    """What the process does."""
    import_module("exactrank.cli")
    plan = Plan.shared() if VARIABLE in os.environ else Plan()
    for line in sys.stdin:
        print(json.dumps(asdict(_ran(json.loads(line), plan))), flush=True)


def _ran(request: dict[str, Any], plan: Plan) -> Ended:
    """The run in a process of its own; what it says goes through pipes, which no limit on files concerns."""
    pipes = [_pipe() for _ in range(3)]
    (_, out), (_, err), (_, modules) = pipes
    pid = os.fork()
    if pid == 0:
        for target, says in ((0, os.open(os.devnull, os.O_RDONLY)), (1, out), (2, out if request["together"] else err)):
            os.dup2(says, target)
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(i, "w" if i else "r", 1, closefd=False) for i in range(3))
        code = _command(request, plan)
        plan.disarm()
        os.write(modules, "\n".join(sys.modules).encode())
        os._exit(code)
    _, status = os.waitpid(pid, 0)
    count = plan.disarm()
    message, complained, imported = [_drained(*pipe) for pipe in pipes]
    _import(imported.split())
    return Ended(os.waitstatus_to_exitcode(status), message, complained, count)


def _pipe() -> tuple[int, int]:
    """One that holds all that a run says, so that nobody need read meanwhile."""
    hears, says = os.pipe()
    fcntl.fcntl(says, fcntl.F_SETPIPE_SZ, ROOM)
    os.set_blocking(hears, False)
    return hears, says


def _drained(hears: int, says: int) -> str:
    os.close(says)
    with suppress(BlockingIOError), os.fdopen(hears, "rb", buffering=0) as pipe:
        return (pipe.read() or b"").decode(errors="backslashreplace")
    return ""


def _command(request: dict[str, Any], plan: Plan) -> int:
    """The exit code of the command line, in this process."""
    os.chdir(request["at"])
    scratch = {"TMPDIR": os.path.join(request["at"], "tmp")} if VARIABLE in os.environ else {}
    os.environ |= scratch | request["variables"]
    tempfile.tempdir = None
    sys.argv = ["exactrank", *request["arguments"]]
    signal.alarm(LIMIT)
    for name, limit in request["limits"].items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (limit + (_addresses() if name == "AS" else 0),) * 2)
    if request["fault"] is not None:
        plan.arm(Fault(**request["fault"]), request["at"])
    try:
        import_module("exactrank.cli").main()
        code = 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def _addresses() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _import(names: list[str]) -> None:
    for name in names:
        if name not in sys.modules:
            with suppress(Exception):  # parts of packages that are no modules
                import_module(name)


if __name__ == "__main__":
    serve()
