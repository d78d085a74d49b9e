"""The state of training as JSON and back, to the bit: the records of checkpoints.

These values can be stored: numbers, text, None, arrays, and lists, tuples and dictionaries of those; dataclasses that are marked
`storable`; and marked classes that have ``to_record`` and ``from_record``, or, if they are native, ``held`` and ``from_held``, which pass
their whole content as one tuple. A record names the class of a value, and only marked classes are made from a record: it is data, and
nothing in it is run.
"""

import base64
import binascii
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeAlias, TypeVar, overload

import numpy as np

from exactrank.errors import DataError

C = TypeVar("C", bound=type)
JSONValue: TypeAlias = "bool | int | float | str | list[JSONValue] | dict[str, JSONValue] | None"
_CLASSES: dict[str, type] = {}
_PLAIN = (bool, int, str, type(None))


def storable(cls: C) -> C:
    """Mark a class whose values may be stored and restored."""
    _CLASSES[cls.__name__] = cls
    return cls


@overload
def to_record(value: Mapping[str, object]) -> dict[str, JSONValue]: ...
@overload
def to_record(value: object) -> JSONValue: ...
def to_record(value: object) -> JSONValue:
    """Return ``value`` as JSON.

    >>> to_record((1.5, math.inf))
    {'tuple': [1.5, {'float': 'inf'}]}
    """
    if isinstance(value, np.ndarray):
        content = np.ascontiguousarray(value)
        return {"array": base64.b64encode(content.tobytes()).decode(), "dtype": content.dtype.str, "shape": list(value.shape)}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, list):
        return [to_record(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [to_record(item) for item in value]}
    if isinstance(value, Mapping):
        return {"mapping": {str(name): to_record(item) for name, item in value.items()}}
    name, stored = type(value).__name__, _CLASSES.get(type(value).__name__)
    if stored is not type(value):
        raise TypeError(f"{name} is not marked as storable")
    if hasattr(value, "to_record"):
        return {"is": name, "record": value.to_record()}
    if hasattr(value, "held"):
        return {"is": name, "held": to_record(list(value.held()))}
    assert is_dataclass(value)
    return {"is": name, "fields": {field.name: to_record(getattr(value, field.name)) for field in fields(value) if field.init}}


def from_record(record: object, where: str) -> Any:
    """Return the value of a record that `to_record` wrote; errors name ``where`` it was read.

    >>> from_record(to_record({"a": (1, [np.arange(2)])}), "here")
    {'a': (1, [array([0, 1])])}
    """
    try:
        return _restore(record)
    except (KeyError, TypeError, ValueError, AttributeError, binascii.Error, RecursionError) as error:
        raise DataError(f"{where}: the saved state of training is damaged ({error}); train anew") from None


def _restore(record: Any) -> Any:
    if isinstance(record, list):
        return [_restore(item) for item in record]
    if not isinstance(record, dict):
        return record
    if "array" in record:
        dtype = np.dtype(record["dtype"])
        if dtype.hasobject:
            raise ValueError(f"an array of {dtype}")
        return np.frombuffer(base64.b64decode(record["array"], validate=True), dtype).reshape(record["shape"]).copy()
    if "float" in record:
        return float(record["float"])
    if "tuple" in record:
        return tuple(_restore(item) for item in record["tuple"])
    if "mapping" in record:
        return {name: _restore(item) for name, item in record["mapping"].items()}
    cls: Any = _CLASSES[record["is"]]
    if "record" in record:
        return cls.from_record(record["record"], record["is"])
    if "held" in record:
        return cls.from_held(*_restore(record["held"]))
    return cls(**{name: _restore(item) for name, item in record["fields"].items()})
