"""The content of a file that may be a model: its bytes, as text and as JSON if it is that, its reader, and the budget of reading it.

A file of n bytes may take max(2^28, 256 n) bytes of memory, and time in proportion: the bound that the reader of LETOR text has too. Most
of what a reader builds is as long as what it reads. The rest is paid from the `Budget`, before it is built: what a number in the
file asks for, such as a number of features, and what a file can name several times but hold once.
"""

import json
import math
import os
import reprlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import PerDocument
from exactrank.data.duplicates import first_duplicate
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError

DIGITS = 4000  #: of a whole number: more than any finite double has
DAMAGED = "the file is damaged, so train or copy the model again"
_EXPECTED = "expected a file from exactrank train, from a library that exactrank reads, or JSON with weights"


ALWAYS, PER_BYTE = 1 << 28, 256  #: bytes of memory that a file may take: any file, and for each of its bytes
#: What things take, in bytes: a feature has a name and its place in tables.
COSTS = {"features": 256, "numbers": 8}


@dataclass(eq=False)
class Budget:
    """Bytes of memory that are ``left`` for what is built of a file of ``size`` bytes; without bound for objects of this process."""

    size: int = 0
    left: float = math.inf

    @classmethod
    def of(cls, data: bytes) -> "Budget":
        """The budget of reading ``data``."""
        return cls(len(data), max(ALWAYS, PER_BYTE * len(data)))

    def spend(self, kind: str, count: int, place: str, remedy: str = DAMAGED) -> None:
        """Pay for ``count`` things of one of the `COSTS`; raises where ``place`` asks for more than is left."""
        self.left -= COSTS[kind] * count
        if self.left < 0:
            raise DataError(f"{place} asks for {count:,} {kind}, too many for a file of {self.size:,} bytes; {remedy}")


class Loaded(Protocol):
    """What a file holds: it scores documents, and can be saved again."""

    def predict(self, data: RankingData) -> PerDocument:
        """The score of each row, in the caller's order."""

    def to_bytes(self) -> bytes:
        """The content of its file."""

    def save(self, path: str | os.PathLike[str], force: bool = False) -> None:
        """Write the file; an existing one is replaced only with ``force``."""


@dataclass(frozen=True, eq=False)
class Content:
    """The bytes of the file ``where``; the caller may say the number of features, for files that do not, and give a ``module``."""

    data: bytes
    where: str
    n_features: int | None = None
    module: object = None

    @cached_property
    def budget(self) -> Budget:
        """Return how much memory reading the file may still take."""
        return Budget.of(self.data)

    @property
    def is_binary(self) -> bool:
        """Does it begin as UBJSON does, and no JSON can?"""
        return len(self.data) > 1 and self.data[:1] == b"{" and self.data[1:2] in b"iUIlL#$"

    @property
    def own_format(self) -> str | None:
        """The format that a JSON object names, as all files of exactrank do; None if the file is anything else."""
        beginning = self.data[:64].decode(json.detect_encoding(self.data), errors="ignore").lstrip("\ufeff \t\r\n")
        name = self.record.get("format") if beginning.startswith("{") and not self.is_binary else None
        return name if isinstance(name, str) else None

    @cached_property
    def text(self) -> str:
        """Its text."""
        try:
            return self.data.decode(json.detect_encoding(self.data))
        except UnicodeDecodeError:
            raise DataError(f"{self.where} is not a model: it is not text; {_EXPECTED}") from None

    @cached_property
    def json(self) -> Any:
        """The JSON value, read strictly: no repeated names, no NaN, no number with more digits than any finite double has."""
        try:
            return json.loads(self.text, object_pairs_hook=unique, parse_constant=_refused, parse_int=_whole_number)
        except RecursionError:
            trouble = "its lists are nested too deeply"
        except DataError:
            raise
        except ValueError as error:
            trouble = str(error)
        raise DataError(f"{self.where} is not a model: {trouble}; {_EXPECTED}")

    @property
    def record(self) -> Mapping[str, Any]:
        """The JSON object; empty if it is a list."""
        return self.json if isinstance(self.json, dict) else {}


@dataclass(frozen=True)
class Reader:
    """Recognises and reads one kind of file. Errors of ``read`` need not name the file."""

    recognizes: Callable[[Content], bool]
    read: Callable[[Content], Loaded]


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The values by name; a repeated name is an error."""
    twice = first_duplicate([name for name, _ in pairs])
    if twice is not None:
        raise ValueError(f"{reprlib.repr(twice)} appears twice")
    return dict(pairs)


def part(record: Any, path: str, types: type | tuple[type, ...]) -> Any:
    """The value in nested ``record`` at ``path``, such as ``learner.objective.name``, checked to be of ``types``."""
    found = record
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    if not isinstance(found, types) or (isinstance(found, bool) and types is not bool):
        raise DataError(f"{path} is {reprlib.repr(found)}; {DAMAGED}")
    return found


def array(record: Any, name: str, where: str, kinds: str = "iu", size: int | None = None) -> npt.NDArray[Any]:
    """The list ``name`` of ``record`` as an array of ``size`` numbers, of NumPy's ``kinds``: integers, or ``iufb`` for any numbers."""
    found = record.get(name) if isinstance(record, Mapping) else None
    # Texts would all get the room of the longest, so nothing but numbers becomes an array.
    are_numbers = isinstance(found, np.ndarray) or (isinstance(found, list) and all(isinstance(value, int | float) for value in found))
    values = np.asarray(found if are_numbers else None)
    if values.shape == (0,):
        values = values.astype(np.int64)
    if values.ndim != 1 or values.dtype.kind not in kinds or (size is not None and len(values) != size):
        raise DataError(f"{where}: {name} is {reprlib.repr(found)}, expected {'' if size is None else f'{size} '}numbers; {DAMAGED}")
    return values


def finite(value: Any, what: str) -> float:
    """``value``, checked to be a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
        raise DataError(f"{what} is {reprlib.repr(value)}, expected a finite number; {DAMAGED}")
    return float(value)


def _refused(token: str) -> Any:
    raise ValueError(f"{token} is not a JSON number")


def _whole_number(digits: str) -> int:
    if len(digits) > DIGITS:
        raise ValueError(f"a number has {len(digits):,} digits")
    return int(digits)
