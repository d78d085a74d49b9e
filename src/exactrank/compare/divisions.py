"""Data sets and how their queries are divided into parts to train, to choose and to test with.

Queries are dealt into K folds at random; in division k fold k tests, the next one validates, and all others train, as LETOR's five
folds do, so each query is tested once. Divisions that are given are taken as they are. A query belongs to one part of a division,
and to one test part of all: a ranker must not be tested on what it has seen, and tests over queries count each once.

Parts live in memory-mapped caches, which all processes share.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import xxhash

from exactrank.arrays import Rows
from exactrank.compare.results import DataSummary, FoldSummary, PartSummary
from exactrank.data.alignment import aligned, check_same_features
from exactrank.data.checksum import checksum
from exactrank.data.folds import Fold, deal_folds
from exactrank.data.formats import read, write
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError

PARTS = ("train", "valid", "test")
TRAINING = "the training part"


@dataclass(frozen=True, eq=False)
class Part:
    """Some queries, or all, of the cache at ``path``."""

    path: Path
    checksum: str  #: of these queries
    queries: Rows | None = None

    def read(self) -> RankingData:
        """The documents of these queries."""
        return self._of(read(self.path, verify=False))

    def outline(self) -> RankingData:
        """The same without features, of which no copy is made: ids, grades and weights are all that checks and summaries ask for."""
        data = read(self.path, verify=False)
        nothing = np.empty((data.n_documents, 0), np.float32)
        return self._of(replace(data, X=nothing, feature_names=(), offset=None, docid=None, comment=None))

    def _of(self, data: RankingData) -> RankingData:
        return data if self.queries is None else data.take_queries(self.queries)

    @property
    def features(self) -> tuple[str, ...]:
        """The names of its features."""
        return read(self.path, verify=False).feature_names

    @property
    def rows(self) -> Rows:
        """Where the rows of `read` stood in the file that was given."""
        data = read(self.path, verify=False)
        if self.queries is None:
            return np.arange(data.n_documents)
        places = np.arange(data.n_documents) if data.order is None else data.order
        return np.concatenate([places[data.indptr[q] : data.indptr[q + 1]] for q in self.queries])


@dataclass(frozen=True, eq=False)
class Division:
    """One division of a data set."""

    name: str
    train: Part
    valid: Part
    test: Part

    @property
    def scratch(self) -> Path:
        """The folder of its caches, which is gone after the run."""
        return self.train.path.parent

    def read(self) -> Fold:
        """The documents; all parts have the features of the training part."""
        train, valid, test = self.train.read(), self.valid.read(), self.test.read()
        names = train.feature_names
        return Fold(self.name, train, aligned(valid, names, TRAINING), aligned(test, names, TRAINING))

    def outline(self) -> Fold:
        """The documents without their features, once all parts are known to have the same."""
        for path in {self.valid.path, self.test.path} - {self.train.path}:
            check_same_features(Part(path, "").features, self.train.features, TRAINING)
        return Fold(self.name, self.train.outline(), self.valid.outline(), self.test.outline())


@dataclass(frozen=True, eq=False)
class DataSet:
    """A data set and its divisions."""

    name: str
    divisions: tuple[Division, ...]

    @cached_property
    def summary(self) -> DataSummary:
        """How much of what there is; each query counts once."""
        sizes: dict[object, int] = {}
        grades: Counter[float] = Counter()
        folds = []
        for division in self.divisions:
            fold = division.outline()
            for part in (fold.train, fold.valid, fold.test):
                ids = part.qid.tolist()
                new = [q for q, qid in enumerate(ids) if qid not in sizes]
                sizes.update(zip(ids, part.sizes.tolist(), strict=True))
                if new:
                    grades.update(part.take_queries(new).y.tolist())
            folds.append(_fold_summary(fold, "-".join(getattr(division, part).checksum for part in PARTS)))
        counts = {f"{grade:g}": grades[grade] for grade in sorted(grades)}
        return DataSummary(self.name, "", len(sizes), sum(sizes.values()), len(self.divisions[0].train.features), counts, tuple(folds))

    def check(self) -> None:
        """Raise where divisions share queries that they must not, and where a test tests nothing."""
        tested: dict[object, str] = {}
        for division in self.divisions:
            fold = division.outline()
            self._check_parts(fold)
            for qid in fold.test.qid.tolist():
                if qid in tested:
                    raise DataError(
                        f"{self.name}: query {qid} is in the test parts of {tested[qid]} and {fold.name};"
                        " each query may be tested once, so leave one of the folds out"
                    )
                tested[qid] = fold.name

    def _check_parts(self, fold: Fold) -> None:
        ids = {part: set(getattr(fold, part).qid.tolist()) for part in PARTS}
        for one, other in (("train", "valid"), ("train", "test"), ("valid", "test")):
            for shared in sorted(ids[one] & ids[other], key=str)[:1]:
                raise DataError(
                    f"{self.name}, {fold.name}: query {shared} is in the {one} part and in the {other} part;"
                    " a ranker must not be judged on queries that it has seen, so divide by query (or give each query an id of its own)"
                )
        if not np.any(fold.test.y > 0):
            raise DataError(
                f"{self.name}, {fold.name}: no document of the test part is relevant (all grades are 0 or less),"
                " so every ranking is worth the same; give test queries with relevant documents, or fewer folds"
            )


def dealt(name: str, data: RankingData, folds: int, seed: int, scratch: Path, *, tested: bool = True) -> DataSet:
    """``data`` with its queries dealt into ``folds``; where nothing is ``tested`` the part that chooses stands in the place of a test."""
    uses = ("to train", "to choose", "to test")[: 3 if tested else 2]
    if folds < len(uses):
        raise DataError(f"folds must be at least {len(uses)}, one each {', '.join(uses)} with; got {folds}")
    if data.n_queries < folds:
        raise DataError(f"{name} has {data.n_queries:,} queries, fewer than the {folds} folds; give more queries or fewer folds")
    whole = _written(data, scratch)
    fold_of = deal_folds(data.n_queries, folds, seed)
    divisions = []
    for k in range(folds):
        valid = (k + 1) % folds if tested else k
        parts = ((fold_of != k) & (fold_of != valid), fold_of == valid, fold_of == k)
        divisions.append(Division(f"Fold{k + 1}", *(_some(whole, np.flatnonzero(part)) for part in parts)))
    return DataSet(name, tuple(divisions))


def given(name: str, folds: Sequence[Fold], scratch: Path) -> DataSet:
    """Divisions as they are given."""
    if not folds:
        raise DataError(f"{name} has no folds; give at least one division into train, valid and test")
    divisions = []
    for fold in folds:
        parts = (_written(getattr(fold, part), scratch) for part in PARTS)
        divisions.append(Division(fold.name, *parts))
    return DataSet(name, tuple(divisions))


def _written(data: RankingData, scratch: Path) -> Part:
    """A cache of ``data``, the next in the folder ``scratch``."""
    path = scratch / f"{len(list(scratch.iterdir()))}.xr"
    write(data, path)
    return Part(path, checksum(data))


def _some(whole: Part, queries: Rows) -> Part:
    """These queries of a cache, by the checksum of the whole and their numbers."""
    digest = xxhash.xxh3_128(whole.checksum.encode() + queries.tobytes())
    return Part(whole.path, digest.hexdigest(), queries)


def _fold_summary(fold: Fold, checksum: str) -> FoldSummary:
    parts = {part: getattr(fold, part) for part in PARTS}
    sizes = {part: PartSummary(data.n_queries, data.n_documents) for part, data in parts.items()}
    weight = None if fold.test.query_weight is None else tuple(fold.test.query_weight.tolist())
    return FoldSummary(fold.name, **sizes, test_qid=tuple(map(str, fold.test.qid.tolist())), test_weight=weight, checksum=checksum)
