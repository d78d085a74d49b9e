"""Universal Binary JSON (draft 12), as XGBoost writes it, read within the bounds of its bytes.

A value is a mark followed by its content. A container may declare the number of its items (``#``), and before that their common kind
(``$``).
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from exactrank.errors import DataError
from exactrank.models.formats.content import Budget, unique

NUMBERS = {b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8"}
CONSTANTS = {b"Z": None, b"T": True, b"F": False}
DEEPEST = 100  #: maximum number of nested containers
UBJSONValue: TypeAlias = "bool | int | float | str | npt.NDArray[np.number] | list[UBJSONValue] | dict[str, UBJSONValue] | None"


def parse_ubjson(data: bytes, budget: Budget) -> UBJSONValue:
    """Return the value in ``data``: lists of numbers of one kind as arrays, others as Python lists."""
    parser = _Parser(data, budget)
    value = parser.value(parser.take(1), 0)
    if parser.at != len(data):
        raise DataError(f"the file continues after its end, at byte {parser.at:,}; copy it again")
    return value


class _Parser:
    """A position in ``data``, and the functions that read a value there."""

    def __init__(self, data: bytes, budget: Budget) -> None:
        self.data, self.at, self.budget = data, 0, budget

    def take(self, count: int) -> bytes:
        """Return the next ``count`` bytes, which must exist."""
        if not 0 <= count <= len(self.data) - self.at:
            raise DataError(
                f"{count:,} bytes are declared at byte {self.at:,} of {len(self.data):,}; the file is damaged, so copy it again"
            )
        self.at += count
        return self.data[self.at - count : self.at]

    def value(self, mark: bytes, depth: int) -> UBJSONValue:
        """Return the value after ``mark``."""
        if mark in CONSTANTS:
            return CONSTANTS[mark]
        if mark in NUMBERS:
            return self.number(mark)
        if mark in (b"S", b"H"):
            return self.string(self.take(1))
        if mark == b"C":
            return self.take(1).decode("latin-1")
        if mark not in (b"[", b"{") or depth == DEEPEST:
            raise DataError(f"byte {self.at - 1:,} is {mark!r} at depth {depth}, expected a value; the file is damaged, so copy it again")
        return self.container(mark == b"{", depth + 1)

    def number(self, mark: bytes) -> int | float:
        """Return the number after ``mark``."""
        number: int | float = np.frombuffer(self.take(int(NUMBERS[mark][2])), NUMBERS[mark])[0].item()
        return number

    def string(self, mark: bytes) -> str:
        """Return a string; ``mark`` begins its length."""
        try:
            return self.take(self.count(mark)).decode()
        except UnicodeDecodeError:
            raise DataError(f"a name that ends at byte {self.at:,} is not UTF-8; the file is damaged, so copy it again") from None

    def count(self, mark: bytes) -> int:
        """Return a number of items, which is at most the number of bytes that follow."""
        count = self.number(mark) if mark in NUMBERS and NUMBERS[mark][1] != "f" else -1
        if not 0 <= count <= len(self.data) - self.at:
            raise DataError(
                f"{count:,} items are declared at byte {self.at:,} of {len(self.data):,}; the file is damaged, so copy it again"
            )
        return int(count)

    def container(self, named: bool, depth: int) -> UBJSONValue:
        """Return a list, or values by name."""
        mark, kind, left = self.take(1), b"", -1
        if mark == b"$":
            kind, mark = self.take(1), self.take(1)
        if mark == b"#":
            left = self.count(self.take(1))
            mark = b"" if left == 0 else self.take(1) if named or not kind else kind
        elif kind:
            raise DataError(f"byte {self.at - 1:,} has a list of one kind without its length; the file is damaged, so copy it again")
        if kind in NUMBERS and not named:
            numbers = np.frombuffer(self.take(left * int(NUMBERS[kind][2])), NUMBERS[kind])
            return numbers.astype(numbers.dtype.newbyteorder("="))
        if kind in CONSTANTS and not named:  # which take no bytes
            self.budget.spend("numbers", left, f"the list at byte {self.at:,}")
            return [CONSTANTS[kind]] * left
        names, values = list[str](), list[UBJSONValue]()
        while left != 0 and mark != (b"}" if named else b"]"):
            names += [self.string(mark)] if named else []
            values.append(self.value(kind or (self.take(1) if named else mark), depth))
            left -= 1
            if left != 0:
                mark = kind if kind and not named else self.take(1)
        try:
            return unique(list(zip(names, values, strict=True))) if named else values
        except ValueError as error:
            raise DataError(f"{error}; the file is damaged, so copy it again") from None
