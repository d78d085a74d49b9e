"""Goals of cutoffs: what the documents that are kept of a query are worth, as a function of their counts.

Of a query with R relevant documents, K documents are kept, and T of them are relevant.

    F_b = (1 + b^2) T / (K + b^2 R)                 van Rijsbergen (1979); if R = 0, 1 where nothing is kept and 0 otherwise     (1)
    utility = gain T - cost (K - T)                                                                                              (2)
    recall = T / R                                                                                                               (3)

A recall is not maximized but guaranteed (`exactrank.cutoffs.search`), in the mean, or with a probability that [recall >= level].
"""

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from exactrank._support.arguments import wrong_kind
from exactrank._support.arrays import PerQuery
from exactrank._support.numerals import number
from exactrank.errors import SettingError

#: A share of R that is missed by less than this is reached, since products are rounded.
ROUNDING = 1e-9
_NUMBER = r"\d*\.?\d+(?:[eE][-+]?\d+)?"
_F = re.compile(rf"F(?P<beta>{_NUMBER})")
_UTILITY = re.compile(rf"utility\(\s*gain\s*=\s*(?P<gain>{_NUMBER})\s*,\s*cost\s*=\s*(?P<cost>{_NUMBER})\s*\)")
_RECALL = re.compile(rf"recall\s*>=\s*(?P<level>{_NUMBER})(?:\s+with\s+probability\s+(?P<probability>{_NUMBER}))?")
EXAMPLES = "'F1', 'utility(gain=1, cost=0.2)', 'recall >= 0.9' or 'recall >= 0.9 with probability 0.95'"


class CutoffGoal(ABC):
    """A goal; the kernel has a name and two constants for each."""

    @property
    def quantity(self) -> str:
        """The name of the values."""
        return str(self)

    @property
    @abstractmethod
    def kernel(self) -> tuple[str, float, float]:
        """The name of the goal in the native sweep, and its constants."""

    @abstractmethod
    def values(self, documents: PerQuery, hits: PerQuery, relevant: PerQuery) -> PerQuery:
        """Return the value of each query from K, T and R."""

    def totals(self, relevant: PerQuery) -> PerQuery:
        """Return what the kernel needs to know of R."""
        return relevant


@dataclass(frozen=True)
class FGoal(CutoffGoal):
    """The largest F_b, (1)."""

    beta: float = 1.0

    def __post_init__(self) -> None:
        if not self.beta > 0:
            raise SettingError(f"goal {self}: the number after F must be above 0, e.g. F1")

    def __str__(self) -> str:
        return f"F{self.beta:g}"

    @property
    def kernel(self) -> tuple[str, float, float]:
        return "F", self.beta * self.beta, 0.0

    def values(self, documents: PerQuery, hits: PerQuery, relevant: PerQuery) -> PerQuery:
        square = self.beta * self.beta
        share = (1 + square) * hits / np.maximum(documents + square * relevant, 1e-300)
        return np.where(relevant > 0, share, documents == 0)


@dataclass(frozen=True)
class UtilityGoal(CutoffGoal):
    """The largest utility, (2)."""

    gain: float
    cost: float

    def __str__(self) -> str:
        return f"utility(gain={self.gain:g}, cost={self.cost:g})"

    @property
    def kernel(self) -> tuple[str, float, float]:
        return "utility", self.gain, self.cost

    def values(self, documents: PerQuery, hits: PerQuery, relevant: PerQuery) -> PerQuery:
        return self.gain * hits - self.cost * (documents - hits)


@dataclass(frozen=True)
class RecallGoal(CutoffGoal):
    """A recall (3) of at least ``level``: in the mean, or with a ``probability`` for each query."""

    level: float
    probability: float | None = None

    def __post_init__(self) -> None:
        if not (0 < self.level <= 1 and (self.probability is None or 0 < self.probability < 1)):
            raise SettingError(f"goal {self}: the recall must lie above 0 and at most at 1, and the probability between 0 and 1")

    def __str__(self) -> str:
        return f"recall >= {self.level:g}" + ("" if self.probability is None else f" with probability {self.probability:g}")

    @property
    def quantity(self) -> str:
        return "mean recall" if self.probability is None else f"queries with recall >= {self.level:g}"

    @property
    def risk(self) -> float:
        """The mean loss that is allowed."""
        return 1 - (self.level if self.probability is None else self.probability)

    @property
    def kernel(self) -> tuple[str, float, float]:
        return "recall" if self.probability is None else "reached", 0.0, 0.0

    def totals(self, relevant: PerQuery) -> PerQuery:
        return relevant if self.probability is None else np.ceil(self.level * relevant - ROUNDING)

    def values(self, documents: PerQuery, hits: PerQuery, relevant: PerQuery) -> PerQuery:
        if self.probability is None:
            return np.where(relevant > 0, hits / np.maximum(relevant, 1), 1.0)
        return np.where(hits >= self.totals(relevant), 1.0, 0.0)


def parse_cutoff_goal(text: object) -> CutoffGoal:
    """Return the goal that ``text`` names.

    >>> parse_cutoff_goal("utility(gain=1, cost=.2)"), str(parse_cutoff_goal("recall >= 0.9 with probability 0.95"))
    (UtilityGoal(gain=1.0, cost=0.2), 'recall >= 0.9 with probability 0.95')
    """
    if isinstance(text, CutoffGoal):
        return text
    if not isinstance(text, str):
        raise wrong_kind("goal", text, EXAMPLES)
    for form, make in ((_F, FGoal), (_UTILITY, UtilityGoal), (_RECALL, RecallGoal)):
        if match := form.fullmatch(text.strip()):
            values = {name: number(value) for name, value in match.groupdict().items() if value is not None}
            if all(map(math.isfinite, values.values())):
                return make(**values)
    raise SettingError(f"goal {text[:60]!r} is not one of a cutoff; write e.g. {EXAMPLES}")
