"""Claim: on a cluster a tree costs what its documents cost, plus a few rounds and bytes that do not depend on them.

LambdaMART on artificial data of 20 documents per query: seconds per tree on one machine with one thread, on one worker and on two, with the
rounds of questions and the bytes that a tree takes; then a round of questions whose answers are tiny, which methods on parameter vectors
make once per coordinate or step. Workers are processes of this machine with one thread each. Beside these stands the cost model of
docs/scaling.md, (1): the time of a tree on a worker's share of the queries, and its rounds and bytes. For two workers the first is what
one of two processes takes on half of the queries while the other does the same, for cores that are busy at once share caches and memory.

Two minutes; with --large, which has a table of its own, some more and 6 GB of memory. On a machine that others use, give the benchmark a
priority of its own: ``chrt -r 5 python benchmarks/bench_scaling.py``.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client, LocalCluster
from timing import table

import exactrank as er
from exactrank.backends.dask import DaskBackend
from exactrank.data.dataset import EachPart, Part
from exactrank.data.sharded import ShardedData, open_shards
from exactrank.data.shards import Shards, read_shards
from exactrank.data.synthetic import CubicPolynomial

ROUNDS, BATCHES, DOCUMENTS = 20, 3, 20
BANDWIDTH = 1e9  #: bytes per second: between machines of a data center, and here
SIZES, LARGE = ((10_000, 10), (10_000, 40), (30_000, 10), (100_000, 10)), ((1_000_000, 10),)
QUERIES_AT_ONCE = 100_000  #: of artificial data, so that little memory is needed

#: Grows trees on one of several parts of the queries of a cache; prints the seconds of the second half of them.
ALONE = """
import json, sys, time
import numpy as np
import exactrank as er

path, part, parts, trees = sys.argv[1], *map(int, sys.argv[2:])
data, times = er.read(path), []
if parts > 1:
    data = data.take_queries(np.array_split(np.arange(data.n_queries), parts)[part])
ranker = er.LambdaMART(trees=2 * trees, bags=0, threads=1, feature_fraction=1.0)
ranker.fit(data, progress=lambda progress: times.append(time.perf_counter()))
print(json.dumps(np.diff(times)[trees - 1 :].tolist()))
"""


@dataclass(frozen=True)
class Measured:
    """Seconds per tree by the clock, rounds of questions, and bytes that go to workers and come back."""

    seconds: float
    rounds: float
    size: float


def trees_at_once(queries: int) -> int:
    """Return the number of trees that are timed together: fewer for large data, so that the benchmark ends soon."""
    return 8 if queries < 300_000 else 3


def at_once(path: Path, parts: int, trees: int) -> float:
    """Seconds per tree of as many processes at once as there are parts of the queries, each on its own: the least, of the slowest."""
    command = [sys.executable, "-c", ALONE, str(path)]
    started = [subprocess.Popen([*command, str(part), str(parts), str(trees)], stdout=subprocess.PIPE) for part in range(parts)]
    results = [json.loads(process.communicate()[0]) for process in started]
    return float(max(map(min, results)))


def on_workers(engine: DaskBackend, shards: Shards, trees: int) -> Measured:
    """The least of several batches of trees; what is done once is left out."""
    marks = []
    ranker = er.LambdaMART(trees=1 + BATCHES * trees, bags=0, threads=1, feature_fraction=1.0, backend=engine)
    ranker.fit(shards, progress=lambda progress: marks.append((time.perf_counter(), engine.rounds, engine.sent + engine.received)))
    batches = np.diff(np.array(marks)[: 1 + BATCHES * trees : trees], axis=0) / trees
    return Measured(*np.min(batches, axis=0).tolist())


def of_a_round(engine: DaskBackend, data: ShardedData) -> tuple[float, float]:
    """Seconds and bytes of a round whose answers are tiny."""
    seconds = []
    for _ in range(ROUNDS):
        begun, before = time.perf_counter(), engine.sent + engine.received
        data.ask(EachPart(documents))
        seconds.append(time.perf_counter() - begun)
    return float(np.median(seconds)), engine.sent + engine.received - before


def documents(part: Part) -> int:
    return part.data.n_documents


def written(folder: Path, queries: int, features: int) -> Path:
    """A cache of artificial data."""
    path = folder / f"{queries}-{features}.xr"
    if not path.exists():
        parts = [min(QUERIES_AT_ONCE, queries - first) for first in range(0, queries, QUERIES_AT_ONCE)]
        shards = [folder / f"part-{number}.xr" for number in range(len(parts))]
        for number, (count, shard) in enumerate(zip(parts, shards, strict=True)):
            er.write(CubicPolynomial(features=features, documents=DOCUMENTS, noise=0.5, seed=number).data(count), shard)
        whole = joined(shards)
        er.write(whole, path)
        for shard in shards:
            shard.unlink()
    return path


def joined(shards: list[Path]) -> er.RankingData:
    """The queries of all, one after the other."""
    parts = [er.read(shard) for shard in shards]
    if len(parts) == 1:
        return parts[0]
    X, y = np.concatenate([part.X for part in parts]), np.concatenate([part.y for part in parts])
    return er.RankingData.from_arrays(X, y, group=np.concatenate([part.sizes for part in parts]))


def measured(folder: Path, sizes: list[tuple[int, int]]) -> tuple[list[list[str]], dict[str, float]]:
    """The rows of the table, and what two workers took by the model."""
    rows, costs, alone = [], {}, {}
    for workers in (1, 2):
        cluster = LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None)
        with cluster, Client(cluster) as client:
            for queries, features in sizes:
                path, trees, size = written(folder, queries, features), trees_at_once(queries), (queries, features)
                alone.setdefault(size, (at_once(path, 1, trees), at_once(path, 2, trees)))
                alone_seconds, share = alone[size]
                engine: Any = DaskBackend(client)
                shards = read_shards([path])
                tree, (seconds, size_of_round) = on_workers(engine, shards, trees), of_a_round(engine, open_shards(shards, engine))
                model = (alone_seconds if workers == 1 else share) + tree.rounds * seconds + tree.size / BANDWIDTH
                times = [f"{1e3 * each:.0f}" for each in (alone_seconds, share, tree.seconds, model)]
                rest = f"{tree.rounds:.1f}", f"{tree.size / 1e6:.2f}", f"{1e3 * seconds:.0f}", f"{size_of_round / 1e3:.1f}"
                rows.append([f"{queries:,}", str(features), str(workers), *times, *rest])
                print(*rows[-1], file=sys.stderr, flush=True)
                costs[f"{workers} workers, {queries:,} x {features}"] = tree.seconds / model
    return rows, costs


def size(text: str) -> tuple[int, int]:
    queries, features = text.split("x")
    return int(queries), int(features)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", type=size, nargs="*", metavar="QUERIESxFEATURES", help="other sizes than the usual, as 20000x100")
    parser.add_argument("--large", action="store_true", help="1,000,000 queries x 10 features instead")
    options = parser.parse_args()
    sizes = options.sizes or (LARGE if options.large else SIZES)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
        rows, costs = measured(Path(folder), list(sizes))
    times = ["one machine, ms a tree", "half of it, two at once", "workers, ms", "model, ms"]
    header = ["queries", "features", "workers", *times, "rounds a tree", "MB a tree", "ms a round", "kB"]
    title = f"LambdaMART on workers of one thread, {DOCUMENTS} documents per query; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    table("large" if options.large else "trees", title, header, rows, costs)


if __name__ == "__main__":
    main()
