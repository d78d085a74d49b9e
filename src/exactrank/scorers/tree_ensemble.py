"""Ensembles of regression trees, kept as the text of a LightGBM model.

    s(x) = sum over the trees of the value of the leaf that x falls into                                         (1)

The text is all there is: LightGBM alone reads it, and its raw scores are the same to the bit. Its thresholds are of whole features,
also where those are kept as differences from an offset: LightGBM takes doubles. Missing values are left to the
trees, which send them down the side that was better in training, unless a policy fills them. Scores need no LightGBM.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import Matrix, PerDocument
from exactrank.data.precision import Offset
from exactrank.errors import DataError
from exactrank.scorers.features import (
    check_names,
    check_width,
    checked_fill_or_keep,
    checked_offset,
    optional,
    read_optional,
    rows_by_policy,
)
from exactrank.scorers.missing import PerFeature, TreeMissing
from exactrank.scorers.tree_text import ModelText, PerTree, TreeTable, mean_of, moved, single_trees
from exactrank.stored import storable
from exactrank.threads import thread_count

if TYPE_CHECKING:
    import lightgbm as lgb


@storable
@dataclass(frozen=True, eq=False)
class TreeEnsemble:
    """(1) of the LightGBM model ``text``, as ``Booster.model_to_string`` gives it; ``feature_names=()`` knows features by position.

    ``missing`` says what NaN is: ``"keep"`` leaves it to the trees, else as in [`Linear`][exactrank.Linear].

    >>> import lightgbm as lgb
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]], np.float32)
    >>> settings = {"min_data_in_leaf": 1, "min_data_in_bin": 1, "verbose": -1}
    >>> booster = lgb.train(settings, lgb.Dataset(X, label=[0, 0, 1, 1]), num_boost_round=5)
    >>> np.array_equal(TreeEnsemble(booster.model_to_string()).score(X), booster.predict(X, raw_score=True))
    True
    """

    text: str
    feature_names: tuple[str, ...] = ()
    missing: TreeMissing = "keep"
    fill: PerFeature | None = None
    offset: Offset | None = None

    kind: ClassVar[str] = "trees"

    def __post_init__(self) -> None:
        object.__setattr__(self, "feature_names", tuple(self.feature_names))
        check_names(self.feature_names, self.n_features)
        object.__setattr__(self, "fill", checked_fill_or_keep(self.missing, self.fill, self.n_features))
        object.__setattr__(self, "offset", checked_offset(self.offset, self.n_features))

    @classmethod
    def of_lightgbm(cls, text: str) -> "TreeEnsemble":
        """The scorer of a model that LightGBM saved, with the names it knows, unless it only numbered the columns."""
        names = ModelText.of(text).header["feature_names"].split(" ")
        return cls(text, () if names == [f"Column_{j}" for j in range(len(names))] else tuple(names))

    @classmethod
    def averaged(cls, scorers: "Sequence[TreeEnsemble]") -> "TreeEnsemble":
        """The forest of all trees, the values of each over the number of ``scorers``."""
        return replace(scorers[0], text=mean_of([scorer.text for scorer in scorers]))

    @property
    def n_features(self) -> int:
        """How many features it reads."""
        return self._table.n_features

    @property
    def n_trees(self) -> int:
        """How many trees there are."""
        return self._table.n_trees

    @property
    def shrinkage(self) -> PerTree:
        """What the values of each tree have been multiplied by: the learning rate, and a weight where it was given one."""
        return self._table.shrinkage

    def single_trees(self) -> Iterator["TreeEnsemble"]:
        """Each tree as an ensemble of its own."""
        return (replace(self, text=text) for text in single_trees(self.text))

    def score(self, X: Matrix, threads: int | None = None, offset: Offset | None = None) -> PerDocument:
        """The score of each row of features, (1), which are ``X`` plus ``offset``."""
        rows = self._rows(X, threads, offset)
        if offset is None or not np.any(offset):
            scores = self._native.scores(rows, thread_count(threads))
        else:
            kept = np.where(self._table.reads_numbers(), offset, 0.0)
            scores = _native(self._table.less(kept)).scores(_restored(rows, offset - kept), thread_count(threads))
        if not np.all(np.isfinite(scores)):
            raise DataError(f"the score of row {np.argmin(np.isfinite(scores))} overflows; scale the trees down")
        return scores

    def anchored(self, offset: Offset | None) -> "TreeEnsemble":
        """The scorer of whole features that scores as this one does their differences from ``offset``."""
        return self if offset is None else replace(self, text=moved(self.text, offset), offset=offset)

    def of_differences(self) -> "TreeEnsemble":
        """The scorer that `anchored` made this one of."""
        return self if self.offset is None else replace(self, text=moved(self.text, -self.offset), offset=None)

    def importance(self, kind: Literal["gain", "split"] = "gain") -> PerFeature:
        """Of each feature what its splits gained in training, in all, or how many they are."""
        if kind not in ("gain", "split"):
            raise DataError(f'kind={kind!r} is not one of "gain", "split"')
        return self._table.gains() if kind == "gain" else self._table.splits().astype(np.float64)

    def contributions(self, X: Matrix, offset: Offset | None = None) -> npt.NDArray[np.float64]:
        """What each feature adds to each row's score (SHAP, by LightGBM); the last column is what all rows have."""
        rows = self._rows(X, None, offset)
        return np.asarray(self.booster.predict(rows if offset is None else rows + offset, pred_contrib=True), np.float64)

    @cached_property
    def booster(self) -> "lgb.Booster":
        """The same for users of LightGBM."""
        import lightgbm as lgb

        try:
            return lgb.Booster(model_str=self.text)
        except (lgb.basic.LightGBMError, ValueError) as error:
            raise DataError(f"LightGBM cannot read the trees ({error}); train or copy the model again") from None

    def to_record(self) -> dict[str, Any]:
        """Itself as JSON values: the text by lines."""
        record: dict[str, Any] = {"kind": self.kind, "missing": self.missing, "features": list(self.feature_names)}
        numbers = optional(self.feature_names, fill=self.fill if self.missing == "mean" else None, offset=self.offset)
        return record | numbers | {"lightgbm": self.text.split("\n")}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], where: str) -> "TreeEnsemble":
        """The scorer that `to_record` described; errors name ``where`` it was read."""
        names, lines = record.get("features"), record.get("lightgbm")
        if not isinstance(lines, list) or not isinstance(names, list) or not all(isinstance(word, str) for word in [*lines, *names]):
            raise DataError(f"{where}: trees need the lines of a LightGBM model and names of features; train or copy the model again")
        fill, offset = (read_optional(record, key, tuple(names), where) for key in ("fill", "offset"))
        try:
            return cls("\n".join(lines), tuple(names), record.get("missing", "keep"), fill, offset)
        except DataError as error:
            raise DataError(f"{where}: {error}") from None

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: what was made of them is made again."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def _rows(self, X: Matrix, threads: int | None, offset: Offset | None) -> Matrix:
        """``X`` as the trees are to see it."""
        check_width(X, self.n_features)
        return rows_by_policy(X, self.feature_names, self.missing, self.fill, threads, offset)

    @cached_property
    def _table(self) -> TreeTable:
        return TreeTable.of(ModelText.of(self.text))

    @cached_property
    def _native(self) -> _core.Trees:
        return _native(self._table)


def _native(table: TreeTable) -> _core.Trees:
    return _core.Trees(
        table.n_features,
        table.start,
        table.feature,
        table.threshold,
        table.decision,
        table.left,
        table.right,
        table.leaf_value,
        table.set_start,
        table.sets,
    )


def _restored(X: Matrix, offset: Offset) -> Matrix:
    """``X`` with the offset added, in single precision, where there is one."""
    if not np.any(offset):
        return X
    whole = np.array(X)
    for j in np.flatnonzero(offset):
        whole[:, j] = X[:, j] + offset[j]
    return whole
