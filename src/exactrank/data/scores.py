"""Scores from a file: one a line in the order of the data, or a TREC run matched by query and document id."""

import os
from collections.abc import Iterable
from itertools import chain

import numpy as np

from exactrank.arrays import PerDocument
from exactrank.data.ranking_data import RankingData
from exactrank.data.trec import TEXT_BLOCK, run_of, scores_of
from exactrank.errors import DataError
from exactrank.files import whole_lines


def read_scores(path: str | os.PathLike[str], data: RankingData) -> tuple[RankingData, PerDocument]:
    """The data and a score for each of its rows; a run may add documents that were retrieved but not judged."""
    blocks = whole_lines(path, TEXT_BLOCK)
    start = next(blocks, b"")
    if not start:
        raise DataError(f"{path} is empty; expected one score a line or a TREC run")
    first = start.partition(b"\n")[0]
    columns = len(first.split())
    if columns == 6:
        return scores_of(data, run_of(path, chain([start], blocks)))
    if columns > 1:
        raise DataError(f"{path}:1: has {columns} columns; expected one score a line, or the six columns of a TREC run")
    return data, _one_a_line(path, chain([start], blocks), data.n_documents)


def _one_a_line(path: str | os.PathLike[str], blocks: Iterable[bytes], documents: int) -> PerDocument:
    """As many scores as there are documents; blank lines at the end do not count, and no more are read than it takes to tell."""
    remedy, lines = "give one score per document, in the order of the data", list[bytes]()
    for block in blocks:
        lines += block.splitlines()
        if any(line.strip() for line in lines[documents:]):
            raise DataError(f"{path} has more lines than the {documents:,} documents; {remedy}")
        del lines[documents:]
    while lines and not lines[-1].strip():
        lines.pop()
    if len(lines) < documents:
        raise DataError(f"{path} has {len(lines):,} lines for {documents:,} documents; {remedy}")
    scores = np.empty(documents)
    for i, line in enumerate(lines):
        try:
            scores[i] = float(line if b"_" not in line else b"")
        except ValueError:
            text = line.decode("utf-8", "backslashreplace")[:40]
            raise DataError(f"{path}:{i + 1}: {text!r} is not a number; give one score a line, or a TREC run") from None
        if np.isnan(scores[i]) or scores[i] == np.inf:
            raise DataError(f"{path}:{i + 1}: {scores[i]} is not a score; use a number, or -inf for a document not retrieved")
    return scores
