"""DirectRank: a linear model trained on the measure itself (Tan, Xia, Guo & Wang 2013).

One weight after the other is set to the point where the measure, as an exact step function of that weight, is largest
(`exactrank.optimizers.coordinate`, `exactrank.objectives.linear_profile`).

On little data the largest value is partly luck. So there the model is the mean of several, each trained on a bootstrap
sample of the queries, in a random order of some of the weights, from a convex start:

    w = 1/B sum_b w_b / sd(X w_b)                                                                               (1)

with sd the standard deviation within queries (1 where ``low`` or ``high`` bind the weights' size). A step must not make the
queries that the sample left out worse.

In training ties count pessimistically unless the measure has ``ties='expected'``: a model must not look good because
of a lucky order of the documents that it ties.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import Matrix, PerQuery
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError
from exactrank.measures.base import Measure
from exactrank.measures.bound import BoundMeasure
from exactrank.measures.parse import parse_measure
from exactrank.objectives.likelihood import Point
from exactrank.objectives.linear_profile import LinearProfile, columns_of
from exactrank.objectives.linear_value import LinearValue
from exactrank.objectives.ridge import ridge_weights
from exactrank.objectives.softmax import SoftmaxLikelihood
from exactrank.objectives.within_query import deviation
from exactrank.optimizers.base import Theta
from exactrank.optimizers.coordinate import CoordinateSearch, Limits
from exactrank.optimizers.guarded import Guarded
from exactrank.optimizers.powell import Powell
from exactrank.rankers.base import Ranker
from exactrank.rankers.restarts import best_of
from exactrank.rankers.search_space import Range, Space
from exactrank.scorers.base import Scorer
from exactrank.scorers.missing import Missing
from exactrank.threads import Pool, thread_count
from exactrank.training import Listener, Progress, Trained, train

Start = Literal["auto", "softmax", "regression", "zero", "random"]
#: With as many queries, or more, the mean over bootstrap samples is not worth its time.
MANY_QUERIES = 5000
SOFTMAX_RIDGE = 0.01
SOFTMAX_ITERATIONS = 60


class DirectRank(Ranker):
    """A linear model by exact line search on the measure, one weight at a time (Tan et al. 2013).

    Args:
        bags: Average so many models of bootstrap samples; 0 trains one on all queries. By default 20 below 5,000 queries.
        start: Where to start: the best softmax or ridge regression, no weights, random ones, or (in Python) given ones. By
            default the softmax, and with validation data no weights too, the better of which is kept.
        restarts: Without bags: start so often, the first time as said and then at random; the best model is kept.
        order: Without bags: the order of the weights in a round, or only the best one (bags take random orders).
        directions: Without bags: move one weight at a time, or also along directions learnt by Powell's method.
        point: Which point of the best interval to take: its middle, or where the ideal ranking is likeliest.
        max_rounds: Without bags: at most so many rounds over all weights.
        bag_rounds: Rounds over the weights in each bag.
        share: The share of the weights that a round in a bag moves, at random; all where it starts from none.
        tolerance: Stop when a round gains less than this.
        nonnegative: Allow no weight below 0.
        low: Allow no weight below this.
        high: Allow no weight above this.
        window: Change a weight by no more than this times the largest weight in a step.

    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> DirectRank(measure="RR", bags=0).fit(data).score(data)
    1.0
    """

    name = "directrank"
    space: ClassVar[Space] = {
        "bags": (0, 20, 50),
        "start": ("auto", "softmax", "regression", "zero"),
        "share": Range(0.3, 1.0),
        "bag_rounds": Range(1, 4),
    }

    def __init__(
        self,
        measure: str | Measure = "nDCG@10",
        bags: int | None = None,
        start: Start | npt.ArrayLike = "auto",
        restarts: int = 1,
        order: Literal["cyclic", "random", "greedy"] = "cyclic",
        directions: Literal["coordinates", "powell"] = "coordinates",
        point: Point = "middle",
        max_rounds: int = 50,
        bag_rounds: int = 1,
        share: float = 0.7,
        tolerance: float = 1e-6,
        nonnegative: bool = False,
        low: float | None = None,
        high: float | None = None,
        window: float | None = None,
        seed: int = 0,
        threads: int | None = None,
        missing: Missing = "error",
    ) -> None:
        self.measure = measure
        self.bags = bags
        self.start = start
        self.restarts = restarts
        self.order = order
        self.directions = directions
        self.point = point
        self.max_rounds = max_rounds
        self.bag_rounds = bag_rounds
        self.share = share
        self.tolerance = tolerance
        self.nonnegative = nonnegative
        self.low = low
        self.high = high
        self.window = window
        self.seed = seed
        self.threads = threads
        self.missing = missing

    def _fit(self, data: RankingData, valid: RankingData | None, listener: Listener | None) -> tuple[Scorer, Trained]:
        for name, least in {"restarts": 1, "max_rounds": 1, "bag_rounds": 1, "bags": 0}.items():
            if getattr(self, name) is not None and getattr(self, name) < least:
                raise DataError(f"{name} must be at least {least}, got {getattr(self, name)}")
        measure = parse_measure(self.measure)
        if measure.ties != "expected":
            measure = replace(measure, ties="pessimistic")
        chosen_by = None if valid is None else LinearValue(measure.on(valid, threads=self.threads)).value
        task = _Task(measure.on(data, threads=self.threads), columns_of(data), self)
        bags = self.bags if self.bags is not None else 20 if data.n_queries < MANY_QUERIES else 0
        trained = self._averaged(task, bags, chosen_by, listener) if bags else self._single(task, chosen_by, listener)
        return self._scorer(data, trained.theta), trained

    def _single(self, task: "_Task", valid: Callable[[Theta], float] | None, listener: Listener | None) -> Trained:
        """The best of all restarts on all queries."""
        limits = task.limits
        search = Powell(limits, self.tolerance) if self.directions == "powell" else CoordinateSearch(self.order, limits, self.tolerance)
        problem = task.problem(task.data.weights, self.threads)

        def run(number: int, heard: Listener) -> Trained:
            rng = np.random.default_rng([self.seed, number])
            theta = task.start("random" if number else _first(self.start), rng)
            return train(search, problem, theta, rng=rng, max_steps=self.max_rounds, valid=valid, listener=heard)

        return best_of(self.restarts, run, listener)

    def _averaged(self, task: "_Task", bags: int, valid: Callable[[Theta], float] | None, listener: Listener | None) -> Trained:
        """The mean (1), from the start that validation finds better where there are two."""
        both = valid is not None and isinstance(self.start, str) and self.start == "auto"
        starts = ["softmax", "zero"] if both else [_first(self.start)]
        value = LinearValue(task.bound).value
        history: list[Progress] = []
        ends: list[Progress] = []  # where each start led
        interrupted = False
        try:
            for number, start in enumerate(starts):
                theta = np.zeros(task.data.n_features)
                for seen, bag in enumerate(task.bags(start, bags), 1):
                    theta = theta + (bag - theta) / seen
                    measured = None if valid is None else valid(theta)
                    history.append(Progress(number * bags + seen, len(starts) * bags, value(theta), measured, theta))
                    ends[number:] = history[-1:]
                    if listener is not None:
                        listener(history[-1])
        except KeyboardInterrupt:
            interrupted = True
        if not ends:
            raise KeyboardInterrupt
        best = max(ends, key=lambda end: math.inf if end.valid is None else end.valid)
        return Trained(best.theta, best.value, best.valid, tuple(history), interrupted)


def _first(start: Any) -> Any:
    """What the first run starts from."""
    return "softmax" if isinstance(start, str) and start == "auto" else start


@dataclass(frozen=True, eq=False)
class _Task:
    """What all runs of a fit share."""

    bound: BoundMeasure
    columns: Matrix
    ranker: DirectRank

    @property
    def data(self) -> RankingData:
        return self.bound.data

    @property
    def limits(self) -> Limits:
        low, high, window = (
            default if given is None else given
            for given, default in ((self.ranker.low, -math.inf), (self.ranker.high, math.inf), (self.ranker.window, math.inf))
        )
        return Limits(max(low, 0.0) if self.ranker.nonnegative else low, high, window)

    def problem(self, weight: PerQuery, threads: int | None) -> LinearProfile:
        return LinearProfile(replace(self.bound, weights=weight, threads=threads), self.columns, point=self.ranker.point)

    def start(self, kind: Any, rng: np.random.Generator) -> Theta:
        if not isinstance(kind, str):
            return self._given(np.array(kind, np.float64))
        if kind == "softmax":
            return SoftmaxLikelihood(self.bound, self.columns, SOFTMAX_RIDGE).best(SOFTMAX_ITERATIONS)
        if kind == "regression":
            return ridge_weights(self.data)
        if kind == "zero":
            return np.zeros(self.data.n_features)
        if kind == "random":
            spread = np.array([deviation(column, self.data.indptr) for column in self.columns])
            return rng.standard_normal(self.data.n_features) / np.where(spread > 0, spread, np.inf)
        raise DataError(f'start={kind!r} is not one of "auto", "softmax", "regression", "zero", "random"')

    def _given(self, theta: Theta) -> Theta:
        if theta.shape != (self.data.n_features,) or not np.all(np.isfinite(theta)):
            raise DataError(f"start must be {self.data.n_features} finite weights, one a feature; got shape {theta.shape}")
        limits = self.limits
        outside = np.flatnonzero((theta < limits.low) | (theta > limits.high))
        if len(outside):
            first = f"{self.data.feature_names[outside[0]]} starts at {theta[outside[0]]:g}"
            raise DataError(f"{first}, which is not between {limits.low:g} and {limits.high:g}; move it there, or widen low and high")
        return theta

    def bags(self, kind: Any, count: int) -> Iterator[Theta]:
        """The models of ``count`` bootstrap samples, in order, each of unit deviation."""
        shared = None if isinstance(kind, str) and kind == "random" else self.start(kind, np.random.default_rng(self.ranker.seed))
        with Pool(thread_count(self.ranker.threads)) as pool:
            jobs = [pool.submit(partial(self._bag, kind, shared), number) for number in range(count)]
            try:
                for job in jobs:
                    yield job.result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _bag(self, kind: Any, shared: Theta | None, number: int) -> Theta:
        rng = np.random.default_rng([self.ranker.seed, number])
        queries = self.data.n_queries
        drawn = np.bincount(rng.integers(0, queries, queries), minlength=queries)
        problem: Any = self.problem(self.data.weights * drawn, 1)
        left_out = self.data.weights * (drawn == 0)
        if np.any(left_out > 0):
            problem = Guarded(problem, self.problem(left_out, 1))
        theta = self.start(kind, rng) if shared is None else shared
        search = CoordinateSearch("random", self.limits, self.ranker.tolerance, self.ranker.share if np.any(theta) else 1.0)
        found = train(search, problem, theta, rng=rng, max_steps=self.ranker.bag_rounds).theta
        size = deviation(_core.linear_scores(self.data.X, found, 1), self.data.indptr)
        return found / size if size > 0 and self.limits.scale_free else found
