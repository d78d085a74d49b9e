"""Timing and tables shared by the benchmarks: the best of several runs, ratios within one run, one core pinned."""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from ledger import record


def best(work: Callable[[], object], repeats: int = 5, clock: Callable[[], float] = time.perf_counter) -> float:
    """The shortest of several timings, in seconds: noise only ever adds."""
    shortest = float("inf")
    for _ in range(repeats):
        start = clock()
        work()
        shortest = min(shortest, clock() - start)
    return shortest


def interleaved(
    works: dict[str, Callable[[], object]], repeats: int = 5, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """The best time of each, taken in turns, so that a busy moment hits all alike."""
    times = dict.fromkeys(works, float("inf"))
    for _ in range(repeats):
        for name, work in works.items():
            times[name] = min(times[name], best(work, 1, clock))
    return times


def pin(cores: int) -> None:
    """Confine this process to its first ``cores`` cores."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])


def in_new_process(code: str, *arguments: str) -> str:
    """Return what a fresh interpreter prints for ``code``, since memory peaks and start-up times need one each."""
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True).stdout


def with_artificial(about: str) -> argparse.ArgumentParser:
    """A parser with the option for a folder of artificial data sets, by default that of the environment."""
    parser = argparse.ArgumentParser(description=about)
    folder = os.environ.get("ARTIFICIAL") or None
    parser.add_argument("--artificial", type=Path, default=folder, help="folder with {letor,mslr}.{train,vali,test}.npz")
    return parser


def table(name: str, title: str, header: list[str], rows: list[list[str]], costs: Mapping[str, float] | None = None) -> None:
    """Print a Markdown table, which is ``name`` in the ledger of the benchmark.

    ``costs`` is what our own work takes as a share of what a peer takes, or `in_yards`: what must not grow.
    """
    lines = ["| " + " | ".join(row) + " |" for row in [header, ["---"] * len(header), *rows]]
    print(f"\n{title}\n", *lines, sep="\n", flush=True)
    record(name, title, lines, costs or {})


def in_yards(times: Mapping[str, float]) -> dict[str, float]:
    """Times that have no peer as costs: shares of the time of some work that never changes, the yard."""
    numbers = np.random.default_rng(0).random(1_000_000)
    yard = best(lambda: np.sort(numbers), 5)
    return {name: seconds / yard for name, seconds in times.items()}
