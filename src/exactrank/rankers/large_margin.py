"""What large-margin rankers share: a loss, a regulariser whose strength the data may choose, and a solver that knows how far it is.

    least over theta of  J(theta) = lam/2 |theta - theta0|^2 + mean over queries of loss_q(theta)               (1)

with theta in units of standardised features. With ``lam="auto"`` the strengths

    lam_i = 10^(-i/2) lam_0,    lam_0 = |g|^2 / loss,    g the slope of the mean loss at 0                  (2)

are solved from the largest to the smallest, each from where the one before ended if the loss is convex, else from the same start,
and the best by validation data is kept. Without validation data the queries are dealt into folds, each of which judges the models
of the others.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from exactrank import _core
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError
from exactrank.measures.base import Measure
from exactrank.measures.parse import parse_measure
from exactrank.objectives.measured import Measured
from exactrank.objectives.regularised_risk import RegularisedRisk
from exactrank.objectives.within_query import centred
from exactrank.optimizers.base import Optimizer, State, Theta
from exactrank.rankers.base import Ranker
from exactrank.rankers.by_folds import by_folds
from exactrank.rankers.restarts import best_of, goodness
from exactrank.rankers.search_space import Range, Space
from exactrank.scorers.architecture import Architecture, LinearModel
from exactrank.scorers.base import Scorer
from exactrank.scorers.missing import Missing
from exactrank.threads import thread_count
from exactrank.training import Listener, Trained, train

#: How many strengths of (2) are tried.
STRENGTHS = 9
#: The start is so near to 0 that it raises the loss by no more than this share.
NUDGE = 1e-6

Problem = Callable[[RankingData], RegularisedRisk]  #: (1) on data, of which some queries may weigh nothing
Value = Callable[[Theta], float]


class Resumable(Optimizer[Any], Protocol):
    """An optimizer that can go on at another strength."""

    def resumed(self, problem: Any, state: Any, rng: np.random.Generator) -> Any:
        """The state for ``problem``, which differs only in strength from the one that ``state`` was reached on."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """Something to solve, and the settings that are chosen by choosing it."""

    chosen: Mapping[str, Any]
    problem: Problem
    lam: float
    first: bool  #: no other strength with the same settings comes before it


@dataclass(eq=False, repr=False)
class LargeMarginRanker(Ranker):
    """The base of large-margin rankers; a ranker adds its own settings as fields.

    Args:
        lam: The strength of the regulariser, against the mean loss of a query; "auto" lets validation data choose, or folds.
        tolerance: Training ends at this gap between primal and dual, relative to the primal.
        max_passes: At most so many steps of the solver for each strength.
        patience: With "auto" and validation data: end when so many strengths in turn have not improved on the best; by default all
            are tried.
        folds: With "auto" and no validation data: so many folds of queries choose.
    """

    space: ClassVar[Space] = {"lam": Range(1e-3, 100.0, log=True)}
    measure: str | Measure = "nDCG@10"
    lam: float | Literal["auto"] = "auto"
    tolerance: float = 1e-4
    max_passes: int = 500
    patience: int | None = None
    folds: int = 5
    seed: int = 0
    threads: int | None = None
    missing: Missing = "error"

    @abstractmethod
    def _problems(self, measure: Measure, architecture: Architecture) -> Sequence[tuple[Mapping[str, Any], Problem]]:
        """(1), at any strength, for each setting besides the strength that the data may choose."""

    @abstractmethod
    def _optimizer(self, problem: RegularisedRisk) -> Resumable:
        """What solves (1)."""

    def _architecture(self, data: RankingData) -> Architecture:
        return LinearModel().on(data)

    @property
    def _stale(self) -> int | None:
        """After how many steps without a better iterate training ends, where the solver does not know when it is done."""
        return None

    def _start(self, problem: RegularisedRisk) -> Theta:
        """Where the first strength starts: as good as at 0, where all documents tie and the order of the rows would rank them."""
        data, architecture = problem.data, problem.architecture
        if not architecture.linear:
            return architecture.initial(np.random.default_rng(self.seed))
        grades = np.repeat(data.weights, data.sizes) * centred(data.y, data.indptr)
        direction = _core.pulled_back(data.X, grades, thread_count(self.threads)) / architecture.scale
        loss, slope = problem.risk(problem.centre)
        steepness = float(np.linalg.norm(slope) * np.linalg.norm(direction))
        return problem.centre + (NUDGE * loss / steepness * direction if steepness > 0 else 0.0)

    def _remark(self, problem: RegularisedRisk, trained: Trained) -> str:
        """What to say of a solution that is of no use."""
        return ""

    def _scorer(self, data: RankingData, theta: Theta) -> Scorer:
        return self._architecture(data).at(theta)

    def _fit(self, data: RankingData, valid: RankingData | None, listener: Listener | None) -> tuple[Scorer, Trained]:
        self._check()
        measure, architecture = parse_measure(self.measure), self._architecture(data)
        paths = [self._path(settings, problem, data) for settings, problem in self._problems(measure, architecture)]
        candidates = [one for path in paths for one in path]

        def measured(part: RankingData) -> Measured:
            return Measured(measure.on(part, threads=self.threads), architecture)

        if valid is None and len(candidates) > 1 and data.n_queries > 1:
            solutions = partial(self._solutions, candidates)
            best = by_folds(solutions, len(candidates), measured(data), self.folds, self.seed, listener)
            if isinstance(best, Trained):  # interrupted
                return architecture.at(best.theta), best
            paths = [[replace(candidates[best], first=True)]]
        trained = self._best(paths, data, measured(data).value, None if valid is None else measured(valid).value, listener)
        return architecture.at(trained.theta), trained

    def _check(self) -> None:
        if self.lam != "auto" and (isinstance(self.lam, str) or not 0 < self.lam < np.inf):
            raise DataError(f'lam must be a number above 0 or "auto", got {self.lam!r}')
        if not 0 < self.tolerance < 1:
            raise DataError(f"tolerance must be a number between 0 and 1, got {self.tolerance}")
        for name, least in {"max_passes": 1, "patience": 1, "folds": 2}.items():
            given = getattr(self, name)
            if given is not None and given < least:
                raise DataError(f"{name} must be at least {least}, got {given}")

    def _path(self, settings: Mapping[str, Any], problem: Problem, data: RankingData) -> list[Candidate]:
        """The strengths to be tried with some settings."""
        if self.lam != "auto":
            return [Candidate(settings, problem, self.lam, first=True)]
        whole = problem(data)
        loss, slope = whole.risk(np.zeros_like(whole.centre) if whole.architecture.linear else self._start(whole))
        largest = float(slope @ slope) / loss if loss > 0 and np.any(slope) else 1.0
        lams = [float(largest * 10 ** (-i / 2)) for i in range(STRENGTHS)]
        return [Candidate({**settings, "lam": lam}, problem, lam, first=lam == lams[0] or not whole.convex) for lam in lams]

    def _solutions(self, candidates: Sequence[Candidate], data: RankingData) -> Iterator[Theta]:
        """What each candidate comes to on ``data``, one after the other."""
        walk = _Walk(self, data)
        for one in candidates:
            trained = walk.solved(one)
            if trained.interrupted:
                raise KeyboardInterrupt
            yield trained.theta

    def _best(
        self, paths: Sequence[Sequence[Candidate]], data: RankingData, value: Value, valid: Value | None, listener: Listener | None
    ) -> Trained:
        """The best iterate of all candidates."""
        walk, ends = _Walk(self, data), list[Trained]()

        def solved(candidate: Candidate, heard: Listener) -> Trained:
            ends.append(walk.solved(candidate, reported=value, valid=valid, listener=heard))
            return ends[-1]

        def along(path: Sequence[Candidate], heard: Listener) -> Trained:
            return best_of(len(path), lambda number, heard: solved(path[number], heard), heard, self.patience)

        best = best_of(len(paths), lambda number, heard: along(paths[number], heard), listener)
        won = max(ends, key=goodness)
        return replace(won, history=best.history, interrupted=best.interrupted)


class _Walk:
    """Candidates solved one after the other on ``data``: an optimizer that goes on from where it ended last."""

    def __init__(self, ranker: LargeMarginRanker, data: RankingData) -> None:
        self._ranker = ranker
        self._data = data
        self._problem: RegularisedRisk
        self._optimizer: Resumable
        self._start: Theta
        self._last: State | None

    def solved(self, candidate: Candidate, **told: Any) -> Trained:
        """The solution of ``candidate``."""
        ranker = self._ranker
        if candidate.first:
            self._problem, self._last = candidate.problem(self._data), None
            self._optimizer, self._start = ranker._optimizer(self._problem), ranker._start(self._problem)
        problem = self._problem.at(candidate.lam)
        rng = np.random.default_rng(ranker.seed)
        most, stale = ranker.max_passes, ranker._stale
        trained = train(self, problem, self._start, rng=rng, max_steps=most, by_objective=True, patience=stale, **told)
        return replace(trained, trouble=trained.trouble or ranker._remark(problem, trained), chosen=candidate.chosen)

    def init(self, problem: RegularisedRisk, theta: Theta, rng: np.random.Generator) -> State:
        """At ``theta``, or where the last problem was left."""
        optimizer, last = self._optimizer, self._last
        self._last = optimizer.init(problem, theta, rng) if last is None else optimizer.resumed(problem, last, rng)
        return self._last

    def step(self, problem: RegularisedRisk, state: State) -> State:
        """A step of the solver."""
        self._last = self._optimizer.step(problem, state)
        return self._last
