"""Libraries that only some work needs: an extra of the package installs each, and a message names it."""

import importlib
from types import ModuleType

from exactrank.errors import IncompatibleError


def library(name: str, what: str = "tables", extra: str = "frames") -> ModuleType:
    """Return an optional library that ``what`` need; the error names the ``extra`` of exactrank that installs it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise IncompatibleError(f"{what} need {name.partition('.')[0]}, which is not installed; pip install 'exactrank[{extra}]'") from None
