"""Claim: `exactrank compare` takes at most 5% more than its fits, and keeps all cores busy.

The same comparison twice: by `xr.compare`, with as many workers as cores, and as a plain loop that fits the same settings on the same
divisions one after another in this process, by one thread. The fits of the loop, shared out evenly over the cores, are what a
comparison would take if dividing, starting processes, measuring, writing, testing and reporting took no time. The third figure is
the part of the cores' time that fits had, by their own clocks.
"""

import argparse
import tempfile
import time
from pathlib import Path

from timing import table

import exactrank as xr
from exactrank.threads import thread_count
from exactrank.workbench.comparison.contender import Task
from exactrank.workbench.comparison.contenders import find_contender
from exactrank.workbench.comparison.divisions import dealt
from exactrank.workbench.synthetic import CubicPolynomial

METHODS = ("directrank", "lambdarank", "structuredrank", "mart", "lambdamart", "lightgbm")
MEASURES = ("nDCG@10", "AP(rel=3)")


def loop(data: xr.RankingData, found: xr.Comparison, folds: int) -> float:
    """Seconds of the same fits, trials and final ones, in this process."""
    seconds = 0.0
    with tempfile.TemporaryDirectory() as scratch:
        for division in dealt("data", data, folds, 0, Path(scratch)).divisions:
            task = Task("data", division.read(), division.test.rows, MEASURES[0], 0, 1)
            for fit in (each for each in found.fits if each.fold == division.name):
                contender = find_contender(fit.method)
                for settings in [*(trial.settings for trial in fit.trials), fit.chosen]:
                    begun = time.perf_counter()
                    contender.fit(task, settings)
                    seconds += time.perf_counter() - begun
    return seconds


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--queries", type=int, default=600)
    given.add_argument("--trials", type=int, default=3)
    given.add_argument("--folds", type=int, default=3)
    options = given.parse_args()
    data = CubicPolynomial(features=40, documents=40, noise=0.5).data(options.queries)
    cores = thread_count(None)
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        found = xr.compare(data, METHODS, MEASURES, folds=options.folds, trials=options.trials, out=Path(folder) / "out")
        whole = time.perf_counter() - begun
    inside = sum(fit.seconds + sum(trial.seconds for trial in fit.trials) for fit in found.fits)
    alone = loop(data, found, options.folds)
    rows = [
        ["compare, wall time", f"{whole:.1f}", f"{whole / (alone / cores):.3f}"],
        [f"the fits in a loop, over {cores} cores", f"{alone / cores:.1f}", "1"],
        ["time of the cores that fits had", f"{inside / cores:.1f}", f"{inside / cores / whole:.3f}"],
    ]
    table(
        f"{len(METHODS)} methods, {options.folds} folds, {options.trials} trials, {options.queries} queries", ["", "seconds", "ratio"], rows
    )


if __name__ == "__main__":
    main()
