"""The ledger of the benchmarks: pages show what it holds, a run is kept in it, and what costs more than it says is named."""

import json
import re
import sys

import pytest
from benchmarks.ledger import FOLDER, LEDGER, entries_of, record, slower, with_tables

from tests import ROOT

PAGES = [path for path in sorted(ROOT.glob("docs/**/*.md")) if "<!-- ledger:" in path.read_text()]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Record what a benchmark called ``speed`` measured in a run with some arguments."""

    def recorded(folder, costs, *arguments):
        monkeypatch.setenv(FOLDER, str(tmp_path / folder))
        monkeypatch.setattr(sys, "argv", ["benchmarks/bench_speed.py", *arguments])
        record("times", "Times", ["| a | b |", "| --- | --- |", f"| x | {costs.get('x')} |"], costs)
        return tmp_path / folder

    return recorded


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_show_what_the_ledger_holds(page):
    assert with_tables(page.read_text()) == page.read_text(), f"make bench writes {page.name} anew; so does benchmarks/ledger.py docs"


def test_every_benchmark_whose_table_is_shown_exists():
    shown = {name for page in PAGES for name in re.findall(r"<!-- ledger: (\w+)\.", page.read_text())}
    assert shown == {path.stem for path in LEDGER.glob("*.json")}
    assert all((ROOT / "benchmarks" / f"bench_{name}.py").exists() for name in shown)


def test_a_table_follows_its_mark(run):
    folder = run("a", {"x": 0.5})
    page = "before\n\n<!-- ledger: speed.times -->\n\n| old |\n| --- |\n\nafter | here\n"
    assert with_tables(page, folder) == page.replace("| old |\n| --- |", "| a | b |\n| --- | --- |\n| x | 0.5 |")
    assert with_tables(with_tables(page, folder), folder) == with_tables(page, folder)


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
