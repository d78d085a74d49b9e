"""What may happen in training. Each fault ends with the model that is trained without it, and tells in a line what was done."""

import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

import exactrank as er
from exactrank.backends.dask import DaskBackend
from exactrank.data.shards import Shards, read_shards
from exactrank.data.synthetic import CubicPolynomial
from exactrank.data.write_shards import write_shards
from tests.backends.dask_processes import dask, scheduler_and_address

ROOT = Path(__file__).parents[2]
QUERIES = 1500
HANG = 600  #: seconds after which a round hangs
RANKERS: dict[str, Callable[..., Any]] = {
    "LambdaMART": partial(er.LambdaMART, trees=30, bags=0, threads=1),
    "MART": partial(er.MART, trees=30, bags=0, threads=1),
    "DirectRankTrees": partial(er.DirectRankTrees, trees=12, threads=1),
    "DirectRank": partial(er.DirectRank, bags=0, max_iter=1, restarts=2, start="random", threads=1),
    "LambdaRank": partial(er.LambdaRank, learning_rate=0.1, batch_size=QUERIES, max_iter=12, start="random", threads=1),
    "AdaRank": partial(er.AdaRank, "AP", max_iter=6, threads=1),
}
#: What the command line trains.
METHODS = (
    "lambdamart --trees 100 --bags 0",
    "directrank --bags 0 --restarts 4 --start random",
    "lambdarank --max-iter 60 --batch-size 1500",
)
COMMAND = (sys.executable, "-c", "from exactrank.cli import main; main()")


@dataclass
class Bench:
    """Data, and models that were trained without faults."""

    folder: Path
    data: er.RankingData
    _whole: dict[str, tuple[bytes, int]] = field(default_factory=dict)

    @classmethod
    def made(cls, folder: Path) -> "Bench":
        """With the data as three shards."""
        data = CubicPolynomial(features=6, documents=20, noise=0.5, seed=1).data(QUERIES)
        (folder / "shards").mkdir()
        write_shards(data, folder / "shards", 3)
        return cls(folder, data)

    @property
    def shards(self) -> Shards:
        """The files."""
        return read_shards(self.folder / "shards")

    def whole(self, name: str) -> tuple[bytes, int]:
        """The scores of the model of the ranker called ``name``, and after how many steps it had them."""
        if name not in self._whole:
            ranker = RANKERS[name]().fit(self.shards)
            self._whole[name] = ranker.predict(self.data).tobytes(), len(ranker.history_)
        return self._whole[name]

    def check(self, name: str, model: Any, message: str) -> str:
        """``told``, once the ``model`` is that of ``name``."""
        if model.predict(self.data).tobytes() != self.whole(name)[0]:
            raise AssertionError(f"{message}: another model")
        return message


@contextmanager
def two_workers() -> Iterator[tuple[Client, list[int]]]:
    """A client of a cluster, and the processes of its workers."""
    quiet = {"dashboard_address": ":0", "scheduler_kwargs": {"dashboard": False}, "silence_logs": logging.CRITICAL}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, memory_limit=0, **quiet) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        client.wait_for_workers(2, timeout=120)
        yield client, sorted(client.run(os.getpid).values())


def a_lost_worker(rng: np.random.Generator, bench: Bench) -> str:
    """One of two workers is killed, or stopped for good, a moment after a random step."""
    name, how = str(rng.choice(list(RANKERS))), signal.SIGKILL if rng.random() < 0.6 else signal.SIGSTOP
    step, delay = int(rng.integers(bench.whole(name)[1])), float(rng.uniform(0, 0.3))
    with two_workers() as (client, pids):
        victim, steps = int(rng.integers(2)), count()
        timer = threading.Timer(delay, os.kill, (pids[victim], how))

        def heard(progress: Any) -> None:
            if next(steps) == step:
                timer.start()

        model = RANKERS[name](backend=DaskBackend(client, silence=4.0)).fit(bench.shards, progress=heard).model_
        timer.join()
        if how is signal.SIGSTOP:
            os.kill(pids[victim], signal.SIGKILL)
    return bench.check(name, model, f"{name}: worker {victim} got {how.name} {delay:.2f} s after step {step}")


def two_clients(rng: np.random.Generator, bench: Bench) -> str:
    """Two clients train at once on one cluster, which loses a worker."""
    names = [str(name) for name in rng.choice(list(RANKERS), 2)]
    delay, result = float(rng.uniform(0.5, 4)), dict[int, Any]()
    with two_workers() as (client, pids):

        def fit(number: int) -> None:
            with Client(client.scheduler.address, set_as_default=False) as own:
                result[number] = RANKERS[names[number]](backend=DaskBackend(own, silence=4.0)).fit(bench.shards, progress=False).model_

        timer = threading.Timer(delay, os.kill, (pids[int(rng.integers(2))], signal.SIGKILL))
        threads = [*(threading.Thread(target=fit, args=(number,)) for number in range(2)), timer]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    message = f"{names[0]} and {names[1]} at once, a worker killed after {delay:.1f} s"
    if len(result) < 2:
        raise AssertionError(f"{message}: a client failed")
    for number, name in enumerate(names):
        bench.check(name, result[number], message)
    return message


def a_lost_scheduler(rng: np.random.Generator, bench: Bench) -> str:
    """The scheduler is killed, or stopped, after a random step; training is resumed from the last checkpoint without a cluster."""
    name, how = str(rng.choice(list(RANKERS))), signal.SIGKILL if rng.random() < 0.5 else signal.SIGSTOP
    moment, kept = int(rng.integers(1, bench.whole(name)[1])), list[Any]()
    with scheduler_and_address() as (scheduler, address), dask("worker", address, "--nthreads", "1"):

        def keep(model: Any) -> None:
            kept.append(model)
            if len(kept) == moment:
                scheduler.send_signal(how)

        with Client(address, set_as_default=False, timeout=30) as client:
            client.wait_for_workers(1, timeout=120)
            message = f"{name}: the scheduler got {how.name} after checkpoint {moment}"
            try:
                RANKERS[name](backend=DaskBackend(client, silence=4.0)).fit(bench.shards, checkpoint=keep)
                message = f"{message}, too late to be noticed"
            except er.errors.EngineError as error:
                if "go on from the checkpoint" not in str(error):
                    raise
            finally:
                scheduler.kill()
    return bench.check(name, RANKERS[name]().fit(bench.shards, resume=kept[-1]).model_, message)


def a_vanished_file(rng: np.random.Generator, bench: Bench) -> str:
    """A file vanishes, or changes, and a worker is killed: the error names the file, which is brought back; training is resumed."""
    name, kind = str(rng.choice(list(RANKERS))), str(rng.choice(["vanished", "changed"]))
    moment = int(rng.integers(1, bench.whole(name)[1]))
    own = Path(tempfile.mkdtemp(dir=bench.folder)) / "shards"
    shutil.copytree(bench.folder / "shards", own)
    path = sorted(own.glob("part-*.xr"))[int(rng.integers(3))]
    message, kept = f"{name}: {path.name} {kind} and a worker was killed after checkpoint {moment}", list[Any]()
    with two_workers() as (client, pids):

        def keep(model: Any) -> None:
            kept.append(model)
            if len(kept) == moment:
                path.unlink()
                if kind == "changed":
                    er.write(bench.data.take_queries(np.arange(9)), path)
                os.kill(pids[int(rng.integers(2))], signal.SIGKILL)

        try:
            RANKERS[name](backend=DaskBackend(client, silence=4.0)).fit(read_shards(own), checkpoint=keep)
            message += ", which nobody needed again"
        except er.errors.DataError as error:
            if str(path) not in str(error):
                raise
    shutil.copy(bench.folder / "shards" / path.name, path)
    return bench.check(name, RANKERS[name]().fit(read_shards(own), resume=kept[-1]).model_, message)


def a_killed_command(rng: np.random.Generator, bench: Bench) -> str:
    """The command line is killed at random moments, with its workers or without any, and resumed until it ends by itself."""
    method, workers = str(rng.choice(METHODS)), bool(rng.random() < 0.5)
    folder = Path(tempfile.mkdtemp(dir=bench.folder))
    command = [*COMMAND, "train", *method.split(), str(bench.folder / "shards"), "--threads", "1", "--out"]
    whole = bench.folder / f"{METHODS.index(method)}.json"
    if not whole.exists():
        subprocess.run([*command, str(whole)], check=True, cwd=ROOT, capture_output=True, timeout=600)
    kills, options = 0, ["--resume", *(["--workers", "2"] if workers else [])]
    while True:
        process = subprocess.Popen(
            [*command, str(folder / "killed.json"), *options], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        if kills < 3 and _survives(process, folder / "killed.json.checkpoint", rng):
            process.kill()
            process.communicate()
            kills += 1
            continue
        _, said = process.communicate(timeout=HANG)
        if process.returncode:
            raise AssertionError(f"{method}: resuming ended with {process.returncode}: {said.decode()}")
        break
    message = f"{method}: {'with two workers ' if workers else ''}killed {kills} times"
    ours, theirs = (er.load(path).predict(bench.data).tobytes() for path in (folder / "killed.json", whole))
    if ours != theirs:
        raise AssertionError(f"{message}: another model")
    return message


def _survives(process: "subprocess.Popen[bytes]", checkpoint: Path, rng: np.random.Generator) -> bool:
    """Is the ``process`` at work at a random moment: soon after its start or, more often, after it has written a ``checkpoint``?"""

    def written() -> int | None:
        with suppress(FileNotFoundError):
            return checkpoint.stat().st_mtime_ns
        return None

    before = written()
    if rng.random() < 0.7:
        while process.poll() is None and written() in (None, before):
            time.sleep(0.01)
    with suppress(subprocess.TimeoutExpired):
        process.wait(float(rng.uniform(0, 2)))
    return process.poll() is None


FAULTS: Sequence[Callable[[np.random.Generator, Bench], str]] = (
    a_lost_worker,
    a_killed_command,
    two_clients,
    a_lost_scheduler,
    a_lost_worker,
    a_vanished_file,
)
