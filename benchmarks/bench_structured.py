"""Claims, on 1,500 queries x 33 documents x 300 features (the size of Chapelle, Le & Smola's first web search set, on which each of
their three optimizers took about 15 minutes) and one core: a fit of the convex bound on nDCG@10 to a gap of 1e-3 takes < 60 s by
every solver, and < 5 s by cutting planes; its peak memory is <= 2x the data. All end within 2e-4 of the optimum.

On artificial data (1,000 queries x 40 documents x 46 features, and MSLR-like, where ``--artificial FOLDER`` has letor.*.npz and
mslr.*.npz) and on two cores: what each bound comes to on test data, beside ridge regression, RankSVM and LambdaRank.
"""

import sys
import time
from pathlib import Path

import numpy as np
from timing import in_new_process, in_yards, interleaved, pin, table, with_artificial

import exactrank as er
from exactrank.data.synthetic import CubicPolynomial
from exactrank.reproduce.artificial import mix_features

SOLVERS = ("cutting-plane", "bundle", "subgradient", "conjugate")
STRENGTHS = (10.0, 1.0, 0.1)

#: Prints the megabytes of the data and the most that the process ever held above what it held before it had them.
MEMORY = """
import resource, sys
import numpy as np
import exactrank as er
import exactrank.rankers.structuredrank, scipy.optimize
rng = np.random.default_rng(0)
X = rng.standard_normal((49_500, 300), dtype=np.float32)
y = np.digitize(X[:, :20].sum(axis=1) + 3 * rng.standard_normal(len(X)), [2, 5, 8, 11])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - X.nbytes / 2**20
data = er.RankingData.from_arrays(X, y, group=[33] * 1500)
del X
er.StructuredRank(l2=1.0, bound="convex", solver=sys.argv[1], tolerance=1e-3, threads=1).fit(data)
print(data.X.nbytes / 2**20, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before)
"""


def web_search() -> er.RankingData:
    return mix_features(CubicPolynomial(300, 33).data(1500), seed=0)


def solvers(data: er.RankingData) -> None:
    pin(1)
    rows, costs = [], {}
    for l2 in STRENGTHS:
        fitted = {s: er.StructuredRank(l2=l2, bound="convex", solver=s, tolerance=1e-3, max_iter=5000, threads=1) for s in SOLVERS}
        times = interleaved({s: lambda ranker=ranker: ranker.fit(data) for s, ranker in fitted.items()}, 2)
        costs |= in_yards({f"l2 {l2:g}, {solver}": seconds for solver, seconds in times.items()})
        exact = er.StructuredRank(l2=l2, bound="convex", tolerance=1e-6, threads=1).fit(data).history_[-1].duality.primal
        for solver, ranker in fitted.items():
            last = ranker.history_[-1]
            away = last.duality.primal / exact - 1
            rows.append([f"{l2:g}", solver, str(last.step), f"{times[solver]:.2f}", f"{last.duality.gap:.1e}", f"{away:.1e}"])
    header = ["l2", "solver", "passes", "s", "gap", "above the optimum"]
    table("solvers", f"{data}: the convex bound on nDCG@10 to a gap of 1e-3, one core", header, rows, costs)


def memory() -> None:
    rows, costs = [], {}
    for solver in SOLVERS:
        size, peak = map(float, in_new_process(MEMORY, solver).split())
        costs[solver] = peak / size
        rows.append([solver, f"{size:.0f}", f"{peak:.0f}", f"{peak / size:.2f}"])
    table("memory", "Peak memory of a fit, data included", ["solver", "data, MiB", "peak, MiB", "ratio"], rows, costs)


def quality(folder: Path, name: str) -> None:
    loaded = [np.load(folder / f"{name}.{part}.npz") for part in ("train", "vali", "test")]
    train, valid, test = (er.RankingData.from_arrays(part["X"], part["y"], qid=part["qid"]) for part in loaded)
    rankers = {
        "ridge regression": er.Ridge(),
        "RankSVM": er.RankSVM(),
        "StructuredRank, convex": er.StructuredRank(bound="convex"),
        "StructuredRank, ramp": er.StructuredRank(bound="ramp"),
        "LambdaRank": er.LambdaRank(),
    }
    rows = []
    for title, ranker in rankers.items():
        start = time.perf_counter()
        ranker.fit(train, valid=valid)
        seconds = time.perf_counter() - start
        measured = (f"{ranker.score(data):.4f}" for data in (train, valid, test))
        rows.append([title, *measured, f"{seconds:.1f}", str(ranker.model_.training.get("chosen", ""))])
    table(name, f"{train}, nDCG@10, settings by validation data", ["", "training", "validation", "test", "s", "chosen"], rows)


def main() -> None:
    parser = with_artificial(__doc__)
    parser.add_argument("--only", choices=["solvers", "memory", "quality"])
    options = parser.parse_args()
    if options.artificial and options.only in (None, "quality"):
        for name in ("letor", "mslr"):
            quality(options.artificial, name)
    if options.only in (None, "memory"):
        memory()
    if options.only in (None, "solvers"):
        solvers(web_search())


if __name__ == "__main__":
    sys.exit(main())
