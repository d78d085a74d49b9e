"""Contenders that do what contenders must not: crash, hang, print, take all the memory; and one that tells what it was given."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import ClassVar

import numpy as np

from exactrank._support.settings import Range
from exactrank.compare import fitting
from exactrank.compare.contender import Contender
from tests.events import HANGS, post, wait_at


@dataclass(frozen=True, eq=False)
class ByFeature:
    """Scores by one feature, with a constant factor."""

    settings: dict
    factor: float = 1.0
    curve = ()
    weights = None
    documents: ClassVar = {}

    def scores(self, part, data):
        return self.factor * data.feature(data.feature_names[0])

    def save(self, folder, name):
        (folder / f"{name}.txt").write_text(str(self.factor))


class Odd(Contender):
    about = "odd"

    def __init__(self, name="odd"):
        self.name = name

    def __repr__(self):
        return f"{type(self).__name__}()"


class Crashing(Odd):
    def fit(self, task, settings):
        os.abort()


class Raising(Odd):
    def fit(self, task, settings):
        raise RuntimeError(f"cannot fit {task.fold.name}")


class FailingOnSecondFold(Odd):
    def fit(self, task, settings):
        if task.fold.name == "Fold2":
            raise RuntimeError("no")
        return ByFeature({})


class Printing(Odd):
    def fit(self, task, settings):
        print("noise on stdout")
        os.write(1, b"more noise\n")
        print("noise on stderr", file=sys.stderr)
        return ByFeature({})


class Telling(Odd):
    """Its settings say what surrounded it."""

    def fit(self, task, settings):
        return ByFeature({"threads": task.threads, "omp": os.environ["OMP_NUM_THREADS"], "pid": os.getpid(), "seed": task.seed})


class Signed(Odd):
    """Good with a positive factor, which tuning must find; the default is bad."""

    space: ClassVar = {"factor": Range(-1.0, 1.0)}

    def fit(self, task, settings):
        return ByFeature(dict(settings), settings.get("factor", -1.0))


class Unseen(Odd):
    """Could be tuned, but scores test documents alone."""

    space: ClassVar = {"factor": Range(1.0, 2.0)}

    def fit(self, task, settings):
        return OnTest(dict(settings))


class OnTest(ByFeature):
    def scores(self, part, data):
        return super().scores(part, data) if part == "test" else None


class Slow(Odd):
    """Takes no time by default, and does not end otherwise."""

    space: ClassVar = {"factor": Range(1.0, 2.0)}

    def __setstate__(self, state):
        """In the process of a fit, before its time is taken: the clock there stands still, whatever else the machine does."""
        vars(self).update(state, now=0.0)
        fitting.time = SimpleNamespace(perf_counter=lambda: self.now)

    def fit(self, task, settings):
        if settings:
            Event().wait(HANGS)
            self.now = HANGS
        return ByFeature(dict(settings))


class Waiting(Odd):
    """Says that it has begun, and fits once a gate is open."""

    def fit(self, task, settings):
        place = Path(os.environ["EXACTRANK_TEST_PLACE"])
        post(place / "begun", task.fold.name)
        wait_at(place / "gate")
        return ByFeature({})


class Hungry(Odd):
    """Holds so many bytes for a moment."""

    BYTES = 300 << 20

    def fit(self, task, settings):
        np.ones(self.BYTES // 8)
        return ByFeature({})


class Untrue(Odd):
    """What it says about itself cannot be shown."""

    def fit(self, task, settings):
        return UntruthfullyFitted({})


class UntruthfullyFitted(ByFeature):
    curve = (1, 2)
