"""Tensors of PyTorch as arrays of the GPU's kernels and back, without a copy, on PyTorch's stream."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

import torch
from torch import Tensor
from torch.utils.dlpack import from_dlpack

from exactrank.data.ranking_data import RankingData
from exactrank.gpu.device import cuda, memory_for
from exactrank.gpu.lists import Lists
from exactrank.gpu.measures import MeasureOnGpu, supports
from exactrank.measures.base import Measure
from exactrank.objectives import on_gpu
from exactrank.objectives.score_space import Objective
from exactrank.torch.groups import Grouped

#: How often an objective is asked before its kernels are recorded.
REPLAYED_FROM = 3


@contextmanager
def stream_of(tensor: Tensor) -> Iterator[Any]:
    """CuPy, on the device and stream that PyTorch uses for ``tensor``; a clear error where the GPU's memory does not suffice."""
    cupy, index = cuda().xp, tensor.device.index
    stream = _for_cupy(torch.cuda.current_stream(tensor.device))
    remedy = "give fewer queries at a time, or call torch.cuda.empty_cache() first"
    with memory_for(len(tensor), cuda(), remedy), cupy.cuda.Device(index), stream:
        yield cupy


@cache
def _for_cupy(stream: torch.cuda.Stream) -> Any:
    """PyTorch's stream as one of CuPy; before version 14 that takes its address."""
    cupy = cuda().xp
    if hasattr(cupy.cuda.Stream, "from_external") and hasattr(stream, "__cuda_stream__"):
        return cupy.cuda.Stream.from_external(stream)
    return cupy.cuda.ExternalStream(stream.cuda_stream, stream.device_index)


def lists_of(grouped: Grouped, documents: int) -> Lists:
    """The ``documents`` documents of ``grouped`` for the kernels."""
    indptr = torch.nn.functional.pad(grouped.lengths.cumsum(0), (1, 0))
    return Lists(cuda(), cuda().xp.asarray(indptr), documents, grouped.longest)


def reals(tensor: Tensor) -> Any:
    """Scores as the kernels take them: single precision, or double where they are."""
    return cuda().xp.asarray(tensor.contiguous() if tensor.dtype == torch.float64 else tensor.to(torch.float32).contiguous())


def doubles(tensor: Tensor) -> Any:
    """Grades or weights as the kernels take them."""
    return cuda().xp.asarray(tensor.to(torch.float64).contiguous())


class OnDevice:
    """An objective on grades that lie on the GPU, to be asked of scores.

    When it is asked again and again, as training with full batches does, its kernels are replayed as one graph, which takes the host a
    fifth of the time.
    """

    def __init__(self, objective: Objective, grouped: Grouped, grades: Tensor) -> None:
        with stream_of(grades):
            self._answer = on_gpu.on(objective, lists_of(grouped, len(grades)), doubles(grades))
        self._asked: Counter[Hashable] = Counter()
        self._replays: dict[Hashable, _Replay | None] = {}  #: None where the memory does not suffice

    def __call__(self, scores: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The value of each list and the slope by each score, times the weight of its query."""
        key = torch.cuda.current_stream(scores.device), scores.dtype
        self._asked[key] += 1
        if self._asked[key] == REPLAYED_FROM:
            self._replays[key] = _replay(self._answer, scores, weight)
        replay = self._replays.get(key)
        return self._plainly(scores, weight) if replay is None else replay(scores, weight)

    def _plainly(self, scores: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        with stream_of(scores):
            values, slope = self._answer(reals(scores), doubles(weight))
            return from_dlpack(values), from_dlpack(slope)


def _replay(answer: on_gpu.Answer, scores: Tensor, weight: Tensor) -> "_Replay | None":
    """The kernels of ``answer`` as a graph; None where there is no memory for what it holds."""
    try:
        return _Replay(answer, scores, weight)
    except cuda().out_of_memory:
        return None


class _Replay:
    """The kernels of an answer, recorded, with the memory that they use: they read and write the same places each time."""

    @torch.inference_mode(False)  # whose tensors could not be written outside of it
    def __init__(self, answer: on_gpu.Answer, scores: Tensor, weight: Tensor) -> None:
        cupy, self._lock = cuda().xp, Lock()
        self._scores = torch.zeros_like(scores, dtype=torch.float64 if scores.dtype == torch.float64 else torch.float32)
        self._weight = torch.zeros_like(weight, dtype=torch.float64)
        self._stream = _for_cupy(torch.cuda.current_stream(scores.device))
        self._pool = cupy.cuda.MemoryPool()
        torch.cuda.synchronize(scores.device)
        with (
            cupy.cuda.Device(scores.device.index),
            cupy.cuda.Stream(non_blocking=True) as own,
            cupy.cuda.using_allocator(self._pool.malloc),
        ):
            given = reals(self._scores), doubles(self._weight)
            answer(*given)  # so that the pool has all the memory: none can be had while recording
            own.synchronize()
            own.begin_capture()
            try:
                found = answer(*given)
            finally:
                self._graph = own.end_capture()
            self._values, self._slope = (from_dlpack(each) for each in found)

    def __call__(self, scores: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        with self._lock:
            self._scores.copy_(scores)
            self._weight.copy_(weight)
            self._graph.launch(self._stream)
            return self._values.clone(), self._slope.clone()


def measures_on(measures: list[Measure], grouped: Grouped, grades: Tensor) -> Callable[[Tensor], Tensor]:
    """What gives the values of the queries for scores, one row per measure; what the GPU does not know is computed on the processor."""
    with stream_of(grades):
        lists = lists_of(grouped, len(grades))
        known = {measure: MeasureOnGpu.of(measure, lists, doubles(grades)) for measure in measures if supports(measure)}
    others = []
    if len(known) < len(measures):
        data = RankingData.from_arrays(None, grades.double().cpu().numpy(), group=grouped.lengths.cpu().numpy())
        others = [measure.on(data) for measure in measures if measure not in known]

    def values(scores: Tensor) -> Tensor:
        with stream_of(scores):
            s = reals(scores)
            firsts = {bound.ties is None: bound.ties for bound in known.values()}
            orders, retrieved = {as_given: lists.order(s, first) for as_given, first in firsts.items()}, lists.retrieved(s)
            rows = {m: from_dlpack(bound.values(s, orders[bound.ties is None], retrieved=retrieved)) for m, bound in known.items()}
        if others:
            host = scores.double().cpu().numpy()
            rows |= {bound.measure: torch.from_numpy(bound.values(host)).to(scores.device) for bound in others}
        return torch.stack([rows[measure] for measure in measures])

    return values
