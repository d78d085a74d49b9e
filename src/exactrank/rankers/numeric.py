"""Tables as numbers: what a ranker that takes numbers alone is given of data with missing values and categories.

The feature's mean in training stands for a missing value. A category is left out: in training its column is 0 throughout, and the model has
no weight for it. So the model scores the table as it is, beside models that keep missing values and split categories.
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
class AsNumbers:
    """What is done to prepared data, or to a partition: ``stands`` replace missing values, and the columns ``left_out`` become 0."""

    stands: Matrix | None
    left_out: tuple[int, ...]

    def __call__(self, data: RankingData) -> RankingData:
        """Return ``data`` as numbers; documents stay in their order."""
        X = empty_matrix(data.X.shape, data.X)
        np.copyto(X, data.X)
        X[:, list(self.left_out)] = 0.0
        if self.stands is not None:
            fill_in(X, self.stands)
        return replace(data, X=seal(X), levels=NO_LEVELS)


@dataclass(frozen=True, eq=False)
class NumericData:
    """Training ``data`` as numbers, and how they came about."""

    data: Dataset
    form: AsNumbers
    names: tuple[str, ...]  #: of the categories that are left out

    @classmethod
    def of(cls, data: Dataset, categories: Collection[str], *, keep: bool, threads: int | None) -> "NumericData":
        """Return ``data`` without those of its features that are ``categories``; missing values are replaced unless ``keep``."""
        left_out = tuple(j for j, name in enumerate(data.feature_names) if name in categories)
        names = tuple(data.feature_names[j] for j in left_out)
        stands = None
        if not keep:
            holes = np.sum(data.ask(EachPart(partial(_holes, thread_count(threads)))), axis=0)
            if left_out or np.any(holes):  # a level that is not known counts as missing
                sums = data.ask(EachBlock(_sums))
                stands = stand_ins(mean_values(sums, data.n_documents - holes, data.offset), data.offset)
                stands[list(left_out)] = 0.0
        form = AsNumbers(stands, left_out)
        if stands is None and not left_out:
            return cls(data, form, names)
        return cls(data.without_levels().transform(form), form, names)

    def scorer_of_table(self, scorer: Scorer) -> Scorer:
        """Return the scorer that scores the table as ``scorer`` does these numbers; raise if its kind cannot leave a feature out."""
        found: Any = _without(scorer, self.form.left_out, self.names)
        stands = self.form.stands
        return found if stands is None else replace(found, missing="mean", fill=stands.astype(np.float64))  # type: ignore[no-any-return]


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
    raise IncompatibleError(f"a {scorer.kind} model cannot leave out {name_list(list(map(repr, names)))}, which hold categories")
