"""TREC files: judgments (qrels) and ranked lists (runs), plain or gzip, columns separated by blanks.

    qrels   301 0 FT911-3 1                  query, iteration (unused), document, grade
    run     301 Q0 FT911-3 1 14.89 bm25      query, unused, document, rank (unused), score, tag

The documents of a run are ranked by their scores, as in trec_eval; the rank column is ignored. A judged document that a run lacks was not
retrieved: its score is -inf. A retrieved document without a judgment has grade -1, to distinguish it from a document with the grade 0, as
bpref requires.

Many lines are split at once, so that a column is every fourth or sixth token; NumPy counts the tokens of each line to check them.
"""

import math
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, count, pairwise
from pathlib import Path
from typing import BinaryIO, TypeVar

import numpy as np
import numpy.typing as npt

from exactrank._support.arguments import check_kind, checked_list
from exactrank._support.arrays import PerDocument, Rows, starts_of
from exactrank._support.files import line_blocks
from exactrank._support.numerals import number as number_in
from exactrank._support.tables import Tabular, Values
from exactrank._support.text import clip
from exactrank.data.duplicates import check_documents, duplicate_places
from exactrank.data.formats.base import ReadOptions, Stream, stream_of
from exactrank.data.formats.text_column import TextColumn
from exactrank.data.immutable import seal
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError, IncompatibleError

Number = TypeVar("Number", bound=np.generic)
UNJUDGED = -1.0  #: grade of a document without a judgment
TEXT_BLOCK = 1 << 18  #: bytes of text; the tokens of a block fit into the processor's cache
BLANKS = np.isin(np.arange(256), list(b" \t\n\r\v\f"))  #: the blanks of bytes.split()

#: The number of each document of each query, both in the order of the file.
ByQuery = dict[str, dict[str, float]]


@dataclass(frozen=True, eq=False, repr=False)
class Judgments(Tabular):
    """Lines of a qrels file: document ``docid[i]`` has ``grade[i]`` for query ``qid[i]``."""

    qid: Sequence[str]
    docid: Sequence[str]
    grade: PerDocument

    @cached_property
    def by_query(self) -> ByQuery:
        """Grades of each query's documents."""
        return _by_query(self.qid, self.docid, self.grade)

    def __repr__(self) -> str:
        return f"Judgments({len(self.docid):,} documents of {len(set(self.qid)):,} queries)"

    def _columns(self) -> dict[str, Values]:
        return {"query_id": self.qid, "doc_id": self.docid, "relevance": self.grade}


@dataclass(frozen=True, eq=False, repr=False)
class RetrievalRun(Tabular):
    """Lines of a run: document ``docid[i]`` has ``score[i]`` for query ``qid[i]``; ``tag`` names the system."""

    qid: Sequence[str]
    docid: Sequence[str]
    score: PerDocument
    tag: str

    @cached_property
    def by_query(self) -> ByQuery:
        """Scores of each query's documents."""
        return _by_query(self.qid, self.docid, self.score)

    def __repr__(self) -> str:
        return f"RetrievalRun({clip(self.tag, 40)!r}, {len(self.docid):,} documents of {len(set(self.qid)):,} queries)"

    def _columns(self) -> dict[str, Values]:
        return {"query_id": self.qid, "doc_id": self.docid, "score": self.score}


def read_qrels(path: str | os.PathLike[str]) -> Judgments:
    """Read the judgments of a qrels file."""
    qid, docid, grade, lines, _ = _columns(path, line_blocks(path, TEXT_BLOCK), QRELS)
    judgments = Judgments(qid, docid, np.array(grade))
    _check_distinct(path, judgments, lines)
    return judgments


def read_run(path: str | os.PathLike[str]) -> RetrievalRun:
    """Read the ranked documents of a run file; its tag is that of the first line."""
    return run_of(path, line_blocks(path, TEXT_BLOCK))


def run_of(path: str | os.PathLike[str], blocks: Iterable[bytes]) -> RetrievalRun:
    """Return the run in ``blocks`` of whole lines from the file ``path``."""
    qid, docid, score, lines, tags = _columns(path, blocks, RUN)
    run = RetrievalRun(qid, docid, np.array(score), tags[0])
    _check_distinct(path, run, lines)
    return run


def from_trec(qrels: Judgments, runs: Sequence[RetrievalRun] = (), *, unjudged: float = UNJUDGED) -> RankingData:
    """Return the judged and the retrieved documents of the queries of ``qrels``; each run is a feature.

    A feature is a run's score, named by its tag, and NaN if the run lacks the document. The judged documents of a query come first, then
    those without a judgment in the order of the runs, with the grade ``unjudged``. Queries that only a run has are left out.

    >>> qrels = Judgments(["1", "1"], ["a", "b"], np.array([2.0, 0.0]))
    >>> data = from_trec(qrels, [RetrievalRun(["1", "1"], ["c", "a"], np.array([9.0, 8.0]), "bm25")])
    >>> data.docid.tolist(), data.y.tolist(), data.X.ravel().tolist()
    (['a', 'b', 'c'], [2.0, 0.0, -1.0], [8.0, nan, 9.0])
    """
    check_kind("qrels", qrels, Judgments, "what er.read_qrels returns")
    for run in checked_list("runs", runs, "a list of what er.read_run returns"):
        check_kind("one of the runs", run, RetrievalRun, "what er.read_run returns")
        _check_common_queries("the qrels", qrels.by_query, run)
    documents = [(query, _union(judged, *(run.by_query.get(query, {}) for run in runs))) for query, judged in qrels.by_query.items()]
    grades = _numbers_of(documents, qrels.by_query, unjudged)
    X, names = np.empty((len(grades), len(runs))), list[str]()
    for j, run in enumerate(runs):
        X[:, j] = _numbers_of(documents, run.by_query, np.nan)
        with np.errstate(over="ignore"):
            bad = np.flatnonzero(np.isinf(X[:, j].astype(np.float32)))
        if len(bad):
            raise DataError(f"run {run.tag!r}: score {X[bad[0], j]} is not a finite float32, as a feature must be; rescale the run")
        tags = chain([run.tag], (f"{run.tag}-{n}" for n in count(2)))
        names.append(next(tag for tag in tags if tag not in names))
    return RankingData.from_arrays(
        X,
        grades,
        qid=np.repeat(np.array(list(qrels.by_query), dtype=object), [len(ids) for _, ids in documents]),
        docid=[document for _, ids in documents for document in ids],
        feature_names=names,
    )


def scores_of(data: RankingData, run: RetrievalRun) -> tuple[RankingData, PerDocument]:
    """Return ``data`` with the unjudged documents that ``run`` retrieved for its queries, and the score of each document in the run.

    Added documents follow the other documents of their query, with grade -1, missing features and sample weight 1; in the caller's order
    they follow all rows. The scores are in the caller's order. A document that the run lacks was not retrieved and has score -inf. Query
    ids are compared as strings. Queries that only the run has are left out. If the data has no document ids, the run
    must name its rows, from 0, as `er.write_run` does.

    >>> data = RankingData.from_arrays(None, [1, 0], qid=[7, 7], docid=["a", "b"])
    >>> extended, scores = scores_of(data, RetrievalRun(["7", "7"], ["c", "b"], np.array([3.0, 2.0]), "bm25"))
    >>> extended.docid.tolist(), extended.y.tolist(), scores.tolist()
    (['a', 'b', 'c'], [1.0, 0.0, -1.0], [-inf, 2.0, 3.0])
    """
    named, data = data.docid is not None, with_ids(data)
    assert data.docid is not None
    queries = [str(query) for query in data.qid.tolist()]
    _check_common_queries("the data", dict.fromkeys(queries), run)
    check_documents(data)
    docid, ends = data.docid.tolist(), data.indptr.tolist()
    ids_of_query = [docid[first:stop] for first, stop in pairwise(ends)]
    documents = [(query, _union(ids, run.by_query.get(query, {}))) for query, ids in zip(queries, ids_of_query, strict=True)]
    for (query, ids), rows in zip(documents, ids_of_query, strict=True):
        if not named and len(ids) > len(rows):
            raise DataError(
                f"the data has no document ids, and {ids[len(rows)]!r} of run {run.tag!r} is not a row of query {query!r}, counted from 0;"
                " read the data from a source with document ids"
            )
    extended = _extend(data, [ids for _, ids in documents])
    return extended, extended.ungroup(_numbers_of(documents, run.by_query, -np.inf))


def with_ids(data: RankingData) -> RankingData:
    """Return ``data`` with document ids; if it has none, they are the rows, numbered from 0 in the caller's order."""
    if data.docid is not None:
        return data
    rows = range(data.n_documents) if data.order is None else data.order.tolist()
    return replace(data, docid=TextColumn.of(rows))


class QrelsFormat:
    """TREC qrels: judgments as data without features, to evaluate runs."""

    name = "TREC qrels"

    def read(self, path: Path, options: ReadOptions) -> RankingData:
        return from_trec(read_qrels(path))

    def stream(self, path: Path, options: ReadOptions) -> Stream:
        return stream_of(self.read(path, options))

    def write(self, file: BinaryIO, stream: Stream) -> None:
        """Refuse: the format has no place for features."""
        raise IncompatibleError("TREC qrels hold grades but no features; write .xr, .parquet or .txt instead")


def looks_like_qrels(line: bytes) -> bool:
    """Return whether ``line`` may be a line of qrels.

    >>> looks_like_qrels(b"301 0 FT911-3 1"), looks_like_qrels(b"2 qid:7 1:0.5 2:1")
    (True, False)
    """
    tokens = line.split()
    return len(tokens) == 4 and not tokens[1].startswith(b"qid:") and math.isfinite(_number(tokens[3]))


# ---- lines of a file


@dataclass(frozen=True)
class _Kind:
    """Form of a line: an example, the column that holds a number, and the name of this number."""

    example: str
    number: int
    what: str


QRELS = _Kind("301 0 FT911-3 1", 3, "grade")
RUN = _Kind("301 Q0 FT911-3 1 14.89 bm25", 4, "score")


def _columns(
    path: str | os.PathLike[str], blocks: Iterable[bytes], kind: _Kind
) -> tuple[list[str], list[str], list[float], list[int], list[str]]:
    """Return the query, document, number and line number of each entry, and the last column of the first line of each block."""
    qid, docid, number, line, tag = list[str](), list[str](), list[float](), list[int](), list[str]()
    width, before = len(kind.example.split()), 0
    for text in blocks:
        counts = _token_counts(text)
        wrong = np.flatnonzero((counts != 0) & (counts != width))
        if len(wrong):
            columns = counts[wrong[0]]
            raise DataError(f"{path}:{before + wrong[0] + 1}: has {columns} columns instead of {width}; expected e.g. {kind.example!r}")
        tokens = text.split()
        line.extend((before + 1 + np.flatnonzero(counts)).tolist())
        number.extend(_numbers(path, tokens[kind.number :: width], line[len(number) :], kind))
        for column, texts in ((qid, tokens[0::width]), (docid, tokens[2::width]), (tag, tokens[width - 1 : width])):
            if texts:  # decoding once is several times as fast
                column.extend(b"\n".join(texts).decode("utf-8", "surrogateescape").split("\n"))
        before += len(counts) - 1
    if not qid:
        raise DataError(f"{path}: is empty; expected lines such as {kind.example!r}")
    return qid, docid, number, line, tag


def _numbers(path: str | os.PathLike[str], tokens: list[bytes], lines: list[int], kind: _Kind) -> list[float]:
    with suppress(ValueError):
        numbers = [float(token) for token in tokens]
        if all(map(math.isfinite, numbers)) and b"_" not in b"".join(tokens):
            return numbers
    line, token = next((line, token) for line, token in zip(lines, tokens, strict=True) if not math.isfinite(_number(token)))
    text = token[:40].decode("utf-8", "backslashreplace")
    raise DataError(f"{path}:{line}: {kind.what} {text!r} is not a finite number; expected e.g. {kind.example!r}")


def _check_distinct(path: str | os.PathLike[str], read: Judgments | RetrievalRun, lines: list[int]) -> None:
    """Raise if a query has a document twice, which makes ``by_query`` smaller than the file."""
    if sum(map(len, read.by_query.values())) == len(lines):
        return
    if (places := duplicate_places(zip(read.qid, read.docid, strict=True))) is not None:
        first, second = places
        query, document = read.qid[second], read.docid[second]
        raise DataError(
            f"{path}:{lines[second]}: query {query!r} already has document {document!r} on line {lines[first]}; remove one of them"
        )


def _token_counts(content: bytes) -> Rows:
    """Return the number of tokens of each line, also of the text after the last newline.

    >>> _token_counts(b"a b\\n\\n c").tolist()
    [2, 0, 1]
    """
    text = np.frombuffer(content, np.uint8)
    blank = BLANKS[text]
    starts = np.flatnonzero(~blank & np.append(True, blank[:-1])[: len(text)])
    ends = np.append(np.flatnonzero(text == ord("\n")), len(text))
    return np.diff(np.searchsorted(starts, ends), prepend=0)


def _number(token: bytes) -> float:
    """Return the number in ``token``, or NaN."""
    try:
        return number_in(token)
    except ValueError:
        return np.nan


# ---- documents by query


def _by_query(qid: Sequence[str], docid: Sequence[str], values: PerDocument) -> ByQuery:
    numbers: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for query, document, value in zip(qid, docid, values.tolist(), strict=True):
        numbers[query][document] = value
    return dict(numbers)


def _check_common_queries(name: str, queries: Mapping[str, object], run: RetrievalRun) -> None:
    if run.by_query.keys().isdisjoint(queries):
        theirs, ours = next(iter(run.by_query), ""), next(iter(queries), "")
        raise DataError(f"no query of run {run.tag!r} (such as {theirs!r}) is in {name} (such as {ours!r}); pass files of the same topics")


def _union(first: Iterable[str], *more_ids: Iterable[str]) -> list[str]:
    """Return the ids of ``first``, which may repeat, then the new ids of ``more_ids``, each once."""
    ids = list(first)
    first_ids = set(ids)
    return [*ids, *dict.fromkeys(document for document in chain(*more_ids) if document not in first_ids)]


def _numbers_of(documents: Iterable[tuple[str, list[str]]], values: ByQuery, absent: float) -> PerDocument:
    """Return one number per document, query by query; documents without a number get ``absent``."""
    numbers: list[float] = []
    for query, ids in documents:
        numbers_of_query = values.get(query, {})
        numbers += [numbers_of_query.get(document, absent) for document in ids]
    return np.array(numbers, np.float64)


def _extend(data: RankingData, documents: list[list[str]]) -> RankingData:
    """Return ``data`` with these ``documents`` of each query: those of the data, then unjudged ones."""
    indptr = starts_of([len(ids) for ids in documents])
    rows, old_rows = int(indptr[-1]), data.n_documents
    if rows == old_rows:
        return data
    new_rows = np.arange(old_rows) + np.repeat(indptr[:-1] - data.indptr[:-1], data.sizes)  # of the old documents

    def spread(values: npt.NDArray[Number], fill: float) -> npt.NDArray[Number]:
        out = np.full((rows, *values.shape[1:]), fill, values.dtype)
        out[new_rows] = values
        return out

    order = spread(np.arange(old_rows) if data.order is None else data.order, -1)
    order[order < 0] = np.arange(old_rows, rows)
    source = spread(np.arange(old_rows), old_rows)
    return replace(
        data,
        X=seal(spread(data.X, np.nan)),
        y=spread(data.y, UNJUDGED),
        indptr=indptr,
        docid=TextColumn.of(chain.from_iterable(documents)),
        comment=None if data.comment is None else TextColumn.concatenate([data.comment, TextColumn.of([""])]).take(source),
        sample_weight=None if data.sample_weight is None else spread(data.sample_weight, 1.0),
        extra_columns={name: spread(values, 0.0) for name, values in data.extra_columns.items()},
        order=order,
    )
