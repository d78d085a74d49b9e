"""Standings of the methods: means over the queries that all methods share, intervals, tests and effort.

A method that failed on a division has no mean, since its mean would be over other queries. While a comparison is not complete, the
queries are those of the divisions that every method has finished.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from exactrank._support.arrays import PerQuery
from exactrank.compare.results import Fit, Results
from exactrank.compare.statistics import Pair, all_pairs, letter, letters, winning_numbers
from exactrank.errors import DataError
from exactrank.measures.bound import means_over_queries
from exactrank.measures.evaluate import bootstrap_intervals

#: The test whose adjusted p-values decide the marks of tables.
MARKING_TEST = "randomization"
LEVEL = 0.05


@dataclass(frozen=True)
class MethodStanding:
    """A method by one measure on one data set; NaN for a missing value."""

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
    """The cost of a method on one data set: seconds are sums over its divisions, memory is the maximum."""

    method: str
    folds: int  #: finished
    of: int
    seconds: float  #: of the final fits
    tuning: float  #: seconds of all trials
    memory: int
    failed: str


@dataclass(frozen=True, eq=False)
class SharedValues:
    """The values of the methods by one measure, query by query, on the queries that all of them have."""

    values: Mapping[str, PerQuery]
    qid: tuple[str, ...]
    weight: PerQuery


@lru_cache(maxsize=64)
def standings(comparison: Results, dataset: str, measure: str) -> tuple[MethodStanding, ...]:
    """Return the standing of each method by one measure, in the order of the methods."""
    shared = shared_values(comparison, dataset, measure)
    names = [method.name for method in comparison.methods]
    better = letters(names, pairs(comparison, dataset, measure), test=MARKING_TEST, level=LEVEL)
    means: dict[str, float] = {}
    intervals: dict[str, tuple[float, float]] = {}
    if shared.values:
        table = np.stack(list(shared.values.values()))
        means = dict(zip(shared.values, means_over_queries(table, shared.weight).tolist(), strict=True))
        intervals = dict(zip(means, map(tuple, bootstrap_intervals(table, shared.weight).tolist()), strict=True))
    top = max(means.values(), default=np.nan)
    rows = []
    for number, name in enumerate(names):
        fits = _fits(comparison, dataset, name)
        by_part = [[v for fit in fits if (v := getattr(fit, part).get(measure)) is not None] for part in ("train", "valid")]
        train, valid = (float(np.mean(values)) if values else np.nan for values in by_part)
        mean, interval = means.get(name, np.nan), intervals.get(name, (np.nan, np.nan))
        rows.append(MethodStanding(name, letter(number), mean, interval, train, valid, better[name], name in means and mean == top))
    return tuple(rows)


def efforts(comparison: Results, dataset: str) -> tuple[Effort, ...]:
    """Return the effort of each method, in the order of the methods."""
    of = len(next(data.folds for data in comparison.datasets if data.name == dataset))
    rows = []
    for method in comparison.methods:
        fits = _fits(comparison, dataset, method.name)
        folds_by_reason: dict[str, list[str]] = {}
        for fit in fits:
            if fit.failed:
                folds_by_reason.setdefault(fit.failed, []).append(fit.fold)
        reasons = [reason if len(folds) == of else f"{', '.join(folds)}: {reason}" for reason, folds in folds_by_reason.items()]
        rows.append(
            Effort(
                method.name,
                folds=sum(not fit.failed for fit in fits),
                of=of,
                seconds=sum(fit.seconds for fit in fits),
                tuning=sum(trial.seconds for fit in fits for trial in fit.trials),
                memory=max((fit.memory for fit in fits), default=0),
                failed="; ".join(reasons),
            )
        )
    return tuple(rows)


@lru_cache(maxsize=64)
def pairs(comparison: Results, dataset: str, measure: str) -> tuple[Pair, ...]:
    """Compare every method with those after it."""
    shared = shared_values(comparison, dataset, measure)
    return all_pairs(shared.values, weight=shared.weight, seed=int(comparison.run.get("seed", 0)))


def differences(comparison: Results, dataset: str, measure: str, baseline: str | None = None) -> tuple[Pair, ...]:
    """Compare each other method with ``baseline``, which is ``second``: above 0 is better than the baseline.

    The baseline is by default the comparison's own; if it has no values, the first method that has. The p-values are adjusted over all
    pairs of methods, so they agree with the letters of tables.
    """
    names = list(shared_values(comparison, dataset, measure).values)
    base = comparison.baseline if baseline is None else baseline
    if base not in {method.name for method in comparison.methods}:
        raise DataError(f"no method is called {base!r}; the methods are {', '.join(method.name for method in comparison.methods)}")
    if base not in names:
        base = next(iter(names), "")
    with_base = [pair for pair in pairs(comparison, dataset, measure) if base in (pair.first, pair.second)]
    against_base = [pair if pair.second == base else pair.opposite for pair in with_base]
    return tuple(sorted(against_base, key=lambda pair: names.index(pair.first)))


def winning(comparison: Results, measure: str) -> dict[str, int]:
    """Count how often each method beats another, over all data sets (Liu 2009)."""
    by_set = [standings(comparison, data.name, measure) for data in comparison.datasets]
    return winning_numbers({rows[0].method: [row.mean for row in rows] for rows in zip(*by_set, strict=True)})


@lru_cache(maxsize=64)
def shared_values(comparison: Results, dataset: str, measure: str) -> SharedValues:
    """Return the values, query by query, of the methods that did not fail, on the divisions that all of them have finished."""
    fits = {method.name: {fit.fold: fit for fit in _fits(comparison, dataset, method.name)} for method in comparison.methods}
    running = {name: by_fold for name, by_fold in fits.items() if by_fold and not any(fit.failed for fit in by_fold.values())}
    divisions = next(data.folds for data in comparison.datasets if data.name == dataset)
    folds = [fold for fold in divisions if all(fold.name in by_fold for by_fold in running.values())]
    values = {
        name: np.array([v for fold in folds for v in by_fold[fold.name].test[measure]], np.float64)
        for name, by_fold in running.items()
        if folds
    }
    weight = [w for fold in folds for w in fold.test_weight or [1.0] * len(fold.test_qid)]
    return SharedValues(values, tuple(qid for fold in folds for qid in fold.test_qid), np.array(weight))


def _fits(comparison: Results, dataset: str, method: str) -> list[Fit]:
    return [fit for fit in comparison.fits if fit.dataset == dataset and fit.method == method]
