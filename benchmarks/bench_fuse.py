"""Claim: the best weights of two runs with 10,000 queries x 1,000 documents are found exactly in under 2 s on two cores; on 500 queries
x 100 documents a whole call, with every baseline, is >= 10x faster than the grid of eleven weights of ranx's optimize_fusion, and
never worse. Three runs of the large size take no more than a minute, with what could be certified by then.

ranx gets its own structures ready-made and is timed after its compilation; exactrank gets arrays. Both normalize by min-max and
tune for nDCG@10 with linear gain, and the weights of both are evaluated by er.evaluate. Documents that a run lacks add nothing
(ranx has no other way).
"""

import os
import sys
from dataclasses import replace

import numpy as np
from timing import best, in_yards, interleaved, table

import exactrank as er
from exactrank.fusion.preparation import problem_of
from exactrank.fusion.problem import QuerySteps, all_weights
from exactrank.fusion.search import best_of

MEASURE = "nDCG(dcg='log2')@10"
SETTINGS = {"measure": MEASURE, "normalize": "min-max", "absent": "zero"}
TUNING_ONLY = {"folds": 0, "bootstrap": 0}


def noisy_systems(queries: int, documents: int, signals: tuple[float, ...] = (0.6, 0.8), seed: int = 0) -> er.RankingData:
    """Systems that each retrieve ``documents`` of a pool half as large again, with ten relevant on average."""
    rng = np.random.default_rng(seed)
    pool = documents + documents // 2
    y = rng.choice(4, size=queries * pool, p=[1 - 10 / pool, 5 / pool, 3 / pool, 2 / pool]).astype(np.float64)
    X = np.empty((len(y), len(signals)), np.float32)
    for j, signal in enumerate(signals):
        scores = (signal * y + rng.normal(size=len(y))).reshape(queries, pool)
        scores[scores < np.partition(scores, pool - documents, axis=1)[:, pool - documents, None]] = np.nan
        X[:, j] = scores.ravel()
    return er.RankingData.from_arrays(X, y, group=np.full(queries, pool), feature_names=["bm25", "dense", "rerank"][: len(signals)])


def in_ranx(data: er.RankingData):
    import ranx

    qrels, runs = {}, [{}, {}]
    for q in range(data.n_queries):
        rows = range(data.indptr[q], data.indptr[q + 1])
        qrels[f"q{q}"] = {f"d{i}": int(data.y[i]) for i in rows if data.y[i] > 0} or {f"d{rows[0]}": 0}
        for j, run in enumerate(runs):
            run[f"q{q}"] = {f"d{i}": float(data.X[i, j]) for i in rows if not np.isnan(data.X[i, j])}
    return ranx.Qrels(qrels), [ranx.Run(run) for run in runs]


def value_of(data: er.RankingData, weights: tuple[float, float], fusion) -> float:
    return er.evaluate(data, replace(fusion, weights=tuple(weights)).predict(data), [MEASURE]).means[MEASURE]


def against_ranx(queries: int, documents: int) -> None:
    import ranx

    data = noisy_systems(queries, documents)
    qrels, runs = in_ranx(data)

    def grid():
        return ranx.optimize_fusion(qrels, runs, norm="min-max", method="wsum", metric="ndcg@10", step=0.1)

    grid()  # compiles
    works = {
        "exactrank, every weight": lambda: er.fuse(data, **SETTINGS, **TUNING_ONLY),
        "ranx, a grid of 11 weights": grid,
        "exactrank, with 5 folds and 200 bootstraps": lambda: er.fuse(data, **SETTINGS),
    }
    times = interleaved(works, 5)
    ours, theirs = er.fuse(data, **SETTINGS, **TUNING_ONLY), tuple(grid()["weights"])
    results = {name: (theirs if "ranx" in name else ours.weights) for name in works}
    rows = [
        [
            name,
            f"{1e3 * t:.0f}",
            f"{t / times['exactrank, every weight']:.1f}",
            f"{results[name][0]:.4f}",
            f"{value_of(data, results[name], ours):.5f}",
        ]
        for name, t in times.items()
    ]
    title = f"Tuning two runs, {queries:,} queries x {documents:,} documents"
    grid_seconds = times.pop("ranx, a grid of 11 weights")
    costs = {name: t / grid_seconds for name, t in times.items()}
    table("ranx", title, ["tool", "ms", "time / ours", "first weight", "nDCG@10 there"], rows, costs)
    assert value_of(data, ours.weights, ours) >= value_of(data, theirs, ours)


def alone(queries: int, documents: int) -> None:
    data = noisy_systems(queries, documents)

    def tuning():
        problem = problem_of(data, er.parse_measure(MEASURE), SETTINGS["normalize"], SETTINGS["absent"])
        return best_of(QuerySteps.of(problem, *segment).sweep(problem.data.weights) for segment in all_weights(2, nonnegative=True))

    works = {
        "tuning alone": tuning,
        "a whole call: checks, tuning, baselines": lambda: er.fuse(data, **SETTINGS, **TUNING_ONLY),
        "with 5 folds and 200 bootstraps": lambda: er.fuse(data, **SETTINGS),
    }
    times, sweep = interleaved(works, 3), tuning()
    title = f"Two runs, {queries:,} queries x {documents:,} documents ({len(os.sched_getaffinity(0))} cores)"
    found = f"{len(sweep.steps.breakpoints):,} breakpoints; {MEASURE} {sweep.best.value:.5f}"
    table("two", f"{title}: {found}", ["work", "s"], [[name, f"{seconds:.2f}"] for name, seconds in times.items()], in_yards(times))


def timed(data: er.RankingData, **settings: int) -> tuple[float, er.Fusion]:
    results = []
    seconds = best(lambda: results.append(er.fuse(data, **SETTINGS, **settings)), 1)
    return seconds, results[0]


def three(sizes: list[tuple[int, int]]) -> None:
    rows, times = [], {}
    for queries, documents in sizes:
        data = noisy_systems(queries, documents, (0.6, 0.8, 0.5))
        searching, fusion = timed(data, **TUNING_ONLY)
        known, whole = fusion.certificate, timed(data)[0]
        size = f"{queries:,} x {documents:,}"
        times[size] = searching
        rows.append([size, f"{searching:.1f}", f"{whole:.1f}", f"{known.cells:,}", f"{known.lower:.4f}", f"{known.gap:.4f}"])
    header = ["queries x documents", "s", "s, with folds and bootstraps", "triangles", "nDCG@10", "certified gap"]
    table("three", "Three runs", header, rows, in_yards(times))


def main() -> None:
    against_ranx(500, 100)
    alone(10_000, 1_000)
    three([(200, 100), (1_000, 100), (10_000, 1_000)])


if __name__ == "__main__":
    sys.exit(main())
