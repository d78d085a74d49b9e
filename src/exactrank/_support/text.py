"""Text for messages and tables: safe to print, of bounded length, and the reasons of errors.

Names, paths and the content of files come from anywhere. Letters, digits, signs and the plain blank stay as they are. Everything else is
written as Python's ``repr`` writes it: control characters and terminal escapes, line ends, marks that turn the direction of writing, and
bytes that are not UTF-8. A backslash stays a single backslash, so text that is already printable does not change.
"""

import sys
import traceback
from collections.abc import Iterable, Mapping
from contextlib import suppress

from exactrank.errors import ExactRankError

#: The longest text of a message or an error, in characters.
LONGEST = 2000
#: The longest traceback in a log, in characters.
LONGEST_TRACEBACK = 20_000


def printable(text: str, *, lines: bool = False) -> str:
    """Return ``text`` with an escape for each character that has no shape of its own; ``lines`` keeps the line ends.

    >>> print(printable("bm25\\x1b[2J\\n\\udcff"), printable("a\\tb\\nc", lines=True))
    bm25\\x1b[2J\\n\\udcff a\\tb
    c
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or (lines and c == "\n") else c.encode("unicode_escape").decode() for c in text)


def clip(text: str, longest: int = LONGEST) -> str:
    """Return ``text``, without its middle if it is longer than ``longest``, and with escapes for what is not Unicode.

    >>> clip("begin" + "-" * 1000 + "end", longest=20)
    'begin-- ... ----end'
    """
    if len(text) > longest:
        half = (longest - len(" ... ")) // 2
        text = f"{text[:half]} ... {text[-half:]}"
    return encode(text).decode()


def encode(text: str) -> bytes:
    r"""Return ``text`` as UTF-8. A byte that was not UTF-8 in the data, which Python holds as a surrogate, is written ``\udcff``."""
    return text.encode("utf-8", "backslashreplace")


def reason_of(error: BaseException) -> str:
    """Return the message of ``error``; unless it is an error of this library, the name of its type comes first.

    >>> reason_of(MemoryError()), reason_of(KeyError("x"))
    ('MemoryError', "KeyError: 'x'")
    """
    message = str(error)
    if isinstance(error, ExactRankError):
        return clip(message)
    return clip(f"{type(error).__name__}: {message}" if message else type(error).__name__)


def log_traceback() -> None:
    """Write the traceback of the current error to standard error, if that is open."""
    with suppress(OSError, ValueError):
        sys.stderr.write(clip(traceback.format_exc(), LONGEST_TRACEBACK))


def did_you_mean(name: str, candidates: Iterable[str], similarity: float = 0.6) -> str:
    """Return a hint at the candidate that is most similar to ``name``; empty if none has this similarity, which is at most 1.

    >>> did_you_mean("NDGC", ["nDCG", "AP"]), did_you_mean("x", ["nDCG", "AP"])
    (' (did you mean nDCG?)', '')
    """
    import difflib

    spellings = {candidate.lower(): candidate for candidate in candidates}
    matches = difflib.get_close_matches(str(name).lower(), spellings, n=1, cutoff=similarity)
    return f" (did you mean {spellings[matches[0]]}?)" if matches else ""


def settings_text(settings: Mapping[str, object]) -> str:
    """Return settings in one line, as arguments of a call in Python.

    >>> settings_text({"rate": 0.1, "kind": "a"})
    "rate=0.1, kind='a'"
    """
    return ", ".join(f"{name}={value!r}" for name, value in settings.items())
