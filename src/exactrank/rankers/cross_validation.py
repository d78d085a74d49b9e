"""Errors that scikit-learn's cross-validation would turn into NaN.

If a score cannot be computed, ``cross_val_score``, ``GridSearchCV`` and the like warn and use ``error_score`` instead, NaN by default. A
search then keeps its first candidate, however bad it is. So the whole call must fail. Errors of ``score`` are caught there. But
scikit-learn calls ``item`` on each result, as on arrays, and errors of that call reach the user, unless they are ValueErrors.
"""

import sys
from typing import NoReturn

from exactrank.errors import ExactRankError, IncompatibleError

_MODULE, _FUNCTION = "sklearn.model_selection._validation", "_score"


class Unscored:
    """A replacement of a score in scikit-learn's cross-validation: an error, raised when the number is read."""

    def __init__(self, error: ExactRankError) -> None:
        self._error = error

    def __repr__(self) -> str:
        return str(self._error)

    def item(self) -> NoReturn:
        """Raise the error."""
        raise IncompatibleError(str(self._error)) from self._error


def is_cross_validated() -> bool:
    """Return whether scikit-learn's cross-validation is among the callers."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code.co_name == _FUNCTION and frame.f_globals.get("__name__") == _MODULE:
            return True
    return False
