"""LightGBM: the trees as the text that LightGBM saves, which treelite, lleaves and other tree compilers read too.

Categorical splits and everything else that trees may have stay as they are. Thresholds and sums of trees become trees of one text.
"""

from collections.abc import Sequence

import numpy as np

from exactrank._support.arrays import PerDocument, starts_of
from exactrank._support.libraries import library
from exactrank.data.alignment import name_list
from exactrank.models.lightgbm_text import writable, write_lightgbm
from exactrank.models.model import Model
from exactrank.models.targets.plain import Plain, Tree, plain
from exactrank.models.targets.target import Export, Rows, Target
from exactrank.models.tree_ensemble import TreeEnsemble
from exactrank.models.tree_table import CATEGORICAL, MISSING_IS_NAN, MISSING_IS_ZERO, MISSING_LEFT, TreeTable


class LightGBMText(Target):
    """The text that ``lightgbm.Booster(model_file=...)`` reads."""

    name, suffix = "lightgbm", ".txt"
    kinds, missing = ("trees",), ("zero", "mean", "keep")

    def export(self, model: Model) -> Export:
        self.check_values()
        scorer = model.scorer
        if not isinstance(scorer, TreeEnsemble):
            return super().export(model)
        has_other_splits = _has_other_splits(scorer)
        if scorer.fill is not None and not has_other_splits and not _nodes_fill(scorer):
            return super().export(model)
        text = write_lightgbm(scorer.table, scorer.feature_names, scorer.levels)
        remarks = _remarks(scorer.feature_names)
        if scorer.levels:
            named = name_list(list(map(repr, scorer.levels)))
            remarks.append(f"LightGBM reads {named} from pandas columns of dtype category; in other rows give codes, from 0 on")
        if scorer.fill is not None and has_other_splits:
            remarks.append(f"the model fills missing values by missing={scorer.missing!r}; fill them before scoring")
        return Export(text.encode(), tuple(remarks), self, model)

    def write(self, terms: Plain) -> tuple[str, Sequence[str]]:
        trees = terms.without_constant().trees
        feature, threshold, left, right, missing_left, leaf = (
            np.concatenate([getattr(tree, name) for tree in trees]) for name in vars(trees[0])
        )
        table = TreeTable(
            len(terms.features),
            starts_of([len(tree.feature) for tree in trees]),
            feature.astype(np.int32),
            threshold,
            np.where(missing_left, MISSING_IS_NAN | MISSING_LEFT, MISSING_IS_NAN).astype(np.uint8),
            left.astype(np.int32),
            right.astype(np.int32),
            np.ones(len(feature), np.float32),
            leaf,
            np.zeros(1, np.int64),
            np.empty(0, np.uint32),
            np.ones(len(trees)),
            np.ones(len(leaf)),
        )
        return write_lightgbm(table, terms.features), _remarks(terms.features)

    def scores(self, content: bytes, rows: Rows, features: Sequence[str]) -> PerDocument:
        lightgbm = library("lightgbm", "scores of LightGBM's files", "lightgbm")
        return np.asarray(lightgbm.Booster(model_str=content.decode()).predict(rows, raw_score=True), np.float64)

    def terms(self, model: Model) -> Plain:
        """Return only the leaves for splits that plain terms cannot express: enough to bound the rounding of their sum."""
        scorer = model.scorer
        if not isinstance(scorer, TreeEnsemble) or not _has_other_splits(scorer):
            return plain(model)
        table, none = scorer.table, np.empty(0, np.int64)
        leaves = np.split(table.leaf_value, table.start[1:-1] + np.arange(1, len(table.start) - 1))
        trees = tuple(Tree(none, np.empty(0), none, none, np.empty(0, bool), values) for values in leaves)
        return Plain(trees=trees, model=model, features=scorer.feature_names, fill=np.zeros(scorer.n_features))


def _has_other_splits(scorer: TreeEnsemble) -> bool:
    return bool(np.any(scorer.table.decision & (CATEGORICAL | MISSING_IS_ZERO)))


def _nodes_fill(scorer: TreeEnsemble) -> bool:
    """Return whether the nodes send missing values where their fill value goes."""
    unfilled = TreeEnsemble(scorer.table, scorer.feature_names, offset=scorer.offset)
    pairs = zip(plain(Model(scorer)).trees, plain(Model(unfilled)).trees, strict=True)
    return all(np.array_equal(ours.missing_left, theirs.missing_left) for ours, theirs in pairs)


def _remarks(features: Sequence[str]) -> list[str]:
    unwritable = next((feature for feature in features if not writable([feature])), None)
    return [] if unwritable is None else [f"LightGBM's text cannot hold a feature called {unwritable!r}, so features are numbered in order"]
