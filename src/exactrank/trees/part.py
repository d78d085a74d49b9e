"""The documents of one part of the data while a forest grows on them, and what they are asked.

A part keeps the scores of its documents, their forces, and which node of the growing tree each of them is in. What leaves it are sums in
whole numbers and values of queries. Every question says at which tree and at which round of it the forest is: a part that is there answers,
one that is behind by rounds catches up, and one that has lost its scores, or never had them, says so and is asked again with the trees so
far.
"""

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import PerDocument, PerQuery
from exactrank.data.ranking_data import RankingData
from exactrank.engine.engine import Part
from exactrank.errors import DataError, EngineError
from exactrank.measures.base import Measure
from exactrank.measures.bound import values_of
from exactrank.objectives.bounded_gain import gentle
from exactrank.objectives.score_space import Numbered, Objective, Sampled
from exactrank.scorers.tree_table import TreeTable
from exactrank.training.judge import severe
from exactrank.trees.bins import Layout
from exactrank.trees.growth import Allowed, Draws, PerLeaf, Units

LeafNumbers = npt.NDArray[np.uint8] | npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
Asked = list[tuple[int, int, int, int, int, bool, list[int], list[int]]]  #: nodes to split, and whose histograms are wanted
Values = npt.NDArray[np.float64]  #: the measure as asked, and as it selects, of each query


@dataclass(frozen=True, eq=False)
class Outputs:
    """What a tree says of each document: the output of its leaf."""

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
        self.count = 0 if trees is None else trees.n_trees
        self.scores: PerDocument = np.zeros(data.n_documents) if trees is None else trees.native.scores(data.X, threads)

    def add(self, tree: _core.GrownTree, values: PerLeaf) -> None:
        """Add a tree whose leaves have these ``values`` to the scores."""
        leaf = leaf_numbers(self.data.n_documents, len(values))
        self.binned.walk(tree, leaf, self.threads)
        _core.add_leaf_values(self.scores, leaf, values)
        self.count += 1


@dataclass(frozen=True, eq=False)
class Plan:
    """What a part is told of a forest once."""

    layout: Layout
    objective: Objective
    measure: Measure
    draws: Draws
    weights: PerQuery  #: of all queries
    documents: int  #: of all parts
    threads: int


@dataclass(frozen=True, eq=False)
class TreeState:
    """How far the tree that grows now has come."""

    number: int
    units: Units
    flat: bool  #: does every curvature count as 1?
    allowed: Allowed
    rounds: tuple[Asked, ...] = ()


class ForestPart:
    """One part of the data, on which a forest grows."""

    def __init__(self, part: Part, plan: Plan, trees: TreeTable | None) -> None:
        data = part.data
        self.plan, self.first = plan, part.first
        binned = part.lately("bins", plan.layout.key, 1, lambda: _core.BinnedRows(plan.layout.native, data.X, plan.threads))
        self.training = BinnedScores(data, binned, trees, plan.threads)
        self.rows = _core.NodeRows(self.training.binned)
        objective = plan.objective
        self._objective = (
            objective.counted_from(part.first, part.first_document) if isinstance(objective, Numbered) and not part.whole else objective
        )
        self._bound = None if isinstance(self._objective, Sampled) else self._objective.on(data)
        asked = plan.measure.on(data, threads=plan.threads)
        self._measures = asked, gentle(asked.with_ties(severe(plan.measure).ties))
        self.leaf = leaf_numbers(data.n_documents, 2)
        self._forces_of: int | None = None
        self._rounds_done, self._is_settled = -1, False
        self._chosen: npt.NDArray[np.uint8] | None = None
        self._slope = self._curvature = np.zeros(0)
        self._sums = np.zeros(0, np.int64)

    @property
    def weights(self) -> PerQuery:
        """Those of the part's queries."""
        return self.plan.weights[self.first : self.first + self.training.data.n_queries]

    def largest_forces(self, number: int) -> tuple[float, float]:
        """Compute the forces that the tree of that number follows; return the sizes of the largest slope and curvature."""
        if self._forces_of != number or self._is_settled:
            self._compute_forces(number)
        slope = max(float(self._slope.max(initial=0.0)), -float(self._slope.min(initial=0.0)))
        return slope, float(self._curvature.max(initial=0.0))

    def _compute_forces(self, number: int) -> None:
        plan, data = self.plan, self.training.data
        seen = plan.draws.seen(number, plan.weights)[self.first : self.first + data.n_queries]
        objective = self._objective
        place = plan.draws.place(number)
        bound = objective.drawn(place).on(data) if isinstance(objective, Sampled) else self._bound
        assert bound is not None
        self._slope = self._curvature = np.zeros(0)  # gives back the memory of the forces before
        _, slope, curvature = _core.answers(bound, self.training.scores, data.indptr, seen, True, True, plan.threads, with_value=False)
        if not np.isfinite(slope).all() or not np.isfinite(curvature).all():
            raise DataError(
                f"{type(objective).__name__} gives forces that are not finite numbers after {self.training.count:,} trees; fix the"
                " objective, or train with a smaller learning_rate"
            )
        np.maximum(curvature, 0.0, out=curvature)
        if data.sample_weight is not None:
            slope *= data.sample_weight
            curvature *= data.sample_weight
        self._slope, self._curvature = slope, curvature
        chosen = seen > 0
        self._chosen = None if chosen.all() and data.sample_weight is None else self._documents(chosen)
        self._forces_of, self._rounds_done, self._is_settled = number, -1, False

    def _documents(self, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8]:
        """Return whether a tree is fitted to each document: those of weight 0 do not count."""
        data = self.training.data
        documents = np.repeat(chosen, data.sizes)
        return (documents if data.sample_weight is None else documents & (data.sample_weight > 0)).astype(np.uint8)

    def _flatten_curvature(self, number: int) -> None:
        data = self.training.data
        seen = self.plan.draws.seen(number, self.plan.weights)[self.first : self.first + data.n_queries]
        self._curvature = np.repeat(seen, data.sizes)
        if data.sample_weight is not None:
            self._curvature *= data.sample_weight

    def start(self, state: TreeState) -> None:
        """Put all documents that the tree is fitted to into its root, unless they are there."""
        if self._forces_of == state.number and 0 <= self._rounds_done <= len(state.rounds):
            return
        self.largest_forces(state.number)
        if state.flat:
            self._flatten_curvature(state.number)
        units = state.units
        self.rows.begin(self._chosen, self._slope, self._curvature, 1 / units.slope, 1 / units.curvature, self.plan.threads)
        self._rounds_done = 0

    def histograms(self, state: TreeState) -> npt.NDArray[np.uint64]:
        """Return the histograms that the last round of the tree wants."""
        if self._rounds_done == len(state.rounds):  # asked again, since another part lost its state: nodes cannot be split twice
            self._rounds_done = -1
        return self._catch_up(state)

    def _catch_up(self, state: TreeState) -> npt.NDArray[np.uint64]:
        """Do all rounds of the tree that were not done yet; return the histograms that the last of them wants, if it was not done."""
        self.start(state)
        histograms = np.empty(0, np.uint64)
        while self._rounds_done < len(state.rounds):
            asked = state.rounds[self._rounds_done]
            histograms = self.rows.answer(asked, state.allowed, self.plan.documents, self.plan.threads)
            self._rounds_done += 1
        return histograms

    def is_settled(self, state: TreeState) -> bool:
        """Does each document have its leaf in the tree of ``state``?"""
        return self._is_settled and self._forces_of == state.number

    def settle(self, tree: _core.GrownTree, state: TreeState) -> npt.NDArray[np.int64]:
        """Give each document its leaf; return the sums of forces over each leaf.

        The forces are forgotten, since a line search needs the memory.
        """
        if not self.is_settled(state):
            self._catch_up(state)
            leaves, units, forces = len(tree.documents), state.units, (self._slope, self._curvature)
            self.leaf = leaf_numbers(self.training.data.n_documents, leaves)
            self.rows.number(tree, self._chosen, self.leaf, self.plan.threads)
            self._sums = _core.leaf_sums(self.leaf, self._chosen, *forces, 1 / units.fine_slope, 1 / units.fine_curvature, leaves)
            self._slope = self._curvature = np.zeros(0)
            self._is_settled = True
        return self._sums

    def add(self, values: PerLeaf) -> None:
        """Add the tree that was settled, with these ``values``, to the scores."""
        _core.add_leaf_values(self.training.scores, self.leaf, values)
        self.training.count += 1
        self._forces_of = None

    def values(self) -> Values:
        """Return the measure of each query."""
        return np.array(values_of(self._measures, self.training.scores)[0])


@dataclass(frozen=True, eq=False)
class History:
    """All that a part has to know before it can answer: the plan, and the trees so far."""

    plan: Plan
    trees: TreeTable | None


class Behind:
    """The answer of a part that has to be told the history first."""


class BehindError(EngineError):
    """The same, where an answer of another kind is expected; engines pass errors of ours on as they are."""


What = Literal["forces", "histograms", "sums", "add", "values"]


@dataclass(frozen=True, eq=False)
class Question:
    """What a forest asks of a part; answers add up, or are the values of the part's queries."""

    forest: str  #: which forest asks
    count: int  #: how many trees there are
    what: What
    state: TreeState | None = None  #: of the tree that grows
    tree: _core.GrownTree | None = None  #: when it has grown
    outputs: PerLeaf = field(default_factory=lambda: np.empty(0))  #: of its leaves
    values: PerLeaf | None = None  #: the same, weighted
    history: History | None = None

    def __call__(self, part: Part) -> object:
        forest = self.forest_of(part)
        if forest is None:
            return Behind()
        if self.what == "forces":
            return forest.largest_forces(self.count)
        if self.what == "values":
            return forest.values()
        assert self.state is not None
        if self.what == "histograms":
            return forest.histograms(self.state)
        assert self.tree is not None
        sums = forest.settle(self.tree, self.state)
        if self.what == "sums":
            return sums
        assert self.values is not None
        forest.add(self.values)
        return forest.values()

    def forest_of(self, part: Part) -> ForestPart | None:
        """Return the state of the part, if it is where the question expects it, or can be brought there."""
        states: dict[str, ForestPart] = part.once("forests", dict)
        forest = states.get(self.forest)
        if forest is not None and forest.training.count == self.count:
            return forest
        if self.history is None:
            return None
        states.clear()  # one forest at a time: each has the documents in bins
        states[self.forest] = ForestPart(part, self.history.plan, self.history.trees)
        return states[self.forest]

    def settled(self, part: Part) -> ForestPart:
        """Return the state of the part when each document has its leaf."""
        forest = self.forest_of(part)
        if forest is None or self.state is None or self.tree is None:
            raise BehindError("the scores of a part are lost")
        if not forest.is_settled(self.state):
            forest.settle(self.tree, self.state)
        return forest

    def with_history(self, history: History) -> "Question":
        """Return the question for parts that have to be told the history."""
        return replace(self, history=history)
