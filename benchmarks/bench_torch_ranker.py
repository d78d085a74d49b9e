"""The settings of TorchRanker: each changed alone, by cross-validation over the queries of training data.

    python benchmarks/bench_torch_ranker.py [--data ../shared/data] [--parts 2]

Sets: MQ2008 and OHSUMED (their part S1 to S3) where they are, and artificial data with bends. Of the queries of a set one part chooses the
epoch, another measures, the rest trains; the mean over the parts of nDCG@10 is printed, with the mean time of a fit.
"""

import argparse
import time
from pathlib import Path

import numpy as np

import exactrank as xr

CENTRE = {"max_iter": 40, "patience": 8}
CHANGES = {
    "as it is": {},
    "learning_rate=0.0003": {"learning_rate": 0.0003},
    "learning_rate=0.003": {"learning_rate": 0.003},
    "dropout=0.3": {"dropout": 0.3},
    "weight_decay=1": {"weight_decay": 1.0},
    "batch_size=8": {"batch_size": 8},
    "transform='none'": {"transform": "none"},
    "hidden=(64, 32)": {"hidden": (64, 32)},
}


def artificial(queries: int = 200, documents: int = 30) -> xr.RankingData:
    rng = np.random.default_rng(1)
    X = rng.lognormal(size=(queries * documents, 20))
    good = np.log(X[:, :5]) @ [1.0, -1.0, 0.7, 0.5, 0.5] + 1.5 * np.abs(np.log(X[:, 5])) + rng.normal(size=len(X))
    return xr.RankingData.from_arrays(X, np.digitize(good, [1.5, 3.0, 4.5]), qid=np.arange(len(X)) // documents)


def sets(folder: Path) -> dict[str, xr.RankingData]:
    found = {"artificial": artificial()}
    for name in ("MQ2008", "OHSUMED"):
        parts = [next((folder / name).glob(f"S{part}*"), None) for part in (1, 2, 3)]
        if all(parts):
            read = [xr.read(part) for part in parts]
            X, y = (np.concatenate([getattr(one, key) for one in read]) for key in ("X", "y"))
            found[name] = xr.RankingData.from_arrays(X, y, group=np.concatenate([one.sizes for one in read]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--parts", type=int, default=2)
    asked = parser.parse_args()
    every = sets(asked.data)
    print(f"{'setting':24}", *(f"{name:>12}" for name in every), f"{'seconds':>9}")
    for change, own in CHANGES.items():
        figures, begun = [], time.perf_counter()
        for data in every.values():
            dealt = np.random.default_rng(0).permutation(data.n_queries) % 5
            means = []
            for part in range(asked.parts):
                chooses, measures = dealt == part, dealt == (part + 1) % 5
                train, valid, test = map(data.take_queries, (~(chooses | measures), chooses, measures))
                means.append(xr.TorchRanker(**CENTRE | own).fit(train, valid=valid).score(test))
            figures.append(np.mean(means))
        seconds = (time.perf_counter() - begun) / len(every) / asked.parts
        print(f"{change:24}", *(f"{figure:12.4f}" for figure in figures), f"{seconds:9.1f}", flush=True)


if __name__ == "__main__":
    main()
