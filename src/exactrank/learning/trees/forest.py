"""A forest that grows: one tree after the other, each along the forces at the scores of those before.

    s <- s + weight_t * tree_t                                                                                  (1)

The forest decides, and parts of the data answer (`exactrank.learning.trees.part`): one in this process, or several, in files or on a
cluster. Sums are of whole numbers, so the trees have the same bits wherever the documents lie. In one process a tree grows in a single call
of the core; otherwise in rounds, each about several nodes.

`Trees` are a value: the first trees of a forest, which stay what they are while more grow.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.json_values import JSONObject
from exactrank._support.serialize import storable
from exactrank.data.dataset import Answerer, Dataset
from exactrank.data.ranking_data import RankingData
from exactrank.learning.training.judge import validation_verdict
from exactrank.learning.training.progress import Verdict
from exactrank.learning.trees.growth import GrowthSettings, PerLeaf, Units, WeightedTree, tree_table
from exactrank.learning.trees.part import (
    ROOT,
    Answer,
    ForestPart,
    LostStateError,
    Opening,
    Plan,
    TreeHistory,
    TreeQuestion,
    TreeState,
    Values,
    What,
    leaf_numbers,
    summed_nodes,
)
from exactrank.measures.bound import mean_over_queries, values_of
from exactrank.models.tree_record import read_trees, tree_records
from exactrank.models.tree_table import TreeTable

A = TypeVar("A")
#: The weight of the tree that has just grown in a forest, from the outputs of its leaves.
Weigher = Callable[["Forest", PerLeaf], float]
#: The weight that the next tree of a forest is expected to have, if the measure chooses its splits; None if their gain does.
Expected = Callable[["Forest"], float] | None


@storable
@dataclass(frozen=True, eq=False)
class Trees:
    """The first trees of a forest, or the trees of a model."""

    count: int = 0
    forest: "Forest | None" = None  #: where they grew
    read: TreeTable | None = None

    @property
    def table(self) -> TreeTable | None:
        """The trees as arrays; None if there are none."""
        if self.forest is not None:
            return self.forest.table(self.count)
        return None if self.read is None or not self.count else self.read.first(self.count)

    @classmethod
    def of(cls, table: TreeTable) -> "Trees":
        """Return the trees of a model."""
        return cls(table.n_trees, read=table)

    def to_record(self) -> JSONObject:
        """Return the trees as JSON values."""
        table = self.table
        return {"features": 0, "trees": []} if table is None else {"features": table.n_features, "trees": tree_records(table)}

    @classmethod
    def from_record(cls, record: JSONObject, where: str) -> "Trees":
        """Return the trees that `to_record` described."""
        features = record["features"]
        if not isinstance(features, int):
            raise TypeError(f"{features!r} is not a number of features")
        return cls.of(read_trees(record["trees"], features)) if record["trees"] else cls()


class Validation:
    """Validation data in bins, with its scores by the trees so far."""

    def __init__(self, data: RankingData, plan: Plan, trees: TreeTable | None) -> None:
        layout = plan.layout.with_missing(data.X, plan.threads).native
        self._binned, self._threads = _core.BinnedRows(layout, data.X, plan.threads), plan.threads
        self._measures = plan.measures_on(data)
        self._scores = np.zeros(data.n_documents) if trees is None else trees.native.scores(data.X, plan.threads)

    def add(self, tree: _core.GrownTree, values: PerLeaf) -> None:
        """Add a tree whose leaves have these ``values`` to the scores."""
        leaf = leaf_numbers(len(self._scores), len(values))
        self._binned.walk(tree, leaf, self._threads)
        _core.add_leaf_values(self._scores, leaf, values)

    def verdict(self, value: float) -> Verdict:
        """Return the verdict by validation data; ``value`` is the measure on the training data."""
        (reported, selecting), _ = values_of(self._measures, self._scores)
        return validation_verdict(value, *self._measures, reported, selecting)


class Forest:
    """Trees that grow on ``data``, by ``plan`` and ``settings``; validation data is judged here."""

    barren = "no split is possible: the features are constant, or leaves would be too small; lower min_documents or min_curvature"

    def __init__(
        self,
        plan: Plan,
        settings: GrowthSettings,
        data: Answerer,
        valid: Dataset | None,
        weigh: Weigher,
        max_trees: int,
        expected_weight: Expected = None,
    ) -> None:
        self.plan, self.data = plan, data
        self._settings, self._weigh, self._max_trees, self._expected_weight = settings, weigh, max_trees, expected_weight
        self._valid_data = valid
        self._pool = _core.HistogramPool(plan.layout.native)
        self._start: TreeTable | None = None
        self._grown: list[WeightedTree] = []
        self._verdicts: dict[int, Verdict] = {}
        self._tree_question = TreeQuestion("", 0, "add")  #: that settles the tree that has just grown
        self._restart()

    @property
    def _before(self) -> int:
        return 0 if self._start is None else self._start.n_trees

    @property
    def count(self) -> int:
        """The number of trees."""
        return self._before + len(self._grown)

    @property
    def last_weight(self) -> float | None:
        """The weight of the last tree."""
        if self._grown:
            return self._grown[-1].weight
        return None if self._start is None else float(self._start.shrinkage[-1])

    def table(self, count: int) -> TreeTable | None:
        """Return the first ``count`` trees as arrays; None if there are none."""
        if count <= self._before:
            return None if self._start is None or not count else self._start.first(count)
        grown = tree_table(self._grown[: count - self._before], self.plan.layout)
        return grown if self._start is None else self._start.join(grown)

    def extend(self, trees: Trees) -> Trees:
        """Return ``trees`` with one more, or as they are if no split is possible."""
        self._continue(trees)
        root = self._begin()
        if root is None:
            return trees
        tree, sums, state = self._grow(*root)
        if not len(tree.feature):
            return trees
        self._add(tree, sums, state)
        return Trees(self.count, self)

    def verdict(self, trees: Trees) -> Verdict:
        """Return what is reported of ``trees``, and selects them."""
        self._continue(trees)
        if trees.count not in self._verdicts:
            self._judge(self._ask(self._question("values")))
        return self._verdicts[trees.count]

    def _continue(self, trees: Trees) -> None:
        """Continue from ``trees``, if they grew elsewhere."""
        if trees.count == self.count and (trees.forest is self or not trees.count):
            return
        self._start, self._grown, self._verdicts = trees.table, [], {}
        self._restart()

    def _restart(self) -> None:
        """Forget what was computed with other trees."""
        self._name = secrets.token_hex(8)
        #: How the next tree is expected to begin, and the openings of parts that know it already.
        self._next: tuple[TreeState | None, list[Opening]] = None, []
        self.__dict__.pop("_valid", None)

    def _begin(self) -> tuple[TreeState, Answer | None] | None:
        """Return the next tree at its root, and the answer to its first round if it is known; None if no force acts on any document."""
        (expected, openings), self._next = self._next, (None, [])
        openings = openings or self._ask(self._question("forces"))
        for opening in openings:
            if opening.error is not None:
                raise opening.error
        slope, curvature, weight = (max(getattr(opening, name) for opening in openings) for name in ("slope", "curvature", "weight"))
        flat = curvature == 0  # an objective without one
        curvature = weight if flat else curvature
        if not slope > 0 < curvature:
            return None
        state = self._root(self.count, Units.of(slope, curvature, self.plan.documents), flat)
        roots = [opening.root for opening in openings if opening.root is not None]
        if expected is None or not expected.begins_like(state) or len(roots) < len(openings):
            return state, None
        return expected, _total(roots)

    def _root(self, number: int, units: Units, flat: bool) -> TreeState:
        return TreeState(number, units, flat, *self.plan.draws.features(number, self.plan.layout))

    def _grow(self, state: TreeState, root: Answer | None) -> tuple[_core.GrownTree, npt.NDArray[np.int64], TreeState]:
        """Grow a tree from its root; return it, the sums of its leaves, and all rounds that it took."""
        growth = self._settings.begin(self.plan.layout, self._pool, state.allowed, self.plan.documents, state.units, state.key)
        if self.data.single_part() is not None:
            part = self.part
            if self._expected_weight is None:
                part.grow(growth, state)
            else:
                part.grow_by_measure(growth, state, self._expected_weight(self))
            tree = growth.tree()
            part.settle(tree, state)
            return tree, part.sums, state
        sums = {0: np.zeros(2, np.int64)}  # of each node; nothing is asked about the root where no feature may be used
        while splits := growth.asks(ahead=True):
            if root is None:
                state = replace(state, rounds=(*state.rounds, splits))
                root = _total(self._ask(replace(self._question("histograms"), state=state)))
            histograms, node_sums = root
            for (parent, left, right, *_), node, sum_ in zip(splits, summed_nodes(splits), node_sums, strict=True):
                sums[node] = sum_
                if parent >= 0:
                    sums[left + right - node] = sums[parent] - sum_
            growth.take(histograms, self.plan.threads)
            root = None
        tree = growth.tree()
        return tree, np.transpose([sums[node] for node in tree.node_of_leaf.tolist()]), state

    def _add(self, tree: _core.GrownTree, sums: npt.NDArray[np.int64], state: TreeState) -> None:
        """Give the leaves of a tree their values, and add it to the scores of all documents."""
        outputs = self._settings.outputs(tree, sums, state.units)
        self._tree_question = replace(self._question("add"), state=state, tree=tree, outputs=outputs)
        weight = self._weigh(self, outputs)
        values, expected = weight * outputs, self._expected_after(state)
        question = replace(self._question("add"), state=state, tree=tree, values=values, next_state=expected)
        answers: list[tuple[Values, Opening | None]] = self._ask(question)
        if self._valid is not None:  # before the tree is among those of the forest, which validation data begins with
            self._valid.add(tree, values)
        self._grown.append(WeightedTree(tree, values, weight))
        self._next = expected, [opening for _, opening in answers if opening is not None]
        self._judge([by_query for by_query, _ in answers])

    def _expected_after(self, state: TreeState) -> TreeState | None:
        """Return how the tree after that of ``state`` begins if the units stay the same; None where that need not be asked."""
        if self.data.single_part() is not None or self.count + 1 >= self._max_trees:
            return None
        return replace(self._root(self.count + 1, state.units, state.flat), rounds=(ROOT,))

    def _question(self, what: What) -> TreeQuestion:
        return TreeQuestion(self._name, self.count, what)

    def _with_history(self, question: TreeQuestion) -> TreeQuestion:
        return replace(question, history=TreeHistory(self.plan, self.table(self.count)))

    def _ask(self, question: TreeQuestion) -> list[Any]:
        """Return the answers of all parts; if a part has lost its state, all are asked again with the history."""
        answers = self.data.ask(question)
        return self.data.ask(self._with_history(question)) if any(answer is None for answer in answers) else answers

    def search_tree(self, search: Callable[[TreeQuestion], A]) -> A:
        """Return the result of ``search``, given the question that settles the tree that has just grown.

        If a part has lost its state, the search is repeated with a question that includes the history, which every part can answer.
        """
        try:
            return search(self._tree_question)
        except LostStateError:
            return search(self._with_history(self._tree_question))

    @property
    def part(self) -> ForestPart:
        """The only part, in this process."""
        data_part = self.data.single_part()
        assert data_part is not None
        part = self._question("values").forest_of(data_part)
        assert part is not None
        return part

    def _judge(self, by_part: Sequence[Values]) -> None:
        """Note the verdict by the values of training queries, and by validation data if there is any."""
        value, goodness = (mean_over_queries(values, self.plan.weights) for values in np.concatenate(by_part, axis=1))
        verdict = Verdict(value, None, goodness) if self._valid is None else self._valid.verdict(value)
        self._verdicts = {self.count: verdict}

    @cached_property
    def _valid(self) -> Validation | None:
        return None if self._valid_data is None else Validation(self._valid_data.gather(), self.plan, self.table(self.count))


def _total(answers: Sequence[Answer]) -> Answer:
    histograms, sums = zip(*answers, strict=True)
    return reduce(np.add, histograms), reduce(np.add, sums)
