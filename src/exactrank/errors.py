"""What can go wrong, by whose remedy it is, and what is warned of. Every message names the place, the value and what to do."""


class ExactRankError(Exception):
    """The base of all errors that the caller can mend."""


class DataError(ExactRankError, ValueError):
    """Data that cannot be used as it is: a bad value, a wrong length, a damaged file."""


class SettingError(ExactRankError, ValueError):
    """A setting that does not exist, cannot have the given value, or has no effect beside the others."""


class MeasureError(ExactRankError, ValueError):
    """A measure that does not exist or cannot have the given settings."""


class IncompatibleError(ExactRankError, TypeError):
    """Two components that do not go together, or data that lacks what a component needs."""


class OutputExistsError(ExactRankError, FileExistsError):
    """An output path that is already taken."""


class InterruptedWarning(UserWarning):
    """Training ended by Ctrl-C; the model is the best until then."""


class PrecisionWarning(UserWarning):
    """Values that differ become equal where features are kept in single precision; the message names the features and the remedy."""


class PluginWarning(UserWarning):
    """A package adds a name that is taken, and is left out; the message names the package and who has the name."""
