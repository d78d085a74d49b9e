"""An estimator in one line, as Python writes it: for the names of tables and messages."""

import re
from types import FunctionType
from typing import Any

from exactrank.models.estimators.identity import identity

#: Characters of a name for tables; an estimator with more to tell is called by its class alone.
LONGEST_NAME = 60
#: Of an object, in its `repr`: another one in each process.
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
#: Settings that do not change what is learned, so that no name needs them.
QUIET = frozenset({"allow_writing_files", "logging_level", "n_jobs", "silent", "thread_count", "verbose", "verbosity"})


def call_of(value: Any, leave_out: frozenset[str] = frozenset()) -> str:
    """An estimator in one line with the settings that are not its defaults, other values as Python writes them.

    Settings called as those in ``leave_out`` are not shown.

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
        return " ".join(ADDRESS.sub("", repr(value)).split())
    changed = {name: call_of(own, leave_out) for name, own in _changed(value).items() if name not in leave_out}
    return type(value).__name__ + (f"({', '.join(f'{name}={own}' for name, own in changed.items())})" if changed else "")


def name_of(estimator: Any) -> str:
    """What tables call the estimator."""
    whole = call_of(estimator, QUIET)
    return (
        whole
        if len(whole) <= LONGEST_NAME
        else " + ".join(type(step).__name__ for _, step in getattr(estimator, "steps", [("", estimator)]))
    )


def _changed(estimator: Any) -> dict[str, Any]:
    """The settings that are not the defaults, which the class itself knows best; some take settings that their signature does not name."""
    own = estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}
    try:
        defaults = type(estimator)().get_params(deep=False)
    except Exception:  # of a class that needs settings
        defaults = {}
    alike = {name for name in own.keys() & defaults.keys() if identity(own[name]) == identity(defaults[name])}
    return {name: value for name, value in own.items() if name not in alike}
