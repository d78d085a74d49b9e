"""The convex bound and the ramp where perfect rankings are out of reach (Chapelle, Le & Smola 2007, sections 4 and 5.3).

    J(w) = l2/2 |w|^2 + mean over queries of xi,    xi = max_y [delta(y) + w.psi(y)] - w.psi(y*)               (1)
    ramp = max_y [delta(y) + w.psi(y)] - max_y w.psi(y)  <=  xi                                                 (2)

On Ohsumed, with 3 grades and long lists of mostly bad documents, the least J is at w = 0 "even for very small values of l2". A
solver that closes its gap proves it: no weights have a J below its dual bound,

    dual <= J(w) for all w,    so dual = J(0) says that w = 0 is best                                           (3)

(2), started from regression on the grades, is their remedy; NDCG_10 is optimised whatever the rank that is looked at. Their set
has 106 queries of about 150 documents, 25 features and five splits into training, validation and test. Here it is artificial data
of this size: without noise, as in the other experiments, and with as much noise in the grades as there is signal.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactrank.arrays import PerDocument
from exactrank.data.folds import Fold
from exactrank.data.ranking_data import RankingData
from exactrank.data.synthetic import CubicPolynomial
from exactrank.measures.dcg import NDCG
from exactrank.measures.evaluate import evaluate
from exactrank.objectives.structured import Bound, Structured, separate
from exactrank.rankers.base import Ranker
from exactrank.rankers.rankboost import RankBoost
from exactrank.rankers.ranksvm import RankSVM
from exactrank.rankers.structuredrank import StructuredRank
from exactrank.reproduce.artificial import SPLITS, correlated, five_splits
from exactrank.reproduce.chosen import chosen, fitted
from exactrank.reproduce.duel import RANKS, Values
from exactrank.reproduce.experiment import OnFolds, Tell, silent
from exactrank.reproduce.finding import Check, Finding
from exactrank.reproduce.panels import Curve, Panel
from exactrank.reproduce.structured_ndcg import by_rank, regression, signed_rank
from exactrank.table import Cell, Table

MEASURE = NDCG(k=10)
GRADES = 3
BOUNDS: tuple[Bound, ...] = ("convex", "ramp")
NEAR = 1e-3  #: so little, relatively, is the least J below J(0) where the convex bound has collapsed
OURS, RIVALS = "ramp", ("convex", "regression", "RankSVM", "RankBoost")
FACTORS = tuple(10 ** (i / 4) for i in range(-8, 5))  #: of the ramp's weights, in the figure


@dataclass(frozen=True, eq=False)
class Split:
    """One split of the data."""

    nothing: float  #: J(0) on training data
    duals: tuple[float, ...]  #: (3), one a l2
    values: Mapping[str, Values]  #: by method: nDCG@k of each test query, a row a k
    losses: Values  #: on training data, at each of `FACTORS` times the ramp's weights: xi, the ramp, and what they bound


@dataclass(frozen=True, eq=False)
class Splits:
    """All splits of one kind of data."""

    name: str
    strengths: tuple[float, ...]
    splits: Sequence[Split]

    def values(self, method: str) -> Values:
        """nDCG@k of all test queries, a row a k."""
        return np.concatenate([split.values[method] for split in self.splits], axis=1)

    def mean(self, method: str, k: int = 10) -> float:
        """nDCG@k on test data."""
        return float(self.values(method)[k - 1].mean())

    def p(self, rival: str) -> float:
        """Of the signed-rank test by nDCG@10, where the ramp is ahead."""
        return signed_rank(self.values(OURS)[-1], self.values(rival)[-1])

    @property
    def losses(self) -> Values:
        """The mean of those of the splits."""
        return np.asarray(np.mean([split.losses for split in self.splits], axis=0))

    @property
    def at_ramp(self) -> list[float]:
        """The mean losses at the ramp's weights."""
        return [float(loss) for loss in self.losses[:, FACTORS.index(1.0)]]

    def shares(self, l2: int) -> Values:
        """dual / J(0) of each split, with the l2 of this number."""
        return np.array([split.duals[l2] / split.nothing for split in self.splits])

    @property
    def least(self) -> float:
        """dual / J(0) with the last l2, on the split where it is least."""
        return float(self.shares(-1).min())

    def checks(self) -> list[Check]:
        """The convex bound has collapsed, and the ramp is the remedy."""
        nothing = (
            f"{self.name}: with l2 = {self.strengths[-1]:g} no weights are better than 0 for the convex bound (dual / J(0), worst split)"
        )
        ahead = f"{self.name}: the ramp is above {{}} (nDCG@10, test data)"
        tighter = f"{self.name}: the ramp is below the convex bound (training data, at the ramp's weights)"
        convex, ramp, _ = self.at_ramp
        better = [Check(ahead.format(rival), self.mean(rival), self.mean(OURS)) for rival in RIVALS]
        return [Check(nothing, 1 - NEAR, self.least), *better, Check(tighter, ramp, convex)]

    def solved(self) -> Iterator[list[Cell]]:
        """Rows: what the convex problem comes to."""
        nothing = float(np.mean([split.nothing for split in self.splits]))
        for number, l2 in enumerate(self.strengths):
            shares = self.shares(number)
            zero = f"{np.sum(shares > 1 - NEAR)} of {len(shares)}"
            yield [self.name, f"{l2:g}", nothing, float(shares.mean()), float(shares.min()), zero]

    def tested(self) -> Iterator[list[Cell]]:
        """Rows: test data."""
        for method in (OURS, *RIVALS):
            p = "" if method == OURS else f"{self.p(method):.2g}"
            yield [self.name, method, *(self.mean(method, k) for k in (1, 3, 5, 10)), p]

    def panels(self) -> list[Panel]:
        """Test data by k, and training data along the ramp's weights."""
        kinds = ("the convex bound", "the ramp", "lost nDCG@10")
        along = tuple(Curve(kind, FACTORS, tuple(loss.tolist())) for kind, loss in zip(kinds, self.losses, strict=True))
        by_k = tuple(Curve(method, RANKS, tuple(self.values(method).mean(axis=1).tolist())) for method in (OURS, *RIVALS))
        return [
            Panel(f"{self.name}, test data", "k", "nDCG@k", by_k),
            Panel(f"{self.name}, training data", "times the ramp's weights", "mean loss of a query", along, log="xy", mark=1.0),
        ]

    def said(self) -> str:
        """In plain words."""
        means = ", ".join(f"{self.mean(method):.4f} ({method})" for method in (OURS, *RIVALS))
        return f"{self.name}: with l2 = {self.strengths[-1]:g} no J is below {self.least:.4f} J(0); nDCG@10 is {means}."


@dataclass(frozen=True, kw_only=True)
class StructuredBounds(OnFolds, full={"sets": 10}):
    """``sets`` sets of ``queries`` queries with each kind of ``noises``, in five splits each; or the folds in ``data``."""

    paper = "Chapelle, Le & Smola 2007"
    where = "Figure 2 (right), and what Figure 1 sketches"
    published = (
        "On Ohsumed the best weights for the convex bound are 0 even for very small l2. The ramp, from regression, gains about 2% of NDCG"
        " on RankBoost and RankSVM, which is not significant with 106 queries."
    )

    features: int = 25
    documents: int = 150
    queries: int = 106
    sets: int = 1
    noises: tuple[float, ...] = (0.0, 1.0)
    strengths: tuple[float, ...] = (1.0, 1e-3)

    @property
    def stages(self) -> int:
        return sum(len(folds) for _, folds in self.given) or len(self.noises) * self.sets * SPLITS

    def run(self, tell: Tell = silent) -> Finding:
        kinds = [self._all(name, folds, tell) for name, folds in self._kinds()]
        said, checks = (kind.said() for kind in kinds), (kind.checks() for kind in kinds)
        return self._finding(said, checks, _tables(kinds), (kind.panels() for kind in kinds))

    def _kinds(self) -> Iterator[tuple[str, list[Fold]]]:
        yield from self.given
        if self.data:
            return
        for noise in self.noises:
            sets = [self._drawn(noise, self.seed * self.sets + number) for number in range(self.sets)]
            yield f"noise {noise:g}", [fold for drawn in sets for fold in five_splits(drawn, self.seed)]

    def _drawn(self, noise: float, seed: int) -> RankingData:
        source = CubicPolynomial(self.features, self.documents, GRADES, noise, seed, self.threads)
        return correlated(source.data(self.queries), seed)

    def _all(self, name: str, folds: Sequence[Fold], tell: Tell) -> Splits:
        splits = []
        for number, fold in enumerate(folds, 1):
            tell(f"{name}, split {number} of {len(folds)}")
            splits.append(self._split(fold))
        return Splits(name, self.strengths, splits)

    def _split(self, fold: Fold) -> Split:
        trained = self._trained(fold)
        duals = tuple(self._dual(fold.train, l2) for l2 in self.strengths)
        scores = trained[OURS].predict(fold.train)
        nothing, *_ = self._losses(fold.train, 0 * scores)
        losses = np.transpose([self._losses(fold.train, factor * scores) for factor in FACTORS])
        return Split(nothing, duals, {method: by_rank(ranker, fold) for method, ranker in trained.items()}, losses)

    def _trained(self, fold: Fold) -> dict[str, Ranker]:
        bounds: dict[str, Ranker] = {bound: chosen([self._structured(bound=bound)], fold, silent) for bound in BOUNDS}
        svm = RankSVM(measure=MEASURE, loss="hinge", seed=self.seed, threads=self.threads)
        boost = RankBoost(measure=MEASURE, seed=self.seed, threads=self.threads)
        others = {"RankSVM": chosen([svm], fold, silent), "RankBoost": chosen([boost], fold, silent)}
        return bounds | {"regression": regression(str(MEASURE), fold)} | others

    def _dual(self, train: RankingData, l2: float) -> float:
        """(3)."""
        solved = fitted(self._structured(bound="convex", l2=l2, tolerance=NEAR / 10), train)
        reached = solved.history_[-1].duality
        return -np.inf if reached is None else reached.dual

    def _structured(self, **settings: Any) -> StructuredRank:
        return StructuredRank(measure=MEASURE, seed=self.seed, threads=self.threads, **settings)

    def _losses(self, train: RankingData, scores: PerDocument) -> tuple[float, float, float]:
        """xi, the ramp, and what they bound."""
        convex, ramp = (separate(Structured(MEASURE, bound=bound, seed=self.seed), train, scores, self.threads).losses for bound in BOUNDS)
        perfect = train.ungrouped(train.y)
        reached, best = (evaluate(MEASURE, train, s, threads=self.threads).means[str(MEASURE)] for s in (scores, perfect))
        return float(convex.mean()), float(ramp.mean()), best - reached


def _tables(kinds: Sequence[Splits]) -> list[Table]:
    solved = ("data", "l2", "J(0)", "dual / J(0)", "worst split", f"splits above {1 - NEAR:g}")
    tested = ("data", "method", "nDCG@1", "nDCG@3", "nDCG@5", "nDCG@10", "p, the ramp ahead of it at 10")
    bounds = ("data", "convex bound", "ramp", "lost nDCG@10")
    return [
        Table("The convex problem, mean over splits", solved, [row for kind in kinds for row in kind.solved()]),
        Table("Test data", tested, [row for kind in kinds for row in kind.tested()]),
        Table("Training data, at the ramp's weights", bounds, [[kind.name, *kind.at_ramp] for kind in kinds]),
    ]
