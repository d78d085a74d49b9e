"""Claim: on a cluster a tree costs what its documents cost, plus bytes that do not depend on them.

LambdaMART on artificial data of 20 documents a query: seconds per tree on one machine, on one worker and on two, and the bytes that each
worker sends to others per tree; then a round of questions, which methods on parameter vectors make once per coordinate or step. Workers are
processes of this machine with one thread each. The cost model of docs/scaling.md is printed beside these figures. On a machine that others
use, run it with a priority of its own: ``chrt -r 5 python benchmarks/bench_scaling.py``.
"""

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

import exactrank as xr
from exactrank.data.synthetic import CubicPolynomial
from exactrank.engine.dask import DaskEngine
from exactrank.engine.engine import Part, Partitioned, partitioned
from exactrank.engine.partitions import read_shards
from exactrank.measures.parse import parse_measure
from exactrank.rankers.cluster_forest import Crews, plan_of
from exactrank.training.judge import Task

TREES, ROUNDS, DOCUMENTS = 8, 20, 20
LATENCY, BANDWIDTH = 0.2e-3, 1e9  #: seconds for a message within a data centre, and bytes a second of 10 GbE
SIZES = ((10_000, 10), (10_000, 40), (100_000, 10))


def one_machine(data: xr.RankingData) -> float:
    """Seconds per tree, the least of what its second half took."""
    times: list[float] = []
    ranker = xr.LambdaMART(trees=2 * TREES, threads=1, feature_fraction=1.0)
    ranker.fit(data, progress=lambda progress: times.append(time.perf_counter()))
    return float(np.min(np.diff(times)[TREES:]))


def on_workers(data: Partitioned) -> tuple[float, float]:
    """Seconds per tree, the least of three batches, and bytes that a rank sends for one."""
    ranker = xr.LambdaMART(trees=100, threads=1, feature_fraction=1.0)
    measure = parse_measure(ranker.measure)
    plan = plan_of(ranker, Task(measure, data), ranker._objective(measure))  # type: ignore[arg-type]
    crews = Crews.begun(plan, data, "", 1)
    try:
        seconds, sent = [], 0
        for _ in range(3):
            begun = time.perf_counter()
            grown = crews.grow(TREES)
            seconds.append((time.perf_counter() - begun) / TREES)
            sent = max(found.sent for _, found in grown)
        return min(seconds), sent / TREES
    finally:
        crews.end()


def of_a_round(engine: DaskEngine, data: Partitioned) -> tuple[float, float]:
    """Seconds and bytes of a round whose answers are tiny."""
    seconds = []
    for _ in range(ROUNDS):
        begun, before = time.perf_counter(), engine.sent + engine.received
        data.ask(documents)
        seconds.append(time.perf_counter() - begun)
    return float(np.median(seconds)), engine.sent + engine.received - before


def documents(part: Part) -> int:
    return part.data.n_documents


def modelled(machine: float, features: int, bins: int, leaves: int, workers: int) -> float:
    """Seconds per tree by the cost model: a share of the work of one machine, and the exchange of histograms."""
    size = features * bins * 16 * (workers - 1) / workers
    return machine / workers + leaves * (2 * LATENCY * (workers > 1) + size / BANDWIDTH)


def measured(queries: int, features: int, folder: Path, client: Any, workers: int, alone: dict[tuple[int, int], float]) -> None:
    path = folder / f"{queries}-{features}.xr"
    if not path.exists():
        xr.write(CubicPolynomial(features=features, documents=DOCUMENTS, noise=0.5).data(queries), path)
    if (queries, features) not in alone:
        alone[queries, features] = one_machine(xr.read(path))
    engine = DaskEngine(client)
    data = partitioned(read_shards([path]), engine)
    tree, sent = on_workers(data)
    rounds, size = of_a_round(engine, data)
    one = alone[queries, features]
    model = modelled(one, features, 256, 15, workers)
    print(
        f"| {queries:,} | {features} | {workers} | {1e3 * one:.0f} | {1e3 * tree:.0f} | {1e3 * model:.0f} | {sent / 1e6:.2f}"
        f" | {1e3 * rounds:.0f} | {size / 1e3:.1f} |",
        flush=True,
    )


def main() -> None:
    sizes = [(int(a), int(b)) for a, b in (each.split("x") for each in sys.argv[1:])] or SIZES
    print(f"{os.cpu_count()} cores; load {os.getloadavg()[0]:.1f}")
    columns = (
        "queries",
        "features",
        "workers",
        "one machine, ms a tree",
        "workers, ms",
        "model, ms",
        "MB a worker and tree",
        "ms a round",
        "kB",
    )
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    alone: dict[tuple[int, int], float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for workers in (1, 2):
            cluster = LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None)
            with cluster, Client(cluster) as client:
                for queries, features in sizes:
                    measured(queries, features, Path(folder), client, workers, alone)


if __name__ == "__main__":
    main()
