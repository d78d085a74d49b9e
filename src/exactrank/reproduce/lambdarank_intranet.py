"""LambdaRank against RankNet on few queries (Burges, Ragno & Le 2006, section 6.3.2 and the right of Figure 2).

Their 400 queries of intranet search, of 59 documents with 87 features and 4 grades, in five folds of which two train, two validate
and one tests, are not public. Here they are as much artificial data with noise and mixed features; or ``data``: folders with Fold1,
Fold2, ... as LETOR has them. "Although LambdaRank gave uniformly better mean NDCGs, [...] LambdaRank does not give statistically
significantly better results": with linear nets every gap is above 0, but for no k is all of its interval
(`exactrank.reproduce.duel`). "For the two layer nets the NDCG means are even closer".
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exactrank.data.folds import Fold
from exactrank.data.synthetic import CubicPolynomial
from exactrank.reproduce.artificial import correlated, five_splits
from exactrank.reproduce.duel import DENSE, Duel, Duels
from exactrank.reproduce.experiment import OnFolds
from exactrank.reproduce.finding import Check

GRADES = 4


@dataclass(frozen=True, kw_only=True)
class LambdaRankOnIntranet(Duels, OnFolds, full={"rates": DENSE, "epochs": 200}):
    """On ``queries`` queries in five folds; or the folds in ``data``."""

    paper = "Burges, Ragno & Le 2006"
    where = "Figure 2 (right)"
    published = (
        "On 400 queries of intranet search the means of LambdaRank are better at every k, but not significantly. With two-layer nets they"
        " are even closer."
    )

    features: int = 87
    documents: int = 59
    queries: int = 400
    noise: float = 1.0
    rates: tuple[float, ...] = (1e-5, 1e-4, 1e-3, 1e-2)

    def _sets(self) -> Sequence[tuple[str, Sequence[Fold]]]:
        if self.data:
            return self.given
        source = CubicPolynomial(self.features, self.documents, GRADES, self.noise, self.seed, self.threads)
        drawn = correlated(source.data(self.queries), self.seed)
        return [("as intranet search", five_splits(drawn, self.seed, train=2))]

    def _checks(self, duels: Sequence[Duel]) -> list[Check]:
        return [*uniform(duels[0]), *(closer(duels[0], more) for more in duels[1:])]


def uniform(duel: Duel) -> list[Check]:
    """Ahead everywhere, and perhaps by chance."""
    low = float(duel.gap_intervals[:, 0].max())
    return [
        Check(f"{duel.net}: LambdaRank is ahead at every rank (0 < the least gap)", 0.0, float(duel.gaps.min())),
        Check(f"{duel.net}: but not significantly (the largest lower end of the gaps' intervals < 0)", low, 0.0),
    ]


def closer(linear: Duel, more: Duel) -> Check:
    """Two layers are closer."""
    says = f"{more.net}: the two are closer than with linear nets (mean size of the gaps)"
    return Check(says, float(np.abs(more.gaps).mean()), float(np.abs(linear.gaps).mean()))
