"""The slope of a measure by finite differences of single scores (Burges, Ragno & Le 2006, section 6.2).

    lambda_i = (M(s + c e_i) - M(s - c e_i)) / (2 c),    less the mean over the query's documents               (1)

One of the lambda functions they tried; Yue & Burges (2007, section 5.4) say that it did worse than the published one.
"""

from dataclasses import dataclass
from typing import ClassVar

from exactrank import _core
from exactrank.data.ranking_data import RankingData
from exactrank.errors import SettingError
from exactrank.measures.base import Measure
from exactrank.objectives.bounded_gain import training_kernel


@dataclass(frozen=True)
class FiniteDifference:
    """(1) with steps of ``step`` in score."""

    conservative: ClassVar[bool] = False
    remedy: ClassVar[str] = "use lambdas='logistic' with truncation=10"

    measure: Measure
    step: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.step < float("inf"):
            raise SettingError(f"the step of a finite difference must be a number above 0, got {self.step}")

    def pairs(self, data: RankingData) -> float:
        """How many documents are ranked anew in one pass: all of a query, twice for each of them."""
        return float(2 * (data.sizes**2).sum())

    def on(self, data: RankingData) -> _core.Objective:
        """Itself on ``data``."""
        kernel, grades = training_kernel(self.measure, data)
        return _core.finite_difference(kernel, grades, data.y, self.step)
