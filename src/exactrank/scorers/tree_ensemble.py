"""Ensembles of regression trees, kept as the text of a LightGBM model.

    s(x) = sum over the trees of the value of the leaf that x falls into                                         (1)

The text is the whole model: LightGBM can read it by itself, and its raw scores are the same to the bit. Its thresholds are of whole
features, even if those are kept as differences from an offset: LightGBM takes doubles. Missing values are left to the
trees, which send them down the side that was better in training, unless a policy fills them. Scores need no LightGBM.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from exactrank.arrays import Matrix, PerDocument
from exactrank.data.levels import Levels, check_levels
from exactrank.data.precision import Offset
from exactrank.errors import DataError
from exactrank.scorers.base import Scorer, read_common
from exactrank.scorers.missing import PerFeature, TreeMissing
from exactrank.scorers.tree_edits import joint_info, levels_of, moved, scaled
from exactrank.scorers.tree_text import ModelText, PerTree, TreeTable, writable
from exactrank.stored import storable

if TYPE_CHECKING:
    import lightgbm as lgb


@storable
@dataclass(frozen=True, eq=False, repr=False)
class TreeEnsemble(Scorer):
    """(1) of the LightGBM model ``text``, from ``Booster.model_to_string``; with ``feature_names=()`` features are known by position.

    ``missing`` says how NaN is treated: ``"keep"`` leaves it to the trees, else as in [`Linear`][exactrank.Linear]. ``levels`` maps the
    name of a feature to the texts that the codes of a category stand for, from 0 on.

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
    levels: Levels = field(default_factory=dict)
    n_trees: int = field(init=False, repr=False)
    #: What the values of each tree have been multiplied by: the learning rate, and a weight where it was given one.
    shrinkage: PerTree = field(init=False, repr=False)

    kind: ClassVar[str] = "trees"
    policies: ClassVar[tuple[str, ...]] = ("keep", "error", "zero", "mean")
    scaled: ClassVar[str] = "the trees"

    def __post_init__(self) -> None:
        self._settle(self.table.n_features)
        vars(self)["levels"] = {name: tuple(own) for name, own in self.levels.items()}
        check_levels(self.levels, self.feature_names)
        vars(self).update(n_trees=len(self.table.shrinkage), shrinkage=self.table.shrinkage)

    @property
    def size(self) -> str:
        return f"{self.n_trees:,} trees"

    @classmethod
    def of_lightgbm(cls, text: str) -> "TreeEnsemble":
        """The scorer of a model that LightGBM saved, with the names it knows, unless it only numbered the columns, and levels."""
        names = ModelText.of(text).header["feature_names"].split(" ")
        if names == [f"Column_{j}" for j in range(len(names))]:
            return cls(text)
        return cls(text, tuple(names), levels=levels_of(text))

    @classmethod
    def added(cls, scorers: "Sequence[TreeEnsemble]", weights: Sequence[float]) -> "TreeEnsemble":
        """The forest of all trees."""
        given = zip(scorers, weights, strict=True)
        models = [ModelText.of(scaled(scorer.text, np.full(scorer.n_trees, weight))) for scorer, weight in given]
        same = zip(*(model.header["feature_infos"].split(" ") for model in models), strict=True)
        header = models[0].header | {"feature_infos": " ".join(reduce(joint_info, infos) for infos in same)}
        trees = tuple(tree for model in models for tree in model.trees)
        return replace(scorers[0], text=replace(models[0], header=header, trees=trees).written())

    def single_trees(self) -> Iterator["TreeEnsemble"]:
        """Each tree as an ensemble of its own."""
        model = ModelText.of(self.text)
        return (replace(self, text=replace(model, trees=(tree,)).written()) for tree in model.trees)

    def anchored(self, offset: Offset | None) -> "TreeEnsemble":
        """The scorer of whole features that scores as this one does their differences from ``offset``."""
        return self if offset is None else replace(self, text=moved(self.text, offset), offset=offset)

    def relative_to(self, offset: Offset | None, names: tuple[str, ...]) -> "TreeEnsemble":
        """The scorer that scores differences from ``offset`` of features called ``names`` as this one does whole features."""
        model = ModelText.of(self.text if offset is None else moved(self.text, -offset))
        called = names if writable(names) else [f"Column_{j}" for j in range(len(names))]  # as LightGBM numbers them
        text = replace(model, header=model.header | {"feature_names": " ".join(called)}).written()
        return replace(self, text=text, feature_names=names, offset=None)

    def importance(self, kind: Literal["gain", "split"] = "gain") -> PerFeature:
        """The total gain of each feature's splits in training, or their number."""
        if kind not in ("gain", "split"):
            raise DataError(f'kind={kind!r} is not one of "gain", "split"')
        gained = np.maximum(self.table.gain.astype(np.float64), 0.0)
        found = np.bincount(self.table.feature, gained, self.n_features) if kind == "gain" else self.table.splits()
        return found.astype(np.float64)

    def contributions(self, X: Matrix, offset: Offset | None = None) -> npt.NDArray[np.float64]:
        """What each feature adds to each row's score (SHAP, by LightGBM); the last column is what all rows have in common."""
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
        levels = {"levels": {name: list(own) for name, own in self.levels.items()}} if self.levels else {}
        return self._record(features=list(self.feature_names)) | levels | {"lightgbm": self.text.split("\n")}

    @classmethod
    def _read(cls, record: Mapping[str, Any]) -> "TreeEnsemble":
        names, lines = record.get("features"), record.get("lightgbm")
        if not isinstance(lines, list) or not isinstance(names, list) or not all(isinstance(word, str) for word in [*lines, *names]):
            raise DataError("trees need the lines of a LightGBM model and names of features; train or copy the model again")
        levels = record.get("levels", {})
        if not isinstance(levels, dict) or not all(isinstance(own, list) for own in levels.values()):
            raise DataError("levels: expected lists of texts by the name of a feature; train or copy the model again")
        return cls("\n".join(lines), **read_common(record, tuple(names), "keep"), levels=levels)

    def __getstate__(self) -> dict[str, Any]:
        """All but what is large or cannot be copied, and is made again."""
        return {name: value for name, value in vars(self).items() if name not in ("table", "booster")}

    def _scores(self, rows: Matrix, threads: int, offset: Offset | None) -> PerDocument:
        if offset is None or not np.any(offset):
            return self.table.native.scores(rows, threads)
        table, left = self.table.less(offset)
        if np.any(left):  # in single precision
            rows = np.array(rows)
            for j in np.flatnonzero(left):
                rows[:, j] = rows[:, j] + left[j]
        return table.native.scores(rows, threads)

    @cached_property
    def table(self) -> TreeTable:
        """The trees in flat arrays."""
        return TreeTable.of(ModelText.of(self.text))
