"""Values of JSON: their type, the conversion of others, and dataclasses as JSON objects that are read by their type hints."""

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import TYPE_CHECKING, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

JSONValue: TypeAlias = "bool | int | float | str | Sequence[JSONValue] | Mapping[str, JSONValue] | None"
JSONObject: TypeAlias = Mapping[str, JSONValue]
#: The types of JSON values that stand for a plain type.
PLAIN: Mapping[object, tuple[type, ...]] = {float: (float, int), int: (int,), str: (str,), bool: (bool,)}
T = TypeVar("T")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def json_value(value: object) -> JSONValue:
    """Return ``value`` as a JSON value; anything that JSON does not have becomes its ``repr``, without an address.

    >>> json_value({"sizes": np.array([1, 2]), "bound": np.inf, 3: (None, "text")})
    {'sizes': [1, 2], 'bound': 'inf', '3': [None, 'text']}
    """
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return json_object(value)
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value if value is None or isinstance(value, bool | int | float | str) else without_address(repr(value))


def json_object(values: Mapping[str, object]) -> dict[str, JSONValue]:
    """Return ``values`` as a JSON object, each as `json_value` makes it."""
    return {str(name): json_value(value) for name, value in values.items()}


def without_address(text: str) -> str:
    """Return the ``repr`` of an object without its address in memory, which differs between processes."""
    return _ADDRESS.sub("", text)


def encode_dataclass(value: "DataclassInstance") -> dict[str, JSONValue]:
    """Return the fields of ``value`` in the types of JSON."""
    return {field.name: encode_record(getattr(value, field.name)) for field in fields(value)}


def encode_record(value: object) -> JSONValue:
    """Return ``value`` in the types of JSON.

    >>> encode_record({"a": (1, float("nan"))})
    {'a': [1, None]}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return encode_dataclass(value)
    if isinstance(value, Mapping):
        return {str(key): encode_record(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encode_record(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)


def decode_record(hint: object, record: JSONValue) -> object:
    """Return the value of the type ``hint`` that `encode_record` turned into ``record``; a `TypeError` if it is of another type.

    JSON has no NaN; `encode_record` writes null, which is read as NaN if the hint is ``float``, and as None if it is ``float | None``.
    """
    origin, inside = get_origin(hint), get_args(hint)
    if origin is UnionType:
        return None if record is None else decode_record(next(kind for kind in inside if kind is not NoneType), record)
    if origin is tuple:
        items = _expect(record, list)
        hints = inside if inside[-1] is not Ellipsis else (inside[0],) * len(items)
        return tuple(decode_record(item_hint, item) for item_hint, item in zip(hints, items, strict=True))
    if origin is Mapping:
        return {key: decode_record(inside[1], item) for key, item in _expect(record, dict).items()}
    if hint is float and record is None:
        return math.nan
    if isinstance(hint, type) and is_dataclass(hint):
        constructor: Callable[..., object] = hint
        values = _expect(record, dict)
        by_name = get_type_hints(hint).items()
        return constructor(**{name: decode_record(field_hint, values[name]) for name, field_hint in by_name if name in values})
    if hint in PLAIN and (not isinstance(record, PLAIN[hint]) or (isinstance(record, bool) and hint is not bool)):
        raise TypeError(f"{record!r:.40} is not of type {getattr(hint, '__name__', hint)}")
    if hint is float and isinstance(record, float | int):
        if not abs(record) <= sys.float_info.max:
            raise TypeError(f"{record!r:.40} is not a finite number")
        return float(record)
    return record


def _expect(record: JSONValue, kind: type[T]) -> T:
    if not isinstance(record, kind):
        raise TypeError(f"{record!r:.40} is not of type {kind.__name__}")
    return record
