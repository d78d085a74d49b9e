"""Checks of arguments. An error names the argument, its value or type, and what to give instead."""

import reprlib
from collections.abc import Iterable
from math import inf
from numbers import Integral, Real
from typing import TypeVar

from exactrank.errors import IncompatibleError, SettingError

T = TypeVar("T")


def describe(value: object) -> str:
    """Return a short description of ``value`` for an error.

    >>> describe(None), describe(3.0), describe([1, 2]), describe(int)
    ('None', '3.0', 'of type list', 'the class int')
    """
    if value is None or isinstance(value, int | float | complex | str | bytes):
        return reprlib.repr(value)
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return f"of type {type(value).__name__}"


def wrong_kind(name: str, value: object, expected: str) -> IncompatibleError:
    """Return the error for an argument ``name`` that is not what is ``expected``."""
    return IncompatibleError(f"{name} is {describe(value)}; give {expected}")


def check_kind(name: str, value: object, kinds: type | tuple[type, ...], expected: str) -> None:
    """Raise unless the argument ``name`` is one of ``kinds``."""
    if not isinstance(value, kinds):
        raise wrong_kind(name, value, expected)


def checked_list(name: str, values: Iterable[T], expected: str) -> list[T]:
    """Return ``values`` as a list; a single value, also a text, is an error.

    >>> checked_list("systems", 3, "a list of names")
    Traceback (most recent call last):
        ...
    exactrank.errors.IncompatibleError: systems is 3; give a list of names
    """
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise wrong_kind(name, values, expected)
    return list(values)


def check_count(name: str, value: object, smallest: int, largest: int | None = None) -> None:
    """Raise unless the argument ``name`` is a whole number from ``smallest`` to ``largest``; None is no upper limit.

    >>> check_count("bootstrap", 10**9, 0, 100_000)
    Traceback (most recent call last):
        ...
    exactrank.errors.SettingError: bootstrap must be at most 100,000, got 1000000000
    """
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise wrong_kind(name, value, f"a whole number of at least {smallest:,}" + ("" if largest is None else f" and at most {largest:,}"))
    count = int(value)
    if count < smallest:
        raise SettingError(f"{name} must be at least {smallest:,}, got {value}")
    if largest is not None and count > largest:
        raise SettingError(f"{name} must be at most {largest:,}, got {value}")


def check_number(name: str, value: object, *, above: bool = False) -> None:
    """Raise unless the argument ``name`` is a finite number of at least 0; with ``above``, more than 0.

    >>> check_number("prior", None, above=True)
    Traceback (most recent call last):
        ...
    exactrank.errors.SettingError: prior must be a number above 0, got None
    """
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else -inf
    if not (number > 0 if above else number >= 0) or number == inf:
        raise SettingError(f"{name} must be a number {'above' if above else 'of at least'} 0, got {value!r}")
