"""Random faults, one after the other, for half an hour: whatever happens, the model is the one that is trained without faults.

``python -m tests.soak --minutes 30 --seed 7``. A line per round says what was done, and by which seed. A model that differs, an error
that should not be, or a round that hangs ends the run with 1; ``--seed SEED --first ROUND`` begins with that round.
"""

import argparse
import faulthandler
import logging
import secrets
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

from exactrank.learning.training import run as runs
from tests.soak.faults import FAULTS, HANG, Bench


def main() -> None:
    """Rounds until the time is over."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--minutes", type=float, default=30.0)
    arguments.add_argument("--seed", type=int, default=secrets.randbelow(10_000))
    arguments.add_argument("--first", type=int, default=0, help="the number of the first round")
    options = arguments.parse_args()
    print(f"seed {options.seed}", flush=True)
    until, number = time.monotonic() + 60 * options.minutes, options.first
    folder = Path(tempfile.mkdtemp(prefix="exactrank-soak-"))
    logging.disable(logging.CRITICAL)  # it tells at length of what is done to it
    runs.SECONDS_BETWEEN_CHECKPOINTS, runs.TIMES_BETWEEN_CHECKPOINTS = 0.0, 0
    try:
        bench = Bench.made(folder)
        while time.monotonic() < until:
            faulthandler.dump_traceback_later(HANG, exit=True)
            begun, rng = time.monotonic(), np.random.default_rng([options.seed, number])
            message = FAULTS[number % len(FAULTS)](rng, bench)
            print(f"seed {options.seed}, round {number}: {message}: the same model ({time.monotonic() - begun:.0f} s)", flush=True)
            number += 1
        faulthandler.cancel_dump_traceback_later()
    finally:
        shutil.rmtree(folder)
    print(f"{number - options.first} rounds, no model differed")


if __name__ == "__main__":
    main()
