"""Pipes as input: ``<(zcat run.gz)`` of a shell, or a FIFO.

Reading waits as long as a process has the pipe open for writing, however slow it is. If no process opens it for writing, or one writes
without end, reading stops with an error.
"""

import io
import os
import select
import time
from typing import TYPE_CHECKING

from exactrank.errors import DataError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

PATIENCE = 10.0  #: seconds to wait for a writer
MOST = 1 << 30  #: largest number of bytes that are read from a pipe


class Pipe(io.RawIOBase):
    """The content of a pipe that was opened without waiting (``O_NONBLOCK``); closing this object closes the pipe."""

    def __init__(self, handle: int, path: str) -> None:
        self._handle, self._path = handle, path
        self._deadline = time.monotonic() + PATIENCE
        self._bytes_read, self._has_writer, self._state = 0, False, select.poll()
        self._state.register(handle, 0)

    def readable(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Close the pipe."""
        if not self.closed:
            os.close(self._handle)
        super().close()

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Wait for content, fill ``buffer`` with what is there, and return the number of bytes; 0 at the end."""
        while True:
            try:
                size = os.readv(self._handle, [buffer])
            except BlockingIOError:  # there is a writer, which has not written yet
                self._has_writer = True
                select.select([self._handle], [], [])
                continue
            if self._has_writer or size > 0 or any(event & select.POLLHUP for _, event in self._state.poll(0)):  # it may be gone again
                break
            if time.monotonic() > self._deadline:
                raise DataError(f"{self._path} is a pipe that nothing writes to; start the program that writes to it, or give a file")
            time.sleep(0.02)
        self._has_writer = True
        self._bytes_read += size
        if self._bytes_read > MOST:
            raise DataError(f"{self._path} is a pipe that gave more than {MOST >> 20:,} MiB; write it to a file first")
        return size
