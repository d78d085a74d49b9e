"""Claims, on 1,000 queries x 40 documents x 46 features, with validation data and RankLib's settings, on one core: AdaRank (500 rounds) and
RankBoost (300 rounds, 10 thresholds) take less than a twentieth of RankLib's time, at a higher test NDCG@10. RankLib's figures were
measured before, on the data of ``--artificial FOLDER``: 36 s and 0.386 for AdaRank, 39 s and 0.483 for RankBoost; it is a Java program
and does not take part. A round of RankBoost takes time by documents x features, whatever the number of pairs and, up
to 255, of thresholds.

Without ``--artificial`` the sets are those of bench_gradient.py, of which RankLib's figures are not known.
"""

import sys
from unittest.mock import patch

import numpy as np
from bench_gradient import MEASURE, score, sets
from timing import best, in_yards, interleaved, pin, table, with_artificial

import exactrank as er
from exactrank.learning.objectives.pair_exponential import PairExponential
from exactrank.models.thresholds import StepScores

#: Seconds and test NDCG@10 of RankLib.
RANKLIB = {"AdaRank": (36.0, 0.386), "RankBoost": (39.0, 0.483)}
RANKERS = {
    "AdaRank, as published": lambda: er.AdaRank(MEASURE, rest=0, nonnegative=True, standardize=False, threads=1),
    "AdaRank, all 500 rounds": lambda: er.AdaRank(MEASURE, patience=None, threads=1),
    "AdaRank": lambda: er.AdaRank(MEASURE, threads=1),
    "RankBoost, 10 thresholds": lambda: er.RankBoost(MEASURE, thresholds=10, threads=1),
    "RankBoost": lambda: er.RankBoost(MEASURE, threads=1),
    "RankBoost, every threshold": lambda: er.RankBoost(MEASURE, thresholds=0, threads=1),
}
REPEATS = 3


def fits(datasets: list[er.RankingData], with_ranklib: bool) -> None:
    pin(1)
    train, valid, _ = datasets
    rankers = {name: make() for name, make in RANKERS.items()}
    times = interleaved({name: lambda r=ranker: r.fit(train, valid=valid) for name, ranker in rankers.items()}, REPEATS)
    rows = []
    for name, ranker in rankers.items():
        seconds, quality = RANKLIB[name.partition(",")[0]]
        theirs = [f"{seconds / times[name]:.0f}", f"{quality:.3f}"] if with_ranklib else ["", ""]
        measured = [f"{score(data, ranker.predict(data)):.4f}" for data in datasets]
        rows.append([name, str(ranker.model_.training["steps"]), f"{times[name]:.2f}", *measured, *theirs])
    header = ["", "rounds", "s", "training", "validation", "test", "RankLib's time / ours", "RankLib, test"]
    table("fits", f"{train}: fits with validation data, one core, NDCG@10", header, rows, in_yards(times))


def rounds() -> None:
    """One round, per document and feature, for lists of different lengths and different numbers of thresholds."""
    pin(1)
    rng, documents, features = np.random.default_rng(0), 40_000, 46
    X = rng.standard_normal((documents, features), dtype=np.float32)
    y, scores = rng.integers(0, 5, documents), rng.standard_normal(documents)
    rows, times = [], {}
    for length in (40, 400, 4_000):
        data = er.RankingData.from_arrays(X, y, group=[length] * (documents // length))
        for limit in (10, 255, 0):
            problem = PairExponential(data, limit, threads=1)
            with patch.object(StepScores, "at", lambda self, steps: scores):
                times[f"{length} documents, {limit} thresholds"] = seconds = best(lambda p=problem: p.best(np.empty(0)))
            ns = 1e9 * seconds / (documents * features)
            pairs = 0.8 / 2 * length**2 * (documents // length)
            rows.append([f"{length:,}", f"{pairs / 1e6:.1f}", str(limit or "all"), f"{ns:.2f}"])
    table(
        "rounds",
        "A round of RankBoost, five grades, one core",
        ["documents per query", "million pairs", "thresholds per feature", "ns per document and feature"],
        rows,
        in_yards(times),
    )


def main() -> None:
    folder = with_artificial(__doc__).parse_args().artificial
    fits(sets(folder), with_ranklib=folder is not None)
    rounds()


if __name__ == "__main__":
    sys.exit(main())
