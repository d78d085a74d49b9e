"""Question, not claim: how do DirectRank's defaults do on data that had no part in choosing them?

Needs ``../shared/data`` (or ``--data FOLDER``) with LightGBM's ranking example (201 training and 50 test queries) and ClueWeb09 (61
queries in five parts, each tested by a model of the other four). No validation data; mean nDCG@10 over test queries with its 95%
bootstrap interval. Settings are not to be tuned on this.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from timing import table

import exactrank as xr
from exactrank.measures.evaluate import bootstrap_intervals
from exactrank.objectives.ridge import ridge_weights

WAYS = {
    "DirectRank": lambda train: xr.DirectRank().fit(train).weights_,
    "DirectRank, one run": lambda train: xr.DirectRank(bags=0).fit(train).weights_,
    "CoordinateAscent, two starts": lambda train: xr.CoordinateAscent(restarts=2).fit(train).weights_,
    "ridge regression": lambda train: ridge_weights(train, 0.1),
}


def joined(parts: list[xr.RankingData]) -> xr.RankingData:
    """All parts as one set, with as many features as the widest has."""
    width = max(part.n_features for part in parts)
    X = np.concatenate([np.pad(part.X, ((0, 0), (0, width - part.n_features))) for part in parts])
    return xr.RankingData.from_arrays(X, np.concatenate([p.y for p in parts]), group=np.concatenate([p.sizes for p in parts]))


def sets(folder: Path) -> dict[str, list[tuple[xr.RankingData, xr.RankingData]]]:
    both = [xr.read(folder / "lightgbm-lambdarank" / f"rank.{part}.gz") for part in ("train", "test")]
    whole = joined(both)
    first = np.arange(whole.n_queries) < both[0].n_queries
    parts = [xr.read(path) for path in sorted((folder / "ClueWeb09").glob("part*.txt.gz"))]
    crossed = [(joined(parts[:i] + parts[i + 1 :]), part) for i, part in enumerate(parts)]
    return {"LightGBM's example": [(whole.take_queries(first), whole.take_queries(~first))], "ClueWeb09": crossed}


def tested(fit: Callable[[xr.RankingData], np.ndarray], splits: list[tuple[xr.RankingData, xr.RankingData]]) -> str:
    """The mean over all test queries, and its interval."""
    values = [xr.evaluate("nDCG@10", test, test.X.astype(np.float64) @ fit(train))["nDCG@10"].values for train, test in splits]
    each = np.concatenate(values)
    low, high = bootstrap_intervals(each[None], np.ones(len(each)))[0]
    return f"{each.mean():.4f} ({low:.3f} .. {high:.3f})"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    folder = options.parse_args().data
    if not folder.is_dir():
        print(f"skipped: there is no {folder}; give --data")
        return
    found = sets(folder)
    rows = [[way, *(tested(fit, splits) for splits in found.values())] for way, fit in WAYS.items()]
    header = [f"{name}, {sum(test.n_queries for _, test in splits)} test queries" for name, splits in found.items()]
    table("sets", "nDCG@10 on test queries", ["method", *header], rows)


if __name__ == "__main__":
    sys.exit(main())
