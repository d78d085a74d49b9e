"""Two measures at once: the exact trade-off along a ray, and the Pareto front of the weights of a fusion or a linear model.

Along a line of weights both measures are step functions of the same alpha (`exactrank.learning.objectives.profile`), so all pairs of values
that occur there are known,

    { (f(alpha), g(alpha)) },    one pair per interval between the breakpoints of both                          (1)

and the front of these is exact. Two systems have only one line, or the four sides of a square where weights may be negative: the
front is complete. For more systems, lines are searched: from the best weights for f alone, f is maximized by exact steps, one weight at a
time,

    subject to g >= c,    for rising c up to the best known g                                                   (2)

and every interval of every searched line may enter the front. So each of its points is exact, and no point of those lines is better;
other weights might have better points.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from exactrank._support.arguments import check_count
from exactrank._support.arrays import Floats
from exactrank.data.ranking_data import RankingData, check_data
from exactrank.errors import IncompatibleError, MeasureError
from exactrank.fusion.front import ParetoFront, pareto_rows
from exactrank.fusion.preparation import check_systems, problem_of, with_grades_of
from exactrank.fusion.problem import FusionProblem, Weights, all_weights
from exactrank.fusion.search import ascend, coordinate, tune_weights
from exactrank.fusion.systems import select_systems
from exactrank.inspect.probed import rows_for
from exactrank.learning.objectives.constrained import constrain
from exactrank.learning.objectives.linear_profile import LinearProfile, ProfilePoint
from exactrank.learning.objectives.profile import profile
from exactrank.learning.objectives.step_function import LEAST_WIDTH, SAME_VALUE, Interval, StepFunction, with_common_breakpoints
from exactrank.learning.optimizers.coordinate import rescale
from exactrank.measures.base import Measure
from exactrank.measures.goal import Constraint
from exactrank.measures.parse import listed_measures, parse_measure
from exactrank.models.linear import Linear
from exactrank.models.model import Model

ROUNDS = 20
MOST_POINTS = 10_000  #: maximum number of levels, each of which takes a search


def tradeoff(
    data: RankingData,
    scores: npt.ArrayLike,
    direction: npt.ArrayLike,
    measures: Sequence[str | Measure],
    *,
    low: float = -math.inf,
    high: float = math.inf,
    threads: int | None = None,
) -> ParetoFront:
    """Return the exact Pareto front of two measures at ``scores + alpha * direction`` for all alpha from ``low`` to ``high``, (1).

    >>> data = RankingData.from_arrays(None, [1, 0, 0, 1], group=[2, 2], extra_columns={"revenue": [1, 5, 0, 2]})
    >>> front = tradeoff(data, [3.0, 2.0, 1.0, 0.0], [0.0, 0.5, 0.0, 2.0], ["nDCG@1", "revenue@1"])
    >>> front.values.tolist(), front.at(revenue=3).weights
    ([[1.0, 1.5], [0.5, 3.5]], {'alpha': 4.0})
    """
    check_data(data)
    named = two_measures(measures)
    steps = [profile(data, scores, direction, measure, low=low, high=high, threads=threads) for measure in named.values()]
    archive = _Archive(1)
    archive.add(WeightLine(steps[0], steps[1], low, high, lambda interval: np.array([interval.middle()])))
    return ParetoFront(named, ("alpha",), archive.values, archive.weights, complete=True)


def pareto(
    data: RankingData,
    model: object,
    measures: Sequence[str | Measure],
    *,
    normalize: str = "min-max",
    absent: str = "worst",
    nonnegative: bool = True,
    points: int = 10,
    seed: int = 0,
    threads: int | None = None,
) -> ParetoFront:
    """Return the Pareto front of two measures over the weights of systems or of a linear model.

    ``model`` is a linear model (a result of [`er.load`][exactrank.load], or a ranker after ``fit``), or names the features of ``data``
    that are systems to fuse; ``normalize``, ``absent`` and ``nonnegative`` are as in [`er.fuse`][exactrank.fuse], and for systems
    alone. For two systems the front is complete. For more weights it is the front of all lines that were searched, (2), for ``points``
    levels of the second measure.

    >>> X = [[3.0, 0.1], [2.0, 0.9], [1.0, 0.8], [9.0, 0.7], [8.0, 0.9], [1.0, 0.2]]
    >>> price = {"price": [9, 1, 5, 9, 2, 3]}
    >>> data = RankingData.from_arrays(X, [0, 1, 0, 0, 1, 0], group=[3, 3], feature_names=["a", "b"], extra_columns=price)
    >>> pareto(data, ["a", "b"], ["nDCG@1", "price@1"])
    ParetoFront(3 points, complete: nDCG@1 1.0000 to 0.0000, price@1 1.5000 to 9.0000)
    """
    check_data(data)
    named = two_measures(measures)
    check_count("points", points, 0, MOST_POINTS)
    first, second = named.values()
    if isinstance(model, str) or (isinstance(model, Sequence) and all(isinstance(name, str) for name in model)):
        systems = [model] if isinstance(model, str) else list(model)
        fused = _SystemWeights.of(data, systems, (first, second), normalize, absent, nonnegative, seed, threads)
        archive = _Archive(len(systems))
        if len(systems) == 2:
            for start, end in all_weights(2, nonnegative):
                archive.add(fused.line(start, end))
        else:
            _search(fused, archive, points, second)
        return ParetoFront(named, tuple(systems), archive.values, archive.weights, complete=len(systems) == 2)
    model = getattr(model, "model_", model)
    if not isinstance(model, Model) or not isinstance(model.scorer, Linear):
        kind = f"{model.scorer.kind} model" if isinstance(model, Model) else type(model).__name__
        raise IncompatibleError(
            f"a {kind} has no weights to trade off; give a linear model, or fuse its scores with another system's: systems=['a', 'b']"
        )
    linear = _FeatureWeights(model.scorer, data, (first, second), threads)
    archive = _Archive(linear.count)
    _search(linear, archive, points, second)
    names = model.scorer.feature_names or tuple(f"x{j}" for j in range(linear.count))
    start = linear.values(model.scorer.weights)
    return ParetoFront(named, names, archive.values, archive.weights, complete=False, start=start, model=model)


def two_measures(measures: Sequence[str | Measure]) -> Mapping[str, Measure]:
    """Return both measures by the caller's names for them."""
    listed = listed_measures(measures)
    named = {str(measure): parse_measure(measure) for measure in listed}
    if len(listed) != 2 or len(set(named.values())) != 2:
        raise MeasureError(
            f"a trade-off is between two measures, got {', '.join(map(str, listed)) or 'none'}; give e.g. nDCG@10, revenue@10"
        )
    return named


@dataclass(frozen=True, eq=False)
class WeightLine:
    """Both measures along a line of weights, between ``low`` and ``high``, with a function from its intervals to weights."""

    first: StepFunction
    second: StepFunction
    low: float
    high: float
    weights: Callable[[Interval], Weights]


class _Archive:
    """The front of all intervals so far, with weights that reach each point."""

    def __init__(self, count: int) -> None:
        self.values, self.weights, self._width = np.empty((0, 2)), np.empty((0, count)), np.empty(0)

    def add(self, line: WeightLine) -> None:
        """Add all intervals of a line, except those no wider than a rounding error, unless all are."""
        first, second = with_common_breakpoints([line.first, line.second])
        inside = (first.breakpoints > line.low) & (first.breakpoints < line.high)
        ends = np.concatenate([[line.low], first.breakpoints[inside], [line.high]])
        at = np.append(np.flatnonzero(inside), np.flatnonzero(inside)[-1] + 1 if inside.any() else np.sum(first.breakpoints <= line.low))
        width = np.diff(ends)
        size = np.maximum(*(np.abs(np.where(np.isinf(end), 0.0, end)) for end in (ends[:-1], ends[1:])))
        wide = width > LEAST_WIDTH * size
        real = np.flatnonzero(wide) if wide.any() else np.arange(len(width))
        values = np.stack([first.values[at[real]], second.values[at[real]]], axis=1)
        widths = np.where(np.isinf(width[real]), 0.0, width[real])  # bounded ones first
        old = len(self.values)
        values, widths = np.concatenate([self.values, values]), np.concatenate([self._width, widths])
        rows = pareto_rows(values, widths)
        weights = [
            self.weights[i] if i < old else line.weights(Interval(ends[real[i - old]], ends[real[i - old] + 1], math.nan))
            for i in rows.tolist()
        ]
        self.values, self.weights, self._width = values[rows], np.array(weights), widths[rows]


class _WeightSpace(Protocol):
    """Weights whose two measures are known along lines."""

    def starts(self) -> tuple[Weights, Weights]:
        """Return two starts of the search: good by the first measure, and by the second."""

    def values(self, weights: Weights) -> tuple[float, float]:
        """Return both measures."""

    def lines(self, weights: Weights, j: int) -> Iterator[WeightLine]:
        """Yield the lines along which weight ``j`` changes."""

    @property
    def count(self) -> int:
        """The number of weights."""


def _search(space: _WeightSpace, archive: _Archive, points: int, second: Measure) -> None:
    """Search by (2), and add all lines to ``archive``."""
    first_start, second_start = space.starts()
    weights = _climb(space, first_start, archive, lambda line: line.first)
    best_second = _climb(space, second_start, archive, lambda line: line.second)
    low, high = space.values(weights)[1], space.values(best_second)[1]

    def with_level(level: float) -> Callable[[WeightLine], StepFunction]:
        return lambda line: constrain(line.first, [(line.second, Constraint(second, ">=", level))])

    for level in np.linspace(low, high, points + 2)[1:-1].tolist():
        weights = _climb(space, weights, archive, with_level(level))
    _climb(space, best_second, archive, with_level(high))


def _climb(space: _WeightSpace, weights: Weights, archive: _Archive, goal: Callable[[WeightLine], StepFunction]) -> Weights:
    """Return the end of exact coordinate ascent of ``goal``."""
    value = -math.inf
    for _ in range(ROUNDS):
        before = value
        for j in range(space.count):
            for line in space.lines(weights, j):
                archive.add(line)
                best = goal(line).best(line.low, line.high)
                if best.value > value + SAME_VALUE:
                    weights, value = line.weights(best), best.value
        if value <= before + SAME_VALUE:
            break
    return weights


@dataclass(frozen=True, eq=False)
class _SystemWeights:
    """The weights of a fusion."""

    problems: tuple[FusionProblem, FusionProblem]
    seed: int

    @classmethod
    def of(
        cls,
        data: RankingData,
        systems: Sequence[str],
        measures: tuple[Measure, Measure],
        normalize: str,
        absent: str,
        nonnegative: bool,
        seed: int,
        threads: int | None,
    ) -> "_SystemWeights":
        """Make the systems' scores comparable, for each measure."""
        problems = []
        for measure in measures:
            graded, of_grades = with_grades_of(data, measure)
            lists = select_systems(graded, systems)
            check_systems(lists, 0)
            problems.append(problem_of(lists, of_grades, normalize, absent, nonnegative, threads))
        return cls((problems[0], problems[1]), seed)

    @property
    def count(self) -> int:
        return self.problems[0].systems

    def starts(self) -> tuple[Weights, Weights]:
        first, second = (
            ascend(problem, tune_weights(problem, [problem.data.weights], self.seed)[0], problem.data.weights) for problem in self.problems
        )
        return first, second

    def values(self, weights: Weights) -> tuple[float, float]:
        first, second = (problem.value(weights, problem.data.weights) for problem in self.problems)
        return first, second

    def line(self, start: Weights, end: Weights) -> WeightLine:
        """Return the line between two sets of weights."""
        first, second = (problem.sweep(start, end, problem.data.weights) for problem in self.problems)
        return WeightLine(first.steps, second.steps, 0.0, 1.0, lambda interval: first.weights(interval.middle()))

    def lines(self, weights: Weights, j: int) -> Iterator[WeightLine]:
        for start, end in coordinate(self.problems[0], weights, j):
            yield self.line(start, end)


class _FeatureWeights:
    """The weights of a linear model."""

    def __init__(self, scorer: Linear, data: RankingData, measures: tuple[Measure, Measure], threads: int | None) -> None:
        rows = rows_for(scorer, data)
        first = measures[0].over(rows, threads=threads)  # parts remember features for both measures
        self._profiles = [LinearProfile.of(replace(first, measure=measure)) for measure in measures]
        self._start = rescale(scorer.weights)
        self._places: list[ProfilePoint] = []
        self.count = len(scorer.weights)

    def starts(self) -> tuple[Weights, Weights]:
        return self._start, self._start

    def values(self, weights: Weights) -> tuple[float, float]:
        first, second = (measure.value(weights) for measure in self._profiles)
        return first, second

    def lines(self, weights: Floats, j: int) -> Iterator[WeightLine]:
        if not self._places or self._places[0].theta is not weights:
            self._places = [measure.at(weights) for measure in self._profiles]
        first, second = self._places

        def move(interval: Interval) -> Weights:
            theta = weights.copy()
            theta[j] += first.choose_alpha(j, interval)
            return theta

        yield WeightLine(first.profile(j), second.profile(j), -math.inf, math.inf, move)
