"""Processes of fits: however a fit ends, hangs or misbehaves, there is a reason, nothing hangs, and nothing outlives it."""

import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from exactrank._support.text import LONGEST, clip, reason_of
from exactrank.compare.workers import ForkServer, ProcessExit
from tests.cli.test_cli import PROGRAM
from tests.events import HANGS, Letterbox, gone

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc")


@dataclass(frozen=True)
class Odd:
    """A job that calls a function of this module with a folder of its own."""

    function: str
    folder: Path
    limit: float | None = HANGS

    def run(self):
        globals()[self.function](self.folder)


def good(folder):
    (folder / "done").touch()


def raise_memory_error(folder):
    raise MemoryError


def raise_something_long(folder):
    raise RuntimeError("ä" * 10_000_000 + "\udcff the end")


def exit_early(folder):
    sys.exit("enough")


def close_everything(folder):
    os.closerange(0, 10_000)
    raise RuntimeError("nobody can hear this")


def write_everywhere(folder):
    for descriptor in range(3, 200):
        with suppress(OSError):
            os.write(descriptor, b"noise" * 10)


def open_10_000_files(folder):
    resource.setrlimit(resource.RLIMIT_NOFILE, (10_000,) * 2)
    while True:
        os.dup(0)


def leave_a_child(folder):
    """Which holds all descriptors, and would sleep for ever."""
    pid = os.fork()
    if pid == 0:
        time.sleep(600)
    (folder / "part").write_text(str(pid))
    (folder / "part").rename(folder / "pid")


def hang_with_a_child(folder):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    leave_a_child(folder)
    time.sleep(600)


def die_of(number):
    def die(folder):
        os.kill(os.getpid(), number)
        time.sleep(60)

    return die


die_by_segfault, die_by_kill, die_by_a_nameless_signal = die_of(signal.SIGSEGV), die_of(signal.SIGKILL), die_of(signal.SIGRTMIN + 3)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with closing(ForkServer(1, tmp_path_factory.mktemp("log") / "log.txt", ["tests.compare.test_workers"])) as made:
        yield made


def ended(server, job):
    """How the job ends, which must not take for ever."""
    assert server.start("seven", job.run, job.limit) is None
    until = time.monotonic() + HANGS
    while (answer := server.wait(0.2)) is None:
        assert time.monotonic() < until, "it hangs"
    assert answer[0] == "seven"
    return answer[1]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("raise_memory_error", "MemoryError"),
        ("exit_early", "SystemExit: enough"),
        ("close_everything", "its process ended with the exit code 1 and no result"),
        ("write_everywhere", "noise" * 10),  # which it could only tell about itself
        ("open_10_000_files", "OSError: [Errno 24] Too many open files"),
        ("die_by_segfault", "its process was ended by SIGSEGV"),
        ("die_by_kill", "its process was killed by SIGKILL, perhaps for want of memory; try fewer workers"),
        ("die_by_a_nameless_signal", "its process was ended by signal 37"),
    ],
)
def test_whatever_a_fit_does_there_is_a_reason_and_the_next_one_works(server, tmp_path, function, reason):
    end = ended(server, Odd(function, tmp_path))
    assert end.reason == reason
    assert not end.timed_out
    assert ended(server, Odd("good", tmp_path)) == ProcessExit(0)
    assert (tmp_path / "done").exists()


def test_reasons_are_short_and_can_be_written(server, tmp_path):
    reason = ended(server, Odd("raise_something_long", tmp_path)).reason
    assert len(reason.encode()) < 4 * LONGEST
    assert reason.startswith("RuntimeError: ää")
    assert reason.endswith("ä\\udcff the end")
    assert len(clip("x" * 10**6)) <= LONGEST
    assert reason_of(MemoryError()) == "MemoryError"


def test_a_child_that_a_fit_leaves_holds_up_nobody_and_is_killed(server, tmp_path):
    assert ended(server, Odd("leave_a_child", tmp_path)) == ProcessExit(0)
    assert gone(int((tmp_path / "pid").read_text()))


def test_when_its_time_is_over_a_fit_is_killed_with_all_that_it_started(server, tmp_path):
    limit = 0.1
    while not (tmp_path / "pid").exists():  # a slow machine had no time to start the child, and gets twice as much
        limit *= 2
        assert ended(server, Odd("hang_with_a_child", tmp_path, limit)) == ProcessExit(-signal.SIGKILL, timed_out=True)
    assert gone(int((tmp_path / "pid").read_text()))
    assert ended(server, Odd("good", tmp_path)) == ProcessExit(0)


#: A program that tells its id and that of a child, and waits for ever.
ENDLESS = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
with open(sys.argv[1], "w") as file:
    print(os.getppid(), os.getpid(), child.pid, file=file)
time.sleep(600)
"""


@pytest.fixture
def web(tmp_path):
    """A comparison of data in this folder; methods are to be added."""
    (tmp_path / "web.txt").write_text("".join(f"{d % 3} qid:{q} 1:{d} 2:{(d * q) % 5}\n" for q in range(1, 7) for d in range(4)))
    return [PROGRAM, "compare", "web.txt", "--folds", "3", "--out", "out", "--threads", "1"]


@pytest.fixture
def endless(tmp_path, web):
    """A comparison with such a program, once it runs, and those ids: of the fit, the program and its child."""
    (tmp_path / "endless.py").write_text(ENDLESS)
    with closing(Letterbox(tmp_path / "pids")) as pids:
        program = f"p={sys.executable} {tmp_path / 'endless.py'} {pids.path} {{test}} {{scores}}"
        command = [*web, "--methods", "ridge", "--program", program]
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        yield process, [int(word) for word in pids.line(process).split()]
        process.kill()
        process.communicate()


def test_a_program_does_not_outlive_a_comparison_that_is_killed(endless):
    comparison, ids = endless
    comparison.kill()
    assert all(map(gone, ids))


def test_a_comparison_whose_server_is_killed_ends_with_all_programs(endless):
    comparison, (fit, *others) = endless
    server = int(Path(f"/proc/{fit}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(server, signal.SIGKILL)
    _, message = comparison.communicate(timeout=HANGS)
    assert comparison.returncode == 1
    assert "--resume" in message
    assert "Traceback" not in message
    assert all(map(gone, [fit, *others]))


EVIL = "from pathlib import Path\nPath(__file__).with_name('evil-was-here').touch()\n"
OWN = "from tests.compare.odd_contenders import Printing\nclass Mine(Printing):\n    pass\n"


def test_modules_come_from_where_the_caller_has_them_and_not_from_the_current_folder(tmp_path, web):
    for name in ("lightgbm", "scipy", "json"):
        (tmp_path / f"{name}.py").write_text(EVIL)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "mine_alone.py").write_text(OWN)
    given = filter(None, [os.environ.get("PYTHONPATH")])  # an empty entry would be the current folder
    paths = {"PYTHONPATH": os.pathsep.join(["own", os.getcwd(), *given])}
    how = {"cwd": tmp_path, "capture_output": True, "text": True}
    command = [*web, "--methods", "lightgbm(trees=2),mine_alone:Mine"]
    result = subprocess.run(command, env={**os.environ, **paths}, check=False, **how)
    assert result.returncode == 0, result.stderr
    assert "failed" not in result.stdout + result.stderr
    assert not (tmp_path / "evil-was-here").exists()
    refused = subprocess.run([*command, "--force"], check=False, **how)
    assert refused.returncode == 2
    assert "PYTHONPATH" in refused.stderr


def test_a_caller_with_an_odd_path_and_many_open_files(tmp_path, monkeypatch):
    odd = tmp_path / "with:colon 'and quotes\""
    odd.mkdir()
    (odd / "only_there.py").write_text("from tests.compare.test_workers import good as run\n")
    monkeypatch.syspath_prepend(odd)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2000), hard))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        with closing(ForkServer(1, tmp_path / "log.txt")) as server:
            assert ended(server, Odd("import_only_there", tmp_path)) == ProcessExit(0)
    finally:
        for descriptor in opened:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (tmp_path / "done").exists()


def import_only_there(folder):
    import only_there

    only_there.run(folder)
