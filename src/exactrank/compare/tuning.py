"""How much may be tried, and what.

Settings to try are the defaults first, then draws from the space of the method, each determined by the seed and its number alone.
So trials may run side by side in any order, and more of them later: trial n is the same (random search, Bergstra & Bengio 2012). The
draws are those of scikit-learn's ``ParameterSampler``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterSampler

from exactrank.compare.results import Trial
from exactrank.errors import DataError
from exactrank.settings import Space
from exactrank.threads import thread_count

#: More are a mistake.
MOST_TRIALS, MOST_SECONDS = 1_000_000, 1e8


@dataclass(frozen=True)
class Budget:
    """How much tuning each method is given on each division: a number of trials, or trials for some seconds."""

    trials: int | None = None
    seconds: float | None = None

    def allows(self, begun: int, spent: float) -> bool:
        """Another trial after ``begun`` ones, which took ``spent`` seconds so far? The first one is always allowed."""
        if self.trials is None and self.seconds is None:
            return False
        return begun == 0 or ((self.trials is None or begun < self.trials) and (self.seconds is None or spent < self.seconds))


def checked_budget(trials: int, seconds: float | None) -> Budget:
    """A number of trials, or of seconds; both where more than the first trial is asked for."""
    if not 1 <= trials <= MOST_TRIALS:
        raise DataError(f"trials must be from 1 to {MOST_TRIALS:,}; got {trials}")
    checked_seconds("seconds", seconds)
    return Budget(trials, seconds) if seconds is None or trials > 1 else Budget(None, seconds)


def checked_seconds(name: str, seconds: float | None) -> float | None:
    """``seconds``, once they are a positive number that somebody could wait for."""
    if seconds is not None and not 0.0 < seconds <= MOST_SECONDS:  # NaN is refused too
        raise DataError(f"{name} must be above 0 and at most {MOST_SECONDS:g}; got {seconds:g}; leave it out for no limit")
    return seconds


def workers_and_threads(workers: int | None, threads: int | None) -> tuple[int, int]:
    """Fits at a time, by default as many as there are threads, and the threads of each."""
    cores = thread_count(threads)
    at_a_time = cores if workers is None else min(cores, thread_count(workers))
    return at_a_time, cores // at_a_time


def settings_of_trial(space: Space, seed: int, number: int) -> dict[str, Any]:
    """What trial ``number`` sets; the first one leaves everything as it is.

    >>> settings_of_trial({"leaves": [7, 15, 31]}, seed=0, number=0), settings_of_trial({"leaves": [7, 15, 31]}, seed=0, number=1)
    ({}, {'leaves': 7})
    """
    if number == 0 or not space:
        return {}
    state = np.random.RandomState(np.random.SeedSequence([seed, number]).generate_state(4))
    drawn = next(iter(ParameterSampler(dict(space), 1, random_state=state)))
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in drawn.items()}


def best_trial(trials: Sequence[Trial]) -> Trial | None:
    """The one that did best on validation data, the first of equals; None where all failed."""
    valued = [trial for trial in trials if trial.valid is not None and not trial.failed]
    return max(valued, key=lambda trial: trial.valid or 0.0, default=None)
