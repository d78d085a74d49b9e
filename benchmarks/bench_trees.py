"""Claims, with the same trees, leaves, rate, bins and threads, binning included: LambdaMART on nDCG takes <= 0.85x the time of LightGBM's
own lambdarank, which measures nothing in training, at an equal or better test NDCG@10, and <= 1.2x its memory; DirectRankTrees takes
<= 1.2x the time of MART. Targets on few documents, 100 trees of one thread: LambdaMART takes no more CPU time than LightGBM, and
with sampled forces <= 1.5x LambdaMART.

On ``--artificial FOLDER`` with mslr.{train,test}.npz (4,000 queries x 120 documents x 136 features), else on a smaller set that is
made up. ``--trees`` shortens it: times are proportional to it, quality is not.
"""

import sys
import time
from pathlib import Path

import lightgbm as lgb
import numpy as np
from timing import in_new_process, table, with_artificial

import exactrank as xr
from exactrank.data.synthetic import CubicPolynomial

MEASURE = "nDCG(empty='skip')@10"
LEAVES, RATE, BINS = 31, 0.1, 255
#: DirectRank's trees as Tan et al. (2013) describe them.
PUBLISHED = {"follow": "grades", "search": "all", "low": 0.1, "high": 0.5, "smoothing": 1.0, "query_fraction": 1.0}

#: Trains one of the two on the arrays of a file, and prints the most memory, in MiB, that the process held.
MEMORY = """
import resource, sys
import numpy as np
kept = np.load(sys.argv[2])
X, y, group, trees, threads = kept["X"], kept["y"], kept["group"], int(sys.argv[3]), int(sys.argv[4])
if sys.argv[1] == "exactrank":
    import exactrank as xr
    xr.LambdaMART("nDCG@10", trees=trees, bags=0, threads=threads).fit(X, y, group=group)
else:
    import lightgbm as lgb
    settings = {"objective": "lambdarank", "num_leaves": 31, "verbose": -1, "num_threads": threads}
    lgb.train(settings, lgb.Dataset(X, y, group=group, params=settings), trees)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def sets(folder: Path | None) -> tuple[xr.RankingData, xr.RankingData]:
    if folder is None:
        source = CubicPolynomial(features=50, noise=0.5)
        return source.data(1_500), source.data(500, 1_501)
    kept = (np.load(folder / f"mslr.{part}.npz") for part in ("train", "test"))
    train, test = (xr.RankingData.from_arrays(part["X"], part["y"], qid=part["qid"]) for part in kept)
    return train, test


def lightgbm(train: xr.RankingData, trees: int, threads: int) -> lgb.Booster:
    settings = {
        "objective": "lambdarank",
        "num_leaves": LEAVES,
        "learning_rate": RATE,
        "max_bin": BINS,
        "verbose": -1,
        "num_threads": threads,
    }
    return lgb.train(settings, lgb.Dataset(train.X, train.y, group=train.sizes, params=settings), trees)


def xgboost(train: xr.RankingData, trees: int, threads: int) -> object:
    import xgboost as xgb

    settings = {"objective": "rank:ndcg", "max_leaves": LEAVES, "max_depth": 0, "grow_policy": "lossguide", "eta": RATE, "max_bin": BINS}
    data = xgb.QuantileDMatrix(train.X, train.y, group=train.sizes, max_bin=BINS, nthread=threads)
    return xgb.train(settings | {"tree_method": "hist", "nthread": threads}, data, trees)


def scores(model: object, X: np.ndarray) -> np.ndarray:
    if type(model).__module__.startswith("xgboost"):
        import xgboost as xgb

        return model.predict(xgb.DMatrix(X))
    return model.predict(X)


def speed(train: xr.RankingData, test: xr.RankingData, trees: int, threads: int, repeats: int, with_xgboost: bool) -> None:
    sizes = {"trees": trees, "bags": 0, "leaves": LEAVES, "bins": BINS, "threads": threads}
    ours = {"learning_rate": RATE} | sizes
    fits = {
        "LightGBM lambdarank": lambda: lightgbm(train, trees, threads),
        "LambdaMART": lambda: xr.LambdaMART(**ours).fit(train),
        "MART": lambda: xr.MART(**ours).fit(train),
        "DirectRankTrees on the grades": lambda: xr.DirectRankTrees(**ours, follow="grades").fit(train),
        "DirectRankTrees, as published": lambda: xr.DirectRankTrees(**(sizes | PUBLISHED)).fit(train),
    } | ({"XGBoost rank:ndcg": lambda: xgboost(train, trees, threads)} if with_xgboost else {})
    times, found = dict.fromkeys(fits, float("inf")), {}
    for _ in range(repeats):
        for name, fit in fits.items():
            start = time.perf_counter()
            found[name] = fit()
            times[name] = min(times[name], time.perf_counter() - start)
    rows = []
    for name, seconds in times.items():
        quality = xr.evaluate(MEASURE, test, scores(found[name], test.X)).means[MEASURE]
        ratios = [f"{seconds / times[other]:.2f}" for other in ("LightGBM lambdarank", "MART")]
        rows.append([name, f"{seconds:.1f}", *ratios, f"{quality:.4f}"])
    title = f"{train}: {trees} trees of {LEAVES} leaves, {threads} threads, the best of {repeats}"
    theirs = times.pop("LightGBM lambdarank")
    costs = {name: seconds / theirs for name, seconds in times.items() if "XGBoost" not in name}
    table("speed", title, ["", "s", "/ LightGBM", "/ MART", "test NDCG@10"], rows, costs)


def few(repeats: int) -> None:
    """CPU time on 35,529 documents x 46 features, in queries of 3 to about 100 documents."""
    rng = np.random.default_rng(5)
    sizes = np.clip(rng.gamma(2.0, 12.0, 3_000).round().astype(int), 3, 119)
    sizes = np.diff(np.minimum(np.append(0, np.cumsum(sizes)), 35_529))
    sizes = sizes[sizes > 0]
    X = rng.normal(size=(35_529, 46)).round(3)
    worth = X @ rng.normal(size=46) / 8 + np.tanh(X[:, 3] * X[:, 7]) + np.sin(X[:, 11]) + 1.5 * rng.normal(size=len(X))
    train = xr.RankingData.from_arrays(X.astype(np.float32), np.searchsorted(np.quantile(worth, [0.8, 0.95]), worth), group=sizes)
    ours = {"trees": 100, "bags": 0, "learning_rate": RATE, "leaves": LEAVES, "bins": BINS, "threads": 1}
    fits = {
        "LightGBM lambdarank": lambda: lightgbm(train, 100, 1),
        "LambdaMART": lambda: xr.LambdaMART(**ours).fit(train),
        "LambdaMART, sampled forces": lambda: xr.LambdaMART(**ours, lambdas="sampled").fit(train),
    }
    times = dict.fromkeys(fits, float("inf"))
    for _ in range(repeats):
        for name, fit in fits.items():
            start = time.process_time()
            fit()
            times[name] = min(times[name], time.process_time() - start)
    theirs, plain = times["LightGBM lambdarank"], times["LambdaMART"]
    rows = [[name, f"{seconds:.2f}", f"{seconds / theirs:.2f}", f"{seconds / plain:.2f}"] for name, seconds in times.items()]
    costs = {name: seconds / theirs for name, seconds in times.items() if "LightGBM" not in name}
    table("few", f"{train}: CPU time of 100 trees, the best of {repeats}", ["", "s", "/ LightGBM", "/ LambdaMART"], rows, costs)


def memory(train: xr.RankingData, folder: Path, trees: int, threads: int) -> None:
    path = folder / "trees.npz"
    np.savez(path, X=train.X, y=train.y, group=train.sizes)
    ours, theirs = (float(in_new_process(MEMORY, who, str(path), str(trees), str(threads))) for who in ("exactrank", "lightgbm"))
    rows = [["LightGBM lambdarank", f"{theirs:.0f}", ""], ["LambdaMART", f"{ours:.0f}", f"{ours / theirs:.2f}"]]
    title = f"{train}: the most memory of a process that trains {trees} trees, data included"
    table("memory", title, ["", "MiB", "/ LightGBM"], rows, {"LambdaMART": ours / theirs})


def main() -> None:
    import tempfile

    parser = with_artificial(__doc__)
    parser.add_argument("--trees", type=int, default=300)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--xgboost", action="store_true", help="let XGBoost take part, which takes longest")
    parser.add_argument("--only", choices=["speed", "few", "memory"])
    given = parser.parse_args()
    train, test = sets(given.artificial)
    if given.only in (None, "speed"):
        speed(train, test, given.trees, given.threads, given.repeats, given.xgboost)
    if given.only in (None, "few"):
        few(max(3, given.repeats))
    if given.only in (None, "memory"):
        with tempfile.TemporaryDirectory() as folder:
            memory(train, Path(folder), min(given.trees, 30), given.threads)


if __name__ == "__main__":
    sys.exit(main())
