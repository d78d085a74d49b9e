"""Tables as numbers: training data for rankers that cannot read missing values or categories.

The feature's mean in training replaces a missing value. A category is left out: in training its column is 0 throughout, and the model has
no weight for it. So the model scores the original table, beside models that keep missing values and split categories.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import Matrix
from exactrank._support.threads import thread_count
from exactrank.data.alignment import name_list
from exactrank.data.blocks import wide_blocks
from exactrank.data.dataset import Dataset, EachBlock, EachPart, Part
from exactrank.data.immutable import seal
from exactrank.data.levels import NO_LEVELS
from exactrank.data.ranking_data import RankingData
from exactrank.data.scratch_arrays import empty_matrix
from exactrank.errors import IncompatibleError
from exactrank.models.base import Scorer
from exactrank.models.linear import Linear
from exactrank.models.missing import PerFeature, fill_in, mean_values, sorted_sums, stand_ins
from exactrank.models.network import Network
from exactrank.models.tree_ensemble import TreeEnsemble


@dataclass(frozen=True, eq=False)
class ToNumbers:
    """The transformation of a table to numbers: ``fill_values`` replace missing values, and the columns ``left_out`` become 0."""

    fill_values: Matrix | None
    left_out: tuple[int, ...]

    def __call__(self, data: RankingData) -> RankingData:
        """Return ``data`` as numbers; documents stay in their order."""
        X = empty_matrix(data.X.shape, data.X)
        np.copyto(X, data.X)
        X[:, list(self.left_out)] = 0.0
        if self.fill_values is not None:
            fill_in(X, self.fill_values)
        return replace(data, X=seal(X), levels=NO_LEVELS)


@dataclass(frozen=True, eq=False)
class NumericData:
    """Training ``data`` as numbers, and the transformation that made them."""

    data: Dataset
    form: ToNumbers
    names: tuple[str, ...]  #: of the categories that are left out

    @classmethod
    def of(cls, data: Dataset, categories: Collection[str], *, keep: bool, threads: int | None) -> "NumericData":
        """Return ``data`` without those of its features that are ``categories``; missing values are replaced unless ``keep``."""
        left_out = tuple(j for j, name in enumerate(data.feature_names) if name in categories)
        names = tuple(data.feature_names[j] for j in left_out)
        fill_values = None
        if not keep:
            holes = np.sum(data.ask(EachPart(partial(_holes, thread_count(threads)))), axis=0)
            if left_out or np.any(holes):  # a level that is not known counts as missing
                sums = data.ask(EachBlock(_sums))
                fill_values = stand_ins(mean_values(sums, data.n_documents - holes, data.offset), data.offset)
                fill_values[list(left_out)] = 0.0
        form = ToNumbers(fill_values, left_out)
        if fill_values is None and not left_out:
            return cls(data, form, names)
        return cls(data.without_levels().transform(form), form, names)

    def scorer_of_table(self, scorer: Scorer) -> Scorer:
        """Return the scorer that scores the table as ``scorer`` does these numbers; raise if its kind cannot leave a feature out."""
        reduced: Any = _without(scorer, self.form.left_out, self.names)
        fill_values = self.form.fill_values
        return reduced if fill_values is None else replace(reduced, missing="mean", fill=fill_values.astype(np.float64))  # type: ignore[no-any-return]


def _holes(threads: int, part: Part) -> npt.NDArray[np.int64]:
    """Return the number of missing values of each column."""
    holes: npt.NDArray[np.int64] = _core.summarize_columns(part.data.X, threads)[2]
    return holes


def _sums(part: Part) -> list[PerFeature]:
    """Return the sums of the columns over wide blocks of queries."""
    return sorted_sums(part.data.X, part.data.indptr[wide_blocks(part.data.indptr)])


def _without(scorer: Scorer, left_out: tuple[int, ...], names: tuple[str, ...]) -> Scorer:
    """Return ``scorer`` without weights for the features ``left_out``, which were constant when it was trained."""
    if not left_out:
        return scorer
    columns = list(left_out)
    if isinstance(scorer, Linear):
        weights = scorer.weights.copy()
        weights[columns] = 0.0
        return replace(scorer, weights=weights)
    if isinstance(scorer, Network):
        rows = scorer.weights.copy()
        rows[:, columns] = 0.0
        return replace(scorer, weights=rows)
    if isinstance(scorer, TreeEnsemble) and not np.any(np.isin(scorer.table.feature, columns)):
        return scorer
    raise IncompatibleError(f"a {scorer.kind} model cannot leave out {name_list(list(map(repr, names)))}: it needs these categories")
