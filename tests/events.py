"""Events between processes, in the place of waits: whoever waits is woken by what happens, however fast or busy the machine is.

`HANGS` is the only time: nothing takes that long unless it hangs.
"""

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HANGS = 600.0  #: seconds after which something hangs
PACE = 0.02  #: seconds between two looks at what tells nobody when it happens


class Letterbox:
    """A FIFO, to which any process may `post` lines by its path."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path
        self._handle, self._text = os.open(path, os.O_RDWR), b""

    def line(self, process: "subprocess.Popen[Any] | None" = None) -> str:
        """The next line, once it comes; an error where ``process``, which should post it, has ended without."""
        wait_until(self._has_line, process)
        line, _, self._text = self._text.partition(b"\n")
        return line.decode()

    def _has_line(self) -> bool:
        if b"\n" not in self._text and select.select([self._handle], [], [], 50 * PACE)[0]:
            self._text += os.read(self._handle, select.PIPE_BUF)
        return b"\n" in self._text

    def close(self) -> None:
        """Lines that come later are lost."""
        os.close(self._handle)


def post(path: Path, line: object) -> None:
    """Post ``line`` to the `Letterbox` there."""
    handle = os.open(path, os.O_RDWR)  # not for writing alone: that would wait for a reader
    os.write(handle, f"{line}\n".encode())
    os.close(handle)


class Gate:
    """Shut until it is opened, or the process that made it ends; others `wait_at` its path."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path
        self._handle = os.open(path, os.O_RDWR)
        self._open = False

    def open(self) -> None:
        """Let everybody pass, those who wait and those who come later."""
        if not self._open:
            os.close(self._handle)
        self._open = True

    close = open


def wait_at(path: Path) -> None:
    """Wait until the `Gate` there is open: a FIFO is at its end once nobody has it open for writing."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        os.read(handle, 1)
    except BlockingIOError:
        select.select([handle], [], [], HANGS)
    os.close(handle)


def wait_until(happened: Callable[[], object], process: "subprocess.Popen[Any] | None" = None) -> None:
    """Wait until something has ``happened`` that tells nobody; an error where ``process``, which should do it, has ended without."""
    until = time.monotonic() + HANGS
    while not happened():
        if process is not None and process.poll() is not None and not happened():
            raise AssertionError(f"it ended with {process.returncode}: {process.communicate()}")
        assert time.monotonic() < until, "it hangs"
        time.sleep(PACE)


def gone(pid: int) -> bool:
    """Whether the process has ended, or does. On Linux its parent need not have asked how."""
    try:
        if sys.platform != "linux":
            wait_until(lambda: os.kill(pid, 0))
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], HANGS)[0])
    finally:
        os.close(handle)
