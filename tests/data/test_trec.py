"""TREC judgments and runs: what the files say, how they join, and what is wrong with bad ones."""

import gzip
import io
import os
import select
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from exactrank._support import files, pipes
from exactrank.data.formats import trec
from exactrank.data.formats.base import ReadOptions, stream_of
from exactrank.data.formats.text_column import TextColumn
from exactrank.data.formats.trec import Judgments, QrelsFormat, RetrievalRun, from_trec, looks_like_qrels, read_qrels, read_run, scores_of
from exactrank.data.ranking_data import RankingData
from exactrank.data.scores import read_scores
from exactrank.errors import DataError, IncompatibleError

HANGS = 120  #: seconds
quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def file_of(folder: Path, text: str | bytes, name: str = "data.qrels") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def judgments(*lines: tuple[str, str, float]) -> Judgments:
    return Judgments([q for q, _, _ in lines], [d for _, d, _ in lines], np.array([g for _, _, g in lines], np.float64))


def run(*lines: tuple[str, str, float], tag: str = "bm25") -> RetrievalRun:
    return RetrievalRun([q for q, _, _ in lines], [d for _, d, _ in lines], np.array([s for _, _, s in lines], np.float64), tag)


def documents(data: RankingData) -> list[tuple[Any, str, float]]:
    """(query, document, grade) in the order of the data."""
    assert data.docid is not None
    query = np.repeat(data.qid, data.sizes).tolist()
    return list(zip(query, data.docid.tolist(), data.y.tolist(), strict=True))


# ---- random lines: tokens of anything but ASCII blanks, each (query, document) once

tokens = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=" \t\n\r\v\f"), min_size=1, max_size=3)
finite = st.floats(allow_nan=False, allow_infinity=False)
blanks = st.text(" \t", min_size=1, max_size=3)
endings = st.sampled_from(["\n", "\r\n", "\n\n", " \n \t\n"])


def lines_of(ids: st.SearchStrategy[str], docs: st.SearchStrategy[str], number: st.SearchStrategy[float]) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.tuples(ids, docs, number), min_size=1, max_size=12, unique_by=lambda line: line[:2])


@quick
@given(lines=lines_of(tokens, tokens, finite), gap=blanks, end=endings, block=st.integers(1, 40), packed=st.booleans())
def test_files_say_what_was_written(lines: list[Any], gap: str, end: str, block: int, packed: bool, tmp_path: Path) -> None:
    def written(rows: list[list[str]]) -> Path:
        text = end.join(gap.join(row) for row in rows).encode()
        return file_of(tmp_path, gzip.compress(text) if packed else text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trec, "TEXT_BLOCK", block)
        qrels = read_qrels(written([[q, "0", d, repr(g)] for q, d, g in lines]))
        ranked = read_run(written([[q, "Q0", d, "1", repr(s), "né"] for q, d, s in lines]))
    assert list(zip(qrels.qid, qrels.docid, qrels.grade.tolist(), strict=True)) == lines
    assert list(zip(ranked.qid, ranked.docid, ranked.score.tolist(), strict=True)) == lines
    assert ranked.tag == "né"


few_ids, few_docs = st.sampled_from(["1", "2", "3"]), st.sampled_from("abcd")


@quick
@given(
    judged=lines_of(few_ids, few_docs, finite),
    runs=st.lists(lines_of(few_ids, few_docs, st.floats(width=32, allow_nan=False, allow_infinity=False)), max_size=3),
)
def test_from_trec_is_the_union(judged: list[Any], runs: list[list[Any]]) -> None:
    known = list(dict.fromkeys(q for q, _, _ in judged))
    shared = [lines for lines in runs if any(q in known for q, _, _ in lines)]
    data = from_trec(judgments(*judged), [run(*lines, tag=f"r{i}") for i, lines in enumerate(shared)], unjudged=-5.0)
    keys = [(q, d) for q, d, _ in judged] + [(q, d) for lines in shared for q, d, _ in lines if q in known]
    keys = sorted(dict.fromkeys(keys), key=lambda key: known.index(key[0]))  # stable: judged first, then run by run
    grade = {(q, d): g for q, d, g in judged}
    assert documents(data) == [(q, d, grade.get((q, d), -5.0)) for q, d in keys]
    assert data.qid.tolist() == known
    assert data.order is None
    assert data.X.dtype == np.float32
    for j, lines in enumerate(shared):
        score = {(q, d): s for q, d, s in lines}
        np.testing.assert_array_equal(data.X[:, j], [score.get(key, np.nan) for key in keys])


@quick
@given(
    rows=st.lists(
        st.tuples(st.sampled_from([1, 2, 3]), few_docs, st.integers(0, 3)), min_size=1, max_size=10, unique_by=lambda row: row[:2]
    ),
    lines=lines_of(few_ids, few_docs, finite),
)
def test_scores_of_gives_every_document_its_score(rows: list[Any], lines: list[Any]) -> None:
    known = {str(q) for q, _, _ in rows}
    lines = [*lines, (str(rows[0][0]), "extra", 0.1)]
    weight = np.arange(1.0, len(rows) + 1)
    X = np.arange(len(rows), dtype=np.float32)[:, None]
    data = RankingData.from_arrays(X, [g for *_, g in rows], qid=[q for q, *_ in rows], docid=[d for _, d, _ in rows], sample_weight=weight)
    extended, scores = scores_of(data, run(*lines))
    score = {(q, d): s for q, d, s in lines if q in known}
    new = score.keys() - {(str(q), d) for q, d, _ in rows}
    assert set(documents(extended)) == set(rows) | {(int(q), d, -1.0) for q, d in new}
    assert extended.n_documents == len(scores) == len(rows) + len(new)
    # The caller's rows come first and as they were; the scores are in that order.
    assert scores[: len(rows)].tolist() == [score.get((str(q), d), -np.inf) for q, d, _ in rows]
    assert extended.ungroup(extended.X)[: len(rows)].tolist() == X.tolist()
    assert np.isnan(extended.ungroup(extended.X)[len(rows) :]).all()
    theirs = [(str(q), d) for q, d, _ in documents(extended)]
    assert extended.group(scores).tolist() == [score.get(key, -np.inf) for key in theirs]
    assert extended.sample_weight is not None
    assert extended.ungroup(extended.sample_weight).tolist() == [*weight, *[1.0] * len(new)]
    assert extended.qid.tolist() == data.qid.tolist()


# ---- examples


def test_qrels_and_run_by_hand(tmp_path: Path) -> None:
    qrels = read_qrels(file_of(tmp_path, "301 0 a 1\n301 0 b 0\n302 0 a 2\n"))
    lists = read_run(file_of(tmp_path, "302 Q0 z 1 0.5 dense\n999 Q0 a 1 9 dense\n301 Q0 c 1 7 dense\n301 Q0 a 2 6 dense\n"))
    data = from_trec(qrels, [lists])
    assert documents(data) == [("301", "a", 1), ("301", "b", 0), ("301", "c", -1), ("302", "a", 2), ("302", "z", -1)]
    np.testing.assert_array_equal(data.X[:, 0], np.array([6, np.nan, 7, np.nan, 0.5], np.float32))
    assert data.feature_names == ("dense",)


def test_interleaved_queries_keep_the_order_of_the_file() -> None:
    data = from_trec(judgments(("2", "x", 1), ("1", "y", 2), ("2", "w", 3)))
    assert documents(data) == [("2", "x", 1), ("2", "w", 3), ("1", "y", 2)]
    assert data.n_features == 0


def test_repeated_tags_are_told_apart() -> None:
    lists = [run(("1", "a", 1), tag=tag) for tag in ("t", "t", "t-2", "t")]
    assert from_trec(judgments(("1", "a", 1)), lists).feature_names == ("t", "t-2", "t-2-2", "t-3")


def test_scores_keep_double_precision() -> None:
    data = from_trec(judgments(("1", "a", 1)))
    score = 1 + 2**-50
    assert scores_of(data, run(("1", "a", score)))[1].tolist() == [score]


def test_nothing_to_add_returns_the_data_itself() -> None:
    data = from_trec(judgments(("1", "a", 1), ("1", "b", 0)))
    extended, scores = scores_of(data, run(("1", "b", 3)))
    assert extended is data
    assert scores.tolist() == [-np.inf, 3]


def test_scores_of_repeated_queries_and_comments() -> None:
    """A bootstrap sample may have a query twice: each time it gets the run's documents."""
    data = from_trec(judgments(("1", "a", 1), ("2", "b", 0))).take_queries([0, 0, 1])
    data = replace(data, comment=TextColumn.of(["x", "y", "z"]), query_weight=np.array([1.0, 2.0, 3.0]))
    extended, scores = scores_of(data, run(("1", "new", 4), ("1", "a", 3)))
    assert documents(extended) == [("1", "a", 1), ("1", "new", -1), ("1", "a", 1), ("1", "new", -1), ("2", "b", 0)]
    assert extended.group(scores).tolist() == [3, 4, 3, 4, -np.inf]
    assert scores.tolist() == [3, 3, -np.inf, 4, 4]
    assert extended.comment is not None
    assert extended.comment.tolist() == ["x", "", "y", "", "z"]
    assert extended.query_weight is not None
    assert extended.query_weight.tolist() == [1, 2, 3]


def test_bytes_that_are_not_utf8_survive(tmp_path: Path) -> None:
    data = from_trec(read_qrels(file_of(tmp_path, b"1 0 caf\xe9 1\n")))
    assert data.docid is not None
    assert data.docid.bytes_at(0) == b"caf\xe9"


def test_the_format_reads_and_streams(tmp_path: Path) -> None:
    path = file_of(tmp_path, "2 0 a 1\n1 0 b 0\n2 0 c 3\n")
    data = QrelsFormat().read(path, ReadOptions())
    assert documents(data) == [("2", "a", 1), ("2", "c", 3), ("1", "b", 0)]
    (ours,), (theirs,) = list(QrelsFormat().stream(path, ReadOptions()).blocks), list(stream_of(data).blocks)
    assert (ours.qid.tolist(), ours.y.tolist()) == (theirs.qid.tolist(), theirs.y.tolist()) == (["2", "2", "1"], [1, 3, 0])


def test_the_format_cannot_be_written() -> None:
    with pytest.raises(IncompatibleError, match=r"TREC qrels hold grades but no features; write \.xr, \.parquet or \.txt"):
        QrelsFormat().write(io.BytesIO(), stream_of(from_trec(judgments(("1", "a", 1)))))


@pytest.mark.parametrize(
    ("line", "qrels"),
    [
        (b"301 0 FT911-3 1\n", True),
        (b"301\t0\td\t-1.5", True),
        (b"301 Q0 d 1 14.89 bm25", False),
        (b"2 qid:7 1:0.5 2:1", False),
        (b"2 qid:7 1:0.5 4", False),
        (b"301 0 d relevant", False),
        (b"301 0 d 1_0", False),
        (b"2 qid:7 1:0.5 # docid x", False),
        (b"", False),
    ],
)
def test_what_lines_look_like(line: bytes, qrels: bool) -> None:
    assert looks_like_qrels(line) == qrels


# ---- errors


@pytest.mark.parametrize("block", [1, 1 << 18])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 0 a 1\n\n1 0 b\n", r"data\.qrels:3: has 3 columns instead of 4; expected e\.g\. '301 0 FT911-3 1'"),
        ("1 0 a 1\n1 0 b 1 9\n1 0 c\n", r"data\.qrels:2: has 5 columns instead of 4"),
        ("1 0 a 1\n \n1 0 b x\n1 0 c y\n", r"data\.qrels:3: grade 'x' is not a finite number; expected e\.g\."),
        ("1 0 a nan\n", r"data\.qrels:1: grade 'nan' is not a finite number"),
        ("1 0 a 1\n1 0 b -inf", r"data\.qrels:2: grade '-inf' is not a finite number"),
        ("1 0 a 1_0\n", r"data\.qrels:1: grade '1_0' is not a finite number"),
        ("1 0 a 1\n2 0 a 1\n\n1 0 a 2\n", r"data\.qrels:4: query '1' already has document 'a' on line 1; remove one"),
        ("", r"data\.qrels: is empty; expected lines such as '301 0 FT911-3 1'"),
        (" \n\n", r"data\.qrels: is empty"),
    ],
)
def test_bad_qrels(text: str, message: str, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trec, "TEXT_BLOCK", block)
    with pytest.raises(DataError, match=message):
        read_qrels(file_of(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 Q0 a 1 2.5\n", r"data\.run:1: has 5 columns instead of 6; expected e\.g\. '301 Q0 FT911-3 1 14\.89 bm25'"),
        ("1 0 a 1\n", r"data\.run:1: has 4 columns instead of 6"),
        ("1 Q0 a 1 high t\n", r"data\.run:1: score 'high' is not a finite number"),
        ("1 Q0 a 1 2 t\n1 Q0 b 1 inf t\n", r"data\.run:2: score 'inf' is not a finite number"),
        ("1 Q0 a 1 2 t\n1 Q0 a 2 1 t\n", r"data\.run:2: query '1' already has document 'a' on line 1"),
        ("", r"data\.run: is empty; expected lines such as '301 Q0"),
    ],
)
def test_bad_runs(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read_run(file_of(tmp_path, text, "data.run"))


def test_damaged_gzip(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"data\.qrels: the gzip stream is damaged"):
        read_qrels(file_of(tmp_path, gzip.compress(b"1 0 a 1\n" * 99)[:-9]))


def test_no_query_in_common() -> None:
    ranked = run(("q7", "a", 1))
    with pytest.raises(DataError, match=r"no query of run 'bm25' \(such as 'q7'\) is in the qrels \(such as '7'\)"):
        from_trec(judgments(("7", "a", 1)), [run(("7", "a", 1)), ranked])
    with pytest.raises(DataError, match=r"no query of run 'bm25' \(such as 'q7'\) is in the data \(such as '8'\)"):
        scores_of(RankingData.from_arrays(None, [1], qid=[8], docid=["a"]), ranked)


def test_data_without_document_ids() -> None:
    with pytest.raises(DataError, match="the data has no document ids"):
        scores_of(RankingData.from_arrays(None, [1], qid=[1]), run(("1", "a", 1)))


def test_a_score_too_large_for_a_feature() -> None:
    with pytest.raises(DataError, match=r"run 'bm25': score 1e\+300 is not a finite float32"):
        from_trec(judgments(("1", "a", 1)), [run(("1", "a", 1e300))])


def test_an_unjudged_grade_must_be_finite() -> None:
    with pytest.raises(DataError, match="grade of row 1 is nan"):
        from_trec(judgments(("1", "a", 1)), [run(("1", "b", 1))], unjudged=float("nan"))


# ---- pipes and long lines


@pytest.mark.parametrize("reader", [read_qrels, read_run])
@pytest.mark.parametrize("ending", [b"", b"\n"])
def test_a_line_that_does_not_end_is_refused(reader: Any, ending: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before more is read than it takes to see that."""
    sizes: list[int] = []
    open_bytes = files.open_bytes

    @contextmanager
    def counted(path: Path) -> Iterator[Any]:
        with open_bytes(path) as file:
            yield SimpleNamespace(read=lambda size: sizes.append(size) or file.read(size))

    monkeypatch.setattr(files, "open_bytes", counted)
    example = b"1 Q0 a 1 1 t\n" if reader is read_run else b"1 0 a 1\n"
    path = file_of(tmp_path, example * 3 + b"x" * (40 << 20) + ending)
    with pytest.raises(DataError, match=r":4: is longer than 1 MiB"):
        reader(path)
    assert 0 < sum(sizes) <= files.LINE + max(sizes) < 40 << 20


class Clock:
    """The time of `pipes`; what sleeps until there is a writer wakes when there is one, or else the time passes."""

    def __init__(self) -> None:
        self.now = 0.0
        self.writer: threading.Event | None = None

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        if self.writer is None:
            self.now += seconds
        else:
            assert self.writer.wait(HANGS)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(pipes, "time", clock)
    return clock


def fed(clock: Clock, path: Path, *parts: bytes, before: Callable[[], None] = lambda: None) -> threading.Thread:
    """Someone who writes to a pipe, and does something ``before`` each part."""
    clock.writer = threading.Event()

    def write(opened: threading.Event) -> None:
        with open(path, "wb") as pipe, suppress(BrokenPipeError):
            opened.set()
            for part in parts:
                before()
                pipe.write(part)
                pipe.flush()

    writer = threading.Thread(target=write, args=(clock.writer,))
    writer.start()
    return writer


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("packed", [False, True])
def test_a_run_comes_through_a_pipe_however_slow(
    slow: bool, packed: bool, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow writer is silent, until the reader waits and for longer than it would wait for a writer, before each part."""
    waits = threading.Semaphore(0)

    def select_and_tell(*lists: Any) -> Any:
        waits.release()
        return select.select(*lists)

    def be_silent() -> None:
        assert waits.acquire(timeout=HANGS)
        clock.now += 2 * pipes.PATIENCE

    monkeypatch.setattr(pipes, "select", SimpleNamespace(poll=select.poll, POLLHUP=select.POLLHUP, select=select_and_tell))
    os.mkfifo(tmp_path / "pipe")
    text = b"1 Q0 a 1 2.5 t\n1 Q0 b 2 1.5 t\n"
    text = gzip.compress(text) if packed else text
    writer = fed(clock, tmp_path / "pipe", text[:9], text[9:], before=be_silent if slow else lambda: None)
    assert read_run(tmp_path / "pipe").score.tolist() == [2.5, 1.5]
    writer.join()


def test_a_pipe_without_a_writer_and_one_without_an_end(clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="nothing writes to"):
        read_run(tmp_path / "pipe")
    assert pipes.PATIENCE < clock.now < pipes.PATIENCE + 1
    writer = fed(clock, tmp_path / "pipe")
    with pytest.raises(DataError, match="is empty"):
        read_run(tmp_path / "pipe")
    writer.join()
    monkeypatch.setattr(pipes, "MOST", 1 << 20)
    writer = fed(clock, tmp_path / "pipe", b"1 Q0 a 1 2.5 t\n" * 200_000)
    with pytest.raises(DataError, match="gave more than 1 MiB"):
        read_run(tmp_path / "pipe")
    writer.join()


def test_scores_are_read_no_further_than_it_takes(clock: Clock, tmp_path: Path) -> None:
    data = RankingData.from_arrays(None, [1, 0], group=[2])
    os.mkfifo(tmp_path / "pipe")
    writer = fed(clock, tmp_path / "pipe", b"0.5\n" * 500_000)
    with pytest.raises(DataError, match="more lines than the 2 documents"):
        read_scores(tmp_path / "pipe", data)
    writer.join()
    (tmp_path / "scores").write_text("1\n2\n\n \n")
    assert read_scores(tmp_path / "scores", data)[1].tolist() == [1.0, 2.0]
