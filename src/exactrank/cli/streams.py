"""The standard streams, which may be closed, may not know every letter, and may have a reader that leaves."""

import os
import sys
from typing import TextIO


def settle() -> None:
    """Make the streams safe to use, once, when the program starts.

    A closed one is opened on nothing, for reading alone: else the next file that is opened would take its place, and get what a library
    prints; and results that are sent there would be lost without a word. Letters that a stream cannot show are printed as escapes.
    """
    for handle in range(3):
        try:
            os.fstat(handle)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)  # takes the lowest number that is free: this one
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def stdout() -> TextIO:
    """Standard output, once it is not closed."""
    if sys.stdout is None:
        raise OSError("standard output is closed, so the results cannot be printed; send them to a file or to /dev/null")
    return sys.stdout


def leave_stdout() -> None:
    """Send what is left of stdout nowhere where it cannot be written: the reader left, or the disk is full."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
