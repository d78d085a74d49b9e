"""Errors that scikit-learn's cross-validation would turn into NaN.

Where a score cannot be computed, ``cross_val_score``, ``GridSearchCV`` and the like warn and put ``error_score`` in its place, NaN by
default. A search then keeps its first candidate, whatever that is worth. So the whole call must fail. What ``score`` raises is caught
there; but each result is asked for its ``item``, as arrays have one, and what that raises reaches the caller, unless it is a ValueError.
"""

import sys
from typing import NoReturn

from exactrank.errors import ExactRankError, IncompatibleError

_MODULE, _FUNCTION = "sklearn.model_selection._validation", "_score"


class Unscored:
    """What stands for a score in scikit-learn's cross-validation: an error, raised when the number is asked for."""

    def __init__(self, error: ExactRankError) -> None:
        self._error = error

    def __repr__(self) -> str:
        return str(self._error)

    def item(self) -> NoReturn:
        """Raise the error."""
        raise IncompatibleError(str(self._error)) from self._error


def is_cross_validated() -> bool:
    """Does scikit-learn's cross-validation ask, from however far above?"""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code.co_name == _FUNCTION and frame.f_globals.get("__name__") == _MODULE:
            return True
    return False
