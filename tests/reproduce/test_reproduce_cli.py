"""``exactrank reproduce`` as a user meets it: the list, a run, what is refused before the work, Ctrl-C."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.reproduce import tiny
from typer.testing import CliRunner

from exactrank import reproduce
from exactrank.cli import app
from exactrank.reproduce import EXPERIMENTS, find_experiment
from tests import ROOT
from tests.events import HANGS
from tests.reproduce.test_reproduce_structured import drawn, fold_of

PAGE = ROOT / "docs" / "reproduce.md"


def invoke(*arguments):
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments)], env={"COLUMNS": "400"})


@pytest.fixture
def ran(monkeypatch):
    """The scales and seeds that were asked for; all run on a tiny scale."""
    asked = []

    def found(name):
        find_experiment(name)

        class Tiny:
            full = staticmethod(lambda seed: asked.append(("full", seed)) or tiny(name, seed=seed))

            def __new__(cls, seed):
                asked.append(("reduced", seed))
                return tiny(name, seed=seed)

        return Tiny

    monkeypatch.setattr(reproduce, "find_experiment", found)
    return asked


# ---- the list


def test_the_list_has_every_experiment():
    shown = invoke()
    assert shown.exit_code == 0
    listed = json.loads(invoke("--json").stdout)
    assert [each["name"] for each in listed] == list(EXPERIMENTS)
    for each in listed:
        kind = find_experiment(each["name"])
        assert (each["paper"], tuple(each["where"]), each["published"]) == (kind.paper, kind.where, kind.published)
        first = kind.published.partition(". ")[0].removesuffix(".")
        assert re.search(rf"{re.escape(kind.name)} .*{re.escape(', '.join(kind.where))} .*{re.escape(first)} ", shown.stdout)


#: The figures and tables of the papers.
SHOWN = {
    "Burges, Ragno & Le 2006": ["Figure 1", "Figure 2, left", "Figure 2, right", "Figure 3"],
    "Yue & Burges 2007": [*(f"Figure {i}" for i in range(1, 6)), "Table 1", *(f"workshop paper, Figure {i}" for i in (1, 2, 3)),
                          "workshop paper, Table 1"],
    "Chapelle, Le & Smola 2007": ["Figure 1", "Figure 2, left", "Figure 2, center", "Figure 2, right"],
    "Joachims, Swaminathan & Schnabel 2017": ["Figure 1"],
    "Tan, Xia, Guo & Wang 2013": ["Figure 1", "Figure 2", *(f"Table {i}" for i in range(1, 14))],
}  # fmt: skip


def test_the_page_has_an_experiment_for_every_figure_and_table():
    page = PAGE.read_text()
    rows = set(re.findall(r"^\| (.+?) \| (.+?) \| \[`", page, re.MULTILINE))
    assert rows >= {(paper, place) for paper, places in SHOWN.items() for place in places}
    assert re.findall(r"^### ([a-z-]+)\n\n<!-- ledger: reproduce\.\1 -->$", page, re.MULTILINE) == sorted(
        EXPERIMENTS, key=lambda name: page.index(f"### {name}\n")
    )


# ---- a run


def test_a_run_writes_what_it_found(ran, tmp_path):
    """With lists this short the number of jumping points does not converge."""
    result = invoke("jumping-points", "--out", tmp_path, "--seed", 4)
    assert (result.exit_code, ran) == (0, [("reduced", 4)])
    report = (tmp_path / "jumping-points.md").read_text()
    assert report in result.stdout
    assert report.startswith("# jumping-points\n\nTan, Xia, Guo & Wang 2013, Table 12, section 2.5 (complexity)\n\n**Published:** ")
    assert "\nThe published finding holds in part: 8 of 10 inequalities hold.\n" in result.stdout  # which is no failure
    assert json.loads((tmp_path / "jumping-points.json").read_text())["holds"] is False
    assert result.stderr == ""
    assert invoke("jumping-points", "--out", tmp_path, "--full", "--force").exit_code == 0
    assert ran[1:] == [("full", 0)]


def test_a_run_for_machines(ran, tmp_path):
    shown = json.loads(invoke("line-search-example", "--out", tmp_path, "--json").stdout)
    written = json.loads((tmp_path / "line-search-example.json").read_text())
    assert shown["holds"] is True
    assert written.items() <= shown.items()
    assert [Path(path).name for path in shown["paths"]] == [f"line-search-example.{kind}" for kind in ("md", "json", "png")]


def test_threads_and_folders_reach_the_experiment(ran, tmp_path):
    for name in ("one", "two"):
        fold_of(tmp_path / name, 1, [drawn(10, first) for first in (1, 20, 40)])
    result = invoke("directrank-starts", "--out", tmp_path, "--data", tmp_path / "one", "--data", tmp_path / "two", "--threads", 2)
    assert result.exit_code == 0
    report = json.loads((tmp_path / "directrank-starts.json").read_text())
    assert f"threads=2, data=('{tmp_path / 'one'}', '{tmp_path / 'two'}')" in report["configuration"]
    assert [row[0] for row in report["tables"][0]["rows"]] == ["one", "one", "two", "two"]


# ---- refusals


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["jumping-points", "--out", "."], "jumping-points.json already exists"),
        (["jumping-point", "--out", "new"], "no experiment 'jumping-point' (did you mean jumping-points?)"),
        (["jumping-points"], "give --out FOLDER for the report of jumping-points"),
        (["ranknet-speedup", "--out", "new", "--data", "."], "ranknet-speedup runs on artificial data only; leave --data out"),
        (["jumping-points", "--out", "new", "--data", "nowhere"], "nowhere does not exist; check the path"),
        (["jumping-points", "--out", "new", "--data", "short"], "no training query of its first fold has 12 documents"),
        (["jumping-points", "--out", "new", "--seed", "-1"], "--seed"),
    ],
)
def test_what_is_refused(ran, tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jumping-points.json").write_text("mine")
    fold_of(tmp_path / "short", 1, [drawn(5, first, documents=11) for first in (1, 20, 40)])
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert says in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "new").exists()
    assert (tmp_path / "jumping-points.json").read_text() == "mine"


def test_nothing_is_left_of_a_report_that_cannot_be_drawn(ran, tmp_path, monkeypatch):
    from exactrank.reproduce import finding

    def fails(panels, file):
        raise KeyboardInterrupt

    monkeypatch.setattr(finding, "draw", fails)
    result = invoke("jumping-points", "--out", tmp_path)
    assert (result.exit_code, result.stderr) == (1, "exactrank: interrupted; nothing was written\n")
    assert list(tmp_path.iterdir()) == []


#: The command line, in which the clock of the bar stands still, and the experiment trains its first model again and again.
ENDLESS = """
import rich.console
from exactrank.cli import main
from exactrank.reproduce import structured_bounds

rich.console.monotonic, fit_ranker = lambda: 0.0, structured_bounds.fit_ranker

def endless(*args, **more):
    while True:
        fit_ranker(*args, **more)

structured_bounds.fit_ranker = endless
main()
"""


def test_ctrl_c_ends_with_a_line(tmp_path):
    """A real process, watched through a terminal: the bar appears, Ctrl-C is answered, and nothing is written."""
    terminal, theirs = os.openpty()
    environment = {**os.environ, "COLUMNS": "200", "TERM": "xterm"}
    command = [sys.executable, "-c", ENDLESS, "reproduce", "structured-bounds", "--out", tmp_path / "out"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environment) as process:
        os.close(theirs)
        message = b""
        while b"split 1 of 5" not in message:
            message += os.read(terminal, 4096)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=HANGS)
        while True:
            try:
                more = os.read(terminal, 4096)
            except OSError:
                break
            if not more:
                break
            message += more
    os.close(terminal)
    assert re.search(rb"structured-bounds.* 0 s elapsed", message)
    assert (process.returncode, output) == (1, b"")
    assert message.strip().endswith(b"exactrank: interrupted; nothing was written")
    assert b"Traceback" not in message
    assert not (tmp_path / "out").exists()
