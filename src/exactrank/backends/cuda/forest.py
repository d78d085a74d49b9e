"""The documents of a forest on the GPU: their bins, scores and forces. Trees, leaves and scores have the bits that the processor's have.

Forces that the GPU computes to the last bit are computed there (`exactrank.backends.cuda.forces`); others on the processor, from
scores that are copied to it. The measure that is reported after each tree is the processor's.
"""

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import PerDocument
from exactrank.backends.cuda.device import Array, cuda, memory_for, on_host
from exactrank.backends.cuda.forces import forces_on, is_exact
from exactrank.backends.cuda.lists import Lists
from exactrank.backends.cuda.node_rows import CudaBins, CudaNodeRows
from exactrank.data.dataset import Part
from exactrank.learning.trees.growth import Allowed, PerLeaf
from exactrank.learning.trees.part import ForestPart, LeafNumbers, Plan, Round, TreeState
from exactrank.models.tree_table import TreeTable


class CudaForestPart(ForestPart):
    """The state of all data, on the current GPU; attributes that begin with ``_gpu`` are arrays there."""

    def __init__(self, part: Part, plan: Plan, trees: TreeTable | None) -> None:
        self._device = cuda()
        with memory_for(part.data.n_documents, self._device):
            super().__init__(part, plan, trees)

    def _place(self, part: Part, trees: TreeTable | None) -> None:
        data, plan, xp = part.data, self.plan, self._device.xp
        bins = part.recent("bins", (plan.layout.key, "cuda"), 1, lambda: self._bins(part))
        self._node_rows = CudaNodeRows(bins)
        self._gpu_scores = xp.zeros(data.n_documents) if trees is None else xp.asarray(trees.native.scores(data.X, plan.threads))
        self._host_scores: PerDocument | None = None
        self._host_array = self._device.host_array(data.n_documents, np.float64)
        self._gpu_leaf: Array = None
        self._gpu_query = xp.asarray(np.repeat(np.arange(data.n_queries, dtype=np.int32), data.sizes))
        self._gpu_weight = None if data.sample_weight is None else xp.asarray(data.sample_weight)
        lists = Lists(self._device, xp.asarray(data.indptr), data.n_documents, data.longest)
        self._gpu_forces = forces_on(self._objective, data, lists, self._gpu_query) if is_exact(self._objective, data) else None

    def _bins(self, part: Part) -> CudaBins:
        layout = self.plan.layout.native
        return CudaBins.of(layout, _core.BinnedRows(layout, part.data.X, self.plan.threads), self._device)

    @property
    def scores(self) -> PerDocument:
        """The scores of the documents by the trees so far, as the processor takes them; until the next tree is added."""
        if self._host_scores is None:
            self._device.fetch(self._gpu_scores, self._host_array)
            self._host_scores = self._host_array
        return self._host_scores

    @property
    def leaf(self) -> LeafNumbers:
        """The leaf of each document in the tree that was settled last."""
        leaf: LeafNumbers = on_host(self._gpu_leaf).astype(np.min_scalar_type(self._leaves - 1))
        return leaf

    def _forget_forces(self) -> None:
        self._gpu_slope: Array = None
        self._gpu_curvature: Array = None

    def _compute_forces(self, number: int) -> None:
        xp, query_weights = self._device.xp, self._query_weights(number)
        gpu_query_weights = xp.asarray(np.ascontiguousarray(query_weights))
        if self._gpu_forces is None:
            self._gpu_slope, self._gpu_curvature = map(xp.asarray, self._forces(number, query_weights))
        else:
            self._gpu_slope, self._gpu_curvature = self._gpu_forces(self._gpu_scores, gpu_query_weights)
        self._gpu_mask = None
        if not (query_weights > 0).all() or self._gpu_weight is not None:
            is_used = gpu_query_weights[self._gpu_query] > 0
            self._gpu_mask = (is_used if self._gpu_weight is None else is_used & (self._gpu_weight > 0)).astype(np.uint8)

    def _largest(self, number: int) -> tuple[float, float, float]:
        xp = self._device.xp
        slope, curvature = on_host(xp.stack([xp.abs(self._gpu_slope).max(), self._gpu_curvature.max()])).tolist()
        self._check_finite(bool(np.isfinite(slope) and np.isfinite(curvature)))
        return slope, curvature, 0.0 if curvature > 0 else float(self._gpu_weights(number).max())

    def _gpu_weights(self, number: int) -> Array:
        """Return what `_document_weights` does, on the GPU."""
        weights = self._device.xp.asarray(np.ascontiguousarray(self._query_weights(number)))[self._gpu_query]
        return weights if self._gpu_weight is None else weights * self._gpu_weight

    def _begin(self, state: TreeState) -> None:
        if state.flat:
            self._gpu_curvature = self._gpu_weights(state.number)
        forces = self._gpu_mask, self._gpu_slope, self._gpu_curvature
        self._node_rows.begin(*forces, 1 / state.units.slope, 1 / state.units.curvature)

    def grow(self, growth: _core.Growth, state: TreeState) -> None:
        """Grow the whole tree in rounds of several nodes, each of which waits for the GPU."""
        self.start(state)
        while splits := growth.asks(ahead=True):
            growth.take(self._answer(splits, state.allowed), self.plan.threads)

    def _answer(self, splits: Round, allowed: Allowed) -> npt.NDArray[np.uint64]:
        return self._node_rows.answer(splits, allowed, self.plan.documents)

    def _settle(self, tree: _core.GrownTree, state: TreeState) -> None:
        units, self._leaves = state.units, len(tree.documents)
        forces = self._gpu_mask, self._gpu_slope, self._gpu_curvature
        self._gpu_leaf, self.sums = self._node_rows.settle(tree, *forces, 1 / units.fine_slope, 1 / units.fine_curvature)

    def _add(self, values: PerLeaf) -> None:
        self._node_rows.add(self._gpu_leaf, values, self._gpu_scores)
        self._host_scores = None
