"""What tells values apart in any process: estimators, their settings, arrays, functions and classes."""

from collections.abc import Mapping
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import xxhash

from exactrank._support.json_values import json_value

_PLAIN = (bool, int, float, str, tuple, np.ndarray)


def identity(value: Any, seen: frozenset[int] = frozenset()) -> Any:
    """What tells ``value`` from others in any process: the class and the settings of an estimator, the content of an array.

    Of what is defined outside of modules that can be imported, as in a notebook, it is also the code, and what of the notebook the code
    names; ``seen`` are functions and classes that are being looked at.
    """
    if isinstance(value, np.ndarray):
        return [str(value.dtype), list(value.shape), xxhash.xxh3_64(np.ascontiguousarray(value).tobytes()).hexdigest()]
    if isinstance(value, Mapping):
        return {str(name): identity(own, seen) for name, own in value.items()}
    if isinstance(value, list | tuple):
        return [identity(own, seen) for own in value]
    if isinstance(value, FunctionType | type):
        name, within = f"{value.__module__}:{value.__qualname__}", seen | {id(value)}
        local = value.__module__ == "__main__" or "<" in value.__qualname__
        if not local or id(value) in seen:
            return name
        if isinstance(value, type):
            written = {key: own for key, own in sorted(vars(value).items()) if isinstance(own, FunctionType) or not key.startswith("__")}
            return [name, {key: identity(own, within) for key, own in written.items() if isinstance(own, (*_PLAIN, FunctionType))}]
        cells = [identity(cell.cell_contents, within) for cell in value.__closure__ or ()]
        named = sorted(_names(value.__code__) & value.__globals__.keys())
        used = {key: value.__globals__[key] for key in named}
        return [name, _code(value.__code__), identity(value.__defaults__, within), cells, _own(used, value.__module__, within)]
    if callable(getattr(value, "fit", None)):
        own = value.get_params(deep=False) if hasattr(value, "get_params") else vars(value)
        return [identity(type(value), seen), identity(own, seen)]
    return json_value(value)


def _own(used: Mapping[str, Any], module: str, seen: frozenset[int]) -> dict[str, Any]:
    """The functions, classes and json_value values among ``used`` that ``module`` defines."""
    return {
        name: identity(value, seen)
        for name, value in used.items()
        if isinstance(value, _PLAIN) or (isinstance(value, FunctionType | type) and value.__module__ == module)
    }


def _names(code: CodeType) -> set[str]:
    """All names that it looks up, in functions inside of it too."""
    return set(code.co_names).union(*(_names(each) for each in code.co_consts if isinstance(each, CodeType)))


def _code(code: CodeType) -> Any:
    """What a function does, wherever it stands."""
    constants = [_code(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts]
    return [xxhash.xxh3_64(code.co_code).hexdigest(), list(code.co_names), constants]
