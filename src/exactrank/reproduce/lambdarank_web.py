"""LambdaRank against RankNet on data as of web search (Burges, Ragno & Le 2006, section 6.4 and Figure 3).

Their 25,000 queries, of 26 documents with 367 features, are not public: here it is artificial data of mixed features
(`artificial.correlated`). With linear nets and with two layers LambdaRank is ahead (`exactrank.reproduce.duel`), and

    | nDCG@10 of LambdaRank with linear nets - nDCG@10 of RankNet with two layers | < 1/100                     (1)

"the linear LambdaRank results lie on top of the two layer RankNet results, for the larger truncation values".
"""

from collections.abc import Sequence
from dataclasses import dataclass

from exactrank.data.folds import Fold
from exactrank.reproduce.artificial import Sizes, correlated_parts, three_parts
from exactrank.reproduce.duel import DENSE, Duel, Duels, ahead
from exactrank.reproduce.finding import Check

NEAR = 0.01  #: of (1)


@dataclass(frozen=True, kw_only=True)
class LambdaRankOnWeb(Duels, full={"features": 367, "queries": (10_000, 5_000, 10_000), "rates": DENSE, "epochs": 300}):
    """On ``queries`` queries for training, validation and test."""

    paper = "Burges, Ragno & Le 2006"
    where = "Figure 3"
    published = (
        "On web data LambdaRank is ahead of RankNet, with linear and with two-layer nets. At the larger k linear LambdaRank is level with"
        " two-layer RankNet."
    )

    documents: int = 26
    queries: Sizes = (3_000, 1_500, 3_000)

    def _sets(self) -> Sequence[tuple[str, Sequence[Fold]]]:
        return [("as web search", [correlated_parts(three_parts(self._source(), self.queries), self.seed)])]

    def _checks(self, duels: Sequence[Duel]) -> list[Check]:
        return [*(check for duel in duels for check in ahead(duel)), level(*duels)]


def level(linear: Duel, two_layers: Duel) -> Check:
    """(1)."""
    apart = abs(float(linear.means[0, -1] - two_layers.means[1, -1]))
    return Check(f"linear LambdaRank is level with two-layer RankNet (nDCG@10, difference < {NEAR:g})", apart, NEAR)
