"""Claim: 10 million impressions become data for training in under 60 s and 2 GB.

A log of 10,000 queries, 100 sessions each, that show 10 of 40 documents, with ids of 12 letters, is read, propensities are harvested from
it, and grades are put beside 20 features. Each step is timed in a process of its own, whose largest memory is that of all steps.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from timing import table

import exactrank as er

QUERIES, SESSIONS, DOCUMENTS, SHOWN, FEATURES = 10_000, 100, 40, 10, 20


def write_log(folder: Path) -> None:
    rng, per_query = np.random.default_rng(0), SESSIONS * SHOWN
    theta, writers = 1 / np.arange(1.0, SHOWN + 1), {}
    for first in range(0, QUERIES, 500):
        query = np.repeat(np.arange(first, first + 500), per_query)
        order = np.argsort(rng.random((500 * SESSIONS, DOCUMENTS)) + np.linspace(0, 1, DOCUMENTS), axis=1)[:, :SHOWN].ravel()
        rank = np.tile(np.arange(1, SHOWN + 1), 500 * SESSIONS)
        clicked = rng.random(len(rank)) < theta[rank - 1] * (0.1 + 0.8 * (order % 4 == 0))
        session = np.repeat(np.arange(first * SESSIONS, (first + 500) * SESSIONS), SHOWN)
        ids = {"query_id": ("query", query), "doc_id": ("doc", query * DOCUMENTS + order), "session_id": ("visit", session)}
        named = {name: pa.array(np.char.add(what, np.char.zfill(codes.astype("U9"), 9))) for name, (what, codes) in ids.items()}
        block = pa.table(named | {"rank": rank, "clicked": clicked.astype(np.int8)})
        if not writers:
            writers = {
                "log.parquet": pyarrow.parquet.ParquetWriter(folder / "log.parquet", block.schema),
                "log.csv": pyarrow.csv.CSVWriter(folder / "log.csv", block.schema),
            }
        for writer in writers.values():
            writer.write_table(block)
    for writer in writers.values():
        writer.close()


def write_features(folder: Path) -> None:
    rng, rows = np.random.default_rng(1), QUERIES * DOCUMENTS
    query = np.char.add("query", np.char.zfill(np.repeat(np.arange(QUERIES), DOCUMENTS).astype("U9"), 9))
    docid = np.char.add("doc", np.char.zfill(np.arange(rows).astype("U9"), 9))
    X = rng.random((rows, FEATURES), dtype=np.float32)
    er.write(er.RankingData.from_arrays(X, np.zeros(rows), qid=query, docid=docid.tolist()), folder / "features.xr")


def steps(log: str, features: str) -> dict[str, float]:
    """Seconds of each step, and the largest memory, in GB."""
    times = [time.perf_counter()]
    clicks = er.clicks.read_clicks(log)
    times.append(time.perf_counter())
    curve = clicks.propensities("harvest", bootstrap=0)
    times.append(time.perf_counter())
    data = clicks.to_data(features, curve)
    times.append(time.perf_counter())
    named = dict(zip(("read", "propensities", "to data"), np.diff(times).tolist(), strict=True))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    return named | {"in all": times[-1] - times[0], "memory": memory, "documents": data.n_documents, "impressions": clicks.n_impressions}


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_log(folder)
        write_features(folder)
        rows = []
        for log in ("log.parquet", "log.csv"):
            command = [sys.executable, __file__, str(folder / log), str(folder / "features.xr")]
            record = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            seconds = [f"{record[step]:.1f} s" for step in ("read", "propensities", "to data", "in all")]
            rows.append([log, f"{record['impressions']:,}", f"{record['documents']:,}", *seconds, f"{record['memory']:.2f} GB"])
        columns = ["log", "impressions", "documents", "read", "propensities", "to data", "in all", "most memory"]
        table("clicks", "From a click log to data", columns, rows, {})


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(steps(*sys.argv[1:])))
    else:
        main()
