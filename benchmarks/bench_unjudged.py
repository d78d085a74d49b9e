"""Claim: the exact bounds of nDCG@10 over the grades of unjudged documents, at every weight of two systems, take less than 10 s for 10,000
queries x 100 documents on two cores.

Ten documents per query are judged, those of depth 5 in either system; the others may have any grade from 0 to 3.
"""

import sys
import time

import numpy as np
from timing import table

import exactrank as er
from exactrank.fusion.bounds import curve_bounds
from exactrank.fusion.problem import Segment

MEASURE = er.parse_measure("nDCG@10")


def partly_judged(queries: int, documents: int, depth: int = 5, seed: int = 0) -> er.RankingData:
    rng = np.random.default_rng(seed)
    y = rng.choice(4, size=(queries, documents), p=[0.8, 0.1, 0.06, 0.04]).astype(np.float64)
    X = np.stack([signal * y + rng.normal(size=y.shape) for signal in (0.6, 0.8)], axis=-1)
    judged = (np.argsort(np.argsort(-X, axis=1), axis=1) < depth).any(axis=2)
    grades = np.where(judged, y, -1.0)
    return er.RankingData.from_arrays(X.reshape(-1, 2), grades.ravel(), group=np.full(queries, documents), feature_names=["bm25", "dense"])


def main() -> None:
    sizes = [(1_000, 100), (10_000, 100)] if len(sys.argv) < 2 else [(int(sys.argv[1]), 100)]
    rows, costs = [], {}
    for queries, documents in sizes:
        data = partly_judged(queries, documents)
        start = time.perf_counter()
        bounds = curve_bounds(data, MEASURE, Segment(np.array([1.0, 0.0]), np.array([0.0, 1.0])), "min-max", "worst", threads=2)
        seconds = time.perf_counter() - start
        low, high = bounds.at(0.5)
        points = len(bounds.lower.breakpoints) + len(bounds.upper.breakpoints)
        rows.append([f"{queries:,} x {documents}", f"{points:,}", f"{low:.4f} to {high:.4f}", f"{seconds:.1f}"])
        costs[f"{queries} queries"] = seconds
    table(
        "curve",
        "Bounds of nDCG@10 along the weights of two systems",
        ["queries x documents", "breakpoints", "bounds at .5", "s"],
        rows,
        costs,
    )


if __name__ == "__main__":
    main()
