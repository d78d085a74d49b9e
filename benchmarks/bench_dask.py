"""A cluster of two workers with one thread each, beside two threads of one process: time per fit, rounds, and bytes per worker.

Workers have fitted a small model before, as those of a cluster that is there for longer have.

python benchmarks/bench_dask.py [DOCUMENTS] [FEATURES] [NAME]

By default 1,000,000 x 20 and all methods, or those whose name begins with NAME; the target is stated for 5,000,000 x 50.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import exactrank as er
from exactrank.data.write_shards import write_shards

DOCUMENTS_PER_QUERY = 50
TREES = 15


def made(documents, features):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((documents, features), dtype=np.float32)
    y = np.clip(np.round(X[:, : features // 2].sum(axis=1) / np.sqrt(features) + rng.standard_normal(documents) + 1), 0, 4)
    return er.RankingData.from_arrays(X, y, group=np.full(documents // DOCUMENTS_PER_QUERY, DOCUMENTS_PER_QUERY))


def timed(ranker, data):
    begun = time.perf_counter()
    model = ranker.fit(data).model_
    return time.perf_counter() - begun, model


@dataclass(frozen=True)
class Method:
    """A ranker with few steps, and what it asks the workers again and again."""

    make: Callable[..., Any]
    step: str
    steps: int


def methods(queries, features):
    trees = {"trees": TREES, "leaves": 31}
    return {
        "DirectRank, 1 round": Method(partial(er.DirectRank, bags=0, max_iter=1, start="zero"), "line search", features),
        "LambdaRank, 5 steps": Method(partial(er.LambdaRank, learning_rate=0.1, batch_size=queries, max_iter=5, start="random"), "step", 5),
        f"LambdaMART, {TREES} trees": Method(partial(er.LambdaMART, **trees), "tree", TREES),
        f"MART, {TREES} trees": Method(partial(er.MART, **trees), "tree", TREES),
        f"DirectRankTrees, {TREES} trees": Method(partial(er.DirectRankTrees, bags=0, **trees), "tree", TREES),
    }


def main():
    from distributed import Client, LocalCluster

    arguments = sys.argv[1:]
    documents, features = (int(word) for word in (*arguments[:2], *("1000000", "20")[len(arguments[:2]) :]))
    documents -= documents % DOCUMENTS_PER_QUERY
    data = made(documents, features)
    with tempfile.TemporaryDirectory() as folder:
        large, small = (Path(folder) / name for name in ("large", "small"))
        for place, written in ((large, data), (small, made(20_000, features))):
            place.mkdir()
            write_shards(written, place, 4)
        shards = er.read_shards(large)
        with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster, Client(cluster) as client:
            for name, method in methods(data.n_queries, features).items():
                if not name.startswith(arguments[2] if len(arguments) > 2 else ""):
                    continue
                method.make(threads=1, backend=er.DaskBackend(client)).fit(er.read_shards(small))
                here, ours = timed(method.make(threads=2), data)
                engine = er.DaskBackend(client)
                there, theirs = timed(method.make(threads=1, backend=engine), shards)
                assert np.array_equal(ours.predict(data), theirs.predict(data))
                per_step = (engine.sent + engine.received) / 2 / method.steps
                print(
                    f"{documents:,} x {features}, {name}: 2 threads {here:.1f} s, 2 workers {there:.1f} s, ratio {there / here:.2f};"
                    f" {engine.rounds} rounds, {engine.rounds / method.steps:.1f} per {method.step},"
                    f" {per_step / 1e3:.0f} kB per worker and {method.step}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
