"""LambdaRank against RankNet, three times, and its lambda functions (Burges, Ragno & Le 2006, sections 6.3 and 6.4, Figures 2 and 3).

Both are trained in the same way (`WithNets`), with gains of 0, 3, 7, 15 and 31 (section 6.3), and compared for k from 1 to 10 by

    gap_k = mean over test queries of  nDCG@k by LambdaRank - nDCG@k by RankNet                                 (1)

with its 95% bootstrap interval over queries. Test queries of several folds are pooled. The data of the second and the third
comparison is artificial, with mixed features (`artificial.mix_features`).
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from exactrank._support.tables import Table
from exactrank.data.folds import Fold
from exactrank.measures.bootstrap import bootstrap_intervals
from exactrank.rankers.gradient import GradientRanker
from exactrank.rankers.lambdarank import LambdaRank
from exactrank.rankers.ranknet import RankNet
from exactrank.reproduce.artificial import Sizes, five_splits, mix_features
from exactrank.reproduce.experiment import MEASURES, NETS_MEASURES, RANKS, OnFolds, Piece, Tell, Values, WithNets, net, query_values
from exactrank.reproduce.finding import Curve, Inequality, Panel, curves

RIVALS: tuple[type[GradientRanker], ...] = (LambdaRank, RankNet)
SPARSE = 1e-5, 1e-4, 1e-3, 1e-2  #: learning rates
DENSE = 1e-7, 1e-6, 1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2
NEAR = 0.01  #: of (2)
CHOSEN = "RankNet's cost"
#: The lambda functions of section 6.2: the one that was chosen, and others.
FUNCTIONS: Mapping[str, Mapping[str, object]] = {
    CHOSEN: {"lambdas": "logistic"},
    f"{CHOSEN}, neighbors": {"lambdas": "logistic", "neighbors": 1},
    "steps": {"lambdas": "step"},
    "steps, neighbors": {"lambdas": "step", "neighbors": 1},
    "springs": {"lambdas": "spring"},
    "finite differences": {"lambdas": "finite-difference"},
}
Sets = Sequence[tuple[str, Sequence[Fold]]]  #: names and folds


@dataclass(frozen=True, eq=False)
class Duel:
    """Both rankers with one kind of net, on the test queries."""

    net: str
    rates: Sequence[Sequence[float]]  #: of LambdaRank and of RankNet, that validation chose in each fold
    values: Sequence[Values]  #: of LambdaRank and of RankNet

    @property
    def means(self) -> Values:
        """Over test queries, one row per ranker."""
        return np.stack([each.mean(axis=1) for each in self.values])

    @property
    def gaps(self) -> Values:
        """(1)."""
        return np.asarray(self.means[0] - self.means[1])

    @property
    def gap_intervals(self) -> Values:
        """The ends of the 95% interval of (1), one row per rank."""
        return _intervals(self.values[0] - self.values[1])

    def ahead(self) -> Inequality:
        """LambdaRank is significantly better."""
        says = f"{self.net}: LambdaRank is better at every rank (0 < the smallest lower end of the gaps' intervals)"
        return Inequality(says, 0.0, self.gap_intervals[:, 0].min())

    def describe(self) -> Iterator[Piece]:
        """Yield everything except the inequalities."""
        gaps, intervals = self.gaps, self.gap_intervals
        words = f"With {self.net}, LambdaRank minus RankNet is {gaps[0]:+.4f} at rank 1 and {gaps[-1]:+.4f} at rank 10"
        yield f"{words}; its 95% interval is above 0 at {np.sum(intervals[:, 0] > 0)} of {len(RANKS)} ranks."
        names, curves = [], []
        for kind, rates, values, means in zip(RIVALS, self.rates, self.values, self.means.tolist(), strict=True):
            names.append(f"{kind.__name__}, rate {', '.join(f'{rate:g}' for rate in dict.fromkeys(rates))}")
            low, high = _intervals(values).T.tolist()
            curves.append(Curve(kind.__name__, RANKS, means, low, high))
        rows = zip(MEASURES, *self.means.tolist(), gaps.tolist(), (f"{low:+.4f} .. {high:+.4f}" for low, high in intervals), strict=True)
        title = f"{self.net[0].upper()}{self.net[1:]}, test data"
        yield Table(title, ("measure", *names, "gap", "95% interval of the gap"), list(rows))
        yield Panel(self.net, "k", "nDCG@k, test data, 95% intervals", curves)


def _intervals(values: Values) -> Values:
    return np.asarray(bootstrap_intervals(values, np.ones(values.shape[1]), seed=0))


@dataclass(frozen=True, kw_only=True)
class Duels(WithNets):
    """The comparison with each kind of net in ``hidden``; None is linear."""

    hidden: tuple[int | None, ...] = (None, 10)
    rates: tuple[float, ...] = SPARSE
    epochs: int = 40

    @cached_property
    @abstractmethod
    def sets(self) -> Sets:
        """The name and the folds of each set."""

    @abstractmethod
    def checks(self, duels: Sequence[Duel]) -> Iterator[Inequality]:
        """Yield what was published about the duels on one set, one per kind of net."""

    def _pieces(self, tell: Tell) -> Iterator[Piece]:
        for name, folds in self.sets:
            duels = []
            for hidden in self.hidden:
                best = [[self._net(kind, fold, tell, hidden=hidden) for fold in folds] for kind in RIVALS]
                pairs = [list(zip(each, folds, strict=True)) for each in best]
                values = [np.concatenate([query_values(r, fold.test, NETS_MEASURES) for r, fold in each], axis=1) for each in pairs]
                rates = [[ranker.get_params()["learning_rate"] for ranker in each] for each in best]
                duels.append(Duel(f"{name}, {net(hidden)}" if len(self.sets) > 1 else net(hidden), rates, values))
                yield from duels[-1].describe()
            yield from self.checks(duels)


@dataclass(frozen=True, kw_only=True)
class LambdaRankOverRankNet(Duels, name="lambdarank-ranknet", full={"queries": (10_000, 5_000, 10_000), "rates": DENSE, "epochs": 300}):
    """On ``queries`` queries for training, validation and test (section 6.3.1).

    The paper does not say which net its figure shows, so there is a comparison of linear ones and one of nets with 10 hidden units.
    """

    queries: Sizes = (4_000, 2_000, 4_000)

    @cached_property
    def sets(self) -> Sets:
        return [("artificial", [self._fold(self.queries)])]

    def checks(self, duels: Sequence[Duel]) -> Iterator[Inequality]:
        for duel in duels:
            yield duel.ahead()
            says = f"{duel.net}: by more at rank 1 than at rank 10 (0 and gap at 10 < gap at 1)"
            yield Inequality(says, max(0.0, duel.gaps[-1]), duel.gaps[0])


@dataclass(frozen=True, kw_only=True)
class LambdaRankOnIntranet(Duels, OnFolds, name="lambdarank-intranet", full={"rates": DENSE, "epochs": 200}):
    """On ``queries`` queries in five folds, of which two train, two validate and one tests; or the folds in ``data`` (section 6.3.2)."""

    features: int = 87
    documents: int = 59
    queries: int = 400
    noise: float = 1.0
    rates: tuple[float, ...] = (1e-5, 1e-4, 1e-3, 1e-2)

    @cached_property
    def sets(self) -> Sets:
        if self.data:
            return self.folders
        data = mix_features(self._source(grades=4, noise=self.noise).data(self.queries), self.seed)
        return [("as intranet search", five_splits(data, self.seed, train=2))]

    def checks(self, duels: Sequence[Duel]) -> Iterator[Inequality]:
        linear, *networks = duels
        low = linear.gap_intervals[:, 0].max()
        yield Inequality(f"{linear.net}: LambdaRank is better at every rank (0 < the smallest gap)", 0.0, linear.gaps.min())
        yield Inequality(f"{linear.net}: but not significantly (the largest lower end of the gaps' intervals < 0)", low, 0.0)
        for duel in networks:
            says = f"{duel.net}: the two are closer than with linear nets (mean size of the gaps)"
            yield Inequality(says, np.abs(duel.gaps).mean(), np.abs(linear.gaps).mean())


@dataclass(frozen=True, kw_only=True)
class LambdaRankOnWeb(
    Duels, name="lambdarank-web", full={"features": 367, "queries": (10_000, 5_000, 10_000), "rates": DENSE, "epochs": 300}
):
    """On ``queries`` queries for training, validation and test (section 6.4), where

    | nDCG@10 of LambdaRank with linear nets - nDCG@10 of RankNet with two layers | < 1/100                 (2)
    """

    documents: int = 26
    queries: Sizes = (3_000, 1_500, 3_000)

    @cached_property
    def sets(self) -> Sets:
        return [("as web search", [self._fold(self.queries, mixed=True)])]

    def checks(self, duels: Sequence[Duel]) -> Iterator[Inequality]:
        yield from (duel.ahead() for duel in duels)
        linear, two_layers = duels
        apart = abs(linear.means[0, -1] - two_layers.means[1, -1])
        yield Inequality(f"linear LambdaRank is level with two-layer RankNet (nDCG@10, difference < {NEAR:g})", apart, NEAR)


@dataclass(frozen=True, kw_only=True)
class LambdaFunctions(
    WithNets, name="lambda-functions", full={"features": 367, "queries": (10_000, 5_000, 10_000), "rates": DENSE, "epochs": 300}
):
    """LambdaRank with each lambda function, on data like that of web search (section 6.2)."""

    documents: int = 26
    queries: Sizes = (2_000, 1_000, 2_000)
    rates: tuple[float, ...] = (1e-3, 1e-2)
    epochs: int = 20

    def _pieces(self, tell: Tell) -> Iterator[Piece]:
        fold = self._fold(self.queries, mixed=True)
        rankers = {name: self._net(LambdaRank, fold, tell, **settings) for name, settings in FUNCTIONS.items()}
        means = {name: [ranker.score(part) for part in (fold.train, fold.valid, fold.test)] for name, ranker in rankers.items()}
        for name in list(FUNCTIONS)[1:]:
            yield Inequality(f"{CHOSEN} is above {name} (nDCG@10, validation data)", means[name][1], means[CHOSEN][1])
        order = sorted(means, key=lambda name: -means[name][1])
        yield "On validation data, from the best to the worst: " + ", ".join(f"{name} {means[name][1]:.4f}" for name in order) + "."
        parts = ("training", "validation", "test")
        yield Table("nDCG@10, linear nets", ("lambda function", *parts), [[name, *means[name]] for name in order])
        yield Panel("linear nets", "training (1), validation (2) and test data (3)", "nDCG@10", curves(means, (1.0, 2.0, 3.0)))
