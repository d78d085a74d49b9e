"""Standings of the methods: means over the queries that all methods share, intervals, tests and effort.

A method that failed on a division has no mean, since its mean would be over other queries. While a comparison is not complete, the
queries are those of the divisions that every method has finished.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from exactrank._support.arrays import PerQuery
from exactrank.compare.corrected import CORRECTED_TEST, MachineValues, machine_values
from exactrank.compare.results import Fit, Results
from exactrank.compare.statistics import LEVEL, MARKING_TEST, Pair, all_pairs, letter, letters, winning_numbers
from exactrank.errors import DataError
from exactrank.measures.bootstrap import bootstrap_intervals
from exactrank.measures.bound import means_over_queries
from exactrank.measures.machine_grades import CorrectedMean


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
    corrected: CorrectedMean | None = None  #: the mean, if a machine graded more queries


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
    machine: MachineValues | None = None  #: by a machine's grades of more queries

    @cached_property
    def corrections(self) -> Mapping[str, CorrectedMean | None]:
        """The corrected mean of each method; None if too few queries count, and nothing without a machine's grades."""
        return {} if self.machine is None else {name: self.machine.mean(self.values, self.weight, name) for name in self.values}

    @cached_property
    def means(self) -> Mapping[str, tuple[float, tuple[float, float]]]:
        """The mean of each method with its 95% interval: by the bootstrap, or both by the correction."""
        if self.machine is not None:
            none = math.nan, (math.nan, math.nan)
            return {name: none if mean is None else (mean.mean, mean.interval) for name, mean in self.corrections.items()}
        if not self.values:
            return {}
        table = np.stack(list(self.values.values()))
        means, intervals = means_over_queries(table, self.weight).tolist(), bootstrap_intervals(table, self.weight).tolist()
        return {name: (mean, (low, high)) for name, mean, (low, high) in zip(self.values, means, intervals, strict=True)}


@lru_cache(maxsize=64)
def standings(comparison: Results, dataset: str, measure: str) -> tuple[MethodStanding, ...]:
    """Return the standing of each method by one measure, in the order of the methods."""
    shared = shared_values(comparison, dataset, measure)
    names = [method.name for method in comparison.methods]
    better = letters(names, pairs(comparison, dataset, measure), test=marking_test(comparison), level=LEVEL)
    top = max((mean for mean, _ in shared.means.values()), default=np.nan)
    rows = []
    for number, name in enumerate(names):
        fits = _fits(comparison, dataset, name)
        by_part = [[v for fit in fits if (v := getattr(fit, part).get(measure)) is not None] for part in ("train", "valid")]
        train, valid = (float(np.mean(values)) if values else np.nan for values in by_part)
        mean, interval = shared.means.get(name, (np.nan, (np.nan, np.nan)))
        standing = MethodStanding(name, letter(number), mean, interval, train, valid, better[name], mean == top)
        rows.append(replace(standing, corrected=shared.corrections.get(name)))
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
    seed = int(comparison.run.get("seed", 0))
    if shared.machine is not None:
        return shared.machine.pairs(shared.values, shared.weight, seed)
    return all_pairs(shared.values, weight=shared.weight, seed=seed)


def marking_test(comparison: Results) -> str:
    """Return the test whose adjusted p-values decide the marks of tables."""
    return MARKING_TEST if all(data.machine is None for data in comparison.datasets) else CORRECTED_TEST


def machine_note(comparison: Results, dataset: str, measure: str) -> str:
    """Return sentences on what a machine's grades are worth; empty without them."""
    machine = next(data.machine for data in comparison.datasets if data.name == dataset)
    if machine is None:
        return ""
    means = [mean for mean in shared_values(comparison, dataset, measure).corrections.values() if mean is not None]
    worths = sorted(mean.worth for mean in means)
    agreement = "" if machine.kappa is None else f" People and the machine agree with weighted kappa {machine.kappa:.3f}."
    if not worths:
        return f"Too few queries count for a correction by the machine's grades.{agreement}"
    queries, ends = means[0].human_queries, [f"{worths[0]:,.0f}", f"{worths[-1]:,.0f}"]
    worth = " to ".join(dict.fromkeys(ends))
    return (
        f"Means and differences are corrected by a machine's grades of {len(machine.further_qid):,} further queries: as good as {worth}"
        f" queries graded by people; there are {queries:,}.{agreement}"
    )


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
    data = next(data for data in comparison.datasets if data.name == dataset)
    folds = [fold for fold in data.folds if all(fold.name in by_fold for by_fold in running.values())]
    fits_of = {name: [by_fold[fold.name] for fold in folds] for name, by_fold in running.items() if folds}
    values = {name: np.array([v for fit in of_method for v in fit.test[measure]], np.float64) for name, of_method in fits_of.items()}
    weight = [w for fold in folds for w in fold.test_weight or [1.0] * len(fold.test_qid)]
    qid = tuple(qid for fold in folds for qid in fold.test_qid)
    return SharedValues(values, qid, np.array(weight), machine_values(data, fits_of, measure))


def _fits(comparison: Results, dataset: str, method: str) -> list[Fit]:
    return [fit for fit in comparison.fits if fit.dataset == dataset and fit.method == method]
