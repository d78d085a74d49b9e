"""One rank of a forest that grows on several machines: some whole queries, and LightGBM with what all ranks share.

All ranks grow the same trees, each from histograms of its own documents that are added up (`exactrank.rankers.peers`). Whatever could
differ between them, or from a single machine, is the same by construction:

- bins are those of one sample of rows, the one that LightGBM draws on a single machine; ranks send each other their rows of it;
- the objective is asked for whole queries, and knows of the others what it must: the largest grade;
- draws are those of the tree's number, for all queries, of which a rank takes its own;
- forces are rounded so that their sums are exact, by the largest of all ranks (`exactrank.rankers.forest`, (2)).

So the model has the same bits for any number of ranks from two on, and any cut. A single machine grows the same trees, unless
``min_documents`` decides a split: LightGBM estimates the number of documents in a leaf by its curvature, and on a single machine it knows
the number in the leaf that is split, which ranks estimate too.
"""

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

import lightgbm as lgb
import numpy as np
import numpy.typing as npt

from exactrank.arrays import Matrix, PerDocument, PerQuery
from exactrank.data.ranking_data import RankingData
from exactrank.measures.base import Measure
from exactrank.measures.bound import values_of
from exactrank.objectives.bounded_gain import gentle
from exactrank.objectives.score_space import Objective
from exactrank.rankers.forces import Draws, Weigher, forces
from exactrank.rankers.forest import FIXED, Bins, Forest, Tree, Trees
from exactrank.rankers.peers import Peers
from exactrank.scorers.tree_ensemble import TreeEnsemble
from exactrank.scorers.tree_text import for_ranking, scaled, writable
from exactrank.training.judge import Task, severe

Values = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]


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
    largest_grade: float
    #: What says the weights of trees by the scores of all documents; None where all weigh 1.
    weigher: Callable[[Task], Weigher | None] | None = None
    limit: float = 600.0  #: seconds of the longest wait for another rank


@dataclass(frozen=True, eq=False)
class Share:
    """Some queries of the whole, with their numbers there and those of their documents."""

    data: RankingData
    queries: Numbers
    documents: Numbers


@dataclass(frozen=True, eq=False)
class Grown:
    """What a batch of trees came to on one rank."""

    text: str  #: of these trees, as a model of its own; from rank 0 alone
    weights: tuple[float, ...]  #: of each
    values: Values  #: the measure, trees x (as asked, as it selects) x queries
    ended: bool  #: is no further split possible?
    sent: int  #: bytes that the rank has sent to others for them


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


def sampled_rows(settings: Mapping[str, Any], documents: int) -> npt.NDArray[np.int32]:
    """The rows, by number, from which LightGBM would make its bins."""
    text = lgb.basic._c_str(lgb.basic._param_dict_to_str(dict(settings)))
    count, library = ctypes.c_int32(0), cast(Any, lgb.basic._LIB)  # type: ignore[attr-defined]
    lgb.basic._safe_call(library.LGBM_GetSampleCount(ctypes.c_int32(documents), text, ctypes.byref(count)))
    drawn = np.empty(count.value, np.int32)
    lgb.basic._safe_call(
        library.LGBM_SampleIndices(ctypes.c_int32(documents), text, ctypes.c_void_p(drawn.ctypes.data), ctypes.byref(count))
    )
    return drawn[: count.value]


def _shared_sample(plan: Plan, peers: Peers, share: Share) -> Matrix:
    """The rows that LightGBM would make bins of on a single machine, from all ranks."""
    drawn = sampled_rows(FIXED | dict(plan.settings), plan.documents)
    _, ours, places = np.intersect1d(share.documents, drawn, assume_unique=True, return_indices=True)
    sample = np.empty((len(drawn), len(plan.feature_names)), np.float32)
    sizes = [int(size) for size in np.sum(peers.gathered(np.eye(1, peers.count, peers.rank)[0] * len(ours)), axis=0)]
    there = peers.gathered(places.astype(np.int64), sizes)
    rows = peers.gathered(share.data.X[ours], sizes)
    for place, X in zip(there, rows, strict=True):
        sample[place] = X.reshape(len(place), -1)
    return sample


def _judged(data: RankingData, largest_grade: float) -> RankingData:
    """The queries without features, and after them one document of the largest grade of all, whose query weighs nothing.

    Bounds on gains go by that grade (`exactrank.objectives.bounded_gain`).
    """
    return RankingData(
        X=np.empty((data.n_documents + 1, 0), np.float32),
        y=np.append(data.y, largest_grade),
        indptr=np.append(data.indptr, data.n_documents + 1),
        qid=np.arange(data.n_queries + 1),
        feature_names=(),
        sample_weight=None if data.sample_weight is None else np.append(data.sample_weight, 1.0),
    )


class Rank:
    """A rank at work on its ``share`` of the data, after the trees of ``start``."""

    def __init__(self, plan: Plan, peers: Peers, share: Share, start: str, threads: int) -> None:
        self._plan, self._peers, self._queries = plan, peers, share.queries
        self._judged = _judged(share.data, plan.largest_grade)
        asked = plan.measure.on(self._judged, threads=threads)
        self._measures = asked, gentle(asked.with_ties(severe(plan.measure).ties))
        self._bins = RankBins(plan, peers, share, threads)
        self._trees = (Trees.of(TreeEnsemble(start)) if start else Trees()).rooted(self._bins)
        self._objective = plan.objective.on(self._judged)
        self._weigh = None if plan.weigher is None else plan.weigher(Task(plan.measure, self._whole(), threads=threads))

    def grow(self, count: int) -> Grown:
        """Up to ``count`` trees more; with 0 what there is to say of those that are there."""
        before, sent, values = self._trees.count, self._peers.sent, [] if count else [self.values()]
        while self._trees.count < before + count and self._grow_one():
            values.append(self.values())
        weights = self._trees.weights[before:]
        found = np.array(values).reshape(len(values), 2, len(self._queries))
        return Grown("" if self._peers.rank else self._text(len(weights)), weights, found, len(weights) < count, self._peers.sent - sent)

    def _text(self, count: int) -> str:
        """The last ``count`` trees, as a model of their own."""
        forest = self._trees.forest
        if not count or not isinstance(forest, Forest):
            return ""
        text = for_ranking(forest.text_of(forest.own - count, count))
        weights = self._trees.weights[-count:]
        return text if all(weight == 1 for weight in weights) else scaled(text, weights)

    def _grow_one(self) -> bool:
        """A tree more; False where no split is possible."""
        trees, draws, data = self._trees, self._plan.draws, self._judged
        of_all = draws.seen(trees.count, self._plan.weights)
        seen = np.append(of_all[self._queries], 0.0)
        slope, curvature = forces(self._objective, np.append(trees.kept[0], 0.0), data, seen, self._bins)
        tree = trees.grow(slope[:-1], curvature[:-1], draws.seeds(trees.count))
        if tree is not None:
            self._trees = trees.plus(tree, 1.0 if self._weigh is None else self._weight(self._weigh, tree, of_all))
        return tree is not None

    def _weight(self, weigh: Weigher, tree: Tree, seen: PerQuery) -> float:
        """What ``tree`` weighs by the scores of all documents, which ranks send each other."""
        scores, outputs = (np.concatenate(self._peers.gathered(each, self._sizes)) for each in (self._trees.kept[0], tree.outputs[0]))
        return weigh(replace(self._trees, kept=(scores,)), outputs, seen)

    def _whole(self) -> RankingData:
        """All queries without features."""
        data = self._judged
        own = data.sizes[:-1].astype(np.int64)
        counts = [int(each[0]) for each in self._peers.gathered(np.array([len(own)]))]
        self._sizes = [int(each[0]) for each in self._peers.gathered(np.array([own.sum()]))]
        sizes = np.concatenate(self._peers.gathered(own, counts))
        grades = np.concatenate(self._peers.gathered(data.y[:-1], self._sizes))
        nothing = np.empty((len(grades), 0), np.float32)
        found = RankingData.from_arrays(nothing, grades, group=sizes, feature_names=())
        return replace(found, query_weight=self._plan.weights)

    def values(self) -> Values:
        """The measure on the queries of this rank."""
        return values_of(self._measures, np.append(self._trees.kept[0], 0.0))[0][:, :-1]
