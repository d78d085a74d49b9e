"""Pipes as input: ``<(zcat run.gz)`` of a shell, or a FIFO.

Reading waits as long as someone has the pipe open for writing, however slow. If nobody opens it for writing, or someone writes without
end, reading stops with an error.
"""

import io
import os
import select
import time
from typing import Any

from exactrank.errors import DataError

PATIENCE = 10.0  #: seconds to wait for a writer
MOST = 1 << 30  #: bytes that are read from a pipe


class Pipe(io.RawIOBase):
    """The bytes that come through a pipe that was opened without waiting (``O_NONBLOCK``); it is closed with this."""

    def __init__(self, handle: int, path: str) -> None:
        self._handle, self._path = handle, path
        self._deadline = time.monotonic() + PATIENCE
        self._read, self._begun, self._state = 0, False, select.poll()
        self._state.register(handle, 0)

    def readable(self) -> bool:
        """Yes."""
        return True

    def close(self) -> None:
        """Close the pipe."""
        if not self.closed:
            os.close(self._handle)
        super().close()

    def readinto(self, buffer: Any) -> int:
        """As much as is there, once something is; 0 at the end."""
        while True:
            try:
                size = os.readv(self._handle, [buffer])
            except BlockingIOError:  # a writer is there, and silent
                self._begun = True
                select.select([self._handle], [], [])
                continue
            if self._begun or size > 0 or any(event & select.POLLHUP for _, event in self._state.poll(0)):  # a writer came, and may be gone
                break
            if time.monotonic() > self._deadline:
                raise DataError(f"{self._path} is a pipe that nothing writes to; start the program that writes to it, or give a file")
            time.sleep(0.02)
        self._begun = True
        self._read += size
        if self._read > MOST:
            raise DataError(f"{self._path} is a pipe that gave more than {MOST >> 20:,} MiB; write it to a file first")
        return size
