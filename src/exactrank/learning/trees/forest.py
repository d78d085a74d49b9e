"""A forest that grows: one tree after the other, each along the forces at the scores of those before.

    s <- s + weight_t * tree_t                                                                                  (1)

The forest decides, and parts of the data answer (`exactrank.learning.trees.part`): one in this process, or several, in files or on a
cluster. Sums are of whole numbers, so the trees have the same bits wherever the documents lie. In one process a tree grows in a single call
of the core; otherwise in rounds, each about several nodes.

`Trees` are a value: the first trees of a forest, which stay what they are while more grow.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.serialize import storable
from exactrank.data.dataset import Asked, Dataset
from exactrank.learning.objectives.bounded_gain import bounded_gain
from exactrank.learning.training.judge import verdict_of
from exactrank.learning.training.progress import Verdict
from exactrank.learning.trees.growth import GrowthSettings, PerLeaf, Units, WeightedTree, tree_table
from exactrank.learning.trees.part import (
    ROOT,
    Answer,
    Behind,
    BehindError,
    BinnedScores,
    ForestPart,
    Opening,
    Plan,
    TreeHistory,
    TreeQuestion,
    TreeState,
    Values,
    What,
    summed,
)
from exactrank.measures.bound import BoundMeasure, mean_over_queries, values_of
from exactrank.measures.ties import worst_tie_order
from exactrank.models.tree_record import read_trees, tree_records
from exactrank.models.tree_table import TreeTable

A = TypeVar("A")
#: The weight of the tree that has just grown in a forest, from the outputs of its leaves.
Weigher = Callable[["Forest", PerLeaf], float]


@storable
@dataclass(frozen=True, eq=False)
class Trees:
    """The first trees of a forest, or trees that were read."""

    count: int = 0
    forest: "Forest | None" = None  #: where they grew
    read: TreeTable | None = None

    @property
    def table(self) -> TreeTable | None:
        """The trees as arrays; None where there is not one."""
        if self.forest is not None:
            return self.forest.table(self.count)
        return None if self.read is None or not self.count else self.read.first(self.count)

    @classmethod
    def of(cls, table: TreeTable) -> "Trees":
        """Return the trees of a model."""
        return cls(table.n_trees, read=table)

    def to_record(self) -> dict[str, Any]:
        """Return the trees as JSON values."""
        table = self.table
        return {"features": 0, "trees": []} if table is None else {"features": table.n_features, "trees": tree_records(table)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], where: str) -> "Trees":
        """Return the trees that `to_record` described."""
        return cls.of(read_trees(record["trees"], record["features"])) if record["trees"] else cls()


class Forest:
    """Trees that grow on ``data``, by ``plan`` and ``settings``; validation data is judged here."""

    barren = "no split is possible: the features are constant, or leaves would be too small; lower min_documents or min_curvature"

    def __init__(self, plan: Plan, settings: GrowthSettings, data: Asked, valid: Dataset | None, weigh: Weigher, most: int) -> None:
        self.plan, self.data = plan, data
        self._settings, self._weigh = settings, weigh
        self._most = most  #: how many trees there will be, if nothing ends the training before
        self._valid_data = valid
        self._pool = _core.HistogramPool(plan.layout.native)
        self._start: TreeTable | None = None
        self._grown: list[WeightedTree] = []
        self._verdicts: dict[int, Verdict] = {}
        self._tree_question = TreeQuestion("", 0, "add")  #: that settles the tree that has just grown
        self._restart()

    @property
    def count(self) -> int:
        """How many trees there are."""
        return self._before + len(self._grown)

    @property
    def _before(self) -> int:
        return 0 if self._start is None else self._start.n_trees

    @property
    def last_weight(self) -> float | None:
        """The weight of the last tree."""
        if self._grown:
            return self._grown[-1].weight
        return None if self._start is None else float(self._start.shrinkage[-1])

    def table(self, count: int) -> TreeTable | None:
        """Return the first ``count`` trees as arrays; None where there is not one."""
        if count <= self._before:
            return None if self._start is None or not count else self._start.first(count)
        grown = tree_table(self._grown[: count - self._before], self.plan.layout)
        return grown if self._start is None else self._start.joined(grown)

    def grown(self, trees: Trees) -> Trees:
        """Return ``trees`` with one more, or as they are if no split is possible."""
        self._take_up(trees)
        begun = self._begin()
        if begun is None:
            return trees
        tree, sums, state = self._grow(*begun)
        if not len(tree.feature):
            return trees
        self._add(tree, sums, state)
        return Trees(self.count, self)

    def verdict(self, trees: Trees) -> Verdict:
        """Return what is reported of ``trees``, and selects them."""
        self._take_up(trees)
        if trees.count not in self._verdicts:
            self._verdicts = {trees.count: self._judged(self._together(self._ask(self._question("values"))))}
        return self._verdicts[trees.count]

    def _take_up(self, trees: Trees) -> None:
        """Go on from ``trees``, if they grew elsewhere."""
        if trees.count == self.count and (trees.forest is self or not trees.count):
            return
        self._start, self._grown, self._verdicts = trees.table, [], {}
        self._restart()

    def _restart(self) -> None:
        """Forget what was computed with other trees."""
        self._name = secrets.token_hex(8)
        #: How the next tree is expected to begin, and what parts have said of it already.
        self._next: tuple[TreeState | None, list[Opening]] = None, []
        self.__dict__.pop("_valid", None)

    def _begin(self) -> tuple[TreeState, Answer | None] | None:
        """Return the next tree at its root, and the answer to its first round if it is known; None if no force acts on any document."""
        (expected, openings), self._next = self._next, (None, [])
        if not openings:
            openings = self._ask(self._question("forces"))
        for opening in openings:
            if opening.error is not None:
                raise opening.error
        slope, curvature, weight = (max(getattr(each, name) for each in openings) for name in ("slope", "curvature", "weight"))
        flat = curvature == 0  # an objective without one
        curvature = weight if flat else curvature
        if not slope > 0 < curvature:
            return None
        state = self._state(self.count, Units.of(slope, curvature, self.plan.documents), flat)
        roots = [opening.root for opening in openings if opening.root is not None]
        if expected is None or not expected.begins_like(state) or len(roots) < len(openings):
            return state, None
        return expected, _total(roots)

    def _state(self, number: int, units: Units, flat: bool) -> TreeState:
        """Return the tree of that number before its first round."""
        allowed, _ = self.plan.draws.features(number, self.plan.layout)
        return TreeState(number, units, flat, allowed)

    def _grow(self, state: TreeState, root: Answer | None) -> tuple[_core.GrownTree, npt.NDArray[np.int64], TreeState]:
        """Grow a tree from its root; return it, the sums of its leaves, and all rounds that it took."""
        _, key = self.plan.draws.features(state.number, self.plan.layout)
        growth = self._settings.begin(self.plan.layout, self._pool, state.allowed, self.plan.documents, state.units, key)
        if self.data.whole_part() is not None:
            self.part.grow(growth, state)
            tree = growth.tree()
            self.part.settle(tree, state)
            return tree, self.part.sums, state
        sums = {0: np.zeros(2, np.int64)}  # of each node; nothing is asked about the root where no feature may be used
        while asked := growth.asks(ahead=True):
            if root is None:
                state = replace(state, rounds=(*state.rounds, asked))
                root = _total(self._ask(replace(self._question("histograms"), state=state)))
            histograms, of_nodes = root
            for (parent, left, right, *_), node, own in zip(asked, summed(asked), of_nodes, strict=True):
                sums[node] = own
                if parent >= 0:
                    sums[left + right - node] = sums[parent] - own
            growth.take(histograms, self.plan.threads)
            root = None
        tree = growth.tree()
        return tree, np.transpose([sums[node] for node in tree.node_of_leaf.tolist()]), state

    def _add(self, tree: _core.GrownTree, sums: npt.NDArray[np.int64], state: TreeState) -> None:
        """Give the leaves of a tree their values, and add it to the scores of all documents."""
        outputs = self._settings.outputs(tree, sums, state.units)
        self._tree_question = replace(self._question("add"), state=state, tree=tree, outputs=outputs)
        weight = self._weigh(self, outputs)
        values = weight * outputs
        expected = self._expected_after(state)
        answers: list[tuple[Values, Opening | None]] = self._ask(
            replace(self._question("add"), state=state, tree=tree, values=values, next_state=expected)
        )
        by_query = self._together([of_part for of_part, _ in answers])
        if self._valid is not None:  # before the tree is among those of the forest, which validation data begins with
            self._valid[0].add(tree, values)
        self._grown.append(WeightedTree(tree, values, weight))
        self._next = expected, [opening for _, opening in answers if opening is not None]
        self._verdicts = {self.count: self._judged(by_query)}

    def _expected_after(self, state: TreeState) -> TreeState | None:
        """Return how the tree after that of ``state`` begins if the units stay the same; None where that need not be asked."""
        if self.data.whole_part() is not None or self.count + 1 >= self._most:
            return None
        return replace(self._state(self.count + 1, state.units, state.flat), rounds=(ROOT,))

    def _question(self, what: What) -> TreeQuestion:
        return TreeQuestion(self._name, self.count, what)

    def _ask(self, question: TreeQuestion) -> list[Any]:
        """Return the answers of all parts; those that are behind are told what they missed."""
        answers = self.data.ask(question)
        if any(isinstance(answer, Behind) for answer in answers):
            answers = self.data.ask(question.with_history(TreeHistory(self.plan, self.table(self.count))))
        return answers

    def search_tree(self, search: Callable[[TreeQuestion], A]) -> A:
        """Return what ``search`` finds, given the question that settles the tree that has just grown.

        If a part has lost its state, the search is repeated with a question that tells the history, which every part can answer.
        """
        try:
            return search(self._tree_question)
        except BehindError:
            return search(self._tree_question.with_history(TreeHistory(self.plan, self.table(self.count))))

    @property
    def part(self) -> ForestPart:
        """The only part, in this process."""
        whole = self.data.whole_part()
        assert whole is not None
        part = TreeQuestion(self._name, self.count, "values").forest_of(whole)
        assert part is not None
        return part

    def _together(self, by_part: Sequence[Values]) -> Values:
        return by_part[0] if len(by_part) == 1 else np.concatenate(by_part, axis=1)

    def _judged(self, values: Values) -> Verdict:
        """Return the verdict by the values of training queries, and by those of validation data if there is any."""
        value, goodness = (mean_over_queries(each, self.plan.weights) for each in values)
        if self._valid is None:
            return Verdict(value, None, goodness)
        scores, asked, selects = self._valid
        (of_asked, of_selects), _ = values_of([asked, selects], scores.scores)
        return verdict_of(value, asked, selects, of_asked, of_selects)

    @cached_property
    def _valid(self) -> tuple[BinnedScores, BoundMeasure, BoundMeasure] | None:
        """Validation data with its scores, and the measure on it, as asked and as it selects."""
        measure = self.plan.measure
        if self._valid_data is None:
            return None
        data = self._valid_data.as_one()
        asked = measure.on(data, threads=self.plan.threads)
        binned = _core.BinnedRows(self.plan.layout.with_missing(data.X, self.plan.threads).native, data.X, self.plan.threads)
        scores = BinnedScores(data, binned, self.table(self.count), self.plan.threads)
        return scores, asked, bounded_gain(asked.with_ties(worst_tie_order(measure).ties))


def _total(answers: Sequence[Answer]) -> Answer:
    histograms, sums = zip(*answers, strict=True)
    return reduce(np.add, histograms), reduce(np.add, sums)
