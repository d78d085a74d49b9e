"""Numbers that are to be nothing, with how far off they may be."""

from dataclasses import dataclass

NIL = 1e-6  #: smaller than this is nothing
SAFETY = 4.0  #: an error is an estimate itself, and may be so many times as large
TELLING = 1e-3  #: a larger error tells nothing


@dataclass(frozen=True)
class Estimate:
    """A size relative to what it is made of, and the error of computing it."""

    value: float
    error: float = 0.0

    @property
    def nil(self) -> bool | None:
        """Is it nothing, as far as the error lets us see? None where that is too large to tell.

        >>> Estimate(1e-15).nil, Estimate(2e-5, 1e-5).nil, Estimate(2e-5).nil, Estimate(0.01, 0.01).nil
        (True, True, False, None)
        """
        if self.value > NIL + SAFETY * self.error:
            return False
        return True if SAFETY * self.error <= TELLING else None


def all_of(answers: list[bool | None]) -> bool | None:
    """Yes if all are, no if one is not, else None: it cannot be told.

    >>> all_of([True, None]), all_of([None, False]), all_of([True, True])
    (None, False, True)
    """
    return False if False in answers else None if None in answers else True
