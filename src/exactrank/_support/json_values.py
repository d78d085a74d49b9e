"""Values of JSON: their type, and the conversion of others."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

JSONValue: TypeAlias = "bool | int | float | str | Sequence[JSONValue] | Mapping[str, JSONValue] | None"
JSONObject: TypeAlias = Mapping[str, JSONValue]
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
