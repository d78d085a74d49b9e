"""The convex bound and the ramp where perfect rankings are out of reach (Chapelle, Le & Smola 2007, sections 3 to 5).

    J(w) = l2/2 |w|^2 + mean over queries of xi,    xi = max_y [delta(y) + w.psi(y)] - w.psi(y*)               (1)
    ramp = max_y [delta(y) + w.psi(y)] - max_y w.psi(y)  <=  xi                                                 (2)

On Ohsumed, with 3 grades and long lists of mostly bad documents, the least J is at w = 0 "even for very small values of l2". A
solver that closes its gap proves it: no weights have a J below its dual bound,

    dual <= J(w) for all w,    so dual = J(0) says that w = 0 is best                                           (3)

(2), started at each strength from regression on the grades with a penalty on the distance from it, is their remedy, beside which is our
default, where each strength goes on from the one before. Here it is artificial data of the same size, without and with noise.

The solvers of (1) are timed by

    gap = (J(w) - dual) / J(w)                                                                                  (4)

Cutting planes for each query, a bundle of planes for all, and steepest subgradients, to which conjugate ones are added: each is
timed until its gap is 1/1000, for NDCG_10 with A(r) = max(11 - r, 0), on one thread, at several strengths l2.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from exactrank._support.arrays import PerDocument
from exactrank._support.numerics import power
from exactrank._support.tables import Cell, Table
from exactrank.data.folds import Fold
from exactrank.data.ranking_data import RankingData
from exactrank.learning.objectives.structured import Bound, Structured, separate
from exactrank.learning.optimizers.base import Duality
from exactrank.learning.training.progress import Progress
from exactrank.measures import NDCG
from exactrank.measures.evaluate import measure_scores
from exactrank.rankers.base import Ranker
from exactrank.rankers.rankboost import RankBoost
from exactrank.rankers.ranksvm import RankSVM
from exactrank.rankers.structuredrank import Solver, StructuredRank
from exactrank.reproduce.artificial import five_splits, mix_features
from exactrank.reproduce.experiment import Experiment, OnFolds, Piece, Tell, Values, fit_ranker, query_values, signed_rank
from exactrank.reproduce.finding import Curve, Inequality, Panel, curves
from exactrank.reproduce.structured_ndcg import regression

MEASURE = NDCG(k=10)
BOUNDS: tuple[Bound, ...] = ("convex", "ramp")
NEAR = 1e-3  #: where the convex bound has collapsed, the smallest J is below J(0) by less than this, relatively
OURS, RIVALS = "ramp", ("convex", "regression", "RankSVM", "RankBoost")
PATH = "ramp, ours"
METHODS = (OURS, *RIVALS, PATH)
FACTORS = tuple(power(10, np.arange(-8, 5) / 4).tolist())  #: of the ramp's weights, in the figure
GAP = 1e-3
AGREE = 1e-3  #: how far apart the values that solvers reach may be, relatively
MINUTES = 15.0  #: that the paper's solvers took
LEAST = 1e-6  #: the smallest gap that is drawn


@dataclass(frozen=True, eq=False)
class Bounds:
    """The results of all splits of one kind of data."""

    name: str
    strengths: tuple[float, ...]
    nothing: Values  #: J(0) on training data, one per split
    duals: Values  #: (3), one row per split, one column per l2
    values: Mapping[str, Values]  #: by method: nDCG@k of all test queries, one row per k
    losses: Values  #: mean on training data, at each of `FACTORS` times the ramp's weights: xi, the ramp, and what they bound

    @property
    def shares(self) -> Values:
        """dual / J(0), one row per split, one column per l2."""
        return np.asarray(self.duals / self.nothing[:, None])

    def mean(self, method: str, k: int = 10) -> float:
        """nDCG@k on test data."""
        return float(self.values[method][k - 1].mean())

    @property
    def at_ramp(self) -> list[float]:
        """The mean losses at the ramp's weights."""
        return [float(loss) for loss in self.losses[:, FACTORS.index(1.0)]]

    def checks(self) -> Iterator[Inequality]:
        """Yield that the convex bound has collapsed, and the ramp is the remedy."""
        collapsed = f"with l2 = {self.strengths[-1]:g} no weights are better than 0 for the convex bound (dual / J(0), worst split)"
        yield Inequality(f"{self.name}: {collapsed}", 1 - NEAR, self.shares[:, -1].min())
        for rival in RIVALS:
            yield Inequality(f"{self.name}: the ramp is above {rival} (nDCG@10, test data)", self.mean(rival), self.mean(OURS))
        convex, ramp, _ = self.at_ramp
        yield Inequality(f"{self.name}: the ramp is below the convex bound (training data, at the ramp's weights)", ramp, convex)

    def p(self, method: str) -> str:
        """The p-value of the signed-rank test by nDCG@10 where the ramp is better than another method."""
        return "" if method == OURS else f"{signed_rank(self.values[OURS][-1], self.values[method][-1]):.2g}"

    def describe(self) -> Iterator[Piece]:
        """Yield a sentence, test data by k, and training data along the ramp's weights."""
        means = ", ".join(f"{self.mean(method):.4f} ({method})" for method in METHODS)
        least = self.shares[:, -1].min()
        yield f"{self.name}: with l2 = {self.strengths[-1]:g} no J is below {least:.4f} J(0); nDCG@10 is {means}."
        by_k = curves({method: self.values[method].mean(axis=1) for method in METHODS})
        yield Panel(f"{self.name}, test data", "k", "nDCG@k", by_k)
        along = curves(dict(zip(("the convex bound", "the ramp", "lost nDCG@10"), self.losses, strict=True)), FACTORS)
        yield Panel(f"{self.name}, training data", "times the ramp's weights", "mean loss of a query", along, log="xy", mark=1.0)


@dataclass(frozen=True, kw_only=True)
class StructuredBounds(OnFolds, name="structured-bounds", full={"sets": 10}):
    """``sets`` sets of ``queries`` queries with each kind of ``noises``, in five splits each; or the folds in ``data``."""

    features: int = 25
    documents: int = 150
    queries: int = 106
    sets: int = 1
    noises: tuple[float, ...] = (0.0, 1.0)
    strengths: tuple[float, ...] = (1.0, 1e-3)

    def _pieces(self, tell: Tell) -> Iterator[Piece]:
        kinds = [(name, folds) for name, folds in self.folders]
        for noise in () if self.data else self.noises:
            seeds = range(self.seed * self.sets, (self.seed + 1) * self.sets)
            sets = [mix_features(self._source(grades=3, noise=noise, seed=seed).data(self.queries), seed) for seed in seeds]
            kinds.append((f"noise {noise:g}", [fold for data in sets for fold in five_splits(data, self.seed)]))
        results: list[Bounds] = []
        for name, folds in kinds:
            splits = []
            for number, fold in enumerate(folds, 1):
                tell(f"{name}, split {number} of {len(folds)}")
                splits.append(self._split(fold))
            nothing, duals, values, losses = zip(*splits, strict=True)
            pooled = {method: np.concatenate([each[method] for each in values], axis=1) for method in METHODS}
            results.append(Bounds(name, self.strengths, np.array(nothing), np.array(duals), pooled, np.mean(losses, axis=0)))
            yield from results[-1].checks()
            yield from results[-1].describe()
        columns = ("data", "l2", "J(0)", "dual / J(0)", "worst split", f"splits above {1 - NEAR:g}")
        rows = [
            (kind.name, f"{l2:g}", kind.nothing.mean(), each.mean(), each.min(), f"{np.sum(each > 1 - NEAR)} of {len(each)}")
            for kind in results
            for l2, each in zip(self.strengths, kind.shares.T, strict=True)
        ]
        yield Table("The convex problem, mean over splits", columns, rows)
        tested: list[list[Cell]] = [
            [kind.name, method, *(kind.mean(method, k) for k in (1, 3, 5, 10)), kind.p(method)] for kind in results for method in METHODS
        ]
        yield Table("Test data", ("data", "method", "nDCG@1", "nDCG@3", "nDCG@5", "nDCG@10", "p, the ramp better at 10"), tested)
        bounds = ("data", "convex bound", "ramp", "lost nDCG@10")
        yield Table("Training data, at the ramp's weights", bounds, [[kind.name, *kind.at_ramp] for kind in results])

    def _split(self, fold: Fold) -> tuple[float, list[float], dict[str, Values], Values]:
        """J(0), (3) of each l2, nDCG@k of the test queries by method, and what is lost at each of `FACTORS` times the ramp's weights."""
        settings: dict[str, Any] = {"measure": MEASURE, "seed": self.seed, "threads": self.threads}
        trained: dict[str, Ranker] = {PATH: StructuredRank(bound="ramp", **settings), "convex": StructuredRank(bound="convex", **settings)}
        trained[OURS] = StructuredRank(bound="ramp", ramp="published", **settings)
        trained |= {"RankSVM": RankSVM(loss="hinge", **settings), "RankBoost": RankBoost(**settings)}
        for ranker in trained.values():
            fit_ranker(ranker, fold.train, fold.valid)
        trained["regression"] = regression(str(MEASURE), fold, plain=True)
        duals = []
        for l2 in self.strengths:
            reached = fit_ranker(StructuredRank(bound="convex", l2=l2, tolerance=NEAR / 10, **settings), fold.train).history_[-1].duality
            duals.append(-np.inf if reached is None else reached.dual)
        scores = trained[OURS].predict(fold.train)
        nothing, *_ = self._losses(fold.train, 0 * scores)
        losses = np.transpose([self._losses(fold.train, factor * scores) for factor in FACTORS])
        return nothing, duals, {method: query_values(ranker, fold.test) for method, ranker in trained.items()}, losses

    def _losses(self, train: RankingData, scores: PerDocument) -> tuple[float, float, float]:
        """xi, the ramp, and what they bound."""
        convex, ramp = (separate(train, scores, Structured(MEASURE, bound=bound, seed=self.seed), self.threads).losses for bound in BOUNDS)
        perfect = train.ungroup(train.y)
        reached, best = (measure_scores(train, s, MEASURE, threads=self.threads).means[str(MEASURE)] for s in (scores, perfect))
        return float(convex.mean()), float(ramp.mean()), best - reached


@dataclass(frozen=True)
class Solved:
    """The steps by which one solver closes the gap."""

    solver: str
    l2: float
    seconds: tuple[float, ...]  #: when each step was made
    dualities: tuple[Duality, ...]  #: what was known then

    @property
    def time(self) -> float:
        """The seconds of all steps."""
        return self.seconds[-1]

    @property
    def end(self) -> Duality:
        """The duality after the last step."""
        return self.dualities[-1]


@dataclass(frozen=True, kw_only=True)
class StructuredTimes(Experiment, name="structured-times", full={"features": 300}):
    """The times of each solver at each of ``strengths``; the best of ``repeats``."""

    documents: int = 33
    queries: int = 1_500
    strengths: tuple[float, ...] = (1_000.0, 10.0, 0.1)
    repeats: int = 3
    threads: int | None = 1

    def _pieces(self, tell: Tell) -> Iterator[Piece]:
        data = mix_features(self._source().data(self.queries), self.seed)
        solutions: list[Solved] = []
        for l2 in self.strengths:
            solved = []
            for solver in get_args(Solver):
                tell(f"l2 = {l2:g}, {solver}")
                solved.append(min((self._once(data, solver, l2) for _ in range(self.repeats)), key=lambda solution: solution.time))
            series = [Curve(one.solver, one.seconds, [max(each.gap, LEAST) for each in one.dualities]) for one in solved]
            yield Panel(f"l2 = {l2:g}", "seconds", "gap", series, log="y")
            solutions += solved
        for solver in get_args(Solver):
            yield from arrives([one for one in solutions if one.solver == solver])
        yield from (agree([one for one in solutions if one.l2 == l2]) for l2 in self.strengths)
        slowest = max(solutions, key=lambda solution: solution.time)
        yield f"The slowest, {slowest.solver} with l2 = {slowest.l2:g}, takes {slowest.time:.2g} s."
        rows: list[list[Cell]] = [
            [f"{one.l2:g}", one.solver, one.time, len(one.seconds) - 1, one.end.primal, one.end.gap] for one in solutions
        ]
        yield Table(f"Training to a gap of {GAP:g}", ("l2", "solver", "seconds", "steps", "J", "gap"), rows)

    def _once(self, data: RankingData, solver: Solver, l2: float) -> Solved:
        seconds, dualities = list[float](), list[Duality]()

        def listen(progress: Progress) -> None:
            if progress.duality is not None:
                seconds.append(time.perf_counter() - start)
                dualities.append(progress.duality)

        ranker = StructuredRank(bound="convex", solver=solver, l2=l2, tolerance=GAP, seed=self.seed, threads=self.threads)
        start = time.perf_counter()
        fit_ranker(ranker, data, progress=listen)
        return Solved(solver, l2, tuple(seconds), tuple(dualities))


def arrives(solved: Sequence[Solved]) -> list[Inequality]:
    """Return that a solver reaches the gap with every l2, and in less time than theirs."""
    solver, gap, seconds = solved[0].solver, max(one.end.gap for one in solved), max(one.time for one in solved)
    return [
        Inequality(f"{solver}: reaches the gap with every l2 (largest gap < {GAP:g})", gap, GAP),
        Inequality(f"{solver}: takes less than {MINUTES:g} minutes with every l2 (most seconds)", seconds, 60 * MINUTES),
    ]


def agree(solved: Sequence[Solved]) -> Inequality:
    """Return that all solvers reached the same J."""
    values = [one.end.primal for one in solved]
    says = f"l2 = {solved[0].l2:g}: all reach the same J (largest / smallest - 1 < {AGREE:g})"
    return Inequality(says, max(values) / min(values) - 1, AGREE)
