"""How much hangs on where DirectRank starts (Tan, Xia, Guo & Wang 2013, section 3.3).

They trained from 100 random points, and give the mean and the standard deviation of nDCG@10: 0.756 +- 0.0023 on Yahoo's data and
0.457 +- 0.0026 on Microsoft's. "Our algorithm might not be that sensitive to the initial point, when the data is large enough":

    standard deviation / mean < 1/100,    and less than with a tenth of the training queries                    (1)

of test data, one model per start. The sets are those of `exactrank.reproduce.directrank_large`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from exactrank.data.folds import Fold
from exactrank.rankers.directrank import DirectRank
from exactrank.reproduce.artificial import Sizes
from exactrank.reproduce.chosen import fitted
from exactrank.reproduce.directrank_large import MEASURE
from exactrank.reproduce.experiment import MICROSOFT, YAHOO, AsYahooAndMicrosoft, Tell, silent
from exactrank.reproduce.finding import Check, Finding
from exactrank.reproduce.panels import Curve, Panel
from exactrank.table import Cell, Table

STABLE = 0.01  #: of (1)
FEWER = 10  #: times fewer queries
#: Mean and standard deviation.
PUBLISHED: Mapping[str, tuple[float, float]] = {YAHOO: (0.756, 0.0023), MICROSOFT: (0.457, 0.0026)}


@dataclass(frozen=True)
class Runs:
    """Models of different starts on one set."""

    name: str
    all: tuple[float, ...]  #: nDCG@10 on test data, trained on all queries
    few: tuple[float, ...]  #: trained on a tenth of them
    rounds: float  #: over the weights, mean, trained on all

    def checks(self) -> list[Check]:
        """(1)."""
        return [
            Check(f"{self.name}: the start matters little (standard deviation / mean < {STABLE:g})", _spread(self.all), STABLE),
            Check(f"{self.name}: less than with a tenth of the queries (standard deviation / mean)", _spread(self.all), _spread(self.few)),
        ]

    def rows(self) -> list[list[Cell]]:
        """For the table."""
        published = PUBLISHED.get(self.name, ("", ""))
        kinds = (("all", self.all, published), ("a tenth", self.few, ("", "")))
        return [
            [self.name, which, len(each), float(np.mean(each)), float(np.std(each)), float(min(each)), float(max(each)), *theirs]
            for which, each, theirs in kinds
        ]

    def panel(self) -> Panel:
        """Models from the worst to the best."""
        curves = (
            Curve(label, tuple(range(1, len(each) + 1)), tuple(sorted(each)))
            for label, each in (("all training queries", self.all), ("a tenth", self.few))
        )
        return Panel(self.name, "starts, from the worst to the best", f"{MEASURE}, test data", tuple(curves))

    def said(self) -> str:
        """In plain words."""
        return (
            f"{self.name}: {np.mean(self.all):.4f} +- {np.std(self.all):.4f} with all training queries, {np.mean(self.few):.4f} +-"
            f" {np.std(self.few):.4f} with a tenth; {self.rounds:.0f} rounds in the mean."
        )


@dataclass(frozen=True, kw_only=True)
class DirectRankStarts(
    AsYahooAndMicrosoft, full={"features": 136, "yahoo": (19_944, 2_994, 6_983), "microsoft": (18_919, 6_306, 6_306), "starts": 100}
):
    """``starts`` models of each set, or of the folds in ``data``."""

    paper = "Tan, Xia, Guo & Wang 2013"
    where = "section 3.3 (standard deviations)"
    published = (
        "DirectRank is not that sensitive to where it starts, when the data is large enough. Of 100 starts nDCG@10 is 0.756 +- 0.0023 on"
        " Yahoo's data and 0.457 +- 0.0026 on Microsoft's."
    )

    yahoo: Sizes = (2_000, 500, 2_000)
    microsoft: Sizes = (1_000, 500, 2_000)
    starts: int = 8

    @property
    def stages(self) -> int:
        return self.starts * (sum(len(folds) for _, folds in self.given) or 2)

    def run(self, tell: Tell = silent) -> Finding:
        runs = [self._runs(name, folds, tell) for name, folds in self._sets()]
        columns = ("set", "training queries", "starts", "mean", "standard deviation", "worst", "best", "mean, published", "sd, published")
        table = Table(f"{MEASURE}, test data", columns, [row for each in runs for row in each.rows()])
        return self._finding((each.said() for each in runs), (each.checks() for each in runs), [table], (each.panel() for each in runs))

    def _runs(self, name: str, folds: Sequence[Fold], tell: Tell) -> Runs:
        found: list[tuple[float, float, float]] = []
        for start in range(self.starts):
            each = []
            for fold in folds:
                tell(f"{name}, start {start + 1}")
                each.append(self._once(fold, start))
            found.append(tuple(np.mean(each, axis=0).tolist()))
        whole, few, rounds = zip(*found, strict=True)
        return Runs(name, whole, few, float(np.mean(rounds)))

    def _once(self, fold: Fold, start: int) -> tuple[float, float, float]:
        """nDCG@10 with all training queries and with a tenth, and how many rounds the first took."""
        fewer = fold.train.take_queries(np.arange(max(1, fold.train.n_queries // FEWER)))
        whole, few = (self._trained(replace(fold, train=train), start) for train in (fold.train, fewer))
        return whole.score(fold.test), few.score(fold.test), whole.history_[-1].step

    def _trained(self, fold: Fold, start: int) -> DirectRank:
        ranker = DirectRank(measure=MEASURE, bags=0, start="random", seed=self.seed * self.starts + start, threads=self.threads)
        return fitted(ranker, fold.train, fold.valid)


def _spread(values: Sequence[float]) -> float:
    return float(np.std(values) / np.mean(values))
