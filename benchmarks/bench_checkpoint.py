"""Claim: a checkpoint every 60 s takes at most 2% of the time of training.

The time of the last checkpoint of a training, on the disk of this folder, flushed; the shortest of three. However long one takes, training
goes on for 50 times as long before the next.
"""

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from timing import in_yards, table

import exactrank as er
from exactrank.learning.training import run
from exactrank.rankers import fitting

DOCUMENTS, FEATURES, TIMED = 20_000, 136, 3
FITS = {
    "LambdaMART, 300 trees of 31 leaves": er.LambdaMART(trees=300, leaves=31, bags=0),
    "DirectRank, one model": er.DirectRank(bags=0, max_iter=3),
    "DirectRank, as usual": er.DirectRank(max_iter=2),
    "LambdaRank, 10 hidden units, 100 steps": er.LambdaRank(hidden=10, max_iter=100),
}


def made() -> er.RankingData:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((DOCUMENTS, FEATURES), dtype=np.float32)
    y = np.clip(X[:, 0] + X[:, 1] + rng.standard_normal(DOCUMENTS), 0, 4).round()
    return er.RankingData.from_arrays(X, y, group=[20] * (DOCUMENTS // 20))


class Timed(run.RootRecorder):
    """Makes a checkpoint at each of the last steps, and takes the time of it."""

    seconds: list[float]

    def _record(self, progress: Any, *more: Any) -> None:
        self._due = -np.inf if progress.step > progress.steps - TIMED else np.inf
        start = time.perf_counter()
        super()._record(progress, *more)
        if self._due != np.inf:
            Timed.seconds.append(time.perf_counter() - start)


def main() -> None:
    data, rows, times = made(), [], {}
    fitting.RootRecorder = Timed  # type: ignore[misc]
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        path = Path(folder) / "model.json.checkpoint"
        for name, ranker in FITS.items():
            Timed.seconds = []
            ranker.fit(data, checkpoint=lambda model: model.save(path, force=True))
            times[name] = min(Timed.seconds)
            rows.append([name, f"{path.stat().st_size / 1e6:.2f}", f"{1e3 * times[name]:.0f}", f"{times[name] / 60:.2%}"])
    title = f"One checkpoint: {DOCUMENTS:,} documents x {FEATURES} features"
    table("checkpoint", title, ["", "MB", "ms", "share of 60 s"], rows, in_yards(times))


if __name__ == "__main__":
    main()
