"""Text from outside, such as names, paths and what a file holds, made fit to be shown.

Letters, digits, signs and the plain blank stay as they are. All else is written as Python's ``repr`` writes it: control characters
and terminal escapes, line ends, marks that turn the direction of writing, and bytes that are not UTF-8. A backslash stays one, so what
is already printable does not change.
"""

from collections.abc import Iterable, Mapping
from typing import Any

SHOWN = 2000  #: characters of a message that are shown


def printable(text: str, *, lines: bool = False) -> str:
    """``text`` with an escape for each character that has no shape of its own; ``lines`` keeps the line ends.

    >>> print(printable("bm25\\x1b[2J\\n\\udcff"), printable("a\\tb\\nc", lines=True))
    bm25\\x1b[2J\\n\\udcff a\\tb
    c
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or (lines and c == "\n") else c.encode("unicode_escape").decode() for c in text)


def shortened(text: str, most: int = SHOWN) -> str:
    """``text``, or its two ends where it is longer than ``most``.

    >>> shortened("a" * 40, 20)
    'aaaaaaaaaa ... (40 characters) ... aaaaaaaaaa'
    """
    half = most // 2
    return text if len(text) <= most else f"{text[:half]} ... ({len(text):,} characters) ... {text[-half:]}"


def encoded(text: str) -> bytes:
    r"""``text`` as UTF-8; a byte that was no UTF-8 in the data, which Python has as half a character, is written ``\udcff``."""
    return text.encode("utf-8", "backslashreplace")


def did_you_mean(name: str, known: Iterable[str], likeness: float = 0.6) -> str:
    """A hint at the one of the ``known`` names that is most like ``name``; empty if none is as like as that, of 1 at most.

    >>> did_you_mean("NDGC", ["nDCG", "AP"]), did_you_mean("x", ["nDCG", "AP"])
    (' (did you mean nDCG?)', '')
    """
    import difflib

    spelled = {each.lower(): each for each in known}
    close = difflib.get_close_matches(str(name).lower(), spelled, n=1, cutoff=likeness)
    return f" (did you mean {spelled[close[0]]}?)" if close else ""


def written(settings: Mapping[str, Any]) -> str:
    """Settings in one line, as Python has them.

    >>> written({"rate": 0.1, "kind": "a"})
    "rate=0.1, kind='a'"
    """
    return ", ".join(f"{name}={value!r}" for name, value in settings.items())
