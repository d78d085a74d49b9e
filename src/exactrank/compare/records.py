"""Values as JSON and back: dataclasses of numbers, words, tuples and mappings, read by their type hints.

JSON has no NaN; it is written as null, which is read as NaN where the hint says ``float``, and as None where it says ``float | None``.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from exactrank.errors import DataError
from exactrank.files import whole_file
from exactrank.reasons import clipped

#: The file of all results.
RECORD = "comparison.json"
#: All files that `Comparison.write` makes.
FILES = (RECORD, "tables.md", "tables.tex", "results.csv", "report.html")

T = TypeVar("T")
#: What a value of JSON must be to stand for one of these.
PLAIN: Mapping[type, tuple[type, ...]] = {float: (float, int), int: (int,), str: (str,), bool: (bool,)}


def to_record(value: Any) -> Any:
    """``value`` in the types of JSON.

    >>> to_record({"a": (1, float("nan"))})
    {'a': [1, None]}
    """
    if is_dataclass(value):
        return {field.name: to_record(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_record(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_record(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool | NoneType) else str(value)


def from_record(kind: type[T], record: Any) -> T:
    """The dataclass ``kind`` of a record that `to_record` made."""
    hints = get_type_hints(kind)
    return kind(**{name: _read(hints[name], record[name]) for name in hints if name in record})


def write_record(path: Path, value: Any, *, force: bool = True) -> None:
    """Write ``value`` as JSON; the file is whole or not there."""
    with whole_file(path, force=force) as file:
        file.write((json.dumps(to_record(value), allow_nan=False) + "\n").encode())


def read_record(kind: type[T], path: Path) -> T:
    """Read what `write_record` wrote."""
    try:
        return from_record(kind, json.loads(path.read_bytes()))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DataError(f"{path} is damaged ({clipped(str(error), 200)}); delete it, and it is made again") from None


def _read(hint: Any, value: Any) -> Any:
    """``value`` of JSON as ``hint`` says."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin is UnionType:
        return None if value is None else _read(next(kind for kind in inside if kind is not NoneType), value)
    if origin is tuple:
        return tuple(_read(inside[0], item) for item in value)
    if origin is Mapping:
        return {key: _read(inside[1], item) for key, item in value.items()}
    if hint is float and value is None:
        return math.nan
    if hint in PLAIN and not isinstance(value, PLAIN[hint]):
        raise TypeError(f"{value!r:.40} is no {hint.__name__}")
    return from_record(hint, value) if isinstance(hint, type) and is_dataclass(hint) else value
