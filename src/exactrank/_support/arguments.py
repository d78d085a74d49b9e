"""The rule for arguments of the wrong kind or size: the error names the argument, what was given, and what to give instead."""

import reprlib
from collections.abc import Iterable
from math import inf
from numbers import Integral, Real
from typing import Any

from exactrank.errors import IncompatibleError, SettingError


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


def checked_list(name: str, values: Any, expected: str) -> list[Any]:
    """Return several ``values`` as a list; a single one, also a text, is an error.

    >>> checked_list("systems", 3, "a list of names")
    Traceback (most recent call last):
        ...
    exactrank.errors.IncompatibleError: systems is 3; give a list of names
    """
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise wrong_kind(name, values, expected)
    return list(values)


def check_count(name: str, value: object, least: int, most: int | None = None) -> None:
    """Raise unless the argument ``name`` is a whole number from ``least`` to ``most``, if there is a largest.

    >>> check_count("bootstrap", 10**9, 0, 100_000)
    Traceback (most recent call last):
        ...
    exactrank.errors.SettingError: bootstrap must be at most 100,000, got 1000000000
    """
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise wrong_kind(name, value, f"a whole number of at least {least:,}" + ("" if most is None else f" and at most {most:,}"))
    count = int(value)
    if count < least:
        raise SettingError(f"{name} must be at least {least:,}, got {value}")
    if most is not None and count > most:
        raise SettingError(f"{name} must be at most {most:,}, got {value}")


def check_number(name: str, value: object, *, above: bool = False) -> None:
    """Raise unless the argument ``name`` is a finite number of at least 0, or ``above`` it.

    >>> check_number("prior", None, above=True)
    Traceback (most recent call last):
        ...
    exactrank.errors.SettingError: prior must be a number above 0, got None
    """
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not (value > 0 if above else value >= 0) or value == inf:  # type: ignore[operator]  # it is a number
        raise SettingError(f"{name} must be a number {'above' if above else 'of at least'} 0, got {value!r}")
