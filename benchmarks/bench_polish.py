"""Question: does polishing LambdaRank with exact steps (``polish="directrank"``) ever hurt?

On noisy artificial sets, and on LETOR-format folds where there are some (``--mq2008 FOLDER`` with S1.txt.gz to S5.txt.gz), a model
is trained with and without polish, with validation data and without, and both are evaluated on test queries. On training data
polish never lowers the measure; the question is about test data.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from study import five_folds
from timing import table

import exactrank as er
from exactrank.data.synthetic import CubicPolynomial

MEASURE = "nDCG@10"
Split = tuple[er.RankingData, er.RankingData, er.RankingData]


def noisy(queries: int, noise: float) -> Iterator[Split]:
    for seed in range(5):
        source = CubicPolynomial(features=20, documents=30, noise=noise, seed=seed)
        parts = ((queries, 1), (queries // 2, 20_001), (1000, 40_001))
        train, valid, test = (source.data(count, first) for count, first in parts)
        yield train, valid, test


def changes(split: Split, hidden: int | None, *, validated: bool) -> list[float]:
    """Return the gain of polishing, on training and on test data."""
    train, valid, test = split
    results = []
    for polish in (None, "directrank"):
        model = er.LambdaRank(MEASURE, hidden=hidden, polish=polish, max_iter=100).fit(train, valid=valid if validated else None)
        results.append([model.score(train), model.score(test)])
    return [after - before for before, after in zip(*results, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mq2008", type=Path, help="folder with S1.txt.gz to S5.txt.gz")
    options = parser.parse_args()
    sets = {f"artificial, {q} queries, noise {noise:g}": list(noisy(q, noise)) for q in (100, 1000) for noise in (0.5, 2.0)}
    if options.mq2008 is not None:
        sets["MQ2008"] = [(fold.train, fold.valid, fold.test) for fold in five_folds(options.mq2008)]
    rows = []
    for name, splits in sets.items():
        for hidden in (None, 10):
            for validated in (True, False):
                values = np.array([changes(split, hidden, validated=validated) for split in splits])
                train, test = values.mean(axis=0)
                worse = int((values[:, 1] < 0).sum())
                rows.append(
                    [
                        name,
                        str(hidden or "linear"),
                        "yes" if validated else "no",
                        f"{train:+.4f}",
                        f"{test:+.4f}",
                        f"{values[:, 1].min():+.4f}",
                        f"{worse} of {len(values)}",
                    ]
                )
    header = ["data", "hidden", "validation", "training", "test", "test, at worst", "worse on test"]
    table("changes", "What polish adds to nDCG@10, mean of five sets or folds", header, rows)


if __name__ == "__main__":
    sys.exit(main())
