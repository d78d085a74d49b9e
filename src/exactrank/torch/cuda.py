"""Conversion of PyTorch tensors to the arrays of the GPU kernels and back, without a copy, on PyTorch's stream."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.utils.dlpack import from_dlpack

from exactrank.backends.cuda.device import Array, cuda, memory_for
from exactrank.backends.cuda.lists import Lists
from exactrank.backends.cuda.measures import CudaMeasure, supports
from exactrank.backends.cuda.objectives import Answer, bound_to
from exactrank.data.ranking_data import RankingData
from exactrank.learning.objectives.score_space import Objective
from exactrank.measures.base import Measure
from exactrank.torch.groups import Grouped

#: The call of an objective at which its kernels are recorded, to be replayed from then on.
REPLAYED_FROM = 3


@contextmanager
def stream_of(tensor: Tensor) -> Iterator[ModuleType]:
    """Provide CuPy on the device and stream that PyTorch uses for ``tensor``; a clear error if the GPU's memory does not suffice."""
    cupy, index = cuda().xp, tensor.device.index
    stream = _for_cupy(torch.cuda.current_stream(tensor.device))
    remedy = "give fewer queries at a time, or call torch.cuda.empty_cache() first"
    with memory_for(len(tensor), cuda(), remedy), cupy.cuda.Device(index), stream:
        yield cupy


@cache
def _for_cupy(stream: torch.cuda.Stream) -> Any:
    """Return PyTorch's stream as one of CuPy; before its version 14 that takes the stream's address."""
    cupy = cuda().xp
    if hasattr(cupy.cuda.Stream, "from_external") and hasattr(stream, "__cuda_stream__"):
        return cupy.cuda.Stream.from_external(stream)
    return cupy.cuda.ExternalStream(stream.cuda_stream, stream.device_index)


def lists_of(grouped: Grouped, documents: int) -> Lists:
    """Return the lists of ``grouped``, of ``documents`` documents in all, for the kernels."""
    indptr = torch.nn.functional.pad(grouped.lengths.cumsum(0), (1, 0))
    return Lists(cuda(), cuda().xp.asarray(indptr), documents, grouped.longest)


def reals(tensor: Tensor) -> Array:
    """Return scores for the kernels: in double precision if they are, otherwise in single precision."""
    return cuda().xp.asarray(tensor.contiguous() if tensor.dtype == torch.float64 else tensor.to(torch.float32).contiguous())


def doubles(tensor: Tensor) -> Array:
    """Return grades or weights for the kernels, in double precision."""
    return cuda().xp.asarray(tensor.to(torch.float64).contiguous())


class OnDevice:
    """An objective bound to grades that lie on the GPU; call it with scores.

    When it is called repeatedly, as training with full batches does, its kernels are replayed as one graph, which takes the host a
    fifth of the time.
    """

    def __init__(self, objective: Objective, grouped: Grouped, grades: Tensor) -> None:
        with stream_of(grades):
            self._answer = bound_to(objective, lists_of(grouped, len(grades)), doubles(grades))
        self.calls: Counter[Hashable] = Counter()
        self._replays: dict[Hashable, _Replay | None] = {}  #: None if the memory does not suffice

    def __call__(self, scores: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Return the value of each list and the slope by each score, times the weight of its query."""
        key = torch.cuda.current_stream(scores.device), scores.dtype
        self.calls[key] += 1
        if self.calls[key] == REPLAYED_FROM:
            self._replays[key] = _replay(self._answer, scores, weight)
        replay = self._replays.get(key)
        return self._launch(scores, weight) if replay is None else replay(scores, weight)

    def _launch(self, scores: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        with stream_of(scores):
            values, slope = self._answer(reals(scores), doubles(weight))
            return from_dlpack(values), from_dlpack(slope)


def _replay(answer: Answer, scores: Tensor, weight: Tensor) -> "_Replay | None":
    """Record the kernels of ``answer`` as a graph; None if the memory does not suffice."""
    try:
        return _Replay(answer, scores, weight)
    except cuda().out_of_memory:
        return None


class _Replay:
    """Recorded kernels of an answer with the memory that they use: they read and write the same addresses each time."""

    @torch.inference_mode(False)  # inference tensors could not be written outside of inference mode
    def __init__(self, answer: Answer, scores: Tensor, weight: Tensor) -> None:
        cupy, self._lock = cuda().xp, Lock()
        self._scores = torch.zeros_like(scores, dtype=torch.float64 if scores.dtype == torch.float64 else torch.float32)
        self._weight = torch.zeros_like(weight, dtype=torch.float64)
        self._stream = _for_cupy(torch.cuda.current_stream(scores.device))
        self._pool = cupy.cuda.MemoryPool()
        torch.cuda.synchronize(scores.device)
        with (
            cupy.cuda.Device(scores.device.index),
            cupy.cuda.Stream(non_blocking=True) as capture_stream,
            cupy.cuda.using_allocator(self._pool.malloc),
        ):
            inputs = reals(self._scores), doubles(self._weight)
            answer(*inputs)  # a first run fills the pool: no memory can be allocated while recording
            capture_stream.synchronize()
            capture_stream.begin_capture()
            try:
                outputs = answer(*inputs)
            finally:
                self._graph = capture_stream.end_capture()
            self._values, self._slope = (from_dlpack(output) for output in outputs)

    def __call__(self, scores: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        with self._lock:
            self._scores.copy_(scores)
            self._weight.copy_(weight)
            self._graph.launch(self._stream)
            return self._values.clone(), self._slope.clone()


def measures_on(measures: list[Measure], grouped: Grouped, grades: Tensor) -> Callable[[Tensor], Tensor]:
    """Return a function from scores to the values of the queries, one row per measure.

    Measures that the GPU does not know are computed on the processor.
    """
    with stream_of(grades):
        lists = lists_of(grouped, len(grades))
        on_gpu_measures = {measure: CudaMeasure.of(measure, lists, doubles(grades)) for measure in measures if supports(measure)}
    on_host_measures = []
    if len(on_gpu_measures) < len(measures):
        data = RankingData.from_arrays(None, grades.double().cpu().numpy(), group=grouped.lengths.cpu().numpy())
        on_host_measures = [measure.on(data) for measure in measures if measure not in on_gpu_measures]

    def values(scores: Tensor) -> Tensor:
        with stream_of(scores):
            s = reals(scores)
            firsts = {bound.ties is None: bound.ties for bound in on_gpu_measures.values()}
            orders, retrieved = {in_order: lists.order(s, first) for in_order, first in firsts.items()}, lists.retrieval_counts(s)
            rows = {
                m: from_dlpack(bound.values(s, orders[bound.ties is None], retrieved=retrieved)) for m, bound in on_gpu_measures.items()
            }
        if on_host_measures:
            host = scores.double().cpu().numpy()
            rows |= {bound.measure: torch.from_numpy(bound.values(host)).to(scores.device) for bound in on_host_measures}
        return torch.stack([rows[measure] for measure in measures])

    return values
