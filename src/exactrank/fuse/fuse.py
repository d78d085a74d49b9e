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
from exactrank.data.folds import deal_folds
from exactrank.data.format import Columns
from exactrank.data.ranking_data import RankingData
from exactrank.data.trec import from_trec, read_qrels, read_run
from exactrank.errors import DataError, IncompatibleError
from exactrank.fuse.certificate import Certificate, certifiable, certified
from exactrank.fuse.contenders import check_relevance, check_systems, problem_of
from exactrank.fuse.normalise import ABSENT, NORMALISATIONS, normalised
from exactrank.fuse.problem import Problem, QuerySteps, Sweep, Weights, all_weights, best_weights
from exactrank.fuse.resample import Compared, Pair, bootstrapped, compared
from exactrank.fuse.search import ascended, best_of, flat_range, tuned
from exactrank.measures.base import Measure
from exactrank.measures.bound import mean_over_queries
from exactrank.measures.parse import parse_measure
from exactrank.pictures import caption, picture_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure


LINE, BEST, LEVEL = "#1f4e79", "#c0392b", "#7f7f7f"  #: colours of a picture


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
        return _drawn(self, self.sweep)


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
    parsed = parse_measure(measure)
    for name, given, known in (("normalise", normalise, NORMALISATIONS), ("absent", absent, ABSENT)):
        if given not in known:
            raise DataError(f"{name}={given!r} is not one of {', '.join(known)}")
    if folds < 0 or folds == 1:
        raise DataError(f"folds={folds} leaves nothing to tune on; give at least 2, or 0 for no cross-validation")
    for name, value, least in (("bootstrap", bootstrap, 0), ("cells", cells, 1), ("tolerance", tolerance, 0)):
        if value is not None and not value >= least:
            raise DataError(f"{name} must be at least {least}, got {value}")
    chosen = select_systems(data, data.feature_names if systems is None else systems)
    check_systems(chosen, folds)
    problem = problem_of(chosen, parsed, normalise, absent, nonnegative, threads)
    check_relevance(problem, chosen)
    queries, weight = chosen.n_queries, problem.data.weights

    fold = deal_folds(queries, folds, seed) if folds else np.zeros(0, np.int64)
    trainings = {f: others for f in range(folds) if problem.counts(others := weight * (fold != f))}
    found = _best(problem, list(trainings.values()), tolerance, cells, seed)
    in_sample, held_out = problem.per_query(found.weights), np.full(len(fold), np.nan)
    for f, weights in zip(trainings, found.elsewhere, strict=True):
        held_out[fold == f] = problem.per_query(weights)[fold == f]
    rng = np.random.default_rng([seed, 2])
    draws = np.array([np.bincount(rng.integers(0, queries, queries), minlength=queries) for _ in range(bootstrap)], np.float64)
    return Fusion(
        systems=chosen.feature_names,
        weights=tuple(found.weights.tolist()),
        normalise=normalise,
        absent=absent,
        measure=parsed,
        value=mean_over_queries(in_sample, weight),
        interval=found.interval,
        bootstrap_interval=bootstrapped(problem, found.weights, draws, found.swept),
        cross_validated=mean_over_queries(held_out, weight) if folds else None,
        optimum="global" if found.sweep else "certified" if found.certificate else "local",
        certificate=found.certificate,
        comparison=compared(chosen, problem, in_sample, held_out if folds else None, draws),
        sweep=found.sweep,
    )


@dataclass(frozen=True, eq=False)
class _Best:
    """The best weights on all queries, how good they are known to be, and the best on other query weights."""

    weights: Weights
    interval: tuple[Pair, ...]
    elsewhere: Sequence[Weights]
    swept: Sequence[QuerySteps] = ()  #: all weights, of two systems
    sweep: Sweep | None = None
    certificate: Certificate | None = None


def _best(problem: Problem, trainings: Sequence[PerQuery], tolerance: float, cells: int | None, seed: int) -> _Best:
    """Of two systems the global optimum; of more where coordinate ascent ends, of three certified where that can be done."""
    even = problem.data.weights
    if problem.systems == 2:
        swept = [QuerySteps.of(problem, start, end) for start, end in all_weights(2, problem.nonnegative)]
        sweep = best_of(steps.sweep(even) for steps in swept)
        ends = zip(*(sweep.weights(alpha).tolist() for alpha in (sweep.best.low, sweep.best.high)), strict=True)
        interval = tuple((min(pair), max(pair)) for pair in ends)
        elsewhere = best_weights(swept, trainings, problem.threads)
        return _Best(sweep.weights(sweep.best.middle()), interval, elsewhere, swept, sweep)
    weights, *elsewhere = tuned(problem, [even, *trainings], seed)
    weights, certificate = ascended(problem, weights, even), None
    if problem.systems == 3 and certifiable(problem):
        weights, certificate = certified(problem, weights, tolerance=tolerance, cells=cells)
    interval = tuple(flat_range(problem, weights, j) for j in range(problem.systems))
    return _Best(weights, interval, elsewhere, certificate=certificate)


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


def _plain(value: Any) -> Any:
    """A value as JSON has it: NaN is null."""
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and value != value else value


def _drawn(fusion: Fusion, sweep: Sweep) -> "Figure":
    """The exact step function, where its optimum is and how sure, and the values of what needs no tuning."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes, best = figure.subplots(), sweep.best
    second = int(np.argmax(np.abs(sweep.end)))  # the number of the system whose weight grows along the axis
    falls, grows = fusion.systems[1 - second], fusion.systems[second]

    sweep.steps.plot(0.0, 1.0, ax=axes, color=LINE, linewidth=1.2, label="every weight, exactly")
    low, high = (0.0, 0.0) if fusion.bootstrap_interval is None else fusion.bootstrap_interval[second]
    if 0 <= low * sweep.end[second] < high * sweep.end[second]:  # negative weights may be spread over several axes
        axes.axvspan(low, high, color=BEST, alpha=0.08, linewidth=0, label="95% interval, by bootstrap")
    axes.axvspan(best.low, best.high, color=BEST, alpha=0.35, linewidth=1)  # an edge shows where it is too narrow to see
    axes.plot(best.middle(), fusion.value, "o", color=BEST, label=f"best: {fusion.value:.4f} at {best.middle():.4f}")

    values = {row.name: row.mean for row in fusion.comparison}
    if np.all(sweep.start + sweep.end > 0):  # with a negative weight the axis has no system alone, nor equal weights
        for at, name in enumerate((falls, grows)):
            shown = f"{caption(name)} alone: {values[name]:.4f}"
            axes.plot(at, values[name], "s^"[at], color="black", clip_on=False, zorder=3, label=shown)
        axes.plot(0.5, values["CombSUM"], "D", color="black", label=f"equal weights: {values['CombSUM']:.4f}")
    rrf = values["RRF (k=60)"]  # which has no place on the axis
    axes.axhline(rrf, color=LEVEL, linewidth=1, linestyle="--", label=f"RRF (k=60): {rrf:.4f}")

    sign, other = (" -" if side[j] < 0 else " " for side, j in ((sweep.end, second), (sweep.start, 1 - second)))
    weight = f"weight of{sign}{caption(grows)} (that of{other}{caption(falls)} is the rest to 1)"
    axes.set(xlim=(0, 1), xlabel=weight, ylabel=f"{fusion.measure}, mean over queries")
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(y=0.12)
    axes.legend(fontsize="small", frameon=False, loc="best")
    return figure
