"""Claims: the best of all thresholds over 10 million documents is found in under 2 s on one core; and a guarantee of recall holds on new
queries, where the best threshold of the past misses it.

A peer tries a grid of 100 thresholds with NumPy. Times are of the processor, since all work has one thread. Guarantees are simulated:
thresholds are found on few queries and applied to many new ones.
"""

import sys
import time

import numpy as np
from timing import best, pin, table

import exactrank as er
from exactrank import _core

DOCUMENTS, LIST = 10_000_000, 100
CALIBRATIONS, NEW = 2000, 200


def speed() -> None:
    """Time one sweep, and the whole search with and without cross-validation."""
    rng = np.random.default_rng(0)
    queries = DOCUMENTS // LIST
    useful = rng.random(DOCUMENTS) < 0.1
    scores = rng.random(DOCUMENTS) + useful
    data = er.RankingData.from_arrays(None, useful.astype(float), group=np.full(queries, LIST))
    relevant = np.add.reduceat(useful, data.indptr[:-1], dtype=np.int64).astype(np.float64)

    def sweep() -> float:
        kernel = _core.ThresholdSweep(scores, useful.astype(np.uint8), data.indptr)
        return float(kernel.sums("F", 1.0, 0.0, relevant, np.ones(queries)).max() / queries)

    def grid() -> float:
        values = []
        for threshold in np.quantile(scores[::1000], np.linspace(0, 1, 100)):
            kept = scores >= threshold
            counts = [np.add.reduceat(rows, data.indptr[:-1], dtype=np.int64) for rows in (kept, kept & useful)]
            values.append(np.mean(np.where(relevant > 0, 2 * counts[1] / np.maximum(counts[0] + relevant, 1), counts[0] == 0)))
        return float(max(values))

    times = {
        "sweep of all thresholds": best(sweep, 3, time.process_time),
        "er.cutoff(..., folds=0)": best(lambda: er.cutoff(data, scores, folds=0), 2, time.process_time),
        "er.cutoff(...), five folds": best(lambda: er.cutoff(data, scores), 1, time.process_time),
        "100 thresholds with NumPy": best(grid, 1, time.process_time),
    }
    peer = times["100 thresholds with NumPy"]
    rows = [[name, f"{seconds:.2f}", f"{seconds / peer:.2f}"] for name, seconds in times.items()]
    costs = {name: seconds / peer for name, seconds in times.items() if seconds != peer}
    table(
        "speed",
        f"The best threshold for F1 over {DOCUMENTS:,} documents, one core",
        ["work", "processor time, s", "time / NumPy"],
        rows,
        costs,
    )


def draw(queries: int, seed: list[int]) -> tuple[er.RankingData, np.ndarray, np.ndarray]:
    """Draw queries of 20 documents, of which some are relevant, and scores that know something of it."""
    rng = np.random.default_rng(seed)
    y = rng.random((queries, 20)) < rng.uniform(0.05, 0.4, (queries, 1))
    y[:, 0] |= ~y.any(axis=1)
    scores = 1.5 * y + rng.normal(size=y.shape) + rng.normal(size=(queries, 1)) / 2
    return er.RankingData.from_arrays(None, y.ravel().astype(float), group=[20] * queries), scores.ravel(), y


def guarantees() -> None:
    """How much recall do new queries get?"""
    rows = []
    for goal, promise in (("recall >= 0.9", 0.9), ("recall >= 0.8 with probability 0.9", 0.9)):
        for queries in (20, 50, 200):
            reached = {"guaranteed": [], "best of the past": []}
            for seed in range(CALIBRATIONS):
                data, scores, y = draw(queries, [1, queries, seed])
                _, new_scores, new_y = draw(NEW, [2, queries, seed])
                thresholds = {"guaranteed": er.cutoff(data, scores, goal, folds=0).threshold, "best of the past": past(goal, scores, y)}
                for name, threshold in thresholds.items():
                    kept = new_scores.reshape(new_y.shape) >= threshold
                    recall = (kept & new_y).sum(axis=1) / new_y.sum(axis=1)
                    reached[name].append(recall.mean() if "probability" not in goal else np.mean(recall >= 0.8))
            rows.append([goal, f"{queries}", f"{promise:.1%}", *(f"{np.mean(values):.1%}" for values in reached.values())])
    header = ["goal", "queries", "promise", "guaranteed", "best of the past"]
    table("guarantees", f"Mean over {CALIBRATIONS:,} calibrations of what new queries get", header, rows)


def past(goal: str, scores: np.ndarray, y: np.ndarray) -> float:
    """Return the largest threshold that has the promised share on the queries at hand."""
    s, candidates = scores.reshape(y.shape), np.sort(scores[y.ravel()])[::-1]
    low, high = 0, len(candidates) - 1
    while low < high:  # the share rises as the threshold falls
        middle = (low + high) // 2
        recall = ((s >= candidates[middle]) & y).sum(axis=1) / y.sum(axis=1)
        share = recall.mean() if "probability" not in goal else np.mean(recall >= 0.8)
        low, high = (low, middle) if share >= 0.9 else (middle + 1, high)
    return float(candidates[low])


def main() -> None:
    pin(1)
    speed()
    guarantees()


if __name__ == "__main__":
    sys.exit(main())
