"""Data sets and how their queries are divided into parts for training, validation and testing.

Queries are divided into K folds at random; in division k, fold k tests, the next one validates, and all others train, like LETOR's five
folds, so each query is tested once. Given divisions are used as they are. A query belongs to one part of a division,
and to one test part of all: a ranker must not be tested on what it has seen, and tests over queries count each once.

Parts live in memory-mapped caches, which all processes share.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
import xxhash

from exactrank._support.arguments import check_kind, checked_list
from exactrank._support.arrays import Rows
from exactrank.compare.results import DataSummary, FoldSummary, PartSummary
from exactrank.data.alignment import align_features, check_same_features
from exactrank.data.files import read, write
from exactrank.data.folds import Fold, deal_folds
from exactrank.data.ranking_data import RankingData, checksum
from exactrank.errors import DataError

PARTS = ("train", "valid", "test")
TRAINING = "the training part"


@dataclass(frozen=True, eq=False)
class CachedPart:
    """Some queries, or all, of the cache at ``path``."""

    path: Path
    checksum: str  #: of these queries
    queries: Rows | None = None

    def read(self, *, features: bool = True) -> RankingData:
        """The documents of these queries; without ``features``, of which no copy is made then, they have ids, grades and weights."""
        data = read(self.path, verify=features)
        if not features:
            nothing = np.empty((data.n_documents, 0), np.float32)
            data = replace(data, X=nothing, feature_names=(), offset=None, docid=None, comment=None, levels={})
        return data if self.queries is None else data.take_queries(self.queries)

    @property
    def rows(self) -> Rows:
        """Where the rows of `read` stood in the file that was given."""
        data = read(self.path, verify=False)
        if self.queries is None:
            return np.arange(data.n_documents)
        places = np.arange(data.n_documents) if data.order is None else data.order
        return np.concatenate([places[data.indptr[q] : data.indptr[q + 1]] for q in self.queries])


@dataclass(frozen=True, eq=False)
class CachedDivision:
    """One division of a data set."""

    name: str
    train: CachedPart
    valid: CachedPart
    test: CachedPart

    @property
    def checksum(self) -> str:
        """Of all three parts."""
        return "-".join(part.checksum for part in (self.train, self.valid, self.test))

    def read(self) -> Fold:
        """The documents; all parts have the features of the training part."""
        train, valid, test = self.train.read(), self.valid.read(), self.test.read()
        valid, test = (align_features(part, train.feature_names, TRAINING, train.levels) for part in (valid, test))
        return Fold(self.name, train, valid, test)


@dataclass(frozen=True, eq=False)
class DataSet:
    """A data set and its divisions."""

    name: str
    divisions: tuple[CachedDivision, ...]

    def summary(self, source: str = "") -> DataSummary:
        """How much of what there is; each query counts once. Raises where a division cannot be learned from and tested."""
        sizes: dict[object, int] = {}
        grades: Counter[float] = Counter()
        tested: dict[object, str] = {}
        folds = []
        for division in self.divisions:
            features = read(division.train.path, verify=False).feature_names
            for path in {division.valid.path, division.test.path} - {division.train.path}:
                check_same_features(read(path, verify=False).feature_names, features, TRAINING)
            parts = {part: getattr(division, part).read(features=False) for part in PARTS}
            self._check(division.name, parts, tested)
            for part in parts.values():
                queries = part.qid.tolist()
                new = [q for q, qid in enumerate(queries) if qid not in sizes]
                sizes.update(zip(queries, part.sizes.tolist(), strict=True))
                if new:
                    grades.update(part.take_queries(new).y.tolist())
            test = parts["test"]
            ids = tuple(map(str, test.qid.tolist()))
            extents = {name: PartSummary(part.n_queries, part.n_documents) for name, part in parts.items()}
            weight = None if test.query_weight is None else tuple(test.query_weight.tolist())
            folds.append(FoldSummary(division.name, **extents, test_qid=ids, test_weight=weight, checksum=division.checksum))
        counts = {f"{grade:g}": grades[grade] for grade in sorted(grades)}
        return DataSummary(self.name, source, len(sizes), sum(sizes.values()), len(features), counts, tuple(folds))

    def _check(self, division: str, parts: Mapping[str, RankingData], tested: dict[object, str]) -> None:
        """Raise where parts share queries that they must not, and where a test tests nothing; ``tested`` says where queries were."""
        ids = {part: data.qid.tolist() for part, data in parts.items()}
        for one, other in combinations(PARTS, 2):
            for shared in sorted({*ids[one]} & {*ids[other]}, key=str)[:1]:
                raise DataError(
                    f"{self.name}, {division}: query {shared} is in the {one} part and in the {other} part;"
                    " a ranker must not be judged on queries that it has seen, so divide by query (or give each query its own id)"
                )
        if not np.any(parts["test"].y > 0) and parts["test"].preferences is None:
            raise DataError(
                f"{self.name}, {division}: no document of the test part is relevant (all grades are 0 or less),"
                " so all rankings are equally good; give test queries with relevant documents, or fewer folds"
            )
        for qid in ids["test"]:
            if qid in tested:
                raise DataError(
                    f"{self.name}: query {qid} is in the test parts of {tested[qid]} and {division};"
                    " each query may be tested only once, so leave one of the folds out"
                )
            tested[qid] = division


def dealt(name: str, data: RankingData, folds: int, seed: int, scratch: Path, *, tested: bool = True) -> DataSet:
    """``data`` with its queries divided into ``folds``; if nothing is ``tested`` the part that chooses takes the place of a test."""
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
        parts = []
        for chosen in ((fold_of != k) & (fold_of != valid), fold_of == valid, fold_of == k):
            queries = np.flatnonzero(chosen)
            digest = xxhash.xxh3_128(whole.checksum.encode() + queries.tobytes())  # of the whole and their numbers
            parts.append(CachedPart(whole.path, digest.hexdigest(), queries))
        divisions.append(CachedDivision(f"Fold{k + 1}", *parts))
    return DataSet(name, tuple(divisions))


def given(name: str, folds: Sequence[Fold], scratch: Path) -> DataSet:
    """Divisions as they are given."""
    folds = checked_list(name, folds, "a RankingData, a Fold, or a list of these folds")
    for fold in folds:
        check_kind(f"one of the folds of {name}", fold, Fold, "what er.read_folds or er.data.read_parts returns")
    if not folds:
        raise DataError(f"{name} has no folds; give at least one division into train, valid and test")
    return DataSet(name, tuple(CachedDivision(fold.name, *(_written(getattr(fold, part), scratch) for part in PARTS)) for fold in folds))


def _written(data: RankingData, scratch: Path) -> CachedPart:
    """A cache of ``data``, the next in the folder ``scratch``."""
    path = scratch / f"{len(list(scratch.iterdir()))}.xr"
    write(data, path)
    return CachedPart(path, checksum(data))
