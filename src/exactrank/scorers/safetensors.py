"""Arrays by name as bytes, in the format safetensors: eight bytes with the length of a JSON header, the header, then the numbers.

The header says of each array its type, its shape and which bytes are its own. Reading runs nothing: the arrays must fill the bytes without
gaps, so a file holds what its header says and no more (https://huggingface.co/docs/safetensors). Types that NumPy has no name for, such as
bfloat16, are refused.
"""

import json
import math
import reprlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from exactrank.errors import DataError

Tensors = Mapping[str, npt.NDArray[Any]]
_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
_NAMES = {np.dtype(kind): name for name, kind in _TYPES.items()}
_MOST_DIMENSIONS = 32  # that every version of NumPy has
_DAMAGED = "the tensors are damaged, so train or copy the model again"


def to_bytes(tensors: Tensors) -> bytes:
    """``tensors`` in the order of their names.

    >>> from_bytes(to_bytes({"a": np.arange(3.0)}))
    {'a': array([0., 1., 2.])}
    """
    header: dict[str, Any] = {}
    parts, end = [], 0
    for name in sorted(tensors):
        whole = np.ascontiguousarray(tensors[name])
        little = whole.astype(whole.dtype.newbyteorder("<"), copy=False)
        if little.dtype not in _NAMES:
            raise DataError(f"{name} holds {whole.dtype}, which a model file cannot hold; use one of {', '.join(map(str, _NAMES))}")
        parts.append(little.tobytes())
        header[name] = {"dtype": _NAMES[little.dtype], "shape": list(np.shape(tensors[name])), "data_offsets": [end, end + len(parts[-1])]}
        end += len(parts[-1])
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])


def from_bytes(content: bytes) -> dict[str, npt.NDArray[Any]]:
    """The arrays that `to_bytes`, or another program, wrote."""
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > len(content) - 8:
        raise DataError(f"{len(content)} bytes are too few; {_DAMAGED}")
    try:
        header = json.loads(content[8 : 8 + length])
    except (ValueError, RecursionError):
        raise DataError(f"the header is not JSON; {_DAMAGED}") from None
    if not isinstance(header, dict):
        raise DataError(f"the header is not an object; {_DAMAGED}")
    header.pop("__metadata__", None)
    numbers, found, end = memoryview(content)[8 + length :], {}, 0
    for name, (kind, shape, begins, ends) in sorted(((name, _told(name, one)) for name, one in header.items()), key=lambda one: one[1][2:]):
        dtype = np.dtype(_TYPES[kind])
        if begins != end or ends - begins != dtype.itemsize * math.prod(shape) or ends > len(numbers):
            raise DataError(f"{name} does not fill its bytes; {_DAMAGED}")
        try:
            array = np.frombuffer(numbers[begins:ends], dtype).reshape(shape)
        except ValueError:  # none are there, of a size that no array can have
            raise DataError(f"{name} has the shape {reprlib.repr(shape)}; {_DAMAGED}") from None
        found[name] = array.astype(dtype.newbyteorder("="), copy=False)
        end = ends
    if end != len(numbers):
        raise DataError(f"{len(numbers) - end} bytes belong to no tensor; {_DAMAGED}")
    return found


def _told(name: str, one: Any) -> tuple[str, list[int], int, int]:
    """What the header says of a tensor: type, shape, where its bytes begin and end."""
    kind, shape, place = (one.get(key) if isinstance(one, dict) else None for key in ("dtype", "shape", "data_offsets"))
    for numbers in (shape, place):
        if not isinstance(numbers, list) or not all(type(number) is int and number >= 0 for number in numbers):
            raise DataError(f"{name} has no shape or no place; {_DAMAGED}")
    if len(shape) > _MOST_DIMENSIONS:  # type: ignore[arg-type]
        raise DataError(f"{name} has {len(shape)} dimensions, expected at most {_MOST_DIMENSIONS}; {_DAMAGED}")  # type: ignore[arg-type]
    if not isinstance(kind, str) or kind not in _TYPES or len(place) != 2:  # type: ignore[arg-type]
        raise DataError(f"{name} has the type {kind!r}; known: {', '.join(_TYPES)}")
    return kind, shape, *place  # type: ignore[misc]
