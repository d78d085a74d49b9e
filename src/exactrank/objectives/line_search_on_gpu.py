"""Exact line searches and whole step functions on the GPU, for positional measures (`exactrank.gpu.line_search`)."""

import math
from typing import Literal

import numpy as np

from exactrank.arrays import Matrix, PerDocument
from exactrank.errors import IncompatibleError, SettingError
from exactrank.gpu.device import Array, Device, cuda
from exactrank.gpu.line_search import LineEvents
from exactrank.measures.bound import BoundMeasure
from exactrank.objectives.step_function import SAME_VALUE, Interval, StepFunction


class OnGpu:
    """The current GPU, or the ``device`` that stands for it, and the features that were sent there: searches on the same data share it."""

    def __init__(self, device: Device | None = None) -> None:
        self.device = cuda() if device is None else device
        self._sent: dict[int, tuple[object, Array]] = {}  #: by the address

    def doubles(self, numbers: PerDocument | Matrix) -> Array:
        """``numbers`` there; features, which are in single precision, are sent once."""
        if numbers.dtype == np.float64:
            return self.device.xp.asarray(numbers)
        address = numbers.ctypes.data
        if address not in self._sent:
            self._sent[address] = numbers, self.device.xp.asarray(numbers)  # kept, so that nothing else gets its memory
        return self._sent[address][1].astype(np.float64)


class LineSearchOnGpu:
    """`LineSearch` on a GPU, for positional measures of finite scores."""

    def __init__(self, bound: BoundMeasure, gpu: OnGpu) -> None:
        self._gpu = gpu
        self._events = LineEvents(bound, gpu.device)

    def start(self, scores: PerDocument) -> float:
        """Take the scores at alpha = 0, and return the measure's mean there; NaN where no query counts."""
        self._scores = self._gpu.doubles(scores)
        return self._events.value(self._scores)

    def best(self, slopes: PerDocument | Matrix, low: float = -math.inf, high: float = math.inf) -> Interval:
        """The interval between ``low`` and ``high`` where the measure is largest."""
        t, least = self._gpu.doubles(slopes), None
        while True:
            points, values = self._events.near_best(self._scores, t, low, high, least)
            found = StepFunction(points, values, values[1:]).best(low, high)
            if least is not None or not found.value < values.max() - SAME_VALUE:
                return found
            least = found.value  # the largest are on intervals that rounding alone may have made: the next may be elsewhere

    def profile(self, slopes: PerDocument | Matrix, low: float = -math.inf, high: float = math.inf) -> StepFunction:
        """The whole step function."""
        return StepFunction(*self._events.profile(self._scores, self._gpu.doubles(slopes), low, high))


def search_on(device: Literal["cuda"], bound: BoundMeasure, scores: PerDocument) -> LineSearchOnGpu:
    """A search from ``scores``, given by a user."""
    if device != "cuda":
        raise SettingError(f'device={device!r} is not "cuda"; leave it out to compute on the processor')
    if np.any(np.isinf(scores)):
        raise IncompatibleError(
            "scores hold -inf (not retrieved), which the GPU does not rank along a line; leave out device, or those rows"
        )
    search = LineSearchOnGpu(bound, OnGpu())
    search.start(scores)
    return search
