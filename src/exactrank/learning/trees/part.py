"""The documents of one part of the data while a forest grows on them, and what they are asked.

A part keeps the scores of its documents, their forces, and which node of the growing tree each of them is in. What leaves it are sums in
whole numbers and values of queries. Every question says at which tree and at which round of it the forest is: a part that is there answers,
one that is behind by rounds catches up, and one that has lost its scores, or never had them, says so and is asked again with the trees so
far.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
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
from exactrank.measures.base import Measure
from exactrank.measures.bound import values_of
from exactrank.measures.ties import worst_tie_order
from exactrank.models.tree_table import TreeTable

LeafNumbers = npt.NDArray[np.uint8] | npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
Asked = list[tuple[int, int, int, int, int, bool, list[int], list[int]]]  #: nodes to split, and whose histograms are wanted
NodeSums = npt.NDArray[np.int64]  #: a pair per node: slopes and curvatures in fine units
Answer = tuple[npt.NDArray[np.uint64], NodeSums]  #: the histograms that a round wants, and sums of the nodes that `summed` names
ROOT: Asked = [(-1, -1, -1, -1, 0, False, [], [0])]  #: the first round of every tree
Values = npt.NDArray[np.float64]  #: the measure as asked, and as it selects, of each query


def summed(asked: Asked) -> list[int]:
    """Return the nodes whose sums in fine units are sent: the root, or one child of each node that is split."""
    return [wanted[0] if wanted else left for _, left, _, _, _, _, _, wanted in asked]


@dataclass(frozen=True, eq=False)
class Outputs:
    """The output of a tree for each document: that of its leaf."""

    values: PerLeaf
    leaf: LeafNumbers

    def __len__(self) -> int:
        return len(self.leaf)

    def __getitem__(self, some: slice | npt.NDArray[np.bool_]) -> PerDocument:
        """Return the outputs of some documents."""
        outputs: PerDocument = self.values[self.leaf[some]]
        return outputs


def leaf_numbers(documents: int, leaves: int) -> LeafNumbers:
    """Return room for the number of a leaf per document."""
    return np.zeros(documents, np.min_scalar_type(leaves - 1))


class BinnedScores:
    """Documents in bins, with their scores by the trees so far."""

    def __init__(self, data: RankingData, binned: _core.BinnedRows, trees: TreeTable | None, threads: int) -> None:
        self.data, self.binned, self.threads = data, binned, threads
        self.scores: PerDocument = np.zeros(data.n_documents) if trees is None else trees.native.scores(data.X, threads)

    def add(self, tree: _core.GrownTree, values: PerLeaf) -> None:
        """Add a tree whose leaves have these ``values`` to the scores."""
        leaf = leaf_numbers(self.data.n_documents, len(values))
        self.binned.walk(tree, leaf, self.threads)
        _core.add_leaf_values(self.scores, leaf, values)


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
    #: Makes the state of a part from the trees so far; by default on the processor.
    place: "Callable[[Part, Plan, TreeTable | None], ForestPart] | None" = None


@dataclass(frozen=True, eq=False)
class TreeState:
    """How far the tree that grows now has come."""

    number: int
    units: Units
    flat: bool  #: does every curvature count as 1?
    allowed: Allowed
    rounds: tuple[Asked, ...] = ()

    def begins_like(self, other: "TreeState") -> bool:
        """Do both have the same documents with the same rounded forces in their roots?"""
        return (self.number, self.units, self.flat) == (other.number, other.units, other.flat)


@dataclass(frozen=True, eq=False)
class Opening:
    """What a part says of the tree that grows next."""

    slope: float  #: the largest of its documents
    curvature: float
    weight: float  #: the same, where there is no curvature
    root: Answer | None = None  #: of the first round, if forces fit the units that the client expects
    error: DataError | None = None  #: why there are no forces, if the tree is to grow


class ForestPart:
    """One part of the data, on which a forest grows."""

    def __init__(self, part: Part, plan: Plan, trees: TreeTable | None) -> None:
        self.plan, self.first, self.data = plan, part.first, part.data
        self.count = 0 if trees is None else trees.n_trees
        objective = plan.objective
        self._objective = (
            objective.counted_from(part.first, part.first_document) if isinstance(objective, Numbered) and not part.whole else objective
        )
        asked = plan.measure.on(part.data, threads=plan.threads)
        self._measures = asked, bounded_gain(asked.with_ties(worst_tie_order(plan.measure).ties))
        self._forces_of: int | None = None
        self._begun: TreeState | None = None
        self._rounds_done, self._is_settled = -1, False
        self._is_whole = part.whole
        self.sums = np.zeros(0, np.int64)  #: of the slopes in each leaf, and of the curvatures, if this part is all there is
        self._forget_forces()
        self._place(part, trees)

    def _place(self, part: Part, trees: TreeTable | None) -> None:
        """Put the documents where the forest grows, with their scores by the trees so far."""
        data, plan = part.data, self.plan
        binned = part.lately("bins", plan.layout.key, 1, lambda: _core.BinnedRows(plan.layout.native, data.X, plan.threads))
        self._training = BinnedScores(data, binned, trees, plan.threads)
        self._rows = _core.NodeRows(binned)
        self._leaf = leaf_numbers(data.n_documents, 2)
        self._chosen: npt.NDArray[np.uint8] | None = None

    @cached_property
    def _bound(self) -> _core.Objective:
        """The objective on the part, where it is the same for all trees."""
        return self._objective.on(self.data)

    @property
    def scores(self) -> PerDocument:
        """The scores of the documents by the trees so far."""
        return self._training.scores

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
            self._forces_of, self._begun, self._rounds_done, self._is_settled = number, None, -1, False

    def _largest(self, number: int) -> tuple[float, float, float]:
        """Return the largest slope and curvature of a document, and its weight where there is no curvature."""
        slope = max(float(self._slope.max(initial=0.0)), -float(self._slope.min(initial=0.0)))
        curvature = float(self._curvature.max(initial=0.0))
        weight = 0.0 if curvature > 0 else float(self._weights_seen(number).max(initial=0.0))
        return slope, curvature, weight

    def _seen(self, number: int) -> PerQuery:
        """Return the weights of the part's queries that a tree is fitted to, and 0 for others."""
        return self.plan.draws.seen(number, self.plan.weights)[self.first : self.first + self.data.n_queries]

    def _forget_forces(self) -> None:
        """Give back the memory of the forces."""
        self._slope = self._curvature = np.zeros(0)

    def _compute_forces(self, number: int) -> None:
        seen = self._seen(number)
        self._slope, self._curvature = self._forces(number, seen)
        chosen = seen > 0
        self._chosen = None if chosen.all() and self.data.sample_weight is None else self._documents(chosen)

    def _forces(self, number: int, seen: PerQuery) -> tuple[PerDocument, PerDocument]:
        """Return the slope and the curvature of each document by the processor."""
        data, objective = self.data, self._objective
        bound = objective.drawn(self.plan.draws.place(number)).on(data) if isinstance(objective, Sampled) else self._bound
        _, slope, curvature = _core.answers(bound, self.scores, data.indptr, seen, True, True, self.plan.threads, with_value=False)
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

    def _documents(self, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8]:
        """Return whether a tree is fitted to each document: those of weight 0 do not count."""
        data = self.data
        documents = np.repeat(chosen, data.sizes)
        return (documents if data.sample_weight is None else documents & (data.sample_weight > 0)).astype(np.uint8)

    def _weights_seen(self, number: int) -> PerDocument:
        """Return the weight of each document in the tree of that number: its curvature where the objective has none."""
        weights = np.repeat(self._seen(number), self.data.sizes)
        return weights if self.data.sample_weight is None else weights * self.data.sample_weight

    def start(self, state: TreeState) -> None:
        """Put all documents that the tree is fitted to into its root, unless they are there."""
        begun = self._begun
        if begun is not None and begun.begins_like(state) and 0 <= self._rounds_done <= len(state.rounds) and not self._is_settled:
            return
        if begun is not None and begun.flat != state.flat:  # the curvatures that there were may be gone
            self._forces_of = None
        self._follow(state.number)
        self._begin(state)
        self._begun, self._rounds_done = state, 0

    def _begin(self, state: TreeState) -> None:
        if state.flat:
            self._curvature = self._weights_seen(state.number)
        units = state.units
        self._rows.begin(self._chosen, self._slope, self._curvature, 1 / units.slope, 1 / units.curvature, self.plan.threads)

    def grow(self, growth: _core.Growth, state: TreeState) -> None:
        """Grow the whole tree, if this part is all there is."""
        self.start(state)
        self._rows.grow(growth, self.plan.threads)

    def answer(self, state: TreeState) -> Answer:
        """Answer the last round of the tree, after those before that were not done yet."""
        if self._rounds_done == len(state.rounds):  # asked again, since another part lost its state: nodes cannot be split twice
            self._rounds_done = -1
        self._catch_up(state, len(state.rounds) - 1)
        asked, units = state.rounds[-1], state.units
        histograms = self._answer(asked, state.allowed)
        sums = self._rows.sums(
            summed(asked), self._slope, self._curvature, 1 / units.fine_slope, 1 / units.fine_curvature, self.plan.threads
        )
        self._rounds_done += 1
        return histograms, sums

    def _catch_up(self, state: TreeState, rounds: int) -> None:
        """Split the documents as in the first ``rounds`` of the tree, as far as that was not done yet."""
        self.start(state)
        for asked in state.rounds[self._rounds_done : rounds]:
            splits: Asked = [
                (node, left, right, f, cut, missing_left, bits, []) for node, left, right, f, cut, missing_left, bits, _ in asked
            ]
            self._answer(splits, state.allowed)
            self._rounds_done += 1

    def _answer(self, asked: Asked, allowed: Allowed) -> npt.NDArray[np.uint64]:
        return self._rows.answer(asked, allowed, self.plan.documents, self.plan.threads)

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
        self._rows.number(tree, self._chosen, self._leaf, self.plan.threads)
        if self._is_whole:
            self.sums = _core.leaf_sums(self._leaf, self._chosen, *forces, 1 / units.fine_slope, 1 / units.fine_curvature, leaves)

    def add(self, values: PerLeaf) -> None:
        """Add the tree that was settled, with these ``values``, to the scores."""
        self._add(values)
        self.count += 1
        self._forces_of = None

    def _add(self, values: PerLeaf) -> None:
        _core.add_leaf_values(self.scores, self._leaf, values)

    def values(self) -> Values:
        """Return the measure of each query."""
        return np.array(values_of(self._measures, self.scores)[0])


@dataclass(frozen=True, eq=False)
class TreeHistory:
    """All that a part has to know before it can answer: the plan, and the trees so far."""

    plan: Plan
    trees: TreeTable | None


class Behind:
    """The answer of a part that has to be told the history first."""


class BehindError(EngineError):
    """The same, where an answer of another kind is expected; engines pass errors of ours on as they are."""


What = Literal["forces", "histograms", "add", "values"]


@dataclass(frozen=True, eq=False)
class TreeQuestion:
    """A question of a forest to a part; answers add up, or are the values of the part's queries."""

    forest: str  #: which forest asks
    count: int  #: how many trees there are
    what: What
    state: TreeState | None = None  #: of the tree that grows
    tree: _core.GrownTree | None = None  #: when it has grown
    outputs: PerLeaf = field(default_factory=lambda: np.empty(0))  #: of its leaves
    values: PerLeaf | None = None  #: the same, weighted
    next_state: TreeState | None = None  #: of the tree after it, as it is expected to begin
    history: TreeHistory | None = None

    def ask(self, part: Part) -> object:
        """Answer for ``part``."""
        forest = self.forest_of(part)
        if forest is None:
            return Behind()
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
        return forest.values(), None if self.next_state is None else self._next(forest, self.next_state)

    def _next(self, forest: ForestPart, expected: TreeState) -> Opening:
        """Return what the part says of the next tree; an error counts only if there will be one."""
        try:
            return forest.opening(expected.number, expected)
        except DataError as error:
            return Opening(0.0, 0.0, 0.0, error=error)

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
        plan = self.history.plan
        states[self.forest] = (plan.place or ForestPart)(part, plan, self.history.trees)
        return states[self.forest]

    def settled(self, part: Part) -> ForestPart:
        """Return the state of the part when each document has its leaf."""
        forest = self.forest_of(part)
        if forest is None or self.state is None or self.tree is None:
            raise BehindError("the scores of a part are lost")
        forest.settle(self.tree, self.state)
        return forest

    def with_history(self, history: TreeHistory) -> "TreeQuestion":
        """Return the question for parts that have to be told the history."""
        return replace(self, history=history)
