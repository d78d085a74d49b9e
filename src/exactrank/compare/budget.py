"""How much work a comparison may do: trials or seconds of tuning, seconds of a fit, and fits at a time."""

from dataclasses import dataclass

from exactrank.errors import DataError
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
