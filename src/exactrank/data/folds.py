"""Divisions of queries into folds, random or as LETOR publishes them (``Fold1..Fold5/{train,vali,test}.txt`` or ``S1..S5.txt``)."""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from numbers import Real
from pathlib import Path

import numpy as np

from exactrank._support.arguments import checked_list
from exactrank._support.arrays import PerQuery, Rows
from exactrank._support.files import checked_path, missing_file
from exactrank.data.alignment import align_features
from exactrank.data.files import existing, read_with
from exactrank.data.formats.base import ReadOptions
from exactrank.data.formats.letor import LetorFormat
from exactrank.data.levels import levels_in
from exactrank.data.ranking_data import RankingData, check_data
from exactrank.data.shards import concatenate
from exactrank.errors import DataError


def bootstrap_counts(queries: int, rng: np.random.Generator) -> Rows:
    """Return how often each query occurs in a bootstrap sample: ``queries`` draws with replacement."""
    return np.bincount(rng.integers(0, queries, queries), minlength=queries)


@dataclass(frozen=True)
class BootstrapWeights:
    """Weights of a bootstrap sample of the queries, or of those that it left out; each part draws the same sample by ``seed``."""

    seed: tuple[int, ...]
    queries: int
    left_out: bool = False

    def __call__(self, first: int, weights: PerQuery) -> PerQuery:
        """Return the weight of each query times its number of draws; ``first`` is the number of the first query."""
        counts = bootstrap_counts(self.queries, np.random.default_rng(self.seed))[first : first + len(weights)]
        return weights * (counts == 0 if self.left_out else counts)


@dataclass(frozen=True)
class Fold:
    """A division of the queries into training, validation and test data."""

    name: str
    train: RankingData
    valid: RankingData
    test: RankingData


def read_folds(path: str | os.PathLike[str], *, keep_missing: bool = False, threads: int | None = None) -> list[Fold]:
    """Read all folders ``FoldN`` below ``path``, in order of N, or ``path`` itself as a fold; all parts get the features of the widest."""
    root = checked_path(path)
    if not root.exists():
        raise missing_file(root)
    numbered = [(int(name[1]), f) for f in root.glob("Fold*") if (name := re.fullmatch(r"Fold([0-9]+)", f.name))]
    if not numbered and not any(root.glob("train.txt*")):
        raise DataError(f"{root} holds neither folders named Fold1, Fold2, ... nor train.txt, vali.txt and test.txt; give one that does")
    folders, parts = [f for _, f in sorted(numbered)] or [root.resolve()], dict[tuple[str, str], Path]()
    for folder, part in product(folders, ("train", "vali", "test")):
        path_of_part = next((file for file in (folder / f"{part}.txt", folder / f"{part}.txt.gz") if file.exists()), None)
        if path_of_part is None:
            raise DataError(f"{folder} has no {part}.txt; a fold needs train.txt, vali.txt and test.txt (each may be .gz)")
        parts[folder.name, part] = existing(path_of_part)
    data_of_parts = _read_to_one_width(list(parts.values()), ReadOptions(keep_missing=keep_missing, threads=threads), LetorFormat().read)
    data = dict(zip(parts, data_of_parts, strict=True))
    return [Fold(f.name, data[f.name, "train"], data[f.name, "vali"], data[f.name, "test"]) for f in folders]


def read_parts(paths: Sequence[str | os.PathLike[str]], *, keep_missing: bool = False, threads: int | None = None) -> list[Fold]:
    """Read a dataset that is published in parts, such as LETOR's ``S1.txt`` to ``S5.txt``, as folds in LETOR's rotation.

    Of K parts, ``Fold1`` trains on the first K - 2, validates on the next and tests on the last; each later fold begins one part
    later, so that every query is tested once. Files may be of any format; all parts get the features of the widest.
    """
    return rotate_parts(paths, ReadOptions(keep_missing=keep_missing, threads=threads))


def rotate_parts(paths: Sequence[str | os.PathLike[str]], options: ReadOptions) -> list[Fold]:
    """Return the folds of `read_parts`, whose files are read with these ``options``."""
    paths = checked_list("paths", paths, "a list of at least 3 files")
    if len(paths) < 3:
        raise DataError(f"{len(paths)} parts cannot be rotated; give at least 3, one each to train, to validate and to test with")
    parts = _read_to_one_width([existing(path) for path in paths], options, read_with)
    part_of: dict[object, int] = {}
    for number, part in enumerate(parts):
        for qid in part.qid.tolist():
            if part_of.setdefault(qid, number) != number:
                raise DataError(f"query {qid} is in {paths[part_of[qid]]} and in {paths[number]}; a query must be in one part alone")
    rotations = [[*parts[k:], *parts[:k]] for k in range(len(parts))]
    return [Fold(f"Fold{k}", join(train), valid, test) for k, (*train, valid, test) in enumerate(rotations, 1)]


def _read_to_one_width(files: Sequence[Path], options: ReadOptions, read: Callable[[Path, ReadOptions], RankingData]) -> list[RankingData]:
    """Read all files; text that lacks the last features of another file gets them, as zeros."""
    data = [read(file, options) for file in files]
    names = max((part.feature_names for part in data), key=len)
    if all(part.feature_names == names for part in data) or not names[0].isdecimal():
        return data
    return [read(file, replace(options, n_features=len(names), first_feature=int(names[0]))) for file in files]


def join(parts: Sequence[RankingData]) -> RankingData:
    """Return the queries of all ``parts``, with the features of the first."""
    first = parts[0]
    levels = {name: levels_in((level for part in parts for level in part.levels.get(name, ())), name) for name in first.levels}
    return concatenate([align_features(part, first.feature_names, "the first part", levels).relative_to(first.offset) for part in parts])


def deal_folds(queries: int, folds: int, seed: int) -> Rows:
    """Return a random fold for each query; the sizes of folds differ by at most one query.

    >>> deal_folds(5, 2, seed=0).tolist()
    [1, 0, 0, 1, 0]
    """
    return np.random.default_rng([seed, 3]).permutation(np.arange(queries) % folds)


@dataclass(frozen=True)
class FoldNumbers:
    """The folds of `deal_folds`, for parts that hold some of the queries."""

    queries: int
    folds: int
    seed: int

    def of(self, first: int, count: int) -> Rows:
        """Return the fold of each of ``count`` queries from the number ``first`` on."""
        return deal_folds(self.queries, self.folds, self.seed)[first : first + count]


def split(data: RankingData, *fractions: float, seed: int = 0) -> tuple[RankingData, ...]:
    """Split ``data`` into random parts of whole queries: ``train, valid, test = split(data, 0.6, 0.2, 0.2)``.

    The same ``seed`` gives the same parts. Each part keeps the order of the queries.

    >>> data = RankingData.from_arrays(None, [0, 1] * 10, group=[2] * 10)
    >>> [part.qid.tolist() for part in split(data, 0.6, 0.2, 0.2)]
    [[0, 5, 6, 7, 8, 9], [1, 2], [3, 4]]
    """
    check_data(data)
    shares = np.array([share if isinstance(share, Real) and not isinstance(share, bool) else np.nan for share in fractions], np.float64)
    if len(shares) < 2 or not np.all((shares > 0) & (shares < 1)) or abs(shares.sum() - 1) > 1e-9:
        values = ", ".join(map(repr, fractions)) or "none"
        raise DataError(f"the fractions must be two or more numbers between 0 and 1 that add up to 1, e.g. 0.6, 0.2, 0.2; got {values}")
    ends = np.rint(np.cumsum(shares) * data.n_queries).astype(np.int64)
    empty = np.flatnonzero(np.diff(ends, prepend=0) == 0)
    if len(empty):
        queries = f"{data.n_queries:,} quer{'y' if data.n_queries == 1 else 'ies'}"
        raise DataError(f"a fraction of {fractions[empty[0]]} of {queries} is none; give a larger fraction, or more queries")
    permutation = np.random.default_rng([seed, 4]).permutation(data.n_queries)
    return tuple(data.take_queries(np.sort(part)) for part in np.split(permutation, ends[:-1]))
