"""Claim: LETOR text is parsed at >= 300 MB/s on one core, >= 2x XGBoost's loader, within 1.5x the matrix's memory.

140 MB of text, 136 dense features, 120 documents per query. Peers read the same file with one thread each; scikit-learn
and LightGBM read the first tenth, since they are slow. LightGBM and fastrank are fed by their own loaders.
"""

import contextlib
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
from timing import best, in_new_process, interleaved, pin, table

import exactrank as er

FEATURES, DOCUMENTS, SIZE = 136, 120, 140_000_000
MEMORY = """
import sys
import exactrank as er
import numpy, exactrank.data.files
def high_water():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) * 1024
before = high_water()
data = er.read(sys.argv[1], threads=int(sys.argv[2]))
print((high_water() - before) / data.X.nbytes)
"""


def write_text(path: Path, size: int) -> None:
    rng = np.random.default_rng(0)
    form = "%d qid:%d " + " ".join(f"{j + 1}:%g" for j in range(FEATURES)) + "\n"
    written, query = 0, 0
    with open(path, "w") as file:
        while written < size:
            query += 1
            X = np.round(rng.gamma(1, 3, (DOCUMENTS, FEATURES)), 4)
            X[rng.random(X.shape) < 0.2] = 0
            y = rng.choice(5, size=DOCUMENTS, p=[0.51, 0.32, 0.13, 0.03, 0.01])
            written += file.write("".join(form % (y[i], query, *X[i]) for i in range(DOCUMENTS)))


@contextlib.contextmanager
def quiet():
    """Peers print from native code; keep that out of the table."""
    with open(os.devnull, "w") as nothing:
        held = os.dup(1), os.dup(2)
        os.dup2(nothing.fileno(), 1), os.dup2(nothing.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(held[0], 1), os.dup2(held[1], 2)


def peers(path: Path) -> dict:
    import fastrank
    import xgboost
    from catboost import Pool

    return {
        "xgboost": lambda: xgboost.DMatrix(f"{path}?format=libsvm", nthread=1),
        "fastrank": lambda: fastrank.CDataset.open_ranksvm(str(path)),
        "catboost": lambda: Pool(f"libsvm://{path}", thread_count=1),
    }


def slow_peers(path: Path) -> dict:
    import lightgbm
    from sklearn.datasets import load_svmlight_file

    plain = path.with_suffix(".lgb")
    plain.write_bytes(
        b"".join(b" ".join([line.split(b" ", 2)[0], line.split(b" ", 2)[2]]) for line in path.read_bytes().splitlines(keepends=True))
    )
    return {
        "lightgbm": lambda: lightgbm.Dataset(str(plain), params={"num_threads": 1, "verbose": -1}).construct(),
        "scikit-learn": lambda: load_svmlight_file(str(path), query_id=True, dtype=np.float32),
    }


def main() -> None:
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        path, tenth = Path(folder) / "big.txt", Path(folder) / "tenth.txt"
        write_text(path, SIZE)
        write_text(tenth, SIZE // 10)
        megabytes = path.stat().st_size / 1e6
        pin(1)
        works = {"exactrank, 1 thread": lambda: er.read(path, threads=1)}
        with quiet():
            works |= peers(path)
            times = interleaved(works, 3)
            times |= {name: 10 * best(work, 1) for name, work in slow_peers(tenth).items()}
        ours = times["exactrank, 1 thread"]
        rows = [[name, f"{megabytes / t:.0f}", f"{t / ours:.1f}"] for name, t in times.items()]
        os.sched_setaffinity(0, cores)
        threads = interleaved({n: lambda n=n: er.read(path, threads=n) for n in (1, 2)}, 25)
        rows.append(["exactrank, 2 threads", f"{megabytes / threads[2]:.0f}", f"{threads[2] / ours:.2f}"])
        costs = {"1 thread": ours / times["xgboost"], "2 threads": threads[2] / threads[1]}
        table("readers", f"Parsing {megabytes:.0f} MB of LETOR text, {FEATURES} features", ["reader", "MB/s", "time / ours"], rows, costs)
        peaks = {name: float(in_new_process(MEMORY, str(path), str(n))) for n, name in enumerate(("1 thread", "2 threads"), 1)}
        rows = [[name, f"{peak:.2f}"] for name, peak in peaks.items()]
        table("memory", "Peak memory over the float32 matrix", ["", "peak / matrix"], rows, peaks)


if __name__ == "__main__":
    sys.exit(main())
