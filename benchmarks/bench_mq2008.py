"""Claim: on MQ2008 (LETOR 4.0, five folds) DirectRank is above 0.507 on standard nDCG@10 and, by the LETOR scripts' convention,
above every published baseline on NDCG@10.

Quality, not speed: needs ``../shared/data/MQ2008`` (or ``--data FOLDER`` with S1 to S5). Training sees three parts, validation one,
test one. The mean over folds and seeds comes with the 95% bootstrap interval over the 784 test queries. Compared are the defaults,
the starts, one run without bags, the likeliest point, and ridge regression.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from timing import table

import exactrank as xr
from exactrank.measures.evaluate import bootstrap_intervals
from exactrank.objectives.ridge import ridge_weights

MEASURES = {"MeanNDCG": "letor", "nDCG@10": "letor", "AP": "letor", "nDCG@10 ": None}
PUBLISHED = {
    "RankSVM-Struct": ["0.4832", "0.2279", "0.4696"],
    "ListNet": ["-", "0.2303", "-"],
    "AdaRank-MAP": ["0.4915", "0.2288", "0.4764"],
    "AdaRank-NDCG": ["0.4950", "0.2307", "0.4824"],
    "RankBoost": ["0.4850", "0.2255", "0.4775"],
}
WAYS = {
    "DirectRank": {},
    "DirectRank, from the softmax": {"start": "softmax"},
    "DirectRank, from no weights": {"start": "zero"},
    "DirectRank, from no weights, 100 bags": {"start": "zero", "bags": 100},
    "DirectRank, likeliest point": {"point": "likelihood"},
    "DirectRank, one run": {"bags": 0},
    "DirectRank, one run, likeliest point": {"bags": 0, "point": "likelihood"},
    "DirectRank, best of 20 random starts": {"bags": 0, "start": "random", "restarts": 20},
}


def joined(parts: list[xr.RankingData]) -> xr.RankingData:
    X, y, group = (np.concatenate(each) for each in zip(*((p.X, p.y, p.sizes) for p in parts), strict=True))
    return xr.RankingData.from_arrays(X, y, group=group)


def folds(folder: Path) -> list[tuple[xr.RankingData, xr.RankingData, xr.RankingData]]:
    parts = [xr.read(path) for path in sorted(folder.glob("S[1-5].txt*"))]
    return [(joined([parts[(k + i) % 5] for i in range(3)]), joined([parts[(k + 3) % 5]]), joined([parts[(k + 4) % 5]])) for k in range(5)]


def measured(fits, sets) -> list[str]:
    """Means and intervals by measure, and seconds a fit; of several fits each query's values are averaged first."""
    start = time.perf_counter()
    values: dict[str, list[np.ndarray]] = {name: [] for name in MEASURES}
    for train, valid, test in sets:
        scores = [test.X.astype(np.float64) @ fit(train, valid) for fit in fits]
        for name, preset in MEASURES.items():
            each = [xr.evaluate(name.strip(), test, s, preset=preset)[name.strip()].values for s in scores]
            values[name].append(np.mean(each, axis=0))
    seconds = (time.perf_counter() - start) / len(sets) / len(fits)
    shown = []
    for each in values.values():
        weight = np.concatenate([np.full(len(v), 1 / len(v)) for v in each])  # folds count equally
        low, high = bootstrap_intervals(np.concatenate(each)[None], weight)[0]
        shown.append(f"{np.mean([v.mean() for v in each]):.4f} ({low:.3f} .. {high:.3f})")
    return [*shown, f"{seconds:.1f}"]


def direct_rank(seed: int, way: dict):
    return lambda train, valid: xr.DirectRank(seed=seed, **way).fit(train, valid=valid).weights_


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data" / "MQ2008")
    options.add_argument("--seeds", type=int, default=4)
    given = options.parse_args()
    if not given.data.is_dir():
        print(f"skipped: there is no {given.data}; give --data")
        return
    sets = folds(given.data)
    rows = [[f"{name} (published)", *shown, "-", "-"] for name, shown in PUBLISHED.items()]
    rows.append(["ridge regression", *measured([lambda train, valid: ridge_weights(train, 0.1)], sets)])
    for name, way in WAYS.items():
        rows.append([name, *measured([direct_rank(seed, way) for seed in range(given.seeds)], sets)])
    header = ["method", "MeanNDCG (LETOR)", "NDCG@10 (LETOR)", "MAP (LETOR)", "nDCG@10 (standard)", "s a fit"]
    table("folds", f"MQ2008, mean of the five test folds and of {given.seeds} seeds", header, rows)


if __name__ == "__main__":
    sys.exit(main())
