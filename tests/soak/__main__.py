"""Random faults, one after the other, for half an hour: whatever happens, the model is the one that is trained without faults.

``python -m tests.soak --minutes 30 --seed 0``. Each round trains trees on a cluster of two workers while a worker is killed or stopped
at a random moment, or trains by the command line, where the process itself is killed and its training resumed, again and again.
A line per round says what was done; a model that differs ends the run with 1, and the seed repeats it.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

import exactrank as xr
from exactrank.data.synthetic import CubicPolynomial
from exactrank.engine.dask import DaskEngine
from exactrank.engine.engine import LocalEngine
from exactrank.engine.partitions import read_shards
from exactrank.errors import LostWorkerWarning
from exactrank.rankers.boosted import BoostedRanker

ROOT = Path(__file__).parents[2]
RANKERS: dict[str, Callable[..., BoostedRanker]] = {
    "LambdaMART": partial(xr.LambdaMART, trees=30, threads=1),
    "MART": partial(xr.MART, trees=30, threads=1),
    "DirectRankTrees": partial(xr.DirectRankTrees, trees=12, threads=1),
}
#: What the command line trains; each takes some seconds.
METHODS = ("lambdamart --trees 400", "directrank --restarts 8", "lambdarank --max-iter 400")


def trees_with_a_lost_worker(rng: np.random.Generator, path: Path, client: Client) -> str:
    """Train on two workers; one is killed, or stopped for good, at a random step."""
    name = str(rng.choice(list(RANKERS)))
    how = signal.SIGKILL if rng.random() < 0.6 else signal.SIGSTOP
    step = int(rng.integers(1, 10))
    client.wait_for_workers(2, timeout=60)
    pids = list(client.run(os.getpid).values())
    victim = int(rng.choice(pids))
    make, engine = RANKERS[name], DaskEngine(client, silence=4.0)

    def fitted(engine: Any, heard: Callable[[Any], None] | bool) -> str:
        model: Any = make(engine=engine).fit(read_shards([path]), progress=heard).model_
        return str(model.scorer.text)

    def faulty(progress: Any) -> None:
        if progress.step == step:
            os.kill(victim, how)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LostWorkerWarning)
            ours = fitted(engine, faulty)
    finally:
        if how is signal.SIGSTOP:
            os.kill(victim, signal.SIGKILL)
    told = f"{name}: worker {pids.index(victim)} got {how.name} after step {step}"
    if ours != fitted(LocalEngine(), False):
        raise AssertionError(f"{told}: another model")
    return told


def training_that_is_killed(rng: np.random.Generator, path: Path, client: Client) -> str:
    """Train by the command line; the process is killed at random moments, and resumed until it ends by itself."""
    method = str(rng.choice(METHODS))
    folder = Path(tempfile.mkdtemp(dir=path.parent))
    command = [sys.executable, "-m", "exactrank", "train", *method.split(), str(path), "--threads", "1", "--out"]
    subprocess.run([*command, str(folder / "whole.json")], check=True, cwd=ROOT, capture_output=True, timeout=600)
    kills = 0
    while True:
        resumed = [*command, str(folder / "killed.json"), "--resume"]
        process = subprocess.Popen(resumed, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            _, said = process.communicate(timeout=float(rng.uniform(2.0, 8.0)) if kills < 5 else 600.0)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            kills += 1
            continue
        if process.returncode:
            raise AssertionError(f"{method}: resuming ended with {process.returncode}: {said.decode()}")
        break
    told = f"{method}: killed {kills} times"
    whole, killed = (xr.load(folder / f"{name}.json") for name in ("whole", "killed"))
    data = xr.read(path)
    if whole.predict(data).tobytes() != killed.predict(data).tobytes():
        raise AssertionError(f"{told}: another model")
    return told


def main() -> None:
    """Rounds until the time is over."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--minutes", type=float, default=30.0)
    arguments.add_argument("--seed", type=int, default=0)
    given = arguments.parse_args()
    until, number = time.monotonic() + 60 * given.minutes, 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.xr"
        xr.write(CubicPolynomial(features=8, documents=20, noise=0.5, seed=1).data(3000), path)
        cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
        with cluster, Client(cluster) as client:
            while time.monotonic() < until:
                rng = np.random.default_rng([given.seed, number])
                fault = trees_with_a_lost_worker if number % 2 == 0 else training_that_is_killed
                begun = time.monotonic()
                print(f"{number}: {fault(rng, path, client)}: the same model ({time.monotonic() - begun:.0f} s)", flush=True)
                number += 1
    print(f"{number} rounds, no model differed")


if __name__ == "__main__":
    main()
