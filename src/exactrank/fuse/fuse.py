"""Hybrid search: the best weights for a sum of several systems' scores, found exactly (`xr.fuse`).

A hybrid search ranks documents by a weighted sum of what BM25, a dense retriever, a reranker ... make of them,

    s = sum_j w_j x_j,   x_j the scores of system j, made comparable (`normalise.py`).                   (1)

Between two sets of weights the measure is a step function that is known exactly, so for two systems one sweep over all weights
finds the global optimum, with proof; what is known beyond two is in `search.py` and `certificate.py`. A grid of
weights, which is how this is done elsewhere, sees a few points of that function.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from exactrank.arrays import PerDocument, PerQuery
from exactrank.data.format import Columns
from exactrank.data.ranking_data import RankingData
from exactrank.data.trec import from_trec, read_qrels, read_run
from exactrank.errors import DataError, IncompatibleError
from exactrank.fuse.certificate import Certificate, certifiable, certified
from exactrank.fuse.checks import check_relevance, check_systems
from exactrank.fuse.comparison import Compared, compared
from exactrank.fuse.contenders import Fusing
from exactrank.fuse.effort import Effort
from exactrank.fuse.normalise import normalised
from exactrank.fuse.picture import drawn
from exactrank.fuse.problem import Problem, Sweep, Weights
from exactrank.fuse.query_steps import QuerySteps, best_weights
from exactrank.fuse.resample import Folds, Pair, bootstrapped, draw_counts
from exactrank.fuse.search import all_weights, ascended, best_of, flat_range, tuned
from exactrank.measures.base import Measure
from exactrank.measures.bound import mean_over_queries
from exactrank.measures.parse import parse_measure
from exactrank.pictures import picture_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Fusion:
    """Tuned weights, and all that is known about them; build it with [`xr.fuse`][exactrank.fuse]."""

    systems: tuple[str, ...]
    weights: tuple[float, ...]  #: one a system; their absolute values add up to 1
    normalise: str
    absent: str
    measure: Measure
    value: float  #: of the measure, on the queries that the weights were tuned on
    interval: tuple[Pair, ...]  #: how far each weight can move, the others in proportion, before the value changes
    bootstrap_interval: tuple[Pair, ...] | None  #: the 95% interval of each weight; beyond two systems with the others in proportion
    cross_validated: float | None
    optimum: Literal["global", "certified", "local"]
    certificate: Certificate | None  #: of three systems, by a positional measure
    comparison: tuple[Compared, ...]
    sweep: Sweep | None  #: the measure against the weight, of two systems

    def predict(self, data: RankingData) -> PerDocument:
        """The fused score of each row of ``data``, in the caller's order; -inf for a document that is not ranked."""
        chosen = select_systems(data, self.systems)
        values, ranked = normalised(chosen.X, chosen.indptr, self.normalise, self.absent, chosen.offset)
        return data.ungrouped(Problem(self.measure, chosen, values, ranked).scores(np.array(self.weights)))

    def to_json(self) -> dict[str, Any]:
        """All of it but the sweep, ready for ``json.dumps``; ``weights`` by the systems' names."""

        def by_system(values: Sequence[Any] | None) -> dict[str, Any] | None:
            return None if values is None else {name: _plain(value) for name, value in zip(self.systems, values, strict=True)}

        bounds = self.certificate and {"lower": self.certificate.lower, "upper": self.certificate.upper, "cells": self.certificate.cells}
        return {
            "weights": by_system(self.weights),
            "normalise": self.normalise,
            "absent": self.absent,
            "measure": repr(self.measure),
            "value": _plain(self.value),
            "cross_validated": _plain(self.cross_validated),
            "interval": by_system(self.interval),
            "bootstrap_interval": by_system(self.bootstrap_interval),
            "optimum": self.optimum,
            "certificate": bounds,
            "comparison": [{name: _plain(value) for name, value in vars(row).items()} for row in self.comparison],
        }

    def plot(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """A picture of the measure against the weight, as PNG, SVG or PDF by the path's suffix; for two systems."""
        with picture_file(path, force=force) as draw:
            draw(self.figure())

    def figure(self) -> "Figure":
        """The same as a figure of matplotlib."""
        if self.sweep is None:
            raise IncompatibleError(f"a picture shows one weight against another, but there are {len(self.systems)} systems; fuse two")
        return drawn(self, self.sweep)


def fuse(
    data: RankingData,
    *,
    systems: Sequence[str] | None = None,
    measure: str | Measure = "nDCG@10",
    normalise: str = "min-max",
    absent: str = "worst",
    nonnegative: bool = True,
    folds: int = 5,
    bootstrap: int = 200,
    tolerance: float = 1e-3,
    cells: int | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> Fusion:
    """Tune the weights of several systems, one a feature of ``data`` (NaN: not retrieved), for ``measure``.

    ``systems`` names the features to fuse (default: all). ``normalise`` makes their scores comparable: none, min-max, z-score,
    rank or reciprocal-rank; ``absent`` says what a document gets from a system that did not retrieve it: worst, zero, or drop
    to rank only documents that all retrieved. ``folds`` and ``bootstrap`` (each 0: none) give the cross-validated value and 95%
    intervals. Three systems are searched until the certified gap is at most ``tolerance`` or ``cells`` triangles were seen
    (default: as many as take some seconds).

    >>> X = [[3.0, 0.1], [2.0, 0.9], [1.0, 0.8], [9.0, 0.7], [8.0, 0.9], [1.0, 0.2]]
    >>> data = RankingData.from_arrays(X, [0, 1, 0, 0, 1, 0], group=[3, 3], feature_names=["bm25", "dense"])
    >>> fusion = fuse(data, folds=2)
    >>> fusion.value, fusion.optimum
    (1.0, 'global')
    """
    fusing = Fusing(parse_measure(measure), normalise, absent, nonnegative, threads)
    effort = Effort(folds, bootstrap, tolerance, cells, seed)
    chosen = select_systems(data, data.feature_names if systems is None else systems)
    check_systems(chosen, folds)
    return _fused(chosen, fusing, effort)


def systems_from_runs(qrels: str | os.PathLike[str], runs: Sequence[str | os.PathLike[str]]) -> RankingData:
    """Judgments and TREC runs as data for [`xr.fuse`][exactrank.fuse]: a feature a run, named by its file.

    Files of the same name are told apart by a number.
    """
    named = [replace(read_run(path), tag=Path(path).name.removesuffix(".gz").rsplit(".", 1)[0]) for path in runs]
    return from_trec(read_qrels(qrels), named)


def systems_from_frame(frame: Any, systems: Sequence[str], columns: Columns | None = None) -> RankingData:
    """The score columns ``systems`` of a pandas, polars or Arrow frame as data for [`xr.fuse`][exactrank.fuse]; null: not retrieved."""
    return RankingData.from_frame(frame, replace(columns or Columns(), features=_distinct(systems)))


def select_systems(data: RankingData, systems: Sequence[str]) -> RankingData:
    """The features named, as data in its own order."""
    absent = [name for name in _distinct(systems) if name not in data.feature_names]
    if absent:
        known = ", ".join(data.feature_names[:20]) + (", ..." if data.n_features > 20 else "")
        raise DataError(f"the data has no system {', '.join(map(repr, absent))}; it has {known or 'none'}")
    columns = [data.feature_names.index(name) for name in systems]
    X = data.X if columns == list(range(data.n_features)) else data.X[:, columns]
    return replace(data, X=X, feature_names=tuple(systems), order=None, offset=None if data.offset is None else data.offset[columns])


def _distinct(systems: Sequence[str]) -> tuple[str, ...]:
    repeated = sorted({name for name in systems if list(systems).count(name) > 1})
    if repeated:
        raise DataError(f"system {repeated[0]!r} is named twice; name each once")
    return tuple(systems)


@dataclass(frozen=True, eq=False)
class _Found:
    """The best weights on all queries, and how good they are known to be."""

    weights: Weights
    interval: tuple[Pair, ...]
    optimum: Literal["global", "certified", "local"]
    swept: Sequence[QuerySteps] = ()  #: all weights, of two systems
    sweep: Sweep | None = None
    certificate: Certificate | None = None


def _fused(data: RankingData, fusing: Fusing, effort: Effort) -> Fusion:
    problem = fusing.problem(data)
    check_relevance(problem, data)
    folds = Folds.of(problem, effort.folds, effort.seed)
    if problem.systems == 2:
        found = _swept(problem)
        elsewhere = best_weights(found.swept, folds.trainings, problem.threads)
    else:
        weights, *elsewhere = tuned(problem, [problem.data.weights, *folds.trainings], effort.seed)
        found = _searched(problem, weights, effort)
    return _reported(data, fusing, problem, found, folds.values(problem, elsewhere), effort)


def _swept(problem: Problem) -> _Found:
    """Of two systems: the global optimum."""
    swept = all_weights(problem)
    sweep = best_of(steps.sweep(problem.data.weights) for steps in swept)
    ends = zip(*(sweep.weights(alpha).tolist() for alpha in (sweep.best.low, sweep.best.high)), strict=True)
    interval = tuple((min(pair), max(pair)) for pair in ends)
    return _Found(sweep.weights(sweep.best.middle()), interval, "global", swept, sweep)


def _searched(problem: Problem, weights: Weights, effort: Effort) -> _Found:
    """Of more: where coordinate ascent from ``weights`` ends, of three certified where that can be done."""
    weights, certificate = ascended(problem, weights, problem.data.weights), None
    if problem.systems == 3 and certifiable(problem):
        weights, certificate = certified(problem, weights, tolerance=effort.tolerance, cells=effort.cells)
    interval = tuple(flat_range(problem, weights, j) for j in range(problem.systems))
    return _Found(weights, interval, "certified" if certificate else "local", certificate=certificate)


def _reported(data: RankingData, fusing: Fusing, problem: Problem, found: _Found, held_out: PerQuery | None, effort: Effort) -> Fusion:
    """What was found, with what resampling and comparison say of it."""
    draws = draw_counts(data.n_queries, effort.bootstrap, effort.seed)
    in_sample = problem.per_query(found.weights)
    return Fusion(
        systems=data.feature_names,
        weights=tuple(found.weights.tolist()),
        normalise=fusing.normalise,
        absent=fusing.absent,
        measure=fusing.measure,
        value=mean_over_queries(in_sample, problem.data.weights),
        interval=found.interval,
        bootstrap_interval=bootstrapped(problem, found.weights, draws, found.swept),
        cross_validated=None if held_out is None else mean_over_queries(held_out, problem.data.weights),
        optimum=found.optimum,
        certificate=found.certificate,
        comparison=compared(data, problem, in_sample, held_out, draws),
        sweep=found.sweep,
    )


def _plain(value: Any) -> Any:
    """A value as JSON has it: NaN is null."""
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and value != value else value
