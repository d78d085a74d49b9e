"""The command line as a user meets it: real processes, tables, JSON, exit codes, errors without tracebacks."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import exactrank as xr

PROGRAM = Path(sys.executable).with_name("exactrank")


def run(*arguments, cwd=None, **environment):
    return subprocess.run(
        [PROGRAM, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "200", **environment},
        check=False,
    )


def ok(*arguments, **options):
    done = run(*arguments, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(code, said, *arguments, **options):
    done = run(*arguments, **options)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


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
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False)
    assert json.loads(done.stdout)["measures"]["RR"]["mean"] == pytest.approx(2 / 3)
    program = f"{PROGRAM} evaluate {letor} <(echo '10 Q0 A 1 2.5 bm25') -m RR"
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "not a regular file" in done.stderr


def test_qrels_and_runs(tmp_path):
    (tmp_path / "qrels.txt").write_text("1 0 a 2\n1 0 b 0\n2 0 a 1\n")
    (tmp_path / "bm25.run").write_text("1 Q0 b 1 5 bm25\n1 Q0 a 2 4 bm25\n2 Q0 a 1 1 bm25\n")
    assert json.loads(ok("evaluate", tmp_path / "qrels.txt", tmp_path / "bm25.run", "-m", "RR", "--json"))["measures"]["RR"]["mean"] == 0.75
    ok("convert", tmp_path / "qrels.txt", tmp_path / "both.parquet", "--run", tmp_path / "bm25.run")
    assert xr.read(tmp_path / "both.parquet").feature_names == ("bm25",)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["info", "nothing.txt"], "nothing.txt does not exist"),
        (["evaluate", "data.txt", "--feature", "9"], "there is no feature '9'; the data has 1, 2"),
        (["evaluate", "data.txt", "--feature", "1", "-m", "nDGC"], "did you mean"),
        (["evaluate", "data.txt", "--feature", "1", "-m", "nDCG@0"], "at least 1"),
        (["evaluate", "data.txt"], "give a SCORES file or --feature NAME to say"),
        (["evaluate", "data.txt", "short.txt", "--feature", "1"], "not both"),
        (["evaluate", "data.txt", "--feature", "1", "-m", "AP(rel='x')"], "rel must be a number"),
        (["evaluate", "data.txt", "nothing.txt"], "nothing.txt does not exist"),
        (["evaluate", "data.txt", "data.txt"], "columns; expected one score a line"),
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
        (["info", "missing.txt"], "--missing"),
        (["evaluate", "--no-such-option"], "No such option"),
        (["generate", "out.txt", "--queries", "0"], "--queries"),
    ],
)
def test_bad_input_is_explained_and_exits_2(letor, tmp_path, arguments, said):
    (tmp_path / "short.txt").write_text("1\n2\n")
    (tmp_path / "words.txt").write_text("1\noops\n2\n3\n")
    (tmp_path / "nan.txt").write_text("1\n2\nnan\n3\n")
    (tmp_path / "bad.txt").write_text("x qid:1 1:2\n")
    (tmp_path / "missing.txt").write_text("1 qid:1 1:NULL\n")
    before = sorted(p.name for p in tmp_path.iterdir())
    refused(2, said, *arguments, cwd=tmp_path)
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
    assert json.loads(ok("info", tmp_path / "missing.txt", "--missing", "--json"))["missing_values"] == {"1": 1}


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
    done = subprocess.run(limited, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "File too large" in done.stderr
    assert target.read_bytes() == b"old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data.txt", "out.xr"]


def test_debug_shows_the_traceback(letor):
    done = run("evaluate", letor, "--feature", "9", "--debug")
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def test_a_reader_that_leaves_is_not_an_error_of_ours(letor):
    done = subprocess.run(["bash", "-c", f"{PROGRAM} evaluate {letor} --feature 1 -q | true"], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


def test_help_and_version():
    assert "Evaluate scores by any measures" in ok("--help")
    assert ok("--version") == f"exactrank {xr.__version__}\n"
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
    data = xr.read(letor)
    mean = xr.evaluate("AP", data, data.ungrouped(data.X[:, 0]).astype(np.float64)).means["AP"]
    assert json.loads(ok("evaluate", letor, "--feature", "1", "-m", "AP", "--json"))["measures"]["AP"]["mean"] == mean
