"""Data sets and the division of their queries into parts for training, validation and testing.

Queries are divided into K folds at random; in division k, fold k tests, the next one validates, and all others train, like LETOR's five
folds, so each query is tested once. Divisions that the caller made are used as they are. A query belongs to one part of a division, and
to the test part of one division: a ranker must not be tested on queries that it has seen, and statistics count each query once.

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
from exactrank.compare.corrected import summarize_machine
from exactrank.compare.results import DataSummary, FoldSummary, MachineSummary, PartSummary
from exactrank.data.alignment import align_features, check_same_features
from exactrank.data.files import read, write
from exactrank.data.folds import Fold, deal_folds
from exactrank.data.ranking_data import RankingData, checksum
from exactrank.data.shards import concatenate
from exactrank.errors import DataError
from exactrank.measures.machine_grades import places_of_queries

PARTS = ("train", "valid", "test")
TRAINING = "the training part"


@dataclass(frozen=True, eq=False)
class CachedPart:
    """The ``queries`` of the cache at ``path``; None: all of them."""

    path: Path
    checksum: str  #: of these queries
    queries: Rows | None = None

    def read(self, *, features: bool = True) -> RankingData:
        """Read the documents of these queries; without ``features`` only their ids, grades and weights, and no features are copied."""
        data = read(self.path, verify=features)
        if not features:
            data = replace(data.without_features(), docid=None, comment=None)
        return data if self.queries is None else data.take_queries(self.queries)

    @property
    def rows(self) -> Rows:
        """The positions of the rows of `read` in the file that the caller gave."""
        data = read(self.path, verify=False)
        if self.queries is None:
            return np.arange(data.n_documents)
        positions = np.arange(data.n_documents) if data.order is None else data.order
        return np.concatenate([positions[data.indptr[q] : data.indptr[q + 1]] for q in self.queries])


@dataclass(frozen=True, eq=False)
class CachedDivision:
    """A division of a data set into training, validation and test part."""

    name: str
    train: CachedPart
    valid: CachedPart
    test: CachedPart
    machine: CachedPart | None = None  #: the test queries as a machine has graded them, then all that only the machine has graded

    @property
    def checksum(self) -> str:
        """The checksum of all parts."""
        return "-".join(part.checksum for part in (self.train, self.valid, self.test, self.machine) if part is not None)

    def read(self) -> Fold:
        """Read the documents; all parts have the features of the training part."""
        train, valid, test = self.train.read(), self.valid.read(), self.test.read()
        valid, test = (align_features(part, train.feature_names, TRAINING, train.levels) for part in (valid, test))
        return Fold(self.name, train, valid, test)

    def read_machine(self, train: RankingData) -> RankingData | None:
        """Read the machine's grades, with the features of the training part; None without any."""
        return None if self.machine is None else align_features(self.machine.read(), train.feature_names, TRAINING, train.levels)


@dataclass(frozen=True, eq=False)
class DataSet:
    """A data set and its divisions."""

    name: str
    divisions: tuple[CachedDivision, ...]

    def summary(self, source: str = "") -> DataSummary:
        """Count queries, documents and grades, each query once; raise if a division cannot serve to train and test."""
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
        """Raise if parts share queries or the test part has nothing relevant; ``tested`` maps queries to the division that tested them."""
        ids = {part: data.qid.tolist() for part, data in parts.items()}
        for first, second in combinations(PARTS, 2):
            for shared in sorted({*ids[first]} & {*ids[second]}, key=str)[:1]:
                raise DataError(
                    f"{self.name}, {division}: query {shared} is in the {first} part and in the {second} part;"
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


def divide(name: str, data: RankingData, folds: int, seed: int, scratch: Path, *, tested: bool = True) -> DataSet:
    """Divide the queries of ``data`` into ``folds``; unless they are ``tested``, the validation part also stands for the test part."""
    uses = ("to train", "to choose", "to test")[: 3 if tested else 2]
    if folds < len(uses):
        raise DataError(f"folds must be at least {len(uses)}, one each {', '.join(uses)} with; got {folds}")
    if data.n_queries < folds:
        raise DataError(f"{name} has {data.n_queries:,} queries, fewer than the {folds} folds; give more queries or fewer folds")
    cached = _write_cache(data, scratch)
    fold_of = deal_folds(data.n_queries, folds, seed)
    divisions = []
    for k in range(folds):
        valid = (k + 1) % folds if tested else k
        parts = []
        for is_in_part in ((fold_of != k) & (fold_of != valid), fold_of == valid, fold_of == k):
            queries = np.flatnonzero(is_in_part)
            digest = xxhash.xxh3_128(cached.checksum.encode() + queries.tobytes())
            parts.append(CachedPart(cached.path, digest.hexdigest(), queries))
        divisions.append(CachedDivision(f"Fold{k + 1}", *parts))
    return DataSet(name, tuple(divisions))


def cache_folds(name: str, folds: Sequence[Fold], scratch: Path) -> DataSet:
    """Write the caches of divisions that the caller made."""
    folds = checked_list(name, folds, "a RankingData, a Fold, or a list of these folds")
    for fold in folds:
        check_kind(f"one of the folds of {name}", fold, Fold, "what er.read_folds or er.data.read_parts returns")
    if not folds:
        raise DataError(f"{name} has no folds; give at least one division into train, valid and test")
    return DataSet(
        name, tuple(CachedDivision(fold.name, *(_write_cache(getattr(fold, part), scratch) for part in PARTS)) for fold in folds)
    )


def with_machine(dataset: DataSet, machine: RankingData, scratch: Path, seed: int) -> tuple[DataSet, MachineSummary]:
    """Return ``dataset`` with a machine's grades of its test queries and of further ones, and a summary of these grades.

    Queries on which a division trains are neither: models know them.
    """
    parts = [getattr(division, part).read(features=False) for division in dataset.divisions for part in PARTS]
    is_known = np.isin(machine.qid.astype(str), np.concatenate([part.qid.astype(str) for part in parts]))
    tests = [replace(division.test.read().without_features(), comment=None, order=None) for division in dataset.divisions]
    tested = concatenate(tests)
    places = np.split(places_of_queries(tested, machine), np.cumsum([test.n_queries for test in tests])[:-1])
    summary = summarize_machine(tested, machine, ~is_known, seed=seed)
    check_same_features(machine.feature_names, read(dataset.divisions[0].train.path, verify=False).feature_names, TRAINING)
    cached, divisions = _write_cache(machine, scratch), []
    for division, places_of_test in zip(dataset.divisions, places, strict=True):
        queries = np.append(places_of_test, np.flatnonzero(~is_known))
        divisions.append(replace(division, machine=replace(cached, queries=queries)))
    return replace(dataset, divisions=tuple(divisions)), summary


def _write_cache(data: RankingData, scratch: Path) -> CachedPart:
    """Write a cache of ``data``, the next in the folder ``scratch``."""
    path = scratch / f"{len(list(scratch.iterdir()))}.xr"
    write(data, path)
    return CachedPart(path, checksum(data))
