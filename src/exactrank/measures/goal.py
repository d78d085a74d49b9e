"""Goals of training and tuning: a measure to maximize, alone or subject to constraints on other measures.

    maximize f  subject to  g_i >= c_i  (or <=), each a mean over the same queries                              (1)

``nDCG@10 subject to revenue@10 >= 0.31 and P(rel=2)@5 <= 0.9``. Along a ray of scores f and all g_i are step functions, so (1) has an
exact answer there (`exactrank.learning.objectives.constrained`).
"""

import math
import re
from dataclasses import dataclass
from typing import Literal

import numpy as np

from exactrank._support.arrays import Floats
from exactrank._support.numerals import number
from exactrank.errors import IncompatibleError, MeasureError
from exactrank.measures.base import Measure
from exactrank.measures.parse import SUBJECT_TO, parse_measure

#: A constraint holds if it is missed by at most this share of its level, since means are rounded.
ROUNDING = 1e-12
_CONSTRAINT = re.compile(r"(?P<measure>.*?)\s*(?P<sign>[<>]=|[<>=]=?)\s*(?P<level>[^\s<>=]+)\s*", re.DOTALL)
_AND = re.compile(r"(?<=[\d.])\s+and\s+", re.IGNORECASE)


@dataclass(frozen=True)
class Constraint:
    """``measure`` must be at least, or at most, ``level`` in the mean over queries."""

    measure: Measure
    sign: Literal[">=", "<="]
    level: float

    def shortfall(self, value: Floats | float) -> Floats:
        """Return by how much ``value`` misses the level, as a share of the level; 0 if the constraint holds.

        >>> Constraint(parse_measure("nDCG@10"), ">=", 0.5).shortfall(np.array([0.4, 0.5, 0.6])).tolist()
        [0.19999999999999996, 0.0, 0.0]
        """
        missed = (self.level - np.asarray(value)) * (1 if self.sign == ">=" else -1) / (abs(self.level) or 1.0)
        return np.where(missed > ROUNDING, missed, 0.0)

    def __str__(self) -> str:
        return f"{self.measure} {self.sign} {self.level:.12g}"

    def __repr__(self) -> str:
        return f"{self.measure!r} {self.sign} {self.level!r}"


@dataclass(frozen=True)
class Goal:
    """A measure to maximize, subject to constraints, (1)."""

    measure: Measure
    constraints: tuple[Constraint, ...] = ()

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measure, then those of the constraints."""
        return self.measure, *(constraint.measure for constraint in self.constraints)

    def __str__(self) -> str:
        return str(self.measure) + (" subject to " if self.constraints else "") + " and ".join(map(str, self.constraints))

    def __repr__(self) -> str:
        return repr(self.measure) + (" subject to " if self.constraints else "") + " and ".join(map(repr, self.constraints))


def parse_goal(text: str | Measure | Goal, preset: str | None = None) -> Goal:
    """Return the goal that ``text`` names.

    >>> str(parse_goal("ndcg@10 subject to revenue@10 >= .31 and P@5 <= 1"))
    'nDCG@10 subject to revenue@10 >= 0.31 and P@5 <= 1'
    """
    if isinstance(text, Goal):
        return text
    if not isinstance(text, str) or not SUBJECT_TO.search(text):
        return Goal(parse_measure(text, preset))
    measure, constraints = SUBJECT_TO.split(text, maxsplit=1)
    return Goal(parse_measure(measure, preset), tuple(_constraint(part, preset) for part in _AND.split(constraints)))


def _constraint(text: str, preset: str | None) -> Constraint:
    form = _CONSTRAINT.fullmatch(text)
    try:
        level = number(form["level"]) if form else math.nan
    except ValueError:
        level = math.nan
    if form is None or form["sign"] not in (">=", "<=") or not math.isfinite(level):
        raise MeasureError(f"{text.strip()!r} is not a constraint; write a measure, >= or <=, and a number, e.g. revenue@10 >= 0.31")
    return Constraint(parse_measure(form["measure"], preset), ">=" if form["sign"] == ">=" else "<=", level)


def infeasible(goal: Goal, constraint: Constraint, value: float, is_extreme: bool) -> IncompatibleError:
    """Return the error for a constraint that cannot be met; ``value`` is the extreme of all values, or the best that was found."""
    extreme, change = ("largest", "lower") if constraint.sign == ">=" else ("smallest", "raise")
    verb = "is" if is_extreme else "found is"
    return IncompatibleError(
        f"{goal}: nothing reaches {constraint}; the {extreme} {constraint.measure} {verb} {value:.6g}, so {change} {constraint.level:g}"
    )
