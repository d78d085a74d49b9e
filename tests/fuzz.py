"""Fuzzing: the parser and the cache opener meet random and mutated bytes; anything but a `DataError` is a defect.

Inputs run in a child process that writes each one down before it tries it, so a crash leaves the input that caused it
in build/fuzz. Usage: python tests/fuzz.py [--seconds 60] [--seed 0]
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import exactrank as xr

FOLDER = Path("build/fuzz")
TOKENS = [
    b"1",
    b"0",
    b"-1",
    b"2.5",
    b" ",
    b"\t",
    b"\r",
    b"\n",
    b"\n",
    b"qid:",
    b"qid:1",
    b":",
    b"1:",
    b"1:0.5",
    b"2:1e-3",
    b"#",
    b"# docid = a",
]
TOKENS += [
    b"nan",
    b"inf",
    b"NULL",
    b"1e999",
    b"-",
    b"+",
    b".",
    b"e",
    b"\x00",
    b"\xff",
    b"3000000000:1",
    b"0:1",
    b"99999999999999999999",
    b"," * 40,
]


def random_text(rng: np.random.Generator) -> bytes:
    """Tokens at random, or a good file with some bytes changed."""
    if rng.random() < 0.5:
        return b"".join(TOKENS[i] for i in rng.integers(0, len(TOKENS), rng.integers(1, 200)))
    lines = [
        b"%d qid:%d 1:%g 3:%g # docid = d%d" % (rng.integers(4), i // 4, rng.normal(), rng.normal(), i) for i in range(rng.integers(1, 30))
    ]
    return mutated(rng, b"\n".join(lines))


def mutated(rng: np.random.Generator, content: bytes) -> bytes:
    """Some bytes overwritten, removed or repeated."""
    changed = bytearray(content)
    for _ in range(rng.integers(1, 6)):
        at = int(rng.integers(len(changed) + 1))
        kind = rng.integers(4)
        if kind == 0 and at < len(changed):
            changed[at] = rng.integers(256)
        elif kind == 1:
            changed[at:at] = TOKENS[rng.integers(len(TOKENS))]
        elif kind == 2:
            del changed[at : at + int(rng.integers(1, 9))]
        else:
            del changed[at:]
    return bytes(changed)


def good_cache(rng: np.random.Generator) -> bytes:
    data = xr.RankingData.from_arrays(
        rng.normal(size=(20, 3)), rng.integers(0, 3, 20), qid=rng.integers(0, 5, 20), docid=[str(i) for i in range(20)]
    )
    xr.write(data, FOLDER / "good.xr", force=True)
    return (FOLDER / "good.xr").read_bytes()


def attempt(path: Path, rng: np.random.Generator) -> None:
    """Read and use what was read; only a DataError is an acceptable failure."""
    try:
        data = xr.read(path, missing=bool(rng.integers(2)), threads=int(rng.integers(1, 3)))
    except xr.DataError:
        return
    xr.describe(data)
    xr.evaluate(["nDCG@10", "AP", "Bpref", "AUC"], data, rng.integers(0, 3, data.n_documents))
    _ = data.docid and data.docid.tolist()


def child(seconds: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    cache = good_cache(rng)
    until, tried = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        is_cache = rng.random() < 0.4
        path = FOLDER / ("input.xr" if is_cache else "input.txt")
        path.write_bytes(mutated(rng, cache) if is_cache else random_text(rng))
        attempt(path, rng)
        tried += 1
    print(f"{tried} inputs, no defect")


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--seed", type=int, default=int(time.time()))
    arguments.add_argument("--child", action="store_true")
    given = arguments.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    if given.child:
        child(given.seconds, given.seed)
        return 0
    print(f"fuzzing for {given.seconds:g} s with seed {given.seed}", flush=True)
    done = subprocess.run([sys.executable, __file__, "--child", "--seconds", str(given.seconds), "--seed", str(given.seed)], check=False)
    if done.returncode != 0:
        print(f"DEFECT (exit {done.returncode}): the input is the newest file in {FOLDER}; the seed was {given.seed}")
    return int(done.returncode != 0)


if __name__ == "__main__":
    sys.exit(main())
