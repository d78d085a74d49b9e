"""The speed-up of RankNet by summing gradients before backpropagation (Burges, Ragno & Le 2006, section 6.1).

With P pairs among the n documents of a query,

    V1   dC/dw = sum over pairs of  dC/ds_i ds_i/dw + dC/ds_j ds_j/dw        2 P passes through the net         (1)
    V2   dC/dw = sum over documents of  lambda_i ds_i/dw                     n passes, after P cheap sums       (2)

Both update the weights once per query, and reach the same weights. The time T of an epoch, the best of several on one thread, goes as
T ~ n^slope on a fixed number of queries, with a slope near 2 for V1 and near 1 for V2, as long as the sums of (2) cost little (the right of
their figure). The left follows both over some epochs, by the largest nDCG on validation data so far.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from exactrank._support.numerics import dot, log
from exactrank._support.tables import Table
from exactrank.data.dataset import Part
from exactrank.data.ranking_data import RankingData
from exactrank.learning.objectives.lambdas import Lambdas
from exactrank.learning.objectives.measured import Measured
from exactrank.learning.objectives.parametric import Numbers, Parametric
from exactrank.learning.optimizers.base import Theta
from exactrank.measures.parse import parse_measure
from exactrank.models.architecture import form_of
from exactrank.reproduce.experiment import Experiment, Piece, Tell, net
from exactrank.reproduce.finding import Curve, Inequality, Panel, curves

V1, V2 = "V1, by pairs", "V2, by documents"
BETWEEN = 1.5  #: a slope below this is nearer to 1 than to 2
CLIMBED = "nDCG@10"
AGREE = 1e-6  #: how far apart parameters may be, relative to how far they moved


class RankNetTraining(Parametric):
    """RankNet's cost of a net, and both ways to pass over it."""

    def pass_over_pairs(self, theta: Theta, order: Numbers, rate: float) -> Theta:
        """`pass_over` as RankNet was first trained, pair by pair (V1)."""
        data = self.data.gather()
        native, pairs = self.architecture.native, self._sum.on(Part(data))
        return native.pass_over_pairs(np.ascontiguousarray(theta), *pairs, data.y, order, rate, self.l2)


@dataclass(frozen=True)
class EpochTimes:
    """An epoch of V1 and of V2 on the same data."""

    net: str
    documents: int  #: per query
    v1: float  #: seconds
    v2: float
    apart: float  #: the largest difference between the parameters that they reached, relative to the first's largest move

    @property
    def speedup(self) -> float:
        """V1's time divided by V2's."""
        return self.v1 / self.v2


@dataclass(frozen=True, kw_only=True)
class RankNetSpeedup(Experiment, name="ranknet-speedup", full={"queries": 1_000, "lists": (4, 8, 16, 32, 64, 128, 256, 512)}):
    """Epochs on ``queries`` queries, with ``documents`` documents each, and with each of the numbers in ``lists``."""

    queries: int = 100
    lists: tuple[int, ...] = (4, 8, 16, 32, 64, 128, 256)  #: documents per query, for the slopes
    hidden: tuple[int | None, ...] = (None, 10)
    rate: float = 1e-5
    repeats: int = 5
    epochs: int = 10  #: of the climbs
    climbing: float = 1e-3  #: their learning rate
    patience: float = 1.0  #: seconds after which an epoch is not timed again

    def _pieces(self, tell: Tell) -> Iterator[Piece]:
        sizes = sorted({*self.lists, self.documents})
        sets = {size: self._source(documents=size).data(self.queries) for size in sizes}
        typical, all_rows = [], []
        for hidden in self.hidden:
            kind, timed = net(hidden), [self._epochs(hidden, data, tell) for data in sets.values()]
            usual = next(epochs for epochs in timed if epochs.documents == self.documents)
            slopes = slopes_of([epochs for epochs in timed if epochs.documents in self.lists])
            rows = [(kind, e.documents, 1e3 * e.v1, 1e3 * e.v2, e.speedup) for e in timed]
            all_rows += rows
            typical.append((*rows[timed.index(usual)], *slopes))
            yield from checks_of(usual, slopes)
            yield (
                f"With {kind} and {usual.documents} documents per query, V2 is {usual.speedup:.1f} times as fast as V1;"
                f" the slopes are {slopes[0]:.2f} for V1 and {slopes[1]:.2f} for V2."
            )
            series = curves({V1: [e.v1 for e in timed], V2: [e.v2 for e in timed]}, [float(e.documents) for e in timed])
            yield Panel(kind, "documents per query", "seconds per epoch", series, log="xy")
        measured = ("net", "documents per query", "V1, ms", "V2, ms", "V1 / V2", "slope of V1", "slope of V2")
        yield Table("Speed-up and slopes", measured, typical)
        yield Table("Milliseconds per epoch", ("net", "documents per query", "V1", "V2", "V1 / V2"), all_rows)
        yield from (self._climb(hidden, sets[self.documents], tell) for hidden in self.hidden)

    def _epochs(self, hidden: int | None, data: RankingData, tell: Tell) -> EpochTimes:
        kind, documents = net(hidden), data.n_documents // data.n_queries
        tell(f"{kind}, {documents} documents per query")
        problem = RankNetTraining(Lambdas(), form_of(hidden).on(data), data, threads=1)
        rng = np.random.default_rng(self.seed)
        theta, order = problem.architecture.initial(rng), rng.permutation(data.n_queries)
        v1, slow = self._time(lambda: problem.pass_over_pairs(theta, order, self.rate))
        v2, fast = self._time(lambda: problem.pass_over(theta, order, self.rate))
        moved = float(np.abs(slow - theta).max())
        return EpochTimes(kind, documents, v1, v2, float(np.abs(slow - fast).max()) / (moved or 1.0))

    def _climb(self, hidden: int | None, data: RankingData, tell: Tell) -> Panel:
        """nDCG@10 on the same number of validation queries, against the training time."""
        problem = RankNetTraining(Lambdas(), form_of(hidden).on(data), data, threads=1)
        valid = self._source().data(self.queries, self.queries + 1)
        value = Measured(parse_measure(CLIMBED).over(valid, threads=1), problem.architecture).value
        tell(f"{net(hidden)}, {self.epochs} epochs")
        climbs = []
        for label, step in ((V1, problem.pass_over_pairs), (V2, problem.pass_over)):
            rng = np.random.default_rng(self.seed)
            theta, seconds = problem.architecture.initial(rng), [0.0]
            best = [value(theta)]
            for _ in range(self.epochs):
                order, start = rng.permutation(data.n_queries), time.perf_counter()
                theta = step(theta, order, self.climbing)
                seconds.append(seconds[-1] + time.perf_counter() - start)
                best.append(max(best[-1], value(theta)))
            climbs.append(Curve(label, seconds, best))
        return Panel(f"{net(hidden)}, one point per epoch", "seconds of training", f"largest {CLIMBED} so far, validation data", climbs)

    def _time(self, epoch: Callable[[], Theta]) -> tuple[float, Theta]:
        """Seconds of the fastest of several epochs, and the parameters they reach."""
        best, spent = np.inf, 0.0
        for _ in range(self.repeats):
            start = time.perf_counter()
            theta = epoch()
            duration = time.perf_counter() - start
            best, spent = min(best, duration), spent + duration
            if spent > self.patience:
                break
        return best, theta


def slopes_of(timed: Sequence[EpochTimes]) -> tuple[float, float]:
    """Return the slopes of log T against log n, by least squares, for V1 and V2."""
    n = log([epochs.documents for epochs in timed])
    away = n - n.mean()
    v1, v2 = (dot(away, log(seconds)) / dot(away, away) for seconds in zip(*((e.v1, e.v2) for e in timed), strict=True))
    return v1, v2


def checks_of(typical: EpochTimes, slopes: tuple[float, float]) -> tuple[Inequality, ...]:
    """Return what was published, for one kind of net."""
    kind, (v1, v2) = typical.net, slopes
    return (
        Inequality(f"{kind}: V2 is faster (1 < speed-up)", 1.0, typical.speedup),
        Inequality(f"{kind}: the slope of V1 is near 2 ({BETWEEN} < slope)", BETWEEN, v1),
        Inequality(f"{kind}: the slope of V2 is well below (slope < {BETWEEN})", v2, BETWEEN),
        Inequality(f"{kind}: both reach the same parameters (relative difference < {AGREE:g})", typical.apart, AGREE),
    )
