"""A law over the whole command line: whatever the arguments and files are, a command ends with 0, 1 or 2 and a few readable lines.

No traceback, no internal error, no raw message of NumPy, LightGBM, Arrow or the system, no character that a terminal would obey, never an
empty message. Commands and their options are taken from the program itself, so a new one without cases fails here.
"""

import gzip
import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.main import get_command
from typer.testing import CliRunner

import exactrank as er
from exactrank._support import pipes
from exactrank.cli import app
from exactrank.cli.train import training_command

PROGRAM = Path(sys.executable).with_name("exactrank")
RAW = re.compile(
    r"Traceback|internal error|incompatible function arguments|std::|\[LightGBM\]|\[Errno|object at 0x|codec can't"
    r"|numpy\.|broadcast|dtype|(Value|Type|Key|Index|Attribute|Recursion|Overflow|Unicode\w*|LightGBM|Arrow\w*)Error"
)
LINES = 12  #: on stderr at most: typer's box around an error of usage has six, and more where it wraps

#: A call of each command that works; words in capitals are files that the fixture makes.
GOOD = {
    "info": ["DATA"],
    "convert": ["DATA", "OUT.csv"],
    "generate": ["OUT.txt", "--queries", "3", "--documents", "4"],
    "clicks": ["LOG.csv", "DATA", "--out", "OUT.xr", "--bootstrap", "2"],
    "pairs": ["PAIRS.csv", "DATA", "--out", "OUT.xr"],
    "evaluate": ["DATA", "SCORES"],
    "predict": ["MODEL", "DATA"],
    "cutoff": ["QRELS", "RUN"],
    "power": ["QRELS", "RUN", "RUN2"],
    "judge": ["--run", "RUN", "--run", "RUN2", "--judged", "QRELS", "--measure", "nDCG@3"],
    "card": ["MODEL"],
    "export": ["MODEL", "--to", "onnx", "--out", "OUT.onnx", "--check", "DATA"],
    "inspect optimality": ["MODEL", "DATA", "-m", "nDCG@10"],
    "inspect forces": ["DATA", "--queries", "2"],
    "inspect importance": ["MODEL", "DATA", "-m", "nDCG@10"],
    "inspect smoothness": ["MODEL", "DATA", "-m", "nDCG@10", "--points", "5"],
    "fuse": ["QRELS", "--run", "RUN", "--run", "RUN2", "--bootstrap", "5", "--folds", "2"],
    "fuse apply": ["FUSION", "--run", "RUN", "--run", "RUN2", "--out", "OUT.run"],
    "pareto": ["QRELS", "--run", "RUN", "--run", "RUN2", "-m", "nDCG@3", "-m", "P@2"],
    "reproduce": [],
    "train": ["ridge", "DATA", "--out", "OUT.json"],
    "compare": ["DATA", "--methods", "ridge,mart", "--out", "OUT"],
    "tune": ["ridge", "DATA", "--out", "OUT.json"],
    "methods": [],
    "measures": [],
    "demo": ["--out", "OUT"],
    "serve": ["MODEL"],
}
SLOW = {"compare", "tune", "demo", "reproduce", "train", "serve"}  #: only what ends before the work begins is tried many times
BAD_FILES = (
    "missing", "empty", "folder", "device", "pipe", "binary", "nul\0", "long", "not-utf8", "damaged.gz", "damaged.xr", "damaged.parquet",
    "line", "odd.csv", "odd.json", "deep.json", "kind.json", "number.json", "surrogate\udcff", "[/b]",
)  # fmt: skip
BAD_WORDS = ("", "nan", "-1", "1e999", "[/b]\x1b[2J\n\u202e", "\udcff", "nDCG(k=" + "-" * 9000 + "1)")
BAD_NUMBER = "9" * 400
UNBOUNDED = {
    "--queries",
    "--bootstrap",
    "--repeats",
    "--points",
    "--top",
    "--cells",
    "--folds",
    "--trials",
    "--samples",
    "--weights",
}  #: as asked


def commands(group=None, before=()):
    """Each command's words and itself; ``train`` has one for each ranker and is taken as one."""
    group = group or get_command(app)
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "list_commands") and name != "train":
            yield from commands(command, (*before, name))
        else:
            yield " ".join((*before, name)), command


def options(name, command):
    command = training_command(GOOD[name][0]) if name == "train" else command
    return [p for p in command.params if p.param_type_name == "option" and not p.is_flag]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The files that the words in capitals and `BAD_FILES` stand for."""
    folder = tmp_path_factory.mktemp("law")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(24, 3)).astype(np.float32), rng.integers(0, 3, 24)
    docs = [f"d{i}" for i in range(24)]
    data = er.RankingData.from_arrays(X, y, qid=np.repeat(np.arange(4), 6), docid=docs)
    for suffix in ("txt", "csv", "xr", "parquet"):
        er.write(data, folder / f"data.{suffix}")
    (folder / "scores").write_text("".join(f"{i}\n" for i in range(24)))
    (folder / "qrels").write_text("".join(f"{i // 6} 0 d{i} {y[i]}\n" for i in range(24)))
    for run, score in (("run", X[:, 0]), ("run2", X[:, 1])):
        (folder / run).write_text("".join(f"{i // 6} Q0 d{i} 1 {score[i]} {run}\n" for i in range(24)))
    rows = [
        f"{i // 6},d{i},{(i + shift) % 6 + 1},{int((i + 2 * shift) % 3 == 0)},{i // 6}-{shift}" for shift in range(4) for i in range(24)
    ]
    (folder / "log.csv").write_text("\n".join(["query_id,doc_id,rank,clicked,session_id", *rows, ""]))
    (folder / "pairs.csv").write_text("query_id,better,worse\n0,d1,d2\n3,d20,d19\n")
    (folder / "model").write_text("[1, 2, 3]")
    runs = er.systems_from_runs(folder / "qrels", [folder / "run", folder / "run2"])
    er.fuse(runs, folds=0, bootstrap=0).save(folder / "fusion")
    made = {
        "LOG.csv": "log.csv",
        "PAIRS.csv": "pairs.csv",
        "DATA": "data.txt",
        "SCORES": "scores",
        "QRELS": "qrels",
        "RUN": "run",
        "RUN2": "run2",
        "MODEL": "model",
        "FUSION": "fusion",
    }
    return {word: folder / name for word, name in made.items()} | _bad_files(folder)


def _bad_files(folder):
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    whole = {name: (folder / f"data.{name}").read_bytes() for name in ("txt", "xr", "parquet")}
    content = {
        "empty": b"",
        "binary": bytes(range(256)) * 20,
        "not-utf8": b"\xff\xfe\xfd 1 2\n\xff \xff\n",
        "damaged.gz": gzip.compress(whole["txt"])[:-9],
        "damaged.xr": whole["xr"][:-40] + b"\0" * 40,
        "damaged.parquet": whole["parquet"][:-40] + b"\0" * 36 + b"PAR1",
        "line": b"1 " * (1 << 20),
        "odd.csv": b'query_id,relevance,"x\n1,2,3\n',
        "odd.json": b'{"a": 1, "a": 2}',
        "deep.json": b"[" * 100_000,
        "kind.json": json.dumps({"format": "exactrank-model", "version": 1, "library": "", "ranker": None, "measure": None, "seed": None,
                                 "params": {}, "data": {}, "training": {}, "scorer": {"kind": []}}).encode(),
        "number.json": b"[" + b"9" * 1_000_000 + b"]",
        "surrogate\udcff": b"\x1b[2J",
    }  # fmt: skip
    for name, text in content.items():
        (folder / name).write_bytes(text)
    paths = {name: folder / name for name in BAD_FILES}
    return paths | {"device": Path("/dev/zero"), "nul\0": Path("nul\0"), "long": folder / ("x" * 5000)}


@pytest.fixture
def lawful(files, tmp_path, capfd, recwarn, monkeypatch):
    """Call a command with words for files; its output, once it kept the law."""
    monkeypatch.setattr(pipes, "PATIENCE", 0.02)
    monkeypatch.chdir(tmp_path)

    def call(name, *arguments):
        words = [str(files.get(word, word)).replace("OUT", str(tmp_path / "out")) for word in arguments]
        done = CliRunner().invoke(app, [*name.split(), *words], env={"COLUMNS": "100"})
        said = done.stderr + "".join(capfd.readouterr())
        assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
        check(done.exit_code, said, done.stdout)
        assert not list(recwarn), [str(w.message) for w in recwarn]
        return done

    return call


def check(code, stderr, stdout=""):
    assert code in (0, 1, 2), (code, stderr)
    assert code == 0 or stderr.strip().removeprefix("exactrank:").strip(), "failed without a word"
    assert len(stderr.splitlines()) <= LINES, stderr
    assert not RAW.search(stderr), stderr
    unseen = set("".join(stderr + stdout)) - {"\n"}
    assert all(c.isprintable() for c in unseen), sorted(c for c in unseen if not c.isprintable())
    assert len(stderr) < 20_000


def test_every_command_has_a_case():
    assert {name for name, _ in commands()} == set(GOOD)


@pytest.mark.parametrize("name", sorted(set(GOOD) - {"compare", "tune", "demo", "serve"}))  # which have tests of their own
def test_good_arguments(lawful, name):
    assert lawful(name, *GOOD[name]).exit_code == 0


FILES = {"PAIRS.csv", "DATA", "SCORES", "QRELS", "RUN", "MODEL", "FUSION"}
PLACES = [(name, place) for name, words in GOOD.items() for place, word in enumerate(words) if word in FILES]


@pytest.mark.parametrize(("name", "place"), PLACES)
def test_bad_files(lawful, name, place):
    first = place + len(name)  # not all files in all places, but each in most
    for bad in BAD_FILES[first % 2 :: 2]:
        assert lawful(name, *GOOD[name][:place], bad, *GOOD[name][place + 1 :]).exit_code != 0, bad


ANY_WORD = {("demo", "--seed"), ("demo", "--out"), ("reproduce", "--seed"), ("reproduce", "--out")}  #: the work would begin
OPTIONS = [(name, o.opts[0]) for name, command in commands() for o in options(name, command) if (name, o.opts[0]) not in ANY_WORD]


@pytest.mark.parametrize(("number", "name", "option"), [(number, *case) for number, case in enumerate(OPTIONS)])
def test_bad_words(lawful, number, name, option):
    """Two of the words for each option, in turn; commands that take long have data that is not there."""
    words = ["missing" if word in ("DATA", "MODEL") else word for word in GOOD[name]] if name in SLOW else GOOD[name]
    bad = [BAD_WORDS[number % len(BAD_WORDS)], BAD_WORDS[(number + 3) % len(BAD_WORDS)]]
    for word in bad + ([] if option in UNBOUNDED else [BAD_NUMBER]):
        lawful(name, *words, option, word)


#: Options that name a file to read; any other that takes a path is an output.
READ = {"--attach", "--valid", "--pairs", "--test", "--model", "--check", "--data", "--run", "--clicks", "--machine", "--by", "--judged"}
#: Outputs beside --out: pictures, and the several files of a fusion or a front.
OTHER_OUTPUTS = {
    "cutoff": {"--plot"},
    "generate": {"--log"},
    "judge": {"--export"},
    "clicks": {"--plot"},
    "pareto": {"--plot", "--save"},
    "fuse": {"--save", "--config", "--plot"},
} | {f"inspect {each}": {"--plot"} for each in ("optimality", "importance", "smoothness")}
WITHOUT_OUT = {
    "info",
    "convert",
    "generate",
    "evaluate",
    "power",
    "methods",
    "measures",
    "serve",
    "fuse",
    "pareto",
}  #: convert and generate end with TARGET


@pytest.mark.parametrize(("name", "command"), list(commands()))
def test_one_name_for_measures_outputs_and_missing_values(name, command):
    command = training_command(GOOD[name][0]) if name == "train" else command
    found = {option: each for each in command.params if each.param_type_name == "option" for option in each.opts}
    for option, each in found.items():
        if "measure" in str(each.name) or (each.metavar == "MEASURE" and each.name != "weighted_by"):
            assert (set(each.opts), each.metavar) == ({"--measure", "-m"}, "MEASURE"), option
        if each.metavar == "PATH" and option not in READ:
            assert option in {"--out"} | OTHER_OUTPUTS.get(name, set()), f"{name} {option}: outputs are given by --out"
        if "missing" in str(each.name):
            assert option == "--missing"
    assert ("--out" in found) == (name not in WITHOUT_OUT and not name.startswith("inspect"))
    assert ("--force" in found) == (name in ("convert", "generate") or any(each in found for each in ("--out", "--save", "--plot")))
