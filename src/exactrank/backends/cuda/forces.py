"""Slopes and curvatures of objectives on the GPU, with the bits that the processor's have: what trees follow that grow there.

`SquaredError`, and `Lambdas` without a measure or of a positional one, are computed there in doubles, by the same operations in the same
order (`exactrank/backends/cuda/forces.cu`), see `is_exact`; the forces of other objectives are computed on the processor.
"""

from collections.abc import Callable

import numpy as np

from exactrank import _core
from exactrank.backends.cuda.device import REAL, Array, Device
from exactrank.backends.cuda.lists import Lists
from exactrank.backends.cuda.objectives import LINKS
from exactrank.data.ranking_data import RankingData
from exactrank.learning.objectives.bounded_gain import training_kernel
from exactrank.learning.objectives.lambdas import Lambdas
from exactrank.learning.objectives.losses import SquaredError
from exactrank.learning.objectives.score_space import Objective
from exactrank.measures.base import NO_CUTOFF
from exactrank.measures.families import Positional

#: Slopes and curvatures at some scores, times the weights of queries and documents.
Forces = Callable[[Array, Array], tuple[Array, Array]]

#: The processor adds up pairs of at most this number of ranks apart in another order.
BANDS = 8
THREADS = 128


def is_exact(objective: Objective, data: RankingData) -> bool:
    """Return whether the GPU computes the forces of ``objective`` to the last bit."""
    if type(objective) is SquaredError:
        return True
    if type(objective) is not Lambdas or objective.score_l2 or data.preferences is not None:
        return False
    measure = objective.measure
    is_positional = isinstance(measure, Positional) and measure.normalizer != "mean_ideal"
    return (measure is None or is_positional) and (objective.neighbors or NO_CUTOFF) > BANDS


def forces_on(objective: Objective, data: RankingData, lists: Lists, query_of_document: Array) -> Forces:
    """Return a function from scores and weights of queries to the forces of an ``objective`` that `is_exact`."""
    if isinstance(objective, SquaredError):
        return _squared_error(objective, data, lists, query_of_document)
    assert isinstance(objective, Lambdas)
    return _lambdas(objective, data, lists)


def _weights(data: RankingData, device: Device) -> Array | None:
    return None if data.sample_weight is None else device.xp.asarray(data.sample_weight)


def _squared_error(objective: SquaredError, data: RankingData, lists: Lists, query_of_document: Array) -> Forces:
    xp, weights = lists.device.xp, _weights(data, lists.device)
    grades, shares = xp.asarray(np.ascontiguousarray(data.y, np.float64)), objective.shares(data)
    center, parts = np.float64(objective.center(data)), None if shares is None else xp.asarray(shares)

    def forces(scores: Array, query_weights: Array) -> tuple[Array, Array]:
        slope, curvature = xp.empty(lists.documents), xp.empty(lists.documents)
        means = None
        if parts is not None:
            means = xp.empty(lists.queries)
            lists.by_query("mean_residuals", scores, grades, center, parts, lists.indptr, np.int32(lists.queries), means)
        rest = means, query_of_document, query_weights, weights, np.int64(lists.documents), slope, curvature
        lists.by_document("residuals", REAL, scores, grades, center, *rest)
        return slope, curvature

    return forces


def _lambdas(objective: Lambdas, data: RankingData, lists: Lists) -> Forces:
    device, measure = lists.device, objective.measure
    xp, weights = device.xp, _weights(data, device)
    worst_first = lists.least_first(xp.asarray(np.ascontiguousarray(data.y, np.float64)))
    if measure is None:
        useful, share = xp.asarray(np.ascontiguousarray(data.y, np.float64)), None
    else:
        useful, share = map(xp.asarray, _core.exchange_terms(*training_kernel(measure, data), data.indptr))
    rows = min(objective.truncation or NO_CUTOFF, NO_CUTOFF if measure is None else measure.cutoff)
    limits = np.int32(measure is None), np.int32(rows), np.int32(objective.neighbors or NO_CUTOFF)
    link = np.int32(LINKS[objective.link]), np.float64(objective.margin), np.float64(objective.near or 0.0), np.int32(objective.normalize)

    def forces(scores: Array, query_weights: Array) -> tuple[Array, Array]:
        order = lists.order(scores, worst_first)
        slope, curvature = xp.empty(lists.documents), xp.empty(lists.documents)
        placed, row_sums = xp.empty((lists.documents, 4)), xp.empty((lists.documents, 2))
        inputs = scores, useful, share, order, lists.indptr, query_weights, weights
        shared = 8 * (24 * max(1, THREADS // 8) + 1)
        device.launch_blocks(
            "lambda_forces", lists.queries, THREADS, shared, REAL, *inputs, *limits, *link, placed, row_sums, slope, curvature
        )
        return slope, curvature

    return forces
