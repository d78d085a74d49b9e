"""Claim: `exactrank compare` takes at most 5% more than its fits, and keeps all cores busy.

The same comparison twice: by `er.compare`, with as many workers as cores, and as a plain loop that fits and measures the same settings
on the same divisions one after another in this process, by one thread. The loop's time, shared out evenly over the cores, is what a
comparison would take if starting processes, checkpoints, statistics and the report took no time, no core were ever idle, and fits side
by side did not slow each other down. The last row is what fits took by their own clocks, side by side.
"""

import argparse
import tempfile
import time
from pathlib import Path

from timing import table

import exactrank as er
from exactrank._support.threads import thread_count
from exactrank.compare.contender import ContenderTask
from exactrank.compare.contenders import find_contender
from exactrank.compare.divisions import divide
from exactrank.data.synthetic import CubicPolynomial

METHODS = ("directrank", "lambdarank", "structuredrank", "mart", "lambdamart", "lightgbm")
MEASURES = ("nDCG@10", "AP(rel=3)")


def loop(data: er.RankingData, comparison: er.Comparison, folds: int) -> float:
    """Seconds of the same fits and measurements, trials and final ones, in this process."""
    seconds = 0.0
    with tempfile.TemporaryDirectory() as scratch:
        for division in divide("data", data, folds, 0, Path(scratch)).divisions:
            task = ContenderTask("data", division.read(), division.test.rows, MEASURES[0], 0, 1)
            for fit in (each for each in comparison.fits if each.fold == division.name):
                contender = find_contender(fit.method)
                for settings in [*(trial.settings for trial in fit.trials), None]:
                    begun = time.perf_counter()
                    fitted = contender.fit(task, fit.chosen if settings is None else settings)
                    for part in ("train", "valid", "test") if settings is None else ("valid",):
                        documents = getattr(task.fold, part)
                        er.evaluate(documents, fitted.scores(part, documents), MEASURES, threads=1)
                    seconds += time.perf_counter() - begun
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--folds", type=int, default=3)
    options = parser.parse_args()
    data = CubicPolynomial(features=40, documents=40, noise=0.5).data(options.queries)
    cores = thread_count(None)
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        comparison = er.compare(data, METHODS, MEASURES, folds=options.folds, trials=options.trials, out=Path(folder) / "out")
        whole = time.perf_counter() - begun
    inside = sum(fit.seconds + sum(trial.seconds for trial in fit.trials) for fit in comparison.fits)
    alone = loop(data, comparison, options.folds)
    rows = [
        ["compare, wall time", f"{whole:.1f}", f"{whole / (alone / cores):.3f}"],
        [f"a loop, over {cores} cores", f"{alone / cores:.1f}", "1"],
        ["fits alone, by their own clocks", f"{inside / cores:.1f}", f"{inside / cores / whole:.3f}"],
    ]
    title = f"{len(METHODS)} methods, {options.folds} folds, {options.trials} trials, {options.queries} queries"
    table("times", title, ["", "seconds", "ratio"], rows, {"compare": whole / (alone / cores)})


if __name__ == "__main__":
    main()
