"""Who stands where: means over the queries that all methods share, intervals, tests and effort.

A method that failed on a division has no mean, for it would be one over other queries. While a comparison is not complete the
queries are those of the divisions that every method in the race has finished.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from exactrank.arrays import PerQuery
from exactrank.compare.results import DataSummary, Fit, Results
from exactrank.compare.statistics.pairs import Pair, all_pairs, letter, letters
from exactrank.compare.statistics.winning import winning_numbers
from exactrank.measures.bootstrap import bootstrap_intervals
from exactrank.measures.bound import means_over_queries

#: The test whose adjusted p-values make the marks of tables.
MARKING_TEST = "randomisation"
LEVEL = 0.05


@dataclass(frozen=True)
class Standing:
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
def standings(comparison: Results, dataset: str, measure: str) -> tuple[Standing, ...]:
    """All methods by one measure, in the order they were given."""
    shared = shared_values(comparison, dataset, measure)
    names = [method.name for method in comparison.methods]
    means, ends = _means(shared)
    better = letters(names, pairs(comparison, dataset, measure), test=MARKING_TEST, level=LEVEL)
    top = max(means.values(), default=np.nan)
    nothing = float("nan"), float("nan")
    return tuple(
        Standing(
            name,
            letter(number),
            means.get(name, np.nan),
            ends.get(name, nothing),
            _mean_over_folds([fit.train.get(measure) for fit in _fits(comparison, dataset, name)]),
            _mean_over_folds([fit.valid.get(measure) for fit in _fits(comparison, dataset, name)]),
            better[name],
            name in means and means[name] == top,
        )
        for number, name in enumerate(names)
    )


def efforts(comparison: Results, dataset: str) -> tuple[Effort, ...]:
    """What all methods took, in the order they were given."""
    of = len(_dataset(comparison, dataset).folds)
    return tuple(_effort(method.name, of, _fits(comparison, dataset, method.name)) for method in comparison.methods)


@lru_cache(maxsize=64)
def pairs(comparison: Results, dataset: str, measure: str) -> tuple[Pair, ...]:
    """Every method against every other one that comes after it."""
    shared = shared_values(comparison, dataset, measure)
    if len(shared.values) < 2:
        return ()
    return all_pairs(shared.values, weight=shared.weight, seed=int(comparison.run.get("seed", 0)))


def winning(comparison: Results, measure: str) -> dict[str, int]:
    """How often each method beats another one, over all data sets (Liu 2009)."""
    by_set = [standings(comparison, data.name, measure) for data in comparison.datasets]
    return winning_numbers({ours[0].method: [one.mean for one in ours] for ours in zip(*by_set, strict=True)})


@lru_cache(maxsize=64)
def shared_values(comparison: Results, dataset: str, measure: str) -> Shared:
    """The values query by query of the methods that did not fail, over the divisions that all of them have finished."""
    data = _dataset(comparison, dataset)
    found = {method.name: {fit.fold: fit for fit in _fits(comparison, dataset, method.name)} for method in comparison.methods}
    running = {name: fits for name, fits in found.items() if fits and not any(fit.failed for fit in fits.values())}
    folds = [fold for fold in data.folds if all(fold.name in fits for fits in running.values())]
    values = {
        name: np.array([v for fold in folds for v in fits[fold.name].test[measure]], np.float64) for name, fits in running.items() if folds
    }
    weight = [w for fold in folds for w in fold.test_weight or [1.0] * len(fold.test_qid)]
    return Shared(values, tuple(qid for fold in folds for qid in fold.test_qid), np.array(weight))


def _means(shared: Shared) -> tuple[dict[str, float], dict[str, tuple[float, float]]]:
    """Means of methods, and their intervals."""
    if not shared.values:
        return {}, {}
    table = np.stack(list(shared.values.values()))
    means = means_over_queries(table, shared.weight).tolist()
    ends = [(low, high) for low, high in bootstrap_intervals(table, shared.weight).tolist()]
    return dict(zip(shared.values, means, strict=True)), dict(zip(shared.values, ends, strict=True))


def _effort(name: str, of: int, fits: list[Fit]) -> Effort:
    return Effort(
        name,
        sum(not fit.failed for fit in fits),
        of,
        sum(fit.seconds for fit in fits),
        sum(trial.seconds for fit in fits for trial in fit.trials),
        max((fit.memory for fit in fits), default=0),
        _reasons(fits, of),
    )


def _reasons(fits: list[Fit], of: int) -> str:
    """Why fits failed, and where."""
    folds: dict[str, list[str]] = {}
    for fit in fits:
        if fit.failed:
            folds.setdefault(fit.failed, []).append(fit.fold)
    return "; ".join(reason if len(where) == of else f"{', '.join(where)}: {reason}" for reason, where in folds.items())


def _fits(comparison: Results, dataset: str, method: str) -> list[Fit]:
    return [fit for fit in comparison.fits if fit.dataset == dataset and fit.method == method]


def _dataset(comparison: Results, name: str) -> DataSummary:
    return next(data for data in comparison.datasets if data.name == name)


def _mean_over_folds(means: list[float | None]) -> float:
    known = [mean for mean in means if mean is not None]
    return float(np.mean(known)) if known else float("nan")
