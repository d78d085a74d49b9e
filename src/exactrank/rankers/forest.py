"""A growing ensemble of LightGBM trees, each fitted to forces on the documents' scores and given a weight afterwards.

LightGBM grows the trees and keeps the sum of their outputs for every row; the forces go in, and the sums come back. A tree's output on a
row is the difference of two such sums, and to the bit the value of one of its leaves. Its weight goes into the values of the leaves, so
that the result is a plain LightGBM model:

    s <- s + weight * output                                                                                    (1)

Forces are rounded so that their sums are exact (`exactrank.objectives.exact_sums`): no tree depends on the order in which documents are
added up, on threads, or on which machine holds which of them.

A `Forest` is LightGBM at work, and changes. `Trees` are a value: the first trees of a forest, which stay what they are while more grow.
"""

import operator
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import lightgbm as lgb
import numpy as np
import numpy.typing as npt

from exactrank.arrays import Matrix, PerDocument
from exactrank.data.ranking_data import RankingData
from exactrank.objectives.exact_sums import rounded
from exactrank.rankers.lightgbm_library import Forces, binned, sums, updated
from exactrank.scorers.lightgbm_text import read_lightgbm
from exactrank.scorers.tree_ensemble import TreeEnsemble
from exactrank.scorers.tree_record import read_trees, tree_records
from exactrank.scorers.tree_table import TreeTable
from exactrank.stored import storable

#: Of training and, where there is any, validation data.
PerSet = tuple[PerDocument, ...]
PerLeaf = npt.NDArray[np.float64]

#: LightGBM's settings that are always the same.
FIXED = {
    "objective": "none",
    "metric": "none",
    "boost_from_average": False,
    "deterministic": True,
    "force_col_wise": True,
    "feature_pre_filter": False,
    "verbose": -1,
}
#: That many forces are rounded at a time.
BLOCK = 1 << 16
#: With fewer, waiting for each other takes threads longer than the work.
CELLS_PER_THREAD = 1_000_000
#: Added to a score, this times a slope changes no bit of it.
SPECK = 1e-30
#: Leaves whose values are nearer than this are told apart by the features.
LIKE = 1e-9


def narrowed(slope: PerDocument, curvature: PerDocument, largest: Sequence[float], count: int) -> tuple[Forces, Forces]:
    """Both as LightGBM takes them, rounded; in the memory of ``slope``, of which each of them needs a half."""
    halves = slope.view(np.float32).reshape(2, -1)
    for forces, most, found in zip((slope, curvature), largest, halves, strict=True):
        for first in range(0, len(forces), BLOCK):
            found[first : first + BLOCK] = rounded(forces[first : first + BLOCK], most, count)
    return halves[0], halves[1]


@dataclass(frozen=True, eq=False)
class Outputs:
    """What a tree says of each document: the value of its leaf, by the leaf's number, which takes a byte or two."""

    values: PerLeaf
    leaf: npt.NDArray[np.unsignedinteger[Any]]

    @classmethod
    def nearest(cls, values: PerLeaf, found: PerDocument, before: PerDocument | float = 0.0) -> "Outputs":
        """Of these ``values``, which rise, the one next to ``found`` less ``before``."""
        between, leaf = (values[1:] + values[:-1]) / 2, np.empty(len(found), np.min_scalar_type(len(values)))
        for first in range(0, len(found), BLOCK):
            some = slice(first, first + BLOCK)
            leaf[some] = np.searchsorted(between, found[some] - (before if isinstance(before, float) else before[some]))
        return cls(values, leaf)

    def __len__(self) -> int:
        return len(self.leaf)

    def __getitem__(self, some: slice | npt.NDArray[np.bool_]) -> PerDocument:
        """Of some documents."""
        found: PerDocument = self.values[self.leaf[some]]
        return found


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree that has grown, the last of its forest, and LightGBM's sums of outputs without it, until its own are known."""

    forest: "Forest"
    number: int  #: among those that grew in the forest
    without: PerSet

    @cached_property
    def table(self) -> TreeTable:
        """The tree alone."""
        return self.forest.table_of(self.number)

    @property
    def values(self) -> PerLeaf:
        """Those of its leaves, to the bit."""
        return self.table.leaf_value

    @cached_property
    def outputs(self) -> tuple[Outputs, ...]:
        """What it says of each document: of its leaves' values the one next to what the sum rose by."""
        values, sums = np.sort(self.values), self.forest.sums
        if np.any(np.diff(values) < LIKE * (1 + max(sums[0].max(), -sums[0].min()))):
            alone = TreeEnsemble(self.table)  # by way of the features
            found = tuple(Outputs.nearest(values, alone.score(X, self.forest.bins.threads)) for X in self.forest.bins.features)
        else:
            found = tuple(Outputs.nearest(values, after, before) for before, after in zip(self.without, sums, strict=True))
        object.__setattr__(self, "without", ())
        return found


class Grove(Protocol):
    """Where trees grow: a `Forest` in this process, or one on several machines (`exactrank.rankers.cluster_forest`)."""

    def table(self, weights: Sequence[float]) -> TreeTable:
        """The first trees, which have ``weights``."""


@storable
@dataclass(frozen=True, eq=False)
class Trees:
    """The first trees of a forest, or trees that were read: then there is only their table. It is the iterate of tree rankers."""

    weights: tuple[float, ...] = ()  #: of each tree
    kept: PerSet = ()  #: the scores of the forest's documents, while these are its last trees
    are_sums: bool = True  #: are these LightGBM's own sums, of trees that all weigh 1?
    forest: Grove | None = None  #: where they grew
    read: TreeTable | None = None  #: those that were read

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.weights)

    @property
    def table(self) -> TreeTable:
        """The trees in arrays."""
        if self.forest is not None:
            return self.forest.table(self.weights)
        if self.read is None:
            raise TypeError("there are no trees")
        return self.read

    def scores(self, data: RankingData, threads: int | None = None) -> PerDocument:
        """The score of each document, kept from tree to tree where it is one of the forest's."""
        if isinstance(self.forest, Forest) and self.kept:
            for X, scores in zip(self.forest.bins.features, self.kept, strict=True):
                if X is data.X:
                    return scores
        return TreeEnsemble(self.table).score(data.X, threads)

    @classmethod
    def of(cls, table: TreeTable) -> "Trees":
        """Those of a model; each weight is what LightGBM calls shrinkage, which has all its digits."""
        return cls(tuple(table.shrinkage.tolist()), read=table)

    def rooted(self, bins: "Bins") -> "Trees":
        """The same in a forest that can go on from them."""
        if isinstance(self.forest, Forest) and self.forest.n_trees == self.count:
            return self
        forest = Forest(bins, TreeEnsemble(self.table) if self.weights else None)
        return replace(self, kept=forest.sums, are_sums=True, forest=forest)

    def grow(self, slope: Forces, curvature: Forces, settings: Mapping[str, Any] | None = None) -> Tree | None:
        """A tree of their forest that follows ``slope``; None where no split is possible. ``settings`` hold from now on."""
        if not isinstance(self.forest, Forest):
            raise TypeError("these trees are in no forest of this process")
        without = self.kept if self.are_sums else self.forest.sums
        number = self.forest.grow(slope, curvature, settings)
        return None if number is None else Tree(self.forest, number, without)

    def plus(self, tree: Tree, weight: float = 1.0) -> "Trees":
        """With the tree that has grown last, (1); the scores that are kept become those of the result."""
        are_sums = self.are_sums and weight == 1
        kept = tree.forest.sums if are_sums else self.kept
        object.__setattr__(self, "kept", ())
        for scores, output in () if are_sums else zip(kept, tree.outputs, strict=True):
            for first in range(0, len(scores), BLOCK):
                some = slice(first, first + BLOCK)
                scores[some] += weight * output[some]
        return replace(self, weights=(*self.weights, weight), kept=kept, are_sums=are_sums)

    def to_record(self) -> dict[str, Any]:
        """The trees as in a model file; nothing where there are none."""
        if self.forest is None and self.read is None:
            return {}
        return {"features": self.table.n_features, "trees": tree_records(self.table)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], where: str) -> "Trees":
        """The trees that `to_record` described."""
        if not record:
            return cls()
        if "lightgbm" in record:  # of version 1
            return cls.of(read_lightgbm("\n".join(record["lightgbm"]))[0])
        return cls.of(read_trees(record["trees"], record["features"]))


class Bins:
    """The features of training and validation data, in LightGBM's bins; ``settings`` are LightGBM's. Several forests may use them."""

    def __init__(
        self, data: RankingData, valid: RankingData | None, settings: Mapping[str, Any], categorical: Sequence[int] = (), threads: int = 1
    ) -> None:
        self.features: tuple[Matrix, ...] = (data.X,) if valid is None else (data.X, valid.X)
        self.threads = threads
        self._settings = FIXED | dict(settings) | {"num_threads": min(threads, 1 + data.X.size // CELLS_PER_THREAD)}
        train = binned(data.X, self._settings, data.feature_names, categorical)
        self._sets = [train, *(lgb.Dataset(X, reference=train, params=self._settings) for X in self.features[1:])]

    def hold(self, data: RankingData, valid: RankingData | None) -> bool:
        """Are they of the documents of ``data`` and ``valid``?"""
        wanted = [part.X for part in (data, valid) if part is not None]
        return len(wanted) == len(self.features) and all(map(operator.is_, wanted, self.features))

    def at_work(self) -> AbstractContextManager[None]:
        """LightGBM is asked to grow only within this."""
        return nullcontext()

    def largest(self, *forces: PerDocument) -> list[float]:
        """The size of the largest of each of ``forces``, over all documents that trees are grown on."""
        return [float(max(each.max(), -each.min())) for each in forces]

    @property
    def documents(self) -> int:
        """How many documents trees are grown on."""
        return len(self.features[0])

    def booster(self, start: PerSet | None) -> lgb.Booster:
        """LightGBM without a tree, at the scores ``start``, or at 0."""
        for number, data in enumerate(self._sets):
            data.construct().set_field("init_score", None if start is None else start[number])
        with self.at_work():
            booster = lgb.Booster(self._settings, self._sets[0])
        for held_out in self._sets[1:]:
            booster.add_valid(held_out, "valid")
        return booster


class Forest:
    """Trees for the documents in ``bins``, after those of ``start``."""

    def __init__(self, bins: Bins, start: TreeEnsemble | None = None) -> None:
        self.bins = bins
        self._start, self._before = start, 0 if start is None else start.n_trees
        self._booster = bins.booster(None if start is None else tuple(start.score(X, bins.threads) for X in bins.features))
        self._begun = False

    @property
    def sums(self) -> PerSet:
        """LightGBM's sums of outputs, in arrays of their own."""
        return tuple(sums(self._booster, number, len(X)) for number, X in enumerate(self.bins.features))

    @property
    def n_trees(self) -> int:
        """How many there are."""
        return self._before + self.own

    @property
    def own(self) -> int:
        """How many grew here."""
        return int(self._booster.current_iteration())

    def grow(self, slope: Forces, curvature: Forces, settings: Mapping[str, Any] | None = None) -> int | None:
        """The number of a new tree that follows ``slope``; None where no split is possible. ``settings`` hold from now on."""
        if settings:
            if self._start is not None and self.own == 0:
                # LightGBM draws features for its first tree otherwise than later: of trees taken up again none is the first. So one is
                # grown and taken back, of slopes so small that no sum is rounded.
                self._update(np.float32(SPECK) * slope, curvature)
                self._booster.rollback_one_iter()
            self._booster.reset_parameter(dict(settings))
        return None if self._update(slope, curvature) else self.own - 1

    def _update(self, slope: Forces, curvature: Forces) -> bool:
        """Grow a tree; was none possible?"""
        with self.bins.at_work():
            if not self._begun:  # LightGBM draws features after each change of a parameter, and its own package makes this one here
                self._booster.reset_parameter({"objective": "none"})
            self._begun = True
            return updated(self._booster, slope, curvature)

    def table_of(self, number: int, count: int = 1) -> TreeTable:
        """That tree alone, of those that grew here, or ``count`` from it on."""
        return read_lightgbm(str(self._booster.model_to_string(num_iteration=count, start_iteration=number)))[0]

    def table(self, weights: Sequence[float]) -> TreeTable:
        """The first trees, which have ``weights``."""
        if self._start is not None and len(weights) <= self._before:
            return self._start.table.first(len(weights))
        grown_weights = weights[self._before :]
        grown = self.table_of(0, len(grown_weights))  # without weights what LightGBM has where no split is possible
        grown = grown if all(weight == 1 for weight in grown_weights) else grown.scaled(grown_weights)
        return grown if self._start is None else self._start.table.joined(grown)
