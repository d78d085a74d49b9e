"""Divisions of queries into parts: as LETOR sets are published (``Fold1..Fold5/{train,vali,test}.txt``), and random ones."""

import os
import re
from dataclasses import dataclass
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
    folders = sorted((f for f in root.glob("Fold*") if _number(f) is not None), key=lambda f: _number(f) or 0)
    if not folders and not any(root.glob("train.txt*")):
        raise DataError(f"{root} holds neither folders named Fold1, Fold2, ... nor train.txt, vali.txt and test.txt; give one that does")
    folders = folders or [root.resolve()]
    parts = {(folder.name, part): _part(folder, part) for folder in folders for part in ("train", "vali", "test")}
    options = ReadOptions(keep_missing=keep_missing, threads=threads)
    data = {key: LetorFormat().read(file, options) for key, file in parts.items()}
    names = max((d.feature_names for d in data.values()), key=len)
    if any(d.feature_names != names for d in data.values()):
        same = ReadOptions(keep_missing=keep_missing, threads=threads, n_features=len(names), first_feature=int(names[0]))
        data = {key: LetorFormat().read(file, same) for key, file in parts.items()}
    return [Fold(f.name, data[f.name, "train"], data[f.name, "vali"], data[f.name, "test"]) for f in folders]


def deal_folds(queries: int, folds: int, seed: int) -> Rows:
    """The fold of each query, at random; folds differ by one query at most.

    >>> deal_folds(5, 2, seed=0).tolist()
    [1, 0, 0, 1, 0]
    """
    return np.random.default_rng([seed, 3]).permutation(np.arange(queries) % folds)


def _number(folder: Path) -> int | None:
    found = re.fullmatch(r"Fold(\d+)", folder.name)
    return int(found[1]) if found else None


def _part(folder: Path, part: str) -> Path:
    for name in (f"{part}.txt", f"{part}.txt.gz"):
        if (folder / name).exists():
            return existing(folder / name)
    raise DataError(f"{folder} has no {part}.txt; a fold needs train.txt, vali.txt and test.txt (each may be .gz)")
