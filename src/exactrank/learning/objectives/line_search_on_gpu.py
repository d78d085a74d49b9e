"""Exact line searches and whole step functions on the GPU, for positional measures (`exactrank.gpu.line_search`)."""

import math
from contextlib import AbstractContextManager
from typing import Literal

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import Matrix, PerDocument
from exactrank.data.scratch_arrays import FeatureColumns
from exactrank.errors import IncompatibleError, SettingError
from exactrank.gpu.device import Array, Device, cuda, memory_for
from exactrank.gpu.line_search import LineEvents
from exactrank.learning.objectives.step_function import SAME_VALUE, Interval, StepFunction
from exactrank.measures.bound import BoundMeasure

REMEDY = "give fewer documents or features, or leave out device"


class OnGpu:
    """The current GPU, or the ``device`` that stands for it, and the features that were sent there: searches on the same data share it."""

    def __init__(self, device: Device | None = None) -> None:
        self.device = cuda() if device is None else device
        self._sent: dict[int, tuple[object, Array]] = {}  #: by the address

    def feature(self, numbers: Matrix) -> Array:
        """A feature of all documents there, in single precision; it is sent once."""
        address = numbers.ctypes.data
        if address not in self._sent:
            with memory_for(len(numbers), self.device, REMEDY):
                self._sent[address] = numbers, self.device.xp.asarray(numbers)  # kept, so that nothing else gets its memory
        return self._sent[address][1]

    def scores(self, columns: FeatureColumns, weights: npt.NDArray[np.float64]) -> Array:
        """The sum of the features, each times its weight."""
        documents = len(columns[0])
        scores = self.device.xp.zeros(documents)
        for j in np.flatnonzero(weights):
            given = self.feature(columns[int(j)]), np.float64(weights[j]), np.int64(documents), scores
            self.device.launch("add_feature", documents, np.dtype(np.float64), *given)
        return scores


class LineSearchOnGpu:
    """`LineSearch` on a GPU, for positional measures of finite scores; scores and slopes are there, or are sent."""

    def __init__(self, bound: BoundMeasure, gpu: OnGpu) -> None:
        self._device = gpu.device
        with self._memory(bound.data.n_documents):
            self._events = LineEvents(bound, gpu.device)

    def start(self, scores: PerDocument | Array) -> float:
        """Take the scores at alpha = 0, and return the measure's mean there; NaN where no query counts."""
        with self._memory(len(scores)):
            self._scores = self._doubles(scores)
            return self._events.value(self._scores)

    def best(self, slopes: PerDocument | Matrix | Array, low: float = -math.inf, high: float = math.inf) -> Interval:
        """The interval between ``low`` and ``high`` where the measure is largest."""
        least = None
        with self._memory(len(slopes)):
            t = self._doubles(slopes)
            while True:
                points, values = self._events.near_best(self._scores, t, low, high, least)
                found = StepFunction(points, values, values[1:]).best(low, high)
                if least is not None or not found.value < values.max() - SAME_VALUE:
                    return found
                least = found.value  # the largest are on intervals that rounding alone may have made: the next may be elsewhere

    def profile(self, slopes: PerDocument | Matrix | Array, low: float = -math.inf, high: float = math.inf) -> StepFunction:
        """The whole step function."""
        with self._memory(len(slopes)):
            return StepFunction(*self._events.profile(self._scores, self._doubles(slopes), low, high))

    def _doubles(self, numbers: PerDocument | Matrix | Array) -> Array:
        return self._device.xp.asarray(numbers).astype(np.float64, copy=False)

    def _memory(self, documents: int) -> AbstractContextManager[None]:
        return memory_for(documents, self._device, REMEDY)


def gpu_of(device: Literal["cuda"]) -> OnGpu:
    """Return the GPU that a user names."""
    if device != "cuda":
        raise SettingError(f'device={device!r} is not "cuda"; leave it out to compute on the processor')
    return OnGpu()


def check_finite(scores: PerDocument) -> None:
    """Raise for scores that the GPU does not rank along a line."""
    if np.any(np.isinf(scores)):
        raise IncompatibleError(
            "scores hold -inf (not retrieved), which the GPU does not rank along a line; leave out device, or those rows"
        )
