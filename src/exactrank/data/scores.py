"""Scores from a file: one a line in the order of the data, or a TREC run matched by query and document id."""

import os

import numpy as np

from exactrank.arrays import PerDocument
from exactrank.data.ranking_data import RankingData
from exactrank.data.trec import looks_like_run, read_run, scores_of
from exactrank.errors import DataError
from exactrank.files import open_bytes


def read_scores(path: str | os.PathLike[str], data: RankingData) -> tuple[RankingData, PerDocument]:
    """The data and a score for each of its rows; a run may add documents that were retrieved but not judged."""
    with open_bytes(path) as file:
        lines = file.read().splitlines()
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise DataError(f"{path} is empty; expected one score a line or a TREC run")
    columns = len(lines[0].split())
    if looks_like_run(lines[0]) or columns == 6:
        if not os.path.isfile(path):
            raise DataError(f"{path} is not a regular file, and a run is read more than once; write it to a file first")
        return scores_of(data, read_run(path))
    if columns != 1:
        raise DataError(f"{path}:1: has {columns} columns; expected one score a line, or the six columns of a TREC run")
    if len(lines) != data.n_documents:
        raise DataError(
            f"{path} has {len(lines):,} lines for {data.n_documents:,} documents; give one score a document, in the order of the data"
        )
    return data, _numbers(path, lines)


def feature_scores(data: RankingData, name: str) -> PerDocument:
    """A feature as scores; missing values count as not retrieved."""
    column = data.feature(name)
    return np.where(np.isnan(column), -np.inf, column)


def _numbers(path: str | os.PathLike[str], lines: list[bytes]) -> PerDocument:
    scores = np.empty(len(lines))
    for i, line in enumerate(lines):
        try:
            scores[i] = float(line if b"_" not in line else b"")
        except ValueError:
            text = line.decode("utf-8", "backslashreplace")[:40]
            raise DataError(f"{path}:{i + 1}: {text!r} is not a number; give one score a line, or a TREC run") from None
        if np.isnan(scores[i]) or scores[i] == np.inf:
            raise DataError(f"{path}:{i + 1}: {scores[i]} is not a score; use a number, or -inf for a document not retrieved")
    return scores
