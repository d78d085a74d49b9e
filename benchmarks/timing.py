"""Timing and tables shared by the benchmarks: the best of several runs, ratios within one run, one core pinned."""

import os
import subprocess
import sys
import time
from collections.abc import Callable


def best(work: Callable[[], object], repeats: int = 5) -> float:
    """The shortest of several timings, in seconds: noise only ever adds."""
    shortest = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        shortest = min(shortest, time.perf_counter() - start)
    return shortest


def interleaved(works: dict[str, Callable[[], object]], repeats: int = 5) -> dict[str, float]:
    """The best time of each, taken in turns, so that a busy moment hits all alike."""
    times = dict.fromkeys(works, float("inf"))
    for _ in range(repeats):
        for name, work in works.items():
            times[name] = min(times[name], best(work, 1))
    return times


def pin(cores: int) -> None:
    """Confine this process to its first ``cores`` cores."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])


def in_new_process(code: str, *arguments: str) -> str:
    """What a fresh interpreter prints for ``code``: memory peaks and start-up times need one each."""
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True).stdout


def table(title: str, header: list[str], rows: list[list[str]]) -> None:
    """Print a Markdown table."""
    print(f"\n{title}\n")
    for row in [header, ["---"] * len(header), *rows]:
        print("| " + " | ".join(row) + " |")
