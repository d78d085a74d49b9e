"""Claims, as shares of LightGBM's time on one core with the same trees, leaves, rate and bins, binning included: trees on squared errors
and on nDCG take <= 0.45, and <= 0.6 of LightGBM's quantized training; on few documents <= 0.5. Binning 480,000 documents x 136 features
takes <= 0.6 s. Sampled forces take <= 1.4x the time of LambdaMART, and DirectRankTrees on the grades <= 1.2x that of MART.

On ``--artificial FOLDER`` with mslr.{train,test}.npz (4,000 queries x 120 documents x 136 features), else on a smaller set that is
made up. ``--trees`` shortens it: times are proportional to it, quality is not.
"""

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import lightgbm as lgb
import numpy as np
from timing import interleaved, table, with_artificial

import exactrank as er
from exactrank import _core
from exactrank.data.dataset import Part
from exactrank.data.synthetic import CubicPolynomial
from exactrank.learning.trees.bins import Layout
from exactrank.rankers.boosted import BoostedRanker

MEASURE = "nDCG(empty='skip')@10"
LEAVES, RATE, BINS = 31, 0.1, 255
#: One forest whose trees are fitted to all data, as LightGBM's are.
ALL = {"bags": 0, "query_fraction": 1.0, "feature_fraction": 1.0}
#: DirectRank's trees as Tan et al. (2013) describe them.
PUBLISHED = {"follow": "grades", "search": "all", "low": 0.1, "high": 0.5, "smoothing": 1.0}
#: LightGBM's objective of the same kind; it is trained with quantized forces, too.
PEERS = {"MART": "regression", "LambdaMART": "lambdarank"}
QUANTISED = ", quantized"
#: What does more than another of ours, whose time it is compared with.
PLAIN = {
    "DirectRankTrees on the grades": "MART",
    "DirectRankTrees, as published": "MART",
    "LambdaMART, sampled forces": "LambdaMART",
}


def sets(folder: Path | None) -> tuple[er.RankingData, er.RankingData]:
    if folder is None:
        source = CubicPolynomial(features=50, noise=0.5)
        return source.data(1_500), source.data(500, 1_501)
    files = (np.load(folder / f"mslr.{part}.npz") for part in ("train", "test"))
    train, test = (er.RankingData.from_arrays(part["X"], part["y"], qid=part["qid"]) for part in files)
    return train, test


def few_documents() -> er.RankingData:
    """35,529 documents x 46 features, in queries of 3 to about 100 documents."""
    rng = np.random.default_rng(5)
    sizes = np.clip(rng.gamma(2.0, 12.0, 3_000).round().astype(int), 3, 119)
    sizes = np.diff(np.minimum(np.append(0, np.cumsum(sizes)), 35_529))
    X = rng.normal(size=(35_529, 46)).round(3)
    worth = X @ rng.normal(size=46) / 8 + np.tanh(X[:, 3] * X[:, 7]) + np.sin(X[:, 11]) + 1.5 * rng.normal(size=len(X))
    return er.RankingData.from_arrays(X.astype(np.float32), np.searchsorted(np.quantile(worth, [0.8, 0.95]), worth), group=sizes[sizes > 0])


def ours(kind: type[BoostedRanker], train: er.RankingData, trees: int, threads: int, **more: object) -> BoostedRanker:
    settings = {"trees": trees, "leaves": LEAVES, "bins": BINS, "threads": threads} | ALL
    if "smoothing" not in more:  # which takes the place of the rate
        settings["learning_rate"] = RATE
    return kind(**(settings | more)).fit(train)


def lightgbm(objective: str, train: er.RankingData, trees: int, threads: int, is_quantized: bool = False) -> lgb.Booster:
    settings = {"objective": objective, "num_leaves": LEAVES, "learning_rate": RATE, "max_bin": BINS, "num_threads": threads, "verbose": -1}
    settings |= {"use_quantized_grad": is_quantized}
    return lgb.train(settings, lgb.Dataset(train.X, train.y, group=train.sizes, params=settings), trees)


def in_bins(train: er.RankingData, threads: int) -> _core.BinnedRows:
    return _core.BinnedRows(Layout.of(Part(train), train.n_documents, BINS, (), threads).native, train.X, threads)


def in_lightgbms_bins(train: er.RankingData, threads: int) -> lgb.Dataset:
    return lgb.Dataset(train.X, train.y, params={"max_bin": BINS, "num_threads": threads, "verbose": -1}).construct()


def compared(
    name: str, works: dict[str, Callable[[], object]], threads: int, repeats: int, title: str, test: er.RankingData | None
) -> None:
    """Time all ``works``, those of LightGBM by the names in `PEERS`, and print ours as shares of theirs.

    One thread is timed by its processor, which other processes on the machine disturb less, and several by the clock.
    """
    results: dict[str, object] = {}
    timed = {work: lambda work=work, do=do: results.update({work: do()}) for work, do in works.items()}
    times = interleaved(timed, repeats, time.process_time if threads == 1 else time.perf_counter)
    rows, costs = [], {}
    for work in (work for work in works if "LightGBM" not in work):
        plain = PLAIN.get(work, work)
        peer = f"LightGBM {PEERS.get(plain, plain)}"
        shares = {"": peer, QUANTISED: peer + QUANTISED, ", to the plain method": plain}
        ratios = {end: times[work] / times[other] for end, other in shares.items() if other in times and other != work}
        qualities = [f"{quality_of(results[model], test):.4f}" if test and plain in PEERS else "" for model in (work, peer)]
        rows.append([work, f"{times[work]:.2f}", *(f"{ratios[end]:.2f}" if end in ratios else "" for end in shares), *qualities])
        costs |= {work + end: ratio for end, ratio in ratios.items()}
    header = ["", "s", "/ LightGBM", "/ LightGBM, quantized", "/ the plain method", "test NDCG@10", "LightGBM's"]
    table(name, f"{title}; threads: {threads}; the best of {repeats}", header, rows, costs)


def quality_of(model: object, test: er.RankingData) -> float:
    return er.evaluate(test, model.predict(test.X), MEASURE).means[MEASURE]


def works_on(train: er.RankingData, trees: int, threads: int) -> dict[str, Callable[[], object]]:
    """Our trees, and LightGBM's of the same kinds."""
    how = (train, trees, threads)
    works: dict[str, Callable[[], object]] = {}
    for kind, objective in PEERS.items():
        works |= {
            kind: partial(ours, getattr(er, kind), *how),
            f"LightGBM {objective}": partial(lightgbm, objective, *how),
            f"LightGBM {objective}{QUANTISED}": partial(lightgbm, objective, *how, is_quantized=True),
        }
    return works


def main() -> None:
    parser = with_artificial(__doc__)
    parser.add_argument("--trees", type=int, default=300)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=["speed", "binning", "few"])
    options = parser.parse_args()
    threads, repeats = options.threads, options.repeats
    train, test = sets(options.artificial)
    if options.only in (None, "speed"):
        works = works_on(train, options.trees, threads)
        works["DirectRankTrees on the grades"] = partial(
            ours, er.DirectRankTrees, train, options.trees, threads, follow="grades", search="all"
        )
        works["DirectRankTrees, as published"] = partial(ours, er.DirectRankTrees, train, options.trees, threads, **PUBLISHED)
        compared("speed", works, threads, repeats, f"{train}: {options.trees} trees of {LEAVES} leaves", test)
    if options.only in (None, "binning"):
        bins = {"binning": partial(in_bins, train, threads), "LightGBM binning": partial(in_lightgbms_bins, train, threads)}
        compared("binning", bins, threads, repeats, f"{train}: at most {BINS} bins per feature", None)
    if options.only in (None, "few"):
        few = few_documents()
        works = works_on(few, 100, threads)
        works["LambdaMART, sampled forces"] = partial(ours, er.LambdaMART, few, 100, threads, lambdas="sampled")
        compared("few", works, threads, repeats, f"{few}: 100 trees of {LEAVES} leaves", None)


if __name__ == "__main__":
    sys.exit(main())
