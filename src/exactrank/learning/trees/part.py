"""Part of the data on which a forest grows, and the question that the forest asks it.

A part keeps the scores of its documents, their forces, and the node of the growing tree that each document is in. Its answers are
sums of whole numbers and one value per query. Every question names the tree and the round of the forest: a part that is at this round
answers, a part that is some rounds behind catches up, and a part that has lost its scores, or never had them, is asked again with the
trees so far.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import PerDocument, PerQuery
from exactrank.data.dataset import Part
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError, EngineError
from exactrank.learning.objectives.bounded_gain import bounded_gain
from exactrank.learning.objectives.score_space import Numbered, Objective, Sampled
from exactrank.learning.trees.bins import Layout
from exactrank.learning.trees.growth import Allowed, Draws, PerLeaf, Units
from exactrank.learning.trees.measured_splits import SplitChoice
from exactrank.measures.base import Measure
from exactrank.measures.bound import BoundMeasure, values_of
from exactrank.measures.ties import worst_tie_order
from exactrank.models.tree_table import TreeTable

LeafNumbers = npt.NDArray[np.uint8] | npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
Round = list[tuple[int, int, int, int, int, bool, list[int], list[int]]]  #: nodes to split, and the nodes whose histograms are asked for
Answer = tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]  #: histograms of a round, and the sums of the nodes that `summed_nodes` names
ROOT: Round = [(-1, -1, -1, -1, 0, False, [], [0])]  #: the first round of every tree
Values = npt.NDArray[np.float64]  #: the measure of each query: a row as it is reported, and a row as it selects


def summed_nodes(splits: Round) -> list[int]:
    """Return the nodes whose sums in fine units are sent: the root, or one child of each node that is split."""
    return [histograms[0] if histograms else left for _, left, _, _, _, _, _, histograms in splits]


@dataclass(frozen=True, eq=False)
class Outputs:
    """The output of a tree for each document: that of its leaf."""

    values: PerLeaf
    leaf: LeafNumbers

    def __len__(self) -> int:
        return len(self.leaf)

    def __getitem__(self, rows: slice | npt.NDArray[np.bool_]) -> PerDocument:
        outputs: PerDocument = self.values[self.leaf[rows]]
        return outputs


def leaf_numbers(documents: int, leaves: int) -> LeafNumbers:
    """Return an array of zeros for the number of a leaf per document."""
    return np.zeros(documents, np.min_scalar_type(leaves - 1))


@dataclass(frozen=True, eq=False)
class Plan:
    """The description of a forest that each part gets once."""

    layout: Layout
    objective: Objective
    measure: Measure
    draws: Draws
    weights: PerQuery  #: of all queries
    documents: int  #: of all parts
    threads: int

    def measures_on(self, data: RankingData) -> tuple[BoundMeasure, BoundMeasure]:
        """Return the measure on ``data``, as it is reported and as it selects."""
        reported = self.measure.on(data, threads=self.threads)
        return reported, bounded_gain(reported.with_ties(worst_tie_order(self.measure).ties))


@dataclass(frozen=True, eq=False)
class TreeState:
    """The rounds of the tree that is growing."""

    number: int
    units: Units
    flat: bool  #: True if every curvature counts as 1
    allowed: Allowed
    key: int  #: on which its further draws depend
    rounds: tuple[Round, ...] = ()

    def begins_like(self, state: "TreeState") -> bool:
        """Return whether the roots of both have the same documents with the same rounded forces."""
        return (self.number, self.units, self.flat) == (state.number, state.units, state.flat)


@dataclass(frozen=True, eq=False)
class Opening:
    """A part's facts about the tree that grows next."""

    slope: float  #: the largest of its documents
    curvature: float
    weight: float  #: the same, if there is no curvature
    root: Answer | None = None  #: of the first round, if forces fit the expected units
    error: DataError | None = None  #: the reason why there are no forces


class ForestPart:
    """The state of one part of the data, on which a forest grows."""

    def __init__(self, part: Part, plan: Plan, trees: TreeTable | None) -> None:
        self.plan, self.first, self.data = plan, part.first, part.data
        self.count = 0 if trees is None else trees.n_trees
        self._objective = plan.objective
        if isinstance(plan.objective, Numbered) and not part.is_complete:
            self._objective = plan.objective.for_part(part.first, part.first_document)
        self._measures = plan.measures_on(part.data)
        self._forces_of: int | None = None
        self._root: TreeState | None = None
        self._rounds_done, self._is_settled = -1, False
        self._is_whole = part.is_complete
        self.sums = np.zeros(0, np.int64)  #: of the slopes in each leaf, and of the curvatures, if this part is all there is
        self._forget_forces()
        self._place(part, trees)

    def _place(self, part: Part, trees: TreeTable | None) -> None:
        """Put the documents where the forest grows, with their scores by the trees so far."""
        data, plan = part.data, self.plan
        binned = part.recent("bins", plan.layout.key, 1, lambda: _core.BinnedRows(plan.layout.native, data.X, plan.threads))
        self._scores: PerDocument = np.zeros(data.n_documents) if trees is None else trees.native.scores(data.X, plan.threads)
        self._rows = _core.NodeRows(binned)
        self._leaf = leaf_numbers(data.n_documents, 2)
        self._mask: npt.NDArray[np.uint8] | None = None  #: of the documents that the tree is fitted to; None for all

    @cached_property
    def _bound(self) -> _core.Objective:
        """The objective on the part, if it is the same for all trees."""
        return self._objective.on(self.data)

    @property
    def scores(self) -> PerDocument:
        """The scores of the documents by the trees so far."""
        return self._scores

    @property
    def leaf(self) -> LeafNumbers:
        """The leaf of each document in the tree that was settled last."""
        return self._leaf

    def opening(self, number: int, expected: TreeState | None) -> Opening:
        """Compute the forces that the tree of that number follows, and answer its first round if they fit what is ``expected``."""
        self._follow(number)
        slope, curvature, weight = self._extremes
        if expected is None or not expected.units.hold(slope, weight if expected.flat else curvature, self.plan.documents):
            return Opening(slope, curvature, weight)
        self._rounds_done = -1
        return Opening(slope, curvature, weight, self.answer(expected))

    def _follow(self, number: int) -> None:
        """Compute the forces that the tree of that number follows, unless they are there."""
        if self._forces_of != number or self._is_settled:
            self._forget_forces()
            self._compute_forces(number)
            self._extremes = self._largest(number)
            self._forces_of, self._root, self._rounds_done, self._is_settled = number, None, -1, False

    def _largest(self, number: int) -> tuple[float, float, float]:
        """Return the largest slope and curvature of a document, and its weight if there is no curvature."""
        slope = max(float(self._slope.max(initial=0.0)), -float(self._slope.min(initial=0.0)))
        curvature = float(self._curvature.max(initial=0.0))
        weight = 0.0 if curvature > 0 else float(self._document_weights(number).max(initial=0.0))
        return slope, curvature, weight

    def _query_weights(self, number: int) -> PerQuery:
        """Return the weights of the part's queries that a tree is fitted to, and 0 for others."""
        return self.plan.draws.query_weights(number, self.plan.weights)[self.first : self.first + self.data.n_queries]

    def _document_weights(self, number: int) -> PerDocument:
        """Return the weight of each document in the tree of that number: its curvature if the objective has none."""
        weights = np.repeat(self._query_weights(number), self.data.sizes)
        return weights if self.data.sample_weight is None else weights * self.data.sample_weight

    def _forget_forces(self) -> None:
        self._slope = self._curvature = np.zeros(0)

    def _compute_forces(self, number: int) -> None:
        data, weights = self.data, self._query_weights(number)
        self._slope, self._curvature = self._forces(number, weights)
        is_used = weights > 0
        self._mask = None
        if not is_used.all() or data.sample_weight is not None:
            documents = np.repeat(is_used, data.sizes)
            self._mask = (documents if data.sample_weight is None else documents & (data.sample_weight > 0)).astype(np.uint8)

    def _forces(self, number: int, weights: PerQuery) -> tuple[PerDocument, PerDocument]:
        """Return the slope and the curvature of each document, computed by the processor."""
        data, objective = self.data, self._objective
        bound = objective.with_draws(self.plan.draws.place(number)).on(data) if isinstance(objective, Sampled) else self._bound
        _, slope, curvature = _core.answers(bound, self.scores, data.indptr, weights, True, True, self.plan.threads, with_value=False)
        self._check_finite(bool(np.isfinite(slope).all() and np.isfinite(curvature).all()))
        np.maximum(curvature, 0.0, out=curvature)
        if data.sample_weight is not None:
            slope *= data.sample_weight
            curvature *= data.sample_weight
        return slope, curvature

    def _check_finite(self, is_finite: bool) -> None:
        if not is_finite:
            raise DataError(
                f"{type(self._objective).__name__} gives forces that are not finite numbers after {self.count:,} trees; fix the"
                " objective, or train with a smaller learning_rate"
            )

    def start(self, state: TreeState) -> None:
        """Put all documents that the tree is fitted to into its root, unless they are there."""
        root = self._root
        if root is not None and root.begins_like(state) and 0 <= self._rounds_done <= len(state.rounds) and not self._is_settled:
            return
        if root is not None and root.flat != state.flat:  # the curvatures may have been overwritten
            self._forces_of = None
        self._follow(state.number)
        self._begin(state)
        self._root, self._rounds_done = state, 0

    def _begin(self, state: TreeState) -> None:
        if state.flat:
            self._curvature = self._document_weights(state.number)
        units = state.units
        self._rows.begin(self._mask, self._slope, self._curvature, 1 / units.slope, 1 / units.curvature, self.plan.threads)

    def grow(self, growth: _core.Growth, state: TreeState) -> None:
        """Grow the whole tree, if this is the only part."""
        self.start(state)
        self._rows.grow(growth, self.plan.threads)

    def grow_by_measure(self, growth: _core.Growth, state: TreeState, weight: float) -> None:
        """Grow the whole tree, if this is the only part, with splits chosen by the measure if the tree is multiplied by ``weight``."""
        self.start(state)
        choose = SplitChoice(self._measures[1], self.scores, self._query_weights(state.number), weight)
        while True:
            documents, outputs = self._rows.candidate_outputs(growth)
            if len(outputs):
                growth.choose(choose(documents, outputs))
            splits = growth.asks(ahead=False)
            if not splits:
                return
            growth.take(self._answer(splits, state.allowed), self.plan.threads)

    def answer(self, state: TreeState) -> Answer:
        """Answer the last round of the tree, after the rounds before it that were missed."""
        if self._rounds_done == len(state.rounds):  # asked again, since another part lost its state: nodes cannot be split twice
            self._rounds_done = -1
        self._catch_up(state, len(state.rounds) - 1)
        splits, units = state.rounds[-1], state.units
        histograms = self._answer(splits, state.allowed)
        fine = 1 / units.fine_slope, 1 / units.fine_curvature
        sums = self._rows.sums(summed_nodes(splits), self._slope, self._curvature, *fine, self.plan.threads)
        self._rounds_done += 1
        return histograms, sums

    def _catch_up(self, state: TreeState, rounds: int) -> None:
        """Split the documents as in the first ``rounds`` of the tree."""
        self.start(state)
        for splits in state.rounds[self._rounds_done : rounds]:
            self._answer([(*split, []) for *split, _ in splits], state.allowed)  # type: ignore[misc]
            self._rounds_done += 1

    def _answer(self, splits: Round, allowed: Allowed) -> npt.NDArray[np.uint64]:
        return self._rows.answer(splits, allowed, self.plan.documents, self.plan.threads)

    def settle(self, tree: _core.GrownTree, state: TreeState) -> None:
        """Give each document its leaf. The forces are forgotten: a line search needs the memory."""
        if self._is_settled and self._forces_of == state.number:
            return
        self._catch_up(state, len(state.rounds))
        self._settle(tree, state)
        self._forget_forces()
        self._is_settled = True

    def _settle(self, tree: _core.GrownTree, state: TreeState) -> None:
        leaves, units, forces = len(tree.documents), state.units, (self._slope, self._curvature)
        self._leaf = leaf_numbers(self.data.n_documents, leaves)
        self._rows.number(tree, self._mask, self._leaf, self.plan.threads)
        if self._is_whole:
            self.sums = _core.leaf_sums(self._leaf, self._mask, *forces, 1 / units.fine_slope, 1 / units.fine_curvature, leaves)

    def add(self, values: PerLeaf) -> None:
        """Add the tree that was settled, with these ``values``, to the scores."""
        self._add(values)
        self.count += 1
        self._forces_of = None

    def _add(self, values: PerLeaf) -> None:
        _core.add_leaf_values(self._scores, self._leaf, values)

    def values(self) -> Values:
        """Return the measure of each query."""
        return np.array(values_of(self._measures, self.scores)[0])


@dataclass(frozen=True, eq=False)
class TreeHistory:
    """The plan and the trees so far, from which a part without a state can answer."""

    plan: Plan
    trees: TreeTable | None


class LostStateError(EngineError):
    """A part has no state of the forest; engines pass errors of ours on as they are."""


What = Literal["forces", "histograms", "add", "values"]


@dataclass(frozen=True, eq=False)
class TreeQuestion:
    """A question of a forest to a part; answers add up, or are the values of the part's queries."""

    forest: str  #: the name of the forest
    count: int  #: the number of its trees
    what: What
    state: TreeState | None = None  #: of the tree that grows
    tree: _core.GrownTree | None = None  #: when it has grown
    outputs: PerLeaf = field(default_factory=lambda: np.empty(0))  #: of its leaves
    values: PerLeaf | None = None  #: the same, weighted
    next_state: TreeState | None = None  #: of the tree after it, as it is expected to begin
    history: TreeHistory | None = None

    def ask(self, part: Part) -> object:
        """Answer for ``part``; None if it has no state of the forest."""
        forest = self.forest_of(part)
        if forest is None:
            return None
        if self.what == "forces":
            return forest.opening(self.count, None)
        if self.what == "values":
            return forest.values()
        assert self.state is not None
        if self.what == "histograms":
            return forest.answer(self.state)
        assert self.tree is not None
        assert self.values is not None
        forest.settle(self.tree, self.state)
        forest.add(self.values)
        if self.next_state is None:
            return forest.values(), None
        values = forest.values()
        try:
            return values, forest.opening(self.next_state.number, self.next_state)
        except DataError as error:  # which counts only if there will be another tree
            return values, Opening(0.0, 0.0, 0.0, error=error)

    def combine(self, answers: Sequence[object]) -> list[Any]:
        """Return the answers; the forest adds them up, or asks again."""
        return list(answers)

    def forest_of(self, part: Part) -> ForestPart | None:
        """Return the state of the part, if it is where the question expects it, or can be brought there."""
        states: dict[str, ForestPart] = part.once("forests", dict)
        forest = states.get(self.forest)
        if forest is not None and forest.count == self.count:
            return forest
        if self.history is None:
            return None
        states.clear()  # one forest at a time: each has the documents in bins
        states[self.forest] = part.kernel(ForestPart)(part, self.history.plan, self.history.trees)
        return states[self.forest]

    def settle(self, part: Part) -> ForestPart:
        """Return the state of the part when each document has its leaf."""
        forest = self.forest_of(part)
        if forest is None or self.state is None or self.tree is None:
            raise LostStateError("the scores of a part are lost")
        forest.settle(self.tree, self.state)
        return forest
