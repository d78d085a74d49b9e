"""The base of large-margin rankers: a loss, a penalty whose strength the data may choose, and a solver with a certified gap.

    least over theta of  J(theta) = l2/2 |theta - theta0|^2 + mean over queries of loss_q(theta)                (1)

with theta in units of standardized features. With ``l2="auto"`` the strengths

    l2_i = 10^(-i/2) l2_0,    l2_0 = |g|^2 / loss,    g the slope of the mean loss at 0                     (2)

are solved from the largest to the smallest, each from where the one before ended if the loss is convex or one convex function less
another, else from the same start, and validation data selects one (`exactrank.learning.training.selection`). Without validation data the
queries are divided into folds, each of which judges the models of the others.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Literal

import numpy as np

from exactrank._support.numerics import dot, norm, power
from exactrank._support.settings import SOME, VALID, Range, setting
from exactrank._support.threads import thread_count
from exactrank.data.dataset import Dataset, EachBlock, Part
from exactrank.errors import SettingError
from exactrank.learning.objectives.regularized_risk import RegularizedRisk
from exactrank.learning.objectives.within_query import center, pull_backs
from exactrank.learning.optimizers.base import Duality, Optimizer, Theta
from exactrank.learning.optimizers.concave_convex import ConcaveConvexBundle
from exactrank.learning.training.combinators import cross_validate, restarts
from exactrank.learning.training.judge import Judge, Task, judge_by_objective
from exactrank.learning.training.progress import Alternative, Trained, Verdict
from exactrank.learning.training.run import Recorder, Run
from exactrank.learning.training.selection import alternatives, average, choose_on_paths
from exactrank.measures.base import Measure
from exactrank.models.architecture import Architecture, LinearModel
from exactrank.models.base import Scorer
from exactrank.rankers.base import Ranker
from exactrank.rankers.checks import Takes

#: How many strengths of (2) are tried.
STRENGTHS = 9
#: The start is so near to 0 that it raises the loss by no more than this share.
NUDGE = 1e-6

Problem = Callable[[Dataset], RegularizedRisk]  #: (1) on data, of which some queries may weigh nothing
Solves = Optimizer[Any, Theta, Any]  #: an optimizer of (1), with a state of its own kind


class LargeMarginRanker(Ranker):
    """The base of large-margin rankers; a ranker adds its own settings."""

    takes = Takes(shards=True)

    l2: float | Literal["auto"] = setting(
        default="auto",
        help='Strength of the L2 penalty, relative to the mean loss of a query; "auto" lets validation data choose, or folds.',
        above=0,
        search=Range(1e-3, 100.0, log=True),
    )
    tolerance: float = setting(default=1e-4, help="Stop at this gap between primal and dual, relative to the primal.", above=0, below=1)
    max_iter: int = setting(default=500, help="Maximum number of steps of the solver for each strength.", at_least=1)
    patience: int | None = setting(
        default=None,
        help="With validation data: stop after this many strengths in a row without improvement; by default all are tried.",
        at_least=1,
        only={VALID: SOME, "l2": ("auto",)},
    )
    folds: int = setting(
        default=5, help="Without validation data: number of folds of the queries that choose what is left to the data.", at_least=2
    )

    @abstractmethod
    def _problems(self, measure: Measure, architecture: Architecture) -> Sequence[tuple[Mapping[str, object], Problem]]:
        """(1), at any strength, for each setting besides the strength that the data may choose."""

    @abstractmethod
    def _optimizer(self, problem: RegularizedRisk) -> Solves:
        """Return the solver of (1); for a convex problem, or as a `ConcaveConvexBundle`, it can continue at another strength."""

    def _architecture(self, data: Dataset) -> Architecture:
        return LinearModel().on(data)

    @property
    def _stale(self) -> int | None:
        """The number of steps without a better iterate that ends training, if the solver has no criterion of its own."""
        return None

    def _start(self, problem: RegularizedRisk) -> Theta:
        """Return the start of the first strength: close to 0, but not 0, where all documents tie and the order of rows would decide."""
        architecture = problem.architecture
        if not architecture.linear:
            return architecture.initial(np.random.default_rng(self.seed))
        blocks = EachBlock(partial(_towards_grades, thread_count(self.threads)))
        direction = np.sum(problem.data.ask(blocks), axis=0) / architecture.scale
        loss, slope = problem.risk(problem.center)
        steepness = norm(slope) * norm(direction)
        return problem.center + (NUDGE * loss / steepness * direction if steepness > 0 else 0.0)

    def _remark(self, problem: RegularizedRisk, reached: Duality | None) -> str:
        """Return a remark on a useless solution; empty if there is none."""
        return ""

    def _fit(self, task: Task, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        architecture, valid = self._architecture(task.data), task.valid
        problems = self._problems(task.measure, architecture)
        choices = self.l2 == "auto" or len(problems) > 1
        if not self.settings["folds"].is_default(self.folds) and (valid is not None or not choices):
            who = "nothing is left to choose" if valid is None else "validation data chooses"
            raise SettingError(f"{type(self).__name__}: folds={self.folds} has no effect if {who}; leave it out")
        paths = [self._path(f"path {number}", choice, problem, task.data) for number, (choice, problem) in enumerate(problems)]
        judge: Judge[Theta] = Judge(task, lambda theta: architecture.score(theta, task.threads), by_objective=True)
        theta_recorder: Recorder[Theta] = recorder.part(view=architecture.at)
        last, compared = theta_recorder, tuple[Alternative, ...]()
        if choices and valid is None:
            single_paths = [replace(path, strengths={l2: choice}) for path in paths for l2, choice in path.strengths.items()]
            candidates = partial(_all_candidates, paths)
            verdicts = cross_validate(candidates, len(single_paths), judge, self.folds, self.seed, theta_recorder.part())
            number = choose_on_paths(verdicts, [len(path.strengths) for path in paths])
            compared = alternatives([_name(choice) for path in single_paths for choice in path.strengths.values()], verdicts, number)
            paths, last = [single_paths[number]], theta_recorder.part(1, 2, latest=True)
        trained = self._best_along(paths, task.data, judge, last)
        compared = compared or trained.alternatives
        return Trained(
            architecture.at(trained.iterate),
            trained.verdict,
            theta_recorder.steps,
            trained.trouble,
            trained.settings,
            alternatives=compared,
        )

    def _path(self, name: str, choice: Mapping[str, object], problem: Problem, data: Dataset) -> "Path":
        """Return the path of strengths to try with the settings of ``choice``."""
        if self.l2 != "auto":
            return Path(self, name, problem, {self.l2: choice})
        posed = problem(data)
        loss, slope = posed.risk(np.zeros_like(posed.center) if posed.architecture.linear else self._start(posed))
        largest = dot(slope, slope) / loss if loss > 0 and np.any(slope) else 1.0
        strengths = [float(largest * power(10.0, -i / 2)) for i in range(STRENGTHS)]
        return Path(self, name, problem, {l2: {**choice, "l2": l2} for l2 in strengths})

    def _best_along(self, paths: Sequence["Path"], data: Dataset, judge: Judge[Theta], recorder: Recorder[Theta]) -> Trained[Theta]:
        """Train the candidates of ``paths``, and return the best, with remarks."""
        ends: list[tuple[Trained[Theta], Candidate]] = []

        def end(candidate: Candidate, part: Recorder[Theta]) -> Trained[Theta]:
            ends.append((candidate(part), candidate))
            return ends[-1][0]

        def along(path: Path, part: Recorder[Theta]) -> Trained[Theta]:
            return restarts([partial(end, candidate) for candidate in path.candidates(data, judge)], part, self.patience, rule=average)

        best_verdict = restarts([partial(along, path) for path in paths], recorder).verdict
        number = next(number for number, (trained, _) in enumerate(ends) if trained.verdict is best_verdict)
        best, candidate = ends[number]
        if len(ends) > 1:
            names, verdicts = [_name(candidate.choice) for _, candidate in ends], [trained.verdict for trained, _ in ends]
            best = replace(best, alternatives=alternatives(names, verdicts, number))
        trouble = best.trouble or self._remark(candidate.pose_problem()[0].at(candidate.l2), best.duality)
        return replace(best, trouble=trouble, settings=candidate.choice)


@dataclass(frozen=True, eq=False)
class Path:
    """Problems that differ only in strength, the strongest first; each strength comes with the settings that it stands for."""

    ranker: LargeMarginRanker
    name: str
    problem: Problem
    strengths: Mapping[float, Mapping[str, object]]

    def candidates(self, data: Dataset, judge: Judge[Theta] | None = None) -> list["Candidate"]:
        """Return the candidates on ``data``, in order; without a ``judge`` the objective alone decides."""

        @cache
        def pose_problem() -> tuple[RegularizedRisk, Theta]:
            problem = self.problem(data)
            return problem, self.ranker._start(problem)

        last = list(self.strengths)[-1]
        return [Candidate(self, pose_problem, l2, choice, judge or judge_by_objective, l2 == last) for l2, choice in self.strengths.items()]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A run that solves a problem at one strength, from the end of the previous candidate of the path if the solver can."""

    path: Path
    pose_problem: Callable[[], tuple[RegularizedRisk, Theta]]  #: returns the problem at any strength, and the start
    l2: float
    choice: Mapping[str, object]
    judge: Callable[[Theta, float], Verdict]
    last: bool  #: the last candidate of the path

    def __call__(self, recorder: Recorder[Theta]) -> Trained[Theta]:
        """Train, and return the best iterate."""
        ranker, (base_problem, start) = self.path.ranker, self.pose_problem()
        problem = base_problem.at(self.l2)
        optimizer = ranker._optimizer(problem)
        chain = self.path.name if problem.convex or isinstance(optimizer, ConcaveConvexBundle) else ""
        trained = Run(optimizer, problem, start, self.judge, ranker.max_iter, ranker.seed, ranker._stale, chain=chain)(recorder)
        if self.last:
            recorder.journal.entries.pop(recorder.shared_key(chain), None)
        return trained


def _towards_grades(threads: int, part: Part) -> list[Theta]:
    """Return the covariance of features with grades within queries, and with pairs, summed over wide blocks."""
    data = part.data
    grades = np.repeat(data.weights, data.sizes) * center(data.y, data.indptr)
    if data.preferences is not None:
        wins, losses = data.preferences.wins_and_losses(data.n_documents)
        grades += np.repeat(data.weights, data.sizes) * (wins - losses)
    return pull_backs(data, grades, threads)


def _name(choice: Mapping[str, object]) -> str:
    """Return the settings of a candidate in one line."""
    return ", ".join(f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}" for name, value in choice.items())


def _all_candidates(paths: Sequence[Path], data: Dataset) -> list[Candidate]:
    """Return the candidates of all ``paths``."""
    return [candidate for path in paths for candidate in path.candidates(data)]
