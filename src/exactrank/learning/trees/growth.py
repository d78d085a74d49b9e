"""The settings of a tree that grows, what is drawn for it, and a tree that has grown as arrays of a model."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import PerQuery
from exactrank.learning.trees.bins import CATEGORY, Layout
from exactrank.models.tree_table import CATEGORICAL, MISSING_IS_NAN, MISSING_LEFT, TreeTable

PerLeaf = npt.NDArray[np.float64]
Allowed = npt.NDArray[np.uint8]  #: may each feature be used?
#: No float exceeds it: the threshold of a split of missing values from all others.
LARGEST = float(np.finfo(np.float32).max)
#: Bits of a slope and a curvature in a histogram, and the maximum number of bits of a sum over a leaf.
SLOPE_BITS, CURVATURE_BITS, SUM_BITS = 13, 11, 52


@dataclass(frozen=True)
class GrowthSettings:
    """The rules by which a tree grows; see `exactrank.rankers.boosted` for what each setting means."""

    leaves: int
    depth: int
    min_documents: int
    min_curvature: float
    l1: float
    l2: float
    min_gain: float
    max_step: float
    smoothing: float
    noise: float
    extra: bool
    features_per_node: float
    symmetric: bool
    monotone: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    candidates: int = 1  #: splits of a leaf among which one may be chosen

    def begin(self, layout: Layout, pool: _core.HistogramPool, allowed: Allowed, documents: int, units: "Units", key: int) -> _core.Growth:
        """Return a tree at its root, to be grown on ``documents`` documents with the features that are ``allowed``."""
        available = int(np.count_nonzero(allowed & layout.is_used))
        per_node = 0 if self.features_per_node == 1 else max(1, round(self.features_per_node * available))
        return _core.Growth(
            layout.native,
            pool,
            allowed,
            documents,
            units.slope,
            units.curvature,
            key,
            leaves=self.leaves,
            depth=self.depth,
            min_documents=self.min_documents,
            min_curvature=self.min_curvature,
            l1=self.l1,
            l2=self.l2,
            min_gain=self.min_gain,
            max_step=self.max_step,
            smoothing=self.smoothing,
            noise=self.noise,
            extra=self.extra,
            features_per_node=per_node,
            symmetric=self.symmetric,
            min_group=min(100, 5 * self.min_documents),
            monotone=np.array(self.monotone, np.int8),
            groups=[list(group) for group in self.groups],
            candidates=self.candidates,
        )

    def outputs(self, tree: _core.GrownTree, sums: npt.NDArray[np.int64], units: "Units") -> PerLeaf:
        """Return the output of each leaf, from its sums of slopes and curvatures in small units."""
        slope, curvature = sums.reshape(2, -1) * np.array([[units.fine_slope], [units.fine_curvature]])
        return _core.leaf_outputs(slope, curvature, tree.documents, tree.restrictions, self.l1, self.l2, self.max_step, self.smoothing)


@dataclass(frozen=True)
class Units:
    """Powers of two that forces are rounded to: coarse ones in histograms, fine ones in the sums over leaves."""

    slope: float
    curvature: float
    fine_slope: float
    fine_curvature: float

    @classmethod
    def of(cls, slope: float, curvature: float, documents: int) -> "Units":
        """Return the units for ``documents`` documents, of which the largest slope and curvature are given."""
        count_bits = documents.bit_length()
        bits = SLOPE_BITS, min(CURVATURE_BITS, 64 - 2 * count_bits), *[min(SUM_BITS, 62 - count_bits)] * 2
        exponents = [max(math.frexp(largest)[1], -900) if largest else -900 for largest in (slope, curvature)] * 2
        return cls(*(math.ldexp(1.0, exponent - bit) for exponent, bit in zip(exponents, bits, strict=True)))

    def hold(self, slope: float, curvature: float, documents: int) -> bool:
        """Return whether these units are large enough for forces of that size."""
        least = Units.of(slope, curvature, documents)
        return least.slope <= self.slope and least.curvature <= self.curvature


@dataclass(frozen=True)
class Draws:
    """Random draws for the trees of a forest: for each tree by its number, so that training that is resumed draws the same."""

    seed: int
    first: int  #: the number of the forest's first tree, among those of all forests
    query_fraction: float
    feature_fraction: float

    def place(self, number: int) -> int:
        """Return where the tree of that number stands among those of all forests."""
        return self.first + number

    def draw_queries(self, number: int, queries: int) -> npt.NDArray[np.bool_]:
        """Return a mask of the queries, of the number ``queries``, that the tree is fitted to: at least one."""
        draws = np.random.default_rng([self.seed, self.place(number)]).random(queries)
        return np.asarray(draws < max(self.query_fraction, np.nextafter(draws.min(), 1.0)))

    def query_weights(self, number: int, weights: PerQuery) -> PerQuery:
        """Return the ``weights`` of the queries that the tree is fitted to, and 0 for others."""
        return weights if self.query_fraction == 1 else np.where(self.draw_queries(number, len(weights)), weights, 0.0)

    def features(self, number: int, layout: Layout) -> tuple[Allowed, int]:
        """Return a mask of the features that the tree may use, and a number that its further draws depend on."""
        rng = np.random.default_rng([self.seed, self.place(number), 1])
        key, order = int(rng.integers(2**63)), rng.random(len(layout.kinds))
        useful = np.flatnonzero(layout.is_used)
        count = max(1, round(self.feature_fraction * len(useful)))
        allowed = np.zeros(len(layout.kinds), np.uint8)
        allowed[useful[np.argsort(order[useful], kind="stable")[:count]]] = 1
        return allowed, key


@dataclass(eq=False)
class WeightedTree:
    """A tree that has grown; ``values`` are the outputs of its leaves times ``weight``."""

    tree: _core.GrownTree
    values: PerLeaf
    weight: float


def tree_table(grown: Sequence[WeightedTree], layout: Layout) -> TreeTable:
    """Return trees that have grown, at least one, as the table of a model."""
    trees = [member.tree for member in grown]
    feature, bins, missing_left, left, right, gain, documents = (
        np.concatenate([getattr(tree, name) for tree in trees])
        for name in ("feature", "bin", "missing_left", "left", "right", "gain", "documents")
    )
    is_category = layout.kinds[feature] == CATEGORY
    cuts = np.append(layout.cuts, LARGEST)
    threshold = cuts[np.where(bins < np.diff(layout.start)[feature], layout.start[feature] + bins, len(layout.cuts))]
    decision = np.where(is_category, CATEGORICAL, MISSING_IS_NAN | np.where(missing_left, MISSING_LEFT, 0))
    sets = [bits for tree in trees for bits in _category_sets(tree, layout)]
    threshold[is_category] = np.arange(len(sets))
    return TreeTable(
        len(layout.kinds),
        start=np.cumsum([0, *(len(tree.feature) for tree in trees)]),
        feature=feature,
        threshold=threshold,
        decision=decision,
        left=left,
        right=right,
        gain=np.minimum(gain, LARGEST).astype(np.float32),
        leaf_value=np.concatenate([member.values for member in grown]),
        set_start=np.cumsum([0, *map(len, sets)]),
        sets=np.concatenate(sets) if sets else np.empty(0, np.uint32),
        shrinkage=np.array([member.weight for member in grown]),
        cover=documents.astype(np.float64),
    )


def _category_sets(tree: _core.GrownTree, layout: Layout) -> Iterator[npt.NDArray[np.uint32]]:
    """Yield the categories on the left of each categorical split, as bits by their own numbers instead of those of their bins."""
    for split in np.flatnonzero(layout.kinds[tree.feature] == CATEGORY):
        bits = tree.categories[tree.category_start[split] : tree.category_start[split + 1]]
        bins = np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little"))
        categories = layout.cuts[layout.start[tree.feature[split]] + bins].astype(np.int64)
        words = np.zeros(int(categories.max()) // 32 + 1, np.uint32)
        np.bitwise_or.at(words, categories // 32, np.left_shift(np.uint32(1), (categories % 32).astype(np.uint32)))
        yield words
