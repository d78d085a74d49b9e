"""Claim: the exact bounds of nDCG@10 over the grades of unjudged documents, at every weight of two systems, take less than 10 s for 10,000
queries x 100 documents on two cores. Documents of depth 5 in either system are judged; the others may have any grade from 0 to 3.

The second table compares judging along a plan with depth pooling, which judges rank 1 of all runs and queries, then rank 2, and so on.
Nothing is judged at first, and three runs of 40 queries are compared by nDCG@10. Regret is what the run that is best by the judgments so
far loses, by all grades, against the best one; the decision is certain if the bounds say that at most epsilon can be lost.
"""

import sys
import time
from dataclasses import replace

import numpy as np
from timing import table

import exactrank as er
from exactrank.fusion.bounds import curve_bounds
from exactrank.fusion.problem import Segment

MEASURE = er.parse_measure("nDCG@10")
BUDGETS, BATCH, EPSILON = (40, 80, 160, 320, 640), 20, 0.02


def partly_judged(queries: int, documents: int, depth: int = 5, seed: int = 0) -> er.RankingData:
    rng = np.random.default_rng(seed)
    y = rng.choice(4, size=(queries, documents), p=[0.8, 0.1, 0.06, 0.04]).astype(np.float64)
    X = np.stack([signal * y + rng.normal(size=y.shape) for signal in (0.6, 0.8)], axis=-1)
    judged = (np.argsort(np.argsort(-X, axis=1), axis=1) < depth).any(axis=2)
    grades = np.where(judged, y, -1.0)
    return er.RankingData.from_arrays(X.reshape(-1, 2), grades.ravel(), group=np.full(queries, documents), feature_names=["bm25", "dense"])


def three_runs(seed: int, queries: int = 40, documents: int = 40) -> tuple[er.RankingData, np.ndarray, dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    truth = rng.choice(4, size=queries * documents, p=[0.75, 0.13, 0.08, 0.04]).astype(np.float64)
    scores = {f"run {j}": rng.uniform(0.5, 0.7) * truth + rng.normal(size=len(truth)) for j in range(3)}
    data = er.RankingData.from_arrays(None, np.full(len(truth), -1.0), group=np.full(queries, documents))
    return data, truth, scores


def regret_of(data: er.RankingData, truth: np.ndarray, scores: dict[str, np.ndarray]) -> float:
    """Return what the run of the largest mean by the judgments loses against the best one by the truth."""
    values = [{name: MEASURE.on(rows).mean(numbers) for name, numbers in scores.items()} for rows in (data, replace(data, y=truth))]
    choice = max(values[0], key=values[0].__getitem__)
    return max(values[1].values()) - values[1][choice]


def pooled_ranks(data: er.RankingData, scores: dict[str, np.ndarray]) -> np.ndarray:
    """Return the best rank of each document in any run."""
    tables = [numbers.reshape(data.n_queries, -1) for numbers in scores.values()]
    return np.min([np.argsort(np.argsort(-table, axis=1), axis=1).ravel() for table in tables], axis=0)


def judged_along(seed: int, by_plan: bool) -> tuple[list[float], int]:
    """Return the regret after each of `BUDGETS` judgments, by a plan or by depth, and after how many the decision is certain."""
    data, truth, scores = three_runs(seed)
    order, y = np.argsort(pooled_ranks(data, scores), kind="stable"), np.full(data.n_documents, -1.0)
    regrets, judged, certain = [], 0, 0
    while not certain or len(regrets) < len(BUDGETS):
        plan = er.judging.plan(replace(data, y=y.copy()), scores, measure=MEASURE, highest_grade=3, limit=BATCH, epsilon=EPSILON)
        certain = certain or (judged if plan.is_certain or not plan.docid else 0)
        rows = [int(document) for document in plan.docid] if by_plan else order[judged : judged + BATCH]
        if not (by_plan and certain):
            y[rows] = truth[rows]
        judged += BATCH
        if judged in BUDGETS:
            regrets.append(regret_of(replace(data, y=y), truth, scores))
    return regrets, certain


def plan_or_depth(simulations: int) -> None:
    results = [[judged_along(seed, by_plan) for seed in range(simulations)] for by_plan in (True, False)]
    (plan, plan_certain), (depth, depth_certain) = (
        (np.mean([regrets for regrets, _ in result], axis=0), np.mean([certain for _, certain in result])) for result in results
    )
    rows = [[f"regret after {budget}", f"{ours:.4f}", f"{theirs:.4f}"] for budget, ours, theirs in zip(BUDGETS, plan, depth, strict=True)]
    rows.append([f"judgments until certain, epsilon {EPSILON}", f"{plan_certain:.0f}", f"{depth_certain:.0f}"])
    table("plan", f"The best of three runs by nDCG@10, means of {simulations} simulations", ["", "by the plan", "by depth"], rows)


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

    plan_or_depth(20)


if __name__ == "__main__":
    main()
