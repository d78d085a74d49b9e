"""Lambda functions: forces between pairs of documents (Burges, Ragno & Le 2006).

A pair whose exchange in the ranking matters pushes its better document up and the other down, by

    lambda_ij = |weight_ij| link(s_i - s_j),    document i to be ranked above j                                 (1)

The weight is 1 (RankNet), or the change of a measure when the two exchange their ranks (LambdaRank, of any measure). The links:

    logistic   1 / (1 + e^d)             the slope of RankNet's cost; with NDCG's weights their eq. 9           (2)
    step       1 where d < margin        a constant force: their step potentials                                (3)
    spring     max(0, margin - d)        a spring that pulls until the margin is reached                        (4)

Pairs may be limited: ``neighbours`` to documents at most so many ranks apart (1: nearest neighbours only), ``truncation`` to
those with a document among the first so many ranks. A measure with a cutoff has no weight for pairs below it anyway.

With ``near`` the weight of a pair is its change of the measure by the way that its scores have to go for it,

    weight_ij <- weight_ij / (near + |s_i - s_j|)                                                               (5)

the slope of the measure rather than its change, so that pairs far apart, which no tree will exchange, count for little. (LightGBM's
lambdarank does so, with 0.01.)
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from exactrank import _core
from exactrank.data.ranking_data import RankingData
from exactrank.errors import SettingError
from exactrank.measures.base import NO_CUTOFF, Measure
from exactrank.objectives.bounded_gain import training_kernel

Link = Literal["logistic", "step", "spring"]


@dataclass(frozen=True)
class LambdaRule:
    """What lambda functions of pairs share: weights by a measure's changes, without one 1, a link, and which pairs meet."""

    remedy: ClassVar[str] = (
        "let fewer pairs meet: LambdaRank and LambdaMART take truncation=10, neighbours=10 or weighted_by='nDCG@10'"
        " (and LambdaRank start='random', since RankNet has all pairs); or use RankSVM, ListNet or ListMLE, which need no pairs"
    )

    measure: Measure | None = None
    link: Link = "logistic"
    margin: float = 1.0
    neighbours: int | None = None
    truncation: int | None = None
    near: float | None = None

    def __post_init__(self) -> None:
        if self.link not in ("logistic", "step", "spring"):
            raise SettingError(f'link={self.link!r} is not one of "logistic", "step", "spring"')
        if not 0 <= self.margin < float("inf"):
            raise SettingError(f"margin must be a number of at least 0, got {self.margin}")
        if self.near is not None and (self.measure is None or not 0 < self.near < float("inf")):
            raise SettingError(f"near must be a number above 0, and needs a measure; got {self.near} and {self.measure}")
        for name in ("neighbours", "truncation"):
            given = getattr(self, name)
            if given is not None and not (isinstance(given, int | np.integer) and 1 <= given < NO_CUTOFF):
                raise SettingError(f"{name} must be a whole number of at least 1, or None for no limit; got {given}")

    @property
    def conservative(self) -> bool:
        """Only RankNet's forces, of all pairs alike, are the slope of a cost; what a pair weighs otherwise depends on the ranking."""
        return self.measure is None and self.neighbours is None and self.truncation is None

    def pairs(self, data: RankingData) -> float:
        """How many pairs of documents meet in one pass."""
        sizes, cutoff = data.sizes, NO_CUTOFF if self.measure is None else self.measure.cutoff
        upper = np.minimum(sizes - 1, min(self.truncation or NO_CUTOFF, cutoff))
        return float(np.minimum(upper * sizes - upper * (upper + 1) / 2, upper * (self.neighbours or NO_CUTOFF)).sum())

    def rule_on(self, data: RankingData) -> _core.LambdaRule:
        """The rule as the kernels take it."""
        kernel, grades = (None, data.y) if self.measure is None else training_kernel(self.measure, data)
        limits = self.neighbours or NO_CUTOFF, self.truncation or NO_CUTOFF
        return _core.LambdaRule(kernel, grades, data.y, self.link, self.margin, *limits, self.near or 0.0)


@dataclass(frozen=True)
class Lambdas(LambdaRule):
    """(1); without a measure all weights are 1. The value is the measure's, or the links' negated cost where there is none.

    Among equal scores the better documents count as ranked below: a model gains nothing by leaving things undecided.
    """

    def on(self, data: RankingData) -> _core.Objective:
        """Itself on ``data``."""
        return _core.lambdas(self.rule_on(data))
