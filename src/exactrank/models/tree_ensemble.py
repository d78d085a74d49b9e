"""Ensembles of regression trees.

    s(x) = sum over the trees of the value of the leaf that x falls into                                         (1)

The trees are plain arrays (`TreeTable`). Their thresholds refer to whole features, even if features are stored as differences from an
offset. Unless a policy fills missing values, a split sends them to the side that was better in training.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import Matrix, PerDocument
from exactrank._support.json_values import JSONObject, JSONValue
from exactrank._support.serialize import storable
from exactrank._support.threads import thread_count
from exactrank.data.levels import Levels, check_levels
from exactrank.data.precision import Offset
from exactrank.errors import DataError
from exactrank.models.base import Scorer, read_common
from exactrank.models.lightgbm_text import read_lightgbm
from exactrank.models.missing import PerFeature, TreeMissing
from exactrank.models.tree_record import read_trees, tree_records
from exactrank.models.tree_table import PerTree, TreeTable

MOST_UNNAMED = 1 << 20  #: features without names that a file may declare


@storable
@dataclass(frozen=True, eq=False, repr=False)
class TreeEnsemble(Scorer):
    """The scorer (1) of the trees in ``table``; with ``feature_names=()`` features are known by position.

    ``missing`` says how NaN is treated: ``"keep"`` leaves it to the trees, otherwise as in [`Linear`][exactrank.models.Linear]. ``levels``
    maps the name of a feature to the texts that the codes of a category stand for, from 0 on.

    >>> import lightgbm as lgb
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]], np.float32)
    >>> settings = {"min_data_in_leaf": 1, "min_data_in_bin": 1, "verbose": -1}
    >>> booster = lgb.train(settings, lgb.Dataset(X, label=[0, 0, 1, 1]), num_boost_round=5)
    >>> scorer = TreeEnsemble.of_lightgbm(booster.model_to_string())
    >>> np.array_equal(scorer.score(X), booster.predict(X, raw_score=True))
    True
    """

    table: TreeTable
    feature_names: tuple[str, ...] = ()
    missing: TreeMissing = "keep"
    fill: PerFeature | None = None
    offset: Offset | None = None
    levels: Levels = field(default_factory=dict)

    kind: ClassVar[str] = "trees"
    policies: ClassVar[tuple[str, ...]] = ("keep", "error", "zero", "mean")
    scaled: ClassVar[str] = "the trees"

    def __post_init__(self) -> None:
        self._settle(self.table.n_features)
        vars(self)["levels"] = {name: tuple(texts) for name, texts in self.levels.items()}
        check_levels(self.levels, self.feature_names)

    @property
    def n_trees(self) -> int:
        """The number of trees."""
        return self.table.n_trees

    @property
    def shrinkage(self) -> PerTree:
        """The factor by which the values of each tree have been multiplied: the learning rate times a weight."""
        return self.table.shrinkage

    @property
    def size(self) -> str:
        return f"{self.n_trees:,} trees"

    @classmethod
    def of_lightgbm(cls, text: str) -> "TreeEnsemble":
        """Return the scorer of a model that LightGBM saved, with its levels, and its names unless columns are only numbered."""
        table, names, levels = read_lightgbm(text)
        return cls(table, names, levels=levels)

    @classmethod
    def combine(cls, scorers: "Sequence[TreeEnsemble]", weights: Sequence[float]) -> "TreeEnsemble":
        pairs = zip(scorers, weights, strict=True)
        first, *rest = [scorer.table.scale(np.full(scorer.n_trees, weight)) for scorer, weight in pairs]
        return replace(scorers[0], table=first.join(*rest))

    def first(self, count: int) -> "TreeEnsemble":
        """Return the ensemble of the first ``count`` trees."""
        return replace(self, table=self.table.first(count))

    def single_trees(self) -> Iterator["TreeEnsemble"]:
        """Yield each tree as an ensemble."""
        return (replace(self, table=self.table.single(t)) for t in range(self.n_trees))

    def with_offset(self, offset: Offset | None) -> "TreeEnsemble":
        return self if offset is None else replace(self, table=self.table.shift(offset), offset=offset)

    def relative_to(self, offset: Offset | None, names: tuple[str, ...]) -> "TreeEnsemble":
        table = self.table if offset is None else self.table.shift(-offset)
        return replace(self, table=table, feature_names=names, offset=None)

    def importance(self, kind: Literal["gain", "split"] = "gain") -> PerFeature:
        """Return the total gain of each feature's splits in training, or their number."""
        if kind not in ("gain", "split"):
            raise DataError(f'kind={kind!r} is not one of "gain", "split"')
        if kind == "split":
            return self.table.splits_by_feature().astype(np.float64)
        gain = np.maximum(self.table.gain.astype(np.float64), 0.0)
        return np.bincount(self.table.feature, gain, self.n_features).astype(np.float64)

    def contributions(self, X: Matrix, offset: Offset | None = None, threads: int | None = None) -> npt.NDArray[np.float64]:
        """Return the contribution of each feature to each row's score (SHAP); the last column is the expected score, the same for all rows.

        These are the path-dependent values of Lundberg et al. (2018): an unknown feature is averaged over both sides of a split, weighted
        by their training documents.
        """
        table, rows = self._without_offset(self._rows(X, threads, offset), offset)
        contributions = table.contributions(rows, thread_count(threads))
        if not np.all(np.isfinite(contributions)):
            row = int(np.argmin(np.isfinite(contributions).all(axis=1)))
            raise DataError(f"a contribution to the score of row {row} overflows; scale {self.scaled} down")
        return contributions

    def to_record(self) -> JSONObject:
        fields: dict[str, JSONValue] = {"levels": {name: list(texts) for name, texts in self.levels.items()}} if self.levels else {}
        return {**self._record(features=list(self.feature_names) or self.n_features), **fields, "trees": tree_records(self.table)}

    @classmethod
    def _read(cls, record: JSONObject) -> "TreeEnsemble":
        features = record.get("features")
        names = tuple(features) if isinstance(features, list) else ()
        if not all(isinstance(name, str) for name in names):
            raise DataError("features: expected names or a number; train or copy the model again")
        levels = record.get("levels", {})
        if not isinstance(levels, dict) or not all(isinstance(texts, list) for texts in levels.values()):
            raise DataError("levels: expected lists of texts by the name of a feature; train or copy the model again")
        table = _table_of_version_1(record) if "lightgbm" in record else read_trees(record.get("trees"), len(names) or _count(features))
        return cls(table, **read_common(record, names, "keep"), levels=levels)

    def _scores(self, rows: Matrix, threads: int, offset: Offset | None) -> PerDocument:
        table, rows = self._without_offset(rows, offset)
        return table.native.scores(rows, threads)

    def _without_offset(self, rows: Matrix, offset: Offset | None) -> tuple[TreeTable, Matrix]:
        """Return trees and rows that give the scores of ``rows`` plus ``offset``."""
        if offset is None or not np.any(offset):
            return self.table, rows
        table, left = self.table.subtract(offset)
        if np.any(left):  # in single precision
            rows = np.array(rows)
            for j in np.flatnonzero(left):
                rows[:, j] = rows[:, j] + left[j]
        return table, rows


def _count(features: object) -> int:
    if type(features) is not int or not 1 <= features <= MOST_UNNAMED:
        raise DataError(f"features: expected names, or a number from 1 to {MOST_UNNAMED}; train or copy the model again")
    return features


def _table_of_version_1(record: JSONObject) -> TreeTable:
    """Return the trees of a model file of version 1, which are the lines of a LightGBM model."""
    lines = record["lightgbm"]
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines) or not isinstance(record.get("features"), list):
        raise DataError("trees need the lines of a LightGBM model and names of features; train or copy the model again")
    return read_lightgbm("\n".join(lines))[0]
