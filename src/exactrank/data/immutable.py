"""Immutable arrays: nothing can write into them, neither directly nor through the array that they are a view of.

A read-only flag is not enough: it can be reset, and the base of a view may still be writable. So an array counts as immutable only if
its memory belongs to an owner that cannot be written at all: ``bytes``, a file mapped for reading, or an array that was sealed here. Any
other array is copied.
"""

import mmap
from typing import Any, TypeVar

import numpy as np

Array = TypeVar("Array", bound=np.ndarray[Any, Any])


def immutable(array: Array) -> Array:
    """Return ``array`` itself if it is immutable and in C order, otherwise an immutable copy.

    >>> array = np.array([1.0, 2.0])
    >>> copy = immutable(array)
    >>> array[0] = 5.0
    >>> copy.tolist(), immutable(copy) is copy
    ([1.0, 2.0], True)
    """
    if not array.flags.c_contiguous or not is_immutable(array):
        return seal(array.copy(order="C"))
    plain: Array = np.asarray(array)  # type: ignore[assignment]  # without np.memmap around it
    return plain


def seal(array: Array) -> Array:
    """Return an array that only the caller holds as an immutable one; it is not copied, so the caller must not write into it any more."""
    if is_immutable(array):
        return array
    view: Array = np.asarray(_Sealed(array))  # type: ignore[assignment]
    return view


class _Sealed:
    """Owner of the memory of a sealed array; NumPy sees it as read-only, and no flag can change that."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__ | {"data": (array.__array_interface__["data"][0], True)}


def is_immutable(array: object) -> bool:
    """Return whether ``array`` is immutable, judging by the owner of its memory."""
    owner = _owner(array)
    return isinstance(owner, _Sealed | bytes) or (isinstance(owner, mmap.mmap) and memoryview(owner).readonly)


def is_mapped(array: object) -> bool:
    """Return whether the memory of ``array`` is that of a mapped file."""
    owner = _owner(array)
    return is_mapped(owner.array) if isinstance(owner, _Sealed) else isinstance(owner, mmap.mmap)


def _owner(array: object) -> object:
    """Return the object that owns the memory of ``array``."""
    while isinstance(array, np.ndarray | memoryview):
        array = array.base if isinstance(array, np.ndarray) else array.obj
    return array
