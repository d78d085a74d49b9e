"""Claims: training on a mapped cache takes at most 0.3 x the features' memory beyond the interpreter's, and at most 1.5 x the time of
training in memory; in memory, training takes at most 1.3 x the features beyond the data as given. Memory is what belongs to no file.

Each fit has a process of its own, which trains once on a few queries before it is measured. The cache is in the page cache.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
from timing import in_new_process, table

import exactrank as xr

FITS = {
    "DirectRank, a round": "xr.DirectRank(max_iter=1, bags=0, start='zero')",
    "LambdaRank, 5 steps": "xr.LambdaRank(max_iter=5)",
    "LambdaMART, 20 trees": "xr.LambdaMART(trees=20)",
    "RankNet, 10 hidden units, 2 steps": "xr.RankNet(hidden=10, max_iter=2)",
    "AdaRank, 5 rounds": "xr.AdaRank(max_iter=5)",
    "Ridge": "xr.Ridge()",
}

#: Fits a ranker on a cache, mapped or in memory; prints the memory before, the most while it fits, and the seconds.
FIT = """
import copy, json, sys, threading, time
import numpy as np
import exactrank as xr

def held():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("RssAnon"))

def watch():
    while not ended.wait(0.002):
        most[0] = max(most[0], held())

data, ranker = xr.read(sys.argv[1]), eval(sys.argv[2])
ranker.fit(data.take_queries(np.arange(50)))
if sys.argv[3] == "in memory":
    data = copy.deepcopy(data)
before, most, ended = held(), [0], threading.Event()
thread = threading.Thread(target=watch)
thread.start()
start = time.perf_counter()
ranker.fit(data)
seconds = time.perf_counter() - start
ended.set()
thread.join()
print(json.dumps([before, max(most[0], held()), seconds]))
"""


def made(documents: int, features: int) -> xr.RankingData:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((documents, features), dtype=np.float32)
    y = np.clip(X[:, 0] + X[:, 1] + rng.standard_normal(documents), 0, 4).round()
    return xr.RankingData.from_arrays(X, y, group=[20] * (documents // 20))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=136)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--only", help="part of the name of what is fitted")
    given = parser.parse_args()
    size, rows, costs = 4 * given.documents * given.features, [], {}
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
        paths = {kind: Path(folder) / f"{kind}.xr" for kind in ("plain", "columns")}
        for kind, path in paths.items():
            xr.write(made(given.documents, given.features), path, columns=kind == "columns")
        for name, ranker in FITS.items():
            if given.only and given.only not in name:
                continue
            kinds = {"in memory": ("plain", "in memory"), "mapped": ("plain", "mapped")}
            if "DirectRank" in name:
                kinds["mapped, with columns"] = ("columns", "mapped")
            usual = 0.0
            for kind, (path, how) in kinds.items():
                runs = [json.loads(in_new_process(FIT, str(paths[path]), ranker, how)) for _ in range(given.repeats)]
                beyond, seconds = min(most - before for before, most, _ in runs), min(seconds for *_, seconds in runs)
                usual = usual or seconds
                rows.append(
                    [name, kind, f"{beyond / size:.2f}", f"{beyond / given.documents:.0f}", f"{seconds:.1f}", f"{seconds / usual:.2f}"]
                )
                costs[f"{name}, {kind}"] = beyond / size
    title = f"{given.documents:,} documents x {given.features} features ({size / 1e6:,.0f} MB): memory beyond the data as given"
    table("memory", title, ["", "data", "x the features", "bytes a document", "s", "/ in memory"], rows, costs)


if __name__ == "__main__":
    sys.exit(main())
