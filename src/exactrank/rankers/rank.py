"""One rank of a forest that grows on several machines: some whole queries, and LightGBM with what all ranks share.

All ranks grow the same trees, each from histograms of its own documents that are added up (`exactrank.rankers.peers`). Whatever could
differ between them, or from a single machine, is the same by construction:

- bins are those of one sample of rows, the one that LightGBM draws on a single machine; ranks send each other their rows of it;
- the objective is asked for whole queries, by their numbers among all;
- draws are those of the tree's number, for all queries, of which a rank takes its own;
- forces are rounded so that their sums are exact, by the largest of all ranks (`exactrank.objectives.exact_sums`);
- steps are searched on the queries of all ranks (`exactrank.rankers.search_by_ranks`).

So the model has the same bits for any number of ranks from two on, and any cut. A single machine grows the same trees, unless
``min_documents`` decides a split: LightGBM estimates the number of documents in a leaf by its curvature, and on a single machine it knows
the number in the leaf that is split, which ranks estimate too.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import lightgbm as lgb
import numpy as np
import numpy.typing as npt

from exactrank.arrays import Matrix, PerDocument, PerQuery
from exactrank.measures.base import Measure
from exactrank.measures.bound import values_of
from exactrank.objectives.bounded_gain import gentle
from exactrank.objectives.score_space import Numbered, Objective
from exactrank.rankers.forces import Draws, Searches, Weigher, bound_by_tree, forces
from exactrank.rankers.forest import FIXED, Bins, Forest, Trees
from exactrank.rankers.lightgbm_library import sampled_rows
from exactrank.rankers.peers import Peers
from exactrank.rankers.search_by_ranks import SearchesByRanks, Share
from exactrank.scorers.lightgbm_text import writable
from exactrank.scorers.tree_table import TreeTable
from exactrank.training.judge import severe

Values = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Plan:
    """What all ranks are told: how trees are grown, and what each must know of the whole."""

    settings: Mapping[str, Any]  #: LightGBM's
    categorical: Sequence[int]
    feature_names: tuple[str, ...]
    objective: Objective
    measure: Measure
    draws: Draws
    documents: int
    weights: PerQuery  #: of all queries
    #: What says the weights of trees by line searches and the weights of all queries; None where all weigh 1.
    weigher: Callable[[PerQuery, Searches], Weigher | None]
    limit: float = 600.0  #: seconds of the longest wait for another rank


@dataclass(frozen=True, eq=False)
class Grown:
    """What a batch of trees came to on one rank."""

    table: TreeTable | None  #: these trees; from rank 0 alone
    weights: tuple[float, ...]  #: of each
    values: Values  #: the measure, trees x (as asked, as it selects) x queries
    ended: bool  #: is no further split possible?
    sent: int  #: bytes that the rank has sent to others for them
    worked: float  #: seconds of the processor's work, of one thread; the rest of the time the rank has waited for others


class RankBins(Bins):
    """The bins of a rank's documents, which are those of the shared sample; LightGBM's sums are over all ranks."""

    def __init__(self, plan: Plan, peers: Peers, share: Share, threads: int) -> None:
        self.features: tuple[Matrix, ...] = (share.data.X,)
        self.threads, self._peers, self._documents = threads, peers, plan.documents
        given = FIXED | dict(plan.settings) | {"num_threads": threads}
        names: Any = list(plan.feature_names) if writable(plan.feature_names) else "auto"
        sample = _shared_sample(plan, peers, share)
        reference = lgb.Dataset(sample, params=given, feature_name=names, categorical_feature=list(plan.categorical)).construct()
        alone = {} if peers.count == 1 else {"tree_learner": "data", "num_machines": peers.count, "pre_partition": True}
        self._settings = given | alone
        self._sets = [lgb.Dataset(share.data.X, reference=reference, params=given)]

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """LightGBM sums over all ranks; one that was lost on the way is an error."""
        with self._peers.connected():
            yield
        self._peers.check()

    def largest(self, *forces: PerDocument) -> list[float]:
        """Over all ranks."""
        return self._peers.largest(*super().largest(*forces))

    @property
    def documents(self) -> int:
        """Of all ranks."""
        return self._documents


def _shared_sample(plan: Plan, peers: Peers, share: Share) -> Matrix:
    """The rows that LightGBM would make bins of on a single machine, from all ranks."""
    drawn = sampled_rows(FIXED | dict(plan.settings), plan.documents)
    _, ours, places = np.intersect1d(share.documents, drawn, assume_unique=True, return_indices=True)
    sample = np.empty((len(drawn), len(plan.feature_names)), np.float32)
    there = peers.collected(places.astype(np.int64))
    for place, X in zip(there, peers.gathered(share.data.X[ours], [len(place) for place in there]), strict=True):
        sample[place] = X.reshape(len(place), -1)
    return sample


class Rank:
    """A rank at work on its ``share`` of the data, after the trees of ``start``."""

    def __init__(self, plan: Plan, peers: Peers, share: Share, start: TreeTable | None, threads: int) -> None:
        self._plan, self._peers, self._queries, self._data = plan, peers, share.queries, share.data
        asked = plan.measure.on(share.data, threads=threads)
        self._measures = asked, gentle(asked.with_ties(severe(plan.measure).ties))
        self._bins = RankBins(plan, peers, share, threads)
        self._trees = (Trees() if start is None else Trees.of(start)).rooted(self._bins)
        numbers = int(share.queries[0]), int(share.documents[0])
        objective = plan.objective.counted_from(*numbers) if isinstance(plan.objective, Numbered) else plan.objective
        self._objective = bound_by_tree(objective, share.data)
        self._weigh = plan.weigher(plan.weights, SearchesByRanks(plan.measure, share, peers, threads))

    def grow(self, count: int) -> Grown:
        """Up to ``count`` trees more; with 0 what there is to say of those that are there."""
        before, sent, begun = self._trees.count, self._peers.sent, time.thread_time()
        values = [] if count else [self.values()]
        while self._trees.count < before + count and self._grow_one():
            values.append(self.values())
        weights = self._trees.weights[before:]
        table = None if self._peers.rank else self._table(len(weights))
        found = np.array(values).reshape(len(values), 2, len(self._queries))
        return Grown(table, weights, found, len(weights) < count, self._peers.sent - sent, time.thread_time() - begun)

    def _table(self, count: int) -> TreeTable | None:
        """The last ``count`` trees."""
        forest = self._trees.forest
        if not count or not isinstance(forest, Forest):
            return None
        return forest.table_of(forest.own - count, count).scaled(self._trees.weights[-count:])

    def _grow_one(self) -> bool:
        """A tree more; False where no split is possible."""
        trees, draws = self._trees, self._plan.draws
        seen, bound = draws.seen(trees.count, self._plan.weights), self._objective(draws.place(trees.count))
        tree = trees.grow(*forces(bound, trees.kept[0], self._data, seen[self._queries], self._bins), draws.seeds(trees.count))
        if tree is not None:
            self._trees = trees.plus(tree, 1.0 if self._weigh is None else self._weigh(trees, tree.outputs[0], seen))
        return tree is not None

    def values(self) -> Values:
        """The measure on the queries of this rank."""
        return values_of(self._measures, self._trees.kept[0])[0]
