"""Arrays that nobody can write into, neither through them nor through what they are views of.

A read-only flag is not enough: it can be reset, and the array that a view looks at may still be written. So an array counts
as immutable only if its memory belongs to something that cannot be written at all: ``bytes``, a file mapped for reading, or an
array that was sealed here. Anything else is copied.
"""

import mmap
from typing import Any, TypeVar

import numpy as np

Array = TypeVar("Array", bound=np.ndarray[Any, Any])


def immutable(array: Array) -> Array:
    """``array`` itself if nobody can write into it and it lies in C order, else a copy of that kind.

    >>> given = np.array([1.0, 2.0])
    >>> kept = immutable(given)
    >>> given[0] = 5.0
    >>> kept.tolist(), immutable(kept) is kept
    ([1.0, 2.0], True)
    """
    if not array.flags.c_contiguous or not is_immutable(array):
        return seal(array.copy(order="C"))
    plain: Array = np.asarray(array)  # type: ignore[assignment]  # without np.memmap around it
    return plain


def seal(array: Array) -> Array:
    """An array that only the caller holds, as an immutable one; it is not copied, so write no more into it."""
    if is_immutable(array):
        return array
    view: Array = np.asarray(_Sealed(array))  # type: ignore[assignment]
    return view


class _Sealed:
    """Owner of the memory of a sealed array; NumPy sees it as read-only and can't be told otherwise."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__ | {"data": (array.__array_interface__["data"][0], True)}


def is_immutable(array: np.ndarray[Any, Any]) -> bool:
    """Whether nobody can write into ``array``, going by who owns its memory."""
    owner = _owner(array)
    return isinstance(owner, _Sealed | bytes) or (isinstance(owner, mmap.mmap) and memoryview(owner).readonly)


def is_mapped(array: np.ndarray[Any, Any]) -> bool:
    """Whether the memory of ``array`` is that of a mapped file."""
    owner = _owner(array)
    return is_mapped(owner.array) if isinstance(owner, _Sealed) else isinstance(owner, mmap.mmap)


def _owner(array: object) -> object:
    """Who owns the memory of ``array``."""
    while isinstance(array, np.ndarray | memoryview):
        array = array.base if isinstance(array, np.ndarray) else array.obj
    return array
