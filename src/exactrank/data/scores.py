"""Read scores from a file: one per line in the order of the data, or a TREC run matched by query and document id."""

import os
from collections.abc import Iterable, Mapping
from itertools import chain

import numpy as np

from exactrank._support.arrays import PerDocument
from exactrank._support.files import line_blocks
from exactrank._support.numerals import number
from exactrank.data.formats.trec import TEXT_BLOCK, run_of, scores_of
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError


def read_scores(path: str | os.PathLike[str], data: RankingData) -> tuple[RankingData, PerDocument]:
    """Return the data and a score for each of its rows; a run may add documents that were retrieved but not judged."""
    blocks = line_blocks(path, TEXT_BLOCK)
    start = next(blocks, b"")
    if not start:
        raise DataError(f"{path} is empty; expected one score per line or a TREC run")
    first = start.partition(b"\n")[0]
    columns = len(first.split())
    if columns == 6:
        run = run_of(path, chain([start], blocks))
        try:
            return scores_of(data, run)
        except DataError as error:
            raise DataError(f"{path}: {error}") from None
    if looks_like_model(start):
        raise DataError(f"{path} is a model, not scores or a run; score the data with it (exactrank predict), or evaluate it by its path")
    if columns > 1:
        raise DataError(f"{path}:1: has {columns} columns; expected one score per line, or the six columns of a TREC run")
    return data, _scores_by_line(path, chain([start], blocks), data.n_documents)


def looks_like_model(start: bytes) -> bool:
    """Return whether a file with these first bytes is a model; scores and runs have lines that begin with a number or an id.

    >>> looks_like_model(b'{"bm25": 0.7}'), looks_like_model(b"301 Q0 d1 1 2.5 bm25"), looks_like_model(b"-0.5")
    (True, False, False)
    """
    return start.lstrip()[:1] in (b"{", b"[") or start.startswith((b"tree\n", b"## ")) or b"\0" in start


def unjudged_rule(counts: Mapping[str, int]) -> str:
    """Return a sentence on the treatment of retrieved documents without a judgment; ``counts`` has their number by run.

    >>> unjudged_rule({"bm25": 12, "dense": 0})
    'Retrieved documents that nobody judged (bm25: 12) count as not relevant and keep their ranks, as in trec_eval.'
    """
    numbers = ", ".join(f"{name}: {count:,}".removeprefix(": ") for name, count in counts.items() if count)
    if not numbers:
        return ""
    return f"Retrieved documents that nobody judged ({numbers}) count as not relevant and keep their ranks, as in trec_eval."


def _scores_by_line(path: str | os.PathLike[str], blocks: Iterable[bytes], documents: int) -> PerDocument:
    """Return one score per document; blank lines at the end do not count, and reading stops at the first line too many."""
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
            scores[i] = number(line)
        except ValueError:
            text = line.decode("utf-8", "backslashreplace")[:40]
            raise DataError(f"{path}:{i + 1}: {text!r} is not a number; give one score per line, or a TREC run") from None
        if np.isnan(scores[i]) or scores[i] == np.inf:
            raise DataError(f"{path}:{i + 1}: {scores[i]} is not a score; use a number, or -inf for a document not retrieved")
    return scores
