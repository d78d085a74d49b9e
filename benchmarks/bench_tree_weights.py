"""Claim: the default rule of DirectRankTrees is level with the best fixed rate, on little data and on more, without knowing which that is.

Quality, not speed. On ``--artificial FOLDER``: letor.*.npz, 1,600 queries dealt anew to training (1,000), validation and test in each of
several splits, up to 600 trees; and mslr.*.npz, the first 1,500 training queries x 120 documents, up to 300 trees. Patience 60, so a large
rate ends early. Fixed rates are LambdaMART's or MART's, with all queries or 70% of them for each tree; the rules of DirectRankTrees are the
published one, narrower bounds, a search on unseen queries whose step is taken as it is, the default, and leveraging on top of it.

Without ``--artificial`` both are made up, of 20 features.
"""

import sys
import time
from pathlib import Path

import numpy as np
from timing import table, with_artificial

import exactrank as er
from exactrank.data.synthetic import CubicPolynomial
from exactrank.learning.training.judge import Task
from exactrank.learning.training.run import Recorder
from exactrank.rankers.directrank_trees import refit_weights
from exactrank.reproduce.artificial import three_parts

MEASURE = "nDCG@10"
PUBLISHED = {"search": "all", "low": 0.1, "high": 0.5, "smoothing": 1.0, "query_fraction": 1.0}
RATES = {"little": (0.03, 0.05, 0.1, 0.2), "more": (0.05, 0.1, 0.2)}
RULES = {
    "published, [0.1, 0.5] on all queries": PUBLISHED,
    "[0.02, 0.15] on all queries": PUBLISHED | {"low": 0.02, "high": 0.15},
    "[0.02, 0.5] on unseen queries, as found": {"high": 0.5, "smoothing": 1.0},
    "default": {},
}
Sets = tuple[er.RankingData, er.RankingData, er.RankingData]


def made_up(sizes: tuple[int, int, int], documents: int, splits: int) -> list[Sets]:
    folds = (three_parts(CubicPolynomial(features=20, documents=documents, noise=1.0, seed=seed), sizes) for seed in range(splits))
    return [(fold.train, fold.valid, fold.test) for fold in folds]


def little(folder: Path | None, splits: int) -> list[Sets]:
    if folder is None:
        return made_up((1000, 300, 300), 40, splits)
    files = [np.load(folder / f"letor.{part}.npz") for part in ("train", "vali", "test")]
    X, y, group = (np.concatenate([part[name] for part in files]) for name in ("X", "y", "group"))
    rows = np.split(np.arange(len(y)), np.cumsum(group)[:-1])

    def some(queries: np.ndarray) -> er.RankingData:
        rows_of_queries = np.concatenate([rows[q] for q in queries])
        return er.RankingData.from_arrays(X[rows_of_queries], y[rows_of_queries], group=group[queries])

    dealt = [np.random.default_rng(k).permutation(len(group)) for k in range(splits)]
    return [(some(order[:1000]), some(order[1000:1300]), some(order[1300:])) for order in dealt]


def more(folder: Path | None) -> list[Sets]:
    if folder is None:
        return made_up((1500, 1000, 1000), 120, 1)
    files = [np.load(folder / f"mslr.{part}.npz") for part in ("train", "vali", "test")]
    sizes = [part["group"][:1500] for part in files]
    return [tuple(er.RankingData.from_arrays(p["X"][: g.sum()], p["y"][: g.sum()], group=g) for p, g in zip(files, sizes, strict=True))]


def rankers(follow: str, size: str) -> dict[str, dict]:
    fixed = er.LambdaMART if follow == "lambdas" else er.MART
    results = {}
    for rate in RATES[size]:
        for fraction in (1.0, 0.7):
            results[f"{rate}, {fraction:.0%} of the queries"] = (fixed, {"learning_rate": rate, "query_fraction": fraction})
    return results | {name: (er.DirectRankTrees, rule | {"follow": follow}) for name, rule in RULES.items()}


def study(title: str, size: str, folds: list[Sets], follow: str, trees: int, threads: int) -> None:
    rows = []
    for name, (make, settings) in rankers(follow, size).items():
        start = time.perf_counter()
        fits = [
            make(MEASURE, trees=trees, patience=60, bags=0, threads=threads, **settings).fit(train, valid=valid)
            for train, valid, _ in folds
        ]
        seconds = (time.perf_counter() - start) / len(folds)
        rows.append(row(name, [fit.model_.scorer for fit in fits], folds, seconds))
    start = time.perf_counter()
    anew = [
        refit_weights(fit.model_.scorer, Task(er.parse_measure(MEASURE), train, threads=threads), bags=10, seed=0, recorder=Recorder())
        for fit, (train, _, _) in zip(fits, folds, strict=True)
    ]
    rows.append(row("the default, then leveraged", anew, folds, seconds + (time.perf_counter() - start) / len(folds)))
    table(f"{size}-{follow}", f"{title}, trees on the {follow}", ["", "validation", "test", "trees", "first and last weight", "s"], rows)


def row(name: str, scorers: list[er.models.TreeEnsemble], folds: list[Sets], seconds: float) -> list[str]:
    means = [
        np.mean(
            [
                er.evaluate(fold[part], scorer.score(fold[part].X), MEASURE).means[MEASURE]
                for scorer, fold in zip(scorers, folds, strict=True)
            ]
        )
        for part in (1, 2)
    ]
    weights, count = scorers[-1].shrinkage, np.mean([scorer.n_trees for scorer in scorers])
    return [name, *(f"{mean:.4f}" for mean in means), f"{count:.0f}", f"{weights[0]:.3f} .. {weights[-1]:.3f}", f"{seconds:.1f}"]


def main() -> None:
    parser = with_artificial(__doc__)
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", choices=["little", "more"])
    parser.add_argument("--follow", nargs="*", default=["lambdas", "grades"], choices=["lambdas", "grades"])
    options = parser.parse_args()
    for follow in options.follow:
        if options.only in (None, "little"):
            study(
                f"{options.splits} splits of 1,600 queries",
                "little",
                little(options.artificial, options.splits),
                follow,
                600,
                options.threads,
            )
        if options.only in (None, "more"):
            study("1,500 x 120 documents", "more", more(options.artificial), follow, 300, options.threads)


if __name__ == "__main__":
    sys.exit(main())
