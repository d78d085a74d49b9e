"""Universal Binary JSON (draft 12), as XGBoost writes it, read within the bounds of its bytes.

A value is a mark and what follows it. Containers may declare the number of their items (``#``), and before that their common kind (``$``).
"""

from typing import Any

import numpy as np

from exactrank.errors import DataError
from exactrank.models.formats.content import Budget, unique

NUMBERS = {b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8"}
CONSTANTS = {b"Z": None, b"T": True, b"F": False}
DEEPEST = 100  #: nested containers


def parsed(data: bytes, budget: Budget) -> Any:
    """The value in ``data``: lists of numbers of one kind as arrays, others as Python lists."""
    reading = _Reading(data, budget)
    found = reading.value(reading.take(1), 0)
    if reading.at != len(data):
        raise DataError(f"the file continues after its end, at byte {reading.at:,}; copy it again")
    return found


class _Reading:
    def __init__(self, data: bytes, budget: Budget) -> None:
        self.data, self.at, self.budget = data, 0, budget

    def take(self, count: int) -> bytes:
        """The next ``count`` bytes, which must exist."""
        if not 0 <= count <= len(self.data) - self.at:
            raise DataError(
                f"{count:,} bytes are declared at byte {self.at:,} of {len(self.data):,}; the file is damaged, so copy it again"
            )
        self.at += count
        return self.data[self.at - count : self.at]

    def value(self, mark: bytes, depth: int) -> Any:
        """The value after ``mark``."""
        if mark in CONSTANTS:
            return CONSTANTS[mark]
        if mark in NUMBERS:
            return np.frombuffer(self.take(int(NUMBERS[mark][2])), NUMBERS[mark])[0].item()
        if mark in (b"S", b"H"):
            return self.string(self.take(1))
        if mark == b"C":
            return self.take(1).decode("latin-1")
        if mark not in (b"[", b"{") or depth == DEEPEST:
            raise DataError(f"byte {self.at - 1:,} is {mark!r} at depth {depth}, expected a value; the file is damaged, so copy it again")
        return self.container(mark == b"{", depth + 1)

    def string(self, mark: bytes) -> str:
        """A string; ``mark`` begins its length."""
        try:
            return self.take(self.count(mark)).decode()
        except UnicodeDecodeError:
            raise DataError(f"a name that ends at byte {self.at:,} is not UTF-8; the file is damaged, so copy it again") from None

    def count(self, mark: bytes) -> int:
        """A number of items, which is at most the number of bytes that follow."""
        found = self.value(mark, 0) if mark in NUMBERS and NUMBERS[mark][1] != "f" else -1
        if not 0 <= found <= len(self.data) - self.at:
            raise DataError(
                f"{found:,} items are declared at byte {self.at:,} of {len(self.data):,}; the file is damaged, so copy it again"
            )
        return int(found)

    def container(self, named: bool, depth: int) -> Any:
        """A list, or values by name."""
        mark, kind, left = self.take(1), b"", -1
        if mark == b"$":
            kind, mark = self.take(1), self.take(1)
        if mark == b"#":
            left = self.count(self.take(1))
            mark = b"" if left == 0 else self.take(1) if named or not kind else kind
        elif kind:
            raise DataError(f"byte {self.at - 1:,} has a list of one kind without its length; the file is damaged, so copy it again")
        if kind in NUMBERS and not named:
            values = np.frombuffer(self.take(left * int(NUMBERS[kind][2])), NUMBERS[kind])
            return values.astype(values.dtype.newbyteorder("="))
        if kind in CONSTANTS and not named:  # which take no bytes
            self.budget.spend("numbers", left, f"the list at byte {self.at:,}")
            return [CONSTANTS[kind]] * left
        items: list[Any] = []
        while left != 0 and mark != (b"}" if named else b"]"):
            name = self.string(mark) if named else None
            own = self.value(kind or (self.take(1) if named else mark), depth)
            items.append((name, own) if named else own)
            left -= 1
            if left != 0:
                mark = kind if kind and not named else self.take(1)
        try:
            return unique(items) if named else items
        except ValueError as error:
            raise DataError(f"{error}; the file is damaged, so copy it again") from None
