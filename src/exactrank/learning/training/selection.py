"""Selection among candidates, for all rankers, by rules that are robust against noise.

Held-out queries (validation data, or folds) select, and there are few of them. With weights w of sum 1, candidates a and b differ by

    d = sum_q w_q d_q,    d_q = value_q(a) - value_q(b),    e^2 = n / (n - 1) sum_q w_q^2 (d_q - d)^2           (1)

where e is the standard error of d, over the n queries that count. The maximum of many nearly equal means is a matter of luck, so

- steps and trees count by the mean of their value and those of the `WINDOW` - 1 steps before, and the best is kept (`StepChoice`);
- among strengths, bootstrap samples of the queries each choose one, and the average of their positions is taken (`average`);
- candidates without such an order (starts, learning rates, phases, bounds) are compared in turn: another must be better than the one that
  is kept by more than `MARGIN` standard errors (`choose`). So the kept one is worse than the best by no more than that.

benchmarks/choose_selection.py compares these rules with others on training queries. A margin of one standard error had the lower mean for
eight of nine rankers, clearly for trees, where any margin does harm: it prefers models that fit too little. Averages do not.

If the objective or the training data selects, there is no such noise, and the first of equally good candidates is kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import PerQuery
from exactrank._support.numerics import dot, matmul
from exactrank._support.serialize import storable
from exactrank._support.tables import Tabular, Values, by_column
from exactrank.data.folds import bootstrap_counts
from exactrank.learning.training.progress import Alternative, Verdict
from exactrank.measures.bound import means_over_queries

C = TypeVar("C")
#: A candidate must be better by this number of standard errors to replace an earlier one.
MARGIN = 0.25
#: The number of consecutive steps by which a step is evaluated.
WINDOW = 3
#: The number of bootstrap samples of the queries that choose a strength; with 0 `choose` is used.
SAMPLES = 200
#: Sums that differ by less than this share are equal up to rounding.
ROUNDING = 1e-12


def standard_error(a: Verdict, b: Verdict) -> float:
    """Return e of (1); NaN if the values of the queries are not known, 0 if fewer than two queries count."""
    if a.values is None or b.values is None:
        return np.nan
    with np.errstate(invalid="ignore"):
        differences = a.values - b.values
    weights = np.ones(len(differences)) if a.weights is None else a.weights
    counted = ~np.isnan(differences) & (weights > 0)
    differences, weights = differences[counted], weights[counted]
    if len(weights) < 2:
        return 0.0
    weights = weights / weights.max()  # whose sum does not overflow
    shares = weights / weights.sum()
    deviations = shares * (differences - dot(shares, differences))
    return float(np.sqrt(len(shares) / (len(shares) - 1) * dot(deviations, deviations)))


def is_better(candidate: Verdict, present: Verdict) -> bool:
    """Return whether ``candidate`` exceeds the ``present`` one by more than the margin."""
    difference = candidate.goodness - present.goodness
    return difference > 0 and not difference <= MARGIN * standard_error(candidate, present)


@storable
@dataclass(frozen=True, eq=False)
class Choice(Generic[C]):
    """The kept candidate of those so far, and the verdict on the one with the best mean."""

    candidate: C
    verdict: Verdict
    number: int  #: of the candidate
    best: Verdict
    best_number: int

    @classmethod
    def of(cls, candidate: C, verdict: Verdict, number: int = 0) -> "Choice[C]":
        """Return the choice of the only candidate so far."""
        return cls(candidate, verdict, number, verdict, number)

    def after(self, candidate: C, verdict: Verdict, number: int = 0) -> "Choice[C]":
        """Return the choice after one more candidate, which is kept if it is better by more than the margin."""
        if not verdict.goodness > self.best.goodness:
            return self
        if is_better(verdict, self.verdict):
            return Choice.of(candidate, verdict, number)
        return replace(self, best=verdict, best_number=number)


@storable
@dataclass(frozen=True, eq=False)
class StepChoice(Choice[C]):
    """The kept iterate of the steps so far; its goodness is the mean of ``recent``, and ``best`` is the best single step."""

    recent: tuple[float, ...] = ()  #: the goodness of the last steps on held-out queries

    @classmethod
    def of(cls, candidate: C, verdict: Verdict, number: int = 0) -> "StepChoice[C]":
        """Return the choice of the only step so far."""
        return cls(candidate, verdict, number, verdict, number, () if verdict.values is None else (verdict.goodness,))

    def after(self, candidate: C, verdict: Verdict, number: int = 0) -> "StepChoice[C]":
        """Return the choice after one more step."""
        recent = () if verdict.values is None else (*self.recent, verdict.goodness)[-WINDOW:]
        smooth = replace(verdict, goodness=float(np.mean(recent))) if recent else verdict
        best, best_number = (verdict, number) if verdict.goodness > self.best.goodness else (self.best, self.best_number)
        if smooth.goodness > self.verdict.goodness:
            return StepChoice(candidate, smooth, number, best, best_number, recent)
        return replace(self, best=best, best_number=best_number, recent=recent)


def choose(verdicts: Sequence[Verdict]) -> Choice[int]:
    """Return the choice among candidates without an order; the first has precedence."""
    choice = Choice.of(0, verdicts[0])
    for number, verdict in enumerate(verdicts[1:], 1):
        choice = choice.after(number, verdict, number)
    return choice


def average(verdicts: Sequence[Verdict]) -> Choice[int]:
    """Return the choice among candidates on a path, where neighbors are alike: the average of the choices of samples of the queries.

    Candidates that are equally good in a sample share it.
    """
    if not SAMPLES or any(verdict.values is None for verdict in verdicts):
        return choose(verdicts)
    values, weights = np.nan_to_num(np.array([verdict.values for verdict in verdicts])), verdicts[0].weights
    weights = np.ones(values.shape[1]) if weights is None else weights / (weights.max() or 1.0)
    rng, position = np.random.default_rng(0), 0.0
    for _ in range(SAMPLES):
        sums = matmul(values, weights * bootstrap_counts(len(weights), rng))
        position += float(np.flatnonzero(sums >= sums.max() - ROUNDING * abs(sums.max())).mean())
    number, best = round(position / SAMPLES), int(np.argmax([verdict.goodness for verdict in verdicts]))
    return Choice(number, verdicts[number], number, verdicts[best], best)


def choose_on_paths(verdicts: Sequence[Verdict], lengths: Sequence[int]) -> int:
    """Return the number of the candidate to keep, on several paths with these ``lengths`` one after the other."""
    ends: list[int] = np.cumsum(lengths).tolist()
    numbers = [end - length + average(verdicts[end - length : end]).number for end, length in zip(ends, lengths, strict=True)]
    return numbers[choose([verdicts[number] for number in numbers]).number]


def verdicts_by(values: npt.NDArray[np.float64], weights: PerQuery) -> list[Verdict]:
    """Return the verdict on each row of ``values``, one per query."""
    means = means_over_queries(values, weights).tolist()
    return [Verdict(mean, None, mean, row, weights) for mean, row in zip(means, values, strict=True)]


def alternatives(names: Sequence[str], verdicts: Sequence[Verdict], selected: int) -> tuple[Alternative, ...]:
    """Return the distance of each candidate from the best, for reports; nothing unless held-out queries select."""
    best = max(verdicts, key=lambda verdict: verdict.goodness)
    if best.values is None:
        return ()
    return tuple(
        Alternative(name, verdict.goodness, verdict.goodness - best.goodness, standard_error(best, verdict), number == selected)
        for number, (name, verdict) in enumerate(zip(names, verdicts, strict=True))
    )


@dataclass(frozen=True, repr=False)
class Selection(Tabular):
    """The candidates of a fit from which held-out queries chose, with their means and distances from the best.

    >>> near, best = Alternative("l2=10", 0.8125, -0.0005, 0.0011, True), Alternative("l2=1", 0.813, 0.0, 0.0, False)
    >>> Selection((near, best), "nDCG@10")
    Selection(chose l2=10 (held-out nDCG@10 0.8125; best 0.8130 at l2=1: difference 0.0005, standard error 0.0011))
    """

    candidates: tuple[Alternative, ...]
    measure: str

    @property
    def choice(self) -> Alternative | None:
        """The selected candidate, or None if there was nothing to choose."""
        return next((candidate for candidate in self.candidates if candidate.selected), None)

    def __str__(self) -> str:
        choice = self.choice
        if choice is None:
            return "nothing to choose"
        best, comparison = max(self.candidates, key=lambda candidate: candidate.mean), ""
        if choice.mean < best.mean:
            noise = f"difference {best.mean - choice.mean:.4f}, standard error {choice.error:.4f}"
            comparison = f"; best {best.mean:.4f} at {best.name}: {noise}"
        return f"chose {choice.name} (held-out {self.measure} {choice.mean:.4f}{comparison})"

    def __repr__(self) -> str:
        return f"Selection({self})"

    def _columns(self) -> dict[str, Values]:
        return by_column(self.candidates, "name", "mean", "difference", "error", "selected")
