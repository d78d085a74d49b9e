"""Names of estimators: in one line for tables and messages, and the identity that is the same in all processes."""

from collections.abc import Mapping
from types import CodeType, FunctionType

import numpy as np
import xxhash

from exactrank._support.json_values import JSONValue, json_value, without_address

#: Length of a name for tables; an estimator with a longer name is named by its class alone.
LONGEST_NAME = 60
#: Settings that do not change what is learned, so that no name needs them.
QUIET = frozenset({"allow_writing_files", "logging_level", "n_jobs", "silent", "thread_count", "verbose", "verbosity"})
_PLAIN = (bool, int, float, str, tuple, np.ndarray)


def call_of(value: object, leave_out: frozenset[str] = frozenset()) -> str:
    """Return an estimator in one line with the settings that are not its defaults, other values as Python writes them.

    Settings whose names are in ``leave_out`` are not shown.

    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> call_of(make_pipeline(StandardScaler(), Ridge(alpha=2.0)))
    'StandardScaler + Ridge(alpha=2.0)'
    """
    if hasattr(value, "steps"):
        return " + ".join(call_of(step, leave_out) for _, step in value.steps if step not in (None, "passthrough"))
    if isinstance(value, FunctionType | type):
        return value.__name__
    if not callable(getattr(value, "fit", None)):
        return " ".join(without_address(repr(value)).split())
    settings = ", ".join(f"{name}={call_of(item, leave_out)}" for name, item in _changed_settings(value).items() if name not in leave_out)
    return type(value).__name__ + (f"({settings})" if settings else "")


def name_of(estimator: object) -> str:
    """Return the name of the estimator in tables."""
    call = call_of(estimator, QUIET)
    if len(call) <= LONGEST_NAME:
        return call
    return " + ".join(type(step).__name__ for _, step in getattr(estimator, "steps", [("", estimator)]))


def _changed_settings(estimator: object) -> dict[str, object]:
    """Return the settings that are not the defaults; the class knows these best, since some settings are not in its signature."""
    settings = _settings(estimator)
    try:
        defaults = _settings(type(estimator)())
    except Exception:  # of a class that needs settings
        defaults = {}
    return {name: item for name, item in settings.items() if name not in defaults or identity(item) != identity(defaults[name])}


def _settings(estimator: object) -> dict[str, object]:
    return dict(estimator.get_params(deep=False)) if hasattr(estimator, "get_params") else {}


def identity(value: object, ancestors: frozenset[int] = frozenset()) -> JSONValue:
    """Return what distinguishes ``value`` in any process: the class and the settings of an estimator, the content of an array.

    For something that is defined where nothing can be imported from, such as a notebook, it includes the code, and everything in the
    notebook that the code names. ``ancestors`` are the functions and classes that are being described.
    """
    if isinstance(value, np.ndarray):
        return [str(value.dtype), list(value.shape), xxhash.xxh3_64(np.ascontiguousarray(value).tobytes()).hexdigest()]
    if isinstance(value, Mapping):
        return {str(name): identity(item, ancestors) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [identity(item, ancestors) for item in value]
    if isinstance(value, FunctionType | type):
        name, path = f"{value.__module__}:{value.__qualname__}", ancestors | {id(value)}
        is_local = value.__module__ == "__main__" or "<" in value.__qualname__
        if not is_local or id(value) in ancestors:
            return name
        if isinstance(value, type):
            members = {key: item for key, item in sorted(vars(value).items()) if isinstance(item, FunctionType) or not key.startswith("__")}
            return [name, {key: identity(item, path) for key, item in members.items() if isinstance(item, (*_PLAIN, FunctionType))}]
        cells = [identity(cell.cell_contents, path) for cell in value.__closure__ or ()]
        globals_used = {key: value.__globals__[key] for key in sorted(_names(value.__code__) & value.__globals__.keys())}
        return [name, _code(value.__code__), identity(value.__defaults__, path), cells, _identities(value.__module__, globals_used, path)]
    if callable(getattr(value, "fit", None)):
        settings = value.get_params(deep=False) if hasattr(value, "get_params") else vars(value)
        return [identity(type(value), ancestors), identity(settings, ancestors)]
    return json_value(value)


def _identities(module: str, values: Mapping[str, object], ancestors: frozenset[int]) -> dict[str, JSONValue]:
    """Return the identities of the plain values, and of the functions and classes that ``module`` defines."""
    return {
        name: identity(value, ancestors)
        for name, value in values.items()
        if isinstance(value, _PLAIN) or (isinstance(value, FunctionType | type) and value.__module__ == module)
    }


def _names(code: CodeType) -> set[str]:
    """Return the names that ``code``, and the functions inside of it, look up."""
    return set(code.co_names).union(*(_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)))


def _code(code: CodeType) -> JSONValue:
    """Return a description of ``code`` that does not depend on its file or line."""
    constants = [_code(constant) if isinstance(constant, CodeType) else repr(constant) for constant in code.co_consts]
    return [xxhash.xxh3_64(code.co_code).hexdigest(), list(code.co_names), constants]
