"""How much depends on where DirectRank starts (Tan, Xia, Guo & Wang 2013, section 3.3).

They trained from 100 random points, and give the mean and the standard deviation of nDCG@10: 0.756 +- 0.0023 on Yahoo's data and
0.457 +- 0.0026 on Microsoft's. "Our algorithm might not be that sensitive to the initial point, when the data is large enough":

    standard deviation / mean < 1/100,    and less than with a tenth of the training queries                    (1)

on test data, one model per start. The sets are those of `exactrank.reproduce.directrank_linear`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from exactrank._support.tables import Table
from exactrank.data.ranking_data import RankingData
from exactrank.rankers.directrank import DirectRank
from exactrank.reproduce.artificial import Sizes
from exactrank.reproduce.directrank_linear import MEASURE
from exactrank.reproduce.experiment import MICROSOFT, SIZES, YAHOO, AsYahooAndMicrosoft, Piece, Tell, fitted
from exactrank.reproduce.finding import Inequality, Panel, curves

STABLE = 0.01  #: of (1)
FEWER = 10  #: times fewer queries
#: Mean and standard deviation.
PUBLISHED: Mapping[str, tuple[float, float]] = {YAHOO: (0.756, 0.0023), MICROSOFT: (0.457, 0.0026)}


def checks_of(name: str, every: Sequence[float], few: Sequence[float]) -> list[Inequality]:
    """(1), for models from different starts, trained on all queries and on few."""
    spread, wider = (float(np.std(values) / np.mean(values)) for values in (every, few))
    return [
        Inequality(f"{name}: the start matters little (standard deviation / mean < {STABLE:g})", spread, STABLE),
        Inequality(f"{name}: less than with a tenth of the queries (standard deviation / mean)", spread, wider),
    ]


@dataclass(frozen=True, kw_only=True)
class DirectRankStarts(AsYahooAndMicrosoft, name="directrank-starts", full=SIZES | {"features": 136, "starts": 100}):
    """``starts`` models of each set, or of the folds in ``data``."""

    where = "section 3.3 (standard deviations)"
    published = (
        "DirectRank is not that sensitive to where it starts, when the data is large enough. Over 100 starts nDCG@10 is 0.756 +- 0.0023 on"
        " Yahoo's data and 0.457 +- 0.0026 on Microsoft's."
    )

    yahoo: Sizes = (2_000, 500, 2_000)
    microsoft: Sizes = (1_000, 500, 2_000)
    starts: int = 8

    @property
    def stages(self) -> int:
        return self.starts * (sum(len(folds) for _, folds in self.given) or 2)

    def _found(self, tell: Tell) -> Iterator[Piece]:
        rows = []
        for name, folds in self._sets():
            found = []
            for start in range(self.starts):
                values = []  # with all training queries and with few, and how many rounds the first took
                for fold in folds:
                    tell(f"{name}, start {start + 1}")
                    fewer = fold.train.take_queries(np.arange(max(1, fold.train.n_queries // FEWER)))
                    whole, few = (self._trained(train, fold.valid, start) for train in (fold.train, fewer))
                    values.append((whole.score(fold.test), few.score(fold.test), whole.history_[-1].step))
                found.append(np.mean(values, axis=0).tolist())
            every, some, rounds = zip(*found, strict=True)
            yield from checks_of(name, every, some)
            ours, theirs = (f"{np.mean(each):.4f} +- {np.std(each):.4f}" for each in (every, some))
            yield f"{name}: {ours} with all training queries, {theirs} with a tenth; {np.mean(rounds):.0f} rounds on average."
            for which, each, published in (("all", every, PUBLISHED.get(name, ("", ""))), ("a tenth", some, ("", ""))):
                rows.append([name, which, len(each), float(np.mean(each)), float(np.std(each)), min(each), max(each), *published])
            drawn = curves({"all training queries": sorted(every), "a tenth": sorted(some)})
            yield Panel(name, "starts, from the worst to the best", f"{MEASURE}, test data", drawn)
        columns = ("set", "training queries", "starts", "mean", "standard deviation", "worst", "best", "mean, published", "sd, published")
        yield Table(f"{MEASURE}, test data", columns, rows)

    def _trained(self, train: RankingData, valid: RankingData, start: int) -> DirectRank:
        ranker = DirectRank(measure=MEASURE, bags=0, start="random", seed=self.seed * self.starts + start, threads=self.threads)
        return fitted(ranker, train, valid)
