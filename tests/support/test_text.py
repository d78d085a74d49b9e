"""Names are words wherever they are shown: nothing in them is obeyed, and each can be told from the others."""

import csv
import io
import json
import re

import numpy as np
import pytest
from hypothesis import given, strategies as st
from typer.testing import CliRunner

import exactrank as er
from exactrank._support.tables import _LATEX, MarkedNumber, Table
from exactrank._support.text import printable
from exactrank.cli import app
from exactrank.compare.report import report_html
from tests.compare.comparisons import make_comparison
from tests.compare.html_tree import parsed

NAMES = (
    "bm25[title]", "bm25[body]", "[/b]", "[bold red]x", "<b>x</b>", "<script>alert(1)</script>", "&amp;",
    r"\input{x}", "$x_1^2$", "50%", "{task}",
    "=1+1", "+x", "-x", "@x", "a|b", "**b**", "`c`", "[x](y)", "_x_", ":smile:", "\x1b[2J\x1b]0;x\x07", "a\nb", "a\rb", "a\tb", "nul\0",
    "\u202eabc", "\u2028", "שלום", "é", "\udcff", "x" * 10_000,
)  # fmt: skip


def called(*arguments):
    result = CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "25000"})
    assert result.exit_code == 0, (result.stderr, result.exception)
    assert all(c.isprintable() or c == "\n" for c in result.output)
    return result.output


def rows_with(shown, names):
    """Each name is in as many rows of a table as it should be: in one."""
    cells = [row[1].removesuffix(" ") if row[1:] else "" for row in (line.split("│") for line in shown.splitlines())]
    for name in names:
        assert [cell.strip() for cell in cells].count(printable(name).strip()) == 1, name


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """Data with a query and a feature of each name, and a model of it."""
    folder = tmp_path_factory.mktemp("named")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4 * len(NAMES), len(NAMES))).astype(np.float32), rng.integers(0, 3, 4 * len(NAMES))
    y[::4], y[1::4] = 2, 0
    er.write(er.RankingData.from_arrays(X, y, qid=np.repeat(np.array(NAMES, object), 4), feature_names=NAMES), folder / "data.xr")
    er.Model(er.models.Linear(rng.normal(size=len(NAMES)), NAMES)).save(folder / "model.json")
    return folder / "data.xr", folder / "model.json"


@given(st.text(st.characters(codec=None)))
def test_what_is_printable_is_shown_and_stays(text):
    shown = printable(text)
    assert shown.isprintable()
    assert printable(shown) == shown
    assert (shown == text) == text.isprintable()
    shown.encode()


def test_query_ids(named):
    rows_with(called("evaluate", named[0], "--feature", "é", "-m", "RR", "-q"), NAMES)


def test_features_and_their_pictures(named, tmp_path):
    data, model = named
    rows_with(called("inspect", "optimality", model, data, "-m", "nDCG", "--top", 99), NAMES)
    rows_with(called("inspect", "importance", model, data, "-m", "nDCG", "--top", 99, "--repeats", 1), NAMES)
    few = ("$x_1", "_\\frac$", "$\\bad{$", "x" * 10_000, "\x1b[2J\n", "שלום")
    made = er.read(data)
    er.write(er.RankingData.from_arrays(made.X[:, :6], made.y, group=[len(made.y)], feature_names=few), tmp_path / "few.xr")
    er.Model(er.models.Linear(np.arange(1.0, 7.0), few)).save(tmp_path / "few.json")
    for command in ("optimality", "importance", "smoothness"):
        picture = tmp_path / f"{command}.svg"
        called("inspect", command, tmp_path / "few.json", tmp_path / "few.xr", "-m", "nDCG", "--plot", picture)
        assert picture.stat().st_size > 1000


@pytest.mark.parametrize("pair", [("bm25[title]", "bm25[body]"), ("[/b]", "$x_1^2$"), ("\x1b[2J", "_" * 9000), ("{x}", "\udcff")])
def test_systems(named, pair, tmp_path):
    made = er.read(named[0])
    er.write(er.RankingData.from_arrays(made.X[:, :2], made.y, group=[len(made.y)], feature_names=pair), tmp_path / "two.xr")
    systems = [word for name in pair for word in ("--system", name)]
    shown = called("fuse", tmp_path / "two.xr", "--folds", 0, "--bootstrap", 0, *systems, "--plot", tmp_path / "two.png")
    rows_with(shown.partition("comparison")[0], pair)


def test_json_has_every_name_as_it_is(named):
    shown = json.loads(called("evaluate", named[0], "--feature", "é", "-m", "RR", "-q", "--json"))
    assert tuple(shown["measures"]["RR"]["per_query"]) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_errors_are_one_line(named, name):
    result = CliRunner().invoke(app, ["evaluate", str(named[0]), "--feature", f"?{name}"], env={"COLUMNS": "80"})
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert result.stderr[:-1].isprintable()
    assert len(result.stderr) < 3000


def table_of(names):
    return Table(names[0], ["name", *names[:2]], [[name, 0.5, MarkedNumber(0.25, "a", True)] for name in names], names[1])


def test_tables_for_terminals():
    rows = table_of(NAMES).text(25_000).splitlines()
    for name in NAMES:
        assert any(row.strip().startswith(printable(name).strip()) for row in rows), name


def test_tables_in_markdown():
    written = table_of(NAMES)
    lines = written.markdown().splitlines()
    assert len(lines) == len(NAMES) + 2
    for name, line in zip(NAMES, lines[2:], strict=True):
        cell = re.split(r"(?<!\\)\|", line.replace(r"\\", "\0"))[1][1:-1]
        assert re.sub(r"\\(\W|_)", r"\1", cell).replace("\0", "\\") == printable(name)
        assert not re.search(r"(?<!\\)(<[A-Za-z/!]|[*`$]|\]\(|&\w+;)", cell), cell
    assert {c for c in written.section() if not c.isprintable()} == {"\n"}


def test_tables_in_latex():
    text = table_of(NAMES).latex()
    body = text.partition("\\midrule\n")[2].partition("\n\\bottomrule")[0].split("\n")
    assert len(body) == len(NAMES)
    back = {escape: letter for letter, escape in _LATEX.items()}
    form = re.compile("|".join(map(re.escape, sorted(back, key=len, reverse=True))))
    for name, line in zip(NAMES, body, strict=True):
        cell = line.partition(" & ")[0]
        assert form.sub(lambda result: back[result[0]], cell) == printable(name)
        assert not set(form.sub("", cell)) & set(_LATEX)


def test_tables_in_csv():
    head, *rows = csv.reader(io.StringIO(table_of(NAMES).csv()))
    for name, (cell, *_) in zip(NAMES, rows, strict=True):
        assert cell.removeprefix("'") == printable(name)
        assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    assert head == ["name", *NAMES[:2]]


def test_reports_hold_every_name():
    """A few at a time, since a report of that many methods would be long."""
    for first in range(0, len(NAMES), 6):
        names = NAMES[first : first + 6]
        page = report_html(make_comparison(names=names, queries=5, measures=("nDCG@10",), trials=1))
        page.encode()
        assert all(c.isprintable() or c == "\n" for c in page)
        shown = {" ".join(node.text.split()) for node in parsed(page).all("figcaption")}
        assert not list(parsed(page).all("b"))
        for name in names:
            assert any(" ".join(printable(name, lines=True).split()) in text for text in shown), name
