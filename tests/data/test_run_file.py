"""Runs that are written: they say what the scores say, and any tool that reads them comes to the same numbers."""

import gzip
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import exactrank as er
from exactrank.data.formats.run_file import run_lines
from exactrank.data.ranking_data import RankingData
from exactrank.data.scores import read_scores
from exactrank.errors import DataError, IncompatibleError, OutputExistsError, SettingError

quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
tokens = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=" \t\n\r\v\f"), min_size=1, max_size=3)
#: Ties, neighbors that single precision takes for ties, and the ends of the range.
numbers = st.sampled_from([0.0, -0.0, 1.0, math.nextafter(1, 2), 1 + 2**-23, -1.0, 5e-324, 1e-45, 1.7e308, -1.7e308, 0.1, -math.inf])
scored = st.lists(
    st.tuples(st.integers(1, 3), tokens, st.integers(0, 3), st.one_of(numbers, st.floats(allow_nan=False, allow_infinity=False))),
    min_size=1,
    max_size=12,
    unique_by=lambda row: row[:2],
).filter(lambda rows: any(row[3] > -math.inf for row in rows))


def data_of(rows: list[Any], named: bool = True) -> tuple[RankingData, np.ndarray]:
    ids = [d for _, d, _, _ in rows] if named else None
    data = RankingData.from_arrays(None, [g for _, _, g, _ in rows], qid=[q for q, _, _, _ in rows], docid=ids)
    return data, np.array([s for *_, s in rows])


@quick
@given(rows=scored, named=st.booleans(), packed=st.booleans(), tag=tokens)
def test_a_run_reads_back_to_the_same_scores_and_values(rows: list[Any], named: bool, packed: bool, tag: str, tmp_path: Path) -> None:
    data, scores = data_of(rows, named)
    path = tmp_path / ("a.run.gz" if packed else "a.run")
    er.write_run(data, path, scores, tag, force=True)
    assert (path.read_bytes()[:2] == b"\x1f\x8b") == packed
    extended, back = read_scores(path, data)
    assert extended.n_documents == data.n_documents
    assert back.tolist() == scores.tolist()
    assert er.read_run(path).tag == tag
    single = np.abs(scores[np.isfinite(scores)]).max() < 3e38  # trec_eval compares in single precision
    measures = ["nDCG@2", "AP", "nDCG(ties='expected')", "nDCG(ties='pessimistic')"] + ["RR(ties='docid')"] * int(named and single)
    ours, theirs = er.evaluate(data, scores, measures), er.evaluate(extended, back, measures)
    np.testing.assert_array_equal(ours.per_query, theirs.per_query)


@quick
@given(rows=scored, depth=st.integers(1, 4))
def test_lines_are_ranked_as_trec_eval_ranks_them(rows: list[Any], depth: int) -> None:
    data, scores = data_of(rows)
    lines = [line.decode().rstrip("\n").split(" ") for line in run_lines(data, scores, depth=depth)]
    expected = []
    for query in dict.fromkeys(q for q, *_ in rows):
        own = [(s, d.encode()) for q, d, _, s in rows if q == query and s > -math.inf]
        for rank, (score, document) in enumerate(sorted(own, key=lambda pair: (pair[0], pair[1]), reverse=True)[:depth], 1):
            expected.append([str(query), "Q0", document.decode(), str(rank), repr(score), "exactrank"])
    assert [line[:4] + line[5:] for line in lines] == [line[:4] + line[5:] for line in expected]
    assert [float(line[4]) for line in lines] == [float(line[4]) for line in expected]


def test_other_tools_come_to_the_same_numbers(tmp_path: Path) -> None:
    trec = pytest.importorskip("pytrec_eval")
    rng = np.random.default_rng(0)
    queries, documents = np.repeat(np.arange(40), 12), [f"d{i}" for i in range(480)]
    data = RankingData.from_arrays(None, rng.integers(0, 3, 480), qid=queries, docid=documents)
    scores = np.round(rng.normal(size=480), 1) + rng.choice([0, 1e-12], 480)  # ties, and what is a tie in single precision
    er.write_run(data, tmp_path / "a.run", scores)
    with open(tmp_path / "a.run") as lines:
        run = trec.parse_run(lines)
    qrels = {str(q): {d: int(g) for d, g, own in zip(documents, data.y, queries, strict=True) if own == q} for q in range(40)}
    theirs = trec.RelevanceEvaluator(qrels, {"ndcg_cut.5", "map", "recip_rank"}).evaluate(run)
    ours = er.evaluate(data, scores, ["nDCG@5", "AP", "RR"], preset="trec_eval")
    for name, measure in zip(("ndcg_cut_5", "map", "recip_rank"), ours, strict=True):
        np.testing.assert_allclose(ours[measure].values, [theirs[str(q)][name] for q in range(40)], rtol=1e-6)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_need_no_grades(library: str, tmp_path: Path) -> None:
    frames = pytest.importorskip(library)
    table = {"query_id": ["b", "a", "b"], "doc_id": ["x", "y", "z"], "score": [0.1, 2.0, None], "mine": [1, 2, 3]}
    er.write_run(frames.DataFrame(table), tmp_path / "a.run")
    assert (tmp_path / "a.run").read_text() == "b Q0 x 1 0.1 exactrank\na Q0 y 1 2.0 exactrank\n"
    er.write_run(frames.DataFrame(table), tmp_path / "b.run", "mine", "other")
    assert (tmp_path / "b.run").read_text() == "b Q0 z 1 3.0 other\nb Q0 x 2 1.0 other\na Q0 y 1 2.0 other\n"
    er.write_run(frames.DataFrame(table), tmp_path / "c.run", [3, 2, 1], columns=er.data.Columns(doc="mine"))
    assert (tmp_path / "c.run").read_text() == "b Q0 1 1 3.0 exactrank\nb Q0 3 2 1.0 exactrank\na Q0 2 1 2.0 exactrank\n"
    with pytest.raises(DataError, match=r"no column 'rank'; it has 'query_id', 'doc_id', 'score', 'mine'; name the one"):
        er.write_run(frames.DataFrame(table), tmp_path / "d.run", "rank")
    with pytest.raises(DataError, match=r"'doc_id' holds String, not numbers; convert it"):
        er.write_run(frames.DataFrame(table), tmp_path / "d.run", "doc_id")
    with pytest.raises(IncompatibleError, match="expected a pandas"):
        er.write_run([1, 2], tmp_path / "d.run")
    assert not (tmp_path / "d.run").exists()


def test_a_feature_can_be_written(tmp_path: Path) -> None:
    data = RankingData.from_arrays([[0.5], [np.nan], [1.5]], [0, 0, 1], group=[3], feature_names=["bm25"])
    er.write_run(data, tmp_path / "a.run", "bm25", "bm25")
    assert (tmp_path / "a.run").read_text() == "0 Q0 2 1 1.5 bm25\n0 Q0 0 2 0.5 bm25\n"
    with pytest.raises(OutputExistsError, match="--force"):
        er.write_run(data, tmp_path / "a.run", "bm25")


def test_rows_stand_for_ids_and_for_nothing_else(tmp_path: Path) -> None:
    """Of data without ids a run must name rows of the query itself: a number may be an id of something else."""
    data = RankingData.from_arrays(None, [1, 0, 2], qid=[5, 6, 5])
    er.write_run(data, tmp_path / "a.run", [1, 2, 3])
    assert (tmp_path / "a.run").read_text() == "5 Q0 2 1 3.0 exactrank\n5 Q0 0 2 1.0 exactrank\n6 Q0 1 1 2.0 exactrank\n"
    for odd in ("5 Q0 1 1 0.5 msmarco\n", "6 Q0 7067032 1 0.5 msmarco\n"):
        (tmp_path / "b.run").write_text(odd)
        with pytest.raises(
            DataError, match=r"no document ids, and '\d+' of run 'msmarco' is not a row of query '[56]'.*source with document ids"
        ):
            read_scores(tmp_path / "b.run", data)


@pytest.mark.parametrize(
    ("docid", "qid", "scores", "more", "message"),
    [
        (["a b", "c"], [1, 1], [1, 2], {}, r"document id of row 0 is 'a b', but blanks separate the columns.*without blanks"),
        (["", "c"], [1, 1], [1, 2], {}, r"document id of row 0 is ''.*at least one character"),
        (["a", "c\n"], [2, 1], [1, 2], {}, r"document id of row 1 is 'c\\n'"),
        (["a", "a"], [1, 1], [1, 2], {}, r"query '1' has document 'a' twice.*different ids"),
        (["a", "b"], ["x y", "x"], [1, 2], {}, r"query id is 'x y'.*without blanks"),
        (["a", "b"], np.array([1, "1"], object), [1, 2], {}, r"two queries would both be written '1'.*differ as text"),
        (["a", "b"], [1, 1], [1, np.nan], {}, r"score of row 1 is nan; a run holds finite scores, or -inf"),
        (["a", "b"], [1, 1], [np.inf, 1], {}, r"score of row 0 is inf"),
        (["a", "b"], [1, 1], [-np.inf] * 2, {}, r"every score is -inf.*give scores"),
        (["a", "b"], [1, 1], [1], {}, r"shape \(1,\) for 2 documents; give one number per row"),
        (["a", "b"], [1, 1], ["x", "y"], {}, r"scores must hold numbers"),
        (["a", "b"], [1, 1], [1, 2], {"name": "my run"}, r"the run's name is 'my run'.*without blanks"),
        (["a", "b"], [1, 1], [1, 2], {"name": ""}, r"the run's name is ''"),
    ],
)
def test_what_no_run_can_hold(docid: Any, qid: Any, scores: Any, more: Any, message: str, tmp_path: Path) -> None:
    data = RankingData.from_arrays(None, [1, 0], qid=qid, docid=docid)
    with pytest.raises(DataError, match=message):
        er.write_run(data, tmp_path / "a.run", scores, **more)
    assert list(tmp_path.iterdir()) == []


def test_ids_of_documents_that_were_not_retrieved_are_nobodys_business() -> None:
    data = RankingData.from_arrays(None, [1, 0], qid=[1, 1], docid=["a b", "c"])
    assert list(run_lines(data, np.array([-np.inf, 1]))) == [b"1 Q0 c 1 1.0 exactrank\n"]


def test_a_depth_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"depth=0 leaves no documents.*at least 1"):
        er.write_run(RankingData.from_arrays(None, [1], group=[1]), tmp_path / "a.run", [1.0], depth=0)


def test_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    sys.stdout.flush()
    er.write_run(RankingData.from_arrays(None, [1], qid=["é"], docid=[b"\xff"]), "-", [1.0])
    assert capfdbinary.readouterr().out == "é Q0 ".encode() + b"\xff 1 1.0 exactrank\n"


def test_gzip_holds_no_date_and_no_name(tmp_path: Path) -> None:
    data = RankingData.from_arrays(None, [1], group=[1])
    for name in ("a.run.gz", "b.run.gz"):
        er.write_run(data, tmp_path / name, [1.0])
    assert (tmp_path / "a.run.gz").read_bytes() == (tmp_path / "b.run.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.run.gz").read_bytes()) == b"0 Q0 0 1 1.0 exactrank\n"
