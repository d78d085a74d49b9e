"""SPSA against FDSA on the pairwise cross-entropy, and against LambdaRank and RankNet (Yue & Burges 2007, Figure 1 and Table 1).

SPSA and FDSA follow gradients estimated from values. In d dimensions FDSA needs 2 d values per step and has the gradient; SPSA:F needs
F values and has a rough estimate. The function is RankNet's cost per pair, of a linear net: smooth, so that the methods differ only in the
number of values. Which is better at equal numbers of values depends on the Hessian H: steps along the
gradient itself must stay below a size of 1 / (largest eigenvalue of H), those along estimates of it below 1 / (trace of H), so

    values that FDSA needs / values that SPSA needs  ~  d (largest eigenvalue of H) / (trace of H)              (1)

(1) is 1 where all directions curve equally, and d where a single one curves. Their 367 features from the web are correlated, and they
found SPSA far ahead. Here features are mixed (`artificial.mix_features`), for which (1) is about 9, and independent for comparison:

    SPSA:F after half of the values < FDSA after all of them                                                    (2)

As in the paper, a0 is chosen by the best convergence, separately for each method, and values spent on that do not count. The gradient
itself replaces FDSA's differences, which give the same, and counts as the 2 d values that these need.

In the table, for linear nets, SPSA ascends nDCG@10 itself, by gradients estimated from four of its values; RankNet and LambdaRank follow
gradients of their own. Learning rates, and multiples of the a0 and c0 that the optimizer would choose, are chosen on validation data.

The more queries, the smoother is nDCG, and the better are estimates of its gradient. So the paper expects "in the foreseeable future,
having enough data to make methods such as SPSA effective": with n training queries,

    gap_n = nDCG@10 of LambdaRank - nDCG@10 of SPSA:4, on test data, falls with n                               (3)
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from exactrank._support.numerics import log, power
from exactrank._support.tables import Cell, Table
from exactrank.data.folds import Fold
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError
from exactrank.learning.objectives.lambdas import Lambdas
from exactrank.learning.objectives.measured import Measured
from exactrank.learning.objectives.parametric import Parametric
from exactrank.learning.optimizers.approximation import FDSA, SPSA, StochasticApproximation
from exactrank.learning.optimizers.base import Theta
from exactrank.models.architecture import LinearModel
from exactrank.rankers.base import Ranker
from exactrank.rankers.lambdarank import LambdaRank
from exactrank.rankers.spsarank import SPSARank
from exactrank.reproduce.artificial import PermutedPolynomial, Sizes, mix_features
from exactrank.reproduce.experiment import NETS_MEASURES, Experiment, Piece, Tell, Values, WithNets, choose_best
from exactrank.reproduce.finding import Curve, Inequality, Panel, curves
from exactrank.reproduce.lambdarank_duels import RIVALS

SPSA_4, AUTOMATIC, ESTIMATES = "SPSA:4", "SPSA:4, automatic gains", 4  #: and how many values one step takes
LEVEL = 0.02  #: how far apart, relatively, the costs of SPSA:2, SPSA:4 and SPSA:8 may end
METHODS: Mapping[str, StochasticApproximation] = {"SPSA:2": SPSA(2), SPSA_4: SPSA(4), "SPSA:8": SPSA(8), "FDSA": FDSA()}
PARTS = (16, 8, 4, 2, 1)  #: the table shows the cost after the budget divided by each
POINTS = 200  #: of a curve in the figure
#: Table 1: by ranker, on training, validation and test data.
PUBLISHED = {"LambdaRank": (0.721, 0.713, 0.707), "RankNet": (0.715, 0.709, 0.699), SPSA_4: (0.690, 0.682, 0.677)}


@dataclass(frozen=True, eq=False)
class Descent:
    """The mean cost of a method over its runs."""

    a0: float
    costs: Values  #: after 1, 2, 3 ... values

    def after(self, evaluations: int) -> float:
        """The cost after this number of values."""
        return float(self.costs[evaluations - 1])

    def until(self, cost: float) -> float:
        """The number of values after which the cost is this low; infinite if it never is."""
        low = np.flatnonzero(self.costs <= cost)
        return float(low[0]) + 1 if len(low) else np.inf


class CrossEntropy(Parametric):
    """RankNet's cost, whose gradient replaces finite differences."""

    def differences(self, theta: Theta, c: float) -> Theta:
        """f(theta + c e_i) - f(theta - c e_i) for every coordinate i."""
        return np.asarray(2 * c * self.value_and_slope(theta)[1])


WEB = {"features": 367, "queries": 10_000}  #: with 26 documents per query


@dataclass(frozen=True, kw_only=True)
class SPSAConvergence(Experiment, name="spsa-convergence", full=WEB | {"evaluations": 5_000, "runs": 10}):
    """``runs`` of each method from different starts, until ``evaluations`` values have been used."""

    polynomial = PermutedPolynomial

    documents: int = 26
    queries: int = 100
    evaluations: int = 2_000
    runs: int = 3
    factors: tuple[float, ...] = (1, 2, 4, 8)  #: of the a0 that the optimizer would choose

    def __post_init__(self) -> None:
        if self.evaluations < PARTS[0]:
            raise DataError(f"evaluations must be at least {PARTS[0]}, got {self.evaluations}")

    def _pieces(self, tell: Tell) -> Iterator[Piece]:
        independent = self._source().data(self.queries)
        marks = [self.evaluations // part for part in PARTS]
        at = np.unique(power(self.evaluations, np.linspace(0, 1, POINTS)).round()).astype(int)
        for kind, data in (("correlated features", mix_features(independent, self.seed)), ("independent features", independent)):
            descents = self._descents(data, tell)
            costs = ", ".join(f"{descent.after(self.evaluations // 4):.4f} ({name})" for name, descent in descents.items())
            yield f"With {kind}: after {self.evaluations // 4:,} values the cost is {costs}."
            end, half = descents["FDSA"].after(self.evaluations), self.evaluations // 2
            rows: list[list[Cell]] = []
            for name, descent in descents.items():
                if name != "FDSA" and data is not independent:
                    says = f"{kind}: {name} after {half:,} values is below FDSA after {self.evaluations:,}"
                    yield Inequality(says, descent.after(half), end)
                needed = descent.until(end)
                count = f"{needed:,.0f}" if np.isfinite(needed) else f"more than {self.evaluations:,}"
                rows.append([name, descent.a0, *(descent.after(mark) for mark in marks), count])
            ends = [descent.after(self.evaluations) for name, descent in descents.items() if name != "FDSA"]
            says = f"{kind}: averaging estimates neither helps nor hurts (cost at the end, largest / smallest - 1 < {LEVEL:g})"
            yield Inequality(says, max(ends) / min(ends) - 1, LEVEL)
            columns = ("method", "a0", *(f"after {mark:,} values" for mark in marks), "values to where FDSA ends")
            yield Table(f"Cross-entropy per pair, {kind}", columns, rows)
            series = curves({name: descent.costs[at - 1] for name, descent in descents.items()}, at.tolist())
            yield Panel(kind, "function evaluations", "cross-entropy per pair", series, log="x")

    def _descents(self, data: RankingData, tell: Tell) -> dict[str, Descent]:
        problem = CrossEntropy(Lambdas(), LinearModel().on(data), data, threads=self.threads)
        descents = {}
        for name, method in METHODS.items():
            gains = method.init(problem, *self._start(problem, 0)).gains
            tried = [replace(method, a0=factor * gains.a0, c0=gains.c0) for factor in self.factors]
            tell(f"{name}: {len(tried)} values of a0")
            best = min(tried, key=lambda m: float(self._costs(problem, m, 0).mean()))
            tell(f"{name}: {self.runs} runs with a0 = {best.a0:.3g}")
            runs = [self._costs(problem, best, number) for number in range(self.runs)]
            descents[name] = Descent(best.a0 or gains.a0, np.mean(runs, axis=0))
        return descents

    def _start(self, problem: Parametric, number: int) -> tuple[Values, np.random.Generator]:
        rng = np.random.default_rng([self.seed, number])
        return problem.architecture.initial(rng), rng

    def _costs(self, problem: Parametric, method: StochasticApproximation, number: int) -> Values:
        """Per pair, after 1, 2, 3 ... values; where all scores are equal it is log 2."""
        unit = float(log(2)) / problem.value(np.zeros(problem.architecture.size))
        state = method.init(problem, *self._start(problem, number))
        counts, costs = [state.evaluations], [state.value * unit]
        while not state.is_done and state.evaluations < self.evaluations:
            state = method.step(problem, state)
            counts.append(state.evaluations)
            costs.append(state.value * unit)
        return np.array(costs)[np.searchsorted(counts, np.arange(1, self.evaluations + 1), "right") - 1]


@dataclass(frozen=True, kw_only=True)
class SPSATable(WithNets, name="spsa-table", full=WEB | {"queries": (10_000, 5_000, 10_000), "epochs": 300, "steps": 2_000}):
    """The three rankers; SPSA makes ``steps`` steps, the others as many ``epochs`` as they need."""

    documents: int = 26
    queries: Sizes = (2_000, 1_000, 2_000)
    rates: tuple[float, ...] = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
    epochs: int = 40
    steps: int = 500
    factors: tuple[float, ...] = (0.25, 1.0, 4.0)  #: of the a0 and the c0 that the optimizer would choose

    def _pieces(self, tell: Tell) -> Iterator[Piece]:
        fold = self._fold(self.queries, mixed=True)
        rankers = {kind.__name__: self._net(kind, fold, tell) for kind in RIVALS}
        spsa, automatic = choose_gains(self, fold, tell)
        rankers |= {SPSA_4: spsa, AUTOMATIC: automatic}
        means = {name: [ranker.score(part) for part in (fold.train, fold.valid, fold.test)] for name, ranker in rankers.items()}
        order = sorted(means, key=lambda name: means[name][-1])
        yield "On test data, from the worst to the best: " + ", ".join(f"{name} {means[name][-1]:.4f}" for name in order) + "."
        climb = [(ESTIMATES * progress.step, progress.valid) for progress in spsa.history_ if progress.valid is not None]
        above = [asked for asked, value in climb if value > means["RankNet"][1]]
        when = f"comes above RankNet after {above[0]:,} evaluations" if above else "never comes above RankNet"
        yield f"On validation data {SPSA_4} {when}."
        for worse, better in ((SPSA_4, "RankNet"), ("RankNet", "LambdaRank")):
            yield Inequality(f"{worse} is below {better} on test data", means[worse][-1], means[better][-1])
        parts = ("training", "validation", "test")
        columns = ("method", *parts, *(f"{part}, published" for part in parts))
        yield Table(
            "Table 1: nDCG@10, linear nets", columns, [[name, *means[name], *PUBLISHED.get(name, ("", "", ""))] for name in rankers]
        )
        x = [float(asked) for asked, _ in climb]
        levels = (Curve(name, (x[0], x[-1]), (means[name][1],) * 2) for name in ("RankNet", "LambdaRank"))
        series = [Curve(SPSA_4, tuple(x), [value for _, value in climb]), *levels]
        yield Panel("linear nets, correlated features", "evaluations of nDCG@10 for gradients", "nDCG@10, validation data", series)


def choose_gains(experiment: "SPSATable | SPSAQueries", fold: Fold, tell: Tell) -> tuple[Ranker, Ranker]:
    """Train SPSA:4 with multiples of the gains that it would choose; return the best on validation data, and that with its own gains."""
    measure, seed, threads = NETS_MEASURES[-1], experiment.seed, experiment.threads
    spsa = SPSARank(measure=measure, evaluations=ESTIMATES, max_iter=experiment.steps, seed=seed, threads=threads)
    rng, architecture = np.random.default_rng([seed, 0]), LinearModel().on(fold.train)
    problem = Measured(measure.over(fold.train, threads=threads), architecture)
    gains = SPSA(ESTIMATES).init(problem, architecture.initial(rng), rng).gains
    factors, settings = experiment.factors, spsa.get_params()
    tried = [SPSARank(**settings | {"a0": a * gains.a0, "c0": c * gains.c0}) for a in factors for c in factors]
    return choose_best(tried, fold, tell), choose_best([spsa], fold, tell)


@dataclass(frozen=True, kw_only=True)
class SPSAQueries(WithNets, name="spsa-queries", full={"queries": (1_000, 10_000, 100_000, 1_000_000), "epochs": 60}):
    """The gap between LambdaRank and SPSA:4 with each number of training ``queries``; ``test`` queries, and as many to choose by."""

    documents: int = 26
    queries: tuple[int, ...] = (30, 300, 3_000, 30_000)
    test: int = 3_000
    rates: tuple[float, ...] = (1e-4, 1e-3, 1e-2)
    epochs: int = 10
    steps: int = 500
    factors: tuple[float, ...] = (1.0,)

    def _pieces(self, tell: Tell) -> Iterator[Piece]:
        widest = self._fold((max(self.queries), self.test, self.test), mixed=True)
        values: dict[str, list[float]] = {"LambdaRank": [], SPSA_4: []}
        for queries in self.queries:
            fold = replace(widest, train=widest.train.take_queries(np.arange(queries)))
            spsa, _ = choose_gains(self, fold, tell)
            for name, ranker in (("LambdaRank", self._net(LambdaRank, fold, tell)), (SPSA_4, spsa)):
                values[name].append(ranker.score(fold.test))
        gaps = [lambdarank - spsa for lambdarank, spsa in zip(*values.values(), strict=True)]
        for (fewer, wider), (queries, gap) in pairwise(zip(self.queries, gaps, strict=True)):
            yield Inequality(f"from {fewer:,} to {queries:,} training queries the gap falls (nDCG@10, test data)", gap, wider)
        yield "LambdaRank minus SPSA:4: " + ", ".join(f"{g:+.4f} with {n:,}" for n, g in zip(self.queries, gaps, strict=True)) + " queries."
        rows = list(zip(self.queries, *values.values(), gaps, strict=True))
        yield Table("nDCG@10, test data", ("training queries", *values, "gap"), rows)
        yield Panel("linear nets, correlated features", "training queries", "nDCG@10, test data", curves(values, self.queries), log="x")
