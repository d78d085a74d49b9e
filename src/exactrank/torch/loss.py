"""`RankingLoss`: minus any objective of scores, as a PyTorch loss.

    loss = -sum_q w_q value_q / sum_q w_q                                                                       (1)

The gradient is minus the slope that `exactrank.losses.slopes` returns: exact, whether or not there is a function whose slope it is. A batch
whose weights are all 0 has loss 0 and gradient 0, since other batches of the data may have weights. For `Lambdas` the loss is minus the
measure itself. Lists have any length, and nothing is padded. Under ``torch.compile`` the loss is one PyTorch operator
(``exactrank::ranking``), which keeps the model in one graph. Scores on a GPU stay there if the GPU knows the objective
(`exactrank.backends.cuda.objectives`); otherwise they are copied to the processor, and their slopes back.
"""

import atexit
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any, Literal, Protocol, TypeGuard, Unpack

import numpy as np
import torch
from torch import Tensor

from exactrank import _core
from exactrank._support.threads import thread_count
from exactrank.backends.cuda.objectives import is_supported
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError, IncompatibleError, SettingError
from exactrank.learning.objectives.score_space import Objective, Sampled
from exactrank.measures.base import Measure
from exactrank.torch.groups import Grouped, Grouping, TensorCache, checked_groups, data_of, group, number_of_queries

Reduction = Literal["mean", "sum", "none"]

#: Objectives by number, since PyTorch operators take only numbers and tensors.
_objectives: list[Objective] = []


class RankingLoss(torch.nn.Module):
    """Minus ``objective``, (1); with ``reduction`` "sum" the sum over queries, with "none" one number per query.

    >>> import exactrank as er
    >>> scores = torch.tensor([0.1, 0.5, 0.3, 0.2], requires_grad=True)
    >>> loss = RankingLoss(er.losses.Lambdas(er.measures.AP()))
    >>> loss(scores, torch.tensor([1, 0, 0, 1]), lengths=[2, 2])
    tensor(-0.5000, grad_fn=<_RankingBackward>)
    """

    step: Tensor

    def __init__(self, objective: Objective, reduction: Reduction = "mean") -> None:
        super().__init__()
        if reduction not in ("mean", "sum", "none"):
            raise SettingError(f'reduction={reduction!r} is not one of "mean", "sum", "none"')
        if isinstance(objective, Measure):
            raise IncompatibleError(
                f"{objective} is a measure, which has no slope: it changes in steps. Give an objective of it, e.g. er.losses.Lambdas of it"
            )
        if not isinstance(objective, Objective):
            raise SettingError(
                f"objective must be one of exactrank's objectives, e.g. er.losses.Lambdas(er.measures.NDCG(k=10)), not {objective!r}"
            )
        self.objective = objective
        self.reduction: Reduction = reduction
        self._number = _register(objective)
        self._is_sampled = isinstance(objective, Sampled)
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))

    def forward(self, scores: Tensor, grades: Tensor, *, query_weight: Tensor | None = None, **grouping: Unpack[Grouping]) -> Tensor:
        """Return the loss of flat ``scores`` and ``grades``, grouped by ``lengths``, ``offsets`` or query ids in any order."""
        if scores.ndim != 1:
            raise DataError(f"scores must have one dimension, not the shape {tuple(scores.shape)}; for padded lists call loss.padded")
        kind, groups = checked_groups(scores.shape[0], scores.device, **grouping)
        return self._loss(scores, grades, kind, groups, query_weight)

    def padded(self, scores: Tensor, grades: Tensor, mask: Tensor, query_weight: Tensor | None = None) -> Tensor:
        """Return the loss of ``scores`` of shape (queries, longest list); ``mask`` is true where there is a document."""
        if scores.ndim != 2 or mask.shape != scores.shape:
            raise DataError(f"scores and mask must have one shape (queries, longest list), not {tuple(scores.shape)}, {tuple(mask.shape)}")
        return self._loss(scores.reshape(-1), grades.reshape(-1), "mask", mask.to(scores.device, torch.bool), query_weight)

    def _loss(self, scores: Tensor, grades: Tensor, kind: str, groups: Tensor, weight: Tensor | None) -> Tensor:
        self._check(scores, grades)
        queries = number_of_queries(kind, groups)
        if weight is not None and queries is not None and weight.shape != (queries,):
            raise DataError(f"query_weight has shape {tuple(weight.shape)} for {queries} queries")
        if self.training and self._is_sampled:
            self.step += 1
        ranking = _ranking if torch.compiler.is_compiling() else _Ranking.apply
        loss: Tensor = ranking(scores, grades, groups, weight, self.step, kind, self._number, self.reduction)[0]
        return loss

    def _check(self, scores: Tensor, grades: Tensor) -> None:
        if not scores.dtype.is_floating_point:
            raise DataError(f"scores must be of a floating-point type, not {scores.dtype}")
        if scores.shape != grades.shape:
            raise DataError(f"there are {scores.numel()} scores and {grades.numel()} grades; give one of each per document")
        if scores.device != grades.device:
            raise DataError(f"scores are on {scores.device} and grades on {grades.device}; move them to one device")
        if torch.is_grad_enabled() and not scores.requires_grad:
            raise DataError(
                "scores do not require a gradient, so nothing would be learned: were they detached from the model?"
                " If you need only the value, call the loss under torch.no_grad()"
            )

    def __setstate__(self, state: dict[str, object]) -> None:
        super().__setstate__(state)
        self._number = _register(self.objective)  # numbers differ between processes

    def extra_repr(self) -> str:
        return f"{self.objective}, reduction={self.reduction!r}"


def _register(objective: Objective) -> int:
    """Return the number of ``objective`` in this process, after adding it if it is new."""
    for number, registered in enumerate(_objectives):
        if registered is objective:
            return number
    _objectives.append(objective)
    return len(_objectives) - 1


def is_sampled(objective: Objective) -> TypeGuard[Sampled]:
    """Return whether the objective draws at random."""
    return _is_sampled_class(type(objective))


@cache
def _is_sampled_class(kind: type) -> bool:
    """Return whether objectives of this class draw at random; cached, since checking a protocol takes as long as a small batch."""
    return issubclass(kind, Sampled)


#: A function from scores, factors and weights of lists to the value of each list and the slope by each score, times the list's factor.
Answers = Callable[[Tensor, Tensor, Tensor | None], tuple[Tensor, Tensor]]


@dataclass(frozen=True, eq=False)
class Batch:
    """An objective bound to the grades of a batch of lists."""

    grouped: Grouped
    answers: Answers

    @classmethod
    def of(cls, objective: Objective, kind: str, groups: Tensor, grades: Tensor) -> "Batch":
        """Bind ``objective`` to ``grades``, on their own device if it can be computed there."""
        lists = group(kind, groups, len(grades))
        y = grades if lists.take is None else grades[lists.take]
        if not len(y):
            return cls(lists, lambda scores, factor, weight: (factor, scores))
        if grades.is_cuda and is_supported(objective):
            from exactrank.torch import cuda

            on_device = cuda.OnDevice(objective, lists, y)
            return cls(lists, lambda scores, factor, weight: on_device(scores, factor))
        return cls(lists, OnProcessor(objective, data_of(y, lists)))

    def losses(self, scores: Tensor, weight: Tensor | None, reduction: str) -> tuple[Tensor, Tensor]:
        """Return the loss and its gradient by each score in the original order; without a reduction, the loss of each query."""
        lists = self.grouped
        if weight is not None:
            if weight.shape != (lists.queries,):
                raise DataError(f"query_weight has shape {tuple(weight.shape)} for {lists.queries} queries")
            weight = weight.detach().double()
            weight, total = weight if lists.rows is None else weight[lists.rows], weight.sum()
            factor = -weight / torch.where(total == 0, 1.0, total) if reduction == "mean" else -weight
        else:
            share = 1 / max(lists.queries, 1) if reduction == "mean" else 1.0
            factor = torch.full(lists.lengths.shape, -share, dtype=torch.float64, device=scores.device)
        values, gradient = self.answers(scores if lists.take is None else scores[lists.take], factor, weight)
        gradient = gradient.to(scores.device, scores.dtype)
        if lists.take is not None:
            gradient = torch.zeros_like(scores).index_copy_(0, lists.take, gradient)
        losses = (values if reduction == "none" else values.sum()).to(scores.device, _value_type(scores.dtype))
        if reduction == "none" and lists.rows is not None:
            losses = losses.new_zeros(lists.queries).index_copy_(0, lists.rows, losses)
        return losses, gradient


@dataclass(frozen=True, eq=False)
class OnProcessor:
    """An objective on data, computed on the processor; it is bound only once unless queries have weights."""

    objective: Objective
    data: RankingData

    @cached_property
    def _bound(self) -> _core.Objective:
        return self.objective.on(self.data)

    def __call__(self, scores: Tensor, factor: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
        flat = scores.to("cpu", torch.float64).contiguous().numpy()
        if not np.isfinite(flat).all():
            document = np.flatnonzero(~np.isfinite(flat))[0]
            raise DataError(f"the score of document {document} is {flat[document]}; scores must be finite numbers: has training diverged?")
        bound = self._bound if weight is None else self.objective.on(replace(self.data, query_weight=weight.cpu().numpy()))
        values, slope, _ = _core.answers(bound, flat, self.data.indptr, factor.cpu().numpy(), True, False, thread_count(None))
        return torch.from_numpy(values), torch.from_numpy(slope)


_batches: TensorCache[Batch] = TensorCache()
atexit.register(_batches.clear)  # before the core itself goes


def _answer(
    scores: Tensor, grades: Tensor, groups: Tensor, weight: Tensor | None, step: Tensor, kind: str, objective: int, reduction: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the loss, its gradient by each score and, without a reduction, the query number of each document."""
    if scores.is_cuda and torch.cuda.is_current_stream_capturing():
        raise IncompatibleError(
            "a ranking loss cannot be recorded in a CUDA graph, which would repeat it with the grades of this batch: leave it out of the"
            " graph. For repeated batches of the same grades it replays a graph of its own"
        )
    ranking_objective = _objectives[objective]
    if is_sampled(ranking_objective):
        batch = Batch.of(ranking_objective.with_draws(int(step)), kind, groups, grades.detach())
    else:
        batch = _batches.of((groups, grades), partial(Batch.of, ranking_objective, kind), objective, kind)
    losses, gradient = batch.losses(scores.detach(), weight, reduction)
    return losses, gradient, batch.grouped.numbers() if reduction == "none" else groups.new_empty(0, dtype=torch.int64)


class Context(Protocol):
    """The part of PyTorch's context of a function that the loss uses, and what it keeps there."""

    per_query: bool
    saved_tensors: tuple[Tensor, ...]

    def set_materialize_grads(self, value: bool) -> None: ...
    def save_for_backward(self, *tensors: Tensor) -> None: ...


def _remember(ctx: Context, inputs: tuple[object, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    ctx.set_materialize_grads(False)
    ctx.per_query = inputs[-1] == "none"
    ctx.save_for_backward(output[1], output[2])


def _backward(ctx: Context, by_loss: Tensor | None, by_gradient: Tensor | None, by_query: None) -> tuple[Tensor | None, ...]:
    if by_gradient is not None:
        raise IncompatibleError("ranking losses have only first derivatives; do not differentiate their gradient")
    gradient, query = ctx.saved_tensors
    by_scores = None if by_loss is None else (gradient * (by_loss[query] if ctx.per_query else by_loss)).to(gradient.dtype)
    return by_scores, None, None, None, None, None, None, None


class _Ranking(torch.autograd.Function):
    """The loss outside of ``torch.compile``: PyTorch calls a Function several times as fast as an operator."""

    @staticmethod
    def forward(ctx: Context, *inputs: Any) -> tuple[Tensor, Tensor, Tensor]:
        output = _answer(*inputs)
        _remember(ctx, inputs, output)
        return output

    backward = staticmethod(_backward)


_ranking = torch.library.custom_op("exactrank::ranking", _answer, mutates_args=())
_ranking.register_autograd(_backward, setup_context=_remember)


@_ranking.register_fake
def _(
    scores: Tensor, grades: Tensor, groups: Tensor, weight: Tensor | None, step: Tensor, kind: str, objective: int, reduction: str
) -> tuple[Tensor, Tensor, Tensor]:
    shape: tuple[Any, ...] = ()
    if reduction == "none":
        queries = number_of_queries(kind, groups)
        shape = (torch.library.get_ctx().new_dynamic_size() if queries is None else queries,)
    return (
        scores.new_empty(shape, dtype=_value_type(scores.dtype)),
        torch.empty_like(scores),
        groups.new_empty(scores.shape[0] if reduction == "none" else 0, dtype=torch.int64),
    )


def _value_type(scores: torch.dtype) -> torch.dtype:
    return torch.float64 if scores == torch.float64 else torch.float32
