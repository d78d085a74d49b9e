"""Claims, on MQ2008 by LETOR's convention, mean of the test folds; the folder of ``--data`` has MQ2008/S1.txt.gz to S5.txt.gz:

- AdaRank as published takes one feature, or two, in each fold. The official figures are above the mean of its best rounds, each chosen by
  the test queries themselves.
- RankBoost and ListNet come within .003 of the official NDCG@10.
"""

import argparse
from pathlib import Path

import numpy as np
from ledger import ROOT
from study import five_folds
from timing import table

import exactrank as er
from exactrank.data.folds import Fold
from exactrank.rankers.base import Ranker

#: Official figures for `MEASURES`.
OFFICIAL = {
    "AdaRank-NDCG": (0.3826, 0.4420, 0.4821, 0.4636, 0.2307, 0.4824),
    "AdaRank-MAP": (0.3754, 0.4370, 0.4794, 0.4609, 0.2288, 0.4764),
    "RankBoost": (0.3856, 0.4288, 0.4666, 0.4568, 0.2255, 0.4775),
    "ListNet": (0.3754, 0.4324, 0.4747, 0.4630, 0.2303, None),
}
MEASURES = ("nDCG@1", "nDCG@3", "nDCG@5", "nDCG@8", "nDCG@10", "AP")
NDCG, AP = (er.parse_measure(name, "letor") for name in ("nDCG@10", "AP"))


def published(measure: er.measures.Measure) -> er.AdaRank:
    return er.AdaRank(measure, rest=0, nonnegative=True, standardize=False, patience=None)


def without_repeats(measure: er.measures.Measure) -> er.AdaRank:
    return er.AdaRank(measure, max_iter=46, nonnegative=True, standardize=False, patience=None)


RANKERS: dict[str, Ranker] = {
    "AdaRank for nDCG@10, as published": published(NDCG),
    "AdaRank for AP, as published": published(AP),
    "AdaRank for nDCG@10, each feature once": without_repeats(NDCG),
    "AdaRank for AP, each feature once": without_repeats(AP),
    "AdaRank for AP, by default": er.AdaRank(AP),
    "RankBoost for AP": er.RankBoost(AP),
    "RankBoost for AP, 255 thresholds, 1,000 steps": er.RankBoost(AP, thresholds=255, max_iter=1000),
    "ListNet for nDCG@10": er.ListNet(NDCG),
    "ListNet for AP": er.ListNet(AP),
}


def row(ranker: Ranker, folds: list[Fold]) -> list[str]:
    """Return the numbers of features per fold, the means of `MEASURES` over the test folds, and the best AP there of any round."""
    features, values, best = [], [], []
    for fold in folds:
        ranker.fit(fold.train, valid=fold.valid)
        scores = ranker.predict(fold.test)
        values.append([er.evaluate(fold.test, scores, name, preset="letor")[name].mean for name in MEASURES])
        if isinstance(ranker, er.AdaRank):
            features.append(str(np.count_nonzero(ranker.weights_)))
            if ranker.measure == AP:
                best.append(ranker.fit(fold.train, valid=fold.test).history_.best.valid)
    means = [f"{mean:.4f}" for mean in np.mean(values, axis=0)]
    return [" ".join(features), *means, f"{np.mean(best):.4f}" if best else ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder with MQ2008")
    folder = parser.parse_args().data / "MQ2008"
    if not folder.is_dir():
        print(f"skipped: there is no {folder}; give --data")
        return
    folds = five_folds(folder)
    header = ["", "features per fold", *MEASURES, "AP of the best round"]
    for method in ("AdaRank", "RankBoost", "ListNet"):
        official = [(name, values) for name, values in OFFICIAL.items() if method in name]
        rows = [[f"official {name}", "", *("" if value is None else f"{value:.4f}" for value in values), ""] for name, values in official]
        rows += [[name, *row(ranker, folds)] for name, ranker in RANKERS.items() if method in name]
        columns = [number for number in range(len(header)) if number == 0 or any(line[number] for line in rows)]
        shown = [[line[number] for number in columns] for line in [header, *rows]]
        table(method.lower(), f"{method} on MQ2008 by LETOR's convention, mean of the test folds", shown[0], shown[1:])


if __name__ == "__main__":
    main()
