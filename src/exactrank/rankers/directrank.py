"""DirectRank: a linear model trained on the measure itself (Tan, Xia, Guo & Wang 2013).

One weight after the other is set to the point where the measure, as an exact step function of that weight, is largest
(`exactrank.learning.optimizers.coordinate`, `exactrank.learning.objectives.linear_profile`).

On little data the largest value is partly luck. So there the model is the mean of several, each trained on a bootstrap
sample of the queries, in a random order of some of the weights, from a convex start:

    w = 1/B sum_b w_b / sd(X w_b)                                                                               (1)

with sd the standard deviation within queries (1 where ``low`` or ``high`` bind the weights' size). A step must not make the
queries that the sample left out worse. In training, tied documents count in their worst order. With constraints on other
measures (`exactrank.learning.objectives.constrained`) one model is trained on all queries, since the mean of several need not keep them.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np

from exactrank._support.arrays import PerDocument
from exactrank._support.numerics import standard_normal
from exactrank._support.settings import SOME, VALID, Range, setting
from exactrank._support.threads import thread_count
from exactrank.data.dataset import Dataset, Score
from exactrank.data.folds import BootstrapWeights
from exactrank.data.ranking_data import RankingData
from exactrank.errors import IncompatibleError, SettingError
from exactrank.learning.objectives.bradley_terry import bradley_terry
from exactrank.learning.objectives.constrained import ConstrainedProfile, worst_for
from exactrank.learning.objectives.linear_profile import LinearProfile, linear_scores_of
from exactrank.learning.objectives.ridge import ridge_weights
from exactrank.learning.objectives.searched_measure import Point, SearchedMeasure
from exactrank.learning.objectives.softmax import InDeviations, SoftmaxLikelihood
from exactrank.learning.objectives.within_query import deviation_of
from exactrank.learning.optimizers.base import Theta
from exactrank.learning.optimizers.coordinate import CoordinateSearch, GuardedProblem, Limits, Powell, Profiled, RandomDirections, ascend
from exactrank.learning.optimizers.slopes import maximum
from exactrank.learning.training.combinators import bags, bootstrap, map_iterates, restarts, start_names
from exactrank.learning.training.judge import Judge, Task, judge_by_objective
from exactrank.learning.training.progress import Trained, Verdict
from exactrank.learning.training.run import Recorder, Run
from exactrank.measures.bound import DatasetMeasure
from exactrank.measures.goal import Constraint, Goal, infeasible, parse_goal
from exactrank.measures.parse import parse_measure
from exactrank.measures.ties import worst_tie_order
from exactrank.models.base import Scorer
from exactrank.models.linear import Linear
from exactrank.rankers.base import Ranker
from exactrank.rankers.checks import Takes
from exactrank.rankers.gradient import GradientRanker
from exactrank.rankers.lambdarank import LambdaRank
from exactrank.rankers.smoothrank import SmoothRank

Start = Literal["auto", "softmax", "ridge", "smoothrank", "lambdarank", "zero", "random"] | Sequence[float]
#: The rankers whose weights are a start.
RANKERS: Mapping[Start, type[GradientRanker]] = {"smoothrank": SmoothRank, "lambdarank": LambdaRank}
#: With as many queries, or more, the mean over bootstrap samples is not worth its time.
MANY_QUERIES = 5000
BAGS = 20
#: Of the queries, for cross-fitting a ranker whose weights are a start.
PARTS = 5
ROUNDS = 50
SOFTMAX_RIDGE = 0.01
SOFTMAX_ITERATIONS = 60


class DirectRank(Ranker):
    """A linear model by exact line search on the measure, one weight at a time (Tan et al. 2013).

    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> DirectRank(measure="RR", bags=0).fit(data).score(data)
    1.0
    """

    name = "directrank"
    takes = Takes(constraints=True, pairs="by measure", start=(Linear,), shards=True, kernels=True)
    bags: int | None = setting(
        default=None,
        help="Train this number of models and take their mean; 0 trains one. By default 20 below 5,000 queries, else 0.",
        at_least=0,
        at_most=1 << 20,
        search=(0, 20, 50),
    )
    bagging: Literal["cross-fit", "bootstrap"] = "bootstrap"
    start: Start = setting(
        default="auto",
        help="Where to start: the best softmax or ridge regression, SmoothRank's or LambdaRank's weights, zeros, random weights, or (in"
        " Python) given ones. By default the softmax; in bags with validation data also zeros, and the better of the two is kept.",
        search=("auto", "softmax", "ridge", "smoothrank", "lambdarank", "zero"),
    )
    restarts: int = setting(
        default=1,
        help="Number of starts, the first as given by start and the others random; the best model is kept.",
        at_least=1,
        only={"bags": (0,)},
    )
    solver: Literal["coordinates", "powell"] = setting(
        default="coordinates", help="Move one weight at a time, or also along directions learnt by Powell's method.", only={"bags": (0,)}
    )
    order: Literal["cyclic", "random", "greedy"] = setting(
        default="cyclic",
        help="Order of the weights in a round, or only the best one (greedy); in bags the order is random.",
        only={"bags": (0,), "solver": ("coordinates",)},
    )
    point: Point = setting(
        default="middle",
        help="Which point of the best interval to take: its middle, or where the ideal ranking is likeliest (plackett-luce: as published,"
        " also among the worst documents, and without rescaling the weights after each round).",
    )
    selection: str | None = setting(
        default=None, help="Measure that chooses rounds and starts on validation data; by default the one trained on.", only={VALID: SOME}
    )
    max_iter: int | None = setting(
        default=None,
        help="Maximum number of rounds over the weights; by default 1 in each bag, 50 without bags.",
        at_least=1,
        search=(None, 2, 4),
    )
    share: float = setting(
        default=0.7,
        help="Share of the weights, drawn at random, that a round in a bag moves; all of them if it starts from zeros.",
        above=0,
        at_most=1,
        only={"bags": SOME},
        search=Range(0.3, 1.0),
    )
    tolerance: float = setting(default=1e-6, help="Stop when a round gains less than this.", at_least=0)
    nonnegative: bool = setting(default=False, help="Allow no weight below 0.", only={"low": (None,)})
    low: float | None = setting(default=None, help="Allow no weight below this.")
    high: float | None = setting(default=None, help="Allow no weight above this.")
    window: float | None = setting(default=None, help="In one step, change a weight by at most this times the largest weight.", above=0)

    def resolve_auto(self, data: Dataset) -> Mapping[str, object]:
        many = data.n_queries >= MANY_QUERIES or bool(parse_goal(self.measure).constraints)
        bags = (0 if many else BAGS) if self.bags is None else self.bags
        values = {"bags": bags, "max_iter": 1 if bags else ROUNDS}
        return {name: value for name, value in values.items() if getattr(self, name) is None}

    def check_shards(self, data: Dataset) -> None:
        """Raise also for starts that are unknown to searches over partitions."""
        super().check_shards(data)
        if self.start in RANKERS:
            raise IncompatibleError(f"DirectRank on data in several files has no ranker as its start; got start={self.start!r}")
        if data.preferences is not None and self.start == "ridge":
            raise IncompatibleError("start='ridge' needs grades, and the data in several files has pairs; use start='softmax' or 'zero'")

    def ineffective_settings(self, data: Dataset, validated: bool = False) -> dict[str, str]:
        """Return the settings without effect; a tolerance has none if there is only one round."""
        reasons = super().ineffective_settings(data, validated)
        rounds = self.resolve_auto(data).get("max_iter", self.max_iter)
        if rounds == 1 and not self.settings["tolerance"].is_default(self.tolerance):
            reasons["tolerance"] = f"tolerance={self.tolerance!r} has no effect with a single round; leave it out, or set max_iter above 1"
        return reasons

    @property
    def is_scale_free(self) -> bool:
        return self.limits.scale_free

    @property
    def limits(self) -> Limits:
        """The limits of weights."""
        low = 0.0 if self.nonnegative else -math.inf if self.low is None else self.low
        high, window = (math.inf if limit is None else limit for limit in (self.high, self.window))
        return Limits(low, high, window, self.point != "plackett-luce")

    def check_effects(self, data: Dataset, validated: bool = False) -> None:
        """Raise also if settings cannot keep the constraints."""
        super().check_effects(data, validated)
        if not parse_goal(self.measure).constraints:
            return
        if self.bag_count(data):
            raise SettingError(
                f"DirectRank: bags={self.bags} takes the mean of models, which need not keep the constraints that each keeps; give bags=0"
            )

    def train(self, task: Task, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        count = self.bag_count(task.data)
        if not count or self.cross_fits(task.data):
            return super().train(task, recorder)
        search = _Search(self, task)
        return restarts([partial(search.mean, count, start) for start in search.starts], recorder, names=search.names)

    def _fit(self, task: Task, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        """Train on all queries or, in a bag, on those of one model of a cross-fit."""
        search = _Search(self, task)
        runs, names = [partial(search.alone, number) for number in range(self.restarts)], start_names(self.restarts)
        if task.bags:
            runs, names = [partial(search.cross_fit, start) for start in search.starts], search.names
        trained = restarts(runs, recorder, names=names)
        search.check_constraints(trained.iterate)
        return trained


class _Search:
    """The state that all runs of a fit share."""

    def __init__(self, ranker: DirectRank, task: Task) -> None:
        self.ranker, self.task = ranker, task
        self.limits = ranker.limits
        self.first = ranker.start if isinstance(ranker.start, str) else tuple(ranker.start)
        if isinstance(task.start, Linear):
            self.first = tuple(task.start.weights.tolist())
        #: The starts of a bag: two where validation data can tell which is better.
        self.starts: Sequence[Start] = ["softmax", "zero"] if task.valid is not None and self.first == "auto" else [self.first]
        self.names = [f"start={start}" for start in self.starts]
        choice = task if ranker.selection is None else replace(task, measure=parse_measure(ranker.selection))
        self.judge: Judge[Theta] = Judge(choice, self.score, by_objective=True)
        self.measure = worst_tie_order(task.measure).over(task.data, threads=task.threads)
        self.constraints = [(worst_for(constraint, task.data, task.threads), constraint) for constraint in task.constraints]
        self.beside = ranker.runs_in_threads and task.data.is_local  #: Are the models of a bag trained beside each other?

    @cached_property
    def graded_data(self) -> Dataset:
        """The data with a grade for each document, which starts need, also if it has pairs."""
        return self.task.data if self.task.data.preferences is None else bradley_terry(self.task.data.gather()).judged

    def alone(self, number: int, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        """Train from the start of that number; the first is the one of the setting."""
        ranker, rng = self.ranker, np.random.default_rng([self.ranker.seed, number])
        theta = self.start("random" if number else self.first, rng, recorder)
        powell, rounds = Powell(self.limits, ranker.tolerance), CoordinateSearch(ranker.order, self.limits, ranker.tolerance)
        solver: Any = powell if ranker.solver == "powell" else rounds
        problem = self.problem(self.task.threads)
        goal: Profiled = problem
        if self.constraints:
            goal = ConstrainedProfile(problem, self.constraint_profiles)
            theta = self.towards_constraints(goal, theta)
            solver = RandomDirections(solver, self.scale(), ranker.seed)
        run = Run(solver, goal, theta, self.constrained_verdict, ranker.max_iter or ROUNDS, rng)
        return map_iterates(run, lambda theta: Linear(theta, self.task.data.feature_names), recorder)

    def mean(self, count: int, start: Start, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        """Return (1); the models are trained beside each other."""
        shared = self.start(start, np.random.default_rng(self.ranker.seed), recorder)
        members = [partial(self.fit_bootstrap, start, shared, number) for number in range(count)]
        return bags(members, self.task.verdict, recorder, thread_count(self.task.threads) if self.beside else 1)

    def fit_bootstrap(self, start: Start, shared: Theta, number: int, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        """Train on a bootstrap sample of the queries."""
        rng = np.random.default_rng([self.ranker.seed, number])
        _, left_out = bootstrap(self.task.data, rng)
        threads, draw = 1 if self.beside else self.task.threads, BootstrapWeights((self.ranker.seed, number), self.task.data.n_queries)
        problem: Profiled = self.problem(threads, draw)
        if np.any(left_out > 0):
            problem = GuardedProblem(problem, self.problem(threads, replace(draw, left_out=True)))
        theta = self.start(start, rng, recorder) if start == "random" else shared
        return self.in_bag(problem, theta, judge_by_objective, rng, recorder)

    def cross_fit(self, start: Start, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        """Train on the queries of one model of a cross-fit; the other queries choose the round."""
        rng = np.random.default_rng([self.ranker.seed, self.task.bag])
        theta = self.start(start, rng, recorder)
        return self.in_bag(self.problem(self.task.threads), theta, self.judge, rng, recorder)

    def in_bag(
        self,
        problem: Profiled,
        theta: Theta,
        judge: Callable[[Theta, float], Verdict],
        rng: np.random.Generator,
        recorder: Recorder[Scorer],
    ) -> Trained[Scorer]:
        """Train a share of the weights, in random order, from ``theta``, and return the model with scores of unit deviation."""
        ranker, data = self.ranker, self.task.data

        def scorer(theta: Theta) -> Scorer:
            size = deviation_of(data, partial(linear_scores_of, np.ascontiguousarray(theta), thread_count(self.task.threads)))
            return Linear(theta / size if size > 0 and self.limits.scale_free else theta, data.feature_names)

        solver = CoordinateSearch("random", self.limits, ranker.tolerance, ranker.share if np.any(theta) else 1.0)
        return map_iterates(Run(solver, problem, theta, judge, ranker.max_iter or 1, rng), scorer, recorder)

    def problem(self, threads: int | None, draw: BootstrapWeights | None = None) -> LinearProfile:
        """Return the measure of all queries, or of those in ``draw``."""
        search = self.search if threads == self.measure.threads else SearchedMeasure(replace(self.measure, threads=threads))
        return LinearProfile(search.reweigh(draw), self.ranker.point)

    @cached_property
    def search(self) -> SearchedMeasure:
        """The searched measure of all queries, which finds only once which of them count."""
        return SearchedMeasure(self.measure)

    @cached_property
    def constraint_profiles(self) -> list[tuple[LinearProfile, Constraint]]:
        """The profiles of the constraints' measures."""
        return [(LinearProfile.of(measure, self.ranker.point), constraint) for measure, constraint in self.constraints]

    def towards_constraints(self, problem: Profiled, theta: Theta) -> Theta:
        """Return ``theta`` if it keeps the constraints, otherwise after an exact step towards a convex start for the measure of each.

        A single weight that meets a constraint at once often costs more than it has to, and single weights lead back only up to the bound.
        """
        spot = problem.at(np.clip(theta, self.limits.low, self.limits.high))
        for measure, _ in self.constraints:
            if spot.value < 0:
                best = softmax_weights(measure)
                spot = ascend(spot, best - spot.theta, self.limits)
        return spot.theta

    def constrained_verdict(self, theta: Theta, objective: float) -> Verdict:
        """Return the judge's verdict; weights that miss a constraint are worse than any that keep it, also by validation data."""
        verdict = self.judge(theta, objective)
        return replace(verdict, goodness=objective, values=None) if self.constraints and objective < 0 else verdict

    def check_constraints(self, scorer: Scorer) -> None:
        """Raise if the final model misses a constraint."""
        for profile, constraint in self.constraint_profiles:
            value = profile.value(linear_weights(scorer))
            if constraint.shortfall(value) > 0:
                raise infeasible(Goal(self.task.measure, self.task.constraints), constraint, value, is_extreme=False)

    def start(self, kind: Start, rng: np.random.Generator, recorder: Recorder[Scorer]) -> Theta:
        """Return the weights of a start."""
        data, limits = self.task.data, self.limits
        if kind == "ridge":
            return ridge_weights(self.graded_data)
        if kind == "zero":
            return np.zeros(data.n_features)
        if kind == "random":
            return standard_normal(rng, data.n_features) * self.scale()
        if kind in RANKERS:
            return recorder.remember(str(kind), lambda: self.weights_of(RANKERS[kind]))
        if isinstance(kind, str):
            return recorder.remember("softmax", lambda: softmax_weights(self.measure))
        theta, names = np.array(kind, np.float64), data.feature_names
        if len(theta) != len(names):
            raise SettingError(f"start has {len(theta)} weights for {len(names)} features; give one per feature")
        outside = np.flatnonzero((theta < limits.low) | (theta > limits.high))
        if len(outside):
            first = f"{names[outside[0]]} starts at {theta[outside[0]]:g}"
            raise SettingError(f"{first}, which is not between {limits.low:g} and {limits.high:g}; change the start, or widen low and high")
        return theta

    def scale(self) -> Theta:
        """Return the weight with which each feature varies by 1 within queries; 0 for a constant feature."""
        data = self.task.data
        spread = np.array([deviation_of(data, partial(_column, j)) for j in range(data.n_features)])
        return 1 / np.where(spread > 0, spread, np.inf)

    def weights_of(self, method: type[GradientRanker]) -> Theta:
        """Train another ranker and return its weights; it is cross-fitted if there is no validation data to stop its training."""
        task, data, parts = replace(self.task, data=self.graded_data), self.graded_data, 0
        if task.valid is None:  # each part needs a query that counts
            counts = (data.weights > 0) & ~np.isnan(self.measure.values(self.task.measure.grades))
            task, parts = replace(task, data=data.select(counts)), PARTS if counts.sum() > 1 else 0
        ranker = method(task.measure, bags=parts, seed=self.ranker.seed, threads=task.threads)
        return linear_weights(ranker.train(task, Recorder()).iterate)

    def score(self, theta: Theta) -> Score:
        """Return the function that scores documents."""
        return partial(linear_scores_of, np.ascontiguousarray(theta), thread_count(self.task.threads))


def linear_weights(scorer: Scorer) -> Theta:
    """Return the weights of a scorer that is known to be linear."""
    assert isinstance(scorer, Linear)
    return scorer.weights


def softmax_weights(measure: DatasetMeasure) -> Theta:
    """Return the weights at the maximum of the softmax likelihood, a convex start."""
    likelihood = SoftmaxLikelihood(measure, SOFTMAX_RIDGE)
    return maximum(InDeviations(likelihood), np.zeros(len(likelihood.sigma)), SOFTMAX_ITERATIONS) / likelihood.sigma


def _column(j: int, data: RankingData) -> PerDocument:
    return np.asarray(data.X[:, j])
