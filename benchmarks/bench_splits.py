"""Question: are trees better whose splits the measure chooses, among the best few by their gain (Tan et al. 2013, future work)?

Quality, not speed. On the training queries alone (parts 1 to 4) of MQ2008 and OHSUMED, and on 400 artificial queries: five folds, each
of which is the test queries once, the next one the validation queries, and the rest is trained on. Trees have 10 leaves; a forest has up
to 100 trees, and validation queries choose how many are kept. "Published" follows the grades with steps of .1 to .5, all else by default.
Measures are nDCG@10, with the mean over orders of tied documents. Differences are those on the same test queries to the splits by gain,
with the standard error of their mean over all queries of the three sets.
"""

import sys
import time
from pathlib import Path

import numpy as np
from study import MEASURE, PARTS, ROOT, artificial, join_sets, part
from timing import pin, table

import exactrank as er
from exactrank.data.folds import deal_folds

SETS, ARTIFICIAL = ("MQ2008", "OHSUMED"), "artificial"
EXPECTED = "nDCG(ties='expected')@10"
FOLDS = 5
PUBLISHED = {"follow": "grades", "search": "all", "clip": True, "low": 0.1, "high": 0.5, "smoothing": 1.0, "query_fraction": 1.0}
WAYS = {"by default": {}, "published": PUBLISHED}
SPLITS = {"by gain": {}} | {f"by the measure, best of {count}": {"splits": "measure", "candidates": count} for count in (2, 8)}


def folds(data: er.RankingData) -> list[tuple[er.RankingData, ...]]:
    """Training, validation and test queries of each fold."""
    dealt = deal_folds(data.n_queries, FOLDS, seed=1)
    places = [(~np.isin(dealt, (k, (k + 1) % FOLDS)), dealt == (k + 1) % FOLDS, dealt == k) for k in range(FOLDS)]
    return [tuple(data.take_queries(queries) for queries in three) for three in places]


def values(name: str, settings: dict, sets: list[tuple[er.RankingData, ...]]) -> tuple[np.ndarray, float, float, float]:
    """The measure of each test query, the means of training measures and of numbers of trees, and seconds of the processor per fit."""
    by_query, training, counts, start = [], [], [], time.process_time()
    for train, valid, test in sets:
        model = er.DirectRankTrees(MEASURE, trees=100, leaves=10, bags=0, shape="best-first", threads=1, **settings).fit(train, valid=valid)
        by_query.append(er.evaluate(test, model.predict(test), EXPECTED)[EXPECTED].values)
        training.append(model.score(train, measure=EXPECTED))
        counts.append(model.model_.scorer.n_trees)
    seconds = (time.process_time() - start) / len(sets)
    print(f"{name}: {seconds:.1f} s per fit", file=sys.stderr, flush=True)
    return np.concatenate(by_query), float(np.mean(training)), float(np.mean(counts)), seconds


def study(way: str, data: dict[str, list[tuple[er.RankingData, ...]]]) -> None:
    """Print the table of one way to weigh trees."""
    rows, by_gain = [], {}
    for name, splits in SPLITS.items():
        results = {place: values(f"{way}, {name}, {place}", WAYS[way] | splits, sets) for place, sets in data.items()}
        by_gain = by_gain or {place: result[0] for place, result in results.items()}
        cells = [name]
        for by_query, training, count, _ in results.values():
            cells += [f"{training:.4f}", f"{by_query.mean():.4f}", f"{count:.0f}"]
        change = np.concatenate([results[place][0] - by_gain[place] for place in results])
        error = change.std(ddof=1) / np.sqrt(len(change))
        cells += [f"{change.mean():+.4f} ({error:.4f})" if splits else "", f"{np.mean([result[3] for result in results.values()]):.1f}"]
        rows.append(cells)
    header = ["splits", *(f"{place}, {what}" for place in data for what in ("training", "test", "trees")), "difference", "s per fit"]
    table(way.replace(" ", "-"), f"Trees weighed {way}, nDCG@10", header, rows)


def main() -> None:
    pin(1)
    folder = Path(sys.argv[sys.argv.index("--data") + 1]) if "--data" in sys.argv else ROOT.parent / "shared" / "data"
    data = {name: folds(join_sets([part(folder / name, number) for number in PARTS[:4]])) for name in SETS}
    data[ARTIFICIAL] = folds(artificial(400, 20, 30, noise=1.0, bent=0.5, seed=5))
    for way in WAYS:
        study(way, data)


if __name__ == "__main__":
    main()
