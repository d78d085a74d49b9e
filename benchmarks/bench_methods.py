"""Claim: on MQ2008 few published methods differ at their defaults; where grades are not linear in the features, trees and networks lead.

Every method of the library but Blend, which bench_quality.py tests, and LightGBM, XGBoost and CatBoost as `er.compare` has them, at
their defaults on the same folds: the five of MQ2008 (``--data FOLDER`` holds its parts), and 500 artificial queries dealt into five
parts, of which part k tests and the next validates. Figures are the mean of nDCG@10 over the test queries, 0 for those without relevant
documents, and CPU seconds per fit on one thread. *p* is that of the randomization test against the best of the column, after Holm's
correction over its rows.
"""

import sys
from functools import partial
from pathlib import Path

import numpy as np
from bench_quality import PEERS, Entry, fitted, identity
from study import five_folds, kept, parser, version
from timing import table

from exactrank.compare.contenders import as_contender
from exactrank.compare.statistics import holm, randomization
from exactrank.data.folds import Fold, deal_folds
from exactrank.data.ranking_data import checksum
from exactrank.data.synthetic import CubicPolynomial
from exactrank.rankers import RANKERS

#: Methods with networks of ten hidden units, besides the linear models that are their default.
NETWORKS = {f"{name}, 10 hidden units": f"{name.lower()}(hidden=10)" for name in ("LambdaRank", "ListNet", "ListMLE")}
METHODS = {kind.__name__: name for name, kind in RANKERS.items() if name not in ("torch", "blend")} | NETWORKS | PEERS


def artificial_folds(queries: int) -> list[Fold]:
    data = CubicPolynomial(features=25, documents=40, noise=0.5).data(queries)
    dealt = deal_folds(queries, 5, seed=0)
    parts = [(dealt == k, dealt == (k + 1) % 5) for k in range(5)]
    return [
        Fold(str(k + 1), *(data.take_queries(part) for part in (~(test | valid), valid, test))) for k, (test, valid) in enumerate(parts)
    ]


def columns(title: str, folds: list[Fold], cache: Path) -> dict[str, list[str]]:
    """Return the mean, the p-value against the best and the seconds of each method; what is in ``cache`` is not fitted again."""
    values, seconds = {}, {}
    sums = [[checksum(data) for data in (fold.train, fold.valid, fold.test)] for fold in folds]
    for name, method in METHODS.items():
        of = identity(as_contender(method), version())
        results = [
            kept(cache, (title, fold.name, name), [*of, own], partial(fitted, Entry(method), fold))
            for fold, own in zip(folds, sums, strict=True)
        ]
        values[name] = np.concatenate([result["values"] for result in results])
        seconds[name] = float(np.mean([result["cpu"] for result in results]))
        print(f"{name}: {values[name].mean():.4f}, {seconds[name]:.2f} s", file=sys.stderr, flush=True)
    best = max(values, key=lambda name: values[name].mean())
    others = [name for name in values if name != best]
    chance = dict(zip(others, holm([randomization(values[best] - values[name]) for name in others]), strict=True))
    return {
        name: [f"{values[name].mean():.4f}", f"{chance[name]:.2g}" if name in chance else "", f"{seconds[name]:.2f}"] for name in METHODS
    }


def main() -> None:
    options = parser(__doc__ or "", "methods").parse_args()
    folder = options.data / "MQ2008"
    if not folder.is_dir():
        print(f"skipped: there is no {folder}; give --data")
        return
    real = columns("MQ2008", five_folds(folder), options.cache)
    curved = columns("artificial", artificial_folds(500), options.cache)
    header = ["", *(f"{name}{column}" for name in ("MQ2008", "artificial") for column in ("", ", p", ", s per fit"))]
    rows = [[name, *real[name], *curved[name]] for name in sorted(METHODS, key=lambda name: real[name][0], reverse=True)]
    table("defaults", "Test nDCG@10 of all methods at their defaults", header, rows)


if __name__ == "__main__":
    main()
