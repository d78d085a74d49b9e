"""A forest whose documents lie on the GPU: their bins, scores and forces. Trees, leaves and scores have the bits that the processor's have.

Forces that the GPU knows to the last bit are computed there (`exactrank.learning.objectives.forces_on_gpu`); others on the processor, from
scores that are copied to it. The measure that is reported after each tree is the processor's.
"""

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import PerDocument
from exactrank.data.dataset import Part
from exactrank.gpu.device import Array, cuda, memory_for, on_host
from exactrank.gpu.forest import BinsOnGpu, RowsOnGpu
from exactrank.gpu.lists import Lists
from exactrank.learning.objectives.forces_on_gpu import forces_on, knows
from exactrank.learning.trees.growth import Allowed, PerLeaf
from exactrank.learning.trees.part import ForestPart, LeafNumbers, Plan, Round, TreeState
from exactrank.models.tree_table import TreeTable

REMEDY = "give fewer documents or features, or leave out device"


class GpuForestPart(ForestPart):
    """All documents of the data, on the current GPU."""

    def __init__(self, part: Part, plan: Plan, trees: TreeTable | None) -> None:
        self._device = cuda()
        with memory_for(part.data.n_documents, self._device, REMEDY):
            super().__init__(part, plan, trees)

    def _place(self, part: Part, trees: TreeTable | None) -> None:
        data, plan, xp = part.data, self.plan, self._device.xp
        bins = part.lately("bins", (plan.layout.key, "cuda"), 1, lambda: self._binned(part))
        self._on_gpu = RowsOnGpu(bins)
        self._scores_there = xp.zeros(data.n_documents) if trees is None else xp.asarray(trees.native.scores(data.X, plan.threads))
        self._scores_here: PerDocument | None = None
        self._room = self._device.locked(data.n_documents, np.float64)
        self._leaf_there: Array = None
        self._query_of_document = xp.asarray(np.repeat(np.arange(data.n_queries, dtype=np.int32), data.sizes))
        self._weight = None if data.sample_weight is None else xp.asarray(data.sample_weight)
        lists = Lists(self._device, xp.asarray(data.indptr), data.n_documents, data.longest)
        is_known = knows(self._objective, data)
        self._forces_there = forces_on(self._objective, data, lists, self._query_of_document) if is_known else None

    def _binned(self, part: Part) -> BinsOnGpu:
        layout = self.plan.layout.native
        return BinsOnGpu.of(layout, _core.BinnedRows(layout, part.data.X, self.plan.threads), self._device)

    @property
    def scores(self) -> PerDocument:
        """The scores of the documents by the trees so far, as the processor takes them; until the next tree is added."""
        if self._scores_here is None:
            self._device.fetch(self._scores_there, self._room)
            self._scores_here = self._room
        return self._scores_here

    @property
    def leaf(self) -> LeafNumbers:
        """The leaf of each document in the tree that was settled last."""
        leaf: LeafNumbers = on_host(self._leaf_there).astype(np.min_scalar_type(self._leaves - 1))
        return leaf

    def _forget_forces(self) -> None:
        self._slope_there: Array = None
        self._curvature_there: Array = None

    def _compute_forces(self, number: int) -> None:
        xp, weights = self._device.xp, self._query_weights(number)
        weights_there = xp.asarray(np.ascontiguousarray(weights))
        if self._forces_there is None:
            self._slope_there, self._curvature_there = map(xp.asarray, self._forces(number, weights))
        else:
            self._slope_there, self._curvature_there = self._forces_there(self._scores_there, weights_there)
        self._mask_there = None
        if not (weights > 0).all() or self._weight is not None:
            is_used = weights_there[self._query_of_document] > 0
            self._mask_there = (is_used if self._weight is None else is_used & (self._weight > 0)).astype(np.uint8)

    def _largest(self, number: int) -> tuple[float, float, float]:
        xp = self._device.xp
        slope, curvature = on_host(xp.stack([xp.abs(self._slope_there).max(), self._curvature_there.max()])).tolist()
        self._check_finite(bool(np.isfinite(slope) and np.isfinite(curvature)))
        return slope, curvature, 0.0 if curvature > 0 else float(self._weights_there(number).max())

    def _weights_there(self, number: int) -> Array:
        """Return what `_document_weights` does, on the GPU."""
        weights = self._device.xp.asarray(np.ascontiguousarray(self._query_weights(number)))[self._query_of_document]
        return weights if self._weight is None else weights * self._weight

    def _begin(self, state: TreeState) -> None:
        if state.flat:
            self._curvature_there = self._weights_there(state.number)
        forces = self._mask_there, self._slope_there, self._curvature_there
        self._on_gpu.begin(*forces, 1 / state.units.slope, 1 / state.units.curvature)

    def grow(self, growth: _core.Growth, state: TreeState) -> None:
        """Grow the whole tree in rounds of several nodes, each of which waits for the GPU."""
        self.start(state)
        while splits := growth.asks(ahead=True):
            growth.take(self._answer(splits, state.allowed), self.plan.threads)

    def _answer(self, splits: Round, allowed: Allowed) -> npt.NDArray[np.uint64]:
        return self._on_gpu.answer(splits, allowed, self.plan.documents)

    def _settle(self, tree: _core.GrownTree, state: TreeState) -> None:
        units, self._leaves = state.units, len(tree.documents)
        forces = self._mask_there, self._slope_there, self._curvature_there
        self._leaf_there, self.sums = self._on_gpu.settle(tree, *forces, 1 / units.fine_slope, 1 / units.fine_curvature)

    def _add(self, values: PerLeaf) -> None:
        self._on_gpu.add(self._leaf_there, values, self._scores_there)
        self._scores_here = None
