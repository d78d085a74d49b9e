"""Is a trained LambdaRank net at a local optimum of NDCG? (Yue & Burges 2007, section 5.4)

They looked at their figures: "the local optimum found using the LambdaRank gradient also corresponds very closely to a local optimum
of NDCG". For linear nets the answer is exact: with all other weights held,

    gain_j = largest nDCG for any value of weight j - nDCG of the net                                           (1)

is known without sampling (`exactrank.probe.optimality`), on the training queries. "Very closely" is checked as

    largest gain_j < 1/1000 for LambdaRank,    and below that of RankNet                                        (2)

RankNet, which does not know NDCG, is the control that the paper does not have.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from exactrank.probe.optimality import Optimality, optimality
from exactrank.rankers.gradient import GradientRanker
from exactrank.reproduce.artificial import Sizes, three_parts
from exactrank.reproduce.chosen import as_published, chosen
from exactrank.reproduce.duel import RIVALS
from exactrank.reproduce.experiment import Experiment, Tell, silent
from exactrank.reproduce.finding import Check, Finding
from exactrank.reproduce.panels import Curve, Panel
from exactrank.table import Cell, Table

NEAR = 1e-3  #: of (2)
LEAST = 1e-7  #: no gain is drawn smaller


@dataclass(frozen=True, kw_only=True)
class LambdaRankOptimality(Experiment, full={"queries": (10_000, 5_000, 1), "epochs": 300}):
    """Linear nets, trained and looked at on the first of ``queries`` queries; the second choose rate and epoch."""

    paper = "Yue & Burges 2007"
    where = "section 5.4, of Figures 2 to 4"
    published = "A trained LambdaRank net is very close to a local optimum of NDCG."

    measure: str = "nDCG"
    queries: Sizes = (2_000, 1_000, 1)
    rates: tuple[float, ...] = (1e-4, 1e-3, 1e-2)
    epochs: int = 40

    @property
    def stages(self) -> int:
        return len(RIVALS) * (len(self.rates) + 1)

    def run(self, tell: Tell = silent) -> Finding:
        fold = three_parts(self._source(), self.queries)
        found = {}
        for kind in RIVALS:
            best = chosen((self._ranker(kind, rate) for rate in self.rates), fold, tell)
            tell(f"{kind.__name__}: exact curves of {self.features} weights")
            found[kind.__name__] = optimality(best, fold.train, threads=self.threads)
        return self._finding(_said(found), checks_of({name: gains(each) for name, each in found.items()}), [_table(found)], [_panel(found)])

    def _ranker(self, kind: type[GradientRanker], rate: float) -> GradientRanker:
        return as_published(kind, measure=self.measure, learning_rate=rate, max_iter=self.epochs, seed=self.seed, threads=self.threads)


def gains(found: Optimality) -> list[float]:
    """(1), largest first."""
    return [weight.gain for weight in found.ranked()]


def checks_of(by_ranker: Mapping[str, Sequence[float]]) -> list[Check]:
    """(2)."""
    ours, control = (max(by_ranker[name]) for name in ("LambdaRank", "RankNet"))
    return [
        Check(f"LambdaRank: no single weight gains more than {NEAR:g} (largest gain)", ours, NEAR),
        Check("control: RankNet has more to gain (largest gain)", ours, control),
    ]


def _said(found: Mapping[str, Optimality]) -> str:
    return " ".join(f"{name}: {each.verdict}" for name, each in found.items())


def _table(found: Mapping[str, Optimality]) -> Table:
    rows: list[list[Cell]] = []
    for name, each in found.items():
        by_weight = np.maximum(gains(each), 0.0)
        top = int(np.sum(by_weight == 0))
        rows.append([name, each.value, float(by_weight.max()), float(np.median(by_weight)), top])
    return Table("What single weights gain, training data", ("net", "nDCG", "largest gain", "median gain", "weights at their best"), rows)


def _panel(found: Mapping[str, Optimality]) -> Panel:
    curves = (Curve(name, tuple(range(1, len(gains(each)) + 1)), tuple(max(g, LEAST) for g in gains(each))) for name, each in found.items())
    return Panel("what a single weight gains", "weights, by gain", "gain of nDCG, training data", tuple(curves), log="y")
