"""LambdaRank against RankNet on artificial data (Burges, Ragno & Le 2006, section 6.3.1 and the left of Figure 2).

"LambdaRank clearly outperforms RankNet": the 95% interval of the gap (`exactrank.reproduce.duel`) is above 0 for every k.
"The gap increases at higher relevance levels": gap_1 is above gap_10, and above 0. The paper does not say which net its figure
shows, so there is a comparison of linear ones and one of nets with 10 hidden units.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from exactrank.data.folds import Fold
from exactrank.reproduce.artificial import Sizes, three_parts
from exactrank.reproduce.duel import DENSE, Duel, Duels, ahead
from exactrank.reproduce.finding import Check


@dataclass(frozen=True, kw_only=True)
class LambdaRankOverRankNet(Duels, full={"queries": (10_000, 5_000, 10_000), "rates": DENSE, "epochs": 300}):
    """On ``queries`` queries for training, validation and test."""

    paper = "Burges, Ragno & Le 2006"
    where = "Figure 2 (left)"
    published = "LambdaRank is clearly ahead of RankNet at NDCG@1 to NDCG@10, by more at the top ranks."

    queries: Sizes = (4_000, 2_000, 4_000)

    def _sets(self) -> Sequence[tuple[str, Sequence[Fold]]]:
        return [("artificial", [three_parts(self._source(), self.queries)])]

    def _checks(self, duels: Sequence[Duel]) -> list[Check]:
        return [check for duel in duels for check in (*ahead(duel), more_at_the_top(duel))]


def more_at_the_top(duel: Duel) -> Check:
    """LambdaRank is ahead by most at the first rank."""
    says = f"{duel.net}: by more at rank 1 than at rank 10 (0 and gap at 10 < gap at 1)"
    return Check(says, max(0.0, float(duel.gaps[-1])), float(duel.gaps[0]))
