"""Values that training is resumed from, as JSON and back, to the bit.

What can be stored: numbers, text, None, arrays, lists, tuples and dictionaries of those; dataclasses that are marked `storable`; and
classes so marked that have ``to_record`` and ``from_record``, or (native ones) ``held`` and ``from_held``, which tell all that they
hold as one tuple. A record names the class of a value, and only marked classes are ever made
from one: a record is data, and nothing in it is run.
"""

import base64
import binascii
import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from exactrank.errors import DataError

C = TypeVar("C", bound=type)
_CLASSES: dict[str, type] = {}
_PLAIN = (bool, int, str, type(None))


def storable(cls: C) -> C:
    """Mark a class: its values may be written, and made again from what was written."""
    _CLASSES[cls.__name__] = cls
    return cls


def to_record(value: Any) -> Any:
    """``value`` in what JSON has.

    >>> to_record((1.5, math.inf))
    {'tuple': [1.5, {'float': 'inf'}]}
    """
    if isinstance(value, np.ndarray):
        whole = np.ascontiguousarray(value)
        return {"array": base64.b64encode(whole.tobytes()).decode(), "dtype": whole.dtype.str, "shape": list(value.shape)}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, list):
        return [to_record(one) for one in value]
    if isinstance(value, tuple):
        return {"tuple": [to_record(one) for one in value]}
    if isinstance(value, Mapping):
        return {"mapping": {str(name): to_record(one) for name, one in value.items()}}
    name, stored = type(value).__name__, _CLASSES.get(type(value).__name__)
    if stored is not type(value):
        raise TypeError(f"{name} is not marked as storable")
    if hasattr(value, "to_record"):
        return {"is": name, "record": value.to_record()}
    if hasattr(value, "held"):
        return {"is": name, "held": to_record(list(value.held()))}
    return {"is": name, "fields": {one.name: to_record(getattr(value, one.name)) for one in fields(stored) if one.init}}


def from_record(record: Any, where: str) -> Any:
    """The value that `to_record` wrote; an error names ``where`` it was read.

    >>> from_record(to_record({"a": (1, [np.arange(2)])}), "here")
    {'a': (1, [array([0, 1])])}
    """
    try:
        return _made(record)
    except (KeyError, TypeError, ValueError, AttributeError, binascii.Error, RecursionError) as error:
        raise DataError(f"{where}: the saved state of training is damaged ({error}); train anew") from None


def _made(record: Any) -> Any:
    if isinstance(record, list):
        return [_made(one) for one in record]
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
        return tuple(_made(one) for one in record["tuple"])
    if "mapping" in record:
        return {name: _made(one) for name, one in record["mapping"].items()}
    cls: Any = _CLASSES[record["is"]]
    if "record" in record:
        return cls.from_record(record["record"], record["is"])
    if "held" in record:
        return cls.from_held(*_made(record["held"]))
    return cls(**{name: _made(one) for name, one in record["fields"].items()})
