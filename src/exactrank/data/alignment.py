"""Match the features of data to those of a model, by name and in any order."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from exactrank.data.immutable import seal
from exactrank.data.levels import NO_LEVELS, Levels, recode
from exactrank.data.ranking_data import RankingData
from exactrank.data.scratch_arrays import empty_matrix
from exactrank.errors import IncompatibleError


def align_features(data: RankingData, names: tuple[str, ...], owner: str = "the model", levels: Levels = NO_LEVELS) -> RankingData:
    """Return ``data`` with its features in the order of ``names`` and its categories by ``levels``; errors call their owner ``owner``.

    >>> data = RankingData.from_arrays([[1.0, 2.0]], [0], group=[1], feature_names=["b", "a"])
    >>> align_features(data, ("a", "b")).X.tolist()
    [[2.0, 1.0]]
    """
    if data.feature_names != names:
        check_same_features(data.feature_names, names, owner)
        column_of = {name: j for j, name in enumerate(data.feature_names)}
        columns = [column_of[name] for name in names]
        offset = None if data.offset is None else data.offset[columns]
        X = empty_matrix(data.X.shape, data.X)
        np.take(data.X, columns, axis=1, out=X, mode="clip")
        data = replace(data, X=seal(X), feature_names=names, offset=offset)
    if data.levels == levels:
        return data
    X = empty_matrix(data.X.shape, data.X)
    np.copyto(X, data.X)
    for j, codes in recode(data.X, names, data.levels, levels, owner).items():
        X[:, j] = codes
    return replace(data, X=seal(X), levels=levels)


def check_same_features(present: Sequence[str], names: Sequence[str], owner: str) -> None:
    """Raise unless the features ``present`` are the features ``names`` of ``owner``, in any order."""
    missing, extra = sorted(set(names) - set(present)), sorted(set(present) - set(names))
    if missing or extra or len(names) != len(present):
        remedy = f"; text whose last features are all 0 needs n_features={len(names)} (--features)" if missing else ""
        raise IncompatibleError(
            f"the data has other features than {owner}: it lacks {name_list(missing)}; it has besides {name_list(extra)};"
            f" give the {len(names):,} features of {owner}, by the same names in any order{remedy}"
        )


def name_list(names: Sequence[str], limit: int = 8) -> str:
    """Return the first ``limit`` names as text.

    >>> name_list(["a", "b", "c"], 2)
    'a, b, ... (3 in all)'
    """
    if not names:
        return "none"
    return ", ".join(names[:limit]) + (f", ... ({len(names):,} in all)" if len(names) > limit else "")
