"""A growing ensemble of LightGBM trees, each fitted to forces on the documents' scores and given a weight afterwards.

LightGBM grows the trees and keeps the sum of their outputs for every row; through its public API the forces go in as a custom
objective, and the sums come back through a metric. A tree's output on a row is the difference of two such sums, and to the bit the
value of one of its leaves. Its weight goes into the values of the leaves, so that the result is a plain LightGBM model:

    s <- s + weight * output                                                                                    (1)
"""

import re
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import lightgbm as lgb
import numpy as np
import numpy.typing as npt

from exactrank.arrays import PerDocument
from exactrank.data.ranking_data import RankingData
from exactrank.scorers.tree_ensemble import TreeEnsemble
from exactrank.scorers.tree_text import first_trees, joined, scaled

#: Of training and, where there is any, validation data.
PerSet = tuple[PerDocument, ...]
PerLeaf = npt.NDArray[np.float64]

_OURS = {
    "objective": "none",
    "metric": "none",
    "boost_from_average": False,
    "deterministic": True,
    "force_col_wise": True,
    "feature_pre_filter": False,
    "verbose": -1,
}
#: With fewer, waiting for each other takes threads longer than the work.
CELLS_PER_THREAD = 1_000_000
#: Added to a score, this times a slope changes no bit of it.
SPECK = 1e-30
#: Leaves whose values are nearer than this are told apart by the features.
LIKE = 1e-9
_WRITABLE = re.compile(r"[\w.-]+", re.ASCII)


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree that has grown: ``values`` of its leaves, and LightGBM's sums of outputs without it and with it."""

    values: PerLeaf
    without: PerSet
    sums: PerSet
    walked: Callable[[], PerSet]  #: the outputs by way of the features, where values are too much alike

    @cached_property
    def outputs(self) -> PerSet:
        """What it says of each document: of its leaves' values the one next to what the sum rose by."""
        values = np.sort(self.values)
        if np.any(np.diff(values) < LIKE * (1 + np.abs(self.sums[0]).max())):
            return self.walked()
        between = (values[1:] + values[:-1]) / 2
        return tuple(values[np.searchsorted(between, after - before)] for before, after in zip(self.without, self.sums, strict=True))


class Forest:
    """Trees for the documents of ``data`` and, with the same bins, of ``valid``, after those of ``start``; ``settings`` are LightGBM's."""

    def __init__(
        self,
        data: RankingData,
        valid: RankingData | None,
        settings: Mapping[str, Any],
        categorical: Sequence[int] = (),
        start: TreeEnsemble | None = None,
        threads: int = 1,
    ) -> None:
        self._start = start
        self._data = (data,) if valid is None else (data, valid)
        self._threads = threads
        self._begun: PerSet = tuple(np.zeros(each.n_documents) if start is None else start.score(each.X, threads) for each in self._data)
        self._settings = _OURS | dict(settings) | {"num_threads": min(threads, 1 + data.X.size // CELLS_PER_THREAD)}
        names, kinds = _names(data.feature_names), list(categorical)
        train = lgb.Dataset(data.X, init_score=self._begun[0], params=self._settings, feature_name=names, categorical_feature=kinds)
        held_out = [] if valid is None else [lgb.Dataset(valid.X, reference=train, init_score=self._begun[1], params=self._settings)]
        self._binned = [train, *held_out]
        self._begin()

    def _begin(self) -> None:
        #: The scores of the documents with all trees that were added.
        self.scores = self._sums = self._begun
        #: Of each tree.
        self.weights: list[float] = [] if self._start is None else self._start.shrinkage.tolist()
        self._booster = lgb.Booster(self._settings, self._binned[0])
        for held_out in self._binned[1:]:
            self._booster.add_valid(held_out, "valid")

    def anew(self) -> "Forest":
        """As it was at first, on the same bins."""
        forest = copy(self)
        forest._begin()
        return forest

    @property
    def n_trees(self) -> int:
        """How many there are."""
        return (0 if self._start is None else self._start.n_trees) + int(self._booster.current_iteration())

    def grow(self, slope: PerDocument, curvature: PerDocument, settings: Mapping[str, Any] | None = None) -> Tree | None:
        """A tree that follows ``slope``; None where no split is possible. ``settings`` hold from now on."""
        if settings:
            self._past_the_first(slope, curvature)
            self._booster.reset_parameter(dict(settings))
        if self._booster.update(fobj=lambda scores, data: (-slope, curvature)):
            return None
        without, self._sums = self._sums, self._handed_back()
        return Tree(self._values(), without, self._sums, self._walked)

    def add(self, tree: Tree, weight: float = 1.0) -> None:
        """Take the tree that has grown last in with a weight, (1)."""
        self.weights.append(weight)
        if self.scores is tree.without and weight == 1:
            self.scores = tree.sums
            return
        self.scores = tuple(scores + weight * output for scores, output in zip(self.scores, tree.outputs, strict=True))

    def text(self, trees: int) -> str:
        """The model of the first ``trees``."""
        before = 0 if self._start is None else self._start.n_trees
        if self._start is not None and trees <= before:
            return first_trees(self._start.text, trees)
        grown = str(self._booster.model_to_string(num_iteration=trees - before))
        own = self.weights[before:trees]
        text = grown if all(weight == 1 for weight in own) else scaled(grown, own)
        return text if self._start is None else joined(self._start.text, text)

    def _past_the_first(self, slope: PerDocument, curvature: PerDocument) -> None:
        """LightGBM draws features for its first tree otherwise than later: of trees taken up again none is the first.

        So one is grown and taken back, of slopes so small that no sum is rounded.
        """
        if self._start is not None and self._booster.current_iteration() == 0:
            self._booster.update(fobj=lambda scores, data: (-SPECK * slope, curvature))
            self._booster.rollback_one_iter()

    def _values(self) -> PerLeaf:
        """Of the leaves of the last tree; its text has them to the bit."""
        line = re.search("^leaf_value=(.*)$", self._last_tree(), re.MULTILINE)
        return np.array(line[1].split() if line else [], np.float64)

    def _walked(self) -> PerSet:
        """What the last tree says of each document, by its features."""
        last = TreeEnsemble(self._last_tree())
        return tuple(last.score(each.X, self._threads) for each in self._data)

    def _last_tree(self) -> str:
        """As a model of its own."""
        return str(self._booster.model_to_string(num_iteration=1, start_iteration=self._booster.current_iteration() - 1))

    def _handed_back(self) -> PerSet:
        """The sums of all trees' outputs, by LightGBM's own account."""
        found: list[PerDocument] = []

        def taken(scores: PerDocument, data: lgb.Dataset) -> tuple[str, float, bool]:
            found.append(np.array(scores))
            return "", 0.0, True

        self._booster.eval_train(feval=taken)
        if len(self.scores) > 1:
            self._booster.eval_valid(feval=taken)
        return tuple(found)


def _names(names: tuple[str, ...]) -> list[str] | Literal["auto"]:
    """The features' names where LightGBM can write them all; it numbers them otherwise."""
    return list(names) if all(_WRITABLE.fullmatch(name) for name in names) else "auto"
