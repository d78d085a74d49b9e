"""Divisions of queries into parts: as LETOR sets are published (``Fold1..Fold5/{train,vali,test}.txt``), and random ones."""

import os
import re
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np

from exactrank.arrays import Rows
from exactrank.data.format import ReadOptions
from exactrank.data.formats import existing
from exactrank.data.letor import LetorFormat
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError


@dataclass(frozen=True)
class Fold:
    """One division of the queries into three parts."""

    name: str
    train: RankingData
    valid: RankingData
    test: RankingData


def read_folds(path: str | os.PathLike[str], *, keep_missing: bool = False, threads: int | None = None) -> list[Fold]:
    """Every ``FoldN`` below ``path``, in order of N, or ``path`` itself as one; all parts are given the width of the widest."""
    root = Path(path)
    numbered = [(int(name[1]), f) for f in root.glob("Fold*") if (name := re.fullmatch(r"Fold(\d+)", f.name))]
    if not numbered and not any(root.glob("train.txt*")):
        raise DataError(f"{root} holds neither folders named Fold1, Fold2, ... nor train.txt, vali.txt and test.txt; give one that does")
    folders, parts = [f for _, f in sorted(numbered)] or [root.resolve()], dict[tuple[str, str], Path]()
    for folder, part in product(folders, ("train", "vali", "test")):
        found = next((file for file in (folder / f"{part}.txt", folder / f"{part}.txt.gz") if file.exists()), None)
        if found is None:
            raise DataError(f"{folder} has no {part}.txt; a fold needs train.txt, vali.txt and test.txt (each may be .gz)")
        parts[folder.name, part] = existing(found)
    options = ReadOptions(keep_missing=keep_missing, threads=threads)
    data = {key: LetorFormat().read(file, options) for key, file in parts.items()}
    names = max((d.feature_names for d in data.values()), key=len)
    if any(d.feature_names != names for d in data.values()):
        same = replace(options, n_features=len(names), first_feature=int(names[0]))
        data = {key: LetorFormat().read(file, same) for key, file in parts.items()}
    return [Fold(f.name, data[f.name, "train"], data[f.name, "vali"], data[f.name, "test"]) for f in folders]


def deal_folds(queries: int, folds: int, seed: int) -> Rows:
    """The fold of each query, at random; folds differ by one query at most.

    >>> deal_folds(5, 2, seed=0).tolist()
    [1, 0, 0, 1, 0]
    """
    return np.random.default_rng([seed, 3]).permutation(np.arange(queries) % folds)
