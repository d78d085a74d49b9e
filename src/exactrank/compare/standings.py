"""Who stands where: means over the queries that all methods share, intervals, tests and effort.

A method that failed on a division has no mean, since it would be over other queries. While a comparison is not complete, the
queries are those of the divisions that every method still in the race has finished.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from exactrank._support.arrays import PerQuery
from exactrank.compare.results import Fit, Results
from exactrank.compare.statistics.pairs import Pair, all_pairs, letter, letters, winning_numbers
from exactrank.errors import DataError
from exactrank.measures.bound import means_over_queries
from exactrank.measures.evaluate import bootstrap_intervals

#: The test whose adjusted p-values make the marks of tables.
MARKING_TEST = "randomization"
LEVEL = 0.05


@dataclass(frozen=True)
class MethodStanding:
    """A method by one measure on one data set; NaN where there is no value."""

    method: str
    letter: str
    mean: float
    interval: tuple[float, float]
    train: float
    valid: float
    better_than: str  #: the letters of the methods that it is significantly better than
    best: bool


@dataclass(frozen=True)
class Effort:
    """What a method took on one data set: seconds are sums over its divisions, memory is the most of any."""

    method: str
    folds: int  #: that are done
    of: int
    seconds: float  #: of the final fits
    tuning: float  #: seconds of all trials
    memory: int
    failed: str


@dataclass(frozen=True, eq=False)
class Shared:
    """The values of the methods by one measure, query by query, over the queries that all of them have."""

    values: Mapping[str, PerQuery]
    qid: tuple[str, ...]
    weight: PerQuery


@lru_cache(maxsize=64)
def standings(comparison: Results, dataset: str, measure: str) -> tuple[MethodStanding, ...]:
    """All methods by one measure, in the order they were given."""
    shared = shared_values(comparison, dataset, measure)
    names = [method.name for method in comparison.methods]
    better = letters(names, pairs(comparison, dataset, measure), test=MARKING_TEST, level=LEVEL)
    means: dict[str, float] = {}
    ends: dict[str, tuple[float, float]] = {}
    if shared.values:
        table = np.stack(list(shared.values.values()))
        means = dict(zip(shared.values, means_over_queries(table, shared.weight).tolist(), strict=True))
        ends = {name: (low, high) for name, (low, high) in zip(means, bootstrap_intervals(table, shared.weight).tolist(), strict=True)}
    top = max(means.values(), default=np.nan)
    found = []
    for number, name in enumerate(names):
        fits = _fits(comparison, dataset, name)
        known = [[v for fit in fits if (v := getattr(fit, part).get(measure)) is not None] for part in ("train", "valid")]
        train, valid = (float(np.mean(own)) if own else np.nan for own in known)
        mean, interval = means.get(name, np.nan), ends.get(name, (np.nan, np.nan))
        found.append(MethodStanding(name, letter(number), mean, interval, train, valid, better[name], name in means and mean == top))
    return tuple(found)


def efforts(comparison: Results, dataset: str) -> tuple[Effort, ...]:
    """What all methods took, in the order they were given."""
    of = len(next(data.folds for data in comparison.datasets if data.name == dataset))
    found = []
    for method in comparison.methods:
        fits = _fits(comparison, dataset, method.name)
        done, seconds = sum(not fit.failed for fit in fits), sum(fit.seconds for fit in fits)
        tuning = sum(trial.seconds for fit in fits for trial in fit.trials)
        memory = max((fit.memory for fit in fits), default=0)
        where: dict[str, list[str]] = {}
        for fit in fits:
            if fit.failed:
                where.setdefault(fit.failed, []).append(fit.fold)
        reasons = [reason if len(folds) == of else f"{', '.join(folds)}: {reason}" for reason, folds in where.items()]
        found.append(Effort(method.name, done, of, seconds, tuning, memory, "; ".join(reasons)))
    return tuple(found)


@lru_cache(maxsize=64)
def pairs(comparison: Results, dataset: str, measure: str) -> tuple[Pair, ...]:
    """Every method against every other one that comes after it."""
    shared = shared_values(comparison, dataset, measure)
    return all_pairs(shared.values, weight=shared.weight, seed=int(comparison.run.get("seed", 0)))


def differences(comparison: Results, dataset: str, measure: str, baseline: str | None = None) -> tuple[Pair, ...]:
    """Each other method against ``baseline``, which is ``second``, in the order they were given: above 0 is better than the baseline.

    The baseline is the comparison's own, or the first method with values where that one has none. The p-values are adjusted over all
    pairs of methods, so that they agree with the letters of tables.
    """
    names = list(shared_values(comparison, dataset, measure).values)
    wanted = comparison.baseline if baseline is None else baseline
    if wanted not in {method.name for method in comparison.methods}:
        raise DataError(f"no method is called {wanted!r}; the methods are {', '.join(method.name for method in comparison.methods)}")
    base = wanted if wanted in names else next(iter(names), "")
    found = (
        pair if pair.second == base else pair.reversed for pair in pairs(comparison, dataset, measure) if base in (pair.first, pair.second)
    )
    return tuple(sorted(found, key=lambda pair: names.index(pair.first)))


def winning(comparison: Results, measure: str) -> dict[str, int]:
    """How often each method beats another one, over all data sets (Liu 2009)."""
    by_set = [standings(comparison, data.name, measure) for data in comparison.datasets]
    return winning_numbers({ours[0].method: [one.mean for one in ours] for ours in zip(*by_set, strict=True)})


@lru_cache(maxsize=64)
def shared_values(comparison: Results, dataset: str, measure: str) -> Shared:
    """The values query by query of the methods that did not fail, over the divisions that all of them have finished."""
    found = {method.name: {fit.fold: fit for fit in _fits(comparison, dataset, method.name)} for method in comparison.methods}
    running = {name: fits for name, fits in found.items() if fits and not any(fit.failed for fit in fits.values())}
    divided = next(data.folds for data in comparison.datasets if data.name == dataset)
    folds = [fold for fold in divided if all(fold.name in fits for fits in running.values())]
    values = {
        name: np.array([v for fold in folds for v in fits[fold.name].test[measure]], np.float64) for name, fits in running.items() if folds
    }
    weight = [w for fold in folds for w in fold.test_weight or [1.0] * len(fold.test_qid)]
    return Shared(values, tuple(qid for fold in folds for qid in fold.test_qid), np.array(weight))


def _fits(comparison: Results, dataset: str, method: str) -> list[Fit]:
    return [fit for fit in comparison.fits if fit.dataset == dataset and fit.method == method]
