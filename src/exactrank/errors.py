"""Errors that the caller can fix, and warnings. Every message names the place, the value and what to do."""

import sys
import warnings


class ExactRankError(Exception):
    """The base of all errors that the caller can fix."""


class DataError(ExactRankError, ValueError):
    """Data that cannot be used as it is: a bad value, a wrong length, a damaged file."""


class SettingError(ExactRankError, ValueError):
    """A setting that does not exist, cannot have the given value, or has no effect with the others as they are."""


class MeasureError(ExactRankError, ValueError):
    """A measure that does not exist or cannot have the given settings."""


class IncompatibleError(ExactRankError, TypeError):
    """Two components that do not go together, or data that lacks what a component needs."""


class OutputExistsError(ExactRankError, FileExistsError):
    """An output path that is already taken."""


class EngineError(ExactRankError, RuntimeError):
    """A cluster that cannot answer: its scheduler or all its workers are gone, or do not answer in time."""


class InterruptedWarning(UserWarning):
    """Training was stopped by Ctrl-C; the model is the best one so far."""


class PrecisionWarning(UserWarning):
    """Different values become equal because features are kept in single precision; the message names the features and the remedy."""


class LeftOutWarning(UserWarning):
    """Columns of a table are no features; the message names them, why, and how to have them."""


class EvaluationWarning(UserWarning):
    """A value of a measure that may not say what it seems to; the message says why, and what to ask for instead."""


class PluginWarning(UserWarning):
    """A package adds a name that is already taken, and is ignored; the message names the package and the owner of the name."""


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the line of the code that called this package."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "exactrank":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
