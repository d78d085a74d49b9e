"""LambdaRank against RankNet on artificial data (Burges, Ragno & Le 2006, section 6.3.1 and the left of Figure 2).

Both are trained alike, as they published it: an update a query, a learning rate that falls when the training cost rises, the rate
and the epoch that are best on validation data, no penalty on weights. Compared is nDCG@k on test data, for k from 1 to 10:

    gap_k = mean over test queries of  nDCG@k by LambdaRank - nDCG@k by RankNet                                 (1)

"LambdaRank clearly outperforms RankNet": the 95% interval of (1), by bootstrap over queries, is above 0 for every k. "The gap
increases at higher relevance levels": gap_1 is above gap_10, and above 0. The paper does not say which net its figure shows, so
there is a comparison of linear ones and one of nets with 10 hidden units.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from exactrank.data.folds import Fold
from exactrank.measures.bootstrap import bootstrap_intervals
from exactrank.measures.evaluate import Evaluation, evaluate
from exactrank.rankers.gradient import GradientRanker
from exactrank.rankers.lambdarank import LambdaRank
from exactrank.rankers.ranknet import RankNet
from exactrank.workbench.reproduce.artificial import Sizes, three_parts
from exactrank.workbench.reproduce.chosen import as_published, chosen, net
from exactrank.workbench.reproduce.experiment import Experiment, Tell, silent
from exactrank.workbench.reproduce.finding import Check, Finding, Table
from exactrank.workbench.reproduce.panels import Curve, Panel

RANKS = tuple(range(1, 11))
MEASURES = tuple(f"nDCG@{k}" for k in RANKS)
RIVALS: tuple[type[GradientRanker], ...] = (LambdaRank, RankNet)


@dataclass(frozen=True, eq=False)
class Duel:
    """Both rankers with one kind of net, on the test queries."""

    net: str
    rates: Sequence[float]  #: that validation chose
    results: Sequence[Evaluation]  #: of LambdaRank and of RankNet

    @property
    def gaps(self) -> npt.NDArray[np.float64]:
        """(1)."""
        ours, theirs = (np.array(list(result.means.values())) for result in self.results)
        return np.asarray(ours - theirs)

    @property
    def gap_intervals(self) -> npt.NDArray[np.float64]:
        """The ends of the 95% interval of (1), a row a rank."""
        ours, theirs = self.results
        return np.asarray(bootstrap_intervals(ours.per_query - theirs.per_query, ours.weight, seed=ours.seed))

    def checks(self) -> tuple[Check, ...]:
        ahead = f"{self.net}: LambdaRank is ahead at every rank (0 < the least lower end of the gaps' intervals)"
        more = f"{self.net}: by more at rank 1 than at rank 10 (0 and gap at 10 < gap at 1)"
        return (
            Check(ahead, 0.0, float(self.gap_intervals[:, 0].min())),
            Check(more, max(0.0, float(self.gaps[-1])), float(self.gaps[0])),
        )

    def table(self) -> Table:
        names = [f"{kind.__name__}, rate {rate:g}" for kind, rate in zip(RIVALS, self.rates, strict=True)]
        means = [list(result.means.values()) for result in self.results]
        intervals = [f"{low:+.4f} .. {high:+.4f}" for low, high in self.gap_intervals]
        rows = list(zip(MEASURES, *means, self.gaps.tolist(), intervals, strict=True))
        return Table(f"{self.net[0].upper()}{self.net[1:]}, test data", ("measure", *names, "gap", "95% interval of the gap"), rows)

    def panel(self) -> Panel:
        curves = []
        for kind, result in zip(RIVALS, self.results, strict=True):
            low, high = zip(*result.intervals.values(), strict=True)
            curves.append(Curve(kind.__name__, RANKS, tuple(result.means.values()), low, high))
        return Panel(self.net, "k", "nDCG@k, test data, 95% intervals", tuple(curves))


@dataclass(frozen=True, kw_only=True)
class LambdaRankOverRankNet(Experiment):
    """The comparison with each kind of net in ``hidden``; None is linear."""

    name: ClassVar[str] = "lambdarank-ranknet"
    paper: ClassVar[str] = "Burges, Ragno & Le 2006, section 6.3.1, Figure 2 (left)"
    published: ClassVar[str] = "LambdaRank is clearly ahead of RankNet at NDCG@1 to NDCG@10, by more at the top ranks."

    queries: Sizes = (4_000, 2_000, 4_000)
    hidden: tuple[int | None, ...] = (None, 10)
    rates: tuple[float, ...] = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
    epochs: int = 40

    @classmethod
    def full(cls, seed: int = 0) -> Self:
        rates = 1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2
        return cls(seed=seed, queries=(10_000, 5_000, 10_000), rates=rates, epochs=300)

    def run(self, tell: Tell = silent) -> Finding:
        fold = three_parts(self._source(), self.queries)
        duels = [self._duel(fold, hidden, tell) for hidden in self.hidden]
        checks = [check for duel in duels for check in duel.checks()]
        found = " ".join(_said(duel) for duel in duels)
        return self._finding(found, checks, [duel.table() for duel in duels], [duel.panel() for duel in duels])

    def _duel(self, fold: Fold, hidden: int | None, tell: Tell) -> Duel:
        rankers = [chosen((self._ranker(kind, hidden, rate) for rate in self.rates), fold, tell) for kind in RIVALS]
        results = [evaluate(MEASURES, fold.test, ranker.predict(fold.test), threads=self.threads) for ranker in rankers]
        return Duel(net(hidden), [ranker.get_params()["rate"] for ranker in rankers], results)

    def _ranker(self, kind: type[GradientRanker], hidden: int | None, rate: float) -> GradientRanker:
        return as_published(kind, hidden=hidden, rate=rate, epochs=self.epochs, seed=self.seed, threads=self.threads)


def _said(duel: Duel) -> str:
    first, last = duel.gaps[0], duel.gaps[-1]
    ahead = int(np.sum(duel.gap_intervals[:, 0] > 0))
    words = f"LambdaRank less RankNet is {first:+.4f} at rank 1 and {last:+.4f} at rank 10"
    return f"With {duel.net}, {words}; its 95% interval is above 0 at {ahead} of {len(RANKS)} ranks."
