"""What a contender heard of while it was trained."""

import time
from dataclasses import dataclass, field

import numpy as np

from exactrank.compare.results import Point

#: A report draws no more than so many points of a curve.
MOST_POINTS = 500


@dataclass
class Curve:
    """Points as they come, and the time since it was made."""

    started: float = field(default_factory=time.perf_counter)
    _heard: list[Point] = field(default_factory=list)

    def add(self, step: int, train: float, valid: float | None) -> None:
        """What training reached at ``step``, which is now."""
        self._heard.append(Point(step, time.perf_counter() - self.started, train, valid))

    @property
    def points(self) -> tuple[Point, ...]:
        """Evenly spaced ones, the first and the last among them."""
        kept = np.linspace(0, len(self._heard) - 1, min(len(self._heard), MOST_POINTS)).round().astype(int)
        return tuple(self._heard[i] for i in kept)
