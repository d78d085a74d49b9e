"""The best cutoff of a ranking, by an exact sweep: `er.cutoff`.

As a threshold falls, documents are added one after the other, and the mean of a goal over queries changes only where one is added: a step
function with at most one step per document. A sweep evaluates all of them (`src/native/cutoffs/threshold_sweep.hpp`), so the best
threshold is the best there is, not the best of a grid. Of a threshold and a depth together all pairs are tried. Averages are over queries
(macro), each by its weight; micro counts the documents of all queries together.

**A guarantee of recall.** The best threshold of the past need not suffice for the next query. Conformal risk control (Angelopoulos, Bates,
Fisch, Lei & Schuster 2024, theorem 1) makes it so: let L_i(t) be losses of n queries, at most 1, that do not fall as t rises. Then

    t = max{t: (L_1(t) + ... + L_n(t) + 1) / (n + 1) <= a}      =>      E L_{n+1}(t) <= a                                      (1)

for the next query, over both the n queries and the next one, if all n + 1 are exchangeable: a random sample of the same traffic, say. No
distribution is assumed, and the model may be as bad as it likes. The 1 in (1) is the correction for finite n: the next query may be lost.
``recall >= 0.9`` takes L = 1 - recall and a = 0.1: recall is 0.9 or more in the mean. ``recall >= 0.9 with probability 0.95`` takes
L = [recall < 0.9] and a = 0.05: the next query has that recall with that probability. Queries without relevant documents are left out, so
the guarantee is for queries with one. (1) needs n >= 1/a - 1 queries even if all is places; where no threshold satisfies it there is an
error and no cutoff, so that the probability to have a cutoff *and* a loss is at most a.

**What to expect on new queries.** The value at the best threshold is flattered, since it was chosen by it. Cross-validation finds the
threshold without a fold of the queries and applies it to them.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arguments import check_count
from exactrank._support.arrays import Boundaries, Floats, PerDocument, PerQuery
from exactrank.cutoffs.cutoff import BOTH, BY, LARGEST, Cutoff, CutoffSweep, Mask, comparable, ranks
from exactrank.cutoffs.goals import CutoffGoal, RecallGoal, parse_cutoff_goal
from exactrank.data.folds import deal_folds
from exactrank.data.ranking_data import RankingData, check_data
from exactrank.errors import DataError, IncompatibleError, SettingError
from exactrank.measures.bootstrap import bootstrap_intervals
from exactrank.measures.bound import means_over_queries
from exactrank.measures.evaluate import Predicts, checked_scores

AVERAGES = ("macro", "micro")
#: Values closer than this are equal: sums differ by their rounding.
SAME_VALUE = 1e-12


def cutoff(
    data: RankingData,
    scores: npt.ArrayLike | Predicts,
    goal: str | CutoffGoal = "F1",
    by: str = "score",
    *,
    average: str = "macro",
    rel: float = 1,
    folds: int = 5,
    seed: int = 0,
) -> Cutoff:
    """Find the best cutoff of a ranking: which documents to show or to pass on.

    ``scores`` are one per row of ``data``, or a model; -inf is a document that was not retrieved. ``goal`` is ``"F1"`` (or ``"F2"``, ...),
    ``"utility(gain=1, cost=0.2)"`` per relevant and other document, or a guarantee, ``"recall >= 0.9"`` or
    ``"recall >= 0.9 with probability 0.95"``, by the smallest cutoff that has it. ``by`` is what the threshold is of: ``"score"``,
    ``"z-score"``, ``"softmax"``, ``"margin"``, ``"depth"``, or ``"score and depth"``. ``average="macro"`` is the mean over queries,
    ``"micro"`` counts all documents together. Documents with a grade of at least ``rel`` are relevant.

    >>> data = RankingData.from_arrays(None, [1, 1, 0, 0, 1, 0], qid=[1, 1, 1, 1, 2, 2])
    >>> er_cutoff = cutoff(data, [0.9, 0.8, 0.3, 0.1, 0.7, 0.2], folds=0)
    >>> er_cutoff
    Cutoff(keeps score >= 0.5; 1.5 documents per query; F1: 1.0000)
    """
    check_data(data)
    aim, problem = parse_cutoff_goal(goal), _problem(data, scores, rel)
    if not isinstance(by, str) or by not in BY:
        raise SettingError(f"by={by!r}: expected one of {', '.join(BY)}")
    if not isinstance(average, str) or average not in AVERAGES:
        raise SettingError(f"average={average!r}: expected macro, the mean over queries, or micro")
    check_count("folds", folds, 0)
    check_count("seed", seed, 0)
    _check_combination(aim, by, average, data)
    held_out = _fold_weights(problem, aim, folds, seed)
    best = problem.search(aim, by, average, [problem.weights_for(aim), *(weights for weights, _ in held_out)])
    place, fold_places = best[0], best[1:]
    if place is None:
        raise problem.unreachable(aim, by)
    mask = problem.mask(place, by)
    value = problem.value(aim, average, mask)
    estimate = _held_out_value(problem, aim, by, average, [(other, fold) for other, (_, fold) in zip(fold_places, held_out, strict=True)])
    return Cutoff(
        by, place.threshold, place.depth, str(aim), average, float(rel), value, *estimate, (place.low, place.high),
        float(np.count_nonzero(mask)) / data.n_queries, data.n_queries, place.sweep,
    )  # fmt: skip


@dataclass(frozen=True)
class _Place:
    """A threshold with its value in the sweep; documents of the data lie below ``low`` or from ``high`` on."""

    value: float
    threshold: float
    low: float
    high: float
    depth: int | None
    sweep: CutoffSweep | None


@dataclass(frozen=True)
class _Problem:
    """Scores and relevance of all documents, in grouped order."""

    scores: PerDocument
    useful: Mask
    indptr: Boundaries
    weight: PerQuery

    @property
    def relevant(self) -> PerQuery:
        """The number of relevant documents of each query."""
        return np.add.reduceat(self.useful, self.indptr[:-1], dtype=np.int64).astype(np.float64)

    def weights_for(self, goal: CutoffGoal) -> PerQuery:
        """Return the weights of the queries that count."""
        return np.where(self.relevant > 0, self.weight, 0.0) if isinstance(goal, RecallGoal) else self.weight

    def search(self, goal: CutoffGoal, by: str, average: str, weights: list[PerQuery]) -> list[_Place | None]:
        """Return the best place for each of several weights of the queries; None where there is none."""
        places: list[_Place | None] = [None] * len(weights)
        x = comparable(self.scores, self.indptr, "score" if by == BOTH else by)
        rank = ranks(self.scores, self.indptr) if by == BOTH else None
        depths = (None,) if rank is None else range(1, int(np.diff(self.indptr).max()) + 1)
        for depth in depths:
            rows = np.isfinite(x) if rank is None or depth is None else np.isfinite(x) & (rank <= depth)
            sweeps = [self.pool(x, rows, weight, goal) for weight in weights] if average == "micro" else [self.sweep(x, rows, goal)]
            for number, weight in enumerate(weights):
                sweep, before = sweeps[number % len(sweeps)], places[number]
                place = sweep.best(np.ones(1) if average == "micro" else weight, by, depth, with_sweep=number == 0)
                if place is not None and (before is None or place.value > before.value + SAME_VALUE):
                    places[number] = place
        return places

    def sweep(self, x: Floats, rows: Mask, goal: CutoffGoal) -> "_Sweep":
        """Return the sweep of the selected rows."""
        return _Sweep.of(x[rows], self.useful[rows], _boundaries(rows, self.indptr), goal.totals(self.relevant), goal)

    def pool(self, x: Floats, rows: Mask, weight: PerQuery, goal: CutoffGoal) -> "_Sweep":
        """Return the sweep of the selected rows of the queries with a weight, as if they were one query."""
        counts = rows & np.repeat(weight > 0, np.diff(self.indptr))
        total = np.array([float(self.relevant[weight > 0].sum())])
        return _Sweep.of(x[counts], self.useful[counts], np.array([0, np.count_nonzero(counts)]), total, goal)

    def mask(self, place: _Place, by: str) -> Mask:
        """Return which documents a place keeps."""
        return Cutoff(by, place.threshold, place.depth, "", "", 1, 0, None, None, (0, 0), 0, 0).keep(self.scores, self.indptr)

    def values(self, goal: CutoffGoal, mask: Mask) -> PerQuery:
        """Return the value of each query if the documents of ``mask`` are kept."""
        documents, hits = (
            np.add.reduceat(rows, self.indptr[:-1], dtype=np.int64).astype(np.float64) for rows in (mask, mask & self.useful)
        )
        return goal.values(documents, hits, self.relevant)

    def value(self, goal: CutoffGoal, average: str, mask: Mask) -> float:
        """Return the average."""
        if average == "micro":
            counts = (np.array([float(np.count_nonzero(rows))]) for rows in (mask, mask & self.useful, self.useful))
            return float(goal.values(*counts)[0])
        return float(means_over_queries(self.values(goal, mask)[None], self.weights_for(goal))[0])

    def unreachable(self, goal: CutoffGoal, by: str) -> IncompatibleError:
        """Return the error for a guarantee that no cutoff gives."""
        assert isinstance(goal, RecallGoal)
        n = int(np.count_nonzero(self.relevant))
        largest = self.value(goal, "macro", np.isfinite(self.scores)) * n / (n + 1)
        what = "a recall" if goal.probability is None else f"a probability of a recall of {goal.level:g}"
        return IncompatibleError(
            f"{goal}: no cutoff on the {by} guarantees it; with all retrieved documents of {n:,} queries, {what} of {largest:.4g} can be"
            " guaranteed; ask for less, retrieve more documents, or judge more queries"
        )


@dataclass(frozen=True)
class _Sweep:
    """A sweep of the thresholds on one number, for one goal."""

    kernel: _core.ThresholdSweep
    thresholds: Floats  #: the largest first
    total: PerQuery
    goal: CutoffGoal

    @classmethod
    def of(cls, x: Floats, useful: Mask, indptr: Boundaries, total: PerQuery, goal: CutoffGoal) -> "_Sweep":
        """Sort the documents."""
        kernel = _core.ThresholdSweep(np.ascontiguousarray(x), useful.astype(np.uint8), np.asarray(indptr, np.int64))
        return cls(kernel, kernel.thresholds(), total, goal)

    def best(self, weights: PerQuery, by: str, depth: int | None, with_sweep: bool) -> _Place | None:
        """Return the place of the largest value, or the first that has a guarantee, by these weights of the queries."""
        values = self.kernel.sums(*self.goal.kernel, self.total, weights) / float(weights.sum())
        if isinstance(self.goal, RecallGoal):
            n = float(np.count_nonzero(weights))
            reached = np.flatnonzero(((1 - values) * n + 1) / (n + 1) <= self.goal.risk + SAME_VALUE)
            if not len(reached):
                return None
            count = int(reached[0])
        else:
            count = int(np.argmax(values >= values.max() - SAME_VALUE))
        ends = np.concatenate([[LARGEST], self.thresholds[max(count - 1, 0) : count + 1], [-LARGEST]])
        high, low = (ends[0], ends[1]) if count == 0 else (ends[1], ends[2])
        threshold = _between(float(low), float(high), exact=isinstance(self.goal, RecallGoal))
        if by == "depth" and count:
            depth, threshold = -round(float(high)), -LARGEST
            low = high = float(depth)
        sweep = CutoffSweep(self.thresholds[::-1], values[::-1]) if with_sweep else None
        return _Place(float(values[count]), threshold, float(low), float(high), depth, sweep)


def _between(low: float, high: float, exact: bool) -> float:
    """Return the threshold that keeps what ``high`` keeps, in the middle of the gap below; the ends of the scores are as far as they go."""
    if abs(low) == LARGEST or abs(high) == LARGEST:
        return -LARGEST if low == -LARGEST and not exact else high
    middle = high - (high - low) / 2
    return middle if low < middle and not exact else high


def _boundaries(rows: Mask, indptr: Boundaries) -> Boundaries:
    """Return the boundaries of the queries among the selected rows."""
    before = np.concatenate([[0], np.cumsum(rows)])
    return np.ascontiguousarray(before[indptr], np.int64)


def _problem(data: RankingData, scores: npt.ArrayLike | Predicts, rel: float) -> _Problem:
    numbers = data.group(checked_scores(data, scores.predict(data) if isinstance(scores, Predicts) else scores))
    wrong = np.isnan(numbers) | (numbers == np.inf)
    if wrong.any():
        raise DataError(
            f"a score of query {_query_of(data, wrong)!r} is {numbers[wrong][0]:g}; give numbers, or -inf for what was not retrieved"
        )
    if not np.isfinite(numbers).any():
        raise DataError("no document was retrieved: all scores are -inf")
    useful = data.y >= rel
    if not useful.any():
        raise DataError(f"no document is relevant: no grade is at least rel={rel:g}, the largest is {data.y.max():g}; give a smaller rel")
    return _Problem(numbers, useful, data.indptr, data.weights)


def _query_of(data: RankingData, wrong: Mask) -> str:
    return str(data.qid[int(np.searchsorted(data.indptr, np.flatnonzero(wrong)[0], "right")) - 1])


def _check_combination(goal: CutoffGoal, by: str, average: str, data: RankingData) -> None:
    has_weights = data.query_weight is not None and len(np.unique(data.query_weight)) > 1
    if average == "micro" and has_weights:
        raise IncompatibleError("average='micro' counts documents, but the queries have weights; take macro")
    if isinstance(goal, RecallGoal):
        if has_weights:
            raise IncompatibleError(f"{goal} is guaranteed for exchangeable queries, but the queries have weights; leave the weights out")
        if average == "micro" or by == BOTH:
            alternative = "average='macro'" if average == "micro" else "by='score' or by='depth'"
            raise IncompatibleError(f"{goal} is guaranteed for a query, by a single threshold; give {alternative}")


def _fold_weights(problem: _Problem, goal: CutoffGoal, folds: int, seed: int) -> list[tuple[PerQuery, Mask]]:
    """Return for each fold the weights of the other queries, and which queries are in it."""
    weights = problem.weights_for(goal)
    number = deal_folds(len(weights), max(1, min(folds, len(weights))), seed)
    parts = [(np.where(number == fold, 0.0, weights), number == fold) for fold in range(int(number.max()) + 1)]
    return [(others, fold) for others, fold in parts if others.any()]


def _held_out_value(
    problem: _Problem, goal: CutoffGoal, by: str, average: str, places: list[tuple[_Place | None, Mask]]
) -> tuple[float | None, tuple[float, float] | None]:
    """Return the value of the held-out queries and its interval; None without folds, or if a fold has no cutoff."""
    if not places:
        return None, None
    mask, sizes = np.zeros(len(problem.scores), np.bool_), np.diff(problem.indptr)
    for place, fold in places:
        if place is None:
            return None, None
        mask |= problem.mask(place, by) & np.repeat(fold, sizes)
    value = problem.value(goal, average, mask)
    if average == "micro":
        return value, None
    ((low, high),) = bootstrap_intervals(problem.values(goal, mask)[None], problem.weights_for(goal)).tolist()
    return value, (low, high)
