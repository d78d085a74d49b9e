"""Training that is killed in its midst, to be resumed: processes that end by SIGKILL when they have written a number of checkpoints.

A test module has ``cases()``, which gives by name a ranker, its training data and its validation data or None. `unbroken` fits them all,
`killed` kills them all, and `assert_resumed` takes up what a killed one left behind: the result is that of the unbroken fit, to the bit.
Run as a program this forks one process per case and never trains itself, so that no library's threads are in the way.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import numpy as np

import exactrank as er
from exactrank.learning.training import run as runs
from exactrank.rankers.base import Ranker
from tests.events import HANGS

Case = tuple[Ranker, er.RankingData, er.RankingData | None]
ROOT = Path(__file__).parents[1]


def unbroken(cases: Mapping[str, Case]) -> dict[str, Ranker]:
    """Each ranker, fitted without a break."""
    return {name: ranker.fit(data, valid=valid) for name, (ranker, data, valid) in cases.items()}


def killed(module: str, fitted: Mapping[str, Ranker], folder: Path, seed: int = 0) -> None:
    """Fit the cases of ``module`` and kill each at a random moment; ``folder`` gets the last checkpoint of each."""
    rng = np.random.default_rng(seed)
    moments = {name: int(rng.integers(1, len(ranker.history_))) for name, ranker in fitted.items()}
    program = [sys.executable, "-m", "tests.killed", module, str(folder), json.dumps(moments)]
    subprocess.run(program, cwd=ROOT, check=True, timeout=HANGS)


def assert_resumed(whole: Ranker, case: Case, checkpoint: Path) -> None:
    """The ``case`` resumed from ``checkpoint`` is the ``whole`` one."""
    ranker, data, valid = case
    resumed = ranker.fit(data, valid=valid, resume=er.load(checkpoint))
    assert resumed.predict(data).tobytes() == whole.predict(data).tobytes()
    assert resumed.history_ == whole.history_
    assert resumed.model_.training == whole.model_.training


def _slay(case: Case, moment: int, path: Path) -> None:
    """Fit in a process of its own, which is killed when it has written ``moment`` checkpoints: one after each step."""
    pid = os.fork()
    if pid == 0:
        runs.SECONDS_BETWEEN_CHECKPOINTS, runs.TIMES_BETWEEN_CHECKPOINTS = 0.0, 0
        ranker, data, valid = case
        written = 0

        def keep(model: er.Model) -> None:
            nonlocal written
            written += 1
            if written >= moment - 1:
                model.save(path, force=True)
            if written == moment:
                os.kill(os.getpid(), signal.SIGKILL)

        ranker.fit(data, valid=valid, checkpoint=keep)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status), f"{path.stem} was not killed after {moment} checkpoints: it ended with {status}"


if __name__ == "__main__":
    cases = import_module(sys.argv[1]).cases()
    for name, moment in json.loads(sys.argv[3]).items():
        _slay(cases[name], moment, Path(sys.argv[2]) / f"{name}.json")
