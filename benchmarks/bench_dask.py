"""A cluster of two workers with one thread each, beside two threads of one process: time per fit, and bytes per worker and line search.

Workers have fitted a small model before, as those of a cluster that is there for longer have.

python benchmarks/bench_dask.py [DOCUMENTS] [FEATURES]     by default 1,000,000 x 20; the target is stated for 5,000,000 x 50
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import exactrank as xr
from exactrank.data.write_shards import write_shards

DOCUMENTS_PER_QUERY = 50


def made(documents, features):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((documents, features), dtype=np.float32)
    y = np.clip(np.round(X[:, : features // 2].sum(axis=1) / np.sqrt(features) + rng.standard_normal(documents) + 1), 0, 4)
    return xr.RankingData.from_arrays(X, y, group=np.full(documents // DOCUMENTS_PER_QUERY, DOCUMENTS_PER_QUERY))


def timed(ranker, data):
    begun = time.perf_counter()
    model = ranker.fit(data).model_
    return time.perf_counter() - begun, model


def main():
    from distributed import Client, LocalCluster

    documents, features = (int(word) for word in (*sys.argv[1:], *("1000000", "20")[len(sys.argv) - 1 :]))
    documents -= documents % DOCUMENTS_PER_QUERY
    data = made(documents, features)
    everything = data.n_queries
    rankers = {
        "DirectRank, 1 round": lambda **more: xr.DirectRank(bags=0, max_iter=1, start="zero", **more),
        "LambdaRank, 5 steps": lambda **more: xr.LambdaRank(learning_rate=0.1, batch_size=everything, max_iter=5, start="random", **more),
    }
    with tempfile.TemporaryDirectory() as folder:
        large, small = (Path(folder) / name for name in ("large", "small"))
        for place, written in ((large, data), (small, made(20_000, features))):
            place.mkdir()
            write_shards(written, place, 4)
        shards = xr.read_shards(large)
        with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster, Client(cluster) as client:
            for name, ranker in rankers.items():
                ranker(threads=1, backend=xr.DaskBackend(client)).fit(xr.read_shards(small))
                here, ours = timed(ranker(threads=2), data)
                engine = xr.DaskBackend(client)
                there, theirs = timed(ranker(threads=1, backend=engine), shards)
                assert np.array_equal(ours.scorer.weights, theirs.scorer.weights)
                searches = features if "Direct" in name else 5
                per_search = (engine.sent + engine.received) / 2 / searches
                print(
                    f"{documents:,} x {features}, {name}: 2 threads {here:.1f} s, 2 workers {there:.1f} s, ratio {there / here:.2f};"
                    f" {engine.rounds} rounds, {per_search / 1e3:.0f} kB per worker and {'line search' if 'Direct' in name else 'step'}"
                )


if __name__ == "__main__":
    main()
