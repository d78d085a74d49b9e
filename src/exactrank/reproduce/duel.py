"""What the three comparisons of LambdaRank with RankNet share (Burges, Ragno & Le 2006, section 6.3, Figures 2 and 3).

Both are trained alike, as they published it: one update per query, a learning rate that falls when the training cost rises, the rate
and the epoch that are best on validation data, no penalty on weights. Compared is nDCG@k on test data, for k from 1 to 10:

    gap_k = mean over test queries of  nDCG@k by LambdaRank - nDCG@k by RankNet                                 (1)

with its 95% interval by bootstrap over queries. Test queries of several folds are pooled.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from exactrank.data.folds import Fold
from exactrank.measures.bootstrap import bootstrap_intervals
from exactrank.measures.evaluate import evaluate
from exactrank.rankers.base import Ranker
from exactrank.rankers.gradient import GradientRanker
from exactrank.rankers.lambdarank import LambdaRank
from exactrank.rankers.ranknet import RankNet
from exactrank.reproduce.chosen import as_published, chosen, net
from exactrank.reproduce.experiment import Experiment, Tell, silent
from exactrank.reproduce.finding import Check, Finding
from exactrank.reproduce.panels import Curve, Panel
from exactrank.table import Table

RANKS = tuple(range(1, 11))
MEASURES = tuple(f"nDCG@{k}" for k in RANKS)
RIVALS: tuple[type[GradientRanker], ...] = (LambdaRank, RankNet)
SPARSE = 1e-6, 1e-5, 1e-4, 1e-3, 1e-2  #: learning rates
DENSE = 1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2

Values = npt.NDArray[np.float64]  #: nDCG@k of each test query, a row a k


@dataclass(frozen=True, eq=False)
class Duel:
    """Both rankers with one kind of net, on the test queries."""

    net: str
    rates: Sequence[Sequence[float]]  #: of LambdaRank and of RankNet, that validation chose in each fold
    values: Sequence[Values]  #: of LambdaRank and of RankNet

    @property
    def means(self) -> Values:
        """Over test queries, a row a ranker."""
        return np.stack([each.mean(axis=1) for each in self.values])

    @property
    def gaps(self) -> Values:
        """(1)."""
        return np.asarray(self.means[0] - self.means[1])

    @property
    def gap_intervals(self) -> Values:
        """The ends of the 95% interval of (1), a row a rank."""
        return _intervals(self.values[0] - self.values[1])

    def table(self) -> Table:
        """By k."""
        names = [f"{kind.__name__}, rate {_listed(rates)}" for kind, rates in zip(RIVALS, self.rates, strict=True)]
        intervals = [f"{low:+.4f} .. {high:+.4f}" for low, high in self.gap_intervals]
        rows = list(zip(MEASURES, *self.means.tolist(), self.gaps.tolist(), intervals, strict=True))
        return Table(f"{self.net[0].upper()}{self.net[1:]}, test data", ("measure", *names, "gap", "95% interval of the gap"), rows)

    def panel(self) -> Panel:
        """By k."""
        curves = []
        for kind, values, means in zip(RIVALS, self.values, self.means.tolist(), strict=True):
            low, high = zip(*_intervals(values).tolist(), strict=True)
            curves.append(Curve(kind.__name__, RANKS, tuple(means), low, high))
        return Panel(self.net, "k", "nDCG@k, test data, 95% intervals", tuple(curves))

    def said(self) -> str:
        """In plain words."""
        first, last = self.gaps[0], self.gaps[-1]
        ahead = int(np.sum(self.gap_intervals[:, 0] > 0))
        words = f"LambdaRank less RankNet is {first:+.4f} at rank 1 and {last:+.4f} at rank 10"
        return f"With {self.net}, {words}; its 95% interval is above 0 at {ahead} of {len(RANKS)} ranks."


@dataclass(frozen=True, kw_only=True)
class Duels(Experiment):
    """The comparison with each kind of net in ``hidden``; None is linear."""

    hidden: tuple[int | None, ...] = (None, 10)
    rates: tuple[float, ...] = SPARSE
    epochs: int = 40

    @property
    def stages(self) -> int:
        folds = sum(len(folds) for _, folds in self.sets)
        return folds * len(self.hidden) * len(RIVALS) * len(self.rates)

    def run(self, tell: Tell = silent) -> Finding:
        by_set = [[self._duel(name, folds, hidden, tell) for hidden in self.hidden] for name, folds in self.sets]
        duels = [duel for each in by_set for duel in each]
        said, checks = (each.said() for each in duels), (self._checks(each) for each in by_set)
        return self._finding(said, checks, (each.table() for each in duels), (each.panel() for each in duels))

    @cached_property
    def sets(self) -> Sequence[tuple[str, Sequence[Fold]]]:
        """The name and the folds of each set."""
        return self._sets()

    @abstractmethod
    def _sets(self) -> Sequence[tuple[str, Sequence[Fold]]]:
        """Those of `sets`, read or drawn."""

    @abstractmethod
    def _checks(self, duels: Sequence[Duel]) -> list[Check]:
        """What was published of the duels on one set, one a kind of net."""

    def _duel(self, name: str, folds: Sequence[Fold], hidden: int | None, tell: Tell) -> Duel:
        best = [[chosen((self._ranker(kind, hidden, rate) for rate in self.rates), fold, tell) for fold in folds] for kind in RIVALS]
        values = [np.concatenate([_tested(r, fold) for r, fold in zip(each, folds, strict=True)], axis=1) for each in best]
        rates = [[ranker.get_params()["learning_rate"] for ranker in each] for each in best]
        return Duel(f"{name}, {net(hidden)}" if len(self.sets) > 1 else net(hidden), rates, values)

    def _ranker(self, kind: type[GradientRanker], hidden: int | None, rate: float) -> GradientRanker:
        return as_published(kind, hidden=hidden, learning_rate=rate, max_iter=self.epochs, seed=self.seed, threads=self.threads)


def ahead(duel: Duel) -> list[Check]:
    """LambdaRank is ahead, and not by chance."""
    says = f"{duel.net}: LambdaRank is ahead at every rank (0 < the least lower end of the gaps' intervals)"
    return [Check(says, 0.0, float(duel.gap_intervals[:, 0].min()))]


def _tested(ranker: Ranker, fold: Fold) -> Values:
    return evaluate(MEASURES, fold.test, ranker.predict(fold.test), threads=ranker.threads).per_query


def _intervals(values: Values) -> Values:
    return np.asarray(bootstrap_intervals(values, np.ones(values.shape[1]), seed=0))


def _listed(rates: Sequence[float]) -> str:
    """All of them, each once.

    >>> _listed([1e-3, 1e-2, 1e-3])
    '0.001, 0.01'
    """
    return ", ".join(f"{rate:g}" for rate in dict.fromkeys(rates))
