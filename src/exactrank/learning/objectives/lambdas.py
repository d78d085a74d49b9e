"""Lambda functions: forces between pairs of documents (Burges, Ragno & Le 2006).

A pair whose swap in the ranking matters pushes its better document up and the other down, by

    lambda_ij = |weight_ij| link(s_i - s_j),    document i to be ranked above j                                 (1)

The weight is 1 (RankNet), or the change of a measure when the two swap ranks (LambdaRank, for any measure). The links:

    logistic   1 / (1 + e^d)             the slope of RankNet's cost; with NDCG's weights their eq. 9           (2)
    step       1 where d < margin        a constant force: their step potentials                                (3)
    spring     max(0, margin - d)        a spring that pulls until the margin is reached                        (4)

Pairs may be limited: ``neighbors`` is the maximum number of ranks between the two (1: nearest neighbors only), ``truncation`` the
number of top ranks in which one of them must be. A measure with a cutoff has no weight for pairs below it anyway.

With ``near`` the weight of a pair is its change of the measure divided by the distance that its scores have to move for it,

    weight_ij <- weight_ij / (near + |s_i - s_j|)                                                               (5)

the slope of the measure rather than its change, so that pairs far apart, which no tree will swap, count for little. (LightGBM's
lambdarank does so, with 0.01.)

With ``normalize`` all forces and curvatures of a query are multiplied by

    log2(1 + S) / S,    S = the sum of the forces' sizes, each at both documents of its pair                    (6)

so that a query with many or strong pairs counts for less: about the logarithm of its former weight. (LightGBM's ``lambdarank_norm``.)

Pairs that the data has beside its grades (`exactrank.data.preferences`) push too, wherever they are ranked: ``neighbors`` and
``truncation`` do not limit them. Without a measure the weight of such a pair in (1) is the one given, w_ij. With a measure it is

    weight_ij = w_ij / (sum of the query's w),                                                                  (7)

what the pair is worth to PairwiseCorrect on these pairs, since a measure of grades says nothing about them.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np

from exactrank import _core
from exactrank._support.arguments import check_number
from exactrank.data.ranking_data import RankingData
from exactrank.errors import SettingError
from exactrank.learning.objectives.bounded_gain import training_kernel
from exactrank.learning.objectives.score_space import LambdaForces, read_measure
from exactrank.measures.base import NO_CUTOFF, Measure

Link = Literal["logistic", "step", "spring"]


@dataclass(frozen=True)
class LambdaRule(LambdaForces):
    """The base of lambda functions of pairs: weights by a measure's changes, or 1 without a measure; a link; and limits of pairs."""

    remedy: ClassVar[str] = (
        "use fewer pairs: LambdaRank and LambdaMART take truncation=10, neighbors=10 or weighted_by='nDCG@10'"
        " (and LambdaRank start='random', since RankNet has all pairs); or use RankSVM, ListNet or ListMLE, which need no pairs"
    )

    measure: Measure | None = None
    link: Link = "logistic"
    margin: float = 1.0
    neighbors: int | None = None
    truncation: int | None = None
    near: float | None = None
    normalize: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if self.measure is not None:
            read_measure(self)
        if self.link not in ("logistic", "step", "spring"):
            raise SettingError(f'link={self.link!r} is not one of "logistic", "step", "spring"')
        check_number("margin", self.margin)
        if self.near is not None and (self.measure is None or not 0 < self.near < float("inf")):
            raise SettingError(f"near must be a number above 0, and needs a measure; got {self.near} and {self.measure}")
        for name in ("neighbors", "truncation"):
            limit = getattr(self, name)
            if limit is not None and not (isinstance(limit, int | np.integer) and 1 <= limit < NO_CUTOFF):
                raise SettingError(f"{name} must be a whole number of at least 1, or None for no limit; got {limit}")

    @property
    def conservative(self) -> bool:
        """True for RankNet's forces, which are the slope of a cost; all other weights of pairs depend on the ranking."""
        return self.measure is None and self.neighbors is None and self.truncation is None and not self.normalize

    def pairs(self, data: RankingData) -> float:
        """Return the number of pairs of documents in one pass."""
        sizes, cutoff = data.sizes, NO_CUTOFF if self.measure is None else self.measure.cutoff
        upper = np.minimum(sizes - 1, min(self.truncation or NO_CUTOFF, cutoff))
        preferences = 0 if data.preferences is None else len(data.preferences)
        return preferences + float(np.minimum(upper * sizes - upper * (upper + 1) / 2, upper * (self.neighbors or NO_CUTOFF)).sum())

    def rule_on(self, data: RankingData) -> _core.LambdaRule:
        """Return the rule for the kernels."""
        kernel, grades = (None, data.y) if self.measure is None else training_kernel(self.measure, data)
        limits = self.neighbors or NO_CUTOFF, self.truncation or NO_CUTOFF
        pairs = data.native_preferences
        return _core.LambdaRule(kernel, grades, data.y, self.link, self.margin, *limits, self.near or 0.0, self.normalize, pairs)


@dataclass(frozen=True)
class Lambdas(LambdaRule):
    """(1); without a measure all weights are 1. The value is the measure's or, without one, the links' negated cost.

    Among equal scores the better documents count as ranked below: a model gains nothing from ties.
    """

    def forces_on(self, data: RankingData) -> _core.Objective:
        return _core.lambdas(self.rule_on(data))


@dataclass(frozen=True)
class SampledLambdas(LambdaRule):
    """Lambda functions over random rankings: YetiRank (Gulin, Kuralenok & Pavlov 2011), for any measure.

    Noise is added to the scores, and in the ranking by the noisy scores the documents push each other as in `Lambdas`: pairs and the
    changes by their swaps come from that ranking, the link from the scores without noise. The force is the mean over several such
    rankings:

        lambda_ij = mean over samples of |weight_ij| link(s_i - s_j),    ranked by s + noise * e,  e standard logistic

    Weights do not jump when two documents change places, and since each tree gets new draws, no tree is fitted to a single ranking.
    YetiRank has ``neighbors=1``: it trains on pairs of documents that are likely to be neighbors. Its weights, the difference of grades
    times decay^rank, are those of ``DCG(gain="linear", discount=[decay**r for r in range(longest)])``, up to a factor; Lyzhin, Ustimenko,
    Gulin & Prokhorenkova (2023) compare the two kinds.

    The value is the measure's without noise, or without a measure the links' negated mean cost. The draws depend
    only on ``seed``, ``draw``, the query's number, which counts from ``first``, the sample and the document.
    """

    samples: int = 10
    noise: float = 1.0
    seed: int = 0
    draw: int = 0
    first: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (isinstance(self.samples, int | np.integer) and 1 <= self.samples < 2**31):
            raise SettingError(f"samples must be a whole number of at least 1, got {self.samples}")
        check_number("noise", self.noise)
        for name in ("seed", "draw"):
            if not 0 <= getattr(self, name) < 2**64:
                raise SettingError(f"{name} must be at least 0 and below 2^64, got {getattr(self, name)}")

    def pairs(self, data: RankingData) -> float:
        return self.samples * super().pairs(data)

    def forces_on(self, data: RankingData) -> _core.Objective:
        return _core.sampled_lambdas(self.rule_on(data), self.samples, self.noise, self.seed, self.draw, self.first)

    def with_draws(self, number: int) -> "SampledLambdas":
        """Return the same objective with draws of its own, for the tree or the step of this number."""
        return replace(self, draw=number)

    def for_part(self, query: int, document: int) -> "SampledLambdas":
        return replace(self, first=query)


@dataclass(frozen=True)
class FiniteDifference(LambdaForces):
    """The slope of a measure by finite differences of single scores (Burges, Ragno & Le 2006, section 6.2), in steps c of ``step``.

        lambda_i = (M(s + c e_i) - M(s - c e_i)) / (2 c),    less the mean over the query's documents

    One of the lambda functions they tried; Yue & Burges (2007, section 5.4) say that it did worse than the published one.
    """

    conservative: ClassVar[bool] = False
    remedy: ClassVar[str] = "use lambdas='logistic' with truncation=10"

    measure: Measure
    step: float = 1.0

    def __post_init__(self) -> None:
        read_measure(self)
        check_number("the step of a finite difference", self.step, above=True)

    def pairs(self, data: RankingData) -> float:
        """Return the number of documents to be ranked in one pass: all of a query, twice for each of them."""
        return float(2 * (data.sizes**2).sum())

    def forces_on(self, data: RankingData) -> _core.Objective:
        kernel, grades = training_kernel(self.measure, data)
        return _core.finite_difference(kernel, grades, data.y, self.step)
