"""The command line as a user meets it: real processes, tables, JSON, exit codes, errors without tracebacks."""

import fcntl
import gzip
import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import exactrank as er
from exactrank.cli import app
from tests.driver import commands

HANGS = 300  #: seconds
PROGRAM = Path(sys.executable).with_name("exactrank")


def run(*arguments, cwd=None):
    """A process of its own, forked where everything is imported."""
    return commands().run(*arguments, at=cwd or Path.cwd(), COLUMNS="200")


def ok(*arguments, **options):
    result = run(*arguments, **options)
    assert result.code == 0, result.err
    return result.out


def refused(code, message, *arguments, **options):
    result = run(*arguments, **options)
    assert result.code == code, result.err
    assert message in result.err
    assert "Traceback" not in result.err
    assert result.out == ""


def called(code, *arguments):
    """What the command prints when it is called in this process, which saves the imports: for tests of many cases."""
    result = CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "200"})
    assert result.exit_code == code, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.output


@pytest.fixture
def letor(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text(
        "2 qid:10 1:0.5 2:1 # docid = A\n0 qid:10 1:0.7 2:1 # docid = B\n1 qid:11 1:0.1 2:1 # docid = C\n0 qid:10 1:0.2 2:1 # docid = D\n"
    )
    return path


def test_info(letor):
    shown = ok("info", letor)
    for part in ("queries", "2", "documents", "4", "1 / 2 / 3", "0: 2 (50.0%)", "constant features", "interleaved"):
        assert part in shown
    summary = json.loads(ok("info", letor, "--json"))
    assert summary["grades"] == {"0": 2, "1": 1, "2": 1}
    assert summary["list_lengths"] == {"min": 1, "median": 2.0, "max": 3}
    assert summary["constant_features"] == ["2"]
    assert summary["single_grade_queries"] == 1
    assert summary["interleaved"] is True


def test_info_of_folds(tmp_path):
    for part in ("train", "vali", "test"):
        path = tmp_path / "Fold1" / f"{part}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text("1 qid:1 1:1\n0 qid:1 1:2\n")
    assert list(json.loads(ok("info", tmp_path, "--json"))) == ["Fold1/train", "Fold1/valid", "Fold1/test"]
    assert "Fold1/test" in ok("info", tmp_path)


def test_generate_convert_evaluate(tmp_path):
    ok("generate", "a.txt.gz", "--queries", 30, "--documents", 7, "--features", 5, "--seed", 3, cwd=tmp_path)
    text = gzip.decompress((tmp_path / "a.txt.gz").read_bytes())
    for name in ("a.xr", "a.parquet", "a.csv", "a.txt"):
        written = json.loads(ok("convert", "a.txt.gz", name, "--json", cwd=tmp_path))
        assert written["documents"] == 210
        assert written["bytes"] == (tmp_path / name).stat().st_size
        ok("convert", name, f"back-{name}.txt", cwd=tmp_path)
        assert (tmp_path / f"back-{name}.txt").read_bytes() == text
    results = [
        json.loads(ok("evaluate", name, "--feature", 2, "-m", "nDCG@5", "--json", cwd=tmp_path)) for name in ("a.xr", "a.csv", "a.txt.gz")
    ]
    assert results[0] == results[1] == results[2]
    again = ok("generate", "b.txt.gz", "--queries", 30, "--documents", 7, "--features", 5, "--seed", 3, "--threads", 1, cwd=tmp_path)
    assert "210 documents" in again
    assert (tmp_path / "b.txt.gz").read_bytes() == (tmp_path / "a.txt.gz").read_bytes()


def test_evaluate_scores_by_line(letor, tmp_path):
    (tmp_path / "s.txt").write_text("0.1\n0.2\n1\n0.3\n")
    shown = json.loads(ok("evaluate", letor, tmp_path / "s.txt", "-m", "RR", "-m", "nDCG@10", "-q", "--json"))["measures"]
    assert shown["RR"]["per_query"] == {"10": 1 / 3, "11": 1.0}
    assert shown["RR"]["mean"] == pytest.approx(2 / 3)
    assert shown["nDCG@10"]["definition"] == "nDCG(gain='exp2', discount='log2', short='pad', empty=0, ties='input')@10"
    table = ok("evaluate", letor, tmp_path / "s.txt", "-m", "RR", "-q")
    assert "0.3333" in table
    assert "RR(rel=1, empty=0, ties='input')" in table


def test_evaluate_a_run(letor, tmp_path):
    (tmp_path / "run.trec").write_text("10 Q0 D 1 9.5 bm25\n10 Q0 X 2 8 bm25\n10 Q0 A 3 7 bm25\n")
    shown = json.loads(ok("evaluate", letor, tmp_path / "run.trec", "-m", "RR", "-q", "--json"))["measures"]["RR"]
    assert shown["per_query"] == {"10": 1 / 3, "11": 0.0}
    shown = json.loads(ok("evaluate", letor, tmp_path / "run.trec", "-m", "RR", "--preset", "trec_eval", "-q", "--json"))["measures"]["RR"]
    assert shown["per_query"] == {"10": 1 / 3, "11": None}
    assert (shown["queries"], shown["skipped"]) == (1, 1)


def test_scores_from_a_pipe(letor):
    program = f"{PROGRAM} evaluate {letor} <(printf '0.1\\n0.2\\n1\\n0.3\\n') -m RR --json"
    result = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False)
    assert json.loads(result.stdout)["measures"]["RR"]["mean"] == pytest.approx(2 / 3)


def test_a_run_that_comes_through_a_pipe_in_parts(letor):
    """The first part is more than the pipe holds, so that the second is written once the first is being read."""
    hears, says = os.pipe()
    fcntl.fcntl(says, fcntl.F_SETPIPE_SZ, 4096)
    command = [PROGRAM, "evaluate", letor, f"/dev/fd/{hears}", "-m", "RR", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, pass_fds=[hears]) as process:
        os.close(hears)
        with open(says, "wb", buffering=0) as pipe:
            pipe.write(b"".join(b"10 Q0 X%d 1 9.5 bm25\n" % number for number in range(500)))
            pipe.write(b"10 Q0 A 1 2.5 bm25\n")
        shown, _ = process.communicate()
    assert json.loads(shown)["measures"]["RR"]["mean"] == 1 / 501 / 2


@pytest.mark.parametrize(
    ("shell", "code", "message"),
    [
        ("{run} >&-", 1, "standard output is closed"),
        ("{run} > /dev/full", 1, "No space left on device"),
        ("{program} convert {letor} - >&-", 1, "standard input or output is closed"),
        ("{run} --feature 7 2>&- >/dev/null", 2, ""),
        ("{run} <&- >/dev/null", 0, ""),
        ("env -u HOME TMPDIR=/nonexistent {run} >/dev/null", 0, ""),
        ("PYTHONIOENCODING=ascii LC_ALL=C COLUMNS=1 {run} --query-column é >/dev/null", 0, ""),
        ("PYTHONIOENCODING=ascii {run} --feature é", 2, r"'\xe9'"),
    ],
)
def test_odd_streams_and_environments(letor, shell, code, message):
    """Nothing is raised, and nothing but one line is said."""
    program = shell.format(run=f"{PROGRAM} evaluate {letor} --feature 1 -q", program=PROGRAM, letor=letor)
    result = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "200"})
    assert (result.returncode, result.stderr.count("\n")) == (code, int(bool(message)))
    assert message in result.stderr


def test_names_that_a_stream_cannot_show_are_escaped(tmp_path):
    (tmp_path / "a.csv").write_text("query_id,relevance,naïve [b]\n1,1,1\n1,0,2\n", "utf-8")
    (tmp_path / "m.json").write_text('{"naïve [b]": 1}', "utf-8")
    command = [PROGRAM, "inspect", "optimality", "m.json", "a.csv", "-m", "RR"]
    poor = {**os.environ, "COLUMNS": "200", "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    shown = subprocess.run(command, cwd=tmp_path, env=poor, capture_output=True, text=True, check=True).stdout
    assert "na\\xefve [b]" in shown


def test_a_closed_stream_gets_no_file_in_its_place(letor, tmp_path):
    """With stdout closed the model would be opened as stdout, and get what a library prints."""
    program = f"{PROGRAM} train ridge {letor} --out {tmp_path}/m.json >&- <&-"
    result = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "standard output is closed" in result.stderr
    assert er.load(tmp_path / "m.json").scorer.n_features == 2


def test_what_is_not_expected_is_one_line(letor, monkeypatch):
    def fails(*arguments, **options):
        raise ZeroDivisionError("1 / 0\x1b[2J")

    monkeypatch.setattr("exactrank.data.describe.describe", fails)
    assert "internal error (ZeroDivisionError: 1 / 0\\x1b[2J); run it again with --debug" in called(1, "info", letor)
    assert isinstance(CliRunner().invoke(app, ["info", str(letor), "--debug"]).exception, ZeroDivisionError)
    monkeypatch.setattr("exactrank.data.describe.describe", lambda *a: np.empty(1 << 56))
    assert "not enough memory for another 512. PiB; give less data" in called(1, "info", letor)


@pytest.mark.parametrize("threads", ["99999999999", "4097", "9" * 400])
def test_too_many_threads(letor, threads):
    assert "is not a whole number from 1 to 4,096" in called(2, "info", letor, "--threads", threads)


def test_a_model_of_another_method_is_not_resumed(made, tmp_path):
    called(0, "train", "ridge", made / "train.txt", "--out", tmp_path / "m.json")
    message = called(2, "train", "listnet", made / "train.txt", "--out", tmp_path / "m.json", "--resume")
    assert "the model was trained with ranker=Ridge, not ListNet" in message
    (tmp_path / "w.json").write_text("[1, 2, 3, 4]")
    assert "ranker=None, not Ridge" in called(2, "train", "ridge", made / "train.txt", "--out", tmp_path / "w.json", "--resume")


def test_qrels_and_runs(tmp_path):
    (tmp_path / "qrels.txt").write_text("1 0 a 2\n1 0 b 0\n2 0 a 1\n")
    (tmp_path / "bm25.run").write_text("1 Q0 b 1 5 bm25\n1 Q0 a 2 4 bm25\n2 Q0 a 1 1 bm25\n")
    assert json.loads(ok("evaluate", tmp_path / "qrels.txt", tmp_path / "bm25.run", "-m", "RR", "--json"))["measures"]["RR"]["mean"] == 0.75
    ok("convert", tmp_path / "qrels.txt", tmp_path / "both.parquet", "--run", tmp_path / "bm25.run")
    assert er.read(tmp_path / "both.parquet").feature_names == ("bm25",)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["info", "nothing.txt"], "nothing.txt does not exist"),
        (["evaluate", "data.txt", "--feature", "9"], "there is no feature '9'; the data has 1, 2"),
        (["evaluate", "data.txt", "--feature", "1", "-m", "nDGC"], "did you mean"),
        (["evaluate", "data.txt", "--feature", "1", "-m", "nDCG@0"], "at least 1"),
        (["evaluate", "data.txt"], "give a SCORES file or --feature NAME to say"),
        (["evaluate", "data.txt", "short.txt", "--feature", "1"], "not both"),
        (["evaluate", "data.txt", "--feature", "1", "-m", "AP(rel='x')"], "rel must be a number"),
        (["evaluate", "data.txt", "nothing.txt"], "nothing.txt does not exist"),
        (["evaluate", "data.txt", "data.txt"], "columns; expected one score per line"),
        (["convert", "nothing.qrels", "out.xr", "--run", "data.txt"], "nothing.qrels does not exist"),
        (["evaluate", "data.txt", "short.txt"], "short.txt has 2 lines for 4 documents"),
        (["evaluate", "data.txt", "words.txt"], "words.txt:2: 'oops' is not a number"),
        (["evaluate", "data.txt", "nan.txt"], "nan.txt:3: nan is not a score"),
        (["evaluate", "data.txt", "--feature", "1", "--preset", "rank"], "unknown preset 'rank'"),
        (["convert", "data.txt", "short.txt"], "short.txt already exists"),
        (["convert", "data.txt", "out.json"], "names no format to write"),
        (["convert", "data.txt", "out.xr.gz"], "names no format to write"),
        (["generate", "short.txt"], "short.txt already exists"),
        (["generate", "out.txt", "--noise", "-1"], "noise must be"),
        (["info", "bad.txt"], "bad.txt:1: grade 'x' is not a finite number"),
        (["info", "missing.txt"], "--missing keep"),
        (["evaluate", "--no-such-option"], "No such option"),
        (["generate", "out.txt", "--queries", "0"], "--queries"),
    ],
)
def test_bad_input_is_explained_and_exits_2(letor, tmp_path, arguments, message):
    (tmp_path / "short.txt").write_text("1\n2\n")
    (tmp_path / "words.txt").write_text("1\noops\n2\n3\n")
    (tmp_path / "nan.txt").write_text("1\n2\nnan\n3\n")
    (tmp_path / "bad.txt").write_text("x qid:1 1:2\n")
    (tmp_path / "missing.txt").write_text("1 qid:1 1:NULL\n")
    before = sorted(p.name for p in tmp_path.iterdir())
    refused(2, message, *arguments, cwd=tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == before
    assert (tmp_path / "short.txt").read_text() == "1\n2\n"


def test_a_preset_has_its_own_default_measures(letor):
    for preset, measures in {"lightgbm": ["nDCG@10", "AP"], "sklearn": ["nDCG@10"], "letor": ["nDCG@10", "AP"]}.items():
        assert list(json.loads(ok("evaluate", letor, "--feature", "1", "--preset", preset, "--json"))["measures"]) == measures


def test_files_are_known_by_their_content(letor, tmp_path):
    ok("convert", letor, tmp_path / "a.xr")
    ok("convert", letor, tmp_path / "a.parquet")
    for name in ("a.xr", "a.parquet"):
        (tmp_path / name).rename(tmp_path / f"{name}.txt")
        assert json.loads(ok("info", tmp_path / f"{name}.txt", "--json"))["documents"] == 4


def test_missing_values_are_accepted_when_asked(tmp_path):
    (tmp_path / "missing.txt").write_text("1 qid:1 1:NULL 2:3\n")
    assert json.loads(ok("info", tmp_path / "missing.txt", "--missing", "keep", "--json"))["missing_values"] == {"1": 1}


def test_an_output_that_cannot_be_written_exits_1(letor, tmp_path):
    refused(1, "the folder", "convert", letor, tmp_path / "nowhere" / "out.xr")
    refused(1, "is a folder", "convert", letor, make_folder(tmp_path / "folder.xr"), "--force")


def make_folder(path):
    path.mkdir()
    return path


def test_a_full_disk_keeps_the_old_file(letor, tmp_path):
    """The operating system refuses to let the file grow; what stood there stays."""
    target = tmp_path / "out.xr"
    target.write_bytes(b"old")
    limited = ["bash", "-c", 'ulimit -f 4; trap "" XFSZ; exec "$@"', "bash", str(PROGRAM), "convert", str(letor), str(target), "--force"]
    result = subprocess.run(limited, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "File too large" in result.stderr
    assert target.read_bytes() == b"old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data.txt", "out.xr"]


def test_debug_shows_the_traceback(letor):
    result = run("evaluate", letor, "--feature", "9", "--debug")
    assert result.code == 1
    assert "Traceback" in result.err


def test_a_reader_that_leaves_is_not_an_error_of_ours(letor):
    result = subprocess.run(
        ["bash", "-c", f"{PROGRAM} evaluate {letor} --feature 1 -q | true"], capture_output=True, text=True, check=False
    )
    assert "Traceback" not in result.stderr


def test_help_and_version():
    assert "Evaluate scores, runs or models by any measures" in ok("--help")
    assert subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout == f"exactrank {er.__version__}\n"
    assert "--preset" in ok("evaluate", "--help")


def test_help_needs_no_numerical_library():
    """What makes it answer at once; the timing itself is in benchmarks."""
    code = """
import sys
from exactrank.cli import main
sys.argv = ["exactrank", "--help"]
try:
    main()
except SystemExit:
    print("numpy" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.endswith("False\n")


def test_the_library_agrees_with_the_command(letor):
    data = er.read(letor)
    mean = er.evaluate(data, data.ungroup(data.X[:, 0]).astype(np.float64), "AP").means["AP"]
    assert json.loads(ok("evaluate", letor, "--feature", "1", "-m", "AP", "--json"))["measures"]["AP"]["mean"] == mean


def mean_of(name, data, model):
    return er.evaluate(data, model.predict(data), name).means[name]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with training, validation and test data, and a model trained on them."""
    folder = tmp_path_factory.mktemp("made")
    for name, first in (("train.txt", 1), ("valid.xr", 31), ("test.csv", 61)):
        ok("generate", name, "--first", first, "--queries", 30, "--documents", 7, "--features", 4, cwd=folder)
    ok(*QUICK, "train.txt", "--valid", "valid.xr", "--out", "model.json", "-m", "nDCG@5", cwd=folder)
    return folder


QUICK = ("train", "coordinate-ascent", "--restarts", 2, "--tries", 8)


def test_train_and_predict_agree_with_the_library(made, tmp_path):
    data, valid = er.read(made / "train.txt"), er.read(made / "valid.xr")
    ranker = er.CoordinateAscent(measure="nDCG@5", restarts=2, tries=8).fit(data, valid=valid)
    model = er.load(made / "model.json")
    assert model.scorer.weights.tobytes() == ranker.weights_.tobytes()
    assert model.params | {"backend": None} == ranker.get_params()
    printed = ok("predict", "model.json", "test.csv", cwd=made)
    assert [float(line) for line in printed.splitlines()] == model.predict(er.read(made / "test.csv")).tolist()
    assert json.loads(ok("predict", "model.json", "test.csv", "--json", cwd=made))["scores"] == list(map(float, printed.splitlines()))
    assert "210 documents" in ok("predict", "model.json", "test.csv", "--out", tmp_path / "s.txt", cwd=made)
    assert (tmp_path / "s.txt").read_text() == printed
    refused(2, "s.txt already exists", "predict", "model.json", "test.csv", "--out", tmp_path / "s.txt", cwd=made)
    ok("predict", "model.json", "valid.xr", "--out", tmp_path / "s.txt", "--force", cwd=made)
    shown = json.loads(ok("evaluate", "valid.xr", tmp_path / "s.txt", "-m", "nDCG@5", "--json", cwd=made))
    assert shown["measures"]["nDCG@5"]["mean"] == model.training["valid"] == mean_of("nDCG@5", valid, model)


def test_what_training_reports(made, tmp_path, monkeypatch):
    arguments = (*QUICK, "train.txt", "--measure", "AP", "--seed", 4, "--threads", 1)
    monkeypatch.chdir(made)
    shown = json.loads(called(0, *arguments, "--out", tmp_path / "a.json", "--json"))
    model, data = er.load(tmp_path / "a.json"), er.read(made / "train.txt")
    assert shown["training"] == model.training["value"] == mean_of("AP", data, model)
    assert (shown["validation"], shown["interrupted"], shown["steps"]) == (None, False, model.training["steps"])
    assert (shown["path"], shown["ranker"]) == (str(tmp_path / "a.json"), "coordinate-ascent")
    assert shown["measure"] == model.measure == repr(er.measures.AP())
    table = called(0, *arguments, "--valid", "valid.xr", "--out", tmp_path / "b.json")
    reached = er.load(tmp_path / "b.json").training
    for part in (
        "training",
        f"{reached['value']:.4f}",
        "validation",
        f"{reached['valid']:.4f}",
        repr(er.measures.AP()),
        "linear model of 4 features",
    ):
        assert part in table


def test_a_strength_is_a_number_or_left_to_the_data(made, tmp_path, monkeypatch):
    monkeypatch.chdir(made)
    data = er.read(made / "train.txt")
    for arguments, l2 in (((), "auto"), (("--l2", "auto"), "auto"), (("--l2", "0.5"), 0.5)):
        called(0, "train", "ranksvm", "train.txt", "--out", tmp_path / "m.json", "--force", *arguments)
        model = er.load(tmp_path / "m.json")
        assert model.params["l2"] == l2
        assert np.array_equal(model.scorer.weights, er.RankSVM(l2=l2).fit(data).weights_)


def test_names_of_features_make_mappings_and_groups(made, tmp_path, monkeypatch):
    monkeypatch.chdir(made)
    few = ("train", "mart", "train.txt", "--trees", 3, "--min-documents", 3, "--out", tmp_path / "m.json")
    called(0, *few, "--monotone", "1=1", "--monotone", "3=-1", "--interactions", "1,2", "--interactions", "4")
    params = er.load(tmp_path / "m.json").params
    assert params["monotone"] == {"1": 1, "3": -1}
    assert [list(group) for group in params["interactions"]] == [["1", "2"], ["4"]]
    refused(2, "'price' is not NAME=VALUE", *few, "--monotone", "price")
    refused(2, "interactions names '7', which is not a feature; there are 1, 2, 3, 4", *few, "--force", "--interactions", "1,7")


def test_predictions_are_in_the_order_of_the_rows(letor, tmp_path):
    """Query 10 has rows on both sides of query 11."""
    (tmp_path / "w.json").write_text('{"1": 10, "2": 0}')
    printed = called(0, "predict", tmp_path / "w.json", letor)
    assert printed.splitlines() == [repr(10 * float(np.float32(x))) for x in (0.5, 0.7, 0.1, 0.2)]


def test_text_may_end_before_the_last_features_when_told(made, tmp_path):
    (tmp_path / "short.txt").write_text("1 qid:1 1:0.5 2:1\n0 qid:1 1:0.25\n")
    (tmp_path / "whole.txt").write_text("1 qid:1 1:0.5 2:1 3:0 4:0\n0 qid:1 1:0.25 2:0 3:0 4:0\n")
    arguments = ("predict", made / "model.json", tmp_path / "short.txt")
    message = "it lacks 3, 4; it has besides none; give the 4 features of the model, by the same names in any order; text"
    assert message in called(2, *arguments)
    assert called(0, *arguments, "--features", 4) == called(0, "predict", made / "model.json", tmp_path / "whole.txt")
    training = (*QUICK, made / "train.txt", "--valid", tmp_path / "short.txt", "--out", tmp_path / "m.json")
    assert "it lacks 3, 4" in called(2, *training)
    called(0, *training, "--features", 4)


def test_missing_values_in_training_and_prediction(tmp_path):
    (tmp_path / "holes.txt").write_text("1 qid:1 1:NULL 2:3\n0 qid:1 1:2 2:1\n0 qid:1 1:4 2:2\n")
    arguments = (*QUICK, tmp_path / "holes.txt", "--out", tmp_path / "m.json")
    assert "1 values are missing (1: 1)" in called(2, *arguments)
    assert "'--missing'" in called(2, *arguments, "--missing", "median")
    called(0, *arguments, "--missing", "mean")
    scores = [float(line) for line in called(0, "predict", tmp_path / "m.json", tmp_path / "holes.txt").splitlines()]
    scorer = er.load(tmp_path / "m.json").scorer
    assert scorer.fill.tolist() == [3.0, 2.0]
    assert scores == scorer.score(np.array([[3, 3], [2, 1], [4, 2]], np.float32)).tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("predict", "model.json", "wide.txt"), "it has besides 5, 6; give the 4 features of the model"),
        (("predict", "model.json", "named.csv"), "it lacks 1, 2, 3, 4; it has besides bm25"),
        (("predict", "train.txt", "train.txt"), "train.txt is not a model"),
        (("predict", "nothing.json", "train.txt"), "nothing.json does not exist"),
        ((*QUICK, "train.txt", "--out", "model.json"), "model.json already exists"),
        ((*QUICK, "nothing.txt", "--out", "new.json"), "nothing.txt does not exist"),
        ((*QUICK, "train.txt", "--out", "new.json", "-m", "nDGC"), "did you mean"),
        (
            (*QUICK, "train.txt", "--out", "new.json", "--valid", "wide.txt"),
            "it has besides 5, 6; give the 4 features of the training data",
        ),
        ((*QUICK, "single.txt", "--out", "new.json"), "nothing to learn: every query has documents of a single grade"),
        ((*QUICK, "constant.txt", "--out", "new.json"), "nothing to learn: all 2 features are constant"),
        ((*QUICK, "train.txt", "--out", "new.json", "--growth", "1"), "growth=1.0 is out of range; give a number above 1"),
        (("train", "ranksvm", "train.txt", "--out", "new.json", "--l2", "large"), "is not"),
        (("train", "ranksvm", "train.txt", "--out", "new.json", "--l2", "0"), "l2=0.0 is out of range"),
        (("train", "structuredrank", "train.txt", "--out", "new.json", "-m", "Bpref"), "use nDCG, DCG, P, R, RBP"),
        ((*QUICK, "train.txt"), "Missing option '--out'"),
        (("train", "directrang", "train.txt", "--out", "new.json"), "no ranker 'directrang' (did you mean directrank?)"),
    ],
)
def test_bad_training_and_prediction_is_explained(made, tmp_path, monkeypatch, arguments, message):
    for name in ("model.json", "train.txt"):
        (tmp_path / name).write_bytes((made / name).read_bytes())
    (tmp_path / "wide.txt").write_text("1 qid:1 1:1 2:1 3:1 4:1 5:1 6:1\n0 qid:1 1:2\n")
    (tmp_path / "named.csv").write_text("query_id,relevance,bm25\n1,1,0.5\n1,0,0.2\n")
    (tmp_path / "single.txt").write_text("1 qid:1 1:1\n1 qid:1 1:2\n0 qid:2 1:2\n")
    (tmp_path / "constant.txt").write_text("1 qid:1 1:1 2:3\n0 qid:1 1:1 2:3\n")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.chdir(tmp_path)
    assert message in called(2, *arguments)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


#: The program, which after every step writes a checkpoint and says so.
TELLING = """
from exactrank.cli import main
from exactrank.models.model import Model
from exactrank.learning.training import run

def save_and_tell(model, path, save=Model.save, **options):
    save(model, path, **options)
    print("checkpoint", flush=True)

Model.save = save_and_tell
run.SECONDS_BETWEEN_CHECKPOINTS = run.TIMES_BETWEEN_CHECKPOINTS = 0
main()
"""


@pytest.fixture
def long_training(tmp_path):
    """A process that trains for hours and tells of its checkpoints."""
    ok("generate", "long.xr", "--queries", 300, "--documents", 20, "--features", 10, "--force", cwd=tmp_path)
    command = [sys.executable, "-c", TELLING, "train", "coordinate-ascent", "long.xr", "--out", "m.json"]
    command += ["--restarts", "1", "--max-iter", "1000000000", "--tolerance", "0"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.communicate()


def wait_for_checkpoints(process, count):
    for _ in range(count):
        assert process.stdout.readline() == "checkpoint\n", process.stderr.read()


def test_ctrl_c_keeps_the_best_model_beside_the_target(long_training, tmp_path):
    process = long_training
    wait_for_checkpoints(process, 5)
    process.send_signal(signal.SIGINT)
    printed, message = process.communicate(timeout=HANGS)
    assert process.returncode == 1
    assert message == "exactrank: interrupted; m.json.checkpoint holds the best model so far; the same command with --resume continues\n"
    assert "training" in printed
    model, data = er.load(tmp_path / "m.json.checkpoint"), er.read(tmp_path / "long.xr")
    assert model.training["interrupted"]
    assert model.training["value"] == mean_of("nDCG@10", data, model)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["long.xr", "m.json.checkpoint"]


@pytest.mark.parametrize("checkpoints", [1, 20])
def test_a_killed_process_leaves_a_whole_model(long_training, tmp_path, checkpoints):
    wait_for_checkpoints(long_training, checkpoints)
    long_training.kill()
    long_training.wait(timeout=HANGS)
    model, data = er.load(tmp_path / "m.json.checkpoint"), er.read(tmp_path / "long.xr")
    assert model.training["value"] == mean_of("nDCG@10", data, model)
    assert not (tmp_path / "m.json").exists()


def test_ctrl_c_before_the_first_model_writes_nothing(made, tmp_path, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("exactrank.cli.train.read", interrupt)
    assert "there was no model yet, nothing was written" in called(1, *QUICK, made / "train.txt", "--out", tmp_path / "m.json")
    assert list(tmp_path.iterdir()) == []


def test_train_starts_from_a_model_of_other_data(tmp_path):
    for name, first in (("old", 1), ("new", 41)):
        ok("generate", f"{name}.txt", "--queries", 40, "--first", first, "--documents", 8, "--features", 4, cwd=tmp_path)
    few = "--trees", 5, "--min-documents", 1
    ok("train", "lambdamart", "old.txt", "--out", "old.json", *few, cwd=tmp_path)
    ok("train", "lambdamart", "new.txt", "--start", "old.json", "--out", "new.json", *few, cwd=tmp_path)
    ours, old = er.load(tmp_path / "new.json"), er.load(tmp_path / "old.json")
    theirs = er.LambdaMART(trees=5, min_documents=1).fit(er.read(tmp_path / "new.txt"), start=old).model_
    data = er.read(tmp_path / "new.txt")
    np.testing.assert_array_equal(ours.predict(data), theirs.predict(data))
    assert not np.array_equal(ours.predict(data), old.predict(data))
    refused(2, "begins anew", "train", "ridge", "new.txt", "--start", "old.json", "--out", "r.json", cwd=tmp_path)


def test_start_is_a_word_or_a_model_where_a_method_has_words_for_it(tmp_path):
    ok("generate", "data.txt", "--queries", 20, "--documents", 8, "--features", 3, cwd=tmp_path)
    ok("train", "directrank", "data.txt", "--out", "a.json", "--start", "ridge", "--bags", 0, cwd=tmp_path)
    assert er.load(tmp_path / "a.json").params["start"] == "ridge"
    ok("train", "directrank", "data.txt", "--out", "b.json", "--start", "a.json", "--bags", 0, cwd=tmp_path)
    ours = er.DirectRank(bags=0).fit(er.read(tmp_path / "data.txt"), start=er.load(tmp_path / "a.json"))
    np.testing.assert_array_equal(er.load(tmp_path / "b.json").scorer.weights, ours.weights_)
    for wrong in ("rigde", "nowhere.json"):
        message = f"--start '{wrong}' is neither a model file nor one of auto, softmax, ridge"
        refused(2, message, "train", "directrank", "data.txt", "--out", "c.json", "--start", wrong, cwd=tmp_path)


def test_a_machine_corrects_the_mean(tmp_path):
    rng = np.random.default_rng(0)
    people, machine, run = [], [], []
    for query, document in itertools.product(range(60), range(10)):
        grade = int(min(3, rng.gamma(0.7, 1.0)))
        people += [f"{query} 0 d{document} {grade}"] * (query < 20)
        machine.append(f"{query} 0 d{document} {grade + 1}")
        run.append(f"{query} Q0 d{document} 1 {rng.normal(grade, 1)} bm25")
    for name, lines in {"people.qrels": people, "machine.qrels": machine, "bm25.run": run}.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    corrected = ("evaluate", "people.qrels", "bm25.run", "--machine", "machine.qrels", "-m", "nDCG@10")
    shown = ok(*corrected, cwd=tmp_path)
    assert "of people alone" in shown
    assert "weighted kappa" in shown
    record = json.loads(ok(*corrected, "--json", cwd=tmp_path))["machine"]
    ours = record["measures"]["nDCG@10"]
    assert (ours["human_queries"], ours["further_queries"], record["agreement"]["documents"]) == (20, 40, 200)
    refused(2, "no query beyond", *corrected[:3], "--machine", "people.qrels", cwd=tmp_path)
    er.write(er.RankingData.from_arrays(np.ones((2, 1)), [0, 1], group=[2]), tmp_path / "part.xr")
    (tmp_path / "model.json").write_text('{"x0": 1.0}')
    several = ("evaluate", "part.xr", "model.json", "--workers", "1", "--machine", "machine.qrels")
    refused(2, "in several files", *several, cwd=tmp_path)
