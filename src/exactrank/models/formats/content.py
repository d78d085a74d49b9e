"""The content of a file that may be a model, as bytes, as text and as JSON; its reader, and the budget of reading it.

A file of n bytes may take max(2^28, 256 n) bytes of memory, and time in proportion, as for the reader of LETOR text. Most objects that a
reader builds are as long as the text that it reads. The others are paid from the `Budget` before they are built: those whose size is a
number in the file, such as the number of features, and those that a file can name several times but hold once.
"""

import json
import math
import os
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import PerDocument
from exactrank._support.json_values import JSONObject, JSONValue
from exactrank._support.numerals import is_finite_number
from exactrank.data.duplicates import first_duplicate
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError

T = TypeVar("T")
DIGITS = 4000  #: maximum number of digits of a whole number, more than any finite double has
DAMAGED = "the file is damaged, so train or copy the model again"
_EXPECTED = "expected a file from exactrank train, from a library that exactrank reads, or JSON with weights"
ALWAYS, PER_BYTE = 1 << 28, 256  #: bytes of memory that any file may take, and for each of its bytes
#: Bytes per feature, which has a name and a place in tables, and per number.
COSTS = {"features": 256, "numbers": 8}


@dataclass(eq=False)
class Budget:
    """Memory in bytes that is ``left`` for reading a file of ``size`` bytes; unlimited for objects of this process."""

    size: int = 0
    left: float = math.inf

    @classmethod
    def of(cls, data: bytes) -> "Budget":
        """Return the budget of reading ``data``."""
        return cls(len(data), max(ALWAYS, PER_BYTE * len(data)))

    def spend(self, kind: str, count: int, place: str, remedy: str = DAMAGED) -> None:
        """Pay for ``count`` items of a kind in `COSTS`; raises if ``place``, which asks for them, asks for more than is left."""
        self.left -= COSTS[kind] * count
        if self.left < 0:
            raise DataError(f"{place} asks for {count:,} {kind}, too many for a file of {self.size:,} bytes; {remedy}")


class Loaded(Protocol):
    """The content of a file that was read: it scores documents, and can be saved again."""

    def predict(self, data: RankingData) -> PerDocument:
        """Return the score of each row, in the caller's order."""

    def to_bytes(self) -> bytes:
        """Return the content of its file."""

    def save(self, path: str | os.PathLike[str], force: bool = False) -> None:
        """Write the file; an existing one is replaced only with ``force``."""


@dataclass(frozen=True, eq=False)
class Content:
    """The bytes of the file ``where``; the caller may give the number of features, for files that lack it, and a ``module``."""

    data: bytes
    where: str
    n_features: int | None = None
    module: object = None

    @cached_property
    def budget(self) -> Budget:
        """The memory that reading the file may still take."""
        return Budget.of(self.data)

    @property
    def is_binary(self) -> bool:
        """True if it begins as UBJSON does, and no JSON can."""
        return len(self.data) > 1 and self.data[:1] == b"{" and self.data[1:2] in b"iUIlL#$"

    @property
    def own_format(self) -> str | None:
        """The format that a JSON object names, as all files of exactrank do; None if the file is anything else."""
        beginning = self.data[:64].decode(json.detect_encoding(self.data), errors="ignore").lstrip("\ufeff \t\r\n")
        name = self.record.get("format") if beginning.startswith("{") and not self.is_binary else None
        return name if isinstance(name, str) else None

    @cached_property
    def text(self) -> str:
        """The content as text."""
        try:
            return self.data.decode(json.detect_encoding(self.data))
        except UnicodeDecodeError:
            raise DataError(f"{self.where} is not a model: it is not text; {_EXPECTED}") from None

    @cached_property
    def json(self) -> JSONValue:
        """The JSON value, read strictly: no repeated names, no NaN, no number with more digits than any finite double has."""
        try:
            value: JSONValue = json.loads(self.text, object_pairs_hook=unique, parse_constant=_refuse_constant, parse_int=_whole_number)
            return value
        except RecursionError:
            trouble = "its lists are nested too deeply"
        except DataError:
            raise
        except ValueError as error:
            trouble = str(error)
        raise DataError(f"{self.where} is not a model: {trouble}; {_EXPECTED}")

    @property
    def record(self) -> JSONObject:
        """The JSON object; empty if it is a list."""
        return self.json if isinstance(self.json, dict) else {}


@dataclass(frozen=True)
class Reader:
    """The functions that recognize and read one kind of file. Errors of ``read`` need not name the file."""

    recognizes: Callable[[Content], bool]
    read: Callable[[Content], Loaded]


def unique(pairs: Sequence[tuple[str, T]]) -> dict[str, T]:
    """Return the values by name; a repeated name is an error."""
    twice = first_duplicate([name for name, _ in pairs])
    if twice is not None:
        raise ValueError(f"{reprlib.repr(twice)} appears twice")
    return dict(pairs)


def part(record: object, path: str, kind: type[T]) -> T:
    """Return the value in nested ``record`` at ``path``, such as ``learner.objective.name``, checked to be of ``kind``."""
    value = record
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    if not isinstance(value, kind):
        raise DataError(f"{path} is {reprlib.repr(value)}; {DAMAGED}")
    return value


def array(record: object, name: str, where: str, kinds: str = "iu", size: int | None = None) -> npt.NDArray[Any]:
    """Return the list ``name`` of ``record`` as an array of ``size`` numbers, of NumPy's ``kinds``: integers, or ``iufb``."""
    value = record.get(name) if isinstance(record, Mapping) else None
    # Texts would all get the space of the longest, so only numbers become an array.
    are_numbers = isinstance(value, np.ndarray) or (isinstance(value, list) and all(isinstance(item, int | float) for item in value))
    values = np.asarray(value if are_numbers else None)
    if values.shape == (0,):
        values = values.astype(np.int64)
    if values.ndim != 1 or values.dtype.kind not in kinds or (size is not None and len(values) != size):
        raise DataError(f"{where}: {name} is {reprlib.repr(value)}, expected {'' if size is None else f'{size} '}numbers; {DAMAGED}")
    return values


def finite(value: object, name: str) -> float:
    """Return ``value``, checked to be a finite number."""
    if not is_finite_number(value):
        raise DataError(f"{name} is {reprlib.repr(value)}, expected a finite number; {DAMAGED}")
    return float(value)


def _refuse_constant(token: str) -> NoReturn:
    raise ValueError(f"{token} is not a JSON number")


def _whole_number(digits: str) -> int:
    if len(digits) > DIGITS:
        raise ValueError(f"a number has {len(digits):,} digits")
    return int(digits)
