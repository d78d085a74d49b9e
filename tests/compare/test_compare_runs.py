"""Runs compared as they are: one rule, the numbers of each run alone, letters, streams, and what is wrong with bad input."""

import gzip
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from typer.testing import CliRunner

import exactrank as er
from exactrank.cli import app
from exactrank.compare.standings import pairs, shared_values, standings
from exactrank.data.formats.trec import RetrievalRun
from exactrank.data.scores import read_scores
from exactrank.errors import DataError, MeasureError

quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
PROGRAM = Path(sys.executable).with_name("exactrank")
MEASURES = ["nDCG@3", "RR", "AP", "PairwiseCorrect", "Bpref", "ndcg_cut_5"]


def called(code: int, *arguments: Any) -> str:
    result = CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "200"})
    assert result.exit_code == code, result.output
    return str(result.output)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Graded judgments of 30 queries, of which each run retrieved some documents and others that nobody judged."""
    rng = np.random.default_rng(3)
    grades = {(q, d): int(rng.integers(0, 4)) for q in range(30) for d in range(8)}
    (tmp_path / "test.qrels").write_text("".join(f"{q} 0 d{d} {grade}\n" for (q, d), grade in grades.items()))
    for name, sense, least in (("good", 1.0, 0), ("fair", 0.4, 0), ("bad", -1.0, 3)):
        with open(tmp_path / f"{name}.run", "w") as file:
            for q in range(least, 30):
                for d in rng.choice(14, 9, replace=False):
                    score = round(sense * grades.get((q, int(d)), 1) + float(rng.normal()), 1)
                    file.write(f"{q} Q0 d{d} 1 {score} {name}\n")
    rows = [f"{grade} qid:{q} 1:{grade + rng.normal():.3f} 2:{rng.normal():.3f} # docid = d{d}\n" for (q, d), grade in grades.items()]
    (tmp_path / "data.txt").write_text("".join(rows))
    (tmp_path / "model.json").write_text("[1.0, 0.1]")
    monkeypatch.chdir(tmp_path)
    return tmp_path


RUNS = ["good.run", "fair.run", "bad.run"]


def test_one_rule(files: Path) -> None:
    """evaluate of one run, of several, compare on the command line and with methods, and Python: the same numbers to the bit."""
    flags = [word for name in MEASURES for word in ("-m", name)]
    alone = {run: json.loads(called(0, "evaluate", "test.qrels", run, *flags, "--json")) for run in RUNS}
    together = json.loads(called(0, "evaluate", "test.qrels", *RUNS, *flags, "-q", "--json"))["runs"]
    compared = json.loads(called(0, "compare", "test.qrels", *(word for run in RUNS for word in ("--run", run)), *flags, "--json"))
    python = er.compare_runs(er.read("test.qrels"), RUNS, MEASURES)
    for i, run in enumerate(RUNS):
        name = run.partition(".")[0]
        assert alone[run]["unjudged"] == together[name]["unjudged"] == compared["fits"][i]["settings"]["unjudged"] > 0
        for measure in MEASURES:
            own = alone[run]["measures"][measure]
            assert together[name]["measures"][measure]["mean"] == own["mean"] == standings(python, "data", measure)[i].mean
            assert together[name]["measures"][measure]["interval"] == pytest.approx(own["interval"], abs=1e-15)
            assert list(together[name]["measures"][measure]["per_query"].values()) == compared["fits"][i]["test"][measure]
            assert np.mean(compared["fits"][i]["test"][measure]) == pytest.approx(own["mean"], abs=1e-15)
    for shown in (called(0, "evaluate", "test.qrels", "good.run"), called(0, "evaluate", "test.qrels", *RUNS), str(python)):
        assert "count as not relevant and keep their ranks, as in trec_eval" in " ".join(shown.split())


def test_runs_beside_methods_have_the_same_numbers(files: Path) -> None:
    called(0, "compare", "data.txt", "--methods", "ridge", "--run", "good.run", "--folds", 3, "--out", "out", "--workers", 1)
    comparison = er.read_comparison("out")
    shared = shared_values(comparison, "data", "nDCG@10")
    alone = json.loads(called(0, "evaluate", "data.txt", "good.run", "-m", "nDCG@10", "-q", "--json"))["measures"]["nDCG@10"]["per_query"]
    assert dict(zip(shared.qid, shared.values["good"].tolist(), strict=True)) == alone
    assert "nobody judged (good: " in comparison.to_markdown()


def test_letters_are_those_of_the_tests(files: Path) -> None:
    comparison = er.compare_runs(er.read("test.qrels"), RUNS, "nDCG@10")
    for pair in pairs(comparison, "data", "nDCG@10"):
        better, worse = (pair.first, pair.second) if pair.difference > 0 else (pair.second, pair.first)
        names = [one.method for one in standings(comparison, "data", "nDCG@10")]
        marks = {one.method: one.better_than for one in standings(comparison, "data", "nDCG@10")}
        assert ("abc"[names.index(worse)] in marks[better]) == (pair.adjusted["randomization"] < 0.05)
    assert "c" in standings(comparison, "data", "nDCG@10")[0].better_than
    table = called(0, "evaluate", "test.qrels", *RUNS, "-m", "nDCG@10", "-m", "RR")
    assert all(f"{one.mean:.4f}" in table for one in standings(comparison, "data", "nDCG@10"))
    assert "nDCG@10 is nDCG(gain='exp2'" in table


three = st.integers(0, 2)
judged = st.lists(st.tuples(three, st.integers(0, 5), three), min_size=1, max_size=14, unique_by=lambda row: row[:2])
ranked = st.lists(st.tuples(three, st.integers(0, 8), st.integers(-2, 2)), min_size=1, max_size=14, unique_by=lambda row: row[:2])


@quick
@given(rows=judged, lists=st.lists(ranked, min_size=2, max_size=3), complete=st.booleans())
def test_every_run_is_worth_what_it_is_worth_alone(rows: list[Any], lists: list[list[Any]], complete: bool) -> None:
    data = er.RankingData.from_arrays(None, [g for *_, g in rows], qid=[q for q, *_ in rows], docid=[str(d) for _, d, _ in rows])
    runs = {}
    for i, some in enumerate(lists):
        lines = [*some, (rows[0][0], 9, 0.0)]
        runs[f"r{i}"] = RetrievalRun(
            [str(q) for q, *_ in lines], [str(d) for _, d, _ in lines], np.array([float(s) for *_, s in lines]), "x"
        )
    comparison = er.compare_runs(data, runs, MEASURES, complete=complete)
    for fit, run in zip(comparison.fits, runs.values(), strict=True):
        alone = er.evaluate(*xr_scores(data, run), MEASURES, complete=complete)
        for name in MEASURES:
            np.testing.assert_array_equal(fit.test[name], alone[name].values)


def xr_scores(data: er.RankingData, run: RetrievalRun) -> tuple[er.RankingData, np.ndarray]:
    """The judged documents and those that the run adds, written out."""
    keys = list(zip(np.repeat(data.qid, data.sizes).tolist(), data.docid or [], strict=True))
    added = [(q, d) for q in data.qid.tolist() for d in run.by_query.get(str(q), {}) if (q, d) not in keys]
    grades = [*data.y.tolist(), *[-1.0] * len(added)]
    scores = [run.by_query.get(str(q), {}).get(d, -np.inf) for q, d in keys + added]
    both = keys + added
    return er.RankingData.from_arrays(None, grades, qid=[q for q, _ in both], docid=[d for _, d in both]), np.array(scores)


def test_presets_hold_for_all_runs(files: Path) -> None:
    flags = ["-m", "nDCG@10", "--preset", "trec_eval", "--json"]
    together = json.loads(called(0, "evaluate", "test.qrels", *RUNS, *flags))["runs"]
    for run in RUNS:
        alone = json.loads(called(0, "evaluate", "test.qrels", run, *flags))["measures"]["nDCG@10"]
        assert together[run.partition(".")[0]]["measures"]["nDCG@10"]["mean"] == alone["mean"]
        assert alone["queries"] == (27 if run == "bad.run" else 30)
        assert "gain='linear'" in alone["definition"]


def test_a_model_a_run_and_scores_side_by_side(files: Path) -> None:
    called(0, "predict", "model.json", "data.txt", "--out", "scores.txt")
    called(0, "predict", "model.json", "data.txt", "--out", "mine.run.gz")
    assert gzip.decompress((files / "mine.run.gz").read_bytes()).count(b" exactrank\n") == 240
    single_values = [
        json.loads(called(0, "evaluate", "data.txt", each, "-m", "AP", "--json"))["measures"]
        for each in ("model.json", "scores.txt", "mine.run.gz")
    ]
    assert single_values[0] == single_values[1] == single_values[2]
    several = json.loads(called(0, "evaluate", "data.txt", "model.json", "good.run", "scores.txt", "-m", "AP", "--json"))["runs"]
    assert several["model"]["measures"]["AP"]["mean"] == several["scores"]["measures"]["AP"]["mean"] == single_values[0]["AP"]["mean"]
    message = called(2, "evaluate", "test.qrels", "good.run", "model.json")
    assert "model.json: the data has 0 features but the model has 2" in message


def test_predict_writes_runs(files: Path) -> None:
    data = er.read("data.txt")
    scores = er.load("model.json").predict(data)
    called(0, "predict", "model.json", "data.txt", "--out", "a.run", "--depth", 3, "--tag", "mine")
    er.write_run(data, "b.run", scores, "mine", depth=3)
    assert (files / "a.run").read_text() == (files / "b.run").read_text()
    called(0, "predict", "model.json", "data.txt", "--out", "a.txt")
    assert (files / "a.txt").read_text() == "".join(f"{score!r}\n" for score in scores.tolist())
    called(0, "predict", "model.json", "data.txt", "--out", "c.trec", "--format", "run")
    assert np.array_equal(read_scores("c.trec", data)[1], scores)
    called(0, "predict", "model.json", "data.txt", "--out", "d.run", "--format", "scores")
    assert (files / "d.run").read_text() == (files / "a.txt").read_text()


@contextmanager
def fed(content: bytes) -> Iterator[None]:
    """Standard input is a pipe through which ``content`` comes."""
    out, into = os.pipe()
    before = os.dup(0)
    os.dup2(out, 0)
    os.close(out)
    writer = threading.Thread(target=lambda: (os.write(into, content), os.close(into)))
    writer.start()
    try:
        yield
    finally:
        writer.join()
        os.dup2(before, 0)
        os.close(before)


def test_streams(files: Path) -> None:
    """Wherever an input may be a stream it is the same as the file, gzip or not; but only one may be."""
    for words, content in (
        (["evaluate", "-", "model.json"], "data.txt"),
        (["evaluate", "data.txt", "-"], "model.json"),
        (["evaluate", "test.qrels", "-"], "good.run"),
        (["evaluate", "-", "good.run", "fair.run"], "test.qrels"),
        (["predict", "model.json", "-"], "data.txt"),
        (["info", "-"], "data.txt"),
    ):
        expected = json.loads(called(0, *[content if word == "-" else word for word in words], "--json"))
        for packed in (False, True):
            whole = (files / content).read_bytes()
            with fed(gzip.compress(whole) if packed else whole):
                assert json.loads(called(0, *words, "--json")) == expected
    with fed((files / "data.txt").read_bytes()):
        called(0, "convert", "-", "copy.xr")
    assert np.array_equal(er.read("copy.xr").X, er.read("data.txt").X)
    with fed((files / "good.run").read_bytes()):
        assert "mine" in called(0, "compare", "test.qrels", "--run", "mine=-", "--run", "fair.run")
    for twice in (["evaluate", "-", "-"], ["compare", "-", "--run", "a=-", "--run", "good.run"]):
        assert "- is given 2 times, but standard input can be read once; give files for the others" in called(2, *twice)
    with fed(b"x qid:1 1:2\n"):
        assert "/dev/stdin:1: grade 'x' is not a finite number" in called(2, "info", "-")


def test_a_pipe_from_data_to_numbers(files: Path) -> None:
    script = f"{PROGRAM} predict model.json - --format run < data.txt | {PROGRAM} evaluate data.txt - -m RR --json"
    result = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert json.loads(result.stdout) == json.loads(called(0, "evaluate", "data.txt", "model.json", "-m", "RR", "--json"))
    result = subprocess.run(["bash", "-c", f"{PROGRAM} evaluate test.qrels - <&-"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert "standard input or output is closed" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "test.qrels", "other.run"], "other.run: no query of run 'o' (such as '99') is in the data (such as '0'); pass files"),
        (["evaluate", "test.qrels", "good.run", "other.run"], "other.run: no query of run 'o'"),
        (["evaluate", "test.qrels", "twice.run"], "twice.run:2: query '0' already has document 'd0' on line 1; remove one"),
        (["evaluate", "test.qrels", "good.run", "empty.run"], "empty.run is empty; expected one score per line or a TREC run"),
        (["evaluate", "test.qrels", "good.run", "good.run"], "a file is given twice"),
        (["evaluate", "test.qrels", "model.json"], "model.json: the data has 0 features but the model has 2"),
        (["evaluate", "test.qrels", "good.run", "nothing.run"], "nothing.run does not exist"),
        (["evaluate", "test.qrels", "good.run", "--feature", "1"], "not both"),
        (["compare", "test.qrels", "--run", "model.json"], "model.json is a model, not scores or a run; score the data with it"),
        (["compare", "test.qrels", "--run", "other.run", "--run", "good.run"], "other.run: no query of run 'o'"),
        (["compare", "test.qrels", "--run", "good.run", "--run", "good=fair.run"], "two runs are called 'good'; give one another name"),
        (["compare", "test.qrels", "data.txt", "--run", "good.run"], "runs are of one data set, but there are 2"),
        (
            ["compare", "test.qrels", "--run", "good.run", "--trials", "3"],
            "--trials: nothing is fitted where runs are compared as they are",
        ),
        (["compare", "test.qrels", "--run", "good.run", "--baseline", "x"], "the baseline 'x' is not among the runs; they are good"),
        (["compare", "test.qrels"], "there is nothing to compare; name --methods to fit, or give --run FILE"),
        (["compare", "test.qrels", "--methods", "ridge"], "give --out FOLDER"),
        (["compare", "test.qrels", "--run", "=good.run"], "--run '=good.run' is not NAME=VALUE"),
        (
            ["predict", "model.json", "data.txt", "--out", "x.run", "--tag", "my run"],
            "the run's name is 'my run', but blanks separate the columns",
        ),
        (["predict", "model.json", "blank.csv", "--out", "x.run"], "the document id of row 0 is 'a b'"),
        (["predict", "model.json", "data.txt", "--out", "x.txt", "--depth", "3"], "--depth and --tag have an effect on runs only"),
        (["predict", "model.json", "data.txt", "--format", "trec"], "--format 'trec' is not one of scores, run"),
        (["predict", "model.json", "data.txt", "--format", "run", "--json"], "--json prints scores, not a run"),
    ],
)
def test_bad_input(files: Path, arguments: list[str], message: str) -> None:
    (files / "other.run").write_text("99 Q0 d0 1 1 o\n")
    (files / "twice.run").write_text("0 Q0 d0 1 1 t\n0 Q0 d0 2 0.5 t\n")
    (files / "empty.run").write_text("")
    (files / "blank.csv").write_text("query_id,doc_id,relevance,x0,x1\n1,a b,1,1,2\n")
    before = sorted(path.name for path in files.iterdir())
    assert message in " ".join(called(2, *arguments).split())
    assert sorted(path.name for path in files.iterdir()) == before


def test_what_python_is_given(files: Path) -> None:
    data = er.read("test.qrels")
    for runs, message in (
        ({}, "give at least one run"),
        ("good.run", "give at least one run"),
        (["good.run", "good.run"], "good.run occurs twice"),
    ):
        with pytest.raises(DataError, match=message):
            er.compare_runs(data, runs)  # type: ignore[arg-type]
    with pytest.raises(MeasureError, match="name at least one measure"):
        er.compare_runs(data, ["good.run"], [])
    mixed = er.compare_runs(data, {"run": er.read_run("good.run"), "path": "good.run", "scores": data.y}, ["nDCG@10"])
    assert mixed.fits[0].test == mixed.fits[1].test
    assert [method.about for method in mixed.methods] == ["The run 'good'", "Scores from good.run", "Scores as given"]


def test_the_report_of_runs(files: Path) -> None:
    called(0, "compare", "test.qrels", "--run", "good.run", "--run", "bad.run", "--out", "out", "-m", "ndcg_cut_10", "-m", "RR")
    comparison = er.read_comparison("out")
    assert [one.mean for one in standings(comparison, "test", "ndcg_cut_10")] == [
        er.evaluate(*read_scores(run, er.read("test.qrels")), "ndcg_cut_10").means["ndcg_cut_10"] for run in ("good.run", "bad.run")
    ]
    page = (files / "out" / "report.html").read_text()
    assert "good" in page
    assert "ndcg_cut_10" in page
    assert "fit s" not in (files / "out" / "tables.md").read_text()
