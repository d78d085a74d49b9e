"""Objectives of scores on the GPU: the values and slopes of `exactrank.learning.objectives.score_space`, for scores that lie there.

`Lambdas`, of any measure that the GPU knows, `ListNetLoss`, `ListMLELoss` and `ApproxNDCGLoss` are computed there, see `is_supported`;
the others are computed on the processor.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from exactrank.backends.cuda.device import Array
from exactrank.backends.cuda.lists import Lists
from exactrank.backends.cuda.measures import CudaMeasure, has_exchanges
from exactrank.learning.objectives.bounded_gain import MOST
from exactrank.learning.objectives.lambdas import Lambdas
from exactrank.learning.objectives.losses import ApproxNDCGLoss, ListMLELoss, ListNetLoss
from exactrank.learning.objectives.score_space import Objective
from exactrank.measures.base import NO_CUTOFF, Measure
from exactrank.measures.families import Cascade
from exactrank.measures.graded import DCG, ERR

#: Where at most FEW_ROWS ranks count, the forces on them are added up in PARTS (as in `lambdas.cu`) by threads of their own.
FEW_ROWS, PARTS = 64, 8
LINKS = {"logistic": 0, "step": 1, "spring": 2}


def is_supported(objective: Objective) -> bool:
    """Return whether ``objective`` can be computed on the GPU."""
    if type(objective) is Lambdas:
        return not objective.score_l2 and (objective.measure is None or has_exchanges(objective.measure))
    return type(objective) in (ListNetLoss, ListMLELoss) or (type(objective) is ApproxNDCGLoss and has_exchanges(objective.measure))


#: Of scores and the weights of queries, None where all count alike: the value of each query and the slope by each score, times the weight.
Answer = Callable[[Array, Array | None], tuple[Array, Array]]


def bound_to(objective: Objective, lists: Lists, grades: Array) -> Answer:
    """Return ``objective`` on the grades of some lists, a function of scores; NaN if a score of a query is not a finite number."""
    return _KERNELS[type(objective)](objective, lists, grades)  # type: ignore[no-any-return]


def _lambdas(objective: Lambdas, lists: Lists, grades: Array) -> Answer:
    xp, measure = lists.device.xp, objective.measure
    counts = np.int32(lists.queries), np.int64(lists.documents)
    worst_first = lists.least_first(grades)
    rows = min(objective.truncation or NO_CUTOFF, NO_CUTOFF if measure is None else measure.cutoff)
    limits = np.int32(rows), np.int32(objective.neighbors or NO_CUTOFF)
    link = np.int32(LINKS[objective.link]), np.float64(objective.margin), np.float64(objective.near or 0.0)
    bound = None if measure is None else CudaMeasure.of(*_with_bounded_gain(measure, lists, grades), pessimistic=True)

    def answer(scores: Array, weight: Array | None) -> tuple[Array, Array]:
        real, factor = scores.dtype, xp.empty(lists.queries)
        order = lists.order(scores, worst_first, weight, factor)
        placed, slope = xp.empty((lists.documents, 4), real), xp.empty(lists.documents, real)
        size = xp.empty(lists.documents) if objective.normalize else None
        ranking = placed, order, lists.indptr, *counts
        outputs = factor, slope, size
        if bound is None:
            costs = xp.empty(lists.documents)
            lists.by_document("place", real, scores, grades, None, np.int32(0), np.int32(0), order, lists.indptr, *counts, placed)
            lists.by_document("pair_forces", real, *ranking, np.int32(1), *limits, *link, None, None, *outputs, costs)
            values = -lists.sums(costs)
        else:
            values = bound.values(scores, order, placed)
            if isinstance(measure, Cascade):
                lists.by_document("cascade_forces", real, *ranking, bound.cutoff, *limits, *link, *outputs)
            else:
                parts = _top_forces(lists, placed, limits, link)
                lists.by_document("pair_forces", real, *ranking, np.int32(0), *limits, *link, *parts, *outputs, None)
        if size is not None:
            total = lists.sums(size)  # each pair at both its documents
            lists.scale(slope, xp.where(total > 0, xp.log2(1 + total) / xp.where(total > 0, total, 1.0), 1.0))
        return values * factor, slope

    return answer


def _top_forces(
    lists: Lists, placed: Array, limits: tuple[np.int32, np.int32], link: tuple[object, ...]
) -> tuple[Array | None, Array | None]:
    """Return the forces of the documents below on those of the first ranks, in parts, and their sizes; None if many ranks count."""
    rows = int(limits[0])
    if rows > FEW_ROWS:
        return None, None
    threads = lists.queries * rows * PARTS
    forces, sizes = (lists.device.xp.empty(threads) for _ in range(2))
    arguments = placed, lists.indptr, np.int32(lists.queries), np.int32(0), *limits, *link, forces, sizes
    lists.device.launch("top_forces", threads, placed.dtype, *arguments)
    return forces, sizes


def _with_bounded_gain(measure: Measure, lists: Lists, grades: Array) -> tuple[Measure, Lists, Array]:
    """Return what `exactrank.learning.objectives.bounded_gain.bound_exponents` does, without waiting for the device."""
    if isinstance(measure, DCG) and measure.gain == "exp2":
        xp = lists.device.xp
        return measure, lists, grades * (MOST / xp.maximum(grades.max(), MOST))
    if isinstance(measure, ERR) and measure.max_grade > MOST:
        return replace(measure, max_grade=MOST), lists, grades * (MOST / measure.max_grade)
    return measure, lists, grades


def _with_weights(lists: Lists, objective: Callable[[Array], tuple[Array, Array]]) -> Answer:
    """Return the values and slopes of ``objective`` times the weights of the queries; NaN for scores that are not finite."""

    def answer(scores: Array, weight: Array | None) -> tuple[Array, Array]:
        values, slope = objective(scores)
        factor = lists.factors(scores, weight)
        lists.scale(slope, factor)
        return values * factor, slope

    return answer


def _list_net(objective: ListNetLoss, lists: Lists, grades: Array) -> Answer:
    xp = lists.device.xp
    if objective.target == "softmax":
        best = xp.ones(lists.documents)
        lists.scale(best, lists.largest(grades))
        mass = xp.exp((grades - best) * (MOST / xp.maximum(grades.max() - grades.min(), MOST)))
    else:
        mass = xp.exp2(xp.maximum(_with_bounded_gain(DCG(), lists, grades)[2], 0.0)) - 1
    total = lists.sums(mass)
    lists.scale(mass, 1 / xp.where(total > 0, total, 1.0))

    def answer(scores: Array) -> tuple[Array, Array]:
        values, slope = xp.empty(lists.queries), xp.empty(lists.documents)
        lists.by_query("list_net", scores, mass, lists.indptr, np.int32(lists.queries), values, slope, real=scores.dtype)
        return values, slope

    return _with_weights(lists, answer)


def _list_mle(objective: ListMLELoss, lists: Lists, grades: Array) -> Answer:
    xp = lists.device.xp
    ideal = lists.order(grades, lists.least_first(xp.asarray(np.random.default_rng(objective.seed).random(lists.documents))))
    one_grade = lists.largest(grades) == -lists.largest(-grades)
    top = xp.where(one_grade, 0, xp.minimum(lists.sizes, objective.k or NO_CUTOFF)).astype(np.int32)

    def answer(scores: Array) -> tuple[Array, Array]:
        room, slope = (xp.empty(lists.documents) for _ in range(2))
        values = xp.empty(lists.queries)
        lists.by_query("list_mle", scores, ideal, top, lists.indptr, np.int32(lists.queries), room, values, slope, real=scores.dtype)
        return values, slope

    return _with_weights(lists, answer)


def _approx_ndcg(objective: ApproxNDCGLoss, lists: Lists, grades: Array) -> Answer:
    xp = lists.device.xp
    worth = CudaMeasure.of(*_with_bounded_gain(replace(objective.measure, k=None), lists, grades)).useful
    rest = np.float64(objective.alpha), lists.indptr, np.int32(lists.queries), np.int64(lists.documents)

    def answer(scores: Array) -> tuple[Array, Array]:
        term, fall, slope = (xp.empty(lists.documents) for _ in range(3))
        lists.by_document("soft_ranks", scores.dtype, scores, worth, *rest, term, fall)
        lists.by_document("soft_rank_slopes", scores.dtype, scores, fall, *rest, slope)
        return lists.sums(term), slope

    return _with_weights(lists, answer)


_KERNELS: dict[type, Any] = {Lambdas: _lambdas, ListNetLoss: _list_net, ListMLELoss: _list_mle, ApproxNDCGLoss: _approx_ndcg}
