"""Tensors of PyTorch as arrays of the GPU's kernels and back, without a copy, on PyTorch's stream."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils.dlpack import from_dlpack

from exactrank.data.ranking_data import RankingData
from exactrank.errors import IncompatibleError
from exactrank.gpu.device import cuda
from exactrank.gpu.lists import Lists
from exactrank.gpu.measures import MeasureOnGpu, supports
from exactrank.measures.base import Measure
from exactrank.objectives import on_gpu
from exactrank.objectives.score_space import Objective
from exactrank.torch.groups import Grouped


@contextmanager
def stream_of(tensor: Tensor) -> Iterator[Any]:
    """CuPy, on the device and stream that PyTorch uses for ``tensor``; a clear error where the GPU's memory does not suffice."""
    cupy = cuda().xp
    stream = torch.cuda.current_stream(tensor.device)
    try:
        with cupy.cuda.Device(tensor.device.index), cupy.cuda.ExternalStream(stream.cuda_stream, tensor.device.index):
            yield cupy
    except cupy.cuda.memory.OutOfMemoryError as error:
        raise IncompatibleError(
            f"the GPU has too little memory for lists of {len(tensor)} documents ({error}); give fewer queries at a time,"
            " or call torch.cuda.empty_cache() first"
        ) from error


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


def on(objective: Objective, grouped: Grouped, grades: Tensor) -> on_gpu.Answer:
    """``objective`` on grades that lie on the GPU, to be asked of scores."""
    with stream_of(grades):
        return on_gpu.on(objective, lists_of(grouped, len(grades)), doubles(grades))


def answers(objective: on_gpu.Answer, grouped: Grouped, scores: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
    """The value of each list and the slope by each score, times the weight of its query."""
    with stream_of(scores) as cupy:
        factor = cupy.ones(len(grouped.lengths)) if weight is None else doubles(weight.detach())
        values, slope = objective(reals(scores), factor)
        return from_dlpack(values), from_dlpack(slope)


def measures_on(measures: list[Measure], grouped: Grouped, grades: Tensor) -> Callable[[Tensor], Tensor]:
    """What gives the values of the queries for scores, one row per measure; what the GPU does not know is computed on the processor."""
    with stream_of(grades):
        lists = lists_of(grouped, len(grades))
        known = {measure: MeasureOnGpu.of(measure, lists, doubles(grades)) for measure in measures if supports(measure)}
    data = None
    if len(known) < len(measures):
        data = RankingData.from_arrays(None, grades.double().cpu().numpy(), group=grouped.lengths.cpu().numpy())

    def values(scores: Tensor) -> Tensor:
        with stream_of(scores):
            s = reals(scores)
            orders = {bound.measure.ties: bound.tie_key for bound in known.values()}
            ordered, retrieved = {ties: lists.order(s, key) for ties, key in orders.items()}, lists.retrieved(s)
            rows = {measure: from_dlpack(bound.values(s, ordered[measure.ties], retrieved=retrieved)) for measure, bound in known.items()}
        if data is not None:
            host = scores.double().cpu().numpy()
            rows |= {m: torch.from_numpy(m.on(data).values(host)).to(scores.device) for m in measures if m not in known}
        return torch.stack([rows[measure] for measure in measures])

    return values
