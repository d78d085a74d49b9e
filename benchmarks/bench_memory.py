"""Claims: training on data in memory takes at most 1.3 x the features and 60 bytes per document more than the data as given; from a mapped
cache at most 0.3 x and 60 bytes, and at most 1.5 x the time. The time of a step grows as the number of queries does.

Memory is what belongs to no file. Each fit has a process of its own, which trains once on a few queries before it is measured; the cache is
in the page cache. Times are those of one thread, in seconds of the processor's work, so that they hold on a busy machine too. With --full
there are 1 M queries beside fewer, and 10 M documents of 20 features are parsed from text, converted and trained on.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from timing import in_new_process, table

import exactrank as er
from exactrank import _core

FITS = {
    "DirectRank, a round": "er.DirectRank(max_iter=1, bags=0, start='zero', threads=1)",
    "LambdaRank, 5 steps": "er.LambdaRank(max_iter=5, threads=1)",
    "LambdaMART, 20 trees": "er.LambdaMART(trees=20, bags=0, threads=1)",
    "RankNet, 10 hidden units, 2 steps": "er.RankNet(hidden=10, max_iter=2, threads=1)",
    "AdaRank, 5 rounds": "er.AdaRank(max_iter=5, threads=1)",
    "Ridge": "er.Ridge(threads=1)",
}
USUAL = tuple(FITS)[:3]
SHAPES = ((2_000_000, 5), (500_000, 100))
QUERIES, DOCUMENTS = (10_000, 30_000, 100_000, 300_000), 20
MOST = {"line search": 1.02, "lambda epoch": 1.02, "evaluation": 1.02, "DirectRank, a round": 1.05, "parsing": 1.05}
LARGE = 10_000_000, 20

#: Does some work; prints the memory before, the most meanwhile, and the seconds.
WATCHED = """
import copy, json, sys, threading, time
import numpy as np
import exactrank as er

def held():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("RssAnon"))

def watch():
    while not ended.wait(0.002):
        most[0] = max(most[0], held())

{prepare}
before, most, ended = held(), [0], threading.Event()
thread = threading.Thread(target=watch)
thread.start()
start, clock = time.process_time(), time.perf_counter()
{work}
seconds, waited = time.process_time() - start, time.perf_counter() - clock
ended.set()
thread.join()
print(json.dumps([before, max(most[0], held()), seconds, waited]))
"""
FIT = WATCHED.format(
    prepare="""
data, ranker = er.read(sys.argv[1]), eval(sys.argv[2])
ranker.fit(data.take_queries(np.arange(50)))
if sys.argv[3] == "in memory":
    data = copy.deepcopy(data)
""",
    work="ranker.fit(data)",
)
#: What is done with a large file, each in a process of its own.
LARGE_WORK = {
    "parse text": "er.read(sys.argv[1] + '.txt')",
    "convert, with columns": "app(['convert', sys.argv[1] + '.txt', sys.argv[1] + '.xr', '--columns'], standalone_mode=False)",
    "DirectRank, a round": "er.DirectRank(max_iter=1, bags=0, start='zero').fit(er.read(sys.argv[1] + '.xr'))",
    "DirectRank, a round, in memory": "er.DirectRank(max_iter=1, bags=0, start='zero').fit(copy.deepcopy(er.read(sys.argv[1] + '.xr')))",
    "LambdaRank, 5 steps": "er.LambdaRank(max_iter=5).fit(er.read(sys.argv[1] + '.xr'))",
    "LambdaMART, 100 trees": "er.LambdaMART(trees=100, bags=0).fit(er.read(sys.argv[1] + '.xr'))",
}


def made(documents: int, features: int) -> er.RankingData:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((documents, features), dtype=np.float32)
    y = np.clip(X[:, 0] + X[:, 1] + rng.standard_normal(documents), 0, 4).round()
    return er.RankingData.from_arrays(X, y, group=[DOCUMENTS] * (documents // DOCUMENTS))


def memory(documents: int, features: int, folder: Path, only: str | None) -> None:
    """The memory and the time of fits, in memory and from caches."""
    size, rows, costs = 4 * documents * features, [], {}
    paths = {kind: folder / f"{kind}.xr" for kind in ("plain", "columns")}
    for kind, path in paths.items():
        er.write(made(documents, features), path, columns=kind == "columns", force=True)
    for name, ranker in FITS.items():
        if only not in name if only else name not in USUAL:
            continue
        kinds = {"in memory": ("plain", "in memory"), "mapped": ("plain", "mapped")}
        if "DirectRank" in name:
            kinds["mapped, with columns"] = ("columns", "mapped")
        usual = 0.0
        for kind, (path, how) in kinds.items():
            before, most, seconds, _ = json.loads(in_new_process(FIT, str(paths[path]), ranker, how))
            beyond, allowed = most - before, 1.3 if kind == "in memory" else 0.3
            usual = usual or seconds
            share, left = f"{beyond / size:.2f}", f"{(beyond - allowed * size) / documents:.0f}"
            rows.append([name, kind, share, f"{beyond / documents:.0f}", left, f"{seconds:.1f}", f"{seconds / usual:.2f}"])
            costs[f"{name}, {kind}"] = beyond / documents
    title = f"{documents:,} documents x {features} features ({size / 1e6:,.0f} MB): memory beyond the data as given, one thread"
    header = ["", "data", "x the features", "bytes per document", "of these beyond 1.3 x or 0.3 x", "s", "/ in memory"]
    table(f"{documents}x{features}", title, header, rows, costs)


def works(queries: int, path: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Return the works that are timed on this number of queries, in turn."""
    data = made(queries * DOCUMENTS, 5)
    scores, column = data.X[:, 0].astype(np.float64), np.ascontiguousarray(data.X[:, 1])
    bound = er.measures.NDCG(k=10).on(data, threads=1)
    search = _core.LineSearch(bound.native)
    search.rank(scores, 1)
    yield "line search", lambda: search.best(column, -np.inf, np.inf, 1)
    lambdas, weights = er.losses.Lambdas("nDCG@10").on(data), np.ones(queries)
    yield "lambda epoch", lambda: _core.answers(lambdas, scores, data.indptr, weights, True, True, 1)
    yield "evaluation", lambda: bound.values(scores)
    yield "DirectRank, a round", lambda: er.DirectRank(max_iter=1, bags=0, start="zero", threads=1).fit(data)
    er.write(data, path, force=True)
    yield "parsing", lambda: er.read(path, threads=1)


def least(work: Callable[[], object], repeats: int) -> float:
    """The least processor time of several runs."""
    results = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        results.append(time.process_time() - start)
    return min(results)


def slopes(queries: tuple[int, ...], folder: Path) -> None:
    """Print how times grow with the number of queries: the slopes of lines through their logarithms."""
    times: dict[str, list[float]] = {}
    for count in queries:
        for name, work in works(count, folder / "slopes.txt"):
            times.setdefault(name, []).append(least(work, 5 if count < queries[-1] else 3))
    results = {name: float(np.polyfit(np.log(queries), np.log(own), 1)[0]) for name, own in times.items()}
    rows = [[name, *(f"{s:.3f}" for s in own), f"{results[name]:.3f}", f"{MOST[name]}"] for name, own in times.items()]
    title = f"Seconds by the number of queries of {DOCUMENTS} documents with 5 features, one thread, and the slope of log time"
    table("slopes", title, ["", *(f"{count:,}" for count in queries), "slope", "at most"], rows, results)


def large(folder: Path, only: str | None) -> None:
    """Print the memory and time of 10 M documents of 20 features."""
    documents, features = LARGE
    rows, costs = [], {}
    base = folder / "large"
    er.write(made(documents, features), base.with_suffix(".txt"))
    for name, work in LARGE_WORK.items():
        if only and only not in name and name != "convert, with columns":
            continue
        prepare = "from exactrank.cli import app" if "app(" in work else ""
        message = in_new_process(WATCHED.format(prepare=prepare, work=work), str(base))
        _, most, seconds, waited = json.loads(message.splitlines()[-1])
        rows.append([name, f"{most / 1e9:.2f}", f"{most / documents:.0f}", f"{seconds:.0f}", f"{waited:.0f}"])
        costs[name] = most / 6e9
    title = f"{documents:,} documents x {features} features ({4e-6 * documents * features:,.0f} MB): the most memory of a process"
    table("large", title, ["", "GB", "bytes per document", "s of work", "s"], rows, costs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="also 1 M queries, and 10 M documents of 20 features: an hour or so")
    parser.add_argument("--only", help="part of the name of what is fitted")
    parser.add_argument("--part", choices=("memory", "slopes", "large"), help="one part alone")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
        if options.part in (None, "memory"):
            for shape in SHAPES:
                memory(*shape, Path(folder), options.only)
        if options.part in (None, "slopes"):
            slopes((*QUERIES, 1_000_000) if options.full else QUERIES, Path(folder))
        if options.part == "large" or (options.full and options.part is None):
            large(Path(folder), options.only)


if __name__ == "__main__":
    sys.exit(main())
