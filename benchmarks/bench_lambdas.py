"""Claim: lambda gradients of NDCG without truncation on data like MSLR's run at >= 200 M pairs/s and >= 3x LightGBM's own
lambdarank gradient, on one core.

LightGBM does not offer its gradient by itself: the time of one boosting step of a stump on a single feature, less that of the
same step with a least-squares objective, whose gradient costs next to nothing.
"""

import sys

import lightgbm as lgb
import numpy as np
from bench_line_search import SHAPES, lines
from timing import interleaved, pin, table

import exactrank as er
from exactrank import _core

UNIT = "RankNet (unit weights)"


def pairs(data: er.RankingData) -> int:
    """Pairs of documents of a query with different grades."""
    total = 0
    for begin, end in zip(data.indptr[:-1], data.indptr[1:], strict=True):
        counts = np.unique(data.y[begin:end], return_counts=True)[1]
        total += (int(end - begin) ** 2 - int((counts**2).sum())) // 2
    return total


def stump(data: er.RankingData, scores: np.ndarray, objective: str):
    """One boosting step at the given scores."""
    settings = {"num_leaves": 2, "num_threads": 1, "verbose": -1, "lambdarank_truncation_level": 10_000, "boost_from_average": False}
    feature = np.random.default_rng(0).integers(0, 4, (data.n_documents, 1)).astype(float)
    dataset = lgb.Dataset(feature, data.y, group=data.sizes, init_score=scores)
    booster = lgb.Booster(settings | {"objective": objective}, dataset)
    return booster.update


def measured(name: str) -> tuple[list[list[str]], dict[str, float]]:
    data, scores, _ = lines(*SHAPES[name])
    count = pairs(data)
    objectives = {
        str(m): er.losses.Lambdas(m)
        for m in (
            er.measures.NDCG(),
            er.measures.NDCG(k=10),
            er.measures.AP(),
            er.measures.ERR(),
            er.measures.RR(),
            er.measures.Bpref(),
            er.measures.PairwiseCorrect(),
        )
    }
    objectives[UNIT] = er.losses.Lambdas()
    arguments = data.indptr, np.ones(data.n_queries), True, True, 1
    bound = {label: objective.on(data) for label, objective in objectives.items()}
    works = {label: lambda objective=objective: _core.answers(objective, scores, *arguments) for label, objective in bound.items()}
    works |= {f"LightGBM {o}": stump(data, scores, o) for o in ("lambdarank", "regression")}
    times = interleaved(works, 7)
    theirs = times.pop("LightGBM lambdarank") - times.pop("LightGBM regression")
    rows = [[name, "LightGBM lambdarank", f"{1e3 * theirs:.1f}", f"{count / theirs / 1e6:.0f}", "1.0"]]
    rows += [[name, m, f"{1e3 * t:.1f}", f"{count / t / 1e6:.0f}", f"{theirs / t:.1f}"] for m, t in times.items()]
    return rows, {f"{name}, {m}": t / theirs for m, t in times.items()}


def main() -> None:
    pin(1)
    results = [measured(name) for name in SHAPES]
    table(
        "gradients",
        "Slope and curvature of all documents, one core; pairs are those of different grades, counted once",
        ["data", "gradient", "ms", "M pairs/s", "x LightGBM"],
        [row for rows, _ in results for row in rows],
        {label: cost for _, costs in results for label, cost in costs.items()},
    )


if __name__ == "__main__":
    sys.exit(main())
