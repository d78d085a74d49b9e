"""Claims: trees on a mapped cache take at most 0.3 x the features' memory and 60 bytes per document, bins of 0.25 x included,
and at most 1.5 x the time of training in memory; in memory at most 1.3 x the features and 60 bytes per document beyond the data as given.
The time grows as the number of queries does: log-log slope <= 1.05. With --full: 100 trees on 10 M documents x 20 features below 6 GB.

Memory is what belongs to no file. Each fit has a process of its own, which trains once on a few queries before it is measured; the cache is
in the page cache. Times are of one thread, in seconds of the processor's work, so that they hold on a busy machine too.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from timing import in_new_process, table

from exactrank._support.files import whole_file
from exactrank.data.formats.base import Block, Stream
from exactrank.data.formats.cache import CacheFormat

FITS = {
    "LambdaMART": "er.LambdaMART(trees={trees}, bags=0, threads={threads})",
    "MART": "er.MART(trees={trees}, bags=0, threads={threads})",
    "DirectRankTrees": "er.DirectRankTrees(trees={trees}, bags=0, threads={threads})",
}
DOCUMENTS, ROWS_PER_BLOCK = 20, 100_000

#: Fits a ranker on a cache, mapped or in memory; prints the memory before, the most while it fits, with files too, and the seconds.
FIT = """
import copy, json, resource, sys, threading, time
import numpy as np
import exactrank as er

def held():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("RssAnon"))

def watch():
    while not ended.wait(0.005):
        most[0] = max(most[0], held())

data, ranker = er.read(sys.argv[1]), eval(sys.argv[2])
ranker.fit(data.take_queries(np.arange(50)))
if sys.argv[3] == "in memory":
    data = copy.deepcopy(data)
before, most, ended = held(), [0], threading.Event()
thread = threading.Thread(target=watch)
thread.start()
start, begun = time.process_time(), time.perf_counter()
ranker.fit(data)
seconds, passed = time.process_time() - start, time.perf_counter() - begun
ended.set()
thread.join()
print(json.dumps([before, max(most[0], held()), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10, seconds, passed]))
"""


def blocks(documents: int, features: int) -> Iterator[Block]:
    """Random documents with grades from 0 to 4, some queries at a time."""
    rng = np.random.default_rng(0)
    for first in range(0, documents, ROWS_PER_BLOCK):
        X = rng.standard_normal((min(ROWS_PER_BLOCK, documents - first), features), dtype=np.float32)
        y = np.clip(X[:, 0] + X[:, 1] + rng.standard_normal(len(X)), 0, 4).round()
        yield Block(X=X, y=y, qid=first // DOCUMENTS + np.arange(len(X)) // DOCUMENTS)


def fitted(path: Path, fit: str, how: str) -> tuple[int, int, float, float]:
    """Bytes beyond what there was before, and in all with files; seconds of the processor, and by the clock."""
    before, most, whole, seconds, passed = json.loads(in_new_process(FIT, str(path), fit, how))
    return most - before, whole, seconds, passed


def memory(folder: Path, shapes: list[tuple[int, int]], trees: int) -> None:
    rows, costs = [], {}
    for documents, features in shapes:
        path, size = written(folder, documents, features), 4 * documents * features
        for name, fit in FITS.items():
            usual = 0.0
            for how, share in (("in memory", 1.3), ("mapped", 0.3)):
                beyond, _, seconds, _ = fitted(path, fit.format(trees=trees, threads=1), how)
                usual = usual or seconds
                cost = beyond / (share * size + 60 * documents)
                left = (beyond - (share - 0.05) * size) / documents  # beyond bins and, in memory, rows in another order
                figures = f"{beyond / size:.2f}", f"{left:.0f}", f"{cost:.2f}", f"{seconds / usual:.2f}"
                rows.append([f"{documents:,} x {features}", name, how, *figures])
                costs[f"{name}, {how}, {documents:,} x {features}"] = cost
    header = ["documents x features", "", "data", "x the features", "bytes per document beyond bins", "/ the target", "time / in memory"]
    table("memory", f"Memory of {trees} trees, beyond the data as given", header, rows, costs)


def slope(folder: Path, sizes: list[int], trees: int) -> None:
    times = [
        fitted(written(folder, DOCUMENTS * queries, 10), FITS["LambdaMART"].format(trees=trees, threads=1), "mapped")[2]
        for queries in sizes
    ]
    result = float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
    rows = [[f"{queries:,}", f"{seconds:.2f}", f"{1e6 * seconds / queries:.0f}"] for queries, seconds in zip(sizes, times, strict=True)]
    title = f"LambdaMART, {trees} trees, queries of {DOCUMENTS} documents x 10 features: log-log slope {result:.3f}"
    table("slope", title, ["queries", "s of the processor", "us a query"], rows, {"slope": result})


def large(folder: Path, documents: int, trees: int, threads: int) -> None:
    path = written(folder, documents, 20)
    beyond, whole, seconds, passed = fitted(path, FITS["LambdaMART"].format(trees=trees, threads=threads), "mapped")
    figures = f"{beyond / 1e9:.2f}", f"{beyond / documents:.0f}", f"{whole / 1e9:.2f}", f"{seconds:,.0f}", f"{passed:,.0f}"
    header = ["GB of no file", "bytes per document", "GB with pages of files", "s of the processor", "s by the clock"]
    title = f"LambdaMART, {trees} trees, {documents:,} documents x 20 features from a mapped cache, {threads} threads"
    table("large", title, header, [list(figures)], {"GB": beyond / 6e9})


def written(folder: Path, documents: int, features: int) -> Path:
    """A cache of that many random documents, written a block at a time."""
    path = folder / f"{documents}-{features}.xr"
    if not path.exists():
        names = tuple(f"f{j}" for j in range(features))
        with whole_file(path) as file:
            CacheFormat().write(file, Stream(blocks=blocks(documents, features), feature_names=names))
    return path


def shape(text: str) -> tuple[int, int]:
    documents, features = text.split("x")
    return int(documents), int(features)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shapes", type=shape, nargs="+", default=[(1_000_000, 20), (1_000_000, 136)], help="as 1000000x20")
    parser.add_argument("--trees", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--full", action="store_true", help="1 M queries, and 100 trees on 10 M documents, too")
    parser.add_argument("--large-trees", type=int, default=100)
    parser.add_argument("--only", choices=["memory", "slope", "large"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as name:
        folder = Path(name)
        if options.only in (None, "memory"):
            memory(folder, options.shapes, options.trees)
        if options.only in (None, "slope"):
            most = 1_000_000 if options.full else 100_000
            slope(folder, [round(10_000 * (most / 10_000) ** (k / 3)) for k in range(4)], options.trees)
        if options.only == "large" or (options.full and options.only is None):
            large(folder, 10_000_000, options.large_trees, options.threads)


if __name__ == "__main__":
    sys.exit(main())
