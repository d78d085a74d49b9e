"""Changes to bytes, to words and to JSON values."""

import json
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np

#: What texts are made wrong with: numbers at the edge of types, other alphabets, what other formats mean something by.
ODD_WORDS = [
    b"nan", b"inf", b"-inf", b"NULL", b"", b"-", b"+", b".", b"e", b"1e999", b"-1e999", b"1e-999", b"1_0", b"0x10", b"-0", b"1e308",
    b"3.5e38", b"9223372036854775807", b"9223372036854775808", b"-9223372036854775809", b"18446744073709551616", b"4294967296",
    b"2147483648", b"99999999999999999999", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", "é".encode(), "٣".encode(), b"\r", b"\n",
    b"\r\n", b"\v", b"\f", b"\t", b" ", b",", b":", b"#", b"'", b'"', b"[/b]", b"[red]", b"<b>", b"=1+1", b"{{7*7}}", b"\x1b[2J",
    b"," * 40, b"(" * 200, b"-" * 300,
]  # fmt: skip
ODD_VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2, 7, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, 2**63, 2**64, -(2**63), 10**40, 10**400, 0.5, -0.0, 1e308,
    1e-320, "", "x", "nan", "\x00", "\ud800", "[/b]", "<f4", "<f8", "<u8", ">i8", "|O", "<U9", "|V7", "f8,f8", [], {}, [[]], [0], [1, 2],
    [-1], {"a": 1}, {"kind": []}, [[[[[[1]]]]]], ["x"] * 3,
]  # fmt: skip


def mutated(rng: np.random.Generator, content: bytes, words: Sequence[bytes] = ODD_WORDS) -> bytes:
    """Some bytes overwritten, removed or repeated, some words put in."""
    changed = bytearray(content)
    for _ in range(rng.integers(1, 6)):
        at = int(rng.integers(len(changed) + 1))
        kind = rng.integers(6)
        if kind == 0 and at < len(changed):
            changed[at] = rng.integers(256)
        elif kind in (1, 2):
            changed[at : at + int(rng.integers(3))] = one_of(rng, words)
        elif kind == 3:
            del changed[at : at + int(rng.integers(1, 9))]
        elif kind == 4:
            changed[at:at] = changed[at : at + int(rng.integers(1, 60))]
        elif rng.random() < 0.3:
            del changed[at:]
    return bytes(changed)


def soup(rng: np.random.Generator, words: Sequence[bytes], most: int = 200) -> bytes:
    """Words at random, one after the other."""
    return b"".join(one_of(rng, words) for _ in range(rng.integers(1, most)))


def one_of(rng: np.random.Generator, values: Sequence[Any]) -> Any:
    """Any of ``values``."""
    return values[int(rng.integers(len(values)))]


def changed_json(rng: np.random.Generator, value: Any) -> Any:
    """A copy of a JSON value in which one to three parts are others."""
    copy = json.loads(json.dumps(value))
    for _ in range(rng.integers(1, 4)):
        places = list(_places(copy))
        if not places:
            return one_of(rng, ODD_VALUES)
        holder, key = one_of(rng, places)
        _change(rng, holder, key)
    return copy


def _places(value: Any) -> Any:
    """Every container with each of its keys or indices."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from _places(value[key])


def _change(rng: np.random.Generator, holder: Any, key: Any) -> None:
    kind = rng.integers(6)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[one_of(rng, ["", "x", "[/b]", "kind", "weights", str(key) + " "])] = holder.pop(key)
    elif kind == 2 and isinstance(holder, list):
        holder.insert(int(rng.integers(len(holder) + 1)), holder[key])
    elif kind == 3 and type(holder[key]) in (int, float) and abs(holder[key]) < 1e300:
        holder[key] = one_of(rng, [holder[key] + 1, holder[key] - 1, -holder[key], holder[key] * 2**32, float(holder[key])])
    else:
        holder[key] = deepcopy(one_of(rng, ODD_VALUES))  # a value that were there twice could be put into itself
