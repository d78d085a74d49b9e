"""Numbers written in files, settings and on the command line.

Python's ``int`` and ``float`` also read ``1_0`` as 10, and the digits of other scripts. Other programs refuse both. In data they are
mistakes, so here they are errors everywhere.
"""

import ast
import sys
from math import inf
from typing import TypeGuard


def whole_number(text: str | bytes) -> int:
    """Return the whole number that ``text`` writes, or raise a `ValueError`.

    >>> whole_number("12"), whole_number(b"-3")
    (12, -3)
    """
    return int(_plain(text))


def number(text: str | bytes) -> float:
    """Return the number that ``text`` writes, or raise a `ValueError`.

    >>> number("1e-3"), number(b"nan")
    (0.001, nan)
    >>> number("1_0")
    Traceback (most recent call last):
        ...
    ValueError: '1_0' is not a number; write it with the digits 0 to 9, without _
    """
    return float(_plain(text))


def is_finite_number(value: object) -> TypeGuard[int | float]:
    """Return whether ``value`` is a number, though not a boolean, that is finite as a double.

    >>> [is_finite_number(value) for value in (1, 0.5, True, "1", 10**400, float("nan"))]
    [True, True, False, False, False, False]
    """
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def check_literals(tree: ast.AST, source: str) -> None:
    """Raise a `ValueError` if a number in ``tree``, which is parsed from ``source``, has underscores or is too large."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float | complex):
            numeral = _plain(ast.get_source_segment(source, node) or "")
            if node.value == inf:
                raise ValueError(f"{numeral!r} is larger than any number that can be held")


def _plain(text: str | bytes) -> str | bytes:
    if not text.isascii() or ("_" if isinstance(text, str) else b"_") in text:  # type: ignore[operator]  # of the same type
        content = text if isinstance(text, str) else text.decode("utf-8", "backslashreplace")
        raise ValueError(f"{content[:40]!r} is not a number; write it with the digits 0 to 9, without _")
    return text
