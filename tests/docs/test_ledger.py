"""The ledger of benchmarks and published experiments: pages show what it holds, and no figure of quality or speed that it does not hold; a
run is kept in it; what costs more than it says is named, and so are experiments whose models or settings have changed since.
"""

import json
import re
import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from benchmarks import ledger, reproduce
from benchmarks.figures import PAGES, figures, problems_of
from benchmarks.ledger import FOLDER, LEDGER, cell, entries_of, record, slower, with_tables

from exactrank import DirectRank
from tests import ROOT

WITH_LEDGER = [page for page in PAGES if "<!-- ledger:" in page.read_text()]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Record what a benchmark called ``speed`` measured in a run with some arguments."""

    def recorded(folder, costs, *arguments):
        monkeypatch.setenv(FOLDER, str(tmp_path / folder))
        monkeypatch.setattr(sys, "argv", ["benchmarks/bench_speed.py", *arguments])
        record("times", "Times", ["| a | b |", "| --- | --- |", f"| x | {costs.get('x')} |"], costs)
        return tmp_path / folder

    return recorded


def test_every_benchmark_whose_table_is_shown_exists():
    shown = {name for page in WITH_LEDGER for name in re.findall(r"<!-- ledger: (?!reproduce)(\w+)\.", page.read_text())}
    assert shown == {path.stem for path in LEDGER.glob("*.json")}
    assert all((ROOT / "benchmarks" / f"bench_{name}.py").exists() for name in shown)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_figures_are_those_of_a_ledger(page):
    assert list(problems_of(page)) == []


FIGURES = ["0.5089", "+.0509", "0.5089.", "3.4 times as fast", "1.7 times the data", "12 ms", "20 seconds", "0.4 s", "`0.5089`"]


@pytest.mark.parametrize(
    "page",
    [f"It is {figure} here." for figure in FIGURES]
    + [
        "| Ridge | 0.51 |",
        "<!-- ledger: a.b -->\n\n| 0.5 |\n\nand 0.6123",
        "```text\nnDCG@10 0.5089\n```",
        "```console\n$ make bench\n0.5089\n```",
    ],
)
def test_a_figure_beside_the_ledger_is_noticed(page):
    assert len(figures(f"# Title\n\n{page}\n")) == 1


@pytest.mark.parametrize(
    "page",
    [
        "```python\nprint(0.5089)\n```\n\n```text\n0.5089 in 12 ms\n```",
        "```console\n$ exactrank info\nnDCG@10 0.5089\n```",
        "$$\nk^{0.602}\n$$",
        "The rate is `0.001`, and `LBFGS(gtol=0.00025)` is set.",
        "It is <!-- ledger: a.b / c / d -->0.5089<!-- /ledger --> here.",
        "<!-- ledger: a.b -->\n\n| Ridge | 0.51 |\n",
        "<!-- ledger: reproduce.a -->\nIt is 0.5089 after 12 ms.\n<!-- /ledger -->",
        "Version 3.11.2 of 2,000 queries.",
    ],
)
def test_what_is_run_written_or_defined_is_no_figure_beside_the_ledger(page):
    assert figures(f"# Title\n\n{page}\n") == []


def test_a_broken_figure_is_named_with_its_place(monkeypatch, tmp_path):
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    monkeypatch.setattr("benchmarks.figures.ROOT", tmp_path)
    broken = tmp_path / "page.md"
    broken.write_text(page.replace("| exactrank | 3.23 | 1 |", "| exactrank | 3.32 | 1 |"))
    (problem,) = problems_of(broken)
    line = page[: page.index("| exactrank | 3.23")].count("\n") + 1
    assert problem.startswith(f"page.md:{line}: shows '| exactrank | 3.32 | 1 |', the ledger has '| exactrank | 3.23 | 1 |'")
    broken.write_text("At its defaults\nit scores 0.5123.\n")
    assert next(problems_of(broken)).startswith("page.md:2: '0.5123' is in no ledger; ")


def test_a_ledger_of_another_version_and_a_file_that_is_missing_are_refused(tmp_path):
    path = tmp_path / "speed.json"
    path.write_text('{"times": {"title": "Times", "table": [], "date": "2026-11-01", "commit": "a", "costs": {}}}')
    with pytest.raises(ValueError, match=r"speed.json: times has no arguments, so it is of another version of the ledger; run it again"):
        entries_of(path)
    with pytest.raises(ValueError, match=r"quality.json is not in the ledger; there are speed"):
        entries_of(tmp_path / "quality.json")


def test_a_cell_of_a_table_stands_in_a_sentence(run):
    folder = run("a", {"x": 0.5})
    page = "It is <!-- ledger: speed.times / x / b -->0.4<!-- /ledger --> here."
    assert with_tables(page, folder) == page.replace("0.4", "0.5")
    for place, message in {
        "speed.times / y / b": "0 rows are called 'y'; there are x",
        "speed.times / x / c": "0 of the names a, b start with 'c'",
        "speed.memory / x / b": "0 of the names times start with 'memory'",
        "speeds.times / x / b": "speeds.json is not in the ledger; there are speed",
    }.items():
        with pytest.raises(ValueError, match=message):
            cell(place, folder)


# ---- published experiments


@pytest.mark.parametrize("name", reproduce.TINY)
def test_entries_of_experiments_are_of_today_s_models_and_settings(name):
    assert list(reproduce.staleness(name)) == []


def test_a_changed_model_setting_or_number_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(reproduce, "FOLDER", tmp_path)
    monkeypatch.setitem(reproduce.TINY, "directrank-order", {"queries": (20, 10, 10), "starts": 1})
    today = {"DirectRank": "a", "numbers": "b"}
    monkeypatch.setattr(reproduce, "fingerprints", lambda name: today)
    tiny = reproduce.TINY["directrank-order"] | {"features": 3, "documents": 5}
    reproduce.run("directrank-order", "reduced", 0, [], tiny)
    assert list(reproduce.staleness("directrank-order")) == []
    (line,) = reproduce.staleness("directrank-order", today | {"DirectRank": "c"})
    assert line.startswith(
        "directrank-order, reduced, seed 0, queries=(20, 10, 10), starts=1, features=3, documents=5: the bits of DirectRank"
    )
    (line,) = reproduce.staleness("directrank-order", today | {"numbers": "c"})
    assert ": the numbers have changed since " in line
    path = tmp_path / "directrank-order.json"
    path.write_text(path.read_text().replace("features=3", "features=4", 1).replace("noise=1.0", "noise=2.0"))
    assert any(": its settings have changed since " in line for line in reproduce.staleness("directrank-order"))
    section = "\n".join(reproduce.section("directrank-order"))
    assert "| Greedy shows no obvious improvement" in section
    assert "not run: an hour" in section


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "there is no experiment 'nothing'; there are ranknet-speedup"),
        (["directrank-order", "--set", "start=1"], "directrank-order has no setting start; it has data"),
        (["directrank-order", "--set", "starts=x"], "'starts=x' is not NAME=VALUE with a Python value, such as starts=10"),
        (["directrank-letor", "--data", "nowhere"], "nowhere does not exist; check the path"),
        (["directrank-letor", "--data", "MQ2008"], "MQ2008 has 5 folds, 46 features and 784 test queries, got 4, 3 and 8"),
    ],
)
def test_what_cannot_be_run_is_named_in_a_line(tmp_path, monkeypatch, capsys, arguments, message):
    for fold, part in product(range(4), ("train", "vali", "test")):
        path = tmp_path / "MQ2008" / f"Fold{fold + 1}" / f"{part}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{grade} qid:{part}{fold}{query} 1:{grade} 2:0 3:1\n" for query in "ab" for grade in (0, 1)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(reproduce, "FOLDER", tmp_path)
    with pytest.raises(SystemExit):
        reproduce.main([*arguments, "--allow-dirty"])
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_long_table_is_left_to_the_ledger(monkeypatch):
    monkeypatch.setattr(reproduce, "LONGEST", 1)
    assert any(line.endswith("rows, in `benchmarks/ledger/reproduce/spsa-table.json`.") for line in reproduce.section("spsa-table"))


def test_each_bit_and_number_of_an_experiment_is_in_its_fingerprints(monkeypatch):
    before = reproduce.fingerprints("directrank-order")
    predict = DirectRank.predict
    monkeypatch.setattr(DirectRank, "predict", lambda self, data: np.nextafter(predict(self, data), np.inf))
    after = reproduce.fingerprints("directrank-order")
    assert {part for part in before if before[part] != after[part]} == {"DirectRank"}


def test_the_commit_is_marked_if_code_was_changed_but_not_for_what_runs_write(tmp_path, monkeypatch):
    monkeypatch.setattr(ledger, "ROOT", tmp_path)
    assert ledger.commit() == "unknown"
    written, code = tmp_path / "benchmarks" / "ledger" / "a.json", tmp_path / "src" / "a.py"
    for path in (written, code):
        path.parent.mkdir(parents=True)
        path.touch()
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-q", "-m", "a"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    name = ledger.commit()
    assert re.fullmatch("[0-9a-f]{7,}", name)
    written.write_text("{}")
    assert ledger.commit() == name
    code.write_text("1")
    assert ledger.commit() == f"{name}-dirty"


def test_code_that_is_not_committed_is_refused_unless_it_is_allowed(tmp_path, monkeypatch, capsys):
    names = []
    monkeypatch.setattr(reproduce, "commit", lambda: "abc1234-dirty")
    monkeypatch.setattr(reproduce, "run", lambda name, *_: names.append(name))
    monkeypatch.setattr(reproduce, "PAGE", tmp_path / "page.md")
    reproduce.PAGE.touch()
    with pytest.raises(SystemExit):
        reproduce.main(["directrank-order"])
    assert "not committed; commit them, or give --allow-dirty" in capsys.readouterr().err
    reproduce.main(["--page"])
    assert not names
    reproduce.main(["directrank-order", "--allow-dirty"])
    assert names == ["directrank-order"]


def test_a_table_follows_its_mark(run):
    folder = run("a", {"x": 0.5})
    page = "before\n\n<!-- ledger: speed.times -->\n\n| old |\n| --- |\n\nafter | here\n"
    assert with_tables(page, folder) == page.replace("| old |\n| --- |", "| a | b |\n| --- | --- |\n| x | 0.5 |")
    assert with_tables(with_tables(page, folder), folder) == with_tables(page, folder)
    assert with_tables("<!-- ledger: speed.times -->\n\nafter\n", folder).endswith("| x | 0.5 |\n\nafter\n")


def test_what_costs_more_than_before_is_named(run):
    before = run("before", {"x": 0.5, "y": 2.0, "gone": 1.0})
    (named,) = slower(run("after", {"x": 0.58, "y": 2.2, "new": 9.0}), before)
    assert named.startswith("speed.times: x: 0.58, 1.16 times the 0.5 of the ledger (")
    assert not list(slower(run("other", {"x": 9.0}, "--small"), before))


def test_only_a_run_of_the_same_kind_takes_an_entry_s_place(run, tmp_path):
    folder = run("a", {"x": 1.0}, "--artificial", str(tmp_path))
    run("a", {"x": 2.0})
    assert entries_of(folder / "speed.json")["times"]["costs"] == {"x": 1.0}
    run("a", {"x": 3.0}, "--artificial", str(ROOT))
    entry = json.loads((folder / "speed.json").read_text())["times"]
    assert (entry["costs"], entry["arguments"]) == ({"x": 3.0}, ["--artificial", "FOLDER"])
    assert entry["commit"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", entry["date"])


def test_nothing_is_kept_of_a_run_by_hand(run, tmp_path, monkeypatch):
    monkeypatch.delenv(FOLDER, raising=False)
    record("times", "Times", [], {"x": 1.0})
    assert not list(tmp_path.iterdir())
