"""How long the solvers of structured NDCG take (Chapelle, Le & Smola 2007, sections 3 and 5.1).

    J(w) = l2/2 |w|^2 + mean over queries of xi                                                                (1)
    gap = (J(w) - dual) / J(w),    dual <= the least J                                                          (2)

Cutting planes for each query, a bundle of planes for all, and steepest subgradients, to which conjugate ones are added: each is
timed until its gap is 1/1000, for NDCG_10 with A(r) = max(11 - r, 0), on one thread, at some strengths l2. Their set had about
1,500 queries, 50,000 documents and several hundred features, and each of the three took about 15 minutes. The time of the fastest
of several trainings is taken.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from exactrank.data.ranking_data import RankingData
from exactrank.optimizers.base import Duality
from exactrank.rankers.structuredrank import Solver, StructuredRank
from exactrank.reproduce.artificial import correlated
from exactrank.reproduce.chosen import fitted
from exactrank.reproduce.experiment import Experiment, Tell, silent
from exactrank.reproduce.finding import Check, Finding
from exactrank.reproduce.panels import Curve, Panel
from exactrank.table import Cell, Table
from exactrank.training.progress import Progress

GAP = 1e-3
AGREE = 1e-3  #: how far apart the values that solvers come to may be, relatively
MINUTES = 15.0  #: that it took them
LEAST = 1e-6  #: no gap is drawn smaller


@dataclass(frozen=True)
class Solved:
    """One solver's way to the gap."""

    solver: str
    l2: float
    seconds: tuple[float, ...]  #: when each step was made
    dualities: tuple[Duality, ...]  #: what was known then

    @property
    def taken(self) -> float:
        """Seconds in all."""
        return self.seconds[-1]

    @property
    def reached(self) -> Duality:
        """What it came to."""
        return self.dualities[-1]

    def curve(self) -> Curve:
        """The gap against time."""
        return Curve(self.solver, self.seconds, tuple(max(each.gap, LEAST) for each in self.dualities))


@dataclass(frozen=True, kw_only=True)
class StructuredTimes(Experiment, full={"features": 300}):
    """Each solver at each of ``strengths``, ``repeats`` times."""

    paper = "Chapelle, Le & Smola 2007"
    where = "section 5.1"
    published = (
        "Cutting planes, subgradients and a bundle all train in the order of 15 minutes. That is with 1,500 queries and 50,000 documents."
    )

    documents: int = 33
    queries: int = 1_500
    strengths: tuple[float, ...] = (1_000.0, 10.0, 0.1)
    repeats: int = 3
    threads: int | None = 1

    @property
    def stages(self) -> int:
        return len(self.strengths) * len(get_args(Solver))

    def run(self, tell: Tell = silent) -> Finding:
        data = correlated(self._source().data(self.queries), self.seed)
        by_l2 = {l2: [self._solved(data, solver, l2, tell) for solver in get_args(Solver)] for l2 in self.strengths}
        every = [one for solved in by_l2.values() for one in solved]
        checks = [*map(arrives, zip(*by_l2.values(), strict=True)), map(agree, by_l2.values())]
        slowest = max(every, key=lambda one: one.taken)
        found = f"The slowest, {slowest.solver} with l2 = {slowest.l2:g}, takes {slowest.taken:.2g} s."
        return self._finding(found, checks, [_table(every)], [_panel(solved) for solved in by_l2.values()])

    def _solved(self, data: RankingData, solver: Solver, l2: float, tell: Tell) -> Solved:
        tell(f"l2 = {l2:g}, {solver}")
        return min((self._once(data, solver, l2) for _ in range(self.repeats)), key=lambda one: one.taken)

    def _once(self, data: RankingData, solver: Solver, l2: float) -> Solved:
        seconds, dualities = list[float](), list[Duality]()

        def heard(progress: Progress) -> None:
            if progress.duality is not None:
                seconds.append(time.perf_counter() - start)
                dualities.append(progress.duality)

        ranker = StructuredRank(bound="convex", solver=solver, l2=l2, tolerance=GAP, seed=self.seed, threads=self.threads)
        start = time.perf_counter()
        fitted(ranker, data, listener=heard)
        return Solved(solver, l2, tuple(seconds), tuple(dualities))


def arrives(solved: Sequence[Solved]) -> list[Check]:
    """Whether a solver comes to the gap with every l2, and in less time than theirs."""
    solver, gap, taken = solved[0].solver, max(one.reached.gap for one in solved), max(one.taken for one in solved)
    return [
        Check(f"{solver}: comes to the gap with every l2 (largest gap < {GAP:g})", gap, GAP),
        Check(f"{solver}: takes less than {MINUTES:g} minutes with every l2 (most seconds)", taken, 60 * MINUTES),
    ]


def agree(solved: Sequence[Solved]) -> Check:
    """Whether all solvers came to the same J."""
    values = [one.reached.primal for one in solved]
    says = f"l2 = {solved[0].l2:g}: all come to the same J (largest / least - 1 < {AGREE:g})"
    return Check(says, max(values) / min(values) - 1, AGREE)


def _table(every: Sequence[Solved]) -> Table:
    rows: list[list[Cell]] = [
        [f"{one.l2:g}", one.solver, one.taken, len(one.seconds) - 1, one.reached.primal, one.reached.gap] for one in every
    ]
    return Table(f"Training to a gap of {GAP:g}", ("l2", "solver", "seconds", "steps", "J", "gap"), rows)


def _panel(solved: Sequence[Solved]) -> Panel:
    return Panel(f"l2 = {solved[0].l2:g}", "seconds", "gap", tuple(one.curve() for one in solved), log="y")
